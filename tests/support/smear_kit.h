/*
 * smear_kit.h: links of a rig to smear, and the oracles (tests/ref/smear_ref.py, fat_ref.py).
 * Arrays on the host are of the local lattice: links in the order of gauge.h, spinors in wire
 * order, complex double, of qk_malloc.
 */
#ifndef QK_TESTS_SMEAR_KIT_H
#define QK_TESTS_SMEAR_KIT_H

#include "daemon/engine/gauge/link_smear.h"
#include "daemon/engine/hadron/gauss.h"
#include "tests/support/rig.h"

size_t smear_reals(const qk_rig_t *rig); /* of all links */

/* What the oracle makes of links (source NULL) or of a source. reals: how many come back. */
double *smear_oracle(const qk_rig_t *rig, const char *spec, const double *links,
                     const double *source, size_t reals);
/* The same of fat_ref.py. */
double *fat_oracle(const qk_rig_t *rig, const char *spec, const double *links, size_t reals);

qk_gaugefield_t *smear_field(const qk_rig_t *rig, const double *links, int halo);
/* Links smeared as the text says, by the engine. */
double *smear_links(const qk_rig_t *rig, const char *spec, const double *links);
/* Links that smear_field may smear; NULL: those of the rig. */
qk_gauss_t *smear_gauss(const qk_rig_t *rig, const double *links);

/* Largest difference of two numbers. */
double smear_distance(const double *a, const double *b, size_t reals);

/* One SU(3) matrix [3][3] for each site, of a seed; links and spinors in that gauge. */
double *smear_rotation(const qk_rig_t *rig, uint64_t seed);
void smear_rotate_links(const qk_rig_t *rig, const double *rotation, double *links);
/* The same of what leads from x to x + length mu. */
void smear_rotate_paths(const qk_rig_t *rig, const double *rotation, int length, double *links);
void smear_rotate_spinor(const qk_rig_t *rig, const double *rotation, double *v);

#endif
