/* One rank: collectives are the identity, messages go from the rank to itself. */
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/comm/comm_impl.h"

typedef struct qk_comm_self {
  qk_comm_t base;
  int n;
  qk_comm_msg_t msg[QK_COMM_MAX_MSG];
} qk_comm_self_t;

static void self_destroy(qk_comm_t *comm) {
  qk_free(comm);
}

static void self_abort(qk_comm_t *comm, int exit_code) {
  (void)comm;
  exit(exit_code);
}

static qk_status_t self_exchange_begin(qk_comm_t *comm, int n, const qk_comm_msg_t msg[]) {
  qk_comm_self_t *self = (qk_comm_self_t *)comm;
  self->n = n;
  memcpy(self->msg, msg, (size_t)n * sizeof *msg);
  return QK_OK;
}

/* As in MPI, the k-th receive with a tag takes the k-th send with it. */
static qk_status_t self_exchange_end(qk_comm_t *comm) {
  qk_comm_self_t *self = (qk_comm_self_t *)comm;
  bool sent[QK_COMM_MAX_MSG] = {false};
  for (int i = 0; i < self->n; i++) {
    int k = 0;
    while (k < self->n && (sent[k] || self->msg[k].tag != self->msg[i].tag)) k++;
    QK_ASSERT(k < self->n && self->msg[k].bytes == self->msg[i].bytes);
    sent[k] = true;
    if (self->msg[i].bytes > 0) memcpy(self->msg[i].recv, self->msg[k].send, self->msg[i].bytes);
  }
  return QK_OK;
}

static qk_status_t self_reduce(qk_comm_t *comm, qk_comm_reduce_t kind, void *v, int n) {
  (void)comm, (void)kind, (void)v, (void)n;
  return QK_OK;
}

static qk_status_t self_bcast(qk_comm_t *comm, void *buf, size_t bytes, int root) {
  (void)comm, (void)buf, (void)bytes, (void)root;
  return QK_OK;
}

/* comm.c lets no rank send to itself, so that these are never reached. */
static qk_status_t self_send(qk_comm_t *comm, const void *buf, size_t bytes, int to, int tag) {
  (void)comm, (void)buf, (void)bytes, (void)to, (void)tag;
  return QK_COMM_ERROR;
}

static qk_status_t self_recv(qk_comm_t *comm, void *buf, size_t bytes, int from, int tag) {
  (void)comm, (void)buf, (void)bytes, (void)from, (void)tag;
  return QK_COMM_ERROR;
}

static const qk_comm_ops_t self_ops = {
    .destroy = self_destroy,
    .abort = self_abort,
    .exchange_begin = self_exchange_begin,
    .exchange_end = self_exchange_end,
    .reduce = self_reduce,
    .bcast = self_bcast,
    .bcast_idle = self_bcast,
    .send = self_send,
    .recv = self_recv,
};

qk_status_t qk_comm_self_create(qk_comm_t **comm, qk_err_t *err) {
  qk_comm_self_t *self = qk_calloc(1, sizeof *self);
  if (self == NULL) return qk_fail(err, QK_NO_MEMORY, "no memory for a communicator");
  qk_comm_init_base(&self->base, &self_ops, 0, 1, 0, 1, 0);
  *comm = &self->base;
  return QK_OK;
}
