/*
 * sums.h: what is measured of a solution in five dimensions: sums over the sites of each time
 * slice, of the quark, of the field at the mid-point, and of the conserved axial current.
 *
 *   q = P- psi_0 + P+ psi_(Ls-1),  mid = P+ psi_(Ls/2-1) + P- psi_(Ls/2)           (Ls even)
 *   A_t(x) = 2 (b + c) sum_s sgn(s - (Ls-1)/2) Re phi_(Ls-1-s)(x)^+ g5 h_s(x)
 *   h = 1/2 (g_t - 1) U_t phi(x+t),  phi = (psi' + c e) / (b + c),  e = P+ eta on 0, P- eta on Ls-1
 *
 * of the solution psi' = B5 psi for the source eta, b and c real and the same on all slices:
 * docs/physics.md ("Domain wall fermions"). Products are made by the kernel of contractions, twelve
 * slices at a time, which stand for the twelve columns of a propagator.
 */
#ifndef QK_ENGINE_SUMS_H
#define QK_ENGINE_SUMS_H

#include "daemon/engine/action/domainwall/slices.h"
#include "daemon/engine/operator/operator.h"

typedef struct qk_sums qk_sums_t;

typedef struct qk_sums_in {
  int ls;
  bool is_uniform; /* b and c are, and are real */
  double b, c;
  const qk_slices_t *five; /* B5^-1: psi of psi' */
} qk_sums_in_t;

/* Reads `in` during the call. QK_NO_MEMORY, QK_DEVICE_MEMORY: nothing stays. */
qk_status_t qk_sums_create(qk_operator_t *base, const qk_sums_in_t *in, qk_sums_t **sums);
void qk_sums_destroy(qk_sums_t *sums); /* NULL-safe */
/* Device memory of it. is_real: B5 is. */
int64_t qk_sums_bytes(const qk_lattice_t *lat, int ls, bool is_uniform, double c, bool is_real);

/* out: [qk_wall_sum_t][T], the same on all ranks; NaN where a sum is not defined. eta, x: full
 * fields of one right-hand side in double, of four and of five dimensions; work: fields of five.
 * Collective, waits. */
qk_status_t qk_sums_take(qk_sums_t *sums, qk_work_t *work, const qk_field_t *eta,
                         const qk_field_t *x, double *out);

#endif
