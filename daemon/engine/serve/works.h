/*
 * works.h: fills that apply a part of the operator to their source, or smear it, where others solve
 * (WORK_* of quark.proto).
 *
 * They take no slot: their sources come as those of solves, and between two iterations they are
 * worked on one by one, in double. Fields for that are there while works wait. Collective; a status
 * other than QK_OK means that the process cannot go on.
 */
#ifndef QK_ENGINE_WORKS_H
#define QK_ENGINE_WORKS_H

#include "daemon/engine/serve/entries.h"

/* A solve of the adjoint is made one of the operator itself: of M^+ = gamma_5 M gamma_5, with the
 * other flavour of a twisted action. Others stay as they are. Pure. QK_UNSUPPORTED: of this
 * operator the adjoint has another form. */
qk_status_t qk_works_by_adjoint(const qk_operator_t *op, qk_fill_t *fill, qk_err_t *err);

/* At most so many works whose sources are here. may_leave: buffers are not wanted for solutions. */
qk_status_t qk_works_step(qk_inflight_t *inflight, int most, bool may_leave, qk_err_t *err);
/* Gives back the memory of works. */
void qk_works_fini(qk_inflight_t *inflight);

#endif
