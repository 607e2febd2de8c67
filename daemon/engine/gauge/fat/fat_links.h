/*
 * fat_links.h: fat and long links, which improved staggered fermions hop over. Formulas:
 * docs/physics.md.
 *
 *   F = c1 U + c3 sum of the 3-link staples + c5 of the 5-link ones + c7 of the 7-link ones
 *       + cL of the straight 5-link ones   L_mu(x) = cN U_mu(x) U_mu(x+mu) U_mu(x+2mu)
 *
 * over both signs and all orders of the directions. asqtad (Orginos, Toussaint, Sugar,
 * hep-lat/9903032): F and L of the thin links, tadpole factor u0. HISQ (Follana et al.,
 * hep-lat/0610092): W = the fat7 links of U (cL = 0, no L) projected to U(3), F and L of W, epsilon
 * the correction of the Naik term for heavy quarks.
 *
 * Neither signs of staggered fermions nor boundary factors are in them. F and L are general
 * matrices. The same bits on every backend and grid of ranks.
 *
 * Nested staples keep halos at one site, but for L and the straight staples of U, which need two:
 * for each mu three fields A_nu, three B_sigma, of a matrix a site, and F,
 *
 *   A_nu    = c5 U + c7 S_nu(U)
 *   B_sigma = c3 U + sum_rho S_rho(A_nu)
 *   F       = c1 U + sum_sigma S_sigma(B_sigma) + cL of the straight ones
 *
 * where S_nu(T) are the two staples of T along nu, and mu, nu, rho, sigma are all different: 12
 * pairs of staples a link.
 */
#ifndef QK_ENGINE_FAT_LINKS_H
#define QK_ENGINE_FAT_LINKS_H

#include "daemon/engine/gauge/gaugefield.h"

typedef enum qk_fat_kind { QK_FAT_ASQTAD, QK_FAT_HISQ } qk_fat_kind_t;

typedef struct qk_fat_recipe {
  qk_fat_kind_t kind;
  double u0;      /* asqtad: > 0 */
  double epsilon; /* HISQ */
} qk_fat_recipe_t;

/* The halo that links must have. */
enum { QK_FAT_HALO = 2 };

/* F and L, of halo 1, which is not filled. links: thin ones with their halo; HISQ leaves W there.
 * Work fields are freed before L is made. Waits. Collective. Errors, after which nothing is left:
 * those of gaugefield.h; QK_BAD_ARGUMENT: u0 or epsilon, or a fat7 link that is singular, which the
 * text names. */
qk_status_t qk_fat_links(qk_gaugefield_t *links, const qk_fat_recipe_t *recipe,
                         qk_gaugefield_t **fat, qk_gaugefield_t **long_links, qk_err_t *err);

/* The most device memory at a time on this rank, `links`, F and L counted. Pure. */
int64_t qk_fat_links_bytes(const qk_lattice_t *lat);

#endif
