#include "daemon/comm/comm.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/comm/comm_impl.h"

void qk_comm_init_base(qk_comm_t *comm, const qk_comm_ops_t *ops, int rank, int size,
                       int local_rank, int local_size, int host) {
  comm->ops = ops;
  comm->rank = rank;
  comm->size = size;
  comm->local_rank = local_rank;
  comm->local_size = local_size;
  comm->host = host;
  comm->exchanging = false;
  memcpy(comm->grid, (int[4]){1, 1, 1, size}, sizeof comm->grid);
  qk_comm_coord_of(comm, rank, comm->coord);
}

void qk_comm_destroy(qk_comm_t *comm) {
  if (comm != NULL) comm->ops->destroy(comm);
}

void qk_comm_abort(qk_comm_t *comm, int exit_code) {
  comm->ops->abort(comm, exit_code);
}

int qk_comm_rank(const qk_comm_t *comm) {
  return comm->rank;
}
int qk_comm_size(const qk_comm_t *comm) {
  return comm->size;
}
bool qk_comm_reads_device(const qk_comm_t *comm) {
  return comm->reads_device;
}

int qk_comm_local_rank(const qk_comm_t *comm) {
  return comm->local_rank;
}
int qk_comm_local_size(const qk_comm_t *comm) {
  return comm->local_size;
}
int qk_comm_host(const qk_comm_t *comm) {
  return comm->host;
}

qk_status_t qk_comm_set_grid(qk_comm_t *comm, const int grid[4], qk_err_t *err) {
  int64_t ranks = 1;
  for (int mu = 0; mu < 4; mu++) {
    if (grid[mu] < 1)
      return qk_fail(err, QK_BAD_GEOMETRY, "grid[%d] = %d: must be at least 1", mu, grid[mu]);
    ranks *= grid[mu];
    if (ranks > comm->size) break;
  }
  if (ranks != comm->size)
    return qk_fail(err, QK_BAD_GEOMETRY, "grid %dx%dx%dx%d does not make %d ranks", grid[0],
                   grid[1], grid[2], grid[3], comm->size);
  memcpy(comm->grid, grid, sizeof comm->grid);
  qk_comm_coord_of(comm, comm->rank, comm->coord);
  return QK_OK;
}

void qk_comm_grid(const qk_comm_t *comm, int grid[4], int coord[4]) {
  memcpy(grid, comm->grid, sizeof comm->grid);
  memcpy(coord, comm->coord, sizeof comm->coord);
}

void qk_comm_coord_of(const qk_comm_t *comm, int rank, int coord[4]) {
  QK_ASSERT(rank >= 0 && rank < comm->size);
  for (int mu = 0; mu < 4; mu++) {
    coord[mu] = rank % comm->grid[mu];
    rank /= comm->grid[mu];
  }
}

int qk_comm_neighbour(const qk_comm_t *comm, int mu, int sign) {
  QK_ASSERT(mu >= 0 && mu < 4 && (sign == 1 || sign == -1));
  int rank = 0;
  for (int nu = 3; nu >= 0; nu--) {
    int c = comm->coord[nu];
    if (nu == mu) c = (c + sign + comm->grid[nu]) % comm->grid[nu];
    rank = rank * comm->grid[nu] + c;
  }
  return rank;
}

qk_status_t qk_comm_exchange_begin(qk_comm_t *comm, int n, const qk_comm_msg_t msg[]) {
  QK_ASSERT(n >= 0 && n <= QK_COMM_MAX_MSG && !comm->exchanging);
  for (int i = 0; i < n; i++) {
    QK_ASSERT(msg[i].to >= QK_COMM_NOBODY && msg[i].to < comm->size);
    QK_ASSERT(msg[i].from >= QK_COMM_NOBODY && msg[i].from < comm->size);
  }
  comm->exchanging = true;
  return comm->ops->exchange_begin(comm, n, msg);
}

qk_status_t qk_comm_exchange_end(qk_comm_t *comm) {
  QK_ASSERT(comm->exchanging);
  comm->exchanging = false;
  return comm->ops->exchange_end(comm);
}

qk_status_t qk_comm_exchange(qk_comm_t *comm, int n, const qk_comm_msg_t msg[]) {
  qk_status_t status = qk_comm_exchange_begin(comm, n, msg);
  return status == QK_OK ? qk_comm_exchange_end(comm) : status;
}

qk_status_t qk_comm_sum(qk_comm_t *comm, double *v, int n) {
  return comm->ops->reduce(comm, QK_COMM_SUM_F64, v, n);
}

qk_status_t qk_comm_max(qk_comm_t *comm, double *v, int n) {
  return comm->ops->reduce(comm, QK_COMM_MAX_F64, v, n);
}

qk_status_t qk_comm_sum_u64(qk_comm_t *comm, uint64_t *v, int n) {
  return comm->ops->reduce(comm, QK_COMM_SUM_U64, v, n);
}

qk_status_t qk_comm_xor_u32(qk_comm_t *comm, uint32_t *v, int n) {
  return comm->ops->reduce(comm, QK_COMM_XOR_U32, v, n);
}

qk_status_t qk_comm_bcast(qk_comm_t *comm, void *buf, size_t bytes, int root) {
  QK_ASSERT(root >= 0 && root < comm->size);
  return comm->ops->bcast(comm, buf, bytes, root);
}

qk_status_t qk_comm_bcast_idle(qk_comm_t *comm, void *buf, size_t bytes, int root) {
  QK_ASSERT(root >= 0 && root < comm->size);
  return comm->ops->bcast_idle(comm, buf, bytes, root);
}

qk_status_t qk_comm_send(qk_comm_t *comm, const void *buf, size_t bytes, int to, int tag) {
  QK_ASSERT(to >= 0 && to < comm->size && to != comm->rank);
  return comm->ops->send(comm, buf, bytes, to, tag);
}

qk_status_t qk_comm_recv(qk_comm_t *comm, void *buf, size_t bytes, int from, int tag) {
  QK_ASSERT(from >= 0 && from < comm->size && from != comm->rank);
  return comm->ops->recv(comm, buf, bytes, from, tag);
}

qk_status_t qk_comm_agree(qk_comm_t *comm, qk_status_t mine, qk_err_t *err) {
  /* max of size - rank over the ranks that failed: the lowest of them wins, 0 when none did */
  double score = mine == QK_OK ? 0 : comm->size - comm->rank;
  qk_status_t status = qk_comm_max(comm, &score, 1);
  if (status == QK_OK && score == 0) return QK_OK;

  qk_err_t verdict = {.code = mine};
  int root = comm->size - (int)score;
  if (status == QK_OK) {
    bool told = err != NULL && err->code == mine && err->text[0] != '\0';
    snprintf(verdict.text, sizeof verdict.text, "%s", told ? err->text : qk_status_text(mine));
    status = qk_comm_bcast(comm, &verdict, sizeof verdict, root);
  }
  if (status != QK_OK) return qk_fail(err, status, "the ranks could not agree on a status");
  if (err != NULL) {
    *err = verdict;
    if (comm->rank != root) qk_err_prefix(err, "rank %d", root);
  }
  return verdict.code;
}
