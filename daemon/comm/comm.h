/*
 * comm.h: ranks on a 4-dimensional grid. comm_self.c is one rank without MPI; comm_mpi.c is the
 * only file that includes mpi.h. Messages are host memory. Directions 0..3 = x, y, z, t.
 *
 * Collective calls are marked so: every rank makes them in the same order. Errors: QK_COMM_ERROR.
 */
#ifndef QK_COMM_H
#define QK_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/err.h"

typedef struct qk_comm qk_comm_t;

/* One rank in this process. */
qk_status_t qk_comm_self_create(qk_comm_t **comm, qk_err_t *err);
/* MPI_COMM_WORLD; initialises MPI. One per process. Collective. In a build without MPI:
 * QK_UNSUPPORTED. */
qk_status_t qk_comm_mpi_create(int *argc, char ***argv, qk_comm_t **comm, qk_err_t *err);
/* NULL-safe; finalises MPI. Collective. */
void qk_comm_destroy(qk_comm_t *comm);
/* Ends all ranks at once, for errors that one rank cannot share. Only main() calls it. */
void qk_comm_abort(qk_comm_t *comm, int exit_code);

int qk_comm_rank(const qk_comm_t *comm);
int qk_comm_size(const qk_comm_t *comm);
/* Rank among those of this host: which GPU to take. */
int qk_comm_local_rank(const qk_comm_t *comm);
/* Whether messages may be in the memory of GPUs. */
bool qk_comm_reads_device(const qk_comm_t *comm);
/* Ranks of this host. */
int qk_comm_local_size(const qk_comm_t *comm);
/* Lowest rank of this host: ranks for which it is the same share memory. */
int qk_comm_host(const qk_comm_t *comm);

/* How far a grid is from what the caller wants of it; 0: it is that. Pure. */
typedef int64_t qk_comm_misfit_fn(const void *arg, const int grid[4]);
/* Chooses a grid for `dims` (global extents) where grid[mu] == 0, keeps the entries that are given:
 * of the grids with least misfit (NULL: of all) the one with least surface, of equals the one that
 * splits t before z, y and x. Each local extent must be even, and >= 4 where split. QK_BAD_GEOMETRY
 * names what would fit. Pure. */
qk_status_t qk_comm_choose_grid(int size, const int dims[4], qk_comm_misfit_fn *misfit,
                                const void *arg, int grid[4], qk_err_t *err);
/* Lays the ranks on `grid` (product == size), x fastest. Collective. */
qk_status_t qk_comm_set_grid(qk_comm_t *comm, const int grid[4], qk_err_t *err);
void qk_comm_grid(const qk_comm_t *comm, int grid[4], int coord[4]);
/* Rank of the neighbour in direction mu, sign +1 (ahead) or -1 (behind); periodic. */
int qk_comm_neighbour(const qk_comm_t *comm, int mu, int sign);
/* Grid coordinates of any rank. */
void qk_comm_coord_of(const qk_comm_t *comm, int rank, int coord[4]);

/* n exchanges started together: send[i] to peer to[i], recv[i] from peer from[i], `tag` pairs them.
 * begin and end are one pair on each rank; buffers must stay until end. At most 16. */
enum { QK_COMM_NOBODY = -1 }; /* as to or from: nothing is sent, or received */

typedef struct qk_comm_msg {
  int to, from, tag;
  const void *send;
  void *recv;
  size_t bytes;
} qk_comm_msg_t;
qk_status_t qk_comm_exchange_begin(qk_comm_t *comm, int n, const qk_comm_msg_t msg[]);
qk_status_t qk_comm_exchange_end(qk_comm_t *comm);
/* Both, with nothing in between. */
qk_status_t qk_comm_exchange(qk_comm_t *comm, int n, const qk_comm_msg_t msg[]);

/* Collective. In place. Sums of doubles have the same bits on all ranks; for up to
 * QK_COMM_ORDERED ranks they are made in the order of ranks, as on devices (cuda/peer_ops.h). */
enum { QK_COMM_ORDERED = 8 };

qk_status_t qk_comm_sum(qk_comm_t *comm, double *v, int n);
qk_status_t qk_comm_max(qk_comm_t *comm, double *v, int n);
qk_status_t qk_comm_sum_u64(qk_comm_t *comm, uint64_t *v, int n);
qk_status_t qk_comm_xor_u32(qk_comm_t *comm, uint32_t *v, int n);
qk_status_t qk_comm_bcast(qk_comm_t *comm, void *buf, size_t bytes, int root);
/* Like bcast of a command by rank 0, but waiting ranks sleep between polls instead of spinning. */
qk_status_t qk_comm_bcast_idle(qk_comm_t *comm, void *buf, size_t bytes, int root);

/* Point to point, blocking, any size. */
qk_status_t qk_comm_send(qk_comm_t *comm, const void *buf, size_t bytes, int to, int tag);
qk_status_t qk_comm_recv(qk_comm_t *comm, void *buf, size_t bytes, int from, int tag);

/* Every rank leaves with the same verdict: the status of the lowest rank that failed, with its
 * text. Collective. */
qk_status_t qk_comm_agree(qk_comm_t *comm, qk_status_t mine, qk_err_t *err);

#endif
