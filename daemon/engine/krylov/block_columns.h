/*
 * block_columns.h: groups of block CG, their matrices, and their columns made orthonormal. Private
 * to block_cg.c, whose state this is.
 */
#ifndef QK_ENGINE_BLOCK_COLUMNS_H
#define QK_ENGINE_BLOCK_COLUMNS_H

#include "daemon/engine/krylov/block_fields.h"
#include "daemon/engine/krylov/block_matrix.h"

/* Slots that share a space. */
typedef struct qk_block_group {
  int n;
  int slot[QK_MAX_RHS];
} qk_block_group_t;

/* Matrices of the block, [width][width], 0 between groups, in the memory of c; `work` has room for
 * QK_BLOCK_WORK more. overlap: B = P^+ Q. */
enum { QK_BLOCK_WORK = 5 };
typedef struct qk_block_cg {
  qk_block_t block;
  bool plain;                     /* A = Mhat; else A = Mhat^+ Mhat */
  qk_block_field_t q, p, x, w, t; /* t: in the precision of combinations; not of plain */
  qk_field_t *p_in, *t_in, *w_in; /* what the operator is applied to */
  qk_field_t p_view;              /* p_in where it is p */
  double complex *c, *alpha, *beta, *overlap, *product, *turn, *work;
  double r2[QK_MAX_RHS];      /* |R|^2 */
  double was[QK_MAX_RHS];     /* squares of columns that are being made orthonormal, at first */
  int64_t owner[QK_MAX_RHS];  /* the group whose direction stands in a column of P and W */
  uint8_t waits[QK_MAX_RHS];  /* P is still that of the last iteration */
  uint8_t skew[QK_MAX_RHS];   /* B is not 1: r was replaced before this iteration */
  uint8_t broken[QK_MAX_RHS]; /* not finite */
} qk_block_cg_t;

/* The slots of the mask that share a space with slot i, of it too; false: an earlier one did. */
bool qk_block_group_of(const qk_solver_t *s, int i, const uint8_t *mask, qk_block_group_t *group);
int qk_block_count_groups(const qk_solver_t *s, const uint8_t *mask);

/* The matrix of a group, n x n, and back. */
void qk_block_take(const qk_block_cg_t *m, const qk_block_group_t *g, const double complex *from,
                   double complex *to);
void qk_block_put(const qk_block_cg_t *m, const qk_block_group_t *g, const double complex *from,
                  double complex *to);
/* Of a matrix of the block. */
size_t qk_block_bytes(const qk_block_cg_t *m);
void qk_block_set_unit(const qk_block_cg_t *m, double complex *a);
/* Column and row of a slot become 0. */
void qk_block_forget(const qk_block_cg_t *m, int slot, double complex *a);

/* A group with numbers that are not finite is out, with nothing left of them in the matrices; lost
 * is set for its slots, of which clear_lost clears the columns. */
void qk_block_break_group(qk_block_cg_t *m, const qk_block_group_t *g, uint8_t *lost);
void qk_block_clear_lost(qk_block_cg_t *m, const uint8_t *lost);

/* The columns of Q of the groups of the mask become orthonormal, or 0: Q = Q' total, where total is
 * set for these groups. were_unit: they had norm 1 not long ago. */
void qk_block_orthonormalise(qk_solver_t *s, const uint8_t *mask, bool were_unit,
                             double complex *total);

#endif
