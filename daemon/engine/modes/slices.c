#include "daemon/engine/modes/slices.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/modes/laplacian.h"

enum { B = QK_EIGEN_BLOCK, COLOURS = 3, SITE = B * COLOURS * 2 /* numbers of a block */ };

struct qk_slices {
  const qk_geom_t *geom;
  qk_lanczos_params_t params;
  qk_kept_t *made;
  double *links; /* smeared; host */
  double *block; /* [site][column][colour][re, im]; host */
  qk_laplacian_t *laplacian;
  qk_lanczos_t *lanczos; /* of slice t; NULL: it has not begun */
  int t;
  bool finished;
};

static int64_t sites_in_space(const qk_geom_t *geom) {
  return geom->local_volume / geom->lat.l[3];
}

int64_t qk_slices_bytes(const qk_geom_t *geom, const qk_link_smear_t *links,
                        const qk_lanczos_params_t *params) {
  const qk_geom_t slice = qk_laplacian_geom(geom, 0);
  const int64_t smearing = qk_link_smear_bytes(&geom->lat, links);
  const int64_t work = 3 * (int64_t)qk_field_bytes(&slice, params->prec, B, QK_FULL);
  const int64_t space =
      qk_lanczos_bytes(&slice, QK_FULL, params) + work + qk_laplacian_bytes(geom, params->prec);
  return smearing > space ? smearing : space;
}

static qk_status_t create(qk_slices_t *s, qk_loaded_t *setup, const qk_link_smear_t *links,
                          qk_err_t *err) {
  s->block = qk_malloc((size_t)sites_in_space(s->geom) * SITE * sizeof *s->block);
  qk_status_t status = qk_comm_agree(s->geom->comm, s->block ? QK_OK : QK_NO_MEMORY, err);
  if (status != QK_OK) return status;
  status = qk_smear_cache_links(setup->smear, links, &s->links, err);
  if (status != QK_OK) return status;
  return qk_laplacian_create(&setup->dev, s->links, &s->laplacian, err);
}

qk_status_t qk_slices_create(qk_loaded_t *setup, const qk_link_smear_t *links,
                             const qk_lanczos_params_t *params, qk_kept_t *made, int first,
                             qk_slices_t **slices, qk_err_t *err) {
  qk_slices_t *s = qk_calloc(1, sizeof *s);
  qk_status_t status = qk_comm_agree(setup->geom.comm, s ? QK_OK : QK_NO_MEMORY, err);
  if (status == QK_OK) {
    *s = (qk_slices_t){.geom = &setup->geom, .params = *params, .made = made, .t = first};
    s->params.restrict_noise = qk_laplacian_restrict;
    status = create(s, setup, links, err);
  }
  if (status == QK_OK)
    *slices = s;
  else
    qk_slices_destroy(s);
  return status;
}

void qk_slices_destroy(qk_slices_t *s) {
  if (!s) return;
  qk_lanczos_destroy(s->lanczos);
  qk_laplacian_destroy(s->laplacian);
  qk_free(s->links);
  qk_free(s->block);
  qk_free(s);
}

/* ---- phases ---------------------------------------------------------------------------------- */

/* Number of local site n of the slice among all of it. */
static int64_t global_site(const qk_lattice_t *lat, int64_t n) {
  int64_t x[3], rest = n;
  for (int j = 0; j < 3; j++) {
    x[j] = lat->offset[j] + rest % lat->l[j];
    rest /= lat->l[j];
  }
  return (x[2] * lat->global[1] + x[1]) * lat->global[0] + x[0];
}

static double complex number_of(const qk_slices_t *s, int column, int64_t k) {
  const double *at = s->block + k / COLOURS * SITE + column * COLOURS * 2 + k % COLOURS * 2;
  return at[0] + I * at[1];
}

/* The number that the phase is taken of, of those of this rank: its place among all, or -1. */
static int64_t find_large(const qk_slices_t *s, int column, int64_t sites, double complex *z) {
  const qk_lattice_t *lat = &s->geom->lat;
  const double all = (double)COLOURS * lat->global[0] * lat->global[1] * lat->global[2];
  for (int64_t k = 0; k < COLOURS * sites; k++) {
    *z = number_of(s, column, k);
    if (cabs(*z) >= 1 / sqrt(all)) return COLOURS * global_site(lat, k / COLOURS) + k % COLOURS;
  }
  return -1;
}

/* The columns of the block, made real where they are said to be. */
static qk_status_t find_phases(const qk_slices_t *s, int64_t sites, double complex factor[B]) {
  qk_comm_t *comm = s->geom->comm;
  double first[B], all[B], part[B][2] = {{0}};
  double complex z[B];
  for (int i = 0; i < B; i++) {
    const int64_t place = find_large(s, i, sites, &z[i]);
    first[i] = place < 0 ? -INFINITY : -(double)place;
    all[i] = first[i];
  }
  const qk_status_t found = qk_comm_max(comm, all, B);
  if (found != QK_OK) return found;
  for (int i = 0; i < B; i++)
    if (isfinite(first[i]) && first[i] == all[i]) {
      const double complex unit = conj(z[i]) / cabs(z[i]);
      part[i][0] = creal(unit);
      part[i][1] = cimag(unit);
    }
  const qk_status_t status = qk_comm_sum(comm, &part[0][0], 2 * B);
  for (int i = 0; i < B; i++) factor[i] = part[i][0] + I * part[i][1];
  return status;
}

/* ---- into what is kept ----------------------------------------------------------------------- */

/* The columns of the block times the phases. */
static void turn(const qk_slices_t *s, int64_t sites, const double complex factor[B]) {
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < sites * SITE / 2; k++) {
    double *at = s->block + 2 * k;
    const double complex z = (at[0] + I * at[1]) * factor[k / COLOURS % B];
    at[0] = creal(z);
    at[1] = cimag(z);
  }
}

/* As one float, or as a float and what is left. A loop over reals: of one over complex numbers
 * gcc 12 makes zeros of what is left. */
static void put_block(const qk_slices_t *s, int b, int64_t sites) {
  const int64_t first = (s->t - s->geom->lat.offset[3]) * sites * SITE;
  float *high = s->made->part[b] + first, *low = high + s->geom->local_volume * SITE;
  const double *x = s->block;
  for (int64_t k = 0; k < sites * SITE; k++) high[k] = (float)x[k];
  if (s->made->h.planes == 1) return;
  for (int64_t k = 0; k < sites * SITE; k++) low[k] = (float)(x[k] - high[k]);
}

static qk_status_t collect_block(const qk_slices_t *s, const qk_eigen_t *e, int b) {
  const int64_t sites = qk_laplacian_sites(s->laplacian);
  double complex factor[B];
  qk_status_t status = qk_laplacian_get(s->laplacian, e->block[b], s->block);
  status = qk_comm_agree(s->geom->comm, status, NULL);
  if (status != QK_OK) return status;
  status = find_phases(s, sites, factor);
  if (status != QK_OK || sites == 0) return status;
  turn(s, sites, factor);
  put_block(s, b, sites);
  return QK_OK;
}

static qk_status_t collect(const qk_slices_t *s, const qk_eigen_t *e) {
  double *number = s->made->number + 2 * (size_t)s->t * (size_t)e->n;
  qk_status_t status = QK_OK;
  for (int b = 0; b < e->nblock && status == QK_OK; b++) status = collect_block(s, e, b);
  for (int i = 0; i < e->n; i++) {
    number[2 * i] = e->value[i];
    number[2 * i + 1] = e->residual[i];
  }
  s->made->restarts += e->restarts;
  return status;
}

/* ---- the computation ------------------------------------------------------------------------- */

static qk_status_t begin(qk_slices_t *s, qk_err_t *err) {
  qk_status_t status = qk_laplacian_go(s->laplacian, s->t, s->params.prec, err);
  if (status != QK_OK) return status;
  qk_operator_t *op = qk_laplacian_operator(s->laplacian);
  return qk_lanczos_create(op, op->work, &s->params, &s->lanczos, err);
}

static qk_status_t end(qk_slices_t *s, qk_err_t *err) {
  qk_eigen_t *e = NULL;
  const qk_status_t found = qk_lanczos_vectors(s->lanczos, &e, err);
  const qk_status_t status = found == QK_OK ? collect(s, e) : found;
  qk_eigen_destroy(e);
  qk_lanczos_destroy(s->lanczos);
  s->lanczos = NULL;
  if (status != QK_OK) return status;
  s->t++;
  s->finished = true;
  return QK_OK;
}

qk_status_t qk_slices_step(qk_slices_t *s, qk_err_t *err) {
  qk_status_t status;
  s->finished = false;
  if (!s->lanczos)
    status = begin(s, err);
  else if (qk_lanczos_news(s->lanczos).over)
    status = end(s, err);
  else
    status = qk_lanczos_step(s->lanczos, err);
  if (status != QK_OK) qk_err_prefix(err, "time slice %d", s->t);
  return status;
}

qk_slices_news_t qk_slices_news(const qk_slices_t *s) {
  const int64_t *done = qk_laplacian_operator(s->laplacian)->applications;
  qk_slices_news_t news = {.over = s->t == s->geom->global[3],
                           .finished = s->finished,
                           .done = s->t,
                           .applications = done[s->params.prec]};
  if (!s->lanczos) return news;
  const qk_lanczos_news_t lanczos = qk_lanczos_news(s->lanczos);
  news.restarts = lanczos.restarts;
  news.converged = lanczos.converged;
  return news;
}
