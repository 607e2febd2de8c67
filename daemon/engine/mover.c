#include "daemon/engine/mover.h"

#include <pthread.h>

#include "daemon/base/mem.h"

enum { THREADS_MAX = 16 };

struct qk_mover {
  const qk_wire_t *wire;
  pthread_mutex_t lock;
  pthread_cond_t work;
  qk_move_t *first, **last; /* moves with pieces that nobody has begun */
  bool stop;
  int nthread;
  pthread_t thread[THREADS_MAX];
};

/* The next piece of the oldest move; waits for one. NULL: stop. */
static qk_move_t *take(qk_mover_t *m, int64_t *piece) {
  while (!m->first && !m->stop) pthread_cond_wait(&m->work, &m->lock);
  if (m->stop) return NULL;
  qk_move_t *move = m->first;
  *piece = move->piece++;
  if (move->piece == qk_wire_pieces(m->wire)) {
    m->first = move->next;
    if (!m->first) m->last = &m->first;
  }
  return move;
}

static void *work(void *arg) {
  qk_mover_t *m = arg;
  int64_t piece;
  pthread_mutex_lock(&m->lock);
  for (qk_move_t *move; (move = take(m, &piece));) {
    const bool lost = move->err.code != QK_OK;
    qk_err_t err = {0};
    pthread_mutex_unlock(&m->lock);
    if (!lost) qk_segment_move_piece(m->wire, &move->segment, piece, move->part, move->write, &err);
    pthread_mutex_lock(&m->lock);
    if (err.code != QK_OK && move->err.code == QK_OK) move->err = err;
    move->left--;
  }
  pthread_mutex_unlock(&m->lock);
  return NULL;
}

qk_status_t qk_mover_create(const qk_wire_t *wire, int threads, qk_mover_t **mover, qk_err_t *err) {
  qk_mover_t *m = qk_calloc(1, sizeof *m);
  if (!m) return qk_fail(err, QK_NO_MEMORY, "no memory for threads that move fields");
  m->wire = wire;
  m->last = &m->first;
  pthread_mutex_init(&m->lock, NULL);
  pthread_cond_init(&m->work, NULL);
  while (m->nthread < threads && m->nthread < THREADS_MAX) {
    if (pthread_create(&m->thread[m->nthread], NULL, work, m) != 0) {
      qk_mover_destroy(m);
      return qk_fail(err, QK_INTERNAL, "no thread to move fields");
    }
    m->nthread++;
  }
  *mover = m;
  return QK_OK;
}

void qk_mover_destroy(qk_mover_t *m) {
  if (!m) return;
  pthread_mutex_lock(&m->lock);
  m->stop = true;
  pthread_cond_broadcast(&m->work);
  pthread_mutex_unlock(&m->lock);
  for (int i = 0; i < m->nthread; i++) pthread_join(m->thread[i], NULL);
  pthread_cond_destroy(&m->work);
  pthread_mutex_destroy(&m->lock);
  qk_free(m);
}

void qk_mover_start(qk_mover_t *m, qk_move_t *move) {
  move->next = NULL;
  move->piece = 0;
  move->left = qk_wire_pieces(m->wire);
  move->err = (qk_err_t){0};
  pthread_mutex_lock(&m->lock);
  *m->last = move;
  m->last = &move->next;
  pthread_cond_broadcast(&m->work);
  pthread_mutex_unlock(&m->lock);
}

bool qk_mover_done(qk_mover_t *m, const qk_move_t *move) {
  pthread_mutex_lock(&m->lock);
  const bool done = move->left == 0;
  pthread_mutex_unlock(&m->lock);
  return done;
}
