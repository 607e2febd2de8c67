#include "cuda/args/link_args.h"

#define BAD(...) qk_ctx_fail(ctx, QK_BAD_ARGUMENT, __VA_ARGS__)

qk_status_t qk_args_linkfield(qk_ops_ctx_t *ctx, const char *call, const qk_lattice_t *lat,
                              const qk_linkfield_t *u) {
  if (u->data == NULL) return BAD("%s: the links have no data", call);
  if (u->halo < 1 || u->halo > 2) return BAD("%s: halo = %d: 1 or 2", call, u->halo);
  int64_t sites = 1;
  for (int mu = 0; mu < 4; mu++) {
    const int want = lat->l[mu] + 2 * u->halo * lat->split[mu];
    if (u->e[mu] != want)
      return BAD("%s: e[%d] = %d: %d, the local extent and its halo", call, mu, u->e[mu], want);
    if (u->halo * lat->split[mu] > lat->l[mu])
      return BAD("%s: halo = %d: at most the local extent %d", call, u->halo, lat->l[mu]);
    sites *= want;
  }
  if (sites > INT32_MAX)
    return BAD("%s: %lld sites with their halo: at most 2^31 - 1", call, (long long)sites);
  return QK_OK;
}

qk_status_t qk_args_link_copy(qk_ops_ctx_t *ctx, const qk_link_copy_args_t *a) {
  qk_status_t status = qk_args_linkfield(ctx, "link copy", &a->lat, &a->u);
  if (status != QK_OK) return status;
  const int64_t volume = 2 * (int64_t)a->lat.vcb;
  if (a->sites == NULL) return BAD("link copy: sites has no memory");
  if (a->directions != 1 && a->directions != 4)
    return BAD("link copy: directions = %d: 1 or 4", a->directions);
  if (a->first < 0 || a->n < 1 || a->n > volume - a->first)
    return BAD("link copy: sites %lld to %lld: 0 to %lld", (long long)a->first,
               (long long)(a->first + a->n - 1), (long long)(volume - 1));
  return QK_OK;
}

qk_status_t qk_args_link_box(qk_ops_ctx_t *ctx, const qk_link_box_args_t *a) {
  qk_status_t status = qk_args_linkfield(ctx, "link box", &a->lat, &a->u);
  if (status != QK_OK) return status;
  for (int mu = 0; mu < 4; mu++)
    if (a->lo[mu] < 0 || a->lo[mu] >= a->hi[mu] || a->hi[mu] > a->u.e[mu])
      return BAD("link box: %d to %d in direction %d: within 0 to %d", a->lo[mu], a->hi[mu], mu,
                 a->u.e[mu]);
  if (a->mask < 1 || a->mask > 15) return BAD("link box: mask = %u: 1 to 15", a->mask);
  return a->dense == NULL ? BAD("link box: dense has no memory") : QK_OK;
}

static int is_split(const qk_lattice_t *lat) {
  return lat->split[0] || lat->split[1] || lat->split[2] || lat->split[3];
}

/* Loops two links wide reach two sites beyond the edge. */
static qk_status_t halo_of_two(qk_ops_ctx_t *ctx, const char *call, const qk_lattice_t *lat,
                               const qk_linkfield_t *u) {
  if (u->halo < 2 && is_split(lat)) return BAD("%s: halo = %d: 2 for rectangles", call, u->halo);
  return QK_OK;
}

qk_status_t qk_args_link_sums(qk_ops_ctx_t *ctx, const qk_link_sums_args_t *a) {
  qk_status_t status = qk_args_linkfield(ctx, "link sums", &a->lat, &a->u);
  if (status == QK_OK && a->sum == NULL) status = BAD("link sums: sum is missing");
  if (status != QK_OK || !a->rectangles) return status;
  return halo_of_two(ctx, "link sums", &a->lat, &a->u);
}

qk_status_t qk_args_link_start(qk_ops_ctx_t *ctx, const qk_link_start_args_t *a) {
  if (a->directions < 1 || a->directions > 4)
    return BAD("link start: directions = %d: 1 to 4", a->directions);
  return qk_args_linkfield(ctx, "link start", &a->lat, &a->u);
}

qk_status_t qk_args_link_update(qk_ops_ctx_t *ctx, const qk_link_update_args_t *a) {
  qk_status_t status = qk_args_linkfield(ctx, "link update", &a->lat, &a->u);
  if (status != QK_OK) return status;
  const int colours = a->c1 == 0 ? 2 : 4;
  if (a->mu < 0 || a->mu > 3) return BAD("link update: mu = %d: 0 to 3", a->mu);
  if (a->colour < 0 || a->colour >= colours)
    return BAD("link update: colour = %d: 0 to %d", a->colour, colours - 1);
  if (!(a->beta > 0)) return BAD("link update: beta = %g: > 0", a->beta);
  if (a->sweep < 0) return BAD("link update: sweep = %lld: >= 0", (long long)a->sweep);
  if (a->c1 == 0) return QK_OK;
  for (int mu = 0; mu < 4; mu++)
    if (a->lat.global[mu] % 4 != 0)
      return BAD("link update: global extent %d in direction %d: a multiple of 4 for rectangles",
                 a->lat.global[mu], mu);
  return halo_of_two(ctx, "link update", &a->lat, &a->u);
}

qk_status_t qk_args_link_smear(qk_ops_ctx_t *ctx, const qk_link_smear_args_t *a) {
  qk_status_t status = qk_args_linkfield(ctx, "link smear", &a->lat, &a->u);
  if (status == QK_OK) status = qk_args_linkfield(ctx, "link smear", &a->lat, &a->out);
  if (status != QK_OK) return status;
  if (a->out.halo != a->u.halo)
    return BAD("link smear: halo of out = %d: %d as that of u", a->out.halo, a->u.halo);
  if (a->mask < 1 || a->mask > 15) return BAD("link smear: mask = %u: 1 to 15", a->mask);
  if (8 * (int64_t)a->lat.vcb > INT32_MAX)
    return BAD("link smear: vcb = %d: over 2^31 - 1 local links", a->lat.vcb);
  for (int mu = 0; mu < 4; mu++)
    for (int nu = 0; nu < 4; nu++) {
      const double *side = a->side[mu][nu], *top = a->top[mu][nu];
      if (!(a->mask >> mu & 1) || (side == NULL && top == NULL)) continue;
      if (mu == nu || side == NULL || top == NULL || side == a->out.data || top == a->out.data)
        return BAD("link smear: staples of direction %d along %d: of two fields that are not out",
                   mu, nu);
    }
  return QK_OK;
}

/* What reads U_mu two sites away. */
static qk_status_t check_reach(qk_ops_ctx_t *ctx, const char *call, const qk_lattice_t *lat,
                               const qk_linkfield_t *u) {
  if (u->halo < 2 && is_split(lat))
    return BAD("%s: halo = %d: 2 for links two sites away", call, u->halo);
  return QK_OK;
}

/* Whether p is among the links of a field of four directions. */
static int is_inside(const qk_linkfield_t *u, const double *p) {
  const uintptr_t first = (uintptr_t)u->data;
  const int64_t sites = (int64_t)u->e[0] * u->e[1] * u->e[2] * u->e[3];
  return (uintptr_t)p >= first && (uintptr_t)p < first + sizeof(double) * 72 * (size_t)sites;
}

qk_status_t qk_args_link_paths(qk_ops_ctx_t *ctx, const qk_link_paths_args_t *a) {
  qk_status_t status = qk_args_linkfield(ctx, "link paths", &a->lat, &a->u);
  if (status == QK_OK) status = qk_args_linkfield(ctx, "link paths", &a->lat, &a->out);
  if (status == QK_OK && a->straight != 0) status = check_reach(ctx, "link paths", &a->lat, &a->u);
  if (status != QK_OK) return status;
  if (a->mu < 0 || a->mu > 3) return BAD("link paths: mu = %d: 0 to 3", a->mu);
  if (is_inside(&a->u, a->out.data)) return BAD("link paths: out has memory of u");
  for (int nu = 0; nu < 4; nu++) {
    if (a->top[nu].data == NULL) continue;
    if (nu == a->mu) return BAD("link paths: top[%d]: there are no staples along mu", nu);
    if (a->top[nu].data == a->out.data) return BAD("link paths: top[%d] has the memory of out", nu);
    status = qk_args_linkfield(ctx, "link paths", &a->lat, &a->top[nu]);
    if (status != QK_OK) return status;
  }
  return QK_OK;
}

qk_status_t qk_args_link_long(qk_ops_ctx_t *ctx, const qk_link_long_args_t *a) {
  qk_status_t status = qk_args_linkfield(ctx, "link long", &a->lat, &a->u);
  if (status == QK_OK) status = qk_args_linkfield(ctx, "link long", &a->lat, &a->out);
  if (status != QK_OK) return status;
  if (a->out.data == a->u.data) return BAD("link long: out has the memory of u");
  return check_reach(ctx, "link long", &a->lat, &a->u);
}

qk_status_t qk_args_link_project(qk_ops_ctx_t *ctx, const qk_link_project_args_t *a) {
  qk_status_t status = qk_args_linkfield(ctx, "link project", &a->lat, &a->u);
  if (status == QK_OK) status = qk_args_linkfield(ctx, "link project", &a->lat, &a->out);
  if (status != QK_OK) return status;
  if (a->singular == NULL) return BAD("link project: singular is missing");
  if (a->out.data == a->u.data && a->out.halo != a->u.halo)
    return BAD("link project: halo of out = %d: %d as that of u", a->out.halo, a->u.halo);
  if (8 * (int64_t)a->lat.vcb > INT32_MAX)
    return BAD("link project: vcb = %d: over 2^31 - 1 local links", a->lat.vcb);
  return QK_OK;
}

/* What the calls of gauge fixing have in common. */
static qk_status_t check_fix(qk_ops_ctx_t *ctx, const char *call, const qk_lattice_t *lat,
                             const qk_linkfield_t *u, const double *g, int directions) {
  if (g == NULL) return BAD("%s: g has no memory", call);
  if (g == u->data) return BAD("%s: g has the memory of u", call);
  if (directions != 3 && directions != 4)
    return BAD("%s: directions = %d: 3 or 4", call, directions);
  return qk_args_linkfield(ctx, call, lat, u);
}

qk_status_t qk_args_fix_relax(qk_ops_ctx_t *ctx, const qk_fix_relax_args_t *a) {
  if (a->parity != 0 && a->parity != 1) return BAD("fix relax: parity = %d: 0 or 1", a->parity);
  if (a->first < 0 || a->first > 2) return BAD("fix relax: first = %d: 0 to 2", a->first);
  if (!(a->omega >= 1 && a->omega < 2)) return BAD("fix relax: omega = %g: 1 to 2", a->omega);
  return check_fix(ctx, "fix relax", &a->lat, &a->u, a->g, a->directions);
}

qk_status_t qk_args_fix_sums(qk_ops_ctx_t *ctx, const qk_fix_sums_args_t *a) {
  if (a->sum == NULL) return BAD("fix sums: sum is missing");
  return check_fix(ctx, "fix sums", &a->lat, &a->u, a->g, a->directions);
}

qk_status_t qk_args_fix_rotate(qk_ops_ctx_t *ctx, const qk_fix_rotate_args_t *a) {
  return check_fix(ctx, "fix rotate", &a->lat, &a->u, a->g, 4);
}
