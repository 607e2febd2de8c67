/*
 * bench_stag: speed of the staggered hop beside that of a plain copy measured in the same run.
 *
 *   Mhat     x + c hop hop on even sites, two kernels: over fat links alone, and over fat and long
 *            ones
 *   halves   the same two kernels as plain CG takes them, with fat and long links: the first one
 *            sums (x, Mhat x), the second one changes r and sums |r|^2
 *   vectors  what plain CG does beside them: xi and p change
 *
 * Medians, of an application to all right-hand sides. GB/s count the least traffic: each colour
 * vector of a kernel once in and once out, each of its links once.
 */
#include <stdio.h>
#include <string.h>

#include "tests/bench/bench_kit.h"

enum { COMP = QK_COLOUR_COMPONENTS, MATRIX = 18 };

typedef struct mhat_job {
  qk_stag_args_t pass[2];
} mhat_job_t;

static void run_mhat(const bench_t *b, void *arg) {
  const mhat_job_t *m = arg;
  for (int i = 0; i < 2; i++) bench_must(b, b->ops->stag(b->ctx, &m->pass[i]), "stag");
}

/* Numbers that are no links, but are as long. */
static qk_links_t links(const bench_t *b, qk_prec_t prec) {
  qk_links_t l = {.prec = prec, .reals = MATRIX};
  const size_t bytes = b->ops->links_bytes(&b->lat, prec, MATRIX);
  void *data = bench_alloc(b, bytes);
  bench_must(b, b->ops->zero(b->ctx, data, bytes, 0), "zero");
  l.data = data;
  return l;
}

static void drop(const bench_t *b, const void *data) {
  b->ops->free(b->ctx, (void *)data);
}

/* The passes of CG: r in the place of out. red: of |out|^2; one: what alpha is made of. */
static void halve(mhat_job_t *job, qk_spinor_t r, const double *one, double *red) {
  for (int i = 0; i < 2; i++) job->pass[i].red = red;
  job->pass[0].more = one;
  job->pass[0].c_more = 1;
  job->pass[1].y = r;
  job->pass[1].c_y = 1;
  job->pass[1].num = job->pass[1].den = one;
}

/* one: room for scalars and sums of them, or NULL: Mhat alone. */
static void bench_mhat(const bench_t *b, bool json, qk_prec_t prec, int nrhs, bool is_long,
                       double *one) {
  const qk_spinor_t x = bench_field_of(b, prec, nrhs, COMP, QK_EVEN);
  const qk_spinor_t out = bench_field_of(b, prec, nrhs, COMP, QK_EVEN);
  const qk_spinor_t middle = bench_field_of(b, prec, nrhs, COMP, QK_ODD);
  const qk_links_t fat = links(b, prec), naik = is_long ? links(b, prec) : (qk_links_t){0};
  const qk_stag_args_t hop = {.lat = b->lat, .links = {.fat = fat, .naik = naik}};
  mhat_job_t job = {.pass = {hop, hop}};
  job.pass[0].out_parity = QK_ODD;
  job.pass[0].c_hop = 1;
  job.pass[0].in = x;
  job.pass[0].out = middle;
  job.pass[1].out_parity = QK_EVEN;
  job.pass[1].c_hop = -0.25;
  job.pass[1].c_x = 1;
  job.pass[1].in = middle;
  job.pass[1].x = x;
  job.pass[1].out = out;
  if (one) halve(&job, out, one, one + 2 * QK_COLUMNS_MAX);
  const double seconds = bench_measure(b, run_mhat, &job);
  /* each pass reads all links once, at half of the sites */
  const double all = (is_long ? 2 : 1) * (double)b->ops->links_bytes(&b->lat, prec, MATRIX);
  const double bytes = 2 * all + (one ? 6 : 5) * nrhs * bench_field_bytes(&x);
  bench_show(b, json,
             one       ? "halves of CG"
             : is_long ? "Mhat, fat and long"
                       : "Mhat, fat",
             prec, nrhs, bytes, seconds);
  drop(b, fat.data);
  if (is_long) drop(b, naik.data);
  drop(b, middle.data);
  drop(b, out.data);
  drop(b, x.data);
}

typedef struct vectors_job {
  qk_spinor_t p, r, x;
  const double *one;
  double *red;
} vectors_job_t;

static void blas(const bench_t *b, qk_blas_op_t op, qk_blas_args_t args) {
  args.op = op;
  bench_must(b, b->ops->blas(b->ctx, &args), "blas");
}

static void run_vectors(const bench_t *b, void *arg) {
  const vectors_job_t *j = arg;
  blas(b, QK_BLAS_CG_XP,
       (qk_blas_args_t){.f = {j->x, j->p, j->r}, .c = {j->one, j->one, j->one}, .red = j->red});
}

static void bench_vectors(const bench_t *b, bool json, qk_prec_t prec, int nrhs) {
  vectors_job_t j;
  qk_spinor_t *field[] = {&j.p, &j.r, &j.x};
  for (int i = 0; i < 3; i++) *field[i] = bench_field_of(b, prec, nrhs, COMP, QK_EVEN);
  const size_t room = (size_t)nrhs * 16 * sizeof(double);
  double *memory = bench_alloc(b, 2 * room);
  bench_must(b, b->ops->zero(b->ctx, memory, 2 * room, 0), "zero");
  j.one = memory;
  j.red = memory + room / sizeof(double);
  const double seconds = bench_measure(b, run_vectors, &j);
  /* x, p, r in, x, p out */
  bench_show(b, json, "vectors of CG", prec, nrhs, 5 * nrhs * bench_field_bytes(&j.p), seconds);
  for (int i = 0; i < 3; i++) drop(b, field[i]->data);
  drop(b, memory);
}

int main(int argc, char **argv) {
  const char *backend = "auto", *precision = "double,single,half";
  int dims[4] = {0}, most = 16;
  double seconds = 0.5;
  bool json = false;
  const bench_option_t options[] = {
      {"backend", BENCH_TEXT, &backend},     {"dims", BENCH_DIMS, dims},
      {"precision", BENCH_TEXT, &precision}, {"nrhs", BENCH_COUNT, &most},
      {"seconds", BENCH_REAL, &seconds},     {"json", BENCH_FLAG, &json}};
  bench_parse(
      argc, argv,
      "usage: bench_stag [--backend cpu|cuda|auto] [--dims XxYxZxT] [--precision NAME,...]\n"
      "                  [--nrhs MOST] [--seconds S] [--json]\n",
      options, sizeof options / sizeof *options);
  bench_t b;
  bench_open(&b, "bench_stag", backend, dims, seconds);
  const size_t room = 4 * QK_COLUMNS_MAX * sizeof(double);
  double *one = bench_alloc(&b, room);
  bench_must(&b, b.ops->zero(b.ctx, one, room, 0), "zero");
  if (!json) bench_show_heading(&b);
  for (int p = 0; p < QK_PRECS; p++) {
    if (!strstr(precision, bench_prec_name[p])) continue;
    for (int nrhs = 1; nrhs <= most; nrhs = nrhs == 1 ? 8 : 2 * nrhs) {
      bench_mhat(&b, json, (qk_prec_t)p, nrhs, false, NULL);
      bench_mhat(&b, json, (qk_prec_t)p, nrhs, true, NULL);
      bench_mhat(&b, json, (qk_prec_t)p, nrhs, true, one);
      bench_vectors(&b, json, (qk_prec_t)p, nrhs);
    }
  }
  drop(&b, one);
  bench_close(&b);
  return 0;
}
