/*
 * What every communicator must do, run for each transport: `comm_suite self`, and under mpirun with
 * any number of ranks `comm_suite mpi`. Exits 0 when every check held on every rank.
 *
 * A plain program: a test framework that forks does not go with MPI.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/comm/comm.h"

static int failures;

#define CHECK(expr)                                                                                \
  do {                                                                                             \
    if (!(expr)) {                                                                                 \
      failures++;                                                                                  \
      fprintf(stderr, "%s:%d: %s: failed on rank %d\n", __FILE__, __LINE__, #expr,                 \
              qk_comm_rank(comm));                                                                 \
    }                                                                                              \
  } while (0)

/* ---- the grid ---- */

static void neighbours_are_inverse_and_periodic(qk_comm_t *comm) {
  int size = qk_comm_size(comm), rank = qk_comm_rank(comm);
  int grid[4] = {0}, dims[4] = {8, 16, 8, 16}, got[4], coord[4];
  qk_err_t err = {0};
  CHECK(qk_comm_choose_grid(size, dims, NULL, NULL, grid, &err) == QK_OK);
  CHECK(qk_comm_set_grid(comm, grid, &err) == QK_OK);
  qk_comm_grid(comm, got, coord);
  CHECK(memcmp(got, grid, sizeof got) == 0);
  CHECK(rank == ((coord[3] * grid[2] + coord[2]) * grid[1] + coord[1]) * grid[0] + coord[0]);
  for (int mu = 0; mu < 4; mu++) {
    for (int sign = -1; sign <= 1; sign += 2) {
      int there[4], peer = qk_comm_neighbour(comm, mu, sign);
      qk_comm_coord_of(comm, peer, there);
      for (int nu = 0; nu < 4; nu++) {
        int want = nu == mu ? (coord[nu] + sign + grid[nu]) % grid[nu] : coord[nu];
        CHECK(there[nu] == want);
      }
    }
  }
}

static void a_grid_of_another_size_is_refused(qk_comm_t *comm) {
  int size = qk_comm_size(comm), before[4], after[4], coord[4];
  qk_comm_grid(comm, before, coord);
  const int bad[][4] = {{size + 1, 1, 1, 1},
                        {0, 1, 1, size},
                        {-1, -1, 1, size},
                        {1 << 16, 1 << 16, 1 << 16, 1 << 16}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    qk_err_t err = {0};
    CHECK(qk_comm_set_grid(comm, bad[i], &err) == QK_BAD_GEOMETRY);
    CHECK(err.code == QK_BAD_GEOMETRY && err.text[0] != '\0');
  }
  qk_comm_grid(comm, after, coord);
  CHECK(memcmp(before, after, sizeof before) == 0);
}

static void local_ranks_count_up_on_one_host(qk_comm_t *comm) {
  CHECK(qk_comm_host(comm) == 0);
  CHECK(qk_comm_local_rank(comm) == qk_comm_rank(comm));
  CHECK(qk_comm_local_size(comm) == qk_comm_size(comm));
}

/* ---- messages ---- */

/* Both neighbours of a direction may be one rank, or this one: the tags keep the messages apart. */
static void exchange_reaches_the_right_neighbour(qk_comm_t *comm) {
  enum { N = 4096 };
  static int out[4][2][N], in[4][2][N];
  int rank = qk_comm_rank(comm);
  for (int round = 0; round < 3; round++) {
    qk_comm_msg_t msg[8];
    for (int mu = 0; mu < 4; mu++) {
      for (int d = 0; d < 2; d++) {
        int sign = d == 0 ? -1 : +1;
        for (int i = 0; i < N; i++) {
          out[mu][d][i] = ((rank * 4 + mu) * 2 + d) * N + i + round;
          in[mu][d][i] = -1;
        }
        msg[mu * 2 + d] = (qk_comm_msg_t){.to = qk_comm_neighbour(comm, mu, sign),
                                          .from = qk_comm_neighbour(comm, mu, -sign),
                                          .tag = mu * 2 + d,
                                          .send = out[mu][d],
                                          .recv = in[mu][d],
                                          .bytes = sizeof out[mu][d]};
      }
    }
    CHECK(qk_comm_exchange_begin(comm, 8, msg) == QK_OK);
    CHECK(qk_comm_exchange_end(comm) == QK_OK);
    int wrong = 0;
    for (int mu = 0; mu < 4; mu++)
      for (int d = 0; d < 2; d++)
        for (int i = 0; i < N; i++)
          wrong += in[mu][d][i] != ((msg[mu * 2 + d].from * 4 + mu) * 2 + d) * N + i + round;
    CHECK(wrong == 0);
  }
}

static void exchange_of_nothing_is_fine(qk_comm_t *comm) {
  qk_comm_msg_t msg = {.to = qk_comm_neighbour(comm, 3, 1), .from = qk_comm_neighbour(comm, 3, -1)};
  CHECK(qk_comm_exchange_begin(comm, 0, NULL) == QK_OK);
  CHECK(qk_comm_exchange_end(comm) == QK_OK);
  CHECK(qk_comm_exchange_begin(comm, 1, &msg) == QK_OK);
  CHECK(qk_comm_exchange_end(comm) == QK_OK);
}

/* Collectives and messages with the same tag between begin and end must not meet the exchange. */
static void other_traffic_may_pass_an_exchange(qk_comm_t *comm) {
  int rank = qk_comm_rank(comm), size = qk_comm_size(comm), sent = 100 + rank, got = -1;
  int ahead = (rank + 1) % size, behind = (rank + size - 1) % size;
  qk_comm_msg_t msg = {
      .to = ahead, .from = behind, .tag = 5, .send = &sent, .recv = &got, .bytes = sizeof sent};
  CHECK(qk_comm_exchange_begin(comm, 1, &msg) == QK_OK);
  double one = 1;
  CHECK(qk_comm_sum(comm, &one, 1) == QK_OK && one == size);
  if (size > 1 && rank == 0) {
    int word = 7777;
    CHECK(qk_comm_send(comm, &word, sizeof word, 1, 5) == QK_OK);
  } else if (rank == 1) {
    int word = 0;
    CHECK(qk_comm_recv(comm, &word, sizeof word, 0, 5) == QK_OK && word == 7777);
  }
  CHECK(qk_comm_exchange_end(comm) == QK_OK);
  CHECK(got == 100 + behind);
}

static void long_messages_arrive_whole(qk_comm_t *comm) {
  size_t bytes = (size_t)3 << 20;
  unsigned char *buf = malloc(bytes);
  int rank = qk_comm_rank(comm), size = qk_comm_size(comm);
  for (int from = 1; from < size; from++) {
    if (rank == from) {
      for (size_t i = 0; i < bytes; i++) buf[i] = (unsigned char)(i * 7 + (size_t)from);
      CHECK(qk_comm_send(comm, buf, bytes, 0, 9) == QK_OK);
    } else if (rank == 0) {
      memset(buf, 0, bytes);
      CHECK(qk_comm_recv(comm, buf, bytes, from, 9) == QK_OK);
      size_t wrong = 0;
      for (size_t i = 0; i < bytes; i++) wrong += buf[i] != (unsigned char)(i * 7 + (size_t)from);
      CHECK(wrong == 0);
    }
  }
  free(buf);
}

/* ---- collectives ---- */

static void reductions_span_all_ranks(qk_comm_t *comm) {
  int rank = qk_comm_rank(comm), size = qk_comm_size(comm);
  double total = 0.5 * size * (size - 1);
  double sum[3] = {rank, 1, -0.5 * rank}, max[2] = {rank, -rank};
  uint64_t u[2] = {UINT64_C(1) << 60, (uint64_t)rank};
  uint32_t x[2] = {UINT32_C(1) << (rank % 32), 0xdeadbeefu}, want = 0;
  CHECK(qk_comm_sum(comm, sum, 3) == QK_OK);
  CHECK(sum[0] == total && sum[1] == size && sum[2] == -0.5 * total);
  CHECK(qk_comm_max(comm, max, 2) == QK_OK);
  CHECK(max[0] == size - 1 && max[1] == 0);
  CHECK(qk_comm_sum_u64(comm, u, 2) == QK_OK);
  CHECK(u[0] == (UINT64_C(1) << 60) * (uint64_t)size && u[1] == (uint64_t)total);
  CHECK(qk_comm_xor_u32(comm, x, 2) == QK_OK);
  for (int r = 0; r < size; r++) want ^= UINT32_C(1) << (r % 32);
  CHECK(x[0] == want && x[1] == (size % 2 ? 0xdeadbeefu : 0));
}

static void sums_have_the_same_bits_everywhere(qk_comm_t *comm) {
  double v = 1.0 / (3 + qk_comm_rank(comm)), root;
  CHECK(qk_comm_sum(comm, &v, 1) == QK_OK);
  root = v;
  CHECK(qk_comm_bcast(comm, &root, sizeof root, 0) == QK_OK);
  CHECK(memcmp(&root, &v, sizeof v) == 0);
}

static void broadcasts_come_from_any_root(qk_comm_t *comm) {
  char buf[300];
  for (int root = 0; root < qk_comm_size(comm); root++) {
    memset(buf, qk_comm_rank(comm) == root ? 'a' + root : '?', sizeof buf);
    CHECK(qk_comm_bcast(comm, buf, sizeof buf, root) == QK_OK);
    CHECK(buf[0] == 'a' + root && buf[sizeof buf - 1] == 'a' + root);
    memset(buf, qk_comm_rank(comm) == root ? 'A' + root : '?', sizeof buf);
    CHECK(qk_comm_bcast_idle(comm, buf, sizeof buf, root) == QK_OK);
    CHECK(buf[0] == 'A' + root && buf[sizeof buf - 1] == 'A' + root);
  }
}

static void agree_takes_the_lowest_rank_that_failed(qk_comm_t *comm) {
  int rank = qk_comm_rank(comm), size = qk_comm_size(comm);
  qk_err_t none = {0};
  CHECK(qk_comm_agree(comm, QK_OK, &none) == QK_OK && none.code == QK_OK);
  for (int low = 0; low < size; low++) {
    qk_err_t err = {0};
    qk_status_t mine = QK_OK;
    if (rank == low) mine = qk_fail(&err, QK_BAD_CHECKSUM, "part %d", low);
    if (rank > low) mine = qk_fail(&err, QK_IO_ERROR, "not this one");
    CHECK(qk_comm_agree(comm, mine, &err) == QK_BAD_CHECKSUM);
    char want[32];
    snprintf(want, sizeof want, "part %d", low);
    CHECK(err.code == QK_BAD_CHECKSUM && strstr(err.text, want) != NULL);
    CHECK(qk_comm_agree(comm, mine, NULL) == QK_BAD_CHECKSUM);
  }
}

static void (*const suite[])(qk_comm_t *) = {
    neighbours_are_inverse_and_periodic,
    a_grid_of_another_size_is_refused,
    local_ranks_count_up_on_one_host,
    exchange_reaches_the_right_neighbour,
    exchange_of_nothing_is_fine,
    other_traffic_may_pass_an_exchange,
    long_messages_arrive_whole,
    reductions_span_all_ranks,
    sums_have_the_same_bits_everywhere,
    broadcasts_come_from_any_root,
    agree_takes_the_lowest_rank_that_failed,
};

int main(int argc, char **argv) {
  qk_comm_t *comm;
  qk_err_t err = {0};
  bool mpi = argc > 1 && strcmp(argv[1], "mpi") == 0;
  qk_status_t status =
      mpi ? qk_comm_mpi_create(&argc, &argv, &comm, &err) : qk_comm_self_create(&comm, &err);
  if (status != QK_OK) {
    fprintf(stderr, "%s: %s\n", qk_status_name(status), err.text);
    return status == QK_UNSUPPORTED ? 77 : 1;
  }
  if (argc > 2 && qk_comm_size(comm) != atoi(argv[2])) {
    fprintf(stderr, "%d ranks instead of %s\n", qk_comm_size(comm), argv[2]);
    failures++;
  }
  for (size_t i = 0; i < sizeof suite / sizeof *suite; i++) suite[i](comm);
  double total = failures;
  if (qk_comm_sum(comm, &total, 1) != QK_OK) total = 1;
  qk_comm_destroy(comm);
  return total > 0;
}
