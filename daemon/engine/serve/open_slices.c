#include "daemon/engine/serve/open_slices.h"

#include <math.h>
#include <string.h>

#include "daemon/engine/lattice/scalars.h"
#include "daemon/engine/lattice/slice.h"

static int last_slice(const qk_loaded_t *s) {
  return s->geom.global[3] - 1;
}

static bool is_inside(const qk_loaded_t *s, int t) {
  return t > 0 && t < last_slice(s);
}

/* ---- before a source is made ----------------------------------------------------------------- */

qk_status_t qk_open_slices_smearing(const qk_loaded_t *setup, const qk_smearing_t *smearing,
                                    qk_err_t *err) {
  const qk_link_smear_t *links = &smearing->links;
  const bool none = links->kind == QK_LINK_SMEAR_NONE || links->steps == 0;
  const bool in_space = links->kind != QK_LINK_SMEAR_HYP && links->spatial;
  if (!setup->check.open_boundary || !qk_smearing_any(smearing) || none || in_space) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "smearing of links in all directions: links from t = %d to t = 0 are zero (open "
                 "boundary); smear them in space alone",
                 last_slice(setup));
}

qk_status_t qk_open_slices_fill(const qk_loaded_t *setup, const qk_fill_t *fill, qk_err_t *err) {
  const int t = fill->site[3];
  if (!setup->op->open) return QK_OK;
  const qk_status_t status = qk_open_slices_smearing(setup, &fill->smear, err);
  if (status != QK_OK || fill->upload || t < 0) return status;
  bool inside = is_inside(setup, t);
  for (int at = t; fill->t_every > 0 && at <= last_slice(setup) && !inside; at += fill->t_every)
    inside = is_inside(setup, at);
  if (inside || t > last_slice(setup)) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "source on t = %d: the boundary is open (parameter open), and fields are 0 on t = "
                 "0 and t = %d; must be 1 to %d",
                 t, last_slice(setup), last_slice(setup) - 1);
}

/* ---- fields ---------------------------------------------------------------------------------- */

qk_status_t qk_open_slices_clear(const qk_loaded_t *setup, const qk_field_t *field) {
  qk_field_t *part;
  if (!setup->op->open) return QK_OK;
  qk_status_t status = qk_work_reserve(setup->work, QK_DOUBLE, 1, QK_FULL, &part);
  if (status != QK_OK) return status;
  qk_slice_clear_outer(field, part);
  qk_work_release(setup->work, part);
  return qk_dev_status(&setup->dev);
}

/* |field|^2 on the two slices. */
static qk_status_t find_norms(const qk_loaded_t *s, const qk_field_t *field, double norm2[2]) {
  qk_field_t *part;
  qk_scalars_t found = {0};
  qk_status_t status = qk_work_reserve(s->work, QK_DOUBLE, 1, QK_FULL, &part);
  if (status != QK_OK) return status;
  status = qk_scalars_init(&found, &s->dev, 2, 1);
  for (int k = 0; k < 2 && status == QK_OK; k++) {
    qk_slice_cut(field, k * last_slice(s), part);
    qk_scalars_reduce(&found, k, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {part->v}});
  }
  if (status == QK_OK) {
    qk_scalars_fetch(&found, 0, 2);
    status = qk_dev_status(&s->dev);
  }
  for (int k = 0; k < 2 && status == QK_OK; k++) norm2[k] = qk_scalars_host(&found, k, 0)[0];
  qk_scalars_fini(&found);
  qk_work_release(s->work, part);
  return status;
}

qk_status_t qk_open_slices_source(const qk_loaded_t *setup, const qk_fill_t *fill,
                                  const qk_field_t *field, qk_err_t *verdict) {
  double norm2[2];
  if (!setup->op->open) return QK_OK;
  if (!fill->upload) return qk_open_slices_clear(setup, field);
  const qk_status_t status = find_norms(setup, field, norm2);
  if (status != QK_OK) return status;
  for (int k = 0; k < 2; k++) {
    if (!(norm2[k] > 0)) continue; /* what is no number is the solver's to tell */
    qk_fail(verdict, QK_BAD_ARGUMENT,
            "the source is not 0 on t = %d (norm %.3g): the boundary is open (parameter open), and "
            "fields are 0 on t = 0 and t = %d",
            k * last_slice(setup), sqrt(norm2[k]), last_slice(setup));
    break;
  }
  return QK_OK;
}
