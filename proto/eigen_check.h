/*
 * eigen_check.h: whether a problem of eigenvectors is legal on a lattice: front and engine ask the
 * same functions. Pure.
 */
#ifndef QK_PROTO_EIGEN_CHECK_H
#define QK_PROTO_EIGEN_CHECK_H

#include "proto/action/operator_text.h"
#include "proto/quark.pb-c.h"
#include "proto/shape.h"
#include "proto/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* QK_OK, QK_BAD_ARGUMENT or QK_TOO_LARGE; `why` is then a sentence that names field, value and
 * limit. */
qk_status_t qk_eigen_check(const Quark__EigenProblem *problem, const qk_shape_t *shape,
                           char why[QK_WHY]);
/* The same of a name alone; what: the field. */
qk_status_t qk_eigen_check_name(const char *what, const char *name, char why[QK_WHY]);
/* Of vectors that are to be made: not all digits, as where a name or a number is asked for
 * (deflate) that is a number. Some of before have such names. */
qk_status_t qk_eigen_check_new_name(const char *name, char why[QK_WHY]);

/* Eigenvalues of a legal problem: its count, LAPLACIAN: that of each time slice, [t][n]. */
uint64_t qk_eigen_values(const Quark__EigenProblem *problem, const qk_shape_t *shape);
/* Of the result: pairs of doubles, eigenvalue and residual. */
uint64_t qk_eigen_bytes(const Quark__EigenProblem *problem, const qk_shape_t *shape);

/* Host memory that the vectors take at most, of all ranks; slices: of the fifth dimension, 1 where
 * there is none; single: kept in one float a number, else in two. */
uint64_t qk_eigen_host_bytes(const Quark__EigenProblem *problem, const qk_shape_t *shape,
                             int slices, bool single);

/* Rows of the largest dense problem while they are computed, at most; host memory that dense
 * problems take then on all ranks together, at most. */
uint64_t qk_eigen_space(const Quark__EigenProblem *problem, const qk_shape_t *shape);
uint64_t qk_eigen_work_bytes(const Quark__EigenProblem *problem, const qk_shape_t *shape,
                             int ranks);

/* The extents of the blocks of a basis: those asked for, or what is chosen on this lattice. */
void qk_eigen_block(const Quark__EigenProblem *problem, const uint32_t dims[4], int block[4]);

/* A right-hand side of SINK_PROJECT: [t][spin][vector], complex of dtype. */
uint64_t qk_projection_bytes(uint32_t count, Quark__Dtype dtype, const qk_shape_t *shape);

/* "normal", "gamma5", "laplacian"; NULL: there is no such kind. */
const char *qk_eigen_kind_name(int kind);
/* -1: there is no such word. */
int qk_eigen_kind_find(const char *word);

/* Whether both ask for the same vectors of one operator, whatever their names are. */
bool qk_eigen_same(const Quark__EigenProblem *a, const Quark__EigenProblem *b);

#ifdef __cplusplus
}
#endif
#endif
