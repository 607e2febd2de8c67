/*
 * parity.h: sources and solutions of one parity, and solves of the systems on one parity (SCHUR_*
 * of quark.proto; docs/physics.md).
 *
 * Fields are full on the device, and 0 on the other parity. p: the parity of the fill, A = T.
 *
 *   A Mhat x = b   by M (x, .) = (b, 0)
 *   Mhat x = b     by M (x, .) = (A b, 0)
 *   Mhat^+ x = b   by M (y, .) = (gamma_5 b, 0), x = gamma_5 A y, of the other flavour of a twist:
 *                  Mhat^+ = gamma_5 A Mhat A^-1 gamma_5
 *
 * The two gamma_5 are those of every solve of the adjoint (source.c, entries.c). Collective; needs a
 * work field in double where it is Mhat.
 */
#ifndef QK_ENGINE_PARITY_H
#define QK_ENGINE_PARITY_H

#include "daemon/engine/serve/round.h"
#include "daemon/engine/setup/loaded.h"

/* The field becomes 0 on the parity that is not to be kept; QK_FULL: both are. */
qk_status_t qk_parity_keep(const qk_field_t *field, qk_subset_t keep);

/* Of a source that has been made: what is solved for takes its place. minus: device byte 1, where
 * the fill has flavour -1. *measure: for the slot. Verdicts as of norm.h. */
qk_status_t qk_parity_begin(qk_loaded_t *setup, const qk_fill_t *fill, const uint8_t *minus,
                            const qk_field_t *source, qk_measure_t *measure, qk_err_t *verdict);
/* Of what has been solved: the solution of the fill takes its place. */
qk_status_t qk_parity_end(qk_loaded_t *setup, const qk_fill_t *fill, const uint8_t *minus,
                          const qk_field_t *solution);

#endif
