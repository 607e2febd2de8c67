/*
 * project_ops.h: arguments of the table's entry that projects solutions onto vectors of time
 * slices (distillation). Included by ops.h.
 */
#ifndef QK_CUDA_PROJECT_OPS_H
#define QK_CUDA_PROJECT_OPS_H

#include <stddef.h>

#include "cuda/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* QK_PROJECT_RHS: right-hand sides of a call. QK_PROJECT_BLOCKS: blocks of vectors,
 * QK_PROJECT_COLUMNS of them in each. */
enum { QK_PROJECT_RHS = 8, QK_PROJECT_BLOCKS = 16, QK_PROJECT_COLUMNS = 8, QK_PROJECT_PIECES = 32 };

/* A right-hand side: column rhs of a full field of spinors, double or single, any tiles. */
typedef struct qk_project_rhs {
  qk_spinor_t field;
  int32_t rhs;
} qk_project_rhs_t;

/* project:  out[i][t][s][m] = sum over the sites x of slice t0+t and colours c of
 *           conj(v_m(t0+t, x, c)) x_i(t0+t, x, s c),  m = 8 block + column
 *
 * vectors[b]: what block b has on the nt slices from t0 on, as float
 *   [t][z][y][x][column 0..7][colour][re, im]    sites in lexicographic order of the local lattice
 * low: what v has beside that, each like vectors; low[0] NULL: nothing.
 * out: complex double [nrhs][nt][4][8 nblock]; work: qk_project_bytes.
 * All of it is device memory. Products and sums are made in double, in an order that the local
 * lattice alone decides: a number has the same bits whatever else is in the call.
 * Work: 96 flop a site, vector and RHS. It reads vectors once, 24 bytes a site and vector, and the
 * RHS once for each 64 vectors, 192 bytes a site in double: 8 RHS and 64 vectors are 16 flop a
 * byte, for which the memory of a GPU is what counts. */
typedef struct qk_project_args {
  qk_lattice_t lat;
  int32_t nrhs, nblock, t0, nt;
  qk_project_rhs_t x[QK_PROJECT_RHS];
  const float *vectors[QK_PROJECT_BLOCKS], *low[QK_PROJECT_BLOCKS];
  double *work, *out;
} qk_project_args_t;

/* Pieces that a time slice is summed in, in groups of four sites of one parity. */
static inline int qk_project_pieces(const qk_lattice_t *lat) {
  const int groups = lat->vcb / lat->l[3] / 2, n = groups / 64;
  return n < 1 ? 1 : n > QK_PROJECT_PIECES ? QK_PROJECT_PIECES : n;
}

static inline size_t qk_project_bytes(const qk_lattice_t *lat, int nt, int nblock) {
  return (size_t)nt * (size_t)qk_project_pieces(lat) * (size_t)nblock * QK_PROJECT_COLUMNS *
         QK_PROJECT_RHS * 4 * 2 * sizeof(double);
}

#ifdef __cplusplus
}
#endif
#endif
