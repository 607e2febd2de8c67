/*
 * reference.h: the Wilson-clover operator once more, slow and plain, on links of its own: what
 * solutions of an engine are judged by. It shares nothing with the kernels but docs/physics.md.
 *
 *   M = 4 + m - 1/2 sum_mu [(1 - g_mu) U_mu(n) T_mu + (1 + g_mu) U_mu(n - mu)^+ T_mu^+]
 *       - csw/2 sum_{mu<nu} g_mu g_nu F_mu_nu
 *
 * Antiperiodic in t. Gamma matrices of DeGrand-Rossi. Fields are [t][z][y][x][spin][colour]. Host
 * memory, one thread, about 2 us a site. Functions are pure but for create and write.
 */
#ifndef QUARKCTL_REFERENCE_H
#define QUARKCTL_REFERENCE_H

#include <complex.h>
#include <stdint.h>

#include "daemon/base/err.h"

enum { CTL_REFERENCE_EXTENT = 8, CTL_REFERENCE_SITES = 8 * 8 * 8 * 8, CTL_REFERENCE_SITE = 12 };
enum { CTL_REFERENCE_FIELD = CTL_REFERENCE_SITES * CTL_REFERENCE_SITE };

typedef struct ctl_reference ctl_reference_t;

/* Links that fluctuate at random, in SU(3) to rounding. NULL: there is no memory. */
ctl_reference_t *ctl_reference_create(uint64_t seed);
void ctl_reference_destroy(ctl_reference_t *reference); /* NULL-safe */
/* Writes the links as an ILDG file with its checksum. */
qk_status_t ctl_reference_write(const ctl_reference_t *reference, const char *path, qk_err_t *err);
/* The mean of Re tr / 3 over all plaquettes. */
double ctl_reference_plaquette(const ctl_reference_t *reference);
/* out = M in; both of CTL_REFERENCE_FIELD numbers, and apart. */
void ctl_reference_apply(const ctl_reference_t *reference, double mass, double csw,
                         const double complex *in, double complex *out);

#endif
