/*
 * The protocol of cuda/peer_ops.h, with threads for ranks: each has a context of its own and knows
 * the others' memory by its address. So ThreadSanitizer sees what it does not between processes; it
 * does not know Criterion's. Backend: QK_BACKEND.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/ops.h"

enum { RANKS = 3, ROUNDS = 1000, WORDS = 500, MOST = 16, LIMIT = 30 };

/* Peer memory of a rank: two flags and the epoch of exchanges, faces of two halves from two sides,
 * flags and epoch of sums, mailbox. */
enum {
  EPOCH = 2 * QK_PEER_LINE,
  FACES = 3 * QK_PEER_LINE,
  HALF = 2 * WORDS * (int)sizeof(double),
  SUM_FLAGS = FACES + 2 * HALF,
  SUM_EPOCH = SUM_FLAGS + RANKS * QK_PEER_LINE,
  BOX = SUM_EPOCH + QK_PEER_LINE,
  BYTES = BOX + 2 * RANKS * MOST * (int)sizeof(double)
};

typedef struct rank {
  const qk_ops_t *ops;
  qk_ops_ctx_t *ctx;
  pthread_t thread;
  int number;
  uint32_t first; /* the number of the last exchange before the first */
  struct rank *all;
  char *own;      /* peer memory */
  double *buffer; /* device: a face to send, then what is summed */
  double *host;   /* pinned: a face */
  const char *failed;
} rank_t;

static double word(int rank, uint32_t round, int i) {
  return sin(1 + rank) * (round + 1) + 1e-3 * i;
}

static void must(rank_t *r, qk_status_t status, const char *what) {
  if (status != QK_OK && r->failed == NULL) r->failed = what;
}

static void copy(rank_t *r, void *to, const void *from, size_t bytes, qk_copy_t kind) {
  must(r, r->ops->copy(r->ctx, to, from, bytes, kind, 0), "copy");
}

static void sync(rank_t *r) {
  must(r, r->ops->queue_sync(r->ctx, 0), "queue_sync");
}

/* From 0 to 0.2 ms, now and then. */
static void dawdle(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  const struct timespec pause = {.tv_nsec = (*state >> 8) % 200000};
  if (*state >> 28 == 0) nanosleep(&pause, NULL);
}

/* The face that side d (0: of the rank behind) has received in this exchange. */
static char *face(const rank_t *r, uint32_t epoch, int d) {
  return r->own + FACES + (epoch & 1) * HALF + (size_t)d * WORDS * sizeof(double);
}

static void exchange(rank_t *r, uint32_t round, uint32_t *noise) {
  const size_t bytes = WORDS * sizeof(double);
  const uint32_t epoch = r->first + round + 1;
  rank_t *to[2] = {&r->all[(r->number + RANKS - 1) % RANKS], &r->all[(r->number + 1) % RANKS]};
  qk_signal_args_t signal = {.epoch = (uint32_t *)(r->own + EPOCH), .n = 2}, await = signal;
  await.seconds = LIMIT;
  for (int i = 0; i < WORDS; i++) r->host[i] = word(r->number, round, i);
  copy(r, r->buffer, r->host, bytes, QK_COPY_TO_DEVICE);
  for (int d = 0; d < 2; d++) {
    copy(r, face(to[d], epoch, 1 - d), r->buffer, bytes, QK_COPY_DEVICE);
    signal.flag[d] = (uint32_t *)(to[d]->own + (1 - d) * QK_PEER_LINE);
    await.flag[d] = (uint32_t *)(r->own + d * QK_PEER_LINE);
  }
  dawdle(noise);
  must(r, r->ops->signal(r->ctx, &signal), "signal");
  dawdle(noise);
  must(r, r->ops->await(r->ctx, &await), "await");
  for (int d = 0; d < 2; d++) {
    copy(r, r->host, face(r, epoch, d), bytes, QK_COPY_TO_HOST);
    sync(r);
    for (int i = 0; i < WORDS; i++)
      if (r->host[i] != word(to[d]->number, round, i)) must(r, QK_COMM_ERROR, "a face");
  }
}

static void sum(rank_t *r, uint32_t round, uint32_t *noise) {
  qk_peer_sum_args_t args = {.rank = r->number,
                             .ranks = RANKS,
                             .most = MOST,
                             .n = 1 + (int32_t)(round % MOST),
                             .v = r->buffer,
                             .epoch = (uint32_t *)(r->own + SUM_EPOCH),
                             .seconds = LIMIT};
  for (int k = 0; k < RANKS; k++) {
    args.flag[k] = (uint8_t *)r->all[k].own + SUM_FLAGS;
    args.box[k] = (double *)(r->all[k].own + BOX);
  }
  for (int i = 0; i < args.n; i++) r->host[i] = word(r->number, round, i);
  copy(r, r->buffer, r->host, sizeof(double) * (size_t)args.n, QK_COPY_TO_DEVICE);
  dawdle(noise);
  must(r, r->ops->peer_sum(r->ctx, &args), "peer_sum");
  copy(r, r->host, r->buffer, sizeof(double) * (size_t)args.n, QK_COPY_TO_HOST);
  sync(r);
  for (int i = 0; i < args.n; i++) {
    double want = 0;
    for (int k = 0; k < RANKS; k++) want += word(k, round, i);
    if (r->host[i] != want) must(r, QK_COMM_ERROR, "a sum");
  }
}

static void *work(void *of) {
  rank_t *r = of;
  uint32_t noise = (uint32_t)r->number + 1;
  for (uint32_t round = 0; round < ROUNDS && r->failed == NULL; round++) {
    exchange(r, round, &noise);
    if (round % 3 == 0) sum(r, round, &noise);
  }
  return NULL;
}

static void open_rank(rank_t *r, const qk_ops_t *ops, uint32_t first) {
  const size_t at[] = {0,
                       QK_PEER_LINE,
                       EPOCH,
                       SUM_FLAGS,
                       SUM_FLAGS + QK_PEER_LINE,
                       SUM_FLAGS + 2 * QK_PEER_LINE,
                       SUM_EPOCH};
  const size_t bytes = WORDS * sizeof(double);
  qk_peer_handle_t handle;
  void *own = NULL, *host = NULL, *buffer = NULL;
  r->ops = ops;
  r->first = first;
  must(r, ops->open(0, &r->ctx, NULL), "open");
  if (r->failed == NULL) must(r, ops->peer_alloc(r->ctx, BYTES, &own, &handle), "peer_alloc");
  if (r->failed == NULL) must(r, ops->alloc_host(r->ctx, bytes, &host), "alloc_host");
  if (r->failed == NULL) must(r, ops->alloc(r->ctx, bytes, &buffer), "alloc");
  r->own = own;
  r->host = host;
  r->buffer = buffer;
  for (size_t i = 0; r->failed == NULL && i < sizeof at / sizeof at[0]; i++)
    copy(r, r->own + at[i], &first, sizeof first, QK_COPY_TO_DEVICE);
  if (r->failed == NULL) sync(r);
}

static void close_rank(rank_t *r) {
  r->ops->free(r->ctx, r->buffer);
  r->ops->free_host(r->ctx, r->host);
  r->ops->peer_free(r->ctx, r->own);
  r->ops->close(r->ctx);
}

/* Exchanges and sums of all ranks; the number of those that failed. */
static int run(const qk_ops_t *ops, uint32_t first) {
  rank_t rank[RANKS] = {0};
  int failures = 0;
  for (int k = 0; k < RANKS; k++) {
    rank[k].number = k;
    rank[k].all = rank;
    open_rank(&rank[k], ops, first);
  }
  for (int k = 0; k < RANKS; k++)
    if (pthread_create(&rank[k].thread, NULL, work, &rank[k]) != 0) abort();
  for (int k = 0; k < RANKS; k++) pthread_join(rank[k].thread, NULL);
  for (int k = 0; k < RANKS; k++) {
    failures += rank[k].failed != NULL;
    if (rank[k].failed != NULL) fprintf(stderr, "rank %d: %s\n", k, rank[k].failed);
  }
  for (int k = 0; k < RANKS; k++) close_rank(&rank[k]);
  return failures;
}

int main(void) {
  const char *name = getenv("QK_BACKEND");
  const qk_ops_t *ops = qk_ops_by_name(name ? name : "cpu");
  qk_ops_ctx_t *ctx;
  if (ops == NULL || ops->open(0, &ctx, NULL) != QK_OK) {
    fprintf(stderr, "no device for QK_BACKEND=%s\n", name ? name : "cpu");
    return 77;
  }
  ops->close(ctx);
  const int failures = run(ops, 0) + run(ops, (uint32_t)-3); /* numbers that wrap around, too */
  return failures > 0;
}
