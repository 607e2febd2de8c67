/*
 * local_nucleon.h: the two-point function of the local nucleon of staggered quarks, from solutions
 * in wire order in host memory, column by column.
 *
 *   C(p, t) = s^t sum_{x: x_j - x0_j even, j = x, y, z} exp(-i 2 pi sum_j p_j (x_j - x0_j) / L_j)
 *             1/6 e_abc e_a'b'c' a_aa'(x) a_bb'(x) b_cc'(x)
 *
 * that of e_abc chi_a chi_b chi_c on the corners of the cubes of 2^3 sites that x0 is a corner of
 * (M. Golterman, J. Smit, Nucl. Phys. B 255 (1985) 328); of one propagator it is the sum of
 * determinants. t counts from x0 modulo T. s = (-1)^(x0 + y0 + z0), of the signs that translations
 * take along (zeta of Golterman and Smit, with the eta of action/staggered), and a factor phase_t^3
 * at times beyond the edge of the lattice make it the same wherever the source is. Sums are in
 * double, in a fixed order, over the global lattice, the same on all ranks. Errors: QK_NO_MEMORY,
 * QK_COMM_ERROR.
 */
#ifndef QK_ENGINE_LOCAL_NUCLEON_H
#define QK_ENGINE_LOCAL_NUCLEON_H

#include "daemon/engine/hadron/local_mesons.h"

typedef struct qk_local_nucleon qk_local_nucleon_t;

/* mom: borrowed during the call. two: a and b are different; else b is not looked at. Memory: 18
 * bytes a site, twice that with two. Not collective. */
qk_status_t qk_local_nucleon_create(const qk_geom_t *geom, int nmom, const int (*mom)[3],
                                    const int origin[4], bool two, qk_local_nucleon_t **nucleon);
void qk_local_nucleon_destroy(qk_local_nucleon_t *nucleon); /* NULL-safe */

/* Column 0 to 2 of both. Not collective. */
void qk_local_nucleon_add(qk_local_nucleon_t *nucleon, int column, qk_colour_part_t a,
                          qk_colour_part_t b);

/* Local time slices begin .. end - 1, each once, when all columns have been added. Not collective.
 */
void qk_local_nucleon_sum(qk_local_nucleon_t *nucleon, int begin, int end);

/* out: complex doubles [nmom][T]. Once, when all slices have been summed. phase_t: boundary factor
 * of the operator in t; zero: taken as 1. Collective. */
qk_status_t qk_local_nucleon_end(qk_local_nucleon_t *nucleon, const double phase_t[2], double *out);

#endif
