#include "daemon/engine/contract.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/gamma.h"
#include "proto/limits.h"

enum { HADRONS = 3, MESON_NUMBERS = 256 };

/* What the kernels make of a hadron at each time and momentum (cuda/ops.h). */
static const int open_numbers[HADRONS] = {MESON_NUMBERS, 16, 144};

int qk_channel_numbers(qk_channel_kind_t kind) {
  static const int numbers[HADRONS] = {1, 16, 144};
  return numbers[kind];
}

/* ---- arguments ------------------------------------------------------------------------------------- */

static qk_status_t check_field(const char *name, const qk_field_t *f, const qk_field_t *first,
                               qk_err_t *err) {
  const qk_spinor_t *v = &f->v;
  if (v->subset != QK_FULL || v->nrhs != 12)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "propagator %s: %d columns of sites %d: 12 columns of all sites (%d)", name,
                   v->nrhs, (int)v->subset, QK_FULL);
  if (v->prec == QK_HALF || v->prec != first->v.prec)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "propagator %s: precision %d: double (%d) or single (%d), the same for both",
                   name, (int)v->prec, QK_DOUBLE, QK_SINGLE);
  return QK_OK;
}

static qk_status_t check_channels(int nchannel, const qk_channel_id_t channel[], qk_err_t *err) {
  if (nchannel < 1) return qk_fail(err, QK_BAD_ARGUMENT, "channels = %d: at least 1", nchannel);
  for (int i = 0; i < nchannel; i++) {
    const qk_channel_id_t *c = &channel[i];
    if ((unsigned)c->kind >= HADRONS)
      return qk_fail(err, QK_BAD_ARGUMENT, "channel %d: kind = %d: 0 to %d", i, (int)c->kind,
                     HADRONS - 1);
    if (c->kind == QK_CHANNEL_MESON &&
        ((unsigned)c->sink >= QK_GAMMAS || (unsigned)c->source >= QK_GAMMAS))
      return qk_fail(err, QK_BAD_ARGUMENT, "channel %d: sink, source = %d, %d: 0 to %d", i, c->sink,
                     c->source, QK_GAMMAS - 1);
  }
  return QK_OK;
}

static qk_status_t check(const qk_contract_t *what, int nchannel, const qk_channel_id_t channel[],
                         qk_err_t *err) {
  const qk_geom_t *geom = what->a->dev->geom;
  qk_status_t status = check_field("a", what->a, what->a, err);
  if (!status) status = check_field("b", what->b, what->a, err);
  if (!status) status = check_channels(nchannel, channel, err);
  if (status) return status;
  if (what->nmom < 1 || what->nmom > QK_MOMENTA_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "momenta = %d: 1 to %d", what->nmom, QK_MOMENTA_MAX);
  for (int mu = 0; mu < 4; mu++)
    if (what->origin[mu] < 0 || what->origin[mu] >= geom->global[mu])
      return qk_fail(err, QK_BAD_ARGUMENT, "origin[%d] = %d: 0 to %d", mu, what->origin[mu],
                     geom->global[mu] - 1);
  return QK_OK;
}

/* ---- sums over space ------------------------------------------------------------------------------- */

static int phase_count(const qk_lattice_t *lat) {
  return lat->l[0] + lat->l[1] + lat->l[2];
}

/* Factors of the local coordinates, for each momentum. */
static void fill_phases(const qk_contract_t *what, double complex *phase) {
  const qk_lattice_t *lat = &what->a->dev->geom->lat;
  for (int m = 0; m < what->nmom; m++)
    for (int mu = 0; mu < 3; mu++)
      for (int x = 0; x < lat->l[mu]; x++) {
        const int64_t l = lat->global[mu], at = lat->offset[mu] + x - what->origin[mu];
        const double angle = -2 * acos(-1) * (double)(what->mom[m][mu] * at % l) / (double)l;
        *phase++ = cos(angle) + I * sin(angle);
      }
}

/* The factor of a fermion across the edge in t. */
static double complex edge(const qk_contract_t *what) {
  const double complex phase = what->phase_t[0] + I * what->phase_t[1];
  return phase == 0 ? 1 : phase;
}

/* local: [nmom][local T][n] of this rank, put into its places of global. Baryons that have crossed the
 * edge in t carry the factors of their three quarks. */
static void put_slices(const qk_contract_t *what, int hadron, const double complex *local,
                       double complex *global) {
  const qk_lattice_t *lat = &what->a->dev->geom->lat;
  const int n = open_numbers[hadron], total = lat->global[3];
  for (int m = 0; m < what->nmom; m++)
    for (int t = 0; t < lat->l[3]; t++) {
      const int after = lat->offset[3] + t - what->origin[3];
      const double complex one = hadron == QK_CHANNEL_MESON || after >= 0 ? 1 : cpow(edge(what), 3);
      double complex *to = global + ((size_t)m * total + (after + total) % total) * n;
      for (int i = 0; i < n; i++) to[i] = one * *local++;
    }
}

/* Device and host memory of a run, for the hadron with the most numbers. */
typedef struct scratch {
  double *phase, *sum;    /* device */
  double complex *local;  /* [nmom][local T][n] */
  double complex *global; /* [nmom][T][n] */
} scratch_t;

static void scratch_free(const qk_device_t *dev, scratch_t *s) {
  dev->ops->free(dev->ctx, s->phase);
  dev->ops->free(dev->ctx, s->sum);
  qk_free(s->local);
  qk_free(s->global);
}

static qk_status_t device_fail(const qk_device_t *dev, qk_status_t status, qk_err_t *err) {
  if (status) qk_fail(err, status, "contraction: %s", dev->ops->last_error(dev->ctx));
  return status;
}

static qk_status_t scratch_alloc(const qk_contract_t *what, int n, scratch_t *s, qk_err_t *err) {
  const qk_device_t *dev = what->a->dev;
  const qk_lattice_t *lat = &dev->geom->lat;
  const size_t factors = (size_t)what->nmom * (size_t)phase_count(lat);
  const size_t per_slice = (size_t)what->nmom * (size_t)n;
  const size_t local = per_slice * (size_t)lat->l[3];
  void *p = NULL;
  s->local = qk_malloc((local > factors ? local : factors) * sizeof *s->local);
  s->global = qk_malloc(per_slice * (size_t)lat->global[3] * sizeof *s->global);
  if (!s->local || !s->global)
    return qk_fail(err, QK_NO_MEMORY, "contraction: no memory for %zu numbers",
                   per_slice * (size_t)lat->global[3]);
  qk_status_t status = dev->ops->alloc(dev->ctx, local * sizeof *s->local, &p);
  s->sum = p;
  p = NULL;
  if (!status) status = dev->ops->alloc(dev->ctx, factors * sizeof *s->local, &p);
  s->phase = p;
  if (status) return device_fail(dev, status, err);
  fill_phases(what, s->local);
  status = dev->ops->copy(dev->ctx, s->phase, s->local, factors * sizeof *s->local,
                          QK_COPY_TO_DEVICE, 0);
  if (!status) status = dev->ops->queue_sync(dev->ctx, 0);
  return device_fail(dev, status, err);
}

/* s->global: the open numbers of a hadron, on all ranks. */
static qk_status_t contract_hadron(const qk_contract_t *what, int hadron, scratch_t *s,
                                   qk_err_t *err) {
  const qk_device_t *dev = what->a->dev;
  const qk_geom_t *geom = dev->geom;
  const size_t per_slice = (size_t)what->nmom * (size_t)open_numbers[hadron];
  const size_t local = per_slice * (size_t)geom->lat.l[3];
  const size_t global = per_slice * (size_t)geom->global[3];
  const qk_contract_args_t args = {.lat = geom->lat,
                                   .hadron = (qk_hadron_t)hadron,
                                   .a = what->a->v,
                                   .b = what->b->v,
                                   .nmom = what->nmom,
                                   .phase = s->phase,
                                   .out = s->sum};
  qk_status_t status = dev->ops->contract(dev->ctx, &args);
  if (!status)
    status =
        dev->ops->copy(dev->ctx, s->local, s->sum, local * sizeof *s->local, QK_COPY_TO_HOST, 0);
  if (!status) status = dev->ops->queue_sync(dev->ctx, 0);
  status = qk_comm_agree(geom->comm, device_fail(dev, status, err), err);
  if (status) return status;
  memset(s->global, 0, global * sizeof *s->global);
  put_slices(what, hadron, s->local, s->global);
  return qk_comm_sum(geom->comm, (double *)s->global, (int)(2 * global));
}

/* ---- channels -------------------------------------------------------------------------------------- */

/* The element of each row of a gamma matrix. */
typedef struct monomial {
  int column[4];
  double complex value[4];
} monomial_t;

static monomial_t monomial(int n) {
  double m[4][4][2];
  monomial_t g = {0};
  qk_gamma_matrix(n, m);
  for (int r = 0; r < 4; r++)
    for (int c = 0; c < 4; c++)
      if (m[r][c][0] != 0 || m[r][c][1] != 0) {
        g.column[r] = c;
        g.value[r] = m[r][c][0] + I * m[r][c][1];
      }
  return g;
}

/* tr[g5 S_b^+ g5 G_A S_a G_B] from open[be][al][ga][de] = conj(S_b[be al]) S_a[ga de], traced over
 * colours: be and ga are spins at x, joined by g5 G_A, de and al those of the source, by G_B g5. */
static double complex close_meson(const monomial_t *sink, const monomial_t *source,
                                  const double complex *open) {
  double complex sum = 0;
  for (int be = 0; be < 4; be++)
    for (int de = 0; de < 4; de++) {
      const int ga = sink->column[be], al = source->column[de];
      const double complex value =
          sink->value[be] * source->value[de] * open[((be * 4 + al) * 4 + ga) * 4 + de];
      sum += (be < 2) == (al < 2) ? value : -value;
    }
  return sum;
}

/* The channel's numbers from the open ones at n places (momenta and times). */
static void close_channel(const qk_channel_id_t *channel, size_t n, const double complex *open,
                          double complex *out) {
  if (channel->kind != QK_CHANNEL_MESON) {
    memcpy(out, open, n * (size_t)open_numbers[channel->kind] * sizeof *out);
    return;
  }
  const monomial_t sink = monomial(channel->sink), source = monomial(channel->source);
  for (size_t i = 0; i < n; i++) out[i] = close_meson(&sink, &source, open + i * MESON_NUMBERS);
}

qk_status_t qk_contract_run(const qk_contract_t *what, int nchannel,
                            const qk_channel_id_t channel[], double *out, qk_err_t *err) {
  const qk_device_t *dev = what->a->dev;
  qk_status_t status = check(what, nchannel, channel, err);
  if (status) return status;
  bool wanted[HADRONS] = {false};
  int most = 0;
  for (int i = 0; i < nchannel; i++) {
    wanted[channel[i].kind] = true;
    if (open_numbers[channel[i].kind] > most) most = open_numbers[channel[i].kind];
  }
  const size_t places = (size_t)what->nmom * (size_t)dev->geom->global[3];
  scratch_t s = {0};
  status = qk_comm_agree(dev->geom->comm, scratch_alloc(what, most, &s, err), err);
  for (int hadron = 0; !status && hadron < HADRONS; hadron++) {
    if (!wanted[hadron]) continue;
    status = contract_hadron(what, hadron, &s, err);
    double complex *to = (double complex *)out;
    for (int i = 0; !status && i < nchannel; i++) {
      if ((int)channel[i].kind == hadron) close_channel(&channel[i], places, s.global, to);
      to += places * (size_t)qk_channel_numbers(channel[i].kind);
    }
  }
  scratch_free(dev, &s);
  return status;
}
