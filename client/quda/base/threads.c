/* Threads that put fields into another order. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "grid.h"
#include "say.h"
#include "threads.h"

enum { MOST = 256 };

static struct {
  pthread_t thread[MOST];
  size_t threads; /* that run */
  pthread_mutex_t lock;
  pthread_cond_t begun, ended;
  qk_quda_piece_fn task;
  void *arg;
  size_t next, left, pieces; /* that nobody has taken; that are not done */
  bool over;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .begun = PTHREAD_COND_INITIALIZER,
          .ended = PTHREAD_COND_INITIALIZER};

static void work_locked(void) {
  while (pool.next < pool.pieces) {
    const size_t piece = pool.next++;
    pthread_mutex_unlock(&pool.lock);
    pool.task(pool.arg, piece);
    pthread_mutex_lock(&pool.lock);
    if (--pool.left == 0) pthread_cond_broadcast(&pool.ended);
  }
}

static void *run(void *unused) {
  (void)unused;
  pthread_mutex_lock(&pool.lock);
  while (!pool.over) {
    work_locked();
    if (!pool.over) pthread_cond_wait(&pool.begun, &pool.lock);
  }
  pthread_mutex_unlock(&pool.lock);
  return NULL;
}

size_t qk_quda_threads(void) {
  static size_t n;
  if (n == 0) n = (size_t)qk_quda_number_setting("THREADS", 1, MOST, qk_quda_cores());
  return n < MOST ? n : MOST;
}

/* A machine that has no room for a thread does without: qk_quda_finish does what is left. */
static void begin_threads(void) {
  while (pool.threads < qk_quda_threads() &&
         pthread_create(&pool.thread[pool.threads], NULL, run, NULL) == 0)
    pool.threads++;
}

void qk_quda_start(qk_quda_piece_fn task, void *arg, size_t pieces) {
  qk_quda_finish();
  begin_threads();
  pthread_mutex_lock(&pool.lock);
  pool.task = task;
  pool.arg = arg;
  pool.next = 0;
  pool.pieces = pool.left = pieces;
  pthread_cond_broadcast(&pool.begun);
  pthread_mutex_unlock(&pool.lock);
}

void qk_quda_finish(void) {
  pthread_mutex_lock(&pool.lock);
  if (pool.threads == 0) work_locked();
  while (pool.left > 0) pthread_cond_wait(&pool.ended, &pool.lock);
  pthread_mutex_unlock(&pool.lock);
}

void qk_quda_parallel(qk_quda_piece_fn task, void *arg, size_t pieces) {
  qk_quda_start(task, arg, pieces);
  qk_quda_finish();
}

void qk_quda_threads_end(void) {
  qk_quda_finish();
  pthread_mutex_lock(&pool.lock);
  pool.over = true;
  pthread_cond_broadcast(&pool.begun);
  pthread_mutex_unlock(&pool.lock);
  for (; pool.threads > 0; pool.threads--) pthread_join(pool.thread[pool.threads - 1], NULL);
  pool.over = false;
}
