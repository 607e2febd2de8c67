#include "daemon/engine/lattice/halo.h"

#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"

/* Buffers of one kind of field. [mu][0]: to or from the rank behind, [mu][1]: ahead. host buffers
 * are those that messages use: the device's own on the CPU backend. */
typedef struct halo_set {
  struct halo_set *next;
  qk_prec_t prec;
  int nrhs, ncomp;
  bool full, in_time; /* in_time: t too, else x, y, z alone */
  size_t bytes[4];    /* 0 where nothing is exchanged */
  qk_spinor_t send[4][2], recv[4][2];
  void *host_send[4][2], *host_recv[4][2];
} halo_set_t;

struct qk_halo {
  const qk_device_t *dev;
  bool staged;
  halo_set_t *sets;
  halo_set_t *active; /* between begin and end */
};

static const int queue_compute = 0, queue_copy = 1;

qk_status_t qk_halo_create(const qk_device_t *dev, qk_halo_t **halo) {
  qk_halo_t *h = qk_calloc(1, sizeof *h);
  if (!h) return QK_NO_MEMORY;
  h->dev = dev;
  h->staged = !dev->ops->host_memory;
  *halo = h;
  return QK_OK;
}

static void set_destroy(qk_halo_t *halo, halo_set_t *s) {
  const qk_ops_t *ops = halo->dev->ops;
  qk_ops_ctx_t *ctx = halo->dev->ctx;
  for (int mu = 0; mu < 4; mu++)
    for (int d = 0; d < 2; d++) {
      if (halo->staged && s->host_recv[mu][d]) ops->free_host(ctx, s->host_recv[mu][d]);
      if (halo->staged && s->host_send[mu][d]) ops->free_host(ctx, s->host_send[mu][d]);
      if (s->recv[mu][d].data) ops->free(ctx, s->recv[mu][d].data);
      if (s->send[mu][d].data) ops->free(ctx, s->send[mu][d].data);
    }
  qk_free(s);
}

void qk_halo_destroy(qk_halo_t *halo) {
  if (!halo) return;
  while (halo->sets) {
    halo_set_t *s = halo->sets;
    halo->sets = s->next;
    set_destroy(halo, s);
  }
  qk_free(halo);
}

bool qk_halo_needed(const qk_halo_t *halo) {
  const int32_t *split = halo->dev->geom->lat.split;
  return split[0] || split[1] || split[2] || split[3];
}

static qk_status_t face_create(const qk_halo_t *halo, qk_spinor_t *face, void **host) {
  const qk_device_t *dev = halo->dev;
  void *memory = NULL;
  size_t bytes = qk_spinor_bytes(face);
  qk_status_t status = dev->ops->alloc(dev->ctx, bytes, &memory);
  if (status) return status;
  qk_spinor_place(face, memory);
  status = dev->ops->zero(dev->ctx, memory, bytes, queue_compute); /* padding stays zero */
  if (status) return status;
  if (halo->staged) return dev->ops->alloc_host(dev->ctx, bytes, host);
  *host = memory;
  return QK_OK;
}

static qk_status_t set_create(qk_halo_t *halo, const qk_spinor_t *in, int ncomp, bool in_time,
                              halo_set_t **set) {
  const qk_lattice_t *lat = &halo->dev->geom->lat;
  halo_set_t *s = qk_calloc(1, sizeof *s);
  if (!s) return QK_NO_MEMORY;
  s->prec = in->prec;
  s->nrhs = in->nrhs;
  s->ncomp = ncomp;
  s->full = in->subset == QK_FULL;
  s->in_time = in_time;
  for (int mu = 0; mu < (in_time ? 4 : 3); mu++) {
    if (!lat->split[mu]) continue;
    int64_t padded = (lat->face[mu] + QK_TILE - 1) / QK_TILE * QK_TILE;
    qk_spinor_t face = *in;
    face.data = NULL;
    face.ncomp = ncomp;
    face.nsites = s->full ? 2 * padded : padded;
    s->bytes[mu] = qk_spinor_bytes(&face);
    for (int d = 0; d < 2; d++) {
      s->send[mu][d] = s->recv[mu][d] = face;
      qk_status_t status = face_create(halo, &s->send[mu][d], &s->host_send[mu][d]);
      if (!status) status = face_create(halo, &s->recv[mu][d], &s->host_recv[mu][d]);
      if (status) {
        set_destroy(halo, s);
        return status;
      }
    }
  }
  s->next = halo->sets;
  halo->sets = s;
  *set = s;
  return QK_OK;
}

/* Even and odd share buffers: only the label differs. */
static qk_status_t set_for(qk_halo_t *halo, const qk_spinor_t *in, int ncomp, bool in_time,
                           halo_set_t **set) {
  bool full = in->subset == QK_FULL;
  halo_set_t *s = halo->sets;
  while (s && (s->prec != in->prec || s->nrhs != in->nrhs || s->ncomp != ncomp || s->full != full ||
               s->in_time != in_time))
    s = s->next;
  if (!s) {
    qk_status_t status = set_create(halo, in, ncomp, in_time, &s);
    if (status) return status;
  }
  for (int mu = 0; mu < 4; mu++)
    for (int d = 0; d < 2; d++) s->send[mu][d].subset = s->recv[mu][d].subset = in->subset;
  *set = s;
  return QK_OK;
}

/* Copies all faces between device and host; kind tells which way. */
static qk_status_t stage(qk_halo_t *halo, halo_set_t *s, qk_copy_t kind) {
  const qk_device_t *dev = halo->dev;
  bool out = kind == QK_COPY_TO_HOST;
  for (int mu = 0; mu < 4; mu++)
    for (int d = 0; s->bytes[mu] && d < 2; d++) {
      void *device = out ? s->send[mu][d].data : s->recv[mu][d].data;
      void *host = out ? s->host_send[mu][d] : s->host_recv[mu][d];
      qk_status_t status = dev->ops->copy(dev->ctx, out ? host : device, out ? device : host,
                                          s->bytes[mu], kind, queue_copy);
      if (status) return status;
    }
  return QK_OK;
}

static qk_status_t send_out(qk_halo_t *halo, halo_set_t *s) {
  qk_comm_t *comm = halo->dev->geom->comm;
  qk_comm_msg_t msg[8];
  int n = 0;
  for (int mu = 0; mu < 4; mu++) {
    if (!s->bytes[mu]) continue;
    int behind = qk_comm_neighbour(comm, mu, -1), ahead = qk_comm_neighbour(comm, mu, +1);
    for (int d = 0; d < 2; d++)
      msg[n++] = (qk_comm_msg_t){.to = d ? ahead : behind,
                                 .from = d ? behind : ahead,
                                 .tag = 2 * mu + d,
                                 .send = s->host_send[mu][d],
                                 .recv = s->host_recv[mu][1 - d],
                                 .bytes = s->bytes[mu]};
  }
  return qk_comm_exchange_begin(comm, n, msg);
}

/* Starts the exchange of what is packed; s holds what arrives. */
static qk_status_t start(qk_halo_t *halo, halo_set_t *s) {
  const qk_device_t *dev = halo->dev;
  qk_status_t status = dev->ops->queue_wait(dev->ctx, queue_copy, queue_compute);
  if (status) return status;
  if (halo->staged) {
    status = stage(halo, s, QK_COPY_TO_HOST);
    if (status) return status;
  }
  status = dev->ops->queue_sync(dev->ctx, queue_copy);
  if (status) return status;
  status = send_out(halo, s);
  if (!status) halo->active = s;
  return status;
}

static qk_status_t begin(qk_halo_t *halo, halo_set_t *s, qk_pack_args_t *pack) {
  const qk_device_t *dev = halo->dev;
  memcpy(pack->to, s->send, sizeof pack->to);
  qk_status_t status = dev->ops->pack(dev->ctx, pack);
  return status ? status : start(halo, s);
}

qk_status_t qk_halo_begin(qk_halo_t *halo, qk_hop_args_t *args) {
  if (!qk_halo_needed(halo)) return QK_OK;
  QK_ASSERT(!halo->active);
  halo_set_t *s;
  qk_status_t status = set_for(halo, &args->in, 6, true, &s);
  if (status) return status;
  qk_pack_args_t pack = {.lat = args->lat,
                         .in_parity = args->in.subset,
                         .dagger = args->dagger,
                         .links = args->links,
                         .in = args->in};
  status = begin(halo, s, &pack);
  if (!status) memcpy(args->ghost, s->recv, sizeof args->ghost);
  return status;
}

qk_status_t qk_halo_reserve_gauss(qk_halo_t *halo, const qk_spinor_t *in) {
  const int32_t *split = halo->dev->geom->lat.split;
  halo_set_t *s;
  return split[0] || split[1] || split[2] ? set_for(halo, in, 12, false, &s) : QK_OK;
}

qk_status_t qk_halo_begin_gauss(qk_halo_t *halo, qk_gauss_args_t *args) {
  const int32_t *split = args->lat.split;
  if (!split[0] && !split[1] && !split[2]) return QK_OK;
  QK_ASSERT(!halo->active);
  halo_set_t *s;
  qk_status_t status = set_for(halo, &args->in, 12, false, &s);
  if (status) return status;
  qk_pack_args_t pack = {
      .lat = args->lat, .in_parity = QK_FULL, .whole = 1, .links = args->links, .in = args->in};
  status = begin(halo, s, &pack);
  if (!status) memcpy(args->ghost, s->recv, sizeof args->ghost);
  return status;
}

qk_status_t qk_halo_begin_coarse(qk_halo_t *halo, qk_coarse_args_t *args) {
  const qk_device_t *dev = halo->dev;
  if (!qk_halo_needed(halo)) return QK_OK;
  QK_ASSERT(!halo->active);
  halo_set_t *s;
  qk_status_t status = set_for(halo, &args->in, args->in.ncomp, true, &s);
  if (status) return status;
  qk_coarse_pack_args_t pack = {.lat = args->lat, .in_parity = args->in.subset, .in = args->in};
  memcpy(pack.to, s->send, sizeof pack.to);
  status = dev->ops->coarse_pack(dev->ctx, &pack);
  if (status) return status;
  status = start(halo, s);
  if (!status) memcpy(args->ghost, s->recv, sizeof args->ghost);
  return status;
}

qk_status_t qk_halo_end(qk_halo_t *halo) {
  const qk_device_t *dev = halo->dev;
  if (!halo->active) return QK_OK;
  halo_set_t *s = halo->active;
  halo->active = NULL;
  qk_status_t status = qk_comm_exchange_end(dev->geom->comm);
  if (status || !halo->staged) return status;
  status = stage(halo, s, QK_COPY_TO_DEVICE);
  if (status) return status;
  return dev->ops->queue_wait(dev->ctx, queue_compute, queue_copy);
}
