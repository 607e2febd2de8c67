/*
 * improved.c: asqtad and HISQ fermions, M = m - 1/2 hop = m + D/2 with the hop of stencil.h over
 * fat and long links (gauge/fat/fat_links.h): K. Orginos, D. Toussaint, R. L. Sugar, Phys. Rev. D
 * 60 (1999) 054503; E. Follana et al., Phys. Rev. D 75 (2007) 054502.
 */
#include <math.h>

#include "daemon/engine/action/local.h"
#include "daemon/engine/action/staggered/stencil.h"
#include "daemon/engine/gauge/fat/fat_links.h"

/* The parameters tell which. */
static qk_fat_recipe_t recipe_of(const qk_values_t *v) {
  const double u0 = qk_value(v, "u0");
  if (!isnan(u0)) return (qk_fat_recipe_t){.kind = QK_FAT_ASQTAD, .u0 = u0};
  return (qk_fat_recipe_t){.kind = QK_FAT_HISQ, .epsilon = qk_value(v, "epsilon")};
}

static qk_status_t local(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err) {
  (void)err;
  qk_local_number(qk_value(&in->params->values, "mass"), parts);
  parts->flops = 6; /* of a colour vector */
  return QK_OK;
}

/* From links that are worked on, which it takes, to those that the hop is made of. May fail on one
 * rank alone. */
static qk_status_t flatten(qk_gaugefield_t *field, qk_links_t *links) {
  const qk_device_t *dev = field->dev;
  const qk_lattice_t *lat = &dev->geom->lat;
  void *data = NULL;
  qk_status_t status = dev->ops->alloc(dev->ctx, dev->ops->links_bytes(lat, QK_DOUBLE, 18), &data);
  if (status == QK_OK) {
    *links = (qk_links_t){.data = data, .prec = QK_DOUBLE, .reals = 18};
    const qk_links_from_field_args_t args = {.lat = *lat, .u = field->v, .out = *links};
    qk_dev_note(dev, dev->ops->links_from_field(dev->ctx, &args));
    qk_dev_sync(dev);
    status = qk_dev_status(dev);
  }
  qk_gaugefield_destroy(field);
  return status;
}

static qk_status_t improve(const qk_action_in_t *in, qk_gaugefield_t *thin,
                           const qk_fat_recipe_t *recipe, qk_gaugefield_t *made[2], qk_err_t *err) {
  const qk_status_t mine = qk_gaugefield_import(thin, in->links);
  const qk_status_t status = qk_comm_agree(in->dev->geom->comm, mine, err);
  return status == QK_OK ? qk_fat_links(thin, recipe, &made[0], &made[1], err) : status;
}

/* Fat and long links of the links in host memory; nothing else of the operator is there yet. */
static qk_status_t fatten(const qk_action_in_t *in, qk_gaugefield_t *made[2], qk_err_t *err) {
  const qk_fat_recipe_t recipe = recipe_of(&in->params->values);
  qk_gaugefield_t *thin;
  qk_status_t status = qk_gaugefield_create(in->dev, QK_FAT_HALO, &thin);
  if (status != QK_OK) return status;
  status = improve(in, thin, &recipe, made, err);
  qk_gaugefield_destroy(thin);
  return status;
}

/* A neighbour must have what hops of three sites lead to. */
static qk_status_t check_extents(const qk_lattice_t *lat, qk_err_t *err) {
  for (int mu = 0; mu < 4; mu++)
    if (lat->split[mu] && lat->l[mu] < QK_STAG_REACH)
      return qk_fail(err, QK_BAD_ARGUMENT,
                     "local extent %d in direction %c: long links need at least %d where ranks "
                     "share a direction",
                     lat->l[mu], "xyzt"[mu], QK_STAG_REACH + 1); /* extents are even */
  return QK_OK;
}

static qk_status_t links(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err) {
  qk_gaugefield_t *made[2] = {NULL};
  qk_links_t flat[2] = {{.data = NULL}, {.data = NULL}};
  qk_status_t status = check_extents(&in->dev->geom->lat, err);
  if (status != QK_OK) return status;
  status = fatten(in, made, err);
  if (status != QK_OK) return status;
  for (int i = 0; i < 2; i++) {
    const qk_status_t one = flatten(made[i], &flat[i]);
    status = status == QK_OK ? one : status;
  }
  status = qk_comm_agree(in->dev->geom->comm, status, err);
  if (status == QK_OK) return qk_stencil_links(in->dev, flat[0], flat[1], parts, err);
  for (int i = 0; i < 2; i++)
    if (flat[i].data) in->dev->ops->free(in->dev->ctx, (void *)flat[i].data);
  return status;
}

static int64_t links_bytes(const qk_ops_t *ops, const qk_lattice_t *lat,
                           const qk_action_params_t *params, bool making) {
  const int64_t stay = qk_stencil_bytes(ops, lat, params->want, true, false);
  if (!making) return stay;
  const int64_t fattening = qk_fat_links_bytes(lat) - stay; /* when nothing of it is there */
  const int64_t given = qk_stencil_bytes(ops, lat, params->want, true, true);
  return fattening > given ? fattening : given;
}

static const char *const method[] = {"cg", NULL};

#define IMPROVED                                                                                   \
  .adjoint = QK_ADJOINT_ANTI, .chirality = QK_CHIRALITY_NONE, .method = method, .local = local,    \
  .links = links, .links_bytes = links_bytes, .from_host = true, .stencil = &qk_stencil_fat_long

const qk_action_t qk_action_asqtad = {.name = "asqtad", IMPROVED};
const qk_action_t qk_action_hisq = {.name = "hisq", IMPROVED};
