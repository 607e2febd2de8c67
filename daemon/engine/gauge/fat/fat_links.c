#include "daemon/engine/gauge/fat/fat_links.h"

#include <math.h>

typedef struct weights {
  double c1, c3, c5, c7, straight, naik;
} weights_t;

/* Work: [0..2] A, [3..5] B. */
enum { WORK = 6 };

static weights_t asqtad(double u0) {
  const double u2 = u0 * u0;
  return (weights_t){.c1 = 5.0 / 8,
                     .c3 = 1 / (16 * u2),
                     .c5 = 1 / (64 * u2 * u2),
                     .c7 = 1 / (384 * u2 * u2 * u2),
                     .straight = -1 / (16 * u2 * u2),
                     .naik = -1 / (24 * u2)};
}

static const weights_t fat7 = {.c1 = 1.0 / 8, .c3 = 1.0 / 16, .c5 = 1.0 / 64, .c7 = 1.0 / 384};

static weights_t hisq(double epsilon) {
  weights_t w = fat7;
  w.c1 = 1 + epsilon / 8;
  w.straight = -1.0 / 8;
  w.naik = -(1 + epsilon) / 24;
  return w;
}

/* ---- one level ---- */

/* The links of one direction as a matrix a site. */
static qk_linkfield_t direction(const qk_gaugefield_t *f, int mu) {
  qk_linkfield_t v = f->v;
  v.data += (ptrdiff_t)36 * mu * ((int64_t)v.e[0] * v.e[1] * v.e[2] * v.e[3] / 2);
  return v;
}

/* Of the work fields A or B: the one of nu, which is not mu. */
static int number_of(int mu, int nu) {
  return nu < mu ? nu : nu - 1;
}

/* A stage, and the halo of what it made, on all ranks. Failures are noted. */
static void run(const qk_gaugefield_t *links, qk_link_paths_args_t *args, qk_gaugefield_t *made) {
  const qk_device_t *dev = links->dev;
  args->lat = dev->geom->lat;
  args->u = links->v;
  if (made != NULL) args->out = made->v;
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->link_paths(dev->ctx, args));
  if (made == NULL) return;
  const qk_status_t status = qk_comm_agree(dev->geom->comm, qk_dev_status(dev), NULL);
  qk_dev_note(dev, status == QK_OK ? qk_gaugefield_exchange(made, 1) : status);
}

static void make_a(const qk_gaugefield_t *links, const weights_t *w, int mu,
                   qk_gaugefield_t *const work[WORK]) {
  for (int nu = 0; nu < 4; nu++) {
    if (nu == mu) continue;
    qk_link_paths_args_t args = {.mu = mu, .own = w->c5, .weight = w->c7};
    args.top[nu] = direction(links, mu);
    run(links, &args, work[number_of(mu, nu)]);
  }
}

static void make_b(const qk_gaugefield_t *links, const weights_t *w, int mu,
                   qk_gaugefield_t *const work[WORK]) {
  for (int sigma = 0; sigma < 4; sigma++) {
    if (sigma == mu) continue;
    qk_link_paths_args_t args = {.mu = mu, .own = w->c3, .weight = 1};
    for (int rho = 0; rho < 4; rho++)
      if (rho != mu && rho != sigma) args.top[rho] = work[number_of(mu, 6 - mu - sigma - rho)]->v;
    run(links, &args, work[3 + number_of(mu, sigma)]);
  }
}

/* Local fat links of all directions, from links with their halo. */
static void fatten(const qk_gaugefield_t *links, const weights_t *w,
                   qk_gaugefield_t *const work[WORK], qk_gaugefield_t *fat) {
  for (int mu = 0; mu < 4; mu++) {
    make_a(links, w, mu, work);
    make_b(links, w, mu, work);
    qk_link_paths_args_t args = {
        .mu = mu, .own = w->c1, .weight = 1, .straight = w->straight, .out = direction(fat, mu)};
    for (int sigma = 0; sigma < 4; sigma++)
      if (sigma != mu) args.top[sigma] = work[3 + number_of(mu, sigma)]->v;
    run(links, &args, NULL);
  }
}

/* ---- projection ---- */

static qk_status_t name_singular(const qk_lattice_t *lat, int64_t link, qk_err_t *err) {
  int x[4];
  int64_t site = link / 4;
  for (int mu = 0; mu < 4; mu++) {
    x[mu] = lat->offset[mu] + (int)(site % lat->l[mu]);
    site /= lat->l[mu];
  }
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "the fat7 link in direction %c at site %d %d %d %d (x y z t) is singular: it "
                 "cannot be projected to U(3)",
                 "xyzt"[link % 4], x[0], x[1], x[2], x[3]);
}

static qk_status_t project_local(const qk_gaugefield_t *fat, qk_gaugefield_t *links,
                                 qk_err_t *err) {
  const qk_device_t *dev = links->dev;
  int64_t singular = -1;
  const qk_link_project_args_t args = {
      .lat = dev->geom->lat, .u = fat->v, .out = links->v, .singular = &singular};
  qk_status_t status = qk_dev_status(dev);
  if (status != QK_OK) return status;
  status = dev->ops->link_project(dev->ctx, &args);
  return status != QK_OK || singular < 0 ? status : name_singular(&args.lat, singular, err);
}

/* links = the projection of `fat`, and its halo. */
static qk_status_t project(const qk_gaugefield_t *fat, qk_gaugefield_t *links, qk_err_t *err) {
  const qk_status_t mine = project_local(fat, links, err);
  const qk_status_t status = qk_comm_agree(links->dev->geom->comm, mine, err);
  return status == QK_OK ? qk_gaugefield_exchange(links, 15) : status;
}

/* ---- all of it ---- */

static qk_status_t check(const qk_gaugefield_t *links, const qk_fat_recipe_t *r, qk_err_t *err) {
  if (links->v.halo != QK_FAT_HALO)
    return qk_fail(err, QK_BAD_ARGUMENT, "fat links: halo of the links = %d: must be %d",
                   links->v.halo, QK_FAT_HALO);
  if (r->kind == QK_FAT_ASQTAD && !(r->u0 > 0 && r->u0 < INFINITY))
    return qk_fail(err, QK_BAD_ARGUMENT, "u0 = %g: must be above 0", r->u0);
  if (r->kind == QK_FAT_HISQ && !isfinite(r->epsilon))
    return qk_fail(err, QK_BAD_ARGUMENT, "epsilon = %g: must be a number", r->epsilon);
  return QK_OK;
}

/* Of what has been asked for on queue 0, on all ranks. */
static qk_status_t finish(const qk_device_t *dev) {
  qk_dev_sync(dev);
  return qk_comm_agree(dev->geom->comm, qk_dev_status(dev), NULL);
}

static qk_status_t make_fat(qk_gaugefield_t *links, const qk_fat_recipe_t *r, const weights_t *w,
                            qk_gaugefield_t *work[WORK], qk_gaugefield_t *fat, qk_err_t *err) {
  qk_status_t status = QK_OK;
  for (int i = 0; i < WORK && status == QK_OK; i++)
    status = qk_gaugefield_create_sites(links->dev, 1, &work[i]);
  if (status != QK_OK) return status;
  if (r->kind == QK_FAT_HISQ) {
    fatten(links, &fat7, work, fat);
    status = project(fat, links, err);
    if (status != QK_OK) return status;
  }
  fatten(links, w, work, fat);
  return finish(links->dev);
}

static qk_status_t make_long(const qk_gaugefield_t *links, double factor, qk_gaugefield_t **made) {
  const qk_device_t *dev = links->dev;
  const qk_status_t status = qk_gaugefield_create(dev, 1, made);
  if (status != QK_OK) return status;
  const qk_link_long_args_t args = {
      .lat = dev->geom->lat, .u = links->v, .out = (*made)->v, .factor = factor};
  qk_dev_note(dev, dev->ops->link_long(dev->ctx, &args));
  return finish(dev);
}

/* made: F and L; also what there is of them when something fails. */
static qk_status_t make(qk_gaugefield_t *links, const qk_fat_recipe_t *recipe,
                        qk_gaugefield_t *made[2], qk_err_t *err) {
  const weights_t w = recipe->kind == QK_FAT_ASQTAD ? asqtad(recipe->u0) : hisq(recipe->epsilon);
  qk_gaugefield_t *work[WORK] = {NULL};
  qk_status_t status = qk_gaugefield_create(links->dev, 1, &made[0]);
  if (status != QK_OK) return status;
  status = make_fat(links, recipe, &w, work, made[0], err);
  for (int i = 0; i < WORK; i++) qk_gaugefield_destroy(work[i]);
  return status == QK_OK ? make_long(links, w.naik, &made[1]) : status;
}

qk_status_t qk_fat_links(qk_gaugefield_t *links, const qk_fat_recipe_t *recipe,
                         qk_gaugefield_t **fat, qk_gaugefield_t **long_links, qk_err_t *err) {
  qk_gaugefield_t *made[2] = {NULL};
  qk_status_t status = check(links, recipe, err);
  if (status != QK_OK) return status;
  status = make(links, recipe, made, err);
  if (status != QK_OK) {
    qk_gaugefield_destroy(made[1]);
    qk_gaugefield_destroy(made[0]);
    return qk_fail(err, status, "fat links: %s", qk_status_text(status));
  }
  *fat = made[0];
  *long_links = made[1];
  return QK_OK;
}

int64_t qk_fat_links_bytes(const qk_lattice_t *lat) {
  const int64_t links = (int64_t)(qk_gaugefield_bytes(lat, QK_FAT_HALO) +
                                  qk_gaugefield_staging_bytes(lat, QK_FAT_HALO));
  const int64_t one = (int64_t)(qk_gaugefield_bytes(lat, 1) + qk_gaugefield_staging_bytes(lat, 1));
  return links + one + WORK * one / 4; /* L is less than the work fields */
}
