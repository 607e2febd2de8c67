#include <math.h>
#include <stdlib.h>

#include "daemon/engine/eigen/lanczos.h"
#include "daemon/engine/multigrid/mg_text.h"
#include "daemon/engine/multigrid/multigrid.h"

enum { AGGREGATE_LEAST = 8 }; /* sites, of an aggregate that is chosen here */

static const char axis[4] = {'x', 'y', 'z', 't'};

/* ---- aggregates ------------------------------------------------------------------------------ */

/* The extent nearest to `wanted`, as a ratio, that divides `l` sites into an even number of
 * aggregates. */
static int nearest(int l, double wanted) {
  int best = 1;
  for (int b = 2; b <= l / 2; b++)
    if (l % (2 * b) == 0 && fabs(log(b / wanted)) < fabs(log(best / wanted))) best = b;
  return best;
}

/* Fills in extents that are 0. False where nothing chosen makes a coarser lattice worth having. */
static bool choose_block(const qk_geom_t *geom, int level, int block[4]) {
  bool chosen = false;
  int sites = 1;
  for (int mu = 0; mu < 4; mu++) {
    if (block[mu] == 0) {
      block[mu] = nearest(geom->lat.l[mu], level == 0 ? 4 : 2);
      chosen = true;
    }
    sites *= block[mu] > 0 ? block[mu] : 1;
  }
  return !chosen || sites >= AGGREGATE_LEAST;
}

static qk_status_t no_aggregates(const qk_geom_t *geom, int level, qk_err_t *err) {
  const int32_t *l = geom->lat.l;
  return qk_fail(err, QK_BAD_GEOMETRY,
                 "multigrid: level %d has local extents %dx%dx%dx%d: no aggregates of %d sites or "
                 "more leave an even number of them in each direction",
                 level, l[0], l[1], l[2], l[3], AGGREGATE_LEAST);
}

/* Turns have no test vectors beside the vectors. */
static qk_status_t check_test_vectors(int level, const qk_mg_params_t *p, qk_err_t *err) {
  const int nvec = p->level[level].nvec, ntest = p->level[level].ntest;
  const bool turns = level == 0 && p->together > 0;
  if (ntest == nvec || (ntest > nvec && !turns && ntest % 2 == 0)) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "multigrid: level %d: mg-test-vectors = %d for %d vectors: %s", level, ntest, nvec,
                 turns ? "all of them, if mg-setup-vectors is set"
                       : "as many as there are vectors, or an even number above");
}

/* The vectors of an aggregate must fit into it, with room for what they leave out. */
static qk_status_t check_room(const qk_geom_t *fine, int level, const qk_mg_level_params_t *p,
                              qk_err_t *err) {
  const int64_t room =
      (int64_t)p->block[0] * p->block[1] * p->block[2] * p->block[3] * fine->ncomp / 2;
  if (p->nvec < room) return QK_OK;
  return qk_fail(err, QK_BAD_GEOMETRY,
                 "multigrid: level %d: %d vectors on aggregates with %lld components of each "
                 "chirality: fewer vectors or larger aggregates",
                 level, p->nvec, (long long)room);
}

/* ---- one level ------------------------------------------------------------------------------- */

static void default_int(int *value, int otherwise) {
  if (*value == 0) *value = otherwise;
}
static void default_real(double *value, double otherwise) {
  if (*value == 0) *value = otherwise;
}
static void default_prec(qk_prec_t *value, qk_prec_t otherwise) {
  if (*value == 0) *value = otherwise;
}

/* What a level needs that leads to a coarser one; blocks and nvec are there. */
static void complete_upper(int level, int nlevel, const qk_tuning_t *t, qk_mg_level_params_t *p) {
  default_int(&p->setup_iterations, t->setup_iterations);
  default_real(&p->setup_tol, 1e-3);
  default_int(&p->setup_passes, p->ntest > p->nvec ? 1 : nlevel > 2 ? 2 : t->setup_passes);
  default_prec(&p->prolongator, t->narrow);
  default_prec(&p->setup_prec, level == 0 ? t->narrow : QK_SINGLE);
  default_int(&p->pre, -1);
  default_int(&p->post, level == 0 ? 8 : t->post);
  default_prec(&p->smoother_prec, level == 0 ? t->narrow : QK_SINGLE);
  default_prec(&p->smoother_sums,
               level == 0 && qk_prec_scaled(p->smoother_prec) ? t->sums : QK_SINGLE);
  if (p->smoother.kind == QK_SMOOTHER_AUTO)
    p->smoother.kind = level == 0 ? QK_SMOOTHER_POLYNOMIAL : QK_SMOOTHER_CAGCR;
  default_real(&p->smoother.omega, 0.85);
  for (int mu = 0; mu < 4; mu++) default_int(&p->smoother.block[mu], p->block[mu]);
}

/* deflated: the coarsest level is. n: components of this level. */
static void complete_lower(bool last, bool deflated, int n, const qk_tuning_t *t,
                           qk_mg_level_params_t *p) {
  if (last)
    default_int(&p->iterations, deflated ? t->deflated_iterations : t->last_iterations);
  else
    default_int(&p->iterations, t->iterations);
  default_real(&p->tol, -1);
  default_prec(&p->store, t->narrow);
  default_int(&p->smoother_bits,
              !last && p->store == QK_HALF && n % 16 == 0 ? t->smoother_bits : -1);
  default_real(&p->twist, 1);
}

static qk_status_t check_prec(const char *name, int level, qk_prec_t value, qk_err_t *err) {
  if (value == QK_SINGLE || value == QK_HALF) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "multigrid: level %d: %s = %d: must be single or half",
                 level, name, (int)value);
}

static qk_status_t check_lower(int level, int n, const qk_tuning_t *t,
                               const qk_mg_level_params_t *p, qk_err_t *err) {
  if (p->smoother_bits < 0) return QK_OK;
  if (t->smoother_bits < 0)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "multigrid: level %d: mg-smoother-bits = %d: on a GPU only; none here", level,
                   p->smoother_bits);
  if (p->store == QK_HALF && n % 16 == 0) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "multigrid: level %d: mg-smoother-bits = %d: needs mg-store=half and a number of "
                 "vectors of level %d that 8 divides (%d)",
                 level, p->smoother_bits, level - 1, n / 2);
}

static qk_status_t check_blocks(const qk_geom_t *geom, int level, const int block[4],
                                qk_err_t *err) {
  for (int mu = 0; mu < 4; mu++)
    if (block[mu] < 1 || geom->lat.l[mu] % block[mu])
      return qk_fail(err, QK_BAD_GEOMETRY,
                     "multigrid: level %d: smoother block %c = %d: it must divide the local extent "
                     "%d",
                     level, axis[mu], block[mu], geom->lat.l[mu]);
  return QK_OK;
}

static qk_status_t check_sums(int level, const qk_tuning_t *t, const qk_mg_level_params_t *p,
                              qk_err_t *err) {
  const qk_status_t status = check_prec("mg-smoother-sums", level, p->smoother_sums, err);
  if (status || p->smoother_sums == QK_SINGLE) return status;
  if (t->sums == QK_SINGLE)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "multigrid: level %d: mg-smoother-sums = half: on a GPU only", level);
  if (level == 0 && qk_prec_scaled(p->smoother_prec)) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "multigrid: level %d: mg-smoother-sums = half: needs level 0 and "
                 "mg-smoother-precision=half",
                 level);
}

/* What depends on the lattice and on the level; the limits of values are those of mg_text.c. */
static qk_status_t check_upper(const qk_geom_t *geom, int level, const qk_tuning_t *t,
                               const qk_mg_level_params_t *p, qk_err_t *err) {
  qk_status_t status = check_prec("setup precision", level, p->setup_prec, err);
  if (status) return status;
  status = check_prec("smoother precision", level, p->smoother_prec, err);
  status = status ? status : check_sums(level, t, p, err);
  if (status) return status;
  if (level > 0 && (qk_prec_scaled(p->setup_prec) || qk_prec_scaled(p->smoother_prec)))
    return qk_fail(err, QK_BAD_ARGUMENT, "multigrid: level %d: half precision is for level 0",
                   level);
  if (level > 0 && p->smoother.kind == QK_SMOOTHER_POLYNOMIAL)
    return qk_fail(err, QK_BAD_ARGUMENT, "multigrid: level %d: smoother polynomial is for level 0",
                   level);
  return check_blocks(geom, level, p->smoother.block, err);
}

/* ---- all levels ------------------------------------------------------------------------------ */

/* A coarse lattice that needs none below it. */
static bool is_last(const qk_geom_t *geom, const qk_tuning_t *t) {
  const int64_t sites = geom->volume;
  return sites >= t->last_least && sites <= t->last_most;
}

/* Blocks, vectors and the number of levels, of the extents that a rank has. geom: of each level. */
static qk_status_t complete_levels(qk_mg_params_t *p, const qk_tuning_t *t,
                                   qk_geom_t geom[QK_MG_LEVELS_MAX], qk_err_t *err) {
  const bool choose = p->nlevel == 0;
  const int most = choose ? 3 : p->nlevel;
  if (most < 2 || most > QK_MG_LEVELS_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "multigrid: %d levels: 2 to %d", p->nlevel,
                   QK_MG_LEVELS_MAX);
  for (p->nlevel = 1; p->nlevel < most; p->nlevel++) {
    const int l = p->nlevel - 1;
    qk_mg_level_params_t *level = &p->level[l];
    if (choose && l > 0 && is_last(&geom[l], t)) break;
    if (!choose_block(&geom[l], l, level->block)) {
      if (choose && l > 0) break;
      return no_aggregates(&geom[l], l, err);
    }
    default_int(&level->nvec, t->nvec);
    default_int(&level->ntest,
                (l > 0 || p->together <= 0) && t->ntest > level->nvec ? t->ntest : level->nvec);
    qk_status_t status = qk_geom_coarsen(&geom[l], level->block, level->nvec, &geom[l + 1], err);
    if (status) {
      qk_err_prefix(err, "multigrid: level %d", l);
      return status;
    }
    status = check_room(&geom[l], l, level, err);
    status = status ? status : check_test_vectors(l, p, err);
    if (status) return status;
  }
  return QK_OK;
}

/* Whether the ranks can hold these levels. geom: of each level, the first one given. */
static bool is_carried(const qk_mg_params_t *p, qk_geom_t geom[QK_MG_LEVELS_MAX]) {
  for (int l = 0; l + 1 < p->nlevel; l++) {
    const qk_mg_level_params_t *level = &p->level[l];
    if (qk_geom_coarsen(&geom[l], level->block, level->nvec, &geom[l + 1], NULL) != QK_OK)
      return false;
  }
  return true;
}

/* Aggregates are those of the whole lattice, so that a hierarchy does not depend on the number of
 * ranks; where these cannot carry it, those next to it that they can. */
static qk_status_t complete_geometry(qk_mg_params_t *p, const qk_tuning_t *t,
                                     qk_geom_t geom[QK_MG_LEVELS_MAX], qk_err_t *err) {
  qk_geom_t whole[QK_MG_LEVELS_MAX];
  qk_mg_params_t of_whole = *p;
  qk_geom_whole(&geom[0], NULL, &whole[0]);
  const qk_status_t status = complete_levels(&of_whole, t, whole, err);
  if (status != QK_OK) return status;
  if (!is_carried(&of_whole, geom)) return complete_levels(p, t, geom, err);
  *p = of_whole;
  return QK_OK;
}

/* With more than two levels, or on a small lattice, the coarsest one is cheap to deflate, and
 * expensive to solve without deflation near the critical mass. */
static qk_status_t complete_deflation(const qk_geom_t *last, int nlevel, const qk_tuning_t *t,
                                      int *n, qk_err_t *err) {
  const int possible = qk_lanczos_most(last, QK_LANCZOS_NORMAL);
  const int64_t most = possible < QK_MG_DEFLATE_MAX ? possible : QK_MG_DEFLATE_MAX;
  const int enough = most / 2 < t->deflate ? (int)(most / 2) : t->deflate;
  default_int(n, nlevel < 3 && !is_last(last, t) ? -1 : enough);
  if (*n >= -1 && *n <= most) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "multigrid: %d deflated vectors: -1 (none) to %lld on this coarsest level", *n,
                 (long long)most);
}

qk_status_t qk_mg_params_complete(const qk_geom_t *geom, const qk_tuning_t *tuning,
                                  qk_mg_params_t *params, qk_err_t *err) {
  qk_geom_t level[QK_MG_LEVELS_MAX];
  qk_mg_params_t p = *params;
  level[0] = *geom;
  qk_status_t status = complete_geometry(&p, tuning, level, err);
  if (status) return status;
  status = complete_deflation(&level[p.nlevel - 1], p.nlevel, tuning, &p.deflate, err);
  if (status) return status;
  for (int l = 0; l + 1 < p.nlevel; l++) {
    complete_upper(l, p.nlevel, tuning, &p.level[l]);
    const int n = 2 * p.level[l].nvec;
    complete_lower(l + 2 == p.nlevel, p.deflate > 0, n, tuning, &p.level[l + 1]);
    status = check_upper(&level[l], l, tuning, &p.level[l], err);
    status = status ? status : check_lower(l + 1, n, tuning, &p.level[l + 1], err);
    if (status) return status;
  }
  if (p.together > 0 && p.together % QK_TILE != 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "mg-setup-vectors = %d: a multiple of %d", p.together,
                   QK_TILE);
  status = qk_mg_text_check(&p, err);
  if (status) return status;
  default_int(&p.whole, tuning->whole);
  if (p.seed == 0) p.seed = 1;
  *params = p;
  return QK_OK;
}

qk_status_t qk_mg_possible(const qk_geom_t *geom, const qk_tuning_t *tuning, qk_err_t *err) {
  qk_mg_params_t params = {.nlevel = 2, .level = {{.nvec = QK_MG_VECTORS_FEW}}};
  return qk_mg_params_complete(geom, tuning, &params, err);
}
