#include "daemon/engine/hadron/gauss.h"

#include <math.h>

#include "daemon/base/mem.h"
#include "daemon/engine/gauge/fat/behind_links.h"
#include "daemon/engine/lattice/halo.h"
#include "proto/limits.h"

struct qk_gauss {
  const qk_device_t *dev;
  qk_work_t *work;
  qk_halo_t *halo;
  /* By precision; double always, the others when a field first needs them. */
  qk_links_t links[QK_PRECS];
  void *behind[3]; /* for colour vectors: those of the rank behind, in double */
};

static bool is_colour(const qk_gauss_t *g) {
  return g->dev->geom->ncomp == QK_COLOUR_COMPONENTS;
}

qk_status_t qk_gauss_check(double alpha, int64_t steps, qk_err_t *err) {
  if (!isfinite(alpha) || fabs(1 + 6 * alpha) < 1e-6)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "smearing alpha = %g: must be a finite number, and 1 + 6 alpha must not vanish",
                   alpha);
  if (steps < 0 || steps > QK_SMEAR_STEPS_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "smearing steps = %lld: must be 0 to %d", (long long)steps,
                   QK_SMEAR_STEPS_MAX);
  return QK_OK;
}

/* Memory for links in one precision: all reals in double, two rows otherwise. */
static qk_status_t links_alloc(const qk_device_t *dev, qk_prec_t prec, qk_links_t *links) {
  void *data = NULL;
  qk_links_t l = {.prec = prec, .reals = prec == QK_DOUBLE ? 18 : 12};
  size_t bytes = dev->ops->links_bytes(&dev->geom->lat, prec, l.reals);
  qk_status_t status = dev->ops->alloc(dev->ctx, bytes, &data);
  if (status) return status;
  l.data = data;
  *links = l;
  return QK_OK;
}

static size_t behind_bytes(const qk_gauss_t *g, int mu) {
  const qk_lattice_t *lat = &g->dev->geom->lat;
  return lat->split[mu] ? qk_stag_behind_bytes(lat, QK_DOUBLE, mu, 1) : 0;
}

/* Memory on the device, and of the host for the largest message and its answer. */
static qk_status_t behind_alloc(qk_gauss_t *g, char **room, size_t *most) {
  const qk_device_t *dev = g->dev;
  *most = 0;
  for (int mu = 0; mu < 3; mu++) {
    const size_t bytes = behind_bytes(g, mu);
    if (bytes == 0) continue;
    const qk_status_t status = dev->ops->alloc(dev->ctx, bytes, &g->behind[mu]);
    if (status) return status;
    if (bytes > *most) *most = bytes;
  }
  *room = *most > 0 ? qk_malloc(2 * *most) : NULL;
  return *most > 0 && !*room ? QK_NO_MEMORY : QK_OK;
}

static qk_status_t make_behind(qk_gauss_t *g) {
  const qk_device_t *dev = g->dev;
  char *room = NULL;
  size_t most;
  qk_status_t status = qk_comm_agree(dev->geom->comm, behind_alloc(g, &room, &most), NULL);
  for (int mu = 0; mu < 3 && status == QK_OK; mu++)
    if (g->behind[mu])
      qk_behind_links(dev, &g->links[QK_DOUBLE], 1, mu, g->behind[mu], room, room + most);
  qk_free(room);
  return status ? status : qk_dev_status(dev);
}

static qk_status_t make(qk_gauss_t *g, const qk_gaugefield_t *links) {
  const qk_device_t *dev = g->dev;
  qk_status_t status = qk_halo_create(dev, &g->halo);
  if (status) return status;
  status = links_alloc(dev, QK_DOUBLE, &g->links[QK_DOUBLE]);
  if (status) return status;
  const qk_links_from_field_args_t set = {
      .lat = dev->geom->lat, .u = links->v, .out = g->links[QK_DOUBLE]};
  status = dev->ops->links_from_field(dev->ctx, &set);
  return status ? status : dev->ops->queue_sync(dev->ctx, 0);
}

qk_status_t qk_gauss_create(const qk_device_t *dev, qk_work_t *work, const qk_gaugefield_t *links,
                            qk_gauss_t **gauss, qk_err_t *err) {
  qk_gauss_t *g = qk_calloc(1, sizeof *g);
  if (g) *g = (qk_gauss_t){.dev = dev, .work = work};
  qk_status_t status = qk_comm_agree(dev->geom->comm, g ? make(g, links) : QK_NO_MEMORY, err);
  if (!status && is_colour(g)) status = qk_comm_agree(dev->geom->comm, make_behind(g), err);
  if (status) {
    qk_gauss_destroy(g);
    return qk_fail(err, status, "links of the smearing: %s", qk_status_text(status));
  }
  *gauss = g;
  return QK_OK;
}

void qk_gauss_destroy(qk_gauss_t *gauss) {
  if (!gauss) return;
  for (int mu = 0; mu < 3; mu++)
    if (gauss->behind[mu]) gauss->dev->ops->free(gauss->dev->ctx, gauss->behind[mu]);
  for (int p = 0; p < QK_PRECS; p++)
    if (gauss->links[p].data) gauss->dev->ops->free(gauss->dev->ctx, (void *)gauss->links[p].data);
  qk_halo_destroy(gauss->halo);
  qk_free(gauss);
}

static qk_status_t links_for(qk_gauss_t *gauss, qk_prec_t prec) {
  const qk_device_t *dev = gauss->dev;
  if (gauss->links[prec].data) return QK_OK;
  if (is_colour(gauss)) return QK_BAD_ARGUMENT;
  qk_links_t links = {0};
  qk_status_t status = links_alloc(dev, prec, &links);
  if (status) return status;
  const qk_links_convert_args_t convert = {
      .lat = dev->geom->lat, .in = gauss->links[QK_DOUBLE], .out = links};
  status = dev->ops->links_convert(dev->ctx, &convert);
  if (status)
    dev->ops->free(dev->ctx, (void *)links.data);
  else
    gauss->links[prec] = links;
  return status;
}

/* out = c_own in + c_sum out + c_hop (sum over `directions`, bits 1, 2, 4, of both sides). The hop
 * of colour vectors takes what comes from behind with a minus: what comes from ahead and what comes
 * from behind are two calls. */
typedef struct colour_step {
  unsigned directions;
  double c_own, c_sum, c_hop;
} colour_step_t;

static uint32_t ahead_of(unsigned directions) {
  uint32_t hops = 0;
  for (int mu = 0; mu < 3; mu++) hops |= (directions >> mu & 1) << 2 * mu;
  return hops;
}

static qk_status_t step_colours(qk_gauss_t *gauss, const qk_gauss_args_t *args,
                                const colour_step_t *how) {
  const qk_device_t *dev = gauss->dev;
  const int32_t *split = args->lat.split;
  qk_stag_args_t a = {.lat = args->lat,
                      .out_parity = QK_FULL,
                      .hops = ahead_of(how->directions),
                      .c_hop = -how->c_hop,
                      .c_x = how->c_own,
                      .c_y = how->c_sum,
                      .links = {.fat = args->links},
                      .in = args->in,
                      .x = args->in,
                      .y = args->out,
                      .out = args->out};
  for (int mu = 0; mu < 3; mu++) a.links.behind[mu] = gauss->behind[mu];
  if (split[0] || split[1] || split[2]) {
    const qk_status_t begun = qk_halo_begin_stag(gauss->halo, &a);
    const qk_status_t arrived = qk_halo_end(gauss->halo); /* the neighbours wait either way */
    if (begun || arrived) return begun ? begun : arrived;
  }
  const qk_status_t status = dev->ops->stag(dev->ctx, &a);
  a.hops <<= 1; /* from behind */
  a.c_hop = how->c_hop;
  a.c_x = 1;
  a.c_y = 0;
  a.x = args->out;
  return status ? status : dev->ops->stag(dev->ctx, &a);
}

static qk_status_t step(qk_gauss_t *gauss, qk_gauss_args_t *args) {
  const qk_device_t *dev = gauss->dev;
  const int32_t *split = args->lat.split;
  if (is_colour(gauss))
    return step_colours(gauss, args, &(colour_step_t){7, args->c_own, 0, args->c_hop});
  args->region = QK_REGION_ALL;
  if (!split[0] && !split[1] && !split[2]) return dev->ops->gauss(dev->ctx, args);
  qk_status_t status = qk_halo_begin_gauss(gauss->halo, args);
  if (status) return status;
  args->region = QK_REGION_INTERIOR;
  status = dev->ops->gauss(dev->ctx, args);
  qk_status_t arrived =
      qk_halo_end(gauss->halo); /* the neighbours wait for our messages either way */
  if (status || arrived) return status ? status : arrived;
  args->region = QK_REGION_BOUNDARY;
  return dev->ops->gauss(dev->ctx, args);
}

/* Links and halo for fields like a. */
static qk_status_t prepare(qk_gauss_t *gauss, const qk_spinor_t *a) {
  const qk_status_t status = links_for(gauss, a->prec);
  return status ? status : qk_halo_reserve_gauss(gauss->halo, a);
}

/* And a second field. */
static qk_status_t reserve(qk_gauss_t *gauss, const qk_spinor_t *a, qk_field_t **other) {
  const qk_status_t status = prepare(gauss, a);
  return status ? status : qk_work_reserve(gauss->work, a->prec, a->nrhs, QK_FULL, other);
}

/* a is smeared; b: work space. */
static qk_status_t smear(qk_gauss_t *gauss, qk_spinor_t a, qk_spinor_t b, double alpha, int steps) {
  const qk_device_t *dev = gauss->dev;
  qk_gauss_args_t args = {.lat = dev->geom->lat,
                          .c_own = 1 / (1 + 6 * alpha),
                          .c_hop = alpha / (1 + 6 * alpha),
                          .links = gauss->links[a.prec],
                          .in = a,
                          .out = b};
  args.lat.split[3] = 0;
  for (int i = 0; i < steps; i++) {
    qk_status_t status = step(gauss, &args);
    if (status) return status;
    qk_spinor_t in = args.in;
    args.in = args.out;
    args.out = in;
  }
  if (steps % 2 == 0) return QK_OK;
  return dev->ops->blas(dev->ctx, &(qk_blas_args_t){.op = QK_BLAS_COPY, .f = {a, b}});
}

qk_status_t qk_gauss_apply(qk_gauss_t *gauss, qk_field_t *field, double alpha, int steps) {
  const qk_device_t *dev = gauss->dev;
  qk_spinor_t a = field->v;
  if (a.subset != QK_FULL) return QK_BAD_ARGUMENT;
  qk_status_t status = qk_gauss_check(alpha, steps, NULL);
  if (status || steps == 0) return status;

  qk_field_t *other = NULL;
  status = qk_comm_agree(dev->geom->comm, reserve(gauss, &a, &other), NULL);
  if (!status) status = smear(gauss, a, other->v, alpha, steps);
  qk_work_release(gauss->work, other);
  return status;
}

/* Fields of the same shape, one for each direction: the result, and factors of a product. */
enum { SHIFT_FIELDS = 3 };

/* out (+)= weight times the mean of the products of D_j of all orders of the directions, of in.
 * work: one field for each of them but one. */
static qk_status_t add_shifts(qk_gauss_t *gauss, unsigned directions, double weight, bool adds,
                              const qk_spinor_t *in, const qk_spinor_t *out,
                              qk_field_t *const *work) {
  const double share = weight / __builtin_popcount(directions);
  qk_gauss_args_t args = {
      .lat = gauss->dev->geom->lat, .links = gauss->links[QK_DOUBLE], .in = *in, .out = *out};
  qk_status_t status = QK_OK;
  args.lat.split[3] = 0;
  for (unsigned j = 1; j < 8 && status == QK_OK; j <<= 1) {
    if (!(directions & j)) continue;
    if (directions != j) {
      args.in = work[0]->v;
      status = add_shifts(gauss, directions & ~j, 1, false, in, &args.in, work + 1);
    }
    if (status != QK_OK) return status;
    status = step_colours(gauss, &args, &(colour_step_t){j, 0, adds, share / 2});
    adds = true;
  }
  return status;
}

static qk_status_t shift_into(qk_gauss_t *gauss, qk_spinor_t a, unsigned directions,
                              qk_field_t *const *work) {
  const qk_device_t *dev = gauss->dev;
  const qk_spinor_t sum = work[0]->v;
  const qk_status_t status = add_shifts(gauss, directions, 1, false, &a, &sum, work + 1);
  return status ? status
                : dev->ops->blas(dev->ctx, &(qk_blas_args_t){.op = QK_BLAS_COPY, .f = {a, sum}});
}

static qk_status_t shift(qk_gauss_t *gauss, qk_spinor_t a, unsigned directions) {
  qk_field_t *work[SHIFT_FIELDS] = {NULL};
  qk_status_t status = prepare(gauss, &a);
  for (int i = 0; i < __builtin_popcount(directions) && status == QK_OK; i++)
    status = qk_work_reserve(gauss->work, a.prec, a.nrhs, QK_FULL, &work[i]);
  status = qk_comm_agree(gauss->dev->geom->comm, status, NULL);
  status = status ? status : shift_into(gauss, a, directions, work);
  for (int i = SHIFT_FIELDS - 1; i >= 0; i--) qk_work_release(gauss->work, work[i]);
  return status;
}

qk_status_t qk_gauss_shift(qk_gauss_t *gauss, qk_field_t *field, unsigned directions) {
  if (directions == 0) return QK_OK;
  if (!is_colour(gauss) || field->v.subset != QK_FULL || field->v.prec != QK_DOUBLE ||
      directions > 7)
    return QK_BAD_ARGUMENT;
  return shift(gauss, field->v, directions);
}

qk_status_t qk_gauss_prepare(qk_gauss_t *gauss, const qk_field_t *field) {
  return qk_comm_agree(gauss->dev->geom->comm, prepare(gauss, &field->v), NULL);
}

qk_status_t qk_gauss_laplacian(qk_gauss_t *gauss, const qk_field_t *out, const qk_field_t *in) {
  qk_gauss_args_t args = {.lat = gauss->dev->geom->lat,
                          .c_own = 6,
                          .c_hop = -1,
                          .links = gauss->links[in->v.prec],
                          .in = in->v,
                          .out = out->v};
  args.lat.split[3] = 0;
  return step(gauss, &args);
}
