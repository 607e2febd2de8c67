/* gauge_check.c: what a configuration is: plaquette, unitarity, digest; and whether that will do.
 */
#include <math.h>
#include <string.h>

#include "daemon/base/links/links.h"
#include "daemon/base/links/su3.h"
#include "daemon/base/mem.h"
#include "daemon/engine/gauge/gauge_format.h"

/* Per (t, z) slice, so that the order of summation does not depend on the number of threads. */
typedef struct slice {
  double plane[6];
  qk_links_sum_t links;
} slice_t;

/* NaN and Inf are as far from SU(3) as can be; fmax alone would lose a NaN. */
static double worst(double a, double b) {
  return isfinite(b) ? fmax(a, b) : INFINITY;
}

/* The six plaquettes at the site that stands at p of the extended lattice; step[mu] leads to its
 * neighbours, in links. */
static void check_planes(const double *p, const int64_t step[4], slice_t *s) {
  for (int mu = 0, plane = 0; mu < 4; mu++) {
    for (int nu = mu + 1; nu < 4; nu++, plane++) {
      double a[18], b[18];
      qk_su3_mul(a, p + 18 * mu, p + 18 * (step[mu] + nu));
      qk_su3_mul(b, p + 18 * nu, p + 18 * (step[nu] + mu));
      s->plane[plane] += qk_su3_re_dot(a, b);
    }
  }
}

static void check_slice(const qk_geom_t *geom, const double *links, const double *ext,
                        const int e[4], int z, int t, slice_t *s) {
  const qk_lattice_t *lat = &geom->lat;
  int x[4] = {0, 0, z, t};
  for (x[1] = 0; x[1] < lat->l[1]; x[1]++) {
    for (x[0] = 0; x[0] < lat->l[0]; x[0]++) {
      int64_t local = 0, site = 0, at = 0, step[4], stride = 4;
      for (int mu = 3; mu >= 0; mu--) {
        local = local * lat->l[mu] + x[mu];
        site = site * lat->global[mu] + lat->offset[mu] + x[mu];
        at = at * e[mu] + x[mu] + lat->split[mu];
      }
      for (int mu = 0; mu < 4; mu++) {
        bool wrap = !lat->split[mu] && x[mu] == lat->l[mu] - 1;
        step[mu] = wrap ? -stride * (lat->l[mu] - 1) : stride;
        stride *= e[mu];
      }
      const double *u = links + local * QK_GAUGE_SITE_REALS;
      const bool last = lat->offset[3] + t == lat->global[3] - 1;
      qk_links_add(u, (uint64_t)site, last, &s->links);
      check_planes(ext + at * QK_GAUGE_SITE_REALS, step, s);
    }
  }
}

static qk_status_t reduce(const qk_geom_t *geom, const slice_t *slice, int nslice,
                          qk_gauge_check_t *check) {
  double sum[9] = {0}, high[2], links = 4 * (double)geom->volume;
  qk_links_sum_t all = {0};
  for (int i = 0; i < nslice; i++) {
    for (int k = 0; k < 6; k++) sum[k] += slice[i].plane[k];
    qk_links_join(&all, &slice[i].links);
  }
  sum[6] = all.trace;
  sum[7] = all.closing;
  sum[8] = all.zeros;
  high[0] = all.unitarity;
  high[1] = all.determinant;
  qk_status_t status = qk_comm_sum(geom->comm, sum, 9);
  if (status != QK_OK) return status;
  status = qk_comm_max(geom->comm, high, 2);
  if (status != QK_OK) return status;
  status = qk_comm_sum_u64(geom->comm, &all.digest, 1);
  if (status != QK_OK) return status;
  all.closing = sum[7];
  all.zeros = sum[8];
  const double stray = qk_links_are_torn(&all); /* a zero is as far from SU(3) as this */
  *check = (qk_gauge_check_t){.unitarity = worst(stray, high[0]),
                              .determinant = worst(stray, high[1]),
                              .link_trace = sum[6] / (3 * links),
                              .open_boundary = qk_links_are_open(&all),
                              .digest = all.digest};
  for (int k = 0; k < 6; k++) {
    check->plane[k] = sum[k] / (3 * (double)geom->volume);
    check->plaquette += check->plane[k] / 6;
  }
  return QK_OK;
}

qk_status_t qk_gauge_measure(const qk_geom_t *geom, const double *links, qk_gauge_check_t *check,
                             qk_err_t *err) {
  const qk_lattice_t *lat = &geom->lat;
  int e[4] = {lat->l[0], lat->l[1], lat->l[2], lat->l[3]}, nz = e[2], nslice = e[2] * e[3];
  bool split = lat->split[0] || lat->split[1] || lat->split[2] || lat->split[3];
  double *ext = NULL;
  slice_t *slice = qk_calloc((size_t)nslice, sizeof *slice);
  qk_err_t cause = {0};
  qk_status_t status = QK_OK;
  if (slice == NULL) status = qk_fail(&cause, QK_NO_MEMORY, "no memory for %d sums", nslice);
  status = qk_comm_agree(geom->comm, status, &cause);
  if (status == QK_OK && split) status = qk_gauge_extend(geom, links, &ext, e, &cause);
  if (status == QK_OK) {
    const double *seen = split ? ext : links; /* without a halo it is the field itself */
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < nslice; i++) check_slice(geom, links, seen, e, i % nz, i / nz, &slice[i]);
    status = reduce(geom, slice, nslice, check);
    if (status != QK_OK) qk_fail(&cause, status, "%s", qk_status_text(status));
  }
  qk_free(ext);
  qk_free(slice);
  return status == QK_OK ? QK_OK : qk_fail(err, status, "%s", cause.text);
}

qk_status_t qk_gauge_judge(const qk_gauge_info_t *info, const qk_gauge_check_t *check, bool open,
                           qk_err_t *err) {
  double su3 = qk_links_limit(info->bits), sums = info->bits == 32 ? 1e-5 : 1e-10;
  if (check->open_boundary && !open)
    return qk_fail(err, QK_NOT_UNITARY,
                   "open boundary: all links U_t from t = %d to t = 0 are zero; give open = C_F, a "
                   "parameter of actions that have such a boundary",
                   info->dims[3] - 1);
  if (!(check->unitarity <= su3) || !(check->determinant <= su3)) {
    return qk_fail(
        err, QK_NOT_UNITARY,
        "links are not SU(3): largest |U^+U - 1| = %.3g, largest |det U - 1| = %.3g, the "
        "limit for %d bit links is %g",
        check->unitarity, check->determinant, info->bits, su3);
  }
  const struct {
    const char *name;
    bool stated;
    double header, unit, found;
  } sum[2] = {
      {"plaquette", info->has_plaquette, info->plaquette, info->plaquette_unit, check->plaquette},
      {"link trace", info->has_link_trace, info->link_trace, info->link_trace_unit,
       check->link_trace}};
  for (int i = 0; i < 2; i++) {
    double limit = sums + 2 * sum[i].unit;
    if (!sum[i].stated || fabs(sum[i].found - sum[i].header) <= limit) continue;
    return qk_fail(err, QK_BAD_PLAQUETTE,
                   "%s of the links is %.12g, the header states %.12g: more than %.1g apart",
                   sum[i].name, sum[i].found, sum[i].header, limit);
  }
  return QK_OK;
}
