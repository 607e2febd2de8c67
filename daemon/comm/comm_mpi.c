/*
 * Ranks through MPI. Errors come back as statuses (MPI_ERRORS_RETURN); what MPI says of them is
 * logged here, once. Messages are cut into pieces below the int counts of MPI 3.
 */
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h> /* MPIX_Query_cuda_support */
#endif
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/assert.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/comm/comm_impl.h"

/* Up to MAX_PIECES * PIECE bytes in each direction of a message of an exchange. */
enum { PIECE = 1 << 30, MAX_PIECES = 8, MAX_REQUESTS = 2 * MAX_PIECES * QK_COMM_MAX_MSG };

typedef struct qk_comm_mpi {
  qk_comm_t base;
  MPI_Comm world;    /* collectives, send, recv */
  MPI_Comm exchange; /* halo exchanges: their tags cannot meet those of send and recv */
  int nrequest;
  MPI_Request request[MAX_REQUESTS];
} qk_comm_mpi_t;

static qk_status_t check(const char *what, int code) {
  if (code == MPI_SUCCESS) return QK_OK;
  char text[MPI_MAX_ERROR_STRING] = "";
  int n = 0;
  MPI_Error_string(code, text, &n);
  qk_error("comm", "%s: %s", what, text);
  return QK_COMM_ERROR;
}

static int piece_of(size_t bytes, size_t done) {
  return (int)(bytes - done < PIECE ? bytes - done : PIECE);
}

static void mpi_destroy(qk_comm_t *comm) {
  qk_comm_mpi_t *mpi = (qk_comm_mpi_t *)comm;
  MPI_Comm_free(&mpi->exchange);
  MPI_Comm_free(&mpi->world);
  MPI_Finalize();
  qk_free(mpi);
}

/* Under Open MPI's mpirun, a rank that exits without MPI_Finalize ends the others, and mpirun
 * returns its exit code. If several ranks call MPI_Abort at once, for example after a fault that
 * all of them see, mpirun may crash (4.1.4: its log service still runs while it ends), and the
 * code is lost. */
static void mpi_abort(qk_comm_t *comm, int exit_code) {
  if (getenv("OMPI_COMM_WORLD_RANK") != NULL) _exit(exit_code);
  MPI_Abort(((qk_comm_mpi_t *)comm)->world, exit_code);
}

static qk_status_t mpi_exchange_begin(qk_comm_t *comm, int n, const qk_comm_msg_t msg[]) {
  qk_comm_mpi_t *mpi = (qk_comm_mpi_t *)comm;
  qk_status_t status = QK_OK;
  mpi->nrequest = 0;
  for (int i = 0; i < n && status == QK_OK; i++) {
    const qk_comm_msg_t *m = &msg[i];
    if (m->bytes > (size_t)MAX_PIECES * PIECE) {
      qk_error("comm", "message of %zu bytes: at most %zu", m->bytes, (size_t)MAX_PIECES * PIECE);
      return QK_COMM_ERROR;
    }
    for (size_t done = 0; m->from != QK_COMM_NOBODY && done < m->bytes && status == QK_OK;
         done += PIECE)
      status = check("MPI_Irecv",
                     MPI_Irecv((char *)m->recv + done, piece_of(m->bytes, done), MPI_BYTE, m->from,
                               m->tag, mpi->exchange, &mpi->request[mpi->nrequest++]));
  }
  for (int i = 0; i < n && status == QK_OK; i++) {
    const qk_comm_msg_t *m = &msg[i];
    for (size_t done = 0; m->to != QK_COMM_NOBODY && done < m->bytes && status == QK_OK;
         done += PIECE)
      status = check("MPI_Isend",
                     MPI_Isend((const char *)m->send + done, piece_of(m->bytes, done), MPI_BYTE,
                               m->to, m->tag, mpi->exchange, &mpi->request[mpi->nrequest++]));
  }
  return status;
}

static qk_status_t mpi_exchange_end(qk_comm_t *comm) {
  qk_comm_mpi_t *mpi = (qk_comm_mpi_t *)comm;
  return check("MPI_Waitall", MPI_Waitall(mpi->nrequest, mpi->request, MPI_STATUSES_IGNORE));
}

/* The sum in the order of the ranks. */
static qk_status_t sum_in_order(const qk_comm_mpi_t *mpi, double *v, int n) {
  enum { MOST = 512 };
  double all[MOST * QK_COMM_ORDERED];
  qk_status_t status = QK_OK;
  for (int done = 0; done < n && status == QK_OK; done += MOST) {
    const int m = n - done < MOST ? n - done : MOST;
    status = check("MPI_Allgather",
                   MPI_Allgather(v + done, m, MPI_DOUBLE, all, m, MPI_DOUBLE, mpi->world));
    for (int i = 0; status == QK_OK && i < m; i++) {
      v[done + i] = 0;
      for (int r = 0; r < mpi->base.size; r++) v[done + i] += all[r * m + i];
    }
  }
  return status;
}

static qk_status_t mpi_reduce(qk_comm_t *comm, qk_comm_reduce_t kind, void *v, int n) {
  static const struct {
    MPI_Datatype type;
    MPI_Op op;
  } how[] = {
      [QK_COMM_SUM_F64] = {MPI_DOUBLE, MPI_SUM},
      [QK_COMM_MAX_F64] = {MPI_DOUBLE, MPI_MAX},
      [QK_COMM_SUM_U64] = {MPI_UINT64_T, MPI_SUM},
      [QK_COMM_XOR_U32] = {MPI_UINT32_T, MPI_BXOR},
  };
  qk_comm_mpi_t *mpi = (qk_comm_mpi_t *)comm;
  if (kind == QK_COMM_SUM_F64 && comm->size <= QK_COMM_ORDERED) return sum_in_order(mpi, v, n);
  return check("MPI_Allreduce",
               MPI_Allreduce(MPI_IN_PLACE, v, n, how[kind].type, how[kind].op, mpi->world));
}

static qk_status_t mpi_bcast(qk_comm_t *comm, void *buf, size_t bytes, int root) {
  qk_comm_mpi_t *mpi = (qk_comm_mpi_t *)comm;
  qk_status_t status = QK_OK;
  for (size_t done = 0; done < bytes && status == QK_OK; done += PIECE)
    status = check("MPI_Bcast", MPI_Bcast((char *)buf + done, piece_of(bytes, done), MPI_BYTE, root,
                                          mpi->world));
  return status;
}

/* From 50 us between polls to 2 ms, so that an idle engine leaves its cores alone. */
static qk_status_t mpi_bcast_idle(qk_comm_t *comm, void *buf, size_t bytes, int root) {
  qk_comm_mpi_t *mpi = (qk_comm_mpi_t *)comm;
  QK_ASSERT(bytes <= PIECE);
  MPI_Request request;
  qk_status_t status =
      check("MPI_Ibcast", MPI_Ibcast(buf, (int)bytes, MPI_BYTE, root, mpi->world, &request));
  struct timespec pause = {.tv_nsec = 50000};
  while (status == QK_OK) {
    int done = 0;
    status = check("MPI_Test", MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done) break;
    nanosleep(&pause, NULL);
    pause.tv_nsec = pause.tv_nsec < 1000000 ? pause.tv_nsec * 2 : 2000000;
  }
  return status;
}

static qk_status_t mpi_send(qk_comm_t *comm, const void *buf, size_t bytes, int to, int tag) {
  qk_comm_mpi_t *mpi = (qk_comm_mpi_t *)comm;
  qk_status_t status = QK_OK;
  for (size_t done = 0; done < bytes && status == QK_OK; done += PIECE)
    status = check("MPI_Send", MPI_Send((const char *)buf + done, piece_of(bytes, done), MPI_BYTE,
                                        to, tag, mpi->world));
  return status;
}

static qk_status_t mpi_recv(qk_comm_t *comm, void *buf, size_t bytes, int from, int tag) {
  qk_comm_mpi_t *mpi = (qk_comm_mpi_t *)comm;
  qk_status_t status = QK_OK;
  for (size_t done = 0; done < bytes && status == QK_OK; done += PIECE)
    status = check("MPI_Recv", MPI_Recv((char *)buf + done, piece_of(bytes, done), MPI_BYTE, from,
                                        tag, mpi->world, MPI_STATUS_IGNORE));
  return status;
}

static const qk_comm_ops_t mpi_ops = {
    .destroy = mpi_destroy,
    .abort = mpi_abort,
    .exchange_begin = mpi_exchange_begin,
    .exchange_end = mpi_exchange_end,
    .reduce = mpi_reduce,
    .bcast = mpi_bcast,
    .bcast_idle = mpi_bcast_idle,
    .send = mpi_send,
    .recv = mpi_recv,
};

/* The ranks that share memory with this one. For tests, QK_RANKS_PER_HOST=n takes each n ranks for
 * a host of their own. */
static qk_status_t local_ranks(MPI_Comm world, int rank, MPI_Comm *local) {
  const char *text = getenv("QK_RANKS_PER_HOST");
  const int ranks = text != NULL ? atoi(text) : 0;
  if (ranks > 0) return check("MPI_Comm_split", MPI_Comm_split(world, rank / ranks, 0, local));
  return check("MPI_Comm_split_type",
               MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, local));
}

static qk_status_t find_host(MPI_Comm world, int rank, int *local_rank, int *local_size,
                             int *host) {
  MPI_Comm local;
  qk_status_t status = local_ranks(world, rank, &local);
  if (status != QK_OK) return status;
  MPI_Comm_rank(local, local_rank);
  MPI_Comm_size(local, local_size);
  *host = rank;
  status = check("MPI_Bcast", MPI_Bcast(host, 1, MPI_INT, 0, local));
  MPI_Comm_free(&local);
  return status;
}

qk_status_t qk_comm_mpi_create(int *argc, char ***argv, qk_comm_t **comm, qk_err_t *err) {
  qk_status_t status = QK_COMM_ERROR;
  int provided, rank, size, local_rank, local_size, host;
  qk_comm_mpi_t *mpi = qk_calloc(1, sizeof *mpi);
  if (mpi == NULL) return qk_fail(err, QK_NO_MEMORY, "no memory for a communicator");
  mpi->world = mpi->exchange = MPI_COMM_NULL;

  status = check("MPI_Init_thread", MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided));
  if (status != QK_OK) goto free_memory;
  if (provided < MPI_THREAD_FUNNELED) {
    qk_error("comm", "MPI thread level %d: at least MPI_THREAD_FUNNELED is needed", provided);
    status = QK_COMM_ERROR;
    goto finalize;
  }
  status = check("MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &mpi->world));
  if (status != QK_OK) goto finalize;
  status = check("MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &mpi->exchange));
  if (status != QK_OK) goto free_world;
  MPI_Comm_set_errhandler(mpi->world, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(mpi->exchange, MPI_ERRORS_RETURN);
  MPI_Comm_rank(mpi->world, &rank);
  MPI_Comm_size(mpi->world, &size);
  status = find_host(mpi->world, rank, &local_rank, &local_size, &host);
  if (status != QK_OK) goto free_exchange;

  qk_comm_init_base(&mpi->base, &mpi_ops, rank, size, local_rank, local_size, host);
#if defined(OPEN_MPI) && defined(MPIX_CUDA_AWARE_SUPPORT)
  mpi->base.reads_device = MPIX_Query_cuda_support() == 1;
#endif
  *comm = &mpi->base;
  return QK_OK;

free_exchange:
  MPI_Comm_free(&mpi->exchange);
free_world:
  MPI_Comm_free(&mpi->world);
finalize:
  MPI_Finalize();
free_memory:
  qk_free(mpi);
  return qk_fail(err, status, "MPI could not be started");
}
