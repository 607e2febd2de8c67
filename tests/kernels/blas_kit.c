#include "tests/kernels/blas_kit.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL_SUBSETS(prec, nrhs, single_rhs)                                                        \
  {prec, nrhs, single_rhs, QK_FULL}, {prec, nrhs, single_rhs, QK_EVEN}, {                          \
    prec, nrhs, single_rhs, QK_ODD                                                                 \
  }
#define ALL_SHAPES(prec)                                                                           \
  ALL_SUBSETS(prec, 1, true), ALL_SUBSETS(prec, 1, false), ALL_SUBSETS(prec, 2, false),            \
      ALL_SUBSETS(prec, 8, false), ALL_SUBSETS(prec, 11, false)

const cut_t cuts[] = {ALL_SHAPES(QK_DOUBLE), ALL_SHAPES(QK_SINGLE), ALL_SHAPES(QK_HALF)};
const int ncuts = sizeof cuts / sizeof cuts[0];

bool cut_exists(const kit_t *kit, cut_t cut) {
  if (kit->ncomp == QK_COLOUR_COMPONENTS && cut.prec == QK_HALF) return true;
  return kit->ncomp == 12 || (cut.prec != QK_HALF && cut.subset != QK_EVEN && cut.nrhs != 2);
}

bool cut_exists_without_colours(const kit_t *kit, cut_t cut) {
  return cut_exists(kit, cut) && (kit->ncomp == 12 || cut.prec != QK_HALF);
}

const char *cut_text(cut_t cut) {
  static const char *const precs[] = {"double", "single", "half"};
  static const char *const subsets[] = {"even", "odd", "full"};
  static char text[64];
  snprintf(text, sizeof text, "%s, %s, nrhs %d%s", precs[cut.prec], subsets[cut.subset], cut.nrhs,
           cut.single_rhs ? ", single RHS" : "");
  return text;
}

void block_kit_open(kit_t *kit) {
  const int dims[4] = {4, 6, 2, 8}, split[4] = {0};
  double complex *links = kit_random_links(dims, 0, 1);
  kit_open(kit, dims, split, links);
  free(links);
}

static void each(const int *ncomp, int n, void (*test)(const kit_t *kit)) {
  kit_t kit;
  block_kit_open(&kit);
  for (int i = 0; i < n; i++) {
    kit.ncomp = ncomp[i];
    test(&kit);
  }
  kit_close(&kit);
}

void each_ncomp(void (*test)(const kit_t *kit)) {
  static const int ncomp[] = {12, QK_COLOUR_COMPONENTS, 20}; /* spinors, colours, coarse levels */
  each(ncomp, 3, test);
}

void each_ncomp_of_spinors(void (*test)(const kit_t *kit)) {
  static const int ncomp[] = {12, 4, 20}; /* the last two of coarse levels */
  each(ncomp, 3, test);
}

block_t block_make(const kit_t *kit, cut_t cut, uint64_t seed) {
  block_t b = {.field = kit_field(kit, cut.prec, cut.nrhs, cut.single_rhs, QK_FULL)};
  b.v = cut.subset == QK_FULL ? b.field.v : kit_half(kit, &b.field.v, cut.subset == QK_ODD);
  b.x = calloc((size_t)cut.nrhs, sizeof *b.x);
  cr_assert_not_null(b.x);
  double complex *x = kit_vector(kit);
  for (int rhs = 0; rhs < cut.nrhs; rhs++) {
    kit_random(kit, seed * 1000 + (uint64_t)rhs, x);
    block_set(kit, &b, rhs, x);
  }
  free(x);
  return b;
}

void block_free(const kit_t *kit, block_t *b) {
  for (int rhs = 0; rhs < b->v.nrhs; rhs++) free(b->x[rhs]);
  free(b->x);
  kit_field_free(kit, &b->field);
}

void block_set(const kit_t *kit, block_t *b, int rhs, const double complex *x) {
  kit_import(kit, &b->field.v, rhs, x);
  free(b->x[rhs]);
  b->x[rhs] = block_get(kit, b, rhs);
}

double complex *block_get(const kit_t *kit, const block_t *b, int rhs) {
  double complex *x = kit_vector(kit);
  kit_export(kit, &b->field.v, rhs, x);
  return x;
}

bool component_in(const kit_t *kit, qk_subset_t subset, size_t i) {
  if (subset == QK_FULL) return true;
  size_t n = i / (size_t)kit->ncomp, sum = 0;
  for (int mu = 0; mu < 4; mu++) {
    sum += n % (size_t)kit->lat.l[mu];
    n /= (size_t)kit->lat.l[mu];
  }
  return sum % 2 == (subset == QK_ODD);
}

double block_off(const kit_t *kit, const double complex *a, const double complex *b) {
  double off = 0, top = 0;
  for (size_t i = 0; i < kit_components(kit); i++) {
    if (!(cabs(a[i] - b[i]) <= off)) off = cabs(a[i] - b[i]);
    top = fmax(top, cabs(b[i]));
  }
  return top > 0 ? off / top : off;
}

double blas_tolerance(qk_prec_t prec) {
  static const double unit[] = {0x1p-53, 0x1p-24, 0x1p-11};
  return 8 * unit[prec];
}

static void *device_copy(const kit_t *kit, const void *from, size_t bytes) {
  void *p = kit_alloc(kit, bytes);
  kit_must(kit, kit->ops->copy(kit->ctx, p, from, bytes, QK_COPY_TO_DEVICE, 0), "copy");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  return p;
}

double *device_scalars(const kit_t *kit, const double complex *c, int n) {
  return device_copy(kit, c, (size_t)n * sizeof *c);
}

uint8_t *device_mask(const kit_t *kit, const uint8_t *mask, int n) {
  return device_copy(kit, mask, (size_t)n);
}

void read_scalars(const kit_t *kit, const double *device, double complex *c, int n) {
  kit_must(kit, kit->ops->copy(kit->ctx, c, device, (size_t)n * sizeof *c, QK_COPY_TO_HOST, 0),
           "copy");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
}

blas_counts_t blas_counts(qk_blas_op_t op) {
  static const blas_counts_t counts[] = {
#define X(name, fields, scalars, reductions, formula)                                              \
  [QK_BLAS_##name] = {#name, fields, scalars, reductions},
      QK_BLAS_TABLE(X)
#undef X
  };
  return counts[op];
}

static double complex quotient(double complex a, double complex b) {
  return b == 0 ? 0 : a / b;
}

/* One component of all fields: steps of solvers. */
static void plain_step(qk_blas_op_t op, double complex *f, const double complex *c,
                       double complex *red) {
  double complex alpha, beta;
  switch (op) {
  case QK_BLAS_BICGSTAB_S:
    f[0] -= quotient(c[0], c[1]) * f[1];
    red[0] += conj(f[0]) * f[0];
    break;
  case QK_BLAS_BICGSTAB_XR:
    f[0] += quotient(c[0], c[1]) * f[2] + quotient(c[2], c[3]) * f[1];
    f[1] -= quotient(c[2], c[3]) * f[3];
    red[0] += conj(f[4]) * f[1];
    red[1] += conj(f[1]) * f[1];
    break;
  case QK_BLAS_BICGSTAB_P: /* alpha = rho / (r0,v), omega = (t,s) / (t,t) */
    alpha = quotient(c[1], c[2]);
    beta = quotient(c[0], c[1]) * alpha * quotient(c[4], c[3]);
    f[0] = f[1] + beta * (f[0] - quotient(c[3], c[4]) * f[2]);
    break;
  case QK_BLAS_CG_XR:
  case QK_BLAS_GCR_XR:
    alpha = quotient(c[0], c[1]);
    f[0] += alpha * f[2];
    f[1] -= alpha * f[3];
    red[0] += conj(f[1]) * f[1];
    break;
  case QK_BLAS_MR_XR:
    alpha = c[2] * quotient(c[0], c[1]);
    f[0] += alpha * f[1];
    f[1] -= alpha * f[2];
    break;
  case QK_BLAS_CG_R:
    f[0] = f[1] - quotient(c[0], c[1]) * f[2];
    red[0] += conj(f[0]) * f[0];
    break;
  case QK_BLAS_CG_XP:
    f[0] += quotient(c[0], c[1]) * f[1];
    f[1] = f[2] + quotient(c[2], c[0]) * f[1];
    red[0] += conj(f[1]) * f[1];
    break;
  case QK_BLAS_CG_P:
    f[0] = f[1] + quotient(c[0], c[1]) * f[0];
    break;
  default:
    cr_assert_fail("no such operation");
  }
}

/* One component of all fields. */
static void plain_component(qk_blas_op_t op, double complex *f, const double complex *c,
                            double complex *red) {
  switch (op) {
  case QK_BLAS_ZERO:
    f[0] = 0;
    break;
  case QK_BLAS_COPY:
    f[0] = f[1];
    break;
  case QK_BLAS_ADD:
    f[0] += f[1];
    break;
  case QK_BLAS_SUB:
    f[0] = f[1] - f[2];
    break;
  case QK_BLAS_SCALE:
    f[0] *= c[0];
    break;
  case QK_BLAS_AXPY:
    f[0] += c[0] * f[1];
    break;
  case QK_BLAS_XPAY:
    f[0] = f[1] + c[0] * f[0];
    break;
  case QK_BLAS_NORM2:
    red[0] += conj(f[0]) * f[0];
    break;
  case QK_BLAS_CDOT:
    red[0] += conj(f[0]) * f[1];
    break;
  case QK_BLAS_CDOT_NORM2:
    red[0] += conj(f[0]) * f[1];
    red[1] += conj(f[0]) * f[0];
    break;
  default:
    plain_step(op, f, c, red);
  }
}

void plain_blas(const kit_t *kit, qk_blas_op_t op, qk_subset_t subset, double complex **f,
                const double complex *c, double complex *red) {
  const int nf = blas_counts(op).fields;
  red[0] = red[1] = 0;
  for (size_t i = 0; i < kit_components(kit); i++) {
    double complex at[QK_BLAS_MAX_FIELDS];
    if (!component_in(kit, subset, i)) continue;
    for (int j = 0; j < nf; j++) at[j] = f[j][i];
    plain_component(op, at, c, red);
    for (int j = 0; j < nf; j++) f[j][i] = at[j];
  }
}
