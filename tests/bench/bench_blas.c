/*
 * bench_blas: speed of block BLAS, many-vector operations and columns beside that of a plain copy
 * measured in the same run. GB/s count each field that is read once and each that is written once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench_kit.h"

typedef struct settings {
  const char *backend, *precs, *nrhs;
  int dims[4], ncomp;
  double seconds;
  bool json;
} settings_t;

/* The fields, scalars and results that all operations work on: full fields,
 * allocated once a block. */
typedef struct block {
  qk_prec_t prec;
  int nrhs;
  qk_spinor_t f[8];
  double *scalars, *red;
  void *wire[QK_RHS_TOGETHER];
} block_t;

static void show(const bench_t *b, const settings_t *s, const block_t *k, const char *op,
                 double passes, int columns, double seconds) {
  const double bytes = passes * bench_field_bytes(&k->f[0]) * columns;
  bench_show(b, s->json, op, k->prec, k->nrhs, bytes, seconds);
}

static void run_blas(const bench_t *b, void *arg) {
  bench_must(b, b->ops->blas(b->ctx, arg), "blas");
}

static void run_dot(const bench_t *b, void *arg) {
  bench_must(b, b->ops->multi_dot(b->ctx, arg), "multi_dot");
}
static void run_axpy(const bench_t *b, void *arg) {
  bench_must(b, b->ops->multi_axpy(b->ctx, arg), "multi_axpy");
}
static void run_space_dots(const bench_t *b, void *arg) {
  bench_must(b, b->ops->space_dots(b->ctx, arg), "space_dots");
}
static void run_space_step(const bench_t *b, void *arg) {
  bench_must(b, b->ops->space_step(b->ctx, arg), "space_step");
}
static void run_import(const bench_t *b, void *arg) {
  bench_must(b, b->ops->rhs_import(b->ctx, arg), "import");
}
static void run_export(const bench_t *b, void *arg) {
  bench_must(b, b->ops->rhs_export(b->ctx, arg), "export");
}

static void run_copy(const bench_t *b, void *arg) {
  bench_must(b, b->ops->rhs_copy(b->ctx, arg), "rhs_copy");
}

static const struct {
  const char *name;
  int fields;
} rows[] = {
#define X(name, fields, scalars, reductions, formula) [QK_BLAS_##name] = {#name, fields},
    QK_BLAS_TABLE(X)
#undef X
};

/* How many fields an operation reads and writes in all. */
static int passes_of(qk_blas_op_t op) {
  switch (op) {
  case QK_BLAS_ZERO:
    return 1;
  case QK_BLAS_NORM2:
    return 1;
  case QK_BLAS_COPY:
  case QK_BLAS_SCALE:
  case QK_BLAS_CDOT:
  case QK_BLAS_CDOT_NORM2:
    return 2;
  case QK_BLAS_BICGSTAB_XR:
    return 7;
  case QK_BLAS_MR_XR:
    return 5;
  case QK_BLAS_CG_XR:
  case QK_BLAS_GCR_XR:
    return 6;
  case QK_BLAS_BICGSTAB_P:
    return 4;
  default:
    return 3;
  }
}

static void bench_columns(const bench_t *b, const settings_t *s, block_t *k) {
  qk_rhs_args_t c = {.lat = b->lat, .field = k->f[0], .n = 1, .is_double = 1, .factor = 1};
  for (int i = 0; i < 4; i++) {
    c.wire[i] = k->wire[i];
    c.basis[i][i][0] = 1;
  }
  const double wire = (double)b->volume * 24 * sizeof(double) / bench_field_bytes(&k->f[0]);
  show(b, s, k, "import", 1 + wire, 1, bench_measure(b, run_import, &c));
  show(b, s, k, "export", 1 + wire, 1, bench_measure(b, run_export, &c));
  c.n = QK_RHS_TOGETHER;
  if (k->nrhs >= c.n) show(b, s, k, "import 4", 1 + wire, c.n, bench_measure(b, run_import, &c));

  /* against fields of one column in double, which take as much as a vector in wire order */
  qk_rhs_copy_args_t copy = {.to = k->f[0],
                             .from = {.data = k->wire[0],
                                      .prec = QK_DOUBLE,
                                      .subset = QK_FULL,
                                      .ncomp = 12,
                                      .nrhs = 1,
                                      .nsites = b->volume}};
  memcpy(copy.single_rhs, k->wire, sizeof copy.single_rhs);
  show(b, s, k, "put", 1 + wire, 1, bench_measure(b, run_copy, &copy));
  copy.n = QK_RHS_TOGETHER;
  if (k->nrhs < copy.n) return;
  show(b, s, k, "put 4", 1 + wire, copy.n, bench_measure(b, run_copy, &copy));
  qk_rhs_copy_args_t back = copy;
  back.to = copy.from;
  back.from = copy.to;
  back.add = 1;
  show(b, s, k, "add 4", 1 + 2 * wire, copy.n, bench_measure(b, run_copy, &back));
}

static void bench_block(const bench_t *b, const settings_t *s, block_t *k) {
  for (int op = 1; op < QK_BLAS_COUNT; op++) {
    qk_blas_args_t args = {.op = (qk_blas_op_t)op, .red = k->red};
    for (int i = 0; i < rows[op].fields; i++) args.f[i] = k->f[i];
    for (int i = 0; i < QK_BLAS_MAX_SCALARS; i++) args.c[i] = k->scalars;
    show(b, s, k, rows[op].name, passes_of(args.op), k->nrhs, bench_measure(b, run_blas, &args));
  }
  qk_multi_args_t m = {.n = 7, .y = k->f[7], .c = k->scalars, .sign = 1, .red = k->red};
  for (int i = 0; i < 7; i++) m.f[i] = k->f[i];
  show(b, s, k, "multi_dot 7", 8, k->nrhs, bench_measure(b, run_dot, &m));
  show(b, s, k, "multi_axpy 7", 9, k->nrhs, bench_measure(b, run_axpy, &m));
  qk_space_args_t space = {.n = 4, .x = k->f[7], .dots = k->red, .y = k->scalars};
  for (int i = 0; i <= 4; i++) space.v[i] = k->f[i];
  show(b, s, k, "space_dots 4", 5, k->nrhs, bench_measure(b, run_space_dots, &space));
  show(b, s, k, "space_step 4", 8, k->nrhs, bench_measure(b, run_space_step, &space));
  if (s->ncomp == 12) bench_columns(b, s, k);
}

/* Coarse levels: uniform noise. */
static qk_spinor_t field(const bench_t *b, const settings_t *s, qk_prec_t prec, int nrhs) {
  if (s->ncomp == 12) return bench_field(b, prec, nrhs, QK_FULL);
  qk_spinor_t v = {.prec = prec,
                   .subset = QK_FULL,
                   .ncomp = s->ncomp,
                   .nrhs = nrhs,
                   .ntile = nrhs == 1 ? 0 : (nrhs + QK_TILE - 1) / QK_TILE,
                   .nsites = b->volume};
  const size_t lanes = (size_t)v.nsites * (size_t)(v.ntile > 0 ? v.ntile * QK_TILE : 1);
  v.data = bench_alloc(b, lanes * 2 * (size_t)v.ncomp * (prec == QK_DOUBLE ? 8 : 4));
  const qk_noise_args_t noise = {.lat = b->lat, .field = v, .rhs = -1, .seed = 17};
  bench_must(b, b->ops->noise(b->ctx, &noise), "noise");
  return v;
}

static void bench_all(const bench_t *b, const settings_t *s) {
  block_t k = {0};
  char list[64], *save = NULL;
  k.scalars = bench_alloc(b, 7 * QK_MAX_RHS * 2 * sizeof(double));
  k.red = bench_alloc(b, 15 * QK_MAX_RHS * 2 * sizeof(double));
  for (int i = 0; i < QK_RHS_TOGETHER; i++)
    k.wire[i] = bench_alloc(b, (size_t)b->volume * 24 * sizeof(double));
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++) {
    if (strstr(s->precs, bench_prec_name[prec]) == NULL) continue;
    if (prec == QK_HALF && s->ncomp != 12) continue;
    snprintf(list, sizeof list, "%s", s->nrhs);
    for (char *word = strtok_r(list, ",", &save); word != NULL; word = strtok_r(NULL, ",", &save)) {
      k.prec = (qk_prec_t)prec;
      k.nrhs = atoi(word);
      if (k.nrhs < 1 || k.nrhs > QK_MAX_RHS) {
        fprintf(stderr, "bench_blas: --nrhs %s: 1 to %d\n", word, QK_MAX_RHS);
        exit(64);
      }
      for (int i = 0; i < 8; i++) k.f[i] = field(b, s, k.prec, k.nrhs);
      bench_block(b, s, &k);
      for (int i = 0; i < 8; i++) b->ops->free(b->ctx, k.f[i].data);
    }
  }
  b->ops->free(b->ctx, k.scalars);
  b->ops->free(b->ctx, k.red);
  for (int i = 0; i < QK_RHS_TOGETHER; i++) b->ops->free(b->ctx, k.wire[i]);
}

static const char usage[] =
    "usage: bench_blas [--backend cpu|cuda|auto] [--dims XxYxZxT] [--precision "
    "double,single,half]\n"
    "                  [--nrhs 1,8] [--ncomp N] [--seconds S] [--json]\n"
    "Default: auto, 16x16x16x16 on the CPU and 32x32x32x64 on a GPU, all precisions, nrhs 1,8.\n"
    "--ncomp: components a site, a multiple of 4; others than 12: double and single only.\n";

static settings_t parse(int argc, char **argv) {
  settings_t s = {
      .backend = "auto", .precs = "double,single,half", .nrhs = "1,8", .ncomp = 12, .seconds = 0.1};
  const bench_option_t options[] = {
      {"backend", BENCH_TEXT, &s.backend}, {"dims", BENCH_DIMS, s.dims},
      {"seconds", BENCH_REAL, &s.seconds}, {"precision", BENCH_TEXT, &s.precs},
      {"nrhs", BENCH_TEXT, &s.nrhs},       {"ncomp", BENCH_COUNT, &s.ncomp},
      {"json", BENCH_FLAG, &s.json}};
  bench_parse(argc, argv, usage, options, sizeof options / sizeof *options);
  if (s.ncomp < 4 || s.ncomp % 4 != 0) {
    fprintf(stderr, "bench_blas: --ncomp %d: a multiple of 4\n", s.ncomp);
    exit(64);
  }
  return s;
}

int main(int argc, char **argv) {
  const settings_t s = parse(argc, argv);
  bench_t b;
  bench_open(&b, "bench_blas", s.backend, s.dims, s.seconds);
  if (!s.json) bench_show_heading(&b);
  bench_all(&b, &s);
  bench_close(&b);
  return 0;
}
