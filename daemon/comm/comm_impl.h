/*
 * comm_impl.h: what the files of daemon/comm share. A communicator is the ranks and their grid,
 * which comm.c knows, over a table of transports, which comm_self.c and comm_mpi.c provide.
 *
 * Table entries are only called with arguments that comm.c has checked. They return QK_OK or
 * QK_COMM_ERROR; the text of a failure goes to the log where it is seen.
 */
#ifndef QK_COMM_IMPL_H
#define QK_COMM_IMPL_H

#include <stdbool.h>

#include "daemon/comm/comm.h"

enum { QK_COMM_MAX_MSG = 16 };

typedef enum qk_comm_reduce {
  QK_COMM_SUM_F64,
  QK_COMM_MAX_F64,
  QK_COMM_SUM_U64,
  QK_COMM_XOR_U32,
} qk_comm_reduce_t;

typedef struct qk_comm_ops {
  void (*destroy)(qk_comm_t *comm);
  void (*abort)(qk_comm_t *comm, int exit_code);
  qk_status_t (*exchange_begin)(qk_comm_t *comm, int n, const qk_comm_msg_t msg[]);
  qk_status_t (*exchange_end)(qk_comm_t *comm);
  qk_status_t (*reduce)(qk_comm_t *comm, qk_comm_reduce_t kind, void *v, int n);
  qk_status_t (*bcast)(qk_comm_t *comm, void *buf, size_t bytes, int root);
  qk_status_t (*bcast_idle)(qk_comm_t *comm, void *buf, size_t bytes, int root);
  qk_status_t (*send)(qk_comm_t *comm, const void *buf, size_t bytes, int to, int tag);
  qk_status_t (*recv)(qk_comm_t *comm, void *buf, size_t bytes, int from, int tag);
} qk_comm_ops_t;

/* First member of what each transport allocates. */
struct qk_comm {
  const qk_comm_ops_t *ops;
  int rank, size, local_rank, local_size, host;
  int grid[4], coord[4];
  bool reads_device;
  bool exchanging; /* between exchange_begin and exchange_end */
};

/* Sets the members above; the grid is size ranks along t until qk_comm_set_grid. */
void qk_comm_init_base(qk_comm_t *comm, const qk_comm_ops_t *ops, int rank, int size,
                       int local_rank, int local_size, int host);

#endif
