/* Ranks. With QK_WITH_MPI the caller's MPI, else one rank. */
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef QK_WITH_MPI
#include <mpi.h>
#endif

#include "grid.h"
#include "say.h"

static struct {
  bool ready;
  int rank, ranks, dims[4];
  int (*coord)[4]; /* of each rank */
#ifdef QK_WITH_MPI
  bool given;
  MPI_Comm comm;
#endif
} grid = {.ranks = 1, .dims = {1, 1, 1, 1}};

static int cores_of(const cpu_set_t *mine, const cpu_set_t *all, int ranks) {
  int sharing = 0;
  for (int r = 0; r < ranks; r++) {
    cpu_set_t both;
    CPU_AND(&both, mine, &all[r]);
    sharing += CPU_COUNT(&both) > 0;
  }
  const int cores = CPU_COUNT(mine) / (sharing > 0 ? sharing : 1);
  return cores > 0 ? cores : 1;
}

bool qk_quda_grid_ready(void) {
  return grid.ready;
}
int qk_quda_rank(void) {
  return grid.rank;
}
int qk_quda_ranks(void) {
  return grid.ranks;
}
void qk_quda_grid_dims(int dims[4]) {
  memcpy(dims, grid.dims, sizeof grid.dims);
}

void qk_quda_grid_coord(int rank, int coord[4]) {
  if (grid.coord)
    memcpy(coord, grid.coord[rank], sizeof grid.coord[rank]);
  else
    memset(coord, 0, 4 * sizeof coord[0]);
}

static int t_fastest(const int coord[4]) {
  int rank = coord[0];
  for (int mu = 1; mu < 4; mu++) rank = rank * grid.dims[mu] + coord[mu];
  return rank;
}

/* Every rank must have one place. */
static void place(qk_quda_map_t map, void *arg) {
  grid.coord = qk_quda_alloc((size_t)grid.ranks * sizeof *grid.coord);
  for (int r = 0; r < grid.ranks; r++) grid.coord[r][0] = -1;
  const int *d = grid.dims;
  for (int n = 0; n < grid.ranks; n++) {
    const int c[4] = {n % d[0], n / d[0] % d[1], n / (d[0] * d[1]) % d[2],
                      n / (d[0] * d[1] * d[2])};
    const int rank = map ? map(c, arg) : t_fastest(c);
    if (rank < 0 || rank >= grid.ranks || grid.coord[rank][0] >= 0)
      qk_quda_refuse("the map of the grid gives rank %d for %d,%d,%d,%d, of %d ranks", rank, c[0],
                     c[1], c[2], c[3], grid.ranks);
    memcpy(grid.coord[rank], c, sizeof c);
  }
}

static const char *more(void) {
  return grid.ranks == 1 ? " (more need quark-quda --mpi mpicc)" : "";
}

void qk_quda_grid_init(const int dims[4], qk_quda_map_t map, void *arg) {
  if (grid.ready) return;
#ifdef QK_WITH_MPI
  int started = 0;
  MPI_Initialized(&started);
  if (started) {
    if (!grid.given) grid.comm = MPI_COMM_WORLD;
    MPI_Comm_rank(grid.comm, &grid.rank);
    MPI_Comm_size(grid.comm, &grid.ranks);
  }
#endif
  long product = 1;
  for (int mu = 0; mu < 4; mu++) {
    if (dims[mu] < 1 || dims[mu] > grid.ranks)
      qk_quda_refuse("%d parts in direction %d: must be 1 to %d, the ranks%s", dims[mu], mu,
                     grid.ranks, more());
    product *= dims[mu];
    grid.dims[mu] = dims[mu];
  }
  if (product != grid.ranks)
    qk_quda_refuse("a grid of %d,%d,%d,%d for %d ranks%s: initCommsGridQuda says which, or QMP "
                   "(chroma -geom)",
                   dims[0], dims[1], dims[2], dims[3], grid.ranks, more());
  grid.ready = true;
  place(map, arg);
}

#ifdef QK_WITH_MPI

enum { PIECE = 1 << 30 }; /* MPI counts in int */

void qk_quda_grid_comm(void *mpi_comm) {
  if (!mpi_comm) return;
  grid.comm = *(MPI_Comm *)mpi_comm;
  grid.given = true;
}

/* Polling would take the cores that the solver may need. */
static void sleep_until(MPI_Request *request) {
  const struct timespec nap = {.tv_nsec = 200000};
  const double begun = qk_quda_now();
  for (int done = 0;;) {
    MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (done) return;
    if (qk_quda_now() - begun > 1e-4) nanosleep(&nap, NULL);
  }
}

void qk_quda_broadcast(void *data, size_t bytes) {
  char *p = data;
  for (size_t done = 0; grid.ranks > 1 && done < bytes; done += PIECE) {
    MPI_Request request;
    MPI_Ibcast(p + done, bytes - done < PIECE ? (int)(bytes - done) : PIECE, MPI_BYTE, 0, grid.comm,
               &request);
    sleep_until(&request);
  }
}

void qk_quda_barrier(void) {
  MPI_Request request;
  if (grid.ranks == 1) return;
  MPI_Ibarrier(grid.comm, &request);
  sleep_until(&request);
}

static void reduce(void *value, size_t n, MPI_Datatype type, size_t bytes, MPI_Op op) {
  char *p = value;
  const size_t most = PIECE / bytes;
  for (size_t done = 0; grid.ranks > 1 && done < n; done += most)
    MPI_Allreduce(MPI_IN_PLACE, p + done * bytes, n - done < most ? (int)(n - done) : (int)most,
                  type, op, grid.comm);
}

void qk_quda_sum_whole(uint64_t *value, size_t n) {
  reduce(value, n, MPI_UINT64_T, sizeof *value, MPI_SUM);
}
void qk_quda_sum(double *value, size_t n) {
  reduce(value, n, MPI_DOUBLE, sizeof *value, MPI_SUM);
}
void qk_quda_max(double *value, size_t n) {
  reduce(value, n, MPI_DOUBLE, sizeof *value, MPI_MAX);
}

int qk_quda_cores(void) {
  cpu_set_t mine, *all = &mine;
  MPI_Comm node = MPI_COMM_NULL;
  int ranks = 1;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  if (grid.ranks > 1) {
    MPI_Comm_split_type(grid.comm, MPI_COMM_TYPE_SHARED, grid.rank, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &ranks);
    all = qk_quda_alloc((size_t)ranks * sizeof *all);
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, node);
    MPI_Comm_free(&node);
  }
  const int cores = cores_of(&mine, all, ranks);
  if (all != &mine) free(all);
  return cores;
}

static void send_to(int rank, const char *data, size_t bytes) {
  for (size_t done = 0; done < bytes; done += PIECE)
    MPI_Send(data + done, bytes - done < PIECE ? (int)(bytes - done) : PIECE, MPI_BYTE, rank, 0,
             grid.comm);
}

static void receive_from(int rank, char *data, size_t bytes) {
  for (size_t done = 0; done < bytes; done += PIECE)
    MPI_Recv(data + done, bytes - done < PIECE ? (int)(bytes - done) : PIECE, MPI_BYTE, rank, 0,
             grid.comm, MPI_STATUS_IGNORE);
}

void qk_quda_abort(int code) {
  int started = 0, ended = 0;
  MPI_Initialized(&started);
  if (started) MPI_Finalized(&ended);
  if (started && !ended) MPI_Abort(MPI_COMM_WORLD, code);
  _exit(code);
}

#else

void qk_quda_grid_comm(void *mpi_comm) {
  (void)mpi_comm;
}
void qk_quda_broadcast(void *data, size_t bytes) {
  (void)data, (void)bytes;
}
void qk_quda_barrier(void) {}
void qk_quda_sum_whole(uint64_t *value, size_t n) {
  (void)value, (void)n;
}
void qk_quda_sum(double *value, size_t n) {
  (void)value, (void)n;
}
void qk_quda_max(double *value, size_t n) {
  (void)value, (void)n;
}

int qk_quda_cores(void) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  return cores_of(&mine, &mine, 1);
}

void qk_quda_abort(int code) {
  exit(code);
}

static void send_to(int rank, const char *data, size_t bytes) {
  (void)rank, (void)data, (void)bytes;
}

static void receive_from(int rank, char *data, size_t bytes) {
  (void)rank, (void)data, (void)bytes;
}

#endif

void qk_quda_gather(const void *brick, size_t bytes, qk_quda_take_t take, void *arg) {
  if (grid.rank != 0) {
    send_to(0, brick, bytes);
    return;
  }
  take(arg, 0, brick);
  char *room = grid.ranks > 1 ? qk_quda_alloc(bytes) : NULL;
  for (int r = 1; r < grid.ranks; r++) {
    receive_from(r, room, bytes);
    take(arg, r, room);
  }
  free(room);
}

void qk_quda_scatter(void *brick, size_t bytes, qk_quda_give_t give, void *arg) {
  if (grid.rank != 0) {
    receive_from(0, brick, bytes);
    return;
  }
  give(arg, 0, brick);
  char *room = grid.ranks > 1 ? qk_quda_alloc(bytes) : NULL;
  for (int r = 1; r < grid.ranks; r++) {
    give(arg, r, room);
    send_to(r, room, bytes);
  }
  free(room);
}
