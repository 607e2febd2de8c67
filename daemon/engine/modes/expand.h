/*
 * expand.h: a vector that is kept as coefficients (eigen/compressed.h), made whole from host
 * memory: what the basis gives of it is summed on the host, the polynomial applied on the device in
 * double.
 */
#ifndef QK_ENGINE_EXPAND_H
#define QK_ENGINE_EXPAND_H

#include "daemon/engine/modes/kept.h"

/* As qk_kept_vector, of compressed vectors. Cost: the basis once, from host memory, and 2 order
 * applications of Mhat in double. Memory for a while: a vector in double and one in two floats a
 * number on the host, three of one right-hand side on the device; work fields are in the room that
 * the setup has planned for its solvers (setup/plan.c). Collective. QK_NO_MEMORY,
 * QK_DEVICE_MEMORY, QK_DEVICE_ERROR, QK_COMM_ERROR. */
qk_status_t qk_expand(const qk_kept_t *kept, const qk_kept_pick_t *pick, const qk_field_t *field);

#endif
