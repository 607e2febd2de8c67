/*
 * contract.h: hadron two-point functions of propagators, summed over space with momenta.
 *
 * A propagator is a full block field of 12 columns, column 3*spin + colour of the source, spins in
 * the DeGrand-Rossi basis at both ends, single or double. Sums are over the global lattice and the
 * same on all ranks; t counts from origin[3] modulo T; the phase of a momentum p is exp(-i 2 pi
 * sum_j p_j (x_j - origin_j) / L_j). Sums are in double and in a fixed order. Baryons at times
 * beyond the lattice edge get phase_t^3, so that they do not depend on the position of the source.
 * Formulas: docs/physics.md. Output: host memory, undefined after an error. All calls are
 * collective. Errors: QK_BAD_ARGUMENT (shapes), QK_DEVICE_MEMORY, QK_DEVICE_ERROR, QK_COMM_ERROR,
 * QK_NO_MEMORY.
 */
#ifndef QK_ENGINE_CONTRACT_H
#define QK_ENGINE_CONTRACT_H

#include "daemon/engine/lattice/field.h"

typedef struct qk_contract {
  const qk_field_t *a, *b; /* may be the same */
  int nmom;
  const int (*mom)[3];
  int origin[4];     /* x0 */
  double phase_t[2]; /* boundary factor of the operator in t; zero: taken as 1 */
} qk_contract_t;

typedef enum qk_channel_kind { /* numbers as in quark.proto */
                               QK_CHANNEL_MESON,
                               QK_CHANNEL_NUCLEON,
                               QK_CHANNEL_DELTA,
                               QK_CHANNEL_CORNER /* of colour vectors: local_nucleon.h */
} qk_channel_kind_t;

typedef struct qk_channel_id {
  qk_channel_kind_t kind;
  int sink, source; /* MESON: gamma matrices 0..15 (gamma.h) */
} qk_channel_id_t;

/* Complex numbers of a channel for each momentum and time: 1, 16 ([4][4]), 144 ([3][3][4][4]) or,
 * of CORNER, 1. */
int qk_channel_numbers(qk_channel_kind_t kind);

/* Factors of the phases of momenta, of the local coordinates x, then y, then z: complex
 * [nmom][l[0] + l[1] + l[2]]. Pure. */
void qk_contract_phases(const qk_lattice_t *lat, int nmom, const int (*mom)[3], const int origin[4],
                        double *phase);

/* The memory of contractions, one after the other: what was made for one is kept for the next. */
typedef struct qk_contractor qk_contractor_t;
qk_status_t qk_contractor_create(const qk_device_t *dev, qk_contractor_t **contractor);
void qk_contractor_destroy(qk_contractor_t *contractor); /* NULL-safe; at any time */

/* Queues the work on the device (queue 0) and does not wait. Discards earlier work that has not
 * ended. */
qk_status_t qk_contract_begin(qk_contractor_t *contractor, const qk_contract_t *what, int nchannel,
                              const qk_channel_id_t channel[], qk_err_t *err);
/* Waits for the work that was begun with the same arguments. out: complex doubles
 * [channel][nmom][T][numbers of the channel]. Each kind is contracted once, however many
 * channels use it: all 256 mesons cost as much as one. */
qk_status_t qk_contract_end(qk_contractor_t *contractor, const qk_contract_t *what, int nchannel,
                            const qk_channel_id_t channel[], double *out, qk_err_t *err);

#endif
