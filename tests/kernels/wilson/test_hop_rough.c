/* The operator of blocks in half with sums that may be rounded to 16 bits (qk_hop_args_t.rough),
 * against the same call in double on the numbers that are stored. Backend: QK_BACKEND; the CPU has
 * sums in single, which must pass as well. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/hop_kit.h"

/* Of a component, in units of the largest numbers of all that is added at its site. */
static const double worst = 4e-3;
/* |error| / |result|, random numbers of one size; twice what was seen. */
static const double typical = 1e-3;

static const double antiperiodic[4][2] = {{1, 0}, {1, 0}, {1, 0}, {-1, 0}};
static const double cut[4][2] = {{1, 0}, {-0.5, 0}, {1, 0}, {0, 0}};

/* A call, and what it is made on. */
typedef struct call {
  const kit_t *kit;
  qk_subset_t parity; /* of out */
  int nrhs;
  double c_hop, c_x, c_y;
  const double (*phase)[2];
  const double *weight;
  bool on_sum;
  qk_local_t diag[2]; /* in half and in double */
  const uint8_t *minus;
} call_t;

enum { IN, X, Y, OUT, FIELDS };

typedef struct fields {
  kit_field_t half[FIELDS], exact[FIELDS]; /* full */
} fields_t;

static fields_t make_fields(const kit_t *kit, int nrhs) {
  fields_t f;
  for (int k = 0; k < FIELDS; k++) {
    f.half[k] = kit_field(kit, QK_HALF, nrhs, false, QK_FULL);
    f.exact[k] = kit_field(kit, QK_DOUBLE, 1, true, QK_FULL);
  }
  return f;
}

static void free_fields(const kit_t *kit, fields_t *f) {
  for (int k = 0; k < FIELDS; k++) {
    kit_field_free(kit, &f->half[k]);
    kit_field_free(kit, &f->exact[k]);
  }
}

/* Random numbers; of the sites those are multiplied by powers of two up to 2^most either way, or
 * left 0 every third, by what is asked for. */
static void fill(const kit_t *kit, const fields_t *f, int nrhs, int most, bool zeros) {
  double complex *v = kit_vector(kit);
  for (int k = 0; k < OUT; k++)
    for (int rhs = 0; rhs < nrhs; rhs++) {
      kit_random(kit, 100 * (uint64_t)k + (uint64_t)rhs + 1, v);
      for (int64_t n = 0; n < kit->volume; n++) {
        const int power = most > 0 ? (int)((n * 7 + rhs * 5) % (2 * most + 1)) - most : 0;
        for (int c = 0; c < 12; c++)
          v[12 * n + c] = zeros && n % 3 == 0 ? 0 : ldexp(1, power) * v[12 * n + c];
      }
      kit_import(kit, &f->half[k].v, rhs, v);
    }
  free(v);
}

static void run(const call_t *c, const kit_field_t f[FIELDS], bool rough) {
  const kit_t *kit = c->kit;
  const qk_prec_t prec = f[OUT].v.prec;
  const int own = c->parity == QK_ODD;
  qk_hop_args_t a = kit_dirac(kit, false, c->phase);
  a.out_parity = c->parity;
  a.links = kit_links(kit, prec, 18);
  a.diag = c->diag[prec == QK_DOUBLE];
  a.diag_on_sum = c->on_sum;
  a.c_hop = c->c_hop;
  a.c_z = 0;
  a.c_x = c->c_x;
  a.c_y = c->c_y;
  a.in = kit_half(kit, &f[IN].v, 1 - own);
  a.x = kit_half(kit, &f[X].v, own);
  a.y = kit_half(kit, &f[Y].v, own);
  a.out = kit_half(kit, &f[OUT].v, own);
  a.rough = rough;
  a.minus = prec == QK_HALF ? c->minus : NULL;
  for (int mu = 0; c->weight && mu < 4; mu++) a.weight[mu] = c->weight[mu];
  kit_must(kit, kit->ops->hop(kit->ctx, &a), "hop");
  kit_free(kit, a.links.data);
}

/* The largest |number| of a site. */
static double largest(const double complex *psi) {
  double top = 0;
  for (int c = 0; c < 12; c++) top = fmax(top, cabs(psi[c]));
  return top;
}

/* The sum of the largest ones of what is added at site n. */
static double added(const call_t *c, double complex *const v[FIELDS], int64_t n) {
  const kit_t *kit = c->kit;
  double sum = 0;
  for (int mu = 0, stride = 1; mu < 4; stride *= kit->lat.l[mu], mu++) {
    const int l = kit->lat.l[mu], x = (int)(n / stride % l);
    for (int to = -1; to < 2; to += 2) {
      const int64_t other = n + ((x + to + l) % l - x) * (int64_t)stride;
      const double weight = c->weight ? c->weight[mu] : 1;
      sum += fabs(c->c_hop) * weight * largest(v[IN] + 12 * other);
    }
  }
  if (c->c_x != 0) sum += fabs(c->c_x) * largest(v[X] + 12 * n);
  if (c->c_y != 0) sum += fabs(c->c_y) * largest(v[Y] + 12 * n);
  return sum;
}

/* One column against double. */
static void expect_column(const call_t *c, const fields_t *f, int rhs, double bound) {
  const kit_t *kit = c->kit;
  double complex *v[FIELDS], *got = kit_vector(kit);
  double off = 0, error = 0, norm = 0;
  for (int k = 0; k < OUT; k++) {
    v[k] = kit_vector(kit);
    kit_export(kit, &f->half[k].v, rhs, v[k]);
    kit_import(kit, &f->exact[k].v, 0, v[k]);
  }
  v[OUT] = kit_vector(kit);
  run(c, f->exact, false);
  kit_export(kit, &f->exact[OUT].v, 0, v[OUT]);
  kit_export(kit, &f->half[OUT].v, rhs, got);
  for (int64_t n = 0; n < kit->volume; n++) {
    if (kit_index(kit, n) / kit->lat.vcb != c->parity) continue;
    const double unit = added(c, v, n);
    for (int i = 0; i < 12; i++) {
      const double e = cabs(got[12 * n + i] - v[OUT][12 * n + i]);
      cr_assert(isfinite(e), "site %d, rhs %d", (int)n, rhs);
      if (unit == 0) cr_assert(e == 0, "site %d, rhs %d: %g of nothing", (int)n, rhs, e);
      if (unit > 0) off = fmax(off, e / unit);
      error += e * e;
      norm += pow(cabs(v[OUT][12 * n + i]), 2);
    }
  }
  cr_expect_leq(off, worst, "%d columns, number %d: off by %g at a site", c->nrhs, rhs, off);
  cr_expect_leq(sqrt(error / norm), bound, "%d columns, number %d: off by %g", c->nrhs, rhs,
                sqrt(error / norm));
  for (int k = 0; k < FIELDS; k++) free(v[k]);
  free(got);
}

static void expect_call(const call_t *c, int most, bool zeros, double bound) {
  fields_t f = make_fields(c->kit, c->nrhs);
  fill(c->kit, &f, c->nrhs, most, zeros);
  run(c, f.half, true);
  for (int rhs = 0; rhs<c->nrhs; rhs += c->nrhs> 1 ? c->nrhs - 1 : 1)
    expect_column(c, &f, rhs, bound);
  free_fields(c->kit, &f);
}

/* On random links, with the inverse clover term in both precisions. */
static call_t open_call(kit_t *kit, const int dims[4], int nrhs) {
  kit_open_random(kit, dims, 0.5, (uint64_t)dims[0] + (uint64_t)dims[3]);
  call_t c = {.kit = kit, .phase = antiperiodic, .nrhs = nrhs, .c_hop = 1, .on_sum = true};
  c.diag[0] = kit_diag(kit, 1.3, 4.2, true, QK_HALF);
  c.diag[1] = kit_diag(kit, 1.3, 4.2, true, QK_DOUBLE);
  return c;
}

static void close_call(kit_t *kit, call_t *c) {
  for (int k = 0; k < 2; k++) kit_free(kit, c->diag[k].data);
  kit_close(kit);
}

/* ---- properties ---- */

Test(hop_rough, agrees_with_double_for_ragged_blocks) {
  static const int nrhs[] = {1, 7, 8, 9, 12, 16, 17, 32};
  kit_t kit;
  call_t c = open_call(&kit, (int[]){4, 6, 4, 8}, 8);
  for (int i = 0; i < 8; i++)
    for (int parity = 0; parity < 2; parity++) {
      c.nrhs = nrhs[i];
      c.parity = (qk_subset_t)parity;
      c.c_hop = parity ? 1 : -0.25;
      c.c_x = parity ? 0 : 0.7;
      c.c_y = i % 2 && !parity ? 1 : 0;
      expect_call(&c, 0, false, typical);
    }
  close_call(&kit, &c);
}

Test(hop_rough, takes_other_boundaries_and_numbers_for_the_local_term) {
  kit_t kit;
  kit_open_random(&kit, (int[]){8, 4, 4, 4}, 0.5, 6);
  for (int k = 0; k < 4; k++) {
    call_t c = {.kit = &kit, .phase = cut, .nrhs = 8, .c_hop = k % 2 ? -0.5 : 2, .on_sum = k > 1};
    c.parity = k % 2 ? QK_ODD : QK_EVEN;
    c.c_x = k == 3 ? -1.5 : 0;
    c.diag[0] = (qk_local_t){.prec = QK_HALF, .scalar = 0.23};
    c.diag[1] = (qk_local_t){.prec = QK_DOUBLE, .scalar = 0.23};
    expect_call(&c, 0, false, typical);
  }
  kit_close(&kit);
}

Test(hop_rough, takes_weights_and_twists) {
  static const double weight[4] = {1, 0.5, 2, 0.3};
  kit_t kit;
  call_t c = open_call(&kit, (int[]){4, 4, 4, 8}, 12);
  for (int k = 0; k < 2; k++) {
    c.weight = weight;
    for (int b = 0; b < 2; b++) {
      c.diag[b].b = c.diag[b].data;
      c.diag[b].q[0][0] = c.diag[b].q[1][0] = 0.1;
      c.diag[b].q[0][1] = 0.3;
      c.diag[b].q[1][1] = -0.3;
    }
    c.c_x = k ? 0.4 : 0;
    expect_call(&c, 0, false, 2 * typical); /* two matrices after each other */
  }
  close_call(&kit, &c);
}

Test(hop_rough, brings_neighbours_to_one_scale) {
  kit_t kit;
  call_t c = open_call(&kit, (int[]){4, 4, 4, 6}, 16);
  for (int k = 0; k < 3; k++) {
    c.c_x = k == 1 ? 0x1p-20 : 0;
    c.c_y = k == 2 ? 0x1p10 : 0;
    expect_call(&c, 15, false, 4 * typical);
  }
  close_call(&kit, &c);
}

Test(hop_rough, takes_zeros_on_the_smallest_lattice) {
  kit_t kit;
  call_t c = open_call(&kit, (int[]){2, 2, 2, 2}, 9);
  expect_call(&c, 0, true, typical);
  fields_t f = make_fields(&kit, c.nrhs); /* new memory of the kit is 0 */
  run(&c, f.half, true);
  double complex *out = kit_vector(&kit);
  kit_export(&kit, &f.half[OUT].v, 8, out);
  for (size_t i = 0; i < kit_components(&kit); i++) cr_assert(out[i] == 0);
  free(out);
  free_fields(&kit, &f);
  close_call(&kit, &c);
}

/* What is not finite stays in its column, and reaches its neighbours there. */
Test(hop_rough, keeps_lanes_apart) {
  kit_t kit;
  call_t c = open_call(&kit, (int[]){4, 4, 4, 4}, KIT_LANES);
  c.c_x = 0.5;
  fields_t f = make_fields(&kit, c.nrhs);
  for (int k = 0; k < OUT; k++) kit_fill_lanes(&kit, &f.half[k].v);
  for (int parity = 0; parity < 2; parity++) {
    c.parity = (qk_subset_t)parity;
    run(&c, f.half, true);
  }
  kit_expect_lanes_apart(&kit, &f.half[OUT].v);
  double complex *v = kit_vector(&kit);
  kit_random(&kit, 1, v);
  v[0] = NAN; /* site 0 alone */
  kit_import(&kit, &f.half[IN].v, 1, v);
  c.parity = QK_ODD;
  c.c_x = 0;
  run(&c, f.half, true);
  kit_export(&kit, &f.half[OUT].v, 1, v);
  cr_expect_not(isfinite(creal(v[12])), "the site at x = 1");
  cr_expect(isfinite(creal(v[12 * (1 + 4 * 2)])), "no neighbour");
  free(v);
  free_fields(&kit, &f);
  close_call(&kit, &c);
}
