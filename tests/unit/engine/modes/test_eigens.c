/* Eigenvectors as a service: what fails on the way is told, and leaves nothing behind. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/modes/eigens.h"
#include "tests/support/values.h"
#include "tests/unit/engine/setup/setup_kit.h"

typedef struct place {
  char folder[64], file[96], temp[104];
} place_t;

static void make_place(place_t *p) {
  snprintf(p->folder, sizeof p->folder, "/dev/shm/qk-eigens-XXXXXX");
  cr_assert_not_null(mkdtemp(p->folder));
  snprintf(p->file, sizeof p->file, "%s/low", p->folder);
  snprintf(p->temp, sizeof p->temp, "%s.tmp", p->file);
}

static void remove_place(const place_t *p) {
  unlink(p->file);
  cr_expect_neq(access(p->temp, F_OK), 0, "%s stays", p->temp);
  cr_expect_eq(rmdir(p->folder), 0, "%s is not empty", p->folder);
}

static bool is_there(const char *path) {
  struct stat st;
  return stat(path, &st) == 0;
}

/* The same, compressed. */
static void compress(qk_eigen_order_t *order) {
  order->problem.count = 12;
  order->problem.space = 32;
  order->problem.cut = (qk_coherent_cut_t){8, {2, 2, 2, 2}};
}

static qk_eigen_order_t an_order(const char *file) {
  qk_eigen_order_t order = {
      .serial = 7, .name = "low", .problem = {.count = 4, .space = 24, .order = 4, .tol = 1e-4}};
  if (file) snprintf(order.file, sizeof order.file, "%s", file);
  return order;
}

/* From EIGEN to EIGEN_DONE, and all that is kept goes. */
static qk_status_t life(loaded_t *l, const qk_eigen_order_t *order, qk_eigens_done_t *done) {
  qk_err_t err = {0};
  qk_eigens_t *eigens = NULL;
  bool over = false;
  qk_status_t status = qk_eigens_create(l->setup, l->port->wire, &eigens, &err);
  if (status == QK_OK) status = qk_eigens_begin(eigens, order, &over, done, &err);
  while (status == QK_OK && !over) status = qk_eigens_step(eigens, &over, done, &err);
  qk_eigens_destroy(eigens);
  return status != QK_OK ? status : done->verdict.code;
}

static loaded_t a_setup(void) {
  qk_load_t load = a_load("builtin:weak:4x4x2x4:1", "cg", QK_SINGLE, 1);
  load.values = values_of("wilson;mass=-0.2");
  return must_load(&load);
}

/* tolerated: what may fail without a word. */
static void fail_everywhere(loaded_t *l, const char *point, int step, qk_status_t expected,
                            bool tolerated, bool compressed) {
  char faults[64];
  qk_eigens_done_t done;
  place_t p;
  int failed = 0, n = 1, runs = 0;
  make_place(&p);
  qk_eigen_order_t order = an_order(p.file);
  if (compressed) compress(&order);
  cr_assert_eq(life(l, &order, &done), QK_OK, "%s", done.verdict.text); /* work fields are there */
  const double lowest = done.lowest;
  for (bool hit = true; hit && n < 20000; n += step, runs++) {
    const int64_t host = qk_mem_bytes(), device = l->setup->ops->allocated(l->setup->ctx);
    unlink(p.file);
    snprintf(faults, sizeof faults, "%s:%d", point, n);
    cr_assert_eq(qk_fault_set(faults), 0);
    memset(&done, 0, sizeof done);
    const qk_status_t status = life(l, &order, &done);
    cr_assert_eq(qk_fault_set(NULL), 0);
    cr_assert(status == QK_OK || status == expected, "%s: %s", faults, qk_status_name(status));
    cr_assert(status == QK_OK || done.serial == 0 || done.verdict.text[0], "%s: no words", faults);
    cr_assert_eq(l->setup->ops->allocated(l->setup->ctx), device, "%s: device memory", faults);
    cr_assert(qk_mem_bytes() <= host, "%s: host memory stays", faults);
    cr_expect_not(is_there(p.temp), "%s", faults);
    if (status == QK_OK) cr_expect_eq(done.lowest, lowest, "%s: other values", faults);
    if (status == QK_OK) /* a state of before may be there */
      cr_expect(done.unwritten[0] || is_there(p.file), "%s: not a word of the file", faults);
    failed += status != QK_OK;
    hit = status != QK_OK || (tolerated && !is_there(p.file)) || (tolerated && runs < 20);
  }
  cr_expect(tolerated || failed > 3, "%s: %d failures", point, failed);
  remove_place(&p);
}

Test(eigens, survive_every_failure) {
  loaded_t l = a_setup();
  fail_everywhere(&l, "alloc", 1, QK_NO_MEMORY, false, false);
  fail_everywhere(&l, "device-alloc", 1, QK_DEVICE_MEMORY, false, false);
  fail_everywhere(&l, "device-call", 211, QK_DEVICE_ERROR, false, false);
  close_load(&l);
}

Test(eigens, survive_every_failure_of_compressed_ones) {
  loaded_t l = a_setup();
  fail_everywhere(&l, "alloc", 3, QK_NO_MEMORY, false, true);
  fail_everywhere(&l, "device-alloc", 2, QK_DEVICE_MEMORY, false, true);
  fail_everywhere(&l, "write", 11, QK_OK, true, true);
  fail_everywhere(&l, "device-call", 503, QK_DEVICE_ERROR, false, true);
  close_load(&l);
}

/* A file that cannot be written costs the file. */
Test(eigens, do_without_a_file_that_cannot_be_written) {
  loaded_t l = a_setup();
  fail_everywhere(&l, "write", 7, QK_OK, true, false);
  close_load(&l);
}

/* A file that cannot be read is made anew, but where it is to be restored. */
Test(eigens, are_computed_again_where_a_file_cannot_be_read) {
  loaded_t l = a_setup();
  qk_eigens_done_t done;
  place_t p;
  make_place(&p);
  qk_eigen_order_t order = an_order(p.file);
  cr_assert_eq(life(&l, &order, &done), QK_OK, "%s", done.verdict.text);
  const double lowest = done.lowest;
  for (int n = 1; n < 4; n++) {
    char faults[64];
    snprintf(faults, sizeof faults, "read:%d", n);
    for (int restore = 1; restore >= 0; restore--) {
      order.restore = restore;
      cr_assert_eq(qk_fault_set(faults), 0);
      const qk_status_t status = life(&l, &order, &done);
      cr_assert_eq(qk_fault_set(NULL), 0);
      cr_expect_eq(status, restore ? QK_IO_ERROR : QK_OK, "%s: %s", faults, done.verdict.text);
      if (!restore) cr_expect(done.lowest == lowest && done.applications > 0);
    }
  }
  order.restore = true;
  cr_expect_eq(life(&l, &order, &done), QK_OK);
  cr_expect(done.lowest == lowest && done.applications == 0);
  remove_place(&p);
  close_load(&l);
}

/* Two orders of one name. */
Test(eigens, of_an_operator_that_connects_all_sites_are_refused_by_name) {
  qk_load_t load = a_load("builtin:weak:4x2x2x4:1", "cg", QK_SINGLE, 1);
  load.values = values_of("overlap;mass=0.2;M=1.3;modes=0;sign-tol=0.001");
  loaded_t l = must_load(&load);
  qk_eigen_order_t order = an_order(NULL);
  qk_eigens_done_t done = {0};
  order.problem.kind = QUARK__EIGEN_KIND__EIGEN_NORMAL;
  cr_expect_eq(life(&l, &order, &done), QK_UNSUPPORTED);
  cr_expect(strstr(done.verdict.text, "overlap connects all sites"), "%s", done.verdict.text);
  close_load(&l);
}

Test(eigens, are_kept_under_their_name) {
  loaded_t l = a_setup();
  qk_err_t err = {0};
  qk_eigens_t *eigens = NULL;
  qk_eigens_done_t done;
  bool over = false;
  qk_eigen_order_t order = an_order(NULL);
  cr_assert_eq(qk_eigens_create(l.setup, l.port->wire, &eigens, &err), QK_OK);
  cr_assert_eq(qk_eigens_begin(eigens, &order, &over, &done, &err), QK_OK);
  cr_expect(!over && qk_eigens_busy(eigens));
  while (!over) cr_assert_eq(qk_eigens_step(eigens, &over, &done, &err), QK_OK, "%s", err.text);
  cr_assert_eq(done.verdict.code, QK_OK, "%s", done.verdict.text);
  cr_expect(!qk_eigens_busy(eigens) && done.host_bytes > 0 && done.residual > 0);
  order.serial = 8;
  cr_assert_eq(qk_eigens_begin(eigens, &order, &over, &done, &err), QK_OK);
  cr_expect(over && done.serial == 8 && done.verdict.code == QK_OK);
  order.problem.count = 5;
  cr_assert_eq(qk_eigens_begin(eigens, &order, &over, &done, &err), QK_OK);
  cr_expect(over && done.verdict.code == QK_BAD_ARGUMENT);
  qk_eigens_drop(eigens, "low");
  cr_assert_eq(qk_eigens_begin(eigens, &order, &over, &done, &err), QK_OK);
  cr_expect(!over && qk_eigens_busy(eigens));
  qk_eigens_abandon(eigens);
  cr_expect(!qk_eigens_busy(eigens));
  qk_eigens_destroy(eigens);
  close_load(&l);
}

/* ---- a dense problem that nobody wants any more ---------------------------------------------- */

enum { LARGE = 520 }; /* rows: more than are solved at once */
static const int64_t matrix = (int64_t)LARGE * LARGE * 16;

/* Up to the step that has begun its dense problem, which takes some tenths of a second. */
static void run_into_dense(qk_eigens_t *eigens, const qk_eigen_order_t *order) {
  qk_eigens_done_t done;
  qk_err_t err = {0};
  bool over = false;
  cr_assert_eq(qk_eigens_begin(eigens, order, &over, &done, &err), QK_OK);
  for (int64_t before = 0, after = 0; after < before + matrix;) {
    before = qk_mem_bytes();
    cr_assert_eq(qk_eigens_step(eigens, &over, &done, &err), QK_OK, "%s", err.text);
    cr_assert_not(over, "it was over without a dense problem: %s", done.verdict.text);
    after = before ? qk_mem_bytes() : 0;
  }
}

static qk_eigen_order_t a_large_order(void) {
  qk_eigen_order_t order = an_order(NULL);
  order.problem.space = LARGE;
  return order;
}

/* EIGEN_DONE, after which the front takes its memory for free, comes when it is. */
Test(eigens, a_cancel_is_told_when_the_dense_problem_has_ended) {
  loaded_t l = a_setup();
  qk_err_t err = {0};
  qk_eigens_t *eigens = NULL;
  qk_eigens_done_t done;
  bool over = false;
  int steps = 0;
  const qk_eigen_order_t order = a_large_order(), other = an_order(NULL);
  cr_assert_eq(life(&l, &other, &done), QK_OK); /* work fields are there */
  cr_assert_eq(qk_eigens_create(l.setup, l.port->wire, &eigens, &err), QK_OK);
  const int64_t host = qk_mem_bytes(), device = l.setup->ops->allocated(l.setup->ctx);
  run_into_dense(eigens, &order);
  qk_eigens_cancel(eigens);
  qk_eigens_cancel(eigens);
  cr_expect_eq(l.setup->ops->allocated(l.setup->ctx), device, "device memory stays");
  for (; !over; steps++) {
    cr_expect(qk_eigens_busy(eigens) && qk_eigens_progress(eigens).serial == 7);
    cr_assert_eq(qk_eigens_step(eigens, &over, &done, &err), QK_OK, "%s", err.text);
  }
  cr_expect(done.serial == 7 && done.verdict.code == QK_CANCELLED && done.verdict.text[0]);
  cr_expect(steps > 1, "the thread was not waited for");
  cr_expect(qk_mem_bytes() < host + matrix, "its matrices are there");
  cr_expect_not(qk_eigens_busy(eigens));
  qk_eigens_destroy(eigens);
  close_load(&l);
}

/* A front that has adopted the engine sends the next one at once. */
Test(eigens, begin_when_the_dense_problem_before_has_ended) {
  loaded_t l = a_setup();
  qk_err_t err = {0};
  qk_eigens_t *eigens = NULL;
  qk_eigens_done_t done, plain;
  bool over = false;
  const qk_eigen_order_t order = a_large_order(), other = an_order(NULL);
  cr_assert_eq(life(&l, &other, &plain), QK_OK);
  cr_assert_eq(qk_eigens_create(l.setup, l.port->wire, &eigens, &err), QK_OK);
  run_into_dense(eigens, &order);
  qk_eigens_abandon(eigens);
  cr_expect_not(qk_eigens_busy(eigens));
  const int64_t device = l.setup->ops->allocated(l.setup->ctx), host = qk_mem_bytes();
  cr_assert_eq(qk_eigens_begin(eigens, &other, &over, &done, &err), QK_OK);
  cr_expect(!over && qk_eigens_busy(eigens));
  while (!over && qk_mem_bytes() > host - matrix / 2) {
    cr_expect_eq(l.setup->ops->allocated(l.setup->ctx), device, "it began beside the other one");
    cr_assert_eq(qk_eigens_step(eigens, &over, &done, &err), QK_OK, "%s", err.text);
  }
  while (!over) cr_assert_eq(qk_eigens_step(eigens, &over, &done, &err), QK_OK, "%s", err.text);
  cr_expect(done.verdict.code == QK_OK && done.lowest == plain.lowest);
  cr_expect_eq(done.applications, plain.applications);
  qk_eigens_destroy(eigens);
  close_load(&l);
}

/* ---- damaged states -------------------------------------------------------------------------- */

typedef struct file {
  uint8_t *bytes;
  size_t size;
  qk_eigen_header_t h;
} file_t;

static bool read_file(const char *path, file_t *f) {
  FILE *in = fopen(path, "rb");
  qk_err_t err = {0};
  struct stat st;
  if (!in) return false;
  cr_assert_eq(stat(path, &st), 0);
  *f = (file_t){.size = (size_t)st.st_size, .bytes = malloc((size_t)st.st_size)};
  cr_assert_eq(fread(f->bytes, 1, f->size, in), f->size);
  fclose(in);
  cr_assert_eq(qk_eigen_header_decode(f->bytes, &f->h, &err), QK_OK, "%s", err.text);
  return true;
}

static void write_file(const char *path, const uint8_t *bytes, size_t size) {
  FILE *out = fopen(path, "wb");
  cr_assert_not_null(out);
  cr_assert_eq(fwrite(bytes, 1, size, out), size);
  cr_assert_eq(fclose(out), 0);
}

/* The first state that has a basis, of a computation that is left alone then. */
static file_t make_state(loaded_t *l, const qk_eigen_order_t *order) {
  qk_eigens_t *eigens = NULL;
  qk_eigens_done_t done;
  qk_err_t err = {0};
  file_t f = {NULL};
  bool over = false;
  cr_assert_eq(qk_eigens_create(l->setup, l->port->wire, &eigens, &err), QK_OK);
  cr_assert_eq(qk_eigens_begin(eigens, order, &over, &done, &err), QK_OK);
  while (!over && !f.h.based) {
    free(f.bytes);
    f = (file_t){NULL};
    cr_assert_eq(qk_eigens_step(eigens, &over, &done, &err), QK_OK);
    read_file(order->file, &f);
  }
  cr_assert(f.h.based && !f.h.complete, "there is no state with a basis");
  qk_eigens_destroy(eigens);
  return f;
}

/* What a whole computation says, and one from the state; how a damaged state is called. */
typedef struct case_ {
  loaded_t l;
  qk_eigen_order_t order;
  qk_eigens_done_t plain, resumed;
  file_t state;
} case_t;

/* It is computed from the beginning, with the same result, and where only the file will do it is
 * said what is wrong with it. */
static void expect_anew(case_t *c, const uint8_t *bytes, size_t size, const char *what, size_t at) {
  qk_eigens_done_t done;
  c->order.restore = true;
  write_file(c->order.file, bytes, size);
  const qk_status_t status = life(&c->l, &c->order, &done);
  cr_expect(status == QK_BAD_FORMAT || status == QK_BAD_CHECKSUM || status == QK_TRUNCATED,
            "%s %zu: %s: %s", what, at, qk_status_name(status), done.verdict.text);
  cr_expect(done.verdict.text[0], "%s %zu: no words", what, at);
  c->order.restore = false;
  cr_assert_eq(life(&c->l, &c->order, &done), QK_OK, "%s %zu: %s", what, at, done.verdict.text);
  cr_expect_eq(done.applications, c->plain.applications, "%s %zu: it went on", what, at);
  cr_expect_eq(done.lowest, c->plain.lowest);
  cr_expect_eq(done.highest, c->plain.highest);
}

static void open_case(case_t *c, place_t *p) {
  make_place(p);
  *c = (case_t){.l = a_setup(), .order = an_order(p->file)};
  compress(&c->order);
  cr_assert_eq(life(&c->l, &c->order, &c->plain), QK_OK, "%s", c->plain.verdict.text);
  unlink(p->file);
  c->state = make_state(&c->l, &c->order);
  cr_assert_eq(life(&c->l, &c->order, &c->resumed), QK_OK, "%s", c->resumed.verdict.text);
  cr_expect(c->resumed.lowest == c->plain.lowest && c->resumed.highest == c->plain.highest);
  cr_assert_lt(c->resumed.applications, c->plain.applications);
}

static void close_case(case_t *c, const place_t *p) {
  free(c->state.bytes);
  close_load(&c->l);
  remove_place(p);
}

Test(eigens, begin_anew_from_a_state_that_is_cut_short) {
  case_t c;
  place_t p;
  open_case(&c, &p);
  const file_t *f = &c.state;
  for (int b = 0; b <= f->h.nblock; b++)
    for (int less = 0; less < 2; less++) {
      const size_t end = (size_t)qk_eigen_block_at(&f->h, b) - (size_t)less;
      if (end < f->size) expect_anew(&c, f->bytes, end, "cut at", end);
    }
  for (size_t end = 0; end < QK_EIGEN_HEADER_BYTES + 600; end += 1711)
    expect_anew(&c, f->bytes, end, "cut at", end);
  close_case(&c, &p);
}

/* In the header, in the table and in each block, but for the version, whose other numbers are of
 * programs to come, and zeros behind the table. */
Test(eigens, begin_anew_from_a_state_with_a_flipped_bit) {
  case_t c;
  place_t p;
  open_case(&c, &p);
  const file_t *f = &c.state;
  const size_t table = QK_EIGEN_HEADER_BYTES + 8 * ((size_t)f->h.numbers + (size_t)f->h.nblock + 1);
  for (size_t at = 3; at < f->size; at += at < table ? 487 : 3989) {
    if ((at >= 8 && at < 12) || (at >= table && at < (size_t)qk_eigen_block_at(&f->h, 0))) continue;
    f->bytes[at] ^= 0x10;
    expect_anew(&c, f->bytes, f->size, "flipped at", at);
    f->bytes[at] ^= 0x10;
  }
  close_case(&c, &p);
}

/* Headers that are whole, and say what cannot be: sizes, and numbers of an iteration. */
Test(eigens, begin_anew_from_a_state_that_says_what_cannot_be) {
  case_t c;
  place_t p;
  open_case(&c, &p);
  uint8_t *bytes = malloc(c.state.size + 1);
  for (size_t k = 0; k < 9; k++) {
    qk_eigen_header_t h = c.state.h;
    size_t size = c.state.size;
    if (k == 0) h.nblock++;
    if (k == 1) h.numbers += 8, h.nblock++;
    if (k == 2) h.numbers -= 8, h.nblock--;
    if (k == 3) h.based = false;
    if (k == 4) h.state.window = -1;
    if (k == 5) h.state.order = 3;
    if (k == 6) h.state.window = 2 * h.state.top;
    if (k == 7) h.smoother.order = 66;
    if (k == 8) size++;
    memcpy(bytes, c.state.bytes, c.state.size);
    bytes[c.state.size] = 0;
    qk_eigen_header_encode(&h, bytes);
    expect_anew(&c, bytes, size, "header", k);
  }
  free(bytes);
  close_case(&c, &p);
}

/* ---- expansion ------------------------------------------------------------------------------- */

static const qk_kept_t *make_compressed(qk_eigens_t *eigens) {
  qk_eigens_done_t done;
  qk_err_t err = {0};
  const qk_kept_t *kept;
  bool over = false;
  qk_eigen_order_t order = an_order(NULL);
  compress(&order);
  cr_assert_eq(qk_eigens_begin(eigens, &order, &over, &done, &err), QK_OK);
  while (!over) cr_assert_eq(qk_eigens_step(eigens, &over, &done, &err), QK_OK, "%s", err.text);
  cr_assert_eq(done.verdict.code, QK_OK, "%s", done.verdict.text);
  cr_assert_eq(qk_eigens_find(eigens, "low", &kept, &err), QK_OK);
  return kept;
}

/* Handles of work fields stay on the host after the first one, and nothing else. */
static void expand_all(const loaded_t *l, const qk_kept_t *kept, const qk_field_t *field) {
  const int64_t device = l->setup->ops->allocated(l->setup->ctx);
  int64_t host = 0;
  for (int n = 0; n < kept->h.problem.count; n++)
    for (int k = 0; k < kept->h.vectors; k++) {
      const qk_kept_pick_t pick = {.n = n, .vector = k};
      qk_err_t err = {0};
      cr_assert_eq(qk_kept_vector(kept, &pick, field, &err), QK_OK, "%s", err.text);
      cr_expect_eq(l->setup->ops->allocated(l->setup->ctx), device, "device memory stays");
      if (host) cr_expect_eq(qk_mem_bytes(), host, "host memory stays");
      host = qk_mem_bytes();
    }
}

/* Work fields are in the room that was planned for the solvers, whatever the operator has of slices
 * and flavours, and with slots that need little of it; all else is given back. */
Test(eigens, expansion_stays_in_the_room_of_the_solvers) {
  static const char *const action[] = {"wilson;mass=-0.2", "doublet;mass=-0.1;mu=0.2;epsilon=0.15",
                                       "moebius;mass=0.1;M5=1.4;Ls=4;b=1.5;c=0.5"};
  static const char *const solver[] = {"cg", "gcr", "bicgstab"};
  for (int i = 0; i < 9; i++) {
    const bool five = i / 3 == 2;
    if (five && i % 3 > 0) continue; /* it has CG alone */
    qk_load_t load = a_load("builtin:weak:4x4x2x4:1", solver[i % 3], QK_SINGLE, 1 + i % 2);
    load.values = values_of(action[i / 3]);
    loaded_t l = must_load(&load);
    qk_eigens_t *eigens = NULL;
    qk_field_t *field;
    qk_geom_t geom = l.setup->geom;
    qk_device_t dev = l.setup->dev;
    qk_err_t err = {0};
    geom.inner = geom.ls = 1; /* of a source that is one vector */
    dev.geom = &geom;
    cr_assert_eq(qk_eigens_create(l.setup, l.port->wire, &eigens, &err), QK_OK);
    const qk_kept_t *kept = make_compressed(eigens);
    cr_assert_eq(qk_field_create(&dev, QK_DOUBLE, 1, QK_FULL, &field), QK_OK);
    expand_all(&l, kept, field);
    qk_field_destroy(field);
    qk_eigens_destroy(eigens);
    close_load(&l);
  }
}
