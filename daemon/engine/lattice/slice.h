/*
 * slice.h: time slices of a full field of one column in double and one vector.
 *
 * Calls of an iteration (device.h). part: a field like it, overwritten.
 */
#ifndef QK_ENGINE_SLICE_H
#define QK_ENGINE_SLICE_H

#include "daemon/engine/lattice/field.h"

/* part = the field on global time slice t, and 0 elsewhere. */
void qk_slice_cut(const qk_field_t *field, int t, const qk_field_t *part);

/* The field is 0 on the outer slices, t = 0 and T-1. */
void qk_slice_clear_outer(const qk_field_t *field, const qk_field_t *part);

#endif
