/*
 * link_smear.h: APE, stout, HYP and HEX smearing of links. Formulas: docs/physics.md.
 *
 *   APE    U <- proj_SU(3) [ (1 - alpha) U + alpha/n sum of the n staples ]   (n = 6, or 4 in
 *          space; Albanese et al., Phys. Lett. B 192 (1987) 163)
 *   stout  U <- exp(rho (...)) U   (Morningstar, Peardon, hep-lat/0311018, eqs. 1-3)
 *   HYP    three levels of projected staples within hypercubes (Hasenfratz, Knechtli,
 *          hep-lat/0103029, eqs. 1-3), alpha1, alpha2, alpha3
 *
 *   HEX    the same with the exponential of stout, of the link as it was, in place of projections
 *          (Capitani, Duerr, Hoelbling, hep-lat/0607006)
 *
 * proj_SU(3)(A) is the matrix V of SU(3) that maximises Re tr (V^+ A), computed by iteration to
 * rounding. Collective. Errors: QK_BAD_ARGUMENT (parameter, value, limit), those of gaugefield.h.
 */
#ifndef QK_ENGINE_LINK_SMEAR_H
#define QK_ENGINE_LINK_SMEAR_H

#include "daemon/engine/gauge/gaugefield.h"
#include "proto/action/links_text.h"

/* Pure. */
qk_status_t qk_link_smear_check(const qk_link_smear_t *smear, qk_err_t *err);
/* "ape:0.6,20", "stout:0.1,10", "hyp:0.75,0.6,0.3,3". With ",4d" at the end APE and stout act on
 * all directions. QK_BAD_ARGUMENT. Pure. */
qk_status_t qk_link_smear_parse(const char *text, qk_link_smear_t *smear, qk_err_t *err);

/* Device memory that smearing of a field of halo 1 needs, with that field. Pure. */
int64_t qk_link_smear_bytes(const qk_lattice_t *lat, const qk_link_smear_t *smear);
/* In place; the halo is renewed. */
qk_status_t qk_link_smear_apply(qk_gaugefield_t *field, const qk_link_smear_t *smear,
                                qk_err_t *err);

#endif
