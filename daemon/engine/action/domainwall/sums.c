#include "daemon/engine/action/domainwall/sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

enum {
  PLUS,
  MINUS,
  COLUMNS = 12, /* of a contraction */
  NUMBERS = 256,
  QUARK_COLUMN = 0,    /* source spin 0 ... */
  MIDPOINT_COLUMN = 3, /* ... and 1 */
  CHUNKS = (QK_LS_MAX + COLUMNS - 1) / COLUMNS
};

/* Twelve columns made of slices and of the source. */
typedef struct columns {
  qk_mix_t of_slices, of_source; /* of_source: rows 0 where it takes no part */
} columns_t;

struct qk_sums {
  qk_operator_t *base;
  int ls, chunks; /* of the current; 0: it is not defined */
  bool has_midpoint;
  columns_t ends, ket[CHUNKS], bra[CHUNKS];
  double *phase, *sums; /* device: 1 for each coordinate; [1 + chunks][local T][NUMBERS] */
  double *host;         /* the same, and what is sent to the device */
  double *by_time;      /* [1 + chunks][T][NUMBERS], of all ranks */
};

/* ---- matrices -------------------------------------------------------------------------------- */

static int chunks_of(int ls, bool is_uniform) {
  return is_uniform && ls % 2 == 0 ? (ls + COLUMNS - 1) / COLUMNS : 0;
}

static void clear(qk_slices_t *m, int columns) {
  memset(m, 0, sizeof *m);
  m->rows = COLUMNS;
  m->columns = columns;
}

/* The quark and the mid-point, of psi'. */
static qk_status_t make_ends(qk_sums_t *s, const qk_sums_in_t *in, qk_slices_t m[2]) {
  const int middle = in->ls / 2;
  clear(&m[0], in->ls);
  m[0].m[MINUS][QUARK_COLUMN][0] = m[0].m[PLUS][QUARK_COLUMN][in->ls - 1] = 1;
  if (s->has_midpoint)
    m[0].m[PLUS][MIDPOINT_COLUMN][middle - 1] = m[0].m[MINUS][MIDPOINT_COLUMN][middle] = 1;
  qk_slices_times(&m[0], in->five, &m[1]);
  return qk_mix_create(s->base->dev, &m[1], &s->ends.of_slices);
}

/* Column k = factor(chirality, first + k) (psi' + c e) of slice first + k, or of the one that it is
 * reflected to. */
static qk_status_t make_columns(const qk_sums_t *s, const qk_sums_in_t *in, int first, bool is_bra,
                                qk_slices_t m[2], columns_t *made) {
  const int last = in->ls - 1;
  clear(&m[0], in->ls);
  clear(&m[1], 1);
  for (int k = 0; k < COLUMNS && first + k < in->ls; k++) {
    const int slice = first + k, from = is_bra ? last - slice : slice;
    const double sign = slice < in->ls / 2 ? -1 : 1;
    for (int chirality = 0; chirality < 2; chirality++) {
      const double gamma5 = chirality == PLUS ? 1 : -1;
      const double factor = is_bra ? 2 / (in->b + in->c) * sign * gamma5 : 1;
      m[0].m[chirality][k][from] = factor;
      if (from == (chirality == PLUS ? 0 : last)) m[1].m[chirality][k][0] = factor * in->c;
    }
  }
  const qk_status_t status = qk_mix_create(s->base->dev, &m[0], &made->of_slices);
  if (status != QK_OK || in->c == 0) return status;
  return qk_mix_create(s->base->dev, &m[1], &made->of_source);
}

static qk_status_t make_chunk(qk_sums_t *s, const qk_sums_in_t *in, int i, qk_slices_t m[2]) {
  const qk_status_t status = make_columns(s, in, i * COLUMNS, false, m, &s->ket[i]);
  return status != QK_OK ? status : make_columns(s, in, i * COLUMNS, true, m, &s->bra[i]);
}

static qk_status_t make_matrices(qk_sums_t *s, const qk_sums_in_t *in) {
  qk_slices_t *m = qk_malloc(2 * sizeof *m);
  qk_status_t status = m ? make_ends(s, in, m) : QK_NO_MEMORY;
  for (int i = 0; i < s->chunks && status == QK_OK; i++) {
    status = make_chunk(s, in, i, m);
  }
  qk_free(m);
  return status;
}

/* ---- life ------------------------------------------------------------------------------------ */

static size_t phases(const qk_lattice_t *lat) {
  return (size_t)(lat->l[0] + lat->l[1] + lat->l[2]) * 2;
}

static size_t numbers(int chunks, int times) {
  return (size_t)(1 + chunks) * (size_t)times * NUMBERS * 2;
}

int64_t qk_sums_bytes(const qk_lattice_t *lat, int ls, bool is_uniform, double c, bool is_real) {
  const int chunks = chunks_of(ls, is_uniform);
  const int64_t each =
      qk_mix_bytes(COLUMNS, ls, true) + (c != 0 ? qk_mix_bytes(COLUMNS, 1, true) : 0);
  return qk_mix_bytes(COLUMNS, ls, is_real) + 2 * chunks * each +
         (int64_t)((phases(lat) + numbers(chunks, lat->l[3])) * sizeof(double));
}

static qk_status_t device_memory(const qk_device_t *dev, size_t n, double **memory) {
  void *p = NULL;
  const qk_status_t status = dev->ops->alloc(dev->ctx, n * sizeof(double), &p);
  *memory = status == QK_OK ? p : NULL;
  return status;
}

/* The phases of momentum zero. */
static qk_status_t upload_phases(qk_sums_t *s) {
  const qk_device_t *dev = s->base->dev;
  const size_t n = phases(&dev->geom->lat);
  double *one = qk_malloc(n * sizeof *one);
  if (!one) return QK_NO_MEMORY;
  for (size_t i = 0; i < n; i++) one[i] = i % 2 == 0;
  const qk_status_t copied =
      dev->ops->copy(dev->ctx, s->phase, one, n * sizeof *one, QK_COPY_TO_DEVICE, 0);
  const qk_status_t status = dev->ops->queue_sync(dev->ctx, 0);
  qk_free(one);
  return copied != QK_OK ? copied : status;
}

static qk_status_t allocate(qk_sums_t *s) {
  const qk_device_t *dev = s->base->dev;
  const size_t local = numbers(s->chunks, dev->geom->lat.l[3]);
  const qk_status_t first = device_memory(dev, phases(&dev->geom->lat), &s->phase);
  const qk_status_t status = first != QK_OK ? first : device_memory(dev, local, &s->sums);
  if (status != QK_OK) return status;
  s->host = qk_malloc(local * sizeof *s->host);
  s->by_time = qk_malloc(numbers(s->chunks, dev->geom->global[3]) * sizeof *s->by_time);
  return s->host && s->by_time ? upload_phases(s) : QK_NO_MEMORY;
}

qk_status_t qk_sums_create(qk_operator_t *base, const qk_sums_in_t *in, qk_sums_t **sums) {
  qk_sums_t *s = qk_calloc(1, sizeof *s);
  if (!s) return QK_NO_MEMORY;
  s->base = base;
  s->ls = in->ls;
  s->chunks = chunks_of(in->ls, in->is_uniform);
  s->has_midpoint = in->ls % 2 == 0;
  const qk_status_t made = make_matrices(s, in);
  const qk_status_t status = made != QK_OK ? made : allocate(s);
  if (status == QK_OK)
    *sums = s;
  else
    qk_sums_destroy(s);
  return status;
}

static void destroy_columns(const qk_device_t *dev, columns_t *c) {
  qk_mix_destroy(dev, &c->of_source);
  qk_mix_destroy(dev, &c->of_slices);
}

void qk_sums_destroy(qk_sums_t *s) {
  if (!s) return;
  const qk_device_t *dev = s->base->dev;
  qk_free(s->by_time);
  qk_free(s->host);
  if (s->sums) dev->ops->free(dev->ctx, s->sums);
  if (s->phase) dev->ops->free(dev->ctx, s->phase);
  for (int i = 0; i < CHUNKS; i++) {
    destroy_columns(dev, &s->bra[i]);
    destroy_columns(dev, &s->ket[i]);
  }
  destroy_columns(dev, &s->ends);
  qk_free(s);
}

_Static_assert((int)COLUMNS > QK_TILE && (int)COLUMNS <= 2 * QK_TILE, "two tiles of columns");

/* Right-hand sides of a field that has as many tiles, or more (setup/plan.c: solver_work). */
static int room_for(int ls) {
  return (QK_TILE + ls) / ls;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void make(const qk_sums_t *s, const columns_t *c, const qk_field_t *eta, const qk_field_t *x,
                 const qk_field_t *out) {
  const qk_device_t *dev = s->base->dev;
  qk_mix_apply(dev, &c->of_slices, 1, x->v, 0, (qk_spinor_t){.data = NULL}, out->v);
  if (c->of_source.rows) qk_mix_apply(dev, &c->of_source, 1, eta->v, 1, out->v, out->v);
}

/* Number `at` of the contractions. */
static void contract(const qk_sums_t *s, int at, const qk_field_t *a, const qk_field_t *b) {
  const qk_device_t *dev = s->base->dev;
  const qk_contract_args_t args = {.lat = dev->geom->lat,
                                   .hadron = QK_HADRON_MESON,
                                   .a = a->v,
                                   .b = b->v,
                                   .nmom = 1,
                                   .phase = s->phase,
                                   .out = s->sums + numbers(at - 1, dev->geom->lat.l[3])};
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->contract(dev->ctx, &args));
}

/* All contractions, with two fields of twelve columns. */
static void measure(const qk_sums_t *s, const qk_field_t *eta, const qk_field_t *x, qk_field_t *a,
                    qk_field_t *b) {
  const qk_device_t *dev = s->base->dev;
  make(s, &s->ends, eta, x, a);
  contract(s, 0, a, a);
  for (int i = 0; i < s->chunks; i++) {
    make(s, &s->ket[i], eta, x, a);
    if (qk_dev_ok(dev)) qk_dev_note(dev, s->base->ops->hop_forward(s->base, b, a, 3));
    make(s, &s->bra[i], eta, x, a);
    contract(s, 1 + i, b, a);
  }
}

/* Of all ranks, in by_time. */
static void gather(qk_sums_t *s) {
  const qk_device_t *dev = s->base->dev;
  const qk_lattice_t *lat = &dev->geom->lat;
  const size_t one = (size_t)2 * NUMBERS, local = (size_t)lat->l[3] * one,
               whole = (size_t)lat->global[3] * one;
  const size_t n = numbers(s->chunks, lat->global[3]);
  qk_dev_copy(dev, s->host, s->sums, numbers(s->chunks, lat->l[3]) * sizeof *s->host,
              QK_COPY_TO_HOST);
  qk_dev_sync(dev);
  memset(s->by_time, 0, n * sizeof *s->by_time);
  for (int i = 0; i < 1 + s->chunks; i++)
    memcpy(s->by_time + i * whole + (size_t)lat->offset[3] * one, s->host + i * local,
           local * sizeof *s->host);
  if (qk_dev_ok(dev)) qk_dev_note(dev, qk_comm_sum(dev->geom->comm, s->by_time, (int)n));
}

/* Sum over spins and colours of the products of the columns of a source spin, at time t: [spin of
 * x, of b][source spin, of b][spin of x, of a][source spin, of a]. */
static double product(const qk_sums_t *s, int at, int t, int source_spin) {
  const double *n =
      s->by_time + numbers(at - 1, s->base->dev->geom->global[3]) + (size_t)t * NUMBERS * 2;
  double sum = 0;
  for (int spin = 0; spin < 4; spin++)
    sum += n[2 * (((spin * 4 + source_spin) * 4 + spin) * 4 + source_spin)];
  return sum;
}

static double current(const qk_sums_t *s, int t) {
  double sum = 0;
  for (int i = 0; i < s->chunks; i++)
    for (int spin = 0; spin < 4; spin++) sum += product(s, 1 + i, t, spin);
  return sum;
}

static void write(const qk_sums_t *s, double *out) {
  const int times = s->base->dev->geom->global[3];
  for (int t = 0; t < times; t++) {
    out[QK_WALL_QUARK * times + t] = product(s, 0, t, QUARK_COLUMN / 3);
    out[QK_WALL_MIDPOINT * times + t] =
        s->has_midpoint ? product(s, 0, t, MIDPOINT_COLUMN / 3) : NAN;
    out[QK_WALL_AXIAL * times + t] = s->chunks ? current(s, t) : NAN;
  }
}

qk_status_t qk_sums_take(qk_sums_t *s, qk_work_t *work, const qk_field_t *eta, const qk_field_t *x,
                         double *out) {
  const qk_device_t *dev = s->base->dev;
  const int nrhs = room_for(s->ls);
  qk_field_t *room[2], part[2];
  for (int i = 0; i < 2; i++) {
    room[i] = qk_work_take(work, QK_DOUBLE, nrhs, QK_FULL);
    part[i] = qk_field_at(dev, QK_DOUBLE, COLUMNS, QK_FULL, room[i]->v.data);
  }
  if (qk_dev_ok(dev)) measure(s, eta, x, &part[0], &part[1]);
  gather(s);
  for (int i = 1; i >= 0; i--) qk_work_release(work, room[i]);
  const qk_status_t status = qk_dev_status(dev);
  if (status == QK_OK) write(s, out);
  return status;
}
