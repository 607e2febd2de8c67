/*
 * local_mesons.h: two-point functions of staggered mesons, from solutions in wire order in host
 * memory, column by column.
 *
 *   C(p, t) = g_n sum_x phi(x - x0) exp(-i 2 pi sum_j p_j (x_j - x0_j) / L_j)
 *                 sum_cols sum_c conj(b_c(x)) a_c(x)
 *   phi(y)  = (-1)^(sum_mu y_mu (1 + |n| - n_mu + sum_(nu < mu) d_nu)),  d = n xor m
 *   g_n     = (-1)^(|n| (|n| - 1) / 2) = G_n^2
 *
 * with G_n = gx^n_x gy^n_y gz^n_z gt^n_t (gamma.h), |n| the number of its factors: the spin of the
 * meson is G_n, its taste G_m. phi and the sign of the antiquark are those of O(x) O^+(x0),
 *   O(x) = 1/4 tr[W(x)^+ G_n W(x + d) G_m^+] chibar(x) D chi(x),  W(x) = gx^x gy^y gz^z gt^t
 * where D shifts by d (qk_gauss_shift): a is to be D s D, b is s, of the propagator s from x0. Of
 * local mesons, d = 0, C is a quarter of tr[g5 S_b^+ g5 G_n S_a G_n] of naive quarks, S = W s.
 * t counts from x0 modulo T. Sums are in double, in a fixed order,
 * over the global lattice, the same on all ranks.
 * Errors: QK_NO_MEMORY, QK_COMM_ERROR.
 */
#ifndef QK_ENGINE_LOCAL_MESONS_H
#define QK_ENGINE_LOCAL_MESONS_H

#include "daemon/engine/lattice/geom.h"

typedef struct qk_local_mesons qk_local_mesons_t;

/* mom: borrowed during the call. Not collective. */
qk_status_t qk_local_mesons_create(const qk_geom_t *geom, int nmom, const int (*mom)[3],
                                   const int origin[4], qk_local_mesons_t **mesons);
void qk_local_mesons_destroy(qk_local_mesons_t *mesons); /* NULL-safe */

/* A vector of this rank's part, [t][z][y][x][3 colours] complex float or double. */
typedef struct qk_colour_part {
  const void *data;
  bool is_double;
} qk_colour_part_t;

/* Local time slices begin .. end - 1 of one column. Not collective. */
void qk_local_mesons_add(qk_local_mesons_t *mesons, qk_colour_part_t a, qk_colour_part_t b,
                         int begin, int end);

/* out: complex doubles [n][nmom][T] of the mesons of spin[i] and taste[i]. Once, when all columns
 * have been added. Collective. */
qk_status_t qk_local_mesons_end(qk_local_mesons_t *mesons, int n, const int spin[],
                                const int taste[], double *out);

#endif
