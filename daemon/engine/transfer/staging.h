/*
 * staging.h: sources and solutions on their way between the front's shared memory and the device,
 * while the solver iterates: the next sources are there before a slot is free, the last solutions
 * leave while it is taken again. What sequential sources and contractions are made of comes the
 * same way.
 *
 * Each has a staging buffer: a field in wire order in pinned host memory and one on the device.
 * Threads move the one to and from shared memory (copy_threads.h), queues 1 and 2 copy between the
 * two. There are `in` buffers in and `out` buffers out. Two of each direction are there from the
 * beginning, the others join as their pinned memory becomes ready (pinned.h).
 *
 * All calls but the queries are collective and do not wait for transfers. Errors that concern one
 * vector, the same on all ranks, are in `verdict`; a status other than QK_OK means that the
 * process cannot go on.
 */
#ifndef QK_ENGINE_STAGING_H
#define QK_ENGINE_STAGING_H

#include "daemon/engine/lattice/field.h"
#include "daemon/engine/lattice/pinned.h"
#include "daemon/engine/transfer/wire.h"
#include "proto/limits.h"

typedef struct qk_staging qk_staging_t;
typedef struct qk_buffer qk_buffer_t;

/* in, out: numbers of buffers; in at most QK_STAGING_MAX, out twice that. None where ranks are on
 * other hosts than rank 0. Their pinned memory: in + out buffers of `pinned` from number `first`
 * on, each of a local vector in double. Borrows dev, wire and pinned. */
qk_status_t qk_staging_create(const qk_device_t *dev, qk_wire_t *wire, qk_pinned_t *pinned,
                              int first, int in, int out, qk_staging_t **stage, qk_err_t *err);
void qk_staging_destroy(qk_staging_t *stage); /* NULL-safe */

/* Whether there are buffers at all, and how many of those in and of those out are free. */
bool qk_staging_exists(const qk_staging_t *stage);
int qk_staging_vacant(const qk_staging_t *stage);
int qk_staging_room(const qk_staging_t *stage);
/* Whether the vector has come, or gone, or failed to. */
bool qk_buffer_done(const qk_buffer_t *buffer);

/* Everything moves on, to where copies between pinned memory and the device begin. Waits for those
 * that have begun, or not. */
qk_status_t qk_staging_poll(qk_staging_t *stage, bool wait, qk_err_t *err);
/* These copies begin, in each direction when those before have ended: to be called where the
 * device is at work, as it takes the host some time to ask for them. */
qk_status_t qk_staging_copy(qk_staging_t *stage, qk_err_t *err);

/* The vector begins to come. *buffer NULL: all are taken, or the verdict says why not. */
qk_status_t qk_staging_load(qk_staging_t *stage, const qk_input_t *input, qk_buffer_t **buffer,
                            qk_err_t *verdict, qk_err_t *err);
/* Columns rhs to rhs + n - 1 of the field (full) = matrix times the vectors of n <=
 * QK_RHS_TOGETHER done buffers of one precision, which are free then. The verdict: of the first
 * that did not come. */
qk_status_t qk_staging_import(qk_staging_t *stage, int n, qk_buffer_t *const buffer[],
                              const double matrix[4][4][2], const qk_field_t *field, int rhs,
                              qk_err_t *verdict, qk_err_t *err);

/* factor times matrix times field begins to go to the segment, which the buffer takes over. There
 * must be room. field may be overwritten by what is called on queue 0 later. */
qk_status_t qk_staging_store(qk_staging_t *stage, qk_segment_t *segment,
                             const double matrix[4][4][2], double factor, const qk_field_t *field,
                             qk_buffer_t **buffer, qk_err_t *err);
/* The verdict on a done buffer out, which is free then. */
void qk_buffer_stored(qk_buffer_t *buffer, qk_err_t *verdict);

/* The buffer in is free when its vector has come: nobody wants it. NULL-safe. */
void qk_buffer_drop(qk_buffer_t *buffer);

#endif
