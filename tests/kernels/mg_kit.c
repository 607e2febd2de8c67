#include "tests/kernels/mg_kit.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

void mg_kit_open(kit_t *kit, const int dims[4], const int split[4]) {
  double complex *links = kit_random_links(dims, 0, 1);
  kit_open(kit, dims, split, links);
  free(links);
}

kit_t mg_level(const kit_t *kit, const int dims[4], const int split[4], int ncomp) {
  kit_t level = *kit;
  kit_set_lattice(&level, dims, split);
  level.ncomp = ncomp;
  return level;
}

static double step(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return ((double)((*state >> 33) % 129) - 64) / 64;
}

double complex *mg_numbers(size_t n, uint64_t seed) {
  double complex *v = malloc(n * sizeof *v);
  cr_assert_not_null(v);
  for (size_t i = 0; i < n; i++) {
    const double re = step(&seed);
    v[i] = CMPLX(re, step(&seed));
  }
  return v;
}

mg_block_t mg_block(const kit_t *kit, qk_prec_t prec, int nrhs, bool single_rhs, uint64_t seed) {
  mg_block_t b = {.f = kit_field(kit, prec, nrhs, single_rhs, QK_FULL)};
  b.x = calloc((size_t)nrhs, sizeof *b.x);
  cr_assert_not_null(b.x);
  for (int rhs = 0; rhs < nrhs; rhs++) {
    b.x[rhs] = mg_numbers(kit_components(kit), seed * 100 + (uint64_t)rhs);
    kit_import(kit, &b.f.v, rhs, b.x[rhs]);
    kit_export(kit, &b.f.v, rhs, b.x[rhs]);
  }
  return b;
}

void mg_block_free(const kit_t *kit, mg_block_t *b) {
  for (int rhs = 0; rhs < b->f.v.nrhs; rhs++) free(b->x[rhs]);
  free(b->x);
  kit_field_free(kit, &b->f);
}

double mg_off(const double complex *a, const double complex *b, size_t n) {
  double off = 0, top = 1e-300;
  for (size_t i = 0; i < n; i++) {
    const double d = cabs(a[i] - b[i]), m = cabs(b[i]);
    if (!(d <= off)) off = d;
    if (m > top) top = m;
  }
  return off / top;
}

bool mg_same_bits(const double complex *a, const double complex *b, size_t n) {
  return memcmp(a, b, n * sizeof *a) == 0;
}

qk_coarse_links_t mg_matrices(const kit_t *kit, qk_prec_t prec, int n, int ndir,
                              const double complex *plain) {
  qk_coarse_links_t m = {.prec = prec, .n = n, .ndir = ndir};
  const size_t bytes = (size_t)(kit->volume * ndir * n * n) * sizeof *plain;
  m.data = kit_alloc(kit, kit->ops->coarse_bytes(&kit->lat, &m));
  qk_coarse_copy_args_t copy = {.lat = kit->lat, .links = m, .n = kit->volume};
  copy.plain = kit_alloc(kit, bytes);
  kit_must(kit, kit->ops->copy(kit->ctx, copy.plain, plain, bytes, QK_COPY_TO_DEVICE, 0), "copy");
  kit_must(kit, kit->ops->coarse_set(kit->ctx, &copy), "coarse_set");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  kit_free(kit, copy.plain);
  return m;
}

double complex *mg_plain(const kit_t *kit, const qk_coarse_links_t *m) {
  const size_t n = (size_t)(kit->volume * m->ndir * m->n * m->n),
               bytes = n * sizeof(double complex);
  qk_coarse_copy_args_t copy = {.lat = kit->lat, .links = *m, .n = kit->volume};
  double complex *plain = malloc(bytes);
  cr_assert_not_null(plain);
  copy.plain = kit_alloc(kit, bytes);
  kit_must(kit, kit->ops->coarse_get(kit->ctx, &copy), "coarse_get");
  kit_must(kit, kit->ops->copy(kit->ctx, plain, copy.plain, bytes, QK_COPY_TO_HOST, 0), "copy");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  kit_free(kit, copy.plain);
  return plain;
}

void mg_coords(const kit_t *kit, int64_t i, int x[4]) {
  for (int mu = 0; mu < 4; mu++) {
    x[mu] = (int)(i % kit->lat.l[mu]);
    i /= kit->lat.l[mu];
  }
}

int64_t mg_site(const kit_t *kit, const int x[4]) {
  int64_t i = 0;
  for (int mu = 3; mu >= 0; mu--)
    i = i * kit->lat.l[mu] + (x[mu] + kit->lat.l[mu]) % kit->lat.l[mu];
  return i;
}

int mg_parity(const kit_t *kit, int64_t i) {
  int x[4];
  mg_coords(kit, i, x);
  return (x[0] + x[1] + x[2] + x[3]) % 2;
}

int64_t mg_index(const kit_t *kit, int64_t i) {
  return mg_parity(kit, i) * (int64_t)kit->lat.vcb + i / 2;
}
