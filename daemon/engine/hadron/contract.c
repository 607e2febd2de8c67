#include "daemon/engine/hadron/contract.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/lattice/gamma.h"
#include "proto/limits.h"

enum { HADRONS = 3, MESON_NUMBERS = 256 };

/* What the kernels make of a hadron at each time and momentum (cuda/ops.h). */
static const int open_numbers[HADRONS] = {MESON_NUMBERS, 16, 144};

int qk_channel_numbers(qk_channel_kind_t kind) {
  static const int numbers[] = {1, 16, 144, 1}; /* the last one of colour vectors */
  return numbers[kind];
}

/* ---- arguments ------------------------------------------------------------------------------- */

static qk_status_t check_field(const char *name, const qk_field_t *f, const qk_field_t *first,
                               qk_err_t *err) {
  const qk_spinor_t *v = &f->v;
  if (v->subset != QK_FULL || v->nrhs != 12)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "propagator %s: %d columns of sites %d: 12 columns of all sites (%d)", name,
                   v->nrhs, (int)v->subset, QK_FULL);
  if ((v->prec != QK_DOUBLE && v->prec != QK_SINGLE) || v->prec != first->v.prec)
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
      return qk_fail(err, QK_BAD_ARGUMENT, "channel %d: kind = %d: must be 0 to %d", i,
                     (int)c->kind, HADRONS - 1);
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
  if (status) return status;
  status = check_field("b", what->b, what->a, err);
  if (status) return status;
  status = check_channels(nchannel, channel, err);
  if (status) return status;
  if (what->nmom < 1 || what->nmom > QK_MOMENTA_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "momenta = %d: must be 1 to %d", what->nmom,
                   QK_MOMENTA_MAX);
  for (int mu = 0; mu < 4; mu++)
    if (what->origin[mu] < 0 || what->origin[mu] >= geom->global[mu])
      return qk_fail(err, QK_BAD_ARGUMENT, "origin[%d] = %d: must be 0 to %d", mu, what->origin[mu],
                     geom->global[mu] - 1);
  return QK_OK;
}

/* ---- sums over space ------------------------------------------------------------------------- */

static int phase_count(const qk_lattice_t *lat) {
  return lat->l[0] + lat->l[1] + lat->l[2];
}

void qk_contract_phases(const qk_lattice_t *lat, int nmom, const int (*mom)[3], const int origin[4],
                        double *phase) {
  for (int m = 0; m < nmom; m++)
    for (int mu = 0; mu < 3; mu++)
      for (int x = 0; x < lat->l[mu]; x++) {
        const int64_t l = lat->global[mu], at = lat->offset[mu] + x - origin[mu];
        const double angle = -2 * acos(-1) * (double)(mom[m][mu] * at % l) / (double)l;
        *phase++ = cos(angle);
        *phase++ = sin(angle);
      }
}

/* The factor of a fermion across the edge in t. */
static double complex edge(const qk_contract_t *what) {
  const double complex phase = what->phase_t[0] + I * what->phase_t[1];
  return phase == 0 ? 1 : phase;
}

/* local: [nmom][local T][n] of this rank, copied to its places in global. Baryons that have
 * crossed the edge in t get the boundary factors of their three quarks. */
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

/* local: what kernels make; global: [nmom][T][n] of one hadron after the other. */
struct qk_contractor {
  const qk_device_t *dev;
  size_t phases, locals, globals;          /* numbers that there is room for */
  double *phase, *local;                   /* device */
  double complex *phase_host, *local_host; /* pinned */
  double complex *global;
  bool begun;
};

qk_status_t qk_contractor_create(const qk_device_t *dev, qk_contractor_t **contractor) {
  qk_contractor_t *c = qk_calloc(1, sizeof *c);
  if (!c) return QK_NO_MEMORY;
  c->dev = dev;
  *contractor = c;
  return QK_OK;
}

static void drop_room(qk_contractor_t *c) {
  const qk_device_t *dev = c->dev;
  if (c->local_host) dev->ops->free_host(dev->ctx, c->local_host);
  if (c->local) dev->ops->free(dev->ctx, c->local);
  if (c->phase_host) dev->ops->free_host(dev->ctx, c->phase_host);
  if (c->phase) dev->ops->free(dev->ctx, c->phase);
  qk_free(c->global);
  *c = (qk_contractor_t){.dev = dev};
}

void qk_contractor_destroy(qk_contractor_t *contractor) {
  if (!contractor) return;
  if (contractor->begun) contractor->dev->ops->queue_sync(contractor->dev->ctx, 0);
  drop_room(contractor);
  qk_free(contractor);
}

/* n complex numbers on the device, and as many beside them. */
static qk_status_t make_pair(const qk_device_t *dev, size_t n, double **device,
                             double complex **host) {
  void *p = NULL;
  qk_status_t status = dev->ops->alloc(dev->ctx, n * sizeof **host, &p);
  if (status) return status;
  *device = p;
  status = dev->ops->alloc_host(dev->ctx, n * sizeof **host, &p);
  if (!status) *host = p;
  return status;
}

static qk_status_t device_fail(const qk_device_t *dev, qk_status_t status, qk_err_t *err) {
  if (status) qk_fail(err, status, "contraction: %s", dev->ops->last_error(dev->ctx));
  return status;
}

static qk_status_t make_room(qk_contractor_t *c, size_t phases, size_t locals, size_t globals,
                             qk_err_t *err) {
  if (phases <= c->phases && locals <= c->locals && globals <= c->globals) return QK_OK;
  drop_room(c);
  c->global = qk_malloc(globals * sizeof *c->global);
  if (!c->global)
    return qk_fail(err, QK_NO_MEMORY, "contraction: no memory for %zu numbers", globals);
  qk_status_t status = make_pair(c->dev, phases, &c->phase, &c->phase_host);
  if (!status) status = make_pair(c->dev, locals, &c->local, &c->local_host);
  if (status) {
    device_fail(c->dev, status, err);
    drop_room(c);
    return status;
  }
  c->phases = phases;
  c->locals = locals;
  c->globals = globals;
  return QK_OK;
}

/* Which hadrons the channels want. */
static void find_wanted(int nchannel, const qk_channel_id_t channel[], bool wanted[HADRONS]) {
  memset(wanted, 0, HADRONS * sizeof *wanted);
  for (int i = 0; i < nchannel; i++) wanted[channel[i].kind] = true;
}

/* Numbers at each time and momentum of those of the first n hadrons that are wanted. */
static int numbers_of(const bool wanted[HADRONS], int n) {
  int numbers = 0;
  for (int hadron = 0; hadron < n; hadron++) numbers += wanted[hadron] ? open_numbers[hadron] : 0;
  return numbers;
}

/* Times and momenta of this rank. */
static size_t local_places(const qk_contract_t *what) {
  return (size_t)what->nmom * (size_t)what->a->dev->geom->lat.l[3];
}

static qk_status_t launch(const qk_contractor_t *c, const qk_contract_t *what, size_t phases,
                          const bool wanted[HADRONS]) {
  const qk_device_t *dev = c->dev;
  const size_t places = local_places(what);
  const size_t all = places * (size_t)numbers_of(wanted, HADRONS);
  qk_status_t status = dev->ops->copy(dev->ctx, c->phase, c->phase_host,
                                      phases * sizeof *c->phase_host, QK_COPY_TO_DEVICE, 0);
  for (int hadron = 0; !status && hadron < HADRONS; hadron++) {
    const qk_contract_args_t args = {.lat = dev->geom->lat,
                                     .hadron = (qk_hadron_t)hadron,
                                     .a = what->a->v,
                                     .b = what->b->v,
                                     .nmom = what->nmom,
                                     .phase = c->phase,
                                     .out = c->local +
                                            2 * places * (size_t)numbers_of(wanted, hadron)};
    if (wanted[hadron]) status = dev->ops->contract(dev->ctx, &args);
  }
  if (status) return status;
  return dev->ops->copy(dev->ctx, c->local_host, c->local, all * sizeof *c->local_host,
                        QK_COPY_TO_HOST, 0);
}

qk_status_t qk_contract_begin(qk_contractor_t *c, const qk_contract_t *what, int nchannel,
                              const qk_channel_id_t channel[], qk_err_t *err) {
  const qk_device_t *dev = c->dev;
  const qk_geom_t *geom = dev->geom;
  bool wanted[HADRONS];
  qk_status_t status = check(what, nchannel, channel, err);
  if (status) return status;
  find_wanted(nchannel, channel, wanted);
  const size_t phases = (size_t)what->nmom * (size_t)phase_count(&geom->lat);
  const size_t numbers = (size_t)numbers_of(wanted, HADRONS);
  if (c->begun) status = device_fail(dev, dev->ops->queue_sync(dev->ctx, 0), err);
  if (!status)
    status = make_room(c, phases, local_places(what) * numbers,
                       (size_t)what->nmom * (size_t)geom->global[3] * MESON_NUMBERS, err);
  status = qk_comm_agree(geom->comm, status, err);
  if (status) return status;
  qk_contract_phases(&geom->lat, what->nmom, what->mom, what->origin, (double *)c->phase_host);
  c->begun = true;
  return qk_comm_agree(geom->comm, device_fail(dev, launch(c, what, phases, wanted), err), err);
}

/* ---- channels -------------------------------------------------------------------------------- */

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

/* c->global: the open numbers of a hadron, on all ranks. */
static qk_status_t add_ranks(const qk_contractor_t *c, const qk_contract_t *what, int hadron,
                             const double complex *local) {
  const qk_geom_t *geom = c->dev->geom;
  const size_t n = (size_t)what->nmom * (size_t)geom->global[3] * (size_t)open_numbers[hadron];
  memset(c->global, 0, n * sizeof *c->global);
  put_slices(what, hadron, local, c->global);
  return qk_comm_sum(geom->comm, (double *)c->global, (int)(2 * n));
}

qk_status_t qk_contract_end(qk_contractor_t *c, const qk_contract_t *what, int nchannel,
                            const qk_channel_id_t channel[], double *out, qk_err_t *err) {
  const qk_device_t *dev = c->dev;
  const size_t places = (size_t)what->nmom * (size_t)dev->geom->global[3];
  bool wanted[HADRONS];
  find_wanted(nchannel, channel, wanted);
  c->begun = false;
  qk_status_t status = device_fail(dev, dev->ops->queue_sync(dev->ctx, 0), err);
  status = qk_comm_agree(dev->geom->comm, status, err);
  for (int hadron = 0; !status && hadron < HADRONS; hadron++) {
    if (!wanted[hadron]) continue;
    status = add_ranks(c, what, hadron,
                       c->local_host + local_places(what) * (size_t)numbers_of(wanted, hadron));
    double complex *to = (double complex *)out;
    for (int i = 0; !status && i < nchannel; i++) {
      if ((int)channel[i].kind == hadron) close_channel(&channel[i], places, c->global, to);
      to += places * (size_t)qk_channel_numbers(channel[i].kind);
    }
  }
  return status;
}
