/*
 * colours.h: a rig for staggered fermions: colour vectors of the host against fields.
 *
 * Vectors are complex doubles of the local lattice, [t][z][y][x][colour]. Failures end the process
 * as those of rig.h do.
 */
#ifndef QK_TESTS_COLOURS_H
#define QK_TESTS_COLOURS_H

#include <complex.h>

#include "tests/support/rig.h"

/* rig_open and rig_action, for an action of colour vectors. */
void colours_open(qk_rig_t *rig, qk_comm_t *comm, const char *gauge, const int dims[4],
                  const char *action, double phase_t);

size_t colours_numbers(const qk_rig_t *rig); /* of a vector */
double complex *colours_vector(const qk_rig_t *rig);
/* Values that depend on seed and global site only. */
void colours_random(const qk_rig_t *rig, uint64_t seed, double complex *v);
/* Global coordinates of local site n of a vector. */
void colours_site(const qk_rig_t *rig, size_t n, int x[4]);

/* One right-hand side of a full field of any precision. */
void colours_import(const qk_rig_t *rig, const qk_field_t *field, int rhs, const double complex *v);
void colours_export(const qk_rig_t *rig, const qk_field_t *field, int rhs, double complex *v);

/* (a, b) and |a - b| / |b|, over all ranks. */
double complex colours_dot(const qk_rig_t *rig, const double complex *a, const double complex *b);
double colours_distance(const qk_rig_t *rig, const double complex *a, const double complex *b);

#endif
