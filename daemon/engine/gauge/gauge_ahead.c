#include "daemon/engine/gauge/gauge_ahead.h"

#include <pthread.h>

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"

enum { BUFFERS = 2, WORTH_BYTES = 1 << 18 }; /* fewer bytes are read before a thread begins */

typedef struct buffer {
  uint8_t *raw;
  qk_status_t status;
  qk_err_t err;
} buffer_t;

struct qk_gauge_ahead {
  qk_gauge_piece_fn *read;
  const void *arg;
  int64_t pieces;
  buffer_t buffer[BUFFERS]; /* of piece k: number k % BUFFERS */
  int64_t taken;            /* pieces that the caller has seen */
  double seconds;           /* of reading; the thread's until it ends */
  bool beside;              /* there is a thread */
  pthread_t thread;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t news;
  int64_t done, given_back; /* pieces that were read, and that are not needed any more */
  bool stop;
};

static buffer_t *buffer_of(qk_gauge_ahead_t *a, int64_t piece) {
  return &a->buffer[piece % BUFFERS];
}

static void read_piece(qk_gauge_ahead_t *a, int64_t piece) {
  buffer_t *b = buffer_of(a, piece);
  const double start = qk_clock_now();
  b->err = (qk_err_t){0};
  b->status = a->read(a->arg, piece, b->raw, &b->err);
  a->seconds += qk_clock_now() - start;
}

static void *work(void *arg) {
  qk_gauge_ahead_t *a = arg;
  qk_status_t status = QK_OK;
  for (int64_t piece = 0; piece < a->pieces && status == QK_OK; piece++) {
    pthread_mutex_lock(&a->lock);
    while (!a->stop && piece - a->given_back >= BUFFERS) pthread_cond_wait(&a->news, &a->lock);
    const bool stop = a->stop;
    pthread_mutex_unlock(&a->lock);
    if (stop) break;
    read_piece(a, piece);
    status = buffer_of(a, piece)->status;
    pthread_mutex_lock(&a->lock);
    a->done = piece + 1;
    pthread_cond_broadcast(&a->news);
    pthread_mutex_unlock(&a->lock);
  }
  return NULL;
}

qk_status_t qk_gauge_ahead_begin(qk_gauge_piece_fn *read, const void *arg, int64_t pieces,
                                 int64_t bytes, qk_gauge_ahead_t **ahead, qk_err_t *err) {
  qk_gauge_ahead_t *a = qk_calloc(1, sizeof *a);
  if (a == NULL) return qk_fail(err, QK_NO_MEMORY, "no memory to read a file");
  a->read = read;
  a->arg = arg;
  a->pieces = pieces;
  pthread_mutex_init(&a->lock, NULL);
  pthread_cond_init(&a->news, NULL);
  for (int i = 0; i < BUFFERS && i < pieces; i++) {
    a->buffer[i].raw = qk_malloc((size_t)bytes);
    if (a->buffer[i].raw != NULL) continue;
    qk_gauge_ahead_end(a);
    return qk_fail(err, QK_NO_MEMORY, "no memory for %lld bytes of links", (long long)bytes);
  }
  a->beside =
      pieces > 1 && pieces * bytes >= WORTH_BYTES && pthread_create(&a->thread, NULL, work, a) == 0;
  *ahead = a;
  return QK_OK;
}

/* The piece before is not needed any more; waits for this one. */
static void await(qk_gauge_ahead_t *a, int64_t piece) {
  pthread_mutex_lock(&a->lock);
  a->given_back = piece;
  pthread_cond_broadcast(&a->news);
  while (a->done <= piece) pthread_cond_wait(&a->news, &a->lock);
  pthread_mutex_unlock(&a->lock);
}

qk_status_t qk_gauge_ahead_next(qk_gauge_ahead_t *ahead, const uint8_t **raw, qk_err_t *err) {
  const int64_t piece = ahead->taken++;
  if (ahead->beside)
    await(ahead, piece);
  else
    read_piece(ahead, piece);
  const buffer_t *b = buffer_of(ahead, piece);
  if (b->status != QK_OK) return qk_fail(err, b->status, "%s", b->err.text);
  *raw = b->raw;
  return QK_OK;
}

double qk_gauge_ahead_end(qk_gauge_ahead_t *ahead) {
  if (ahead == NULL) return 0;
  pthread_mutex_lock(&ahead->lock);
  ahead->stop = true;
  pthread_cond_broadcast(&ahead->news);
  pthread_mutex_unlock(&ahead->lock);
  if (ahead->beside) pthread_join(ahead->thread, NULL);
  const double seconds = ahead->seconds;
  for (int i = 0; i < BUFFERS; i++) qk_free(ahead->buffer[i].raw);
  pthread_cond_destroy(&ahead->news);
  pthread_mutex_destroy(&ahead->lock);
  qk_free(ahead);
  return seconds;
}
