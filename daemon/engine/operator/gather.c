#include "daemon/engine/operator/gather.h"

#include "daemon/base/mem.h"
#include "daemon/engine/lattice/peers.h"

/* Buffers of one kind of field. */
typedef struct set {
  struct set *next;
  qk_field_t *room;
  /* With peers: the whole field of each, in two halves, and flags. */
  qk_peer_memory_t *shared;
  qk_turns_t turns;
  qk_signal_args_t signal, await;
  /* Else: the part of another rank. */
  void *host;
  qk_field_t *theirs;
} set_t;

struct qk_gather {
  const qk_device_t *part, *whole;
  set_t *sets;
};

qk_status_t qk_gather_create(const qk_device_t *part, const qk_device_t *whole,
                             qk_gather_t **gather) {
  qk_gather_t *g = qk_calloc(1, sizeof *g);
  if (!g) return QK_NO_MEMORY;
  *g = (qk_gather_t){.part = part, .whole = whole};
  *gather = g;
  return QK_OK;
}

/* ---- buffers --------------------------------------------------------------------------------- */

static void set_destroy(const qk_gather_t *g, set_t *s) {
  if (!s) return;
  qk_field_destroy(s->theirs);
  if (s->host) g->part->ops->free_host(g->part->ctx, s->host);
  qk_peers_give_back(s->shared);
  qk_field_destroy(s->room);
  qk_free(s);
}

void qk_gather_destroy(qk_gather_t *g) {
  if (!g) return;
  while (g->sets) {
    set_t *s = g->sets;
    g->sets = s->next;
    set_destroy(g, s);
  }
  qk_free(g);
}

static bool is_shared(const qk_gather_t *g) {
  return g->part->peers && qk_dev_alone(g->part);
}

/* What this rank has of its own. */
static qk_status_t reserve(const qk_gather_t *g, set_t *s, qk_prec_t prec, int nrhs) {
  const qk_device_t *dev = g->part;
  if (!s) return QK_NO_MEMORY;
  qk_status_t status = qk_field_create(dev, prec, nrhs, QK_FULL, &s->room);
  if (status || is_shared(g)) return status;
  status = qk_field_create(dev, prec, nrhs, QK_FULL, &s->theirs);
  return status ? status : dev->ops->alloc_host(dev->ctx, s->room->bytes, &s->host);
}

/* Flag r of a rank is that of rank r. */
static qk_status_t share(const qk_gather_t *g, set_t *s) {
  const qk_device_t *dev = g->part;
  const int rank = qk_comm_rank(dev->geom->comm), size = qk_comm_size(dev->geom->comm);
  const double seconds = qk_peers_limit(dev->peers);
  const size_t bytes = qk_field_bytes(g->whole->geom, s->room->v.prec, s->room->v.nrhs, QK_FULL);
  const int64_t flip = (int64_t)((bytes + 255) / 256 * 256);
  const qk_status_t status = qk_peers_take(dev, qk_peers_exchange_bytes(flip), &s->shared);
  if (status) return status;
  uint32_t *epoch = qk_peers_epoch(s->shared->own, flip);
  s->turns = (qk_turns_t){.epoch = epoch, .flip = flip};
  s->signal = s->await = (qk_signal_args_t){.epoch = epoch, .n = size, .seconds = seconds};
  for (int r = 0; r < size; r++) {
    s->signal.flag[r] = qk_peers_flag(s->shared->of[r], flip, rank);
    s->await.flag[r] = qk_peers_flag(s->shared->own, flip, r);
  }
  return QK_OK;
}

static qk_status_t set_create(qk_gather_t *g, qk_prec_t prec, int nrhs, set_t **set) {
  set_t *s = qk_calloc(1, sizeof *s);
  qk_status_t status = qk_comm_agree(g->part->geom->comm, reserve(g, s, prec, nrhs), NULL);
  if (!status && is_shared(g)) status = share(g, s);
  if (status) {
    set_destroy(g, s);
    return status;
  }
  s->next = g->sets;
  g->sets = s;
  *set = s;
  return QK_OK;
}

/* NULL after a failure. */
static set_t *set_for(qk_gather_t *g, const qk_field_t *whole) {
  set_t *s = g->sets;
  while (s && (s->room->v.prec != whole->v.prec || s->room->v.nrhs != whole->v.nrhs)) s = s->next;
  if (!s && qk_dev_ok(g->part))
    qk_dev_note(g->part, set_create(g, whole->v.prec, whole->v.nrhs, &s));
  return qk_dev_ok(g->part) ? s : NULL;
}

/* ---- what goes between the ranks ------------------------------------------------------------- */

static qk_part_args_t args_of(const qk_gather_t *g, const qk_geom_t *geom, const qk_field_t *part,
                              void *of) {
  return (qk_part_args_t){
      .lat = geom->lat, .whole = g->whole->geom->lat, .part = part->v, .n = 1, .of = {of}};
}

static void put(const qk_gather_t *g, const qk_part_args_t *args) {
  if (qk_dev_ok(g->part)) qk_dev_note(g->part, g->part->ops->part_put(g->part->ctx, args));
}

static void get(const qk_gather_t *g, const qk_part_args_t *args) {
  if (qk_dev_ok(g->part)) qk_dev_note(g->part, g->part->ops->part_get(g->part->ctx, args));
}

static void all_by_memory(const qk_gather_t *g, const set_t *s, qk_field_t *whole) {
  const qk_device_t *dev = g->part;
  qk_part_args_t out = args_of(g, dev->geom, s->room, NULL);
  qk_part_args_t in = args_of(g, g->whole->geom, whole, s->shared->own);
  out.turns = in.turns = s->turns;
  out.n = s->signal.n;
  for (int r = 0; r < out.n; r++) out.of[r] = s->shared->of[r];
  put(g, &out);
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->signal(dev->ctx, &s->signal));
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->await(dev->ctx, &s->await));
  get(g, &in);
}

static void all_by_messages(const qk_gather_t *g, const set_t *s, qk_field_t *whole) {
  const qk_device_t *dev = g->part;
  qk_comm_t *comm = dev->geom->comm;
  const int rank = qk_comm_rank(comm), size = qk_comm_size(comm);
  const size_t bytes = s->room->bytes;
  for (int r = 0; r < size; r++) {
    qk_part_args_t args = args_of(g, dev->geom, r == rank ? s->room : s->theirs, whole->v.data);
    args.lat = qk_geom_part_of(dev->geom, r);
    if (r == rank) qk_dev_copy(dev, s->host, s->room->v.data, bytes, QK_COPY_TO_HOST);
    qk_dev_sync(dev); /* the host's buffer has what goes out, and what came in has left it */
    if (size > 1 && qk_dev_ok(dev)) qk_dev_note(dev, qk_comm_bcast(comm, s->host, bytes, r));
    if (r != rank) qk_dev_copy(dev, s->theirs->v.data, s->host, bytes, QK_COPY_TO_DEVICE);
    put(g, &args);
  }
}

qk_field_t qk_gather_room(qk_gather_t *g, const qk_field_t *whole) {
  static const qk_field_t none;
  const set_t *s = set_for(g, whole);
  return s ? *s->room : none;
}

void qk_gather_all(qk_gather_t *g, qk_field_t *whole) {
  const set_t *s = set_for(g, whole);
  if (!s) return;
  if (s->shared)
    all_by_memory(g, s, whole);
  else
    all_by_messages(g, s, whole);
}

qk_field_t qk_gather_own(qk_gather_t *g, const qk_field_t *whole) {
  const qk_field_t room = qk_gather_room(g, whole);
  const qk_part_args_t args = args_of(g, g->part->geom, &room, whole->v.data);
  get(g, &args);
  return room;
}
