#include "daemon/engine/lattice/halo.h"

#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/engine/lattice/peers.h"

/* Buffers of one kind of field. [mu][0]: to or from the rank behind, [mu][1]: ahead. */
typedef struct halo_set {
  struct halo_set *next;
  qk_prec_t prec;
  int nrhs, ncomp, depth; /* depth: slices that a face has */
  bool full, in_time;     /* in_time: t too, else x, y, z alone */
  bool by_messages;       /* some neighbour is not a peer */
  size_t bytes[4];        /* of a face; 0 where nothing is exchanged */
  /* Where a neighbour is a peer, send stands in its memory, and is its recv. */
  qk_spinor_t send[4][2], recv[4][2];
  bool peer[4][2];
  /* What messages use; the device's own memory where MPI reads it. */
  void *host_send[4][2], *host_recv[4][2];
  /* With peers: the memory of all faces, in two halves, and of the flags. */
  qk_peer_memory_t *shared;
  qk_turns_t turns;
  uint32_t done; /* exchanges as the device counts them, for messages */
  qk_signal_args_t signal, await;
} halo_set_t;

struct qk_halo {
  const qk_device_t *dev;
  bool staged; /* messages go through pinned host memory */
  halo_set_t *sets;
  halo_set_t *active; /* between begin and end */
};

enum { COMPUTE = 0, MESSAGES = 3 };

qk_status_t qk_halo_create(const qk_device_t *dev, qk_halo_t **halo) {
  qk_halo_t *h = qk_calloc(1, sizeof *h);
  if (!h) return QK_NO_MEMORY;
  h->dev = dev;
  h->staged = !dev->ops->host_memory && !qk_comm_reads_device(dev->geom->comm);
  *halo = h;
  return QK_OK;
}

bool qk_halo_needed(const qk_halo_t *halo) {
  const int32_t *split = halo->dev->geom->lat.split;
  return split[0] || split[1] || split[2] || split[3];
}

int64_t qk_halo_bytes(const qk_geom_t *geom, qk_prec_t prec, int nrhs, int components) {
  int64_t sites = 0;
  for (int mu = 0; mu < 4; mu++)
    if (geom->lat.split[mu]) sites += geom->lat.face[mu];
  const int64_t lanes = nrhs == 1 ? 1 : (nrhs + QK_TILE - 1) / QK_TILE * QK_TILE;
  return 4 * sites * lanes *
         (2 * components * qk_prec_bytes(prec) + (qk_prec_scaled(prec) ? (int)sizeof(float) : 0));
}

/* ---- buffers --------------------------------------------------------------------------------- */

static void set_destroy(qk_halo_t *halo, halo_set_t *s) {
  const qk_ops_t *ops = halo->dev->ops;
  qk_ops_ctx_t *ctx = halo->dev->ctx;
  for (int mu = 0; mu < 4; mu++)
    for (int d = 0; d < 2; d++) {
      if (halo->staged && s->host_recv[mu][d]) ops->free_host(ctx, s->host_recv[mu][d]);
      if (halo->staged && s->host_send[mu][d]) ops->free_host(ctx, s->host_send[mu][d]);
      if (!s->shared && s->recv[mu][d].data) ops->free(ctx, s->recv[mu][d].data);
      if (!s->shared && s->send[mu][d].data) ops->free(ctx, s->send[mu][d].data);
    }
  qk_peers_give_back(s->shared);
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

static int neighbour(const qk_halo_t *halo, int mu, int d) {
  return qk_comm_neighbour(halo->dev->geom->comm, mu, d ? +1 : -1);
}

/* Padding stays zero. */
static qk_status_t face_create(const qk_halo_t *halo, qk_spinor_t *face) {
  const qk_device_t *dev = halo->dev;
  void *memory = NULL;
  size_t bytes = qk_spinor_bytes(face);
  qk_status_t status = dev->ops->alloc(dev->ctx, bytes, &memory);
  if (status) return status;
  qk_spinor_place(face, memory);
  return dev->ops->zero(dev->ctx, memory, bytes, COMPUTE);
}

static size_t rounded(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

/* Where faces are in a half: those that arrive, then those that leave in messages. */
static size_t offset(const halo_set_t *s, int mu, int d, bool send) {
  size_t at = 0, one = 0;
  for (int nu = 0; nu < 4; nu++) one += 2 * rounded(s->bytes[nu]);
  for (int nu = 0; nu < mu; nu++) at += 2 * rounded(s->bytes[nu]);
  return at + (d ? rounded(s->bytes[mu]) : 0) + (send ? one : 0);
}

/* One for each face. */
static uint32_t *flag(const halo_set_t *s, void *memory, int mu, int d) {
  return qk_peers_flag(memory, s->turns.flip, 2 * mu + d);
}

/* Where the device is in counting exchanges. */
static qk_status_t count_on(const qk_device_t *dev, const uint32_t *epoch, uint32_t *done) {
  const qk_status_t status =
      dev->ops->copy(dev->ctx, done, epoch, sizeof *done, QK_COPY_TO_HOST, COMPUTE);
  return status ? status : dev->ops->queue_sync(dev->ctx, COMPUTE);
}

/* Memory that another set has given back goes on at the number of that set's last exchange. */
static qk_status_t share(qk_halo_t *halo, halo_set_t *s) {
  const qk_device_t *dev = halo->dev;
  const double limit = qk_peers_limit(dev->peers);
  s->turns.flip = (int64_t)offset(s, 4, 0, true);
  qk_status_t status = qk_peers_take(dev, qk_peers_exchange_bytes(s->turns.flip), &s->shared);
  if (status) return status;
  char *own = s->shared->own;
  uint32_t *epoch = qk_peers_epoch(own, s->turns.flip);
  s->turns.epoch = epoch;
  s->signal = s->await = (qk_signal_args_t){.epoch = epoch, .seconds = limit};
  for (int mu = 0; mu < 4; mu++)
    for (int d = 0; s->bytes[mu] && d < 2; d++) {
      char *other = s->shared->of[neighbour(halo, mu, d)];
      s->peer[mu][d] = other != NULL;
      s->by_messages = s->by_messages || !other;
      qk_spinor_place(&s->recv[mu][d], own + offset(s, mu, d, false));
      qk_spinor_place(&s->send[mu][d],
                      other ? other + offset(s, mu, 1 - d, false) : own + offset(s, mu, d, true));
      if (!other) continue;
      s->signal.flag[s->signal.n++] = flag(s, other, mu, 1 - d);
      s->await.flag[s->await.n++] = flag(s, own, mu, d);
    }
  if (s->await.n == 0) s->turns.epoch = NULL;
  return s->by_messages && s->turns.epoch ? count_on(dev, epoch, &s->done) : QK_OK;
}

static qk_status_t own_faces(qk_halo_t *halo, halo_set_t *s) {
  qk_status_t status = QK_OK;
  s->by_messages = true;
  for (int mu = 0; mu < 4; mu++)
    for (int d = 0; s->bytes[mu] && d < 2 && !status; d++) {
      status = face_create(halo, &s->send[mu][d]);
      status = status ? status : face_create(halo, &s->recv[mu][d]);
    }
  return status;
}

/* What messages use of each face. */
static qk_status_t host_faces(qk_halo_t *halo, halo_set_t *s) {
  const qk_device_t *dev = halo->dev;
  qk_status_t status = QK_OK;
  for (int mu = 0; mu < 4; mu++)
    for (int d = 0; s->bytes[mu] && d < 2 && !status; d++) {
      s->host_send[mu][d] = s->send[mu][d].data;
      s->host_recv[mu][d] = s->recv[mu][d].data;
      if (!halo->staged) continue;
      s->host_send[mu][d] = s->host_recv[mu][d] = NULL;
      if (s->peer[mu][d]) continue;
      status = dev->ops->alloc_host(dev->ctx, s->bytes[mu], &s->host_send[mu][d]);
      if (status) return status;
      status = dev->ops->alloc_host(dev->ctx, s->bytes[mu], &s->host_recv[mu][d]);
    }
  return status;
}

static qk_status_t set_create(qk_halo_t *halo, const qk_spinor_t *in, int ncomp, int depth,
                              bool in_time, halo_set_t **set) {
  const qk_lattice_t *lat = &halo->dev->geom->lat;
  halo_set_t *s = qk_calloc(1, sizeof *s);
  if (!s) return QK_NO_MEMORY;
  s->prec = in->prec;
  s->nrhs = in->nrhs;
  s->ncomp = ncomp;
  s->depth = depth;
  s->full = in->subset == QK_FULL;
  s->in_time = in_time;
  for (int mu = 0; mu < (in_time ? 4 : 3); mu++) {
    if (!lat->split[mu]) continue;
    int64_t padded = (lat->face[mu] + QK_TILE - 1) / QK_TILE * QK_TILE * depth;
    qk_spinor_t face = *in;
    face.data = NULL;
    face.ncomp = ncomp;
    face.nsites = s->full ? 2 * padded : padded;
    s->bytes[mu] = qk_spinor_bytes(&face);
    for (int d = 0; d < 2; d++) s->send[mu][d] = s->recv[mu][d] = face;
  }
  qk_status_t status = halo->dev->peers ? share(halo, s) : own_faces(halo, s);
  status = status ? status : host_faces(halo, s);
  if (status) {
    set_destroy(halo, s);
    return status;
  }
  s->next = halo->sets;
  halo->sets = s;
  *set = s;
  return QK_OK;
}

/* Even and odd share buffers: only the label differs. */
static qk_status_t set_for(qk_halo_t *halo, const qk_spinor_t *in, int ncomp, int depth,
                           bool in_time, halo_set_t **set) {
  bool full = in->subset == QK_FULL;
  halo_set_t *s = halo->sets;
  while (s && (s->prec != in->prec || s->nrhs != in->nrhs || s->ncomp != ncomp ||
               s->depth != depth || s->full != full || s->in_time != in_time))
    s = s->next;
  if (!s) {
    qk_status_t status = set_create(halo, in, ncomp, depth, in_time, &s);
    if (status) return status;
  }
  for (int mu = 0; mu < 4; mu++)
    for (int d = 0; d < 2; d++) s->send[mu][d].subset = s->recv[mu][d].subset = in->subset;
  *set = s;
  return QK_OK;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* In the half of the exchange under way. */
static char *this_turn(const halo_set_t *s, void *memory) {
  return (char *)memory + (s->turns.epoch ? ((s->done + 1) & 1) * s->turns.flip : 0);
}

/* Copies the faces of messages between device and host; kind tells which way. */
static qk_status_t stage(qk_halo_t *halo, halo_set_t *s, qk_copy_t kind) {
  const qk_device_t *dev = halo->dev;
  bool out = kind == QK_COPY_TO_HOST;
  for (int mu = 0; mu < 4; mu++)
    for (int d = 0; s->bytes[mu] && d < 2; d++) {
      if (s->peer[mu][d]) continue;
      void *device = this_turn(s, out ? s->send[mu][d].data : s->recv[mu][d].data);
      void *host = out ? s->host_send[mu][d] : s->host_recv[mu][d];
      qk_status_t status = dev->ops->copy(dev->ctx, out ? host : device, out ? device : host,
                                          s->bytes[mu], kind, MESSAGES);
      if (status) return status;
    }
  return QK_OK;
}

static void *message(const qk_halo_t *halo, const halo_set_t *s, void *host) {
  return halo->staged ? host : this_turn(s, host);
}

static qk_status_t send_out(qk_halo_t *halo, halo_set_t *s) {
  qk_comm_t *comm = halo->dev->geom->comm;
  qk_comm_msg_t msg[16];
  int n = 0;
  for (int mu = 0; mu < 4; mu++)
    for (int d = 0; s->bytes[mu] && d < 2; d++) {
      if (s->peer[mu][d] && s->peer[mu][1 - d]) continue;
      const bool sends = !s->peer[mu][d], receives = !s->peer[mu][1 - d];
      msg[n++] =
          (qk_comm_msg_t){.to = sends ? neighbour(halo, mu, d) : QK_COMM_NOBODY,
                          .from = receives ? neighbour(halo, mu, 1 - d) : QK_COMM_NOBODY,
                          .tag = 2 * mu + d,
                          .send = sends ? message(halo, s, s->host_send[mu][d]) : NULL,
                          .recv = receives ? message(halo, s, s->host_recv[mu][1 - d]) : NULL,
                          .bytes = s->bytes[mu]};
    }
  return qk_comm_exchange_begin(comm, n, msg);
}

/* Waits for what is packed, and starts the messages. */
static qk_status_t start_messages(qk_halo_t *halo, halo_set_t *s) {
  const qk_device_t *dev = halo->dev;
  qk_status_t status = dev->ops->queue_sync(dev->ctx, MESSAGES);
  return status ? status : send_out(halo, s);
}

/* Messages that must wait for the device start later. */
static qk_status_t prepare_messages(qk_halo_t *halo, halo_set_t *s) {
  const qk_device_t *dev = halo->dev;
  const qk_status_t status = dev->ops->queue_wait(dev->ctx, MESSAGES, COMPUTE);
  if (status) return status;
  if (dev->ops->host_memory) return start_messages(halo, s);
  return halo->staged ? stage(halo, s, QK_COPY_TO_HOST) : QK_OK;
}

/* ---- exchange -------------------------------------------------------------------------------- */

/* Of what is packed. Messages that must wait for the device start in end: the caller launches the
 * interior first. */
static qk_status_t start(qk_halo_t *halo, halo_set_t *s) {
  const qk_device_t *dev = halo->dev;
  qk_status_t status = s->signal.n > 0 ? dev->ops->signal(dev->ctx, &s->signal) : QK_OK;
  status = status || !s->by_messages ? status : prepare_messages(halo, s);
  if (status == QK_OK) halo->active = s;
  return status;
}

static qk_status_t begin(qk_halo_t *halo, halo_set_t *s, qk_pack_args_t *pack) {
  const qk_device_t *dev = halo->dev;
  memcpy(pack->to, s->send, sizeof pack->to);
  pack->turns = s->turns;
  qk_status_t status = dev->ops->pack(dev->ctx, pack);
  return status ? status : start(halo, s);
}

qk_status_t qk_halo_begin(qk_halo_t *halo, qk_hop_args_t *args) {
  if (!qk_halo_needed(halo)) return QK_OK;
  QK_ASSERT(!halo->active);
  halo_set_t *s;
  qk_status_t status = set_for(halo, &args->in, 6, 1, true, &s);
  if (status) return status;
  qk_pack_args_t pack = {.lat = args->lat,
                         .in_parity = args->in.subset,
                         .dagger = args->dagger,
                         .links = args->links,
                         .in = args->in};
  status = begin(halo, s, &pack);
  memcpy(args->ghost, s->recv, sizeof args->ghost);
  args->turns = s->turns;
  return status;
}

qk_status_t qk_halo_reserve_gauss(qk_halo_t *halo, const qk_spinor_t *in) {
  const int32_t *split = halo->dev->geom->lat.split;
  const int ncomp = in->ncomp == QK_COLOUR_COMPONENTS ? QK_COLOUR_COMPONENTS : 12;
  halo_set_t *s;
  return split[0] || split[1] || split[2] ? set_for(halo, in, ncomp, 1, false, &s) : QK_OK;
}

qk_status_t qk_halo_begin_gauss(qk_halo_t *halo, qk_gauss_args_t *args) {
  const int32_t *split = args->lat.split;
  if (!split[0] && !split[1] && !split[2]) return QK_OK;
  QK_ASSERT(!halo->active);
  halo_set_t *s;
  qk_status_t status = set_for(halo, &args->in, 12, 1, false, &s);
  if (status) return status;
  qk_pack_args_t pack = {
      .lat = args->lat, .in_parity = QK_FULL, .whole = 1, .links = args->links, .in = args->in};
  status = begin(halo, s, &pack);
  memcpy(args->ghost, s->recv, sizeof args->ghost);
  args->turns = s->turns;
  return status;
}

/* Starts what has been packed, and tells where it arrives. */
static qk_status_t packed(qk_halo_t *halo, halo_set_t *s, qk_status_t status,
                          qk_spinor_t ghost[4][2], qk_turns_t *turns) {
  status = status ? status : start(halo, s);
  memcpy(ghost, s->recv, sizeof s->recv);
  *turns = s->turns;
  return status;
}

qk_status_t qk_halo_begin_coarse(qk_halo_t *halo, qk_coarse_args_t *args) {
  const qk_device_t *dev = halo->dev;
  if (!qk_halo_needed(halo)) return QK_OK;
  QK_ASSERT(!halo->active);
  halo_set_t *s;
  qk_status_t status = set_for(halo, &args->in, args->in.ncomp, 1, true, &s);
  if (status) return status;
  qk_coarse_pack_args_t pack = {
      .lat = args->lat, .in_parity = args->in.subset, .in = args->in, .turns = s->turns};
  memcpy(pack.to, s->send, sizeof pack.to);
  return packed(halo, s, dev->ops->coarse_pack(dev->ctx, &pack), args->ghost, &args->turns);
}

qk_status_t qk_halo_begin_stag(qk_halo_t *halo, qk_stag_args_t *args) {
  const qk_device_t *dev = halo->dev;
  if (!qk_halo_needed(halo)) return QK_OK;
  QK_ASSERT(!halo->active);
  const int depth = qk_stag_depth(&args->links);
  /* smearing in space has no faces in time */
  const bool in_time = args->lat.split[3] == dev->geom->lat.split[3];
  halo_set_t *s;
  qk_status_t status = set_for(halo, &args->in, QK_COLOUR_COMPONENTS, depth, in_time, &s);
  if (status) return status;
  qk_stag_pack_args_t pack = {.lat = args->lat,
                              .in_parity = args->in.subset,
                              .depth = depth,
                              .in = args->in,
                              .turns = s->turns};
  memcpy(pack.to, s->send, sizeof pack.to);
  return packed(halo, s, dev->ops->stag_pack(dev->ctx, &pack), args->ghost, &args->turns);
}

static qk_status_t end_messages(qk_halo_t *halo, halo_set_t *s) {
  const qk_device_t *dev = halo->dev;
  qk_status_t status = dev->ops->host_memory ? QK_OK : start_messages(halo, s);
  status = status ? status : qk_comm_exchange_end(dev->geom->comm);
  if (status || !halo->staged) return status;
  status = stage(halo, s, QK_COPY_TO_DEVICE);
  return status ? status : dev->ops->queue_wait(dev->ctx, COMPUTE, MESSAGES);
}

qk_status_t qk_halo_end(qk_halo_t *halo) {
  const qk_device_t *dev = halo->dev;
  if (!halo->active) return QK_OK;
  halo_set_t *s = halo->active;
  halo->active = NULL;
  qk_status_t status = s->by_messages ? end_messages(halo, s) : QK_OK;
  s->done++;
  if (!status && s->await.n > 0) status = dev->ops->await(dev->ctx, &s->await);
  return status;
}
