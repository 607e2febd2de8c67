/*
 * pack.h: SUBMIT and CONTRACT as bytes.
 *
 * The result is malloc'ed. NULL: no memory, or the message is over QK_CONTROL_MAX. Arrays of the
 * caller are read during the call alone. From any thread.
 */
#ifndef QUARK_PACK_H
#define QUARK_PACK_H

#include "client/quark.h"
#include "proto/quark.pb-c.h"

/* Whether fields go in parts. */
bool quark__has_grid(const uint32_t grid[4]);
/* setup: for params that name none; NULL: the daemon's default. */
/* A smearing as a message, also of no steps, whose arrays are still those of the user: m. */
Quark__Smearing *quark__pack_smearing(const quark_smearing_t *smearing, Quark__Smearing *m);
uint8_t *quark__pack_submit(uint64_t number, const quark_params_t *params, const char *setup,
                            size_t *bytes);
uint8_t *quark__pack_contract(uint64_t number, const quark_contraction_t *contraction,
                              size_t *bytes);

#endif
