#include "tests/kernels/links/links_kit.h"

#include <stdlib.h>
#include <string.h>

qk_linkfield_t links_field(const kit_t *kit, int directions) {
  qk_linkfield_t u = {.halo = 1};
  memcpy(u.e, kit->lat.l, sizeof u.e);
  u.data = kit_alloc(kit, (size_t)kit->volume * (size_t)directions * sizeof(matrix_t));
  return u;
}

void links_copy_in(const kit_t *kit, const qk_linkfield_t *to, int directions, const void *from) {
  const size_t bytes = (size_t)kit->volume * (size_t)directions * sizeof(matrix_t);
  double *sites = kit_alloc(kit, bytes);
  const qk_link_copy_args_t a = {
      .lat = kit->lat, .u = *to, .directions = directions, .sites = sites, .n = kit->volume};
  kit_must(kit, kit->ops->copy(kit->ctx, sites, from, bytes, QK_COPY_TO_DEVICE, 0), "copy");
  kit_must(kit, kit->ops->link_import(kit->ctx, &a), "link_import");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  kit_free(kit, sites);
}

matrix_t *links_copy_out(const kit_t *kit, const qk_linkfield_t *from, int directions) {
  const size_t bytes = (size_t)kit->volume * (size_t)directions * sizeof(matrix_t);
  double *sites = kit_alloc(kit, bytes);
  matrix_t *to = malloc(bytes);
  const qk_link_copy_args_t a = {
      .lat = kit->lat, .u = *from, .directions = directions, .sites = sites, .n = kit->volume};
  kit_must(kit, kit->ops->link_export(kit->ctx, &a), "link_export");
  kit_must(kit, kit->ops->copy(kit->ctx, to, sites, bytes, QK_COPY_TO_HOST, 0), "copy");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  kit_free(kit, sites);
  return to;
}

int64_t links_step(const kit_t *kit, int64_t n, int mu, int by) {
  int64_t stride = 1;
  for (int nu = 0; nu < mu; nu++) stride *= kit->lat.l[nu];
  const int l = kit->lat.l[mu];
  const int64_t x = n / stride % l;
  return n + ((x + by + l) % l - x) * stride;
}

int links_parity(const kit_t *kit, int64_t n) {
  int sum = 0;
  for (int mu = 0; mu < 4; mu++) {
    sum += (int)(n % kit->lat.l[mu]);
    n /= kit->lat.l[mu];
  }
  return sum & 1;
}

double links_distance(const matrix_t *a, const matrix_t *b, int64_t n) {
  double most = 0;
  for (int64_t i = 0; i < 9 * n; i++) {
    const double d = cabs(((const double complex *)a)[i] - ((const double complex *)b)[i]);
    if (!(d <= most)) most = d;
  }
  return most;
}
