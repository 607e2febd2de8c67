/*
 * eigens_compressed.h: an EIGEN of compressed vectors (eigen/compressed.h), as eigens.c asks for
 * its parts: the vectors of the basis, an iteration in its space, Ritz vectors. Private to modes.
 */
#ifndef QK_ENGINE_EIGENS_COMPRESSED_H
#define QK_ENGINE_EIGENS_COMPRESSED_H

#include "daemon/engine/modes/eigens_job.h"

/* The parameters become those of the basis. QK_BAD_ARGUMENT, QK_BAD_GEOMETRY. */
qk_status_t qk_eigens_choose_basis(qk_eigens_t *s, qk_err_t *err);
/* What it takes at most on the device; floats of a block of coefficients. */
int64_t qk_eigens_compressed_bytes(const qk_eigens_t *s);
int64_t qk_eigens_coefficient_floats(const qk_eigens_t *s);

/* The iteration to the basis is over. Steps to one that is orthonormal; its blocks, one by one, to
 * host memory; then the iteration in its space. */
qk_status_t qk_eigens_begin_basis(qk_eigens_t *s, qk_err_t *err);
qk_status_t qk_eigens_cut_basis(qk_eigens_t *s, qk_err_t *err);
qk_status_t qk_eigens_take_basis(qk_eigens_t *s, qk_err_t *err);
/* A state of the latter is read (h): its blocks follow. */
qk_status_t qk_eigens_go_on_within(qk_eigens_t *s, qk_err_t *err);

/* That iteration is over; steps to Ritz vectors, and their coefficients, of block b of the file. */
qk_status_t qk_eigens_begin_refining(qk_eigens_t *s, qk_err_t *err);
qk_status_t qk_eigens_refine(qk_eigens_t *s, qk_err_t *err);
qk_status_t qk_eigens_collect_coefficients(qk_eigens_t *s, int b);

#endif
