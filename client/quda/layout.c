/* The order of sites: QUDA's bricks and whole lattices. */
#include <string.h>

#include "layout.h"

size_t qk_quda_local_sites(const qk_quda_shape_t *shape, qk_quda_sites_t sites) {
  size_t n = 1;
  for (int mu = 0; mu < 4; mu++) n *= (size_t)shape->local[mu];
  return sites == QK_QUDA_ALL ? n : n / 2;
}

size_t qk_quda_whole_sites(const qk_quda_shape_t *shape, qk_quda_sites_t sites) {
  size_t n = qk_quda_local_sites(shape, sites);
  for (int mu = 0; mu < 4; mu++) n *= (size_t)shape->grid[mu];
  return n;
}

typedef struct move {
  const qk_quda_shape_t *shape;
  const int *coord;
  qk_quda_sites_t sites;
  size_t bytes; /* a site */
  char *brick, *whole;
  bool to_whole;
} move_t;

static void move_site(const move_t *m, size_t whole, size_t brick) {
  char *w = m->whole + whole * m->bytes, *b = m->brick + brick * m->bytes;
  if (m->to_whole)
    memcpy(w, b, m->bytes);
  else
    memcpy(b, w, m->bytes);
}

/* A row of x: origins and extents of bricks are even, so local parity is global parity. */
static void move_row(const move_t *m, int y, int z, int t) {
  const int *l = m->shape->local, *g = m->shape->grid, *c = m->coord;
  const size_t local = (((size_t)t * (size_t)l[2] + (size_t)z) * (size_t)l[1] + (size_t)y) *
                       (size_t)l[0],
               half = qk_quda_local_sites(m->shape, QK_QUDA_EVEN);
  const int at[4] = {c[0] * l[0], y + c[1] * l[1], z + c[2] * l[2], t + c[3] * l[3]};
  size_t whole = 0;
  for (int mu = 3; mu >= 0; mu--) whole = whole * (size_t)l[mu] * (size_t)g[mu] + (size_t)at[mu];
  for (int x = 0; x < l[0]; x++) {
    const int parity = (x + y + z + t) & 1;
    const size_t brick = (local + (size_t)x) / 2;
    if (m->sites == QK_QUDA_ALL)
      move_site(m, whole + (size_t)x, brick + (parity ? half : 0));
    else if (parity == (int)m->sites)
      move_site(m, (whole + (size_t)x) / 2, brick);
  }
}

static void move_all(const move_t *m) {
  const int *l = m->shape->local;
  for (int t = 0; t < l[3]; t++)
    for (int z = 0; z < l[2]; z++)
      for (int y = 0; y < l[1]; y++) move_row(m, y, z, t);
}

void qk_quda_to_whole(const qk_quda_shape_t *shape, const int coord[4], qk_quda_sites_t sites,
                      size_t site_bytes, const void *brick, void *whole) {
  move_all(&(move_t){shape, coord, sites, site_bytes, (char *)brick, whole, true});
}

void qk_quda_to_brick(const qk_quda_shape_t *shape, const int coord[4], qk_quda_sites_t sites,
                      size_t site_bytes, const void *whole, void *brick) {
  move_all(&(move_t){shape, coord, sites, site_bytes, brick, (char *)whole, false});
}

static void times(void *site, quark_dtype_t dtype, double complex z) {
  double complex *d = site;
  float complex *f = site;
  for (int k = 0; k < 12; k++)
    if (dtype == QUARK_F64)
      d[k] = cimag(z) == 0 ? creal(z) * d[k] : z * d[k];
    else
      f[k] = (float complex)(z * f[k]);
}

void qk_quda_twist(const qk_quda_shape_t *shape, qk_quda_sites_t sites, quark_dtype_t dtype,
                   double complex *const twist[4], bool conjugate, double factor, void *whole) {
  const size_t bytes = dtype == QUARK_F64 ? 192 : 96;
  const bool turns = twist && twist[0];
  int d[4];
  if (!turns && factor == 1) return;
  for (int mu = 0; mu < 4; mu++) d[mu] = shape->local[mu] * shape->grid[mu];
  char *site = whole;
  for (int t = 0; t < d[3]; t++)
    for (int z = 0; z < d[2]; z++)
      for (int y = 0; y < d[1]; y++)
        for (int x = 0; x < d[0]; x++) {
          if (sites != QK_QUDA_ALL && ((x + y + z + t) & 1) != (int)sites) continue;
          double complex w = factor;
          if (turns) {
            const double complex v = twist[0][x] * twist[1][y] * twist[2][z] * twist[3][t];
            w *= conjugate ? conj(v) : v;
          }
          times(site, dtype, w);
          site += bytes;
        }
}
