#include "daemon/engine/lattice/peers.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"

/* Doubles of a mailbox; longer sums are made in pieces. */
enum { MOST = 8192, LIMIT = 60 };

typedef enum transport { AUTO, PEER, STAGED } transport_t;

struct qk_peers {
  int rank, size;
  bool all; /* every rank is a peer, and few enough for sums on the device */
  double limit;
  qk_peer_memory_t *memory; /* all that there is, taken or not */
  qk_peer_memory_t *box;    /* of sums, if all */
};

bool qk_peers_has(const qk_peers_t *peers, int rank) {
  return peers && peers->box->of[rank];
}

double qk_peers_limit(const qk_peers_t *peers) {
  return peers->limit;
}

bool qk_dev_alone(const qk_device_t *dev) {
  const int32_t *split = dev->geom->lat.split;
  if (dev->peers) return dev->peers->all;
  return qk_comm_size(dev->geom->comm) == 1 && !split[0] && !split[1] && !split[2] && !split[3];
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* What a rank tells the others of the memory it has made. */
typedef struct notice {
  qk_status_t status;
  int host;
  qk_peer_handle_t handle;
} notice_t;

static void close_all(const qk_device_t *dev, int rank, int size, qk_peer_memory_t *m) {
  for (int r = 0; r < size; r++)
    if (r != rank && m->of[r]) dev->ops->peer_close(dev->ctx, m->of[r]);
}

static void destroy_memory(const qk_device_t *dev, int rank, int size, qk_peer_memory_t *m) {
  close_all(dev, rank, size, m);
  dev->ops->peer_free(dev->ctx, m->own);
  qk_free(m);
}

/* Opens what the ranks of this host have made. */
static qk_status_t open_all(const qk_device_t *dev, const notice_t *notice, qk_peer_memory_t *m) {
  const qk_comm_t *comm = dev->geom->comm;
  const int rank = qk_comm_rank(comm), size = qk_comm_size(comm);
  qk_status_t status = QK_OK;
  for (int r = 0; r < size && !status; r++) status = notice[r].status;
  m->of[rank] = m->own;
  for (int r = 0; r < size && !status; r++)
    if (r != rank && notice[r].host == qk_comm_host(comm))
      status = dev->ops->peer_open(dev->ctx, &notice[r].handle, &m->of[r]);
  return status;
}

/* Collective. QK_UNSUPPORTED: ranks of one host cannot share memory. */
static qk_status_t make_memory(const qk_device_t *dev, size_t bytes, qk_peer_memory_t **memory) {
  qk_comm_t *comm = dev->geom->comm;
  const int rank = qk_comm_rank(comm), size = qk_comm_size(comm);
  qk_peer_memory_t *m = qk_calloc(1, sizeof *m + (size_t)size * sizeof m->of[0]);
  notice_t *notice = qk_calloc((size_t)size, sizeof *notice);
  qk_status_t status = qk_comm_agree(comm, m && notice ? QK_OK : QK_NO_MEMORY, NULL);
  if (!status) {
    m->bytes = bytes;
    notice[rank].host = qk_comm_host(comm);
    notice[rank].status = dev->ops->peer_alloc(dev->ctx, bytes, &m->own, &notice[rank].handle);
  }
  for (int r = 0; r < size && !status; r++)
    status = qk_comm_bcast(comm, &notice[r], sizeof *notice, r);
  status = status ? status : qk_comm_agree(comm, open_all(dev, notice, m), NULL);
  if (status && m) {
    destroy_memory(dev, rank, size, m);
    m = NULL;
  }
  qk_free(notice);
  *memory = m;
  return status;
}

enum { KEPT_MAX = 64 };

/* Memory of the right size that no rank uses: each gives back in an order of its own. */
static qk_status_t find_free(const qk_device_t *dev, size_t bytes, qk_peer_memory_t **found) {
  qk_comm_t *comm = dev->geom->comm;
  uint64_t free_on[KEPT_MAX] = {0};
  int i = 0;
  for (qk_peer_memory_t *m = dev->peers->memory; m && i < KEPT_MAX; m = m->next, i++)
    free_on[i] = !m->taken && m->bytes == bytes;
  *found = NULL;
  const qk_status_t status = qk_comm_sum_u64(comm, free_on, KEPT_MAX);
  i = 0;
  for (qk_peer_memory_t *m = dev->peers->memory; !status && m && i < KEPT_MAX; m = m->next, i++)
    if (free_on[i] == (uint64_t)qk_comm_size(comm)) *found = m;
  return status;
}

qk_status_t qk_peers_take(const qk_device_t *dev, size_t bytes, qk_peer_memory_t **memory) {
  qk_status_t status = find_free(dev, bytes, memory);
  if (!status && !*memory) {
    status = make_memory(dev, bytes, memory);
    if (status) return status;
    (*memory)->next = dev->peers->memory;
    dev->peers->memory = *memory;
  }
  if (!status) (*memory)->taken = true;
  return status;
}

void qk_peers_give_back(qk_peer_memory_t *memory) {
  if (memory) memory->taken = false;
}

/* ---- life ------------------------------------------------------------------------------------ */

static size_t box_bytes(int ranks) {
  return (size_t)(ranks + 1) * QK_PEER_LINE + 2 * (size_t)ranks * MOST * sizeof(double);
}

static double limit_of(const char *text) {
  const double seconds = text ? atof(text) : 0;
  return seconds > 0 ? seconds : LIMIT;
}

static void say(const qk_peers_t *p) {
  int peers = 0;
  if (p->rank != 0) return;
  for (int r = 0; r < p->size; r++) peers += r != p->rank && p->box->of[r];
  qk_info("peers", "%d of %d other ranks share memory with this one%s", peers, p->size - 1,
          p->all ? ": neither halos nor sums pass through the host" : "");
}

static void say_staged(const qk_device_t *dev, const char *why) {
  if (qk_comm_rank(dev->geom->comm) != 0) return;
  qk_info("peers", "halos and sums pass through MPI: %s", why);
}

static qk_status_t create(qk_device_t *dev, qk_peers_t **peers) {
  qk_comm_t *comm = dev->geom->comm;
  qk_peers_t *p = qk_calloc(1, sizeof *p);
  qk_status_t status = qk_comm_agree(comm, p ? QK_OK : QK_NO_MEMORY, NULL);
  if (!status) {
    p->rank = qk_comm_rank(comm);
    p->size = qk_comm_size(comm);
    p->all = p->size <= QK_PEER_RANKS && qk_comm_local_size(comm) == p->size;
    p->limit = limit_of(getenv("QK_PEER_LIMIT"));
    status = make_memory(dev, box_bytes(p->size), &p->memory);
  }
  if (status) {
    qk_free(p);
    return status;
  }
  p->box = p->memory;
  p->box->taken = true;
  *peers = p;
  return QK_OK;
}

static qk_status_t wanted(const char *text, transport_t *transport, qk_err_t *err) {
  static const char *const words[] = {[AUTO] = "auto", [PEER] = "peer", [STAGED] = "staged"};
  *transport = AUTO;
  for (int i = 0; text && i < 3; i++)
    if (strcmp(text, words[i]) == 0) {
      *transport = (transport_t)i;
      return QK_OK;
    }
  return text
             ? qk_fail(err, QK_BAD_ARGUMENT, "QK_TRANSPORT = \"%.32s\": auto, peer or staged", text)
             : QK_OK;
}

qk_status_t qk_peers_create(qk_device_t *dev, qk_err_t *err) {
  transport_t transport;
  qk_status_t status = wanted(getenv("QK_TRANSPORT"), &transport, err);
  if (status || qk_dev_alone(dev)) return status;
  if (transport == STAGED) {
    say_staged(dev, "QK_TRANSPORT says so");
    return QK_OK;
  }
  status = create(dev, &dev->peers);
  if (!status) {
    say(dev->peers);
    return QK_OK;
  }
  const char *why = dev->ops->last_error(dev->ctx);
  if (!why[0]) why = "another rank cannot open this one's memory";
  if (status != QK_UNSUPPORTED) return qk_fail(err, status, "peers: %s", qk_status_text(status));
  if (transport == PEER)
    return qk_fail(err, status, "QK_TRANSPORT = peer: ranks cannot share memory: %s", why);
  say_staged(dev, why);
  return QK_OK;
}

void qk_peers_destroy(qk_device_t *dev) {
  qk_peers_t *p = dev->peers;
  if (!p) return;
  dev->ops->queue_sync(dev->ctx, 0);
  for (qk_peer_memory_t *m = p->memory; m; m = m->next) {
    close_all(dev, p->rank, p->size, m);
    memset(m->of, 0, (size_t)p->size * sizeof m->of[0]);
  }
  qk_comm_agree(dev->geom->comm, QK_OK, NULL); /* nobody has it open any more */
  while (p->memory) {
    qk_peer_memory_t *m = p->memory;
    p->memory = m->next;
    destroy_memory(dev, p->rank, p->size, m);
  }
  qk_free(p);
  dev->peers = NULL;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void sum_on_device(const qk_device_t *dev, double *v, size_t n) {
  const qk_peers_t *p = dev->peers;
  qk_peer_sum_args_t args = {.rank = p->rank, .ranks = p->size, .most = MOST, .seconds = p->limit};
  for (int r = 0; r < p->size; r++) {
    args.flag[r] = p->box->of[r];
    args.box[r] = (double *)(args.flag[r] + (p->size + 1) * QK_PEER_LINE);
  }
  args.epoch = (uint32_t *)(args.flag[p->rank] + p->size * QK_PEER_LINE);
  for (size_t done = 0; done < n && qk_dev_ok(dev); done += MOST) {
    args.v = v + done;
    args.n = (int32_t)(n - done < MOST ? n - done : MOST);
    qk_dev_note(dev, dev->ops->peer_sum(dev->ctx, &args));
  }
}

void qk_dev_sum(const qk_device_t *dev, double *device, double *host, size_t n) {
  const size_t bytes = n * sizeof *host;
  if (qk_comm_size(dev->geom->comm) == 1) return;
  if (dev->peers && dev->peers->all) {
    sum_on_device(dev, device, n);
    return;
  }
  qk_dev_copy(dev, host, device, bytes, QK_COPY_TO_HOST);
  qk_dev_sync(dev);
  if (qk_dev_ok(dev)) qk_dev_note(dev, qk_comm_sum(dev->geom->comm, host, (int)n));
  qk_dev_copy(dev, device, host, bytes, QK_COPY_TO_DEVICE);
}
