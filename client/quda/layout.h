/*
 * layout.h: the order of sites; pure. The caller's fields are bricks of the lattice in QUDA's
 * order: even sites, then odd ones, x fastest; of work on one parity those sites alone. Whole
 * lattices, which rank 0 holds, are in the order of quark.h.
 */
#ifndef QUARK_QUDA_LAYOUT_H
#define QUARK_QUDA_LAYOUT_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/quark.h"

typedef enum qk_quda_sites { QK_QUDA_EVEN = 0, QK_QUDA_ODD = 1, QK_QUDA_ALL = 2 } qk_quda_sites_t;

typedef struct qk_quda_shape {
  int local[4]; /* of a brick: even */
  int grid[4];
} qk_quda_shape_t;

size_t qk_quda_local_sites(const qk_quda_shape_t *shape, qk_quda_sites_t sites);
size_t qk_quda_whole_sites(const qk_quda_shape_t *shape, qk_quda_sites_t sites);
/* Copies a brick into the whole lattice, or back. Whole fields of one parity have its sites in the
 * order of the whole lattice. */
void qk_quda_to_whole(const qk_quda_shape_t *shape, const int coord[4], qk_quda_sites_t sites,
                      size_t site_bytes, const void *brick, void *whole);
void qk_quda_to_brick(const qk_quda_shape_t *shape, const int coord[4], qk_quda_sites_t sites,
                      size_t site_bytes, const void *whole, void *brick);
/* Each site of a whole field of 12 complex numbers times factor times the product over directions
 * of twist[mu][x_mu], or its conjugate. twist NULL: factor alone. */
void qk_quda_twist(const qk_quda_shape_t *shape, qk_quda_sites_t sites, quark_dtype_t dtype,
                   double complex *const twist[4], bool conjugate, double factor, void *whole);

#endif
