/*
 * given.h: vectors that a client has sent, from shared memory into what is kept, in steps: a block
 * of eight is read, then block by block of each time slice is compared with all those before.
 *
 * Host memory only. The numbers of what is kept become [t][n][0, r], r the largest element of the
 * row of |V^+ V - 1| of vector n.
 *
 * Collective. Errors, the same on all ranks: QK_BAD_ARGUMENT (the text; vectors of a time slice
 * that are further from orthonormal than tol), QK_BAD_GEOMETRY (the object has another size),
 * QK_BAD_CHECKSUM, QK_IO_ERROR, QK_NO_MEMORY, QK_COMM_ERROR.
 */
#ifndef QK_ENGINE_GIVEN_H
#define QK_ENGINE_GIVEN_H

#include "daemon/engine/modes/kept.h"

typedef struct qk_given qk_given_t;

/* Of "memory:/NAME:f32|f64": 32 or 64; 0: it is no such text. Not collective. */
int qk_given_bits(const char *memory);

/* made: of a Laplacian, with one plane for 32 bit, two for 64; its problem has the digest and the
 * tolerance. Borrows both. */
qk_status_t qk_given_create(const qk_geom_t *geom, const char *memory, qk_kept_t *made,
                            qk_given_t **given, qk_err_t *err);
void qk_given_destroy(qk_given_t *given); /* NULL-safe */
/* *over: all of them are there, and orthonormal. */
qk_status_t qk_given_step(qk_given_t *given, bool *over, qk_err_t *err);

#endif
