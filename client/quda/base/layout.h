/*
 * layout.h: the order of sites; pure. The caller's fields are bricks of the lattice in QUDA's
 * order: even sites, then odd ones, x fastest; of work on one parity those sites alone. Parts are
 * the same sites in the order of quark.h, x fastest. Rows are those of x, (t nz + z) ny + y of the
 * brick; of one parity they have half as many sites.
 */
#ifndef QUARK_QUDA_LAYOUT_H
#define QUARK_QUDA_LAYOUT_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/quark.h"

typedef enum qk_quda_sites { QK_QUDA_EVEN = 0, QK_QUDA_ODD = 1, QK_QUDA_ALL = 2 } qk_quda_sites_t;

/* A brick of the lattice. Extents and so origins are even: local parity is global parity. */
typedef struct qk_quda_shape {
  int local[4]; /* extents */
  int grid[4], coord[4];
} qk_quda_shape_t;

size_t qk_quda_local_sites(const qk_quda_shape_t *shape, qk_quda_sites_t sites);
size_t qk_quda_whole_sites(const qk_quda_shape_t *shape, qk_quda_sites_t sites);
size_t qk_quda_rows(const qk_quda_shape_t *shape);
/* The number of the part in a request with this grid. */
uint32_t qk_quda_part(const qk_quda_shape_t *shape);
/* Global coordinates of the first site of a row; returns its global index. */
uint64_t qk_quda_row_begin(const qk_quda_shape_t *shape, size_t row, int at[4]);
/* Index in the brick of site x of a row. */
size_t qk_quda_brick_index(const qk_quda_shape_t *shape, size_t row, int x);

/* How a brick and a part are copied into each other. */
typedef struct qk_quda_move {
  qk_quda_shape_t shape;
  qk_quda_sites_t sites;
  bool in_order; /* the brick has the order of a part */
  size_t reals;  /* a site: at most 72 */
  quark_dtype_t brick_dtype, part_dtype;
  /* Sites are multiplied by factor times the product over directions of twist[mu][x_mu], x global,
   * or its conjugate. twist NULL: factor alone. */
  double complex *const *twist;
  bool conjugate;
  double factor;
} qk_quda_move_t;

size_t qk_quda_row_bytes(const qk_quda_move_t *move); /* in the part */
/* Rows first .. end - 1; part begins with row first. */
void qk_quda_rows_to_part(const qk_quda_move_t *move, size_t first, size_t end, const void *brick,
                          void *part);
/* part NULL: all numbers are zero. */
void qk_quda_rows_to_brick(const qk_quda_move_t *move, size_t first, size_t end, const void *part,
                           void *brick);
/* Whether all numbers of a row of the brick are zero. */
bool qk_quda_row_is_zero(const qk_quda_move_t *move, size_t row, const void *brick);
/* A part and the whole lattice, in the order of quark.h. */
void qk_quda_part_to_whole(const qk_quda_move_t *move, const void *part, void *whole);
void qk_quda_whole_to_part(const qk_quda_move_t *move, const void *whole, void *part);

#endif
