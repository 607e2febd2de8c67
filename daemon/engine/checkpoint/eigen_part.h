/*
 * eigen_part.h: a rank's part of a block of eigenvectors in host memory, as its file has it
 * (eigen_header.h). Collective but for floats. Errors: QK_BAD_ARGUMENT (a field of another shape or
 * precision), QK_NO_MEMORY, QK_DEVICE_MEMORY, QK_DEVICE_ERROR, QK_COMM_ERROR.
 */
#ifndef QK_ENGINE_EIGEN_PART_H
#define QK_ENGINE_EIGEN_PART_H

#include "daemon/engine/checkpoint/eigen_header.h"

/* Floats of this rank's part of a block: [plane][vector][site][column][12, of colour vectors and
 * of a Laplacian 3][re, im], sites of the local lattice, or the even ones, lexicographic; of one of
 * coefficients: [plane][aggregate][column][number][re, im]. Not collective. */
int64_t qk_eigen_part_floats(const qk_geom_t *geom, const qk_eigen_header_t *h, int block);

/* Between a flat block (flat.h) of eight vectors and its part in host memory; fields in single, or
 * in double with two planes. */
qk_status_t qk_eigen_part_get(const qk_eigen_header_t *h, const qk_field_t *block, float *part);
qk_status_t qk_eigen_part_set(const qk_eigen_header_t *h, const float *part, qk_field_t *block);
/* The same of coefficients (eigen/coherent.h). Single takes those of two planes, too. */
qk_status_t qk_eigen_part_get_coefficients(const qk_eigen_header_t *h, const qk_field_t *block,
                                           float *part);
qk_status_t qk_eigen_part_set_coefficients(const qk_eigen_header_t *h, const float *part,
                                           qk_field_t *block);
/* A field of one right-hand side and vector in double takes the sum of both planes, [site][12,
 * of colour vectors 3][re, im]. */
qk_status_t qk_eigen_part_plain(const qk_field_t *field, float *const plane[2]);
/* Vector `vector` of column `column` alone, to a field of one right-hand side in double. */
qk_status_t qk_eigen_part_column(const qk_eigen_header_t *h, const float *part, int vector,
                                 int column, const qk_field_t *field);
/* Of a Laplacian: column `column` on time slice t (-1: on each) in spin `spin`, 0 elsewhere, to a
 * full field of one right-hand side in double. */
qk_status_t qk_eigen_part_slices(const qk_eigen_header_t *h, const float *part, int column, int t,
                                 int spin, const qk_field_t *field);

#endif
