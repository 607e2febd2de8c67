#include "daemon/engine/action/staggered/stencil.h"

#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/engine/gauge/fat/behind_links.h"

/* ---- one pass -------------------------------------------------------------------------------- */

static bool needs_halo(const qk_stag_args_t *args) {
  for (int mu = 0; mu < 4; mu++)
    if (args->lat.split[mu] && args->block[mu] == 0) return args->c_hop != 0;
  return false;
}

/* x or y, whichever is free: no pass of an operator has three fields beside the hop. */
static void add(qk_stag_args_t *args, double c, const qk_spinor_t *field) {
  if (c == 0) return;
  QK_ASSERT(args->c_y == 0);
  if (args->c_x == 0) {
    args->c_x = c;
    args->x = *field;
  } else {
    args->c_y = c;
    args->y = *field;
  }
}

/* The halo is exchanged first: there is no interior that would hide it (docs/decisions.md). */
static void launch(const qk_device_t *dev, qk_halo_t *halo, qk_stag_args_t *args) {
  const bool exchanges = needs_halo(args);
  if (exchanges) {
    if (qk_dev_ok(dev)) qk_dev_note(dev, qk_halo_begin_stag(halo, args));
    qk_dev_note(dev, qk_halo_end(halo)); /* the neighbours wait for our messages either way */
  }
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->stag(dev->ctx, args));
}

static void pass(qk_operator_t *op, qk_halo_t *halo, const qk_eo_pass_t *p, qk_spinor_t out,
                 qk_spinor_t in) {
  const qk_eo_parts_t *parts = qk_eo_parts(op);
  const qk_local_t *local = p->local     ? p->local
                            : p->inverse ? &parts->inverse[out.prec]
                                         : &parts->t[out.prec];
  const double hop = p->dagger ? -p->c_hop : p->c_hop; /* hop^+ = -hop */
  qk_stag_args_t args = {.lat = op->dev->geom->lat,
                         .out_parity = out.subset,
                         .hops = p->hops,
                         .c_hop = p->diag_on_sum ? local->scalar * hop : hop,
                         .links = parts->stag[out.prec],
                         .in = in,
                         .out = out,
                         .num = p->num,
                         .den = p->den,
                         .red = p->red,
                         .more = p->more,
                         .c_more = p->c_more,
                         .mask = p->mask};
  add(&args, local->scalar * p->c_z, &p->z);
  add(&args, p->c_x, &p->x);
  add(&args, p->c_y, &p->y);
  for (int mu = 0; p->block && mu < 4; mu++) args.block[mu] = p->block[mu];
  launch(op->dev, halo, &args);
}

/* 8 or 16 products of 66 flops, and their sum. */
const qk_eo_stencil_t qk_stencil_fat = {
    .flops = 570, .components = QK_COLOUR_COMPONENTS, .faces = QK_COLOUR_COMPONENTS, .pass = pass};
const qk_eo_stencil_t qk_stencil_fat_long = {.flops = 1146,
                                             .components = QK_COLOUR_COMPONENTS,
                                             .faces = QK_STAG_REACH * QK_COLOUR_COMPONENTS,
                                             .pass = pass};

/* ---- links ----------------------------------------------------------------------------------- */

/* Links of one reach, as they stand in parts->stag of a precision. */
typedef struct kind {
  int reach;
  qk_links_t *links;
  const void **behind; /* [4] */
} kind_t;

static int kinds(qk_stag_links_t *s, bool naik, kind_t kind[2]) {
  kind[0] = (kind_t){1, &s->fat, s->behind};
  kind[1] = (kind_t){QK_STAG_REACH, &s->naik, s->behind_long};
  return naik ? 2 : 1;
}

static qk_status_t alloc(const qk_device_t *dev, size_t bytes, const void **data) {
  void *memory = NULL;
  const qk_status_t status = dev->ops->alloc(dev->ctx, bytes, &memory);
  *data = memory;
  return status;
}

static qk_status_t alloc_behind(const qk_device_t *dev, const kind_t *kind) {
  const qk_lattice_t *lat = &dev->geom->lat;
  for (int mu = 0; mu < 4; mu++) {
    if (!lat->split[mu]) continue;
    const size_t bytes = qk_stag_behind_bytes(lat, kind->links->prec, mu, kind->reach);
    const qk_status_t status = alloc(dev, bytes, &kind->behind[mu]);
    if (status) return status;
  }
  return QK_OK;
}

/* With signs and phases, of `from`, whose memory is taken in double. */
static qk_status_t make(const qk_device_t *dev, const double phase[4][2], const qk_links_t *from,
                        qk_prec_t prec, const kind_t *kind) {
  const qk_lattice_t *lat = &dev->geom->lat;
  qk_links_t *links = kind->links;
  *links = (qk_links_t){.prec = prec, .reals = 18, .data = from->data};
  if (prec != QK_DOUBLE) {
    const qk_status_t status = alloc(dev, dev->ops->links_bytes(lat, prec, 18), &links->data);
    if (status) return status;
  }
  qk_stag_links_args_t args = {.lat = *lat, .reach = kind->reach, .in = *from, .out = *links};
  memcpy(args.phase, phase, sizeof args.phase);
  const qk_status_t status = dev->ops->stag_links(dev->ctx, &args);
  return status ? status : alloc_behind(dev, kind);
}

static qk_status_t make_kinds(const qk_device_t *dev, const qk_links_t given[2], qk_prec_t prec,
                              qk_eo_parts_t *parts) {
  kind_t kind[2];
  const int n = kinds(&parts->stag[prec], given[1].data != NULL, kind);
  for (int k = 0; k < n && parts->want[prec]; k++) {
    const qk_status_t status = make(dev, parts->phase, &given[k], prec, &kind[k]);
    if (status) return status;
  }
  return QK_OK;
}

/* What is given is parts->stag in double, or nobody's any more. */
static void take(const qk_device_t *dev, const qk_links_t given[2], qk_eo_parts_t *parts) {
  qk_links_t *const place[] = {&parts->stag[QK_DOUBLE].fat, &parts->stag[QK_DOUBLE].naik};
  for (int k = 0; k < 2; k++) {
    if (parts->want[QK_DOUBLE])
      *place[k] = given[k];
    else if (given[k].data)
      dev->ops->free(dev->ctx, (void *)given[k].data);
  }
}

/* All precisions; double last, as its links take the place of those that are given. */
static qk_status_t make_all(const qk_device_t *dev, const qk_links_t given[2],
                            qk_eo_parts_t *parts) {
  static const qk_prec_t order[] = {QK_SINGLE, QK_HALF, QK_DOUBLE};
  _Static_assert(sizeof order / sizeof *order == QK_PRECS, "each precision");
  for (int i = 0; i < QK_PRECS; i++) {
    const qk_status_t status = make_kinds(dev, given, order[i], parts);
    if (status) return status;
  }
  return dev->ops->queue_sync(dev->ctx, 0);
}

/* Bytes of the largest message. */
static size_t most_bytes(const qk_lattice_t *lat, const qk_eo_parts_t *parts, bool naik) {
  size_t most = 0;
  for (int p = 0; p < QK_PRECS; p++)
    for (int mu = 0; mu < 4 && parts->want[p]; mu++) {
      const size_t n = qk_stag_behind_bytes(lat, (qk_prec_t)p, mu, naik ? QK_STAG_REACH : 1);
      if (lat->split[mu] && n > most) most = n;
    }
  return most;
}

static qk_status_t exchange_all(const qk_device_t *dev, qk_eo_parts_t *parts, bool naik, char *room,
                                size_t bytes) {
  for (int p = 0; p < QK_PRECS; p++) {
    kind_t kind[2];
    const int n = kinds(&parts->stag[p], naik, kind);
    for (int i = 0; i < 4 * n && parts->want[p]; i++)
      if (dev->geom->lat.split[i % 4])
        qk_behind_links(dev, kind[i / 4].links, kind[i / 4].reach, i % 4,
                        (void *)kind[i / 4].behind[i % 4], room, room + bytes);
  }
  return qk_dev_status(dev);
}

qk_status_t qk_stencil_links(const qk_device_t *dev, qk_links_t fat, qk_links_t naik,
                             qk_eo_parts_t *parts, qk_err_t *err) {
  const qk_links_t given[2] = {fat, naik};
  const bool is_long = naik.data != NULL;
  qk_comm_t *comm = dev->geom->comm;
  const size_t most = most_bytes(&dev->geom->lat, parts, is_long);
  qk_status_t status = make_all(dev, given, parts);
  take(dev, given, parts);
  char *room = most > 0 ? qk_malloc(2 * most) : NULL;
  if (status == QK_OK && most > 0 && !room)
    status = qk_fail(err, QK_NO_MEMORY, "no memory for links of the neighbours");
  status = qk_comm_agree(comm, status, err);
  if (status == QK_OK && most > 0)
    status = qk_comm_agree(comm, exchange_all(dev, parts, is_long, room, most), err);
  qk_free(room);
  return status;
}

static int64_t links_bytes(const qk_ops_t *ops, const qk_lattice_t *lat, qk_prec_t prec,
                           int reach) {
  int64_t bytes = (int64_t)ops->links_bytes(lat, prec, 18);
  for (int mu = 0; mu < 4; mu++)
    if (lat->split[mu]) bytes += (int64_t)qk_stag_behind_bytes(lat, prec, mu, reach);
  return bytes;
}

int64_t qk_stencil_bytes(const qk_ops_t *ops, const qk_lattice_t *lat, const bool want[QK_PRECS],
                         bool naik, bool making) {
  int64_t bytes = 0;
  if (making)
    return want[QK_DOUBLE] ? 0 : (naik ? 2 : 1) * (int64_t)ops->links_bytes(lat, QK_DOUBLE, 18);
  for (int p = 0; p < QK_PRECS; p++) {
    if (!want[p]) continue;
    bytes += links_bytes(ops, lat, (qk_prec_t)p, 1);
    if (naik) bytes += links_bytes(ops, lat, (qk_prec_t)p, QK_STAG_REACH);
  }
  return bytes;
}
