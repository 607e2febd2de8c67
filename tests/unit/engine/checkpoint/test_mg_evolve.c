/* Setups of multigrid that start from the null vectors of another mass, action or configuration:
 * what they cost and do, what is refused. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "daemon/engine/checkpoint/mg_header.h"
#include "tests/support/mg_rig.h"
#include "tests/support/values.h"

enum { RHS = 4 };

/* A hierarchy of two levels and its checkpoint; others evolve from it. */
typedef struct fixture {
  qk_rig_t rig;
  qk_mg_params_t params;
  char folder[64], path[96];
} fixture_t;

/* ---- work: columns that the operator was applied to ------------------------------------------ */

static int64_t columns;
static qk_operator_ops_t counted;
static const qk_operator_ops_t *uncounted;

static qk_status_t apply(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool dagger,
                         const qk_field_t *x, double c) {
  columns += in->v.nrhs;
  return uncounted->apply(op, out, in, dagger, x, c);
}
static qk_status_t apply_system(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                bool dagger, const qk_field_t *x) {
  columns += in->v.nrhs;
  return uncounted->apply_system(op, out, in, dagger, x);
}
static qk_status_t relax(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, double c) {
  columns += in->v.nrhs;
  return uncounted->relax(op, out, in, c);
}
static qk_status_t hop_forward(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, int mu) {
  columns += in->v.nrhs; /* a quarter of an operator: more than it costs */
  return uncounted->hop_forward(op, out, in, mu);
}

static void begin_count(qk_operator_t *op) {
  uncounted = op->ops;
  counted = *op->ops;
  counted.apply = apply;
  counted.apply_system = apply_system;
  counted.relax = relax;
  counted.hop_forward = hop_forward;
  op->ops = &counted;
  columns = 0;
}

static int64_t end_count(qk_operator_t *op) {
  op->ops = uncounted;
  return columns;
}

/* ---- setups ---------------------------------------------------------------------------------- */

static void save(fixture_t *f, const qk_mg_t *mg, const char *operator_text) {
  qk_mg_identity_t id = {.gauge_digest = f->rig.check.digest,
                         .phase = {{1, 0}, {1, 0}, {1, 0}, {-1, 0}}};
  qk_err_t err = {0};
  qk_mg_save_t *s = NULL;
  bool ended;
  snprintf(id.operator_text, sizeof id.operator_text, "%s", operator_text);
  rig_must(qk_mg_save_begin(mg, f->path, &id, &s, &err), "save", &err);
  rig_must(qk_mg_save_poll(&s, true, &ended, &err), "save", &err);
}

static qk_mg_t *set_up(fixture_t *f) {
  qk_err_t err = {0};
  qk_mg_t *mg;
  rig_must(qk_mg_create(f->rig.op, f->rig.work, &f->params, NULL, NULL, &mg, &err), "setup", &err);
  return mg;
}

/* Its checkpoint is of mass 0.02 on the links of `gauge`. */
static void open_fixture(fixture_t *f, const char *gauge) {
  *f = (fixture_t){.params = {.nlevel = 2}};
  rig_open(&f->rig, NULL, gauge, NULL);
  rig_operator(&f->rig, 0.02, 1, -1);
  f->params.level[0] = (qk_mg_level_params_t){
      .block = {4, 4, 4, 4}, .nvec = 24, .setup_iterations = 50, .setup_passes = -1};
  snprintf(f->folder, sizeof f->folder, "/tmp/qk_mg_evolve_XXXXXX");
  cr_assert_not_null(mkdtemp(f->folder));
  snprintf(f->path, sizeof f->path, "%s/setup.mg", f->folder);
  qk_mg_t *mg = set_up(f);
  save(f, mg, "wilson-clover;mass=0.02;csw=1");
  qk_mg_destroy(mg);
}

static void close_fixture(fixture_t *f) {
  unlink(f->path);
  cr_expect_eq(rmdir(f->folder), 0, "%s holds something else", f->folder);
  rig_close(&f->rig);
}

static qk_status_t evolve(fixture_t *f, qk_mg_t **mg, qk_err_t *err) {
  *mg = NULL;
  return qk_mg_load_evolved(f->rig.op, f->rig.work, f->path, "before", &f->params, NULL, NULL, mg,
                            err);
}

/* Outer iterations of a few right-hand sides, of the slowest. */
static int64_t iterations(fixture_t *f, qk_mg_t *mg) {
  mg_rig_t m = {.mg = mg};
  int64_t most = 0;
  double *b = rig_vector(&f->rig);
  mg_rig_slots(&f->rig, &m, QK_SINGLE, RHS, 0);
  for (int i = 0; i < RHS; i++) {
    rig_random(&f->rig, 5 + (uint64_t)i, b);
    rig_import(&f->rig, qk_solver_rhs(m.solver, i), 0, b);
    rig_must(qk_solver_fill(m.solver, i, 1e-9, 200), "fill", NULL);
  }
  rig_run(m.solver);
  for (int i = 0; i < RHS; i++) {
    const qk_slot_t *s = qk_solver_slot(m.solver, i);
    cr_expect_eq(s->status, QK_OK);
    if (s->iterations > most) most = s->iterations;
  }
  qk_solver_destroy(m.solver);
  qk_cycle_destroy(m.cycle);
  qk_free(b);
  return most;
}

/* A setup with the operator that the rig has needs at most half of the work of one from noise, and
 * one iteration more. */
static void expect_cheaper(fixture_t *f, qk_mg_evolved_t how, const char *words) {
  qk_err_t err = {0};
  qk_mg_t *fresh, *evolved;
  begin_count(f->rig.op);
  fresh = set_up(f);
  const int64_t work = end_count(f->rig.op), least = iterations(f, fresh);
  qk_mg_destroy(fresh);
  begin_count(f->rig.op);
  rig_must(evolve(f, &evolved, &err), "evolved", &err);
  const int64_t less = end_count(f->rig.op);
  cr_expect(2 * less <= work, "%lld columns, and %lld from noise", (long long)less,
            (long long)work);
  const int64_t needed = iterations(f, evolved);
  cr_expect(needed <= least + 1, "%lld iterations, and %lld from noise", (long long)needed,
            (long long)least);
  cr_expect_eq(evolved->evolved, how);
  cr_expect_not(evolved->restored);
  cr_expect(strstr(evolved->origin, words) && strstr(evolved->origin, "evolved from before ("),
            "%s", evolved->origin);
  cr_expect(evolved->level[0].health.null_residual > 0 && evolved->convergence > 0);
  qk_mg_destroy(evolved);
}

Test(mg_evolve, vectors_of_another_mass_are_kept) {
  fixture_t f;
  open_fixture(&f, "builtin:weak:8x8x8x8:3");
  rig_operator(&f.rig, 0.01, 1, -1);
  expect_cheaper(&f, QK_MG_KEPT, "wilson-clover;mass=0.02;csw=1, links digest");
  close_fixture(&f);
}

Test(mg_evolve, vectors_of_another_action_are_kept_where_they_are_null_vectors) {
  fixture_t f;
  static const char *const other[] = {"anisotropic-clover;mass=0.02;xi0=1.02;c-r=1;c-t=1",
                                      "twisted-clover;mass=0.02;mu=0.02;csw=1"};
  open_fixture(&f, "builtin:weak:8x8x8x8:3");
  for (int i = 0; i < 2; i++) {
    rig_action(&f.rig, other[i], -1);
    expect_cheaper(&f, QK_MG_KEPT, "vectors kept");
  }
  close_fixture(&f);
}

static void read_header(const fixture_t *f, qk_mg_header_t *h) {
  uint8_t bytes[QK_MG_HEADER_BYTES];
  const int fd = open(f->path, O_RDONLY);
  cr_assert(fd >= 0 && read(fd, bytes, sizeof bytes) == sizeof bytes);
  close(fd);
  cr_assert_eq(qk_mg_header_decode(bytes, h, NULL), QK_OK);
}

static void change_header(const fixture_t *f, double residual, double convergence) {
  uint8_t bytes[QK_MG_HEADER_BYTES];
  qk_mg_header_t h;
  read_header(f, &h);
  h.fresh_residual = residual;
  h.fresh_convergence = convergence;
  qk_mg_header_encode(&h, bytes);
  const int fd = open(f->path, O_WRONLY);
  cr_assert(fd >= 0 && pwrite(fd, bytes, sizeof bytes, 0) == sizeof bytes);
  close(fd);
}

/* Links without any likeness: what is left is a shorter relaxation. */
Test(mg_evolve, vectors_of_other_links_are_relaxed) {
  fixture_t f, other;
  open_fixture(&f, "builtin:weak:8x8x8x8:3");
  open_fixture(&other, "random:8x8x8x8:4");
  unlink(f.path);
  cr_assert_eq(rename(other.path, f.path), 0);
  change_header(&f, 0.01, 0.1); /* of links like these */
  f.params.level[0].setup_tol =
      1e-12; /* as in a thermal field, no relaxation ends before its time */
  expect_cheaper(&f, QK_MG_RELAXED, "vectors relaxed with 15 iterations");
  close_fixture(&other);
  close_fixture(&f);
}

/* The checkpoint that it writes has checksums of all its vectors. */
static qk_mg_header_t evolve_and_save(fixture_t *f) {
  qk_err_t err = {0};
  qk_mg_t *mg;
  qk_mg_header_t h;
  char before[104];
  snprintf(before, sizeof before, "%s.old", f->path);
  rig_must(evolve(f, &mg, &err), "evolved", &err);
  cr_assert_eq(rename(f->path, before), 0);
  save(f, mg, "wilson-clover;mass=0.02;csw=1");
  read_header(f, &h);
  cr_assert_eq(rename(before, f->path), 0);
  qk_mg_destroy(mg);
  return h;
}

static void expect_same_bits(fixture_t *f) {
  const qk_mg_header_t a = evolve_and_save(f), b = evolve_and_save(f);
  cr_expect(a.nsection == 2 && a.section[0].checksum != 0);
  cr_expect_eq(memcmp(&a, &b, sizeof a), 0);
}

Test(mg_evolve, same_inputs_give_the_same_bits) {
  fixture_t f;
  open_fixture(&f, "builtin:weak:8x8x8x8:3");
  expect_same_bits(&f);
  rig_operator(&f.rig, 1.2, 1, -1); /* too far: they are relaxed */
  expect_same_bits(&f);
  close_fixture(&f);
}

/* In turns, as where memory is short, with passes and a third level. */
Test(mg_evolve, works_in_turns_and_on_three_levels) {
  fixture_t f;
  qk_err_t err = {0};
  qk_mg_t *mg;
  open_fixture(&f, "builtin:weak:8x8x8x8:3");
  f.params = (qk_mg_params_t){.nlevel = 3, .together = 8, .deflate = 4};
  for (int l = 0; l < 2; l++)
    f.params.level[l] = (qk_mg_level_params_t){
        .block = {2, 2, 2, 2}, .nvec = l == 0 ? 16 : 8, .setup_iterations = 20, .setup_passes = 1};
  mg = set_up(&f);
  const int64_t least = iterations(&f, mg);
  save(&f, mg, "wilson-clover;mass=0.02;csw=1");
  qk_mg_destroy(mg);
  const double mass[] = {0.015, 1.2};
  for (int i = 0; i < 2; i++) {
    rig_operator(&f.rig, mass[i], 1, -1);
    rig_must(evolve(&f, &mg, &err), "evolved", &err);
    cr_expect_eq(mg->evolved, i == 0 ? QK_MG_KEPT : QK_MG_RELAXED);
    cr_expect(mg->deflation && mg->nlevel == 3);
    cr_expect(iterations(&f, mg) <= least + 1);
    rig_must(qk_mg_refine(mg, NULL, NULL, &err), "refined", &err);
    rig_must(qk_mg_check(mg, NULL, NULL, &err), "checked", &err);
    qk_mg_destroy(mg);
  }
  close_fixture(&f);
}

static void expect_refused(fixture_t *f, qk_status_t expected, const char *words) {
  qk_mg_t *mg;
  qk_err_t err = {0};
  begin_count(f->rig.op);
  const qk_status_t status = evolve(f, &mg, &err);
  const int64_t work = end_count(f->rig.op);
  cr_expect_eq(status, expected, "%s: %s: %s", words, qk_status_name(status), err.text);
  cr_expect(strstr(err.text, words) != NULL, "\"%s\" in \"%s\"", words, err.text);
  cr_expect_null(mg);
  if (expected == QK_NOT_FOUND) cr_expect_eq(work, 0, "refused before any work");
}

Test(mg_evolve, other_shapes_are_refused_by_name) {
  fixture_t f;
  open_fixture(&f, "builtin:weak:8x8x8x8:3");
  const qk_mg_params_t params = f.params;
  f.params.level[0].nvec = 12;
  expect_refused(&f, QK_NOT_FOUND, "checkpoint of 24 vectors on level 0, not 12");
  f.params = params;
  f.params.level[0].block[3] = 2;
  expect_refused(&f, QK_NOT_FOUND, "checkpoint of blocks 4x4x4x4 on level 0, not 4x4x4x2");
  f.params = (qk_mg_params_t){.nlevel = 3};
  for (int l = 0; l < 2; l++)
    f.params.level[l] = (qk_mg_level_params_t){.block = {2, 2, 2, 2}, .nvec = 8};
  expect_refused(&f, QK_NOT_FOUND, "checkpoint of 2 levels, not 3");
  f.params = params;
  f.params.level[0].setup_iterations = 7; /* of the setup, not of the vectors */
  f.params.level[0].setup_passes = 1;
  qk_mg_t *mg;
  qk_err_t err = {0};
  rig_must(evolve(&f, &mg, &err), "other parameters of a setup", &err);
  qk_mg_destroy(mg);
  fixture_t large;
  open_fixture(&large, "builtin:weak:8x8x8x16:3");
  unlink(f.path);
  cr_assert_eq(rename(large.path, f.path), 0);
  f.params = params;
  expect_refused(&f, QK_NOT_FOUND, "checkpoint of a lattice 8x8x8x16, not 8x8x8x8");
  close_fixture(&large);
  close_fixture(&f);
}

/* Changes a byte, or what the header says. */
static void damage(const fixture_t *f, off_t at) {
  uint8_t byte;
  const int fd = open(f->path, O_RDWR);
  cr_assert(fd >= 0 && pread(fd, &byte, 1, at) == 1);
  byte ^= 0x10;
  cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
  close(fd);
}

Test(mg_evolve, damaged_vectors_are_refused) {
  fixture_t f;
  open_fixture(&f, "builtin:weak:8x8x8x8:3");
  qk_mg_header_t h;
  read_header(&f, &h);
  for (int i = 0; i < 2; i++) {
    char words[40];
    snprintf(words, sizeof words, "checksum of section %d", i);
    damage(&f, h.section[i].offset + 99);
    expect_refused(&f, QK_BAD_CHECKSUM, words);
    damage(&f, h.section[i].offset + 99);
  }
  cr_assert_eq(truncate(f.path, h.file_bytes - 1), 0);
  expect_refused(&f, QK_TRUNCATED, "bytes of");
  unlink(f.path);
  expect_refused(&f, QK_NOT_FOUND, "there is no checkpoint");
  close_fixture(&f);
}

/* The last setup from noise is the measure, also where others evolved in between. */
Test(mg_evolve, one_that_converges_much_worse_than_from_noise_is_refused) {
  fixture_t f;
  qk_err_t err = {0};
  qk_mg_t *mg;
  open_fixture(&f, "builtin:weak:8x8x8x8:3");
  rig_must(evolve(&f, &mg, &err), "evolved", &err);
  const double was = mg->fresh_convergence, residual = mg->fresh_residual;
  cr_expect(was > 0 && was < 1 && residual > 0);
  mg->convergence = 0.9;
  save(&f, mg, "wilson-clover;mass=0.02;csw=1");
  qk_mg_destroy(mg);
  rig_must(evolve(&f, &mg, &err), "evolved", &err);
  cr_expect(mg->fresh_convergence == was && mg->fresh_residual == residual);
  const double now = mg->convergence;
  qk_mg_destroy(mg);
  change_header(&f, residual, pow(now, 1.25)); /* kept ones fall short, relaxed ones do not */
  rig_must(evolve(&f, &mg, &err), "evolved", &err);
  cr_expect(mg->evolved == QK_MG_RELAXED && mg->attempts == 2);
  qk_mg_destroy(mg);
  change_header(&f, residual, pow(now, 2));
  expect_refused(&f, QK_BREAKDOWN, "after the last setup from noise");
  change_header(&f, 0, 0); /* an older file does not say: relaxed, and measured by the check */
  rig_must(evolve(&f, &mg, &err), "evolved", &err);
  cr_expect_eq(mg->evolved, QK_MG_RELAXED);
  qk_mg_destroy(mg);
  close_fixture(&f);
}

Test(mg_evolve, the_checkpoint_says_where_it_came_from) {
  fixture_t f;
  qk_err_t err = {0};
  qk_mg_t *mg;
  open_fixture(&f, "builtin:weak:8x8x8x8:3");
  rig_operator(&f.rig, 0.01, 1, -1);
  rig_must(evolve(&f, &mg, &err), "evolved", &err);
  char origin[QK_MG_ORIGIN];
  memcpy(origin, mg->origin, sizeof origin);
  save(&f, mg, "wilson-clover;mass=0.01;csw=1");
  qk_mg_destroy(mg);
  qk_mg_identity_t id = {.gauge_digest = f.rig.check.digest,
                         .phase = {{1, 0}, {1, 0}, {1, 0}, {-1, 0}},
                         .operator_text = "wilson-clover;mass=0.01;csw=1"};
  rig_must(qk_mg_load(f.rig.op, f.rig.work, f.path, &id, &f.params, NULL, NULL, &mg, &err), "load",
           &err);
  cr_expect(mg->restored && mg->fresh_convergence > 0);
  cr_expect_str_eq(mg->origin, origin);
  qk_mg_destroy(mg);
  close_fixture(&f);
}
