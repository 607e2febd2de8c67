/*
 * norm.h: norms of one full column in double. Collective. Errors: those of the device and the
 * communicator.
 */
#ifndef QK_ENGINE_NORM_H
#define QK_ENGINE_NORM_H

#include "daemon/engine/lattice/field.h"

/* |field|^2, as far as a double holds it. */
qk_status_t qk_norm2_find(const qk_field_t *field, double *norm2);

/* |source|, also where its square under- or overflows. The verdict, the same on all ranks, with the
 * place: NAN_INPUT, or BAD_ARGUMENT where a double does not hold the norm. */
qk_status_t qk_norm_of_source(qk_work_t *work, const qk_field_t *source, double *norm,
                              qk_err_t *verdict);

#endif
