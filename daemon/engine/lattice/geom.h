/*
 * geom.h: the lattice, cut over the ranks. Order of arrays [4]: x, y, z, t.
 */
#ifndef QK_ENGINE_GEOM_H
#define QK_ENGINE_GEOM_H

#include <stdbool.h>

#include "cuda/types.h"
#include "daemon/base/err.h"
#include "daemon/comm/comm.h"

typedef struct qk_geom {
  int global[4], grid[4], coord[4];
  qk_lattice_t lat; /* what the kernels see of this rank */
  int64_t volume;   /* global sites */
  int64_t local_volume;
  /* Complex components of a site: 12 of spinors, QK_COLOUR_COMPONENTS of colour vectors, 2 * nvec
   * on coarse levels. */
  int ncomp;
  int inner;       /* vectors that a right-hand side of a field has (field.h); 0 says 1 */
  int ls;          /* slices of a fifth dimension, columns of a block (field.h); 0 says 1 */
  bool whole;      /* every rank has all of it: qk_geom_whole */
  qk_comm_t *comm; /* borrowed */
} qk_geom_t;

static inline int qk_geom_slices(const qk_geom_t *geom) {
  return geom->ls > 1 ? geom->ls : 1;
}

/* Real numbers of a vector at a site on the wire, of a finest level. */
static inline int qk_geom_wire_reals(const qk_geom_t *geom) {
  return 2 * geom->ncomp;
}

/* Global extents must be even and >= 2, local ones even and >= 4 in split directions
 * (QK_BAD_GEOMETRY names the direction and the limit). The communicator's grid must be set.
 * For tests, QK_LOOP=zt makes a rank its own neighbour in z and t: what lies beyond its edges then
 * comes by the exchanges of halos. */
qk_status_t qk_geom_init(qk_geom_t *geom, qk_comm_t *comm, const int global[4], qk_err_t *err);

/* The part at `coord` of a lattice cut by `grid`, without a communicator: for plans. Errors as
 * above. Pure. */
qk_status_t qk_geom_part(const int global[4], const int grid[4], const int coord[4],
                         qk_geom_t *geom, qk_err_t *err);

/* The lattice of aggregates of size `block`; its spinors have 2 * nvec components.
 * QK_BAD_GEOMETRY: the block does not divide the local extent into an even number of aggregates
 * (the text names direction, extent and valid blocks), or nvec is odd or not in 2 ..
 * QK_MG_VECTORS_MAX. */
enum { QK_MG_VECTORS_MAX = 64 };
qk_status_t qk_geom_coarsen(const qk_geom_t *fine, const int block[4], int nvec, qk_geom_t *coarse,
                            qk_err_t *err);

/* All of the lattice that the ranks have parts of, on each of them: what works on it knows one
 * rank, `self`, and neither exchanges nor sums anything. Pure. */
void qk_geom_whole(const qk_geom_t *part, qk_comm_t *self, qk_geom_t *whole);
/* Where site n of the part of one rank, which `part` describes, stands among those of the whole; of
 * l[0]/2 sites from a multiple of that on, one follows the other there, too. Even sites, then odd
 * ones. Pure. */
int64_t qk_geom_site_of_whole(const qk_lattice_t *part, const qk_lattice_t *whole, int64_t n);
/* What rank `rank` of a grid has of it, beside what all parts have alike: coordinates. Pure. */
qk_lattice_t qk_geom_part_of(const qk_geom_t *geom, int rank);

/* "8x8x8x16" -> dims in x, y, z, t order; extents even, >= 2, and the volume at most 2^31 - 1.
 * QK_BAD_GEOMETRY otherwise. */
qk_status_t qk_geom_parse_dims(const char *text, int dims[4], qk_err_t *err);

#endif
