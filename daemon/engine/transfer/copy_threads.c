#include "daemon/engine/transfer/copy_threads.h"

#include <pthread.h>

#include "daemon/base/mem.h"

enum { THREADS_MAX = 16 };

struct qk_copy_threads {
  const qk_wire_t *wire;
  pthread_mutex_t lock;
  pthread_cond_t work;
  struct {
    qk_move_t *first, **last;
  } line[2]; /* moves with pieces that nobody has begun: those that write, and those that read */
  bool stop;
  int nthread;
  pthread_t thread[THREADS_MAX];
};

/* Pieces that a thread takes on. */
typedef struct share {
  qk_move_t *move;
  int64_t first, count;
} share_t;

/* Takes a share of the oldest move: all of it if it writes, because the kernel allows one thread
 * at a time to write to an object, else one piece. Writes go first: columns of the solver wait
 * for them. Waits for work. False: stop. */
static bool take(qk_copy_threads_t *m, share_t *share) {
  while (!m->line[0].first && !m->line[1].first && !m->stop) pthread_cond_wait(&m->work, &m->lock);
  if (m->stop) return false;
  const int k = m->line[0].first ? 0 : 1;
  qk_move_t *move = m->line[k].first;
  const int64_t pieces = qk_segment_pieces(m->wire, &move->segment);
  *share = (share_t){move, move->piece, move->write ? pieces : 1};
  move->piece += share->count;
  if (move->piece == pieces) {
    m->line[k].first = move->next;
    if (!m->line[k].first) m->line[k].last = &m->line[k].first;
  }
  return true;
}

static void carry_out(const qk_copy_threads_t *m, const share_t *share, qk_err_t *err) {
  const qk_move_t *move = share->move;
  for (int64_t i = 0; i < share->count && err->code == QK_OK; i++)
    qk_segment_move_piece(m->wire, &move->segment, share->first + i, move->part, move->write, err);
}

static void *work(void *arg) {
  qk_copy_threads_t *m = arg;
  share_t share;
  pthread_mutex_lock(&m->lock);
  while (take(m, &share)) {
    const bool lost = share.move->err.code != QK_OK;
    qk_err_t err = {0};
    pthread_mutex_unlock(&m->lock);
    if (!lost) carry_out(m, &share, &err);
    pthread_mutex_lock(&m->lock);
    if (err.code != QK_OK && share.move->err.code == QK_OK) share.move->err = err;
    share.move->left -= share.count;
  }
  pthread_mutex_unlock(&m->lock);
  return NULL;
}

qk_status_t qk_copy_threads_create(const qk_wire_t *wire, int threads, qk_copy_threads_t **mover,
                                   qk_err_t *err) {
  qk_copy_threads_t *m = qk_calloc(1, sizeof *m);
  if (!m) return qk_fail(err, QK_NO_MEMORY, "no memory for threads that move fields");
  m->wire = wire;
  for (int k = 0; k < 2; k++) m->line[k].last = &m->line[k].first;
  pthread_mutex_init(&m->lock, NULL);
  pthread_cond_init(&m->work, NULL);
  while (m->nthread < threads && m->nthread < THREADS_MAX) {
    if (pthread_create(&m->thread[m->nthread], NULL, work, m) != 0) {
      qk_copy_threads_destroy(m);
      return qk_fail(err, QK_INTERNAL, "no thread to move fields");
    }
    m->nthread++;
  }
  *mover = m;
  return QK_OK;
}

void qk_copy_threads_destroy(qk_copy_threads_t *m) {
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

void qk_copy_threads_start(qk_copy_threads_t *m, qk_move_t *move) {
  move->next = NULL;
  move->piece = 0;
  move->left = qk_segment_pieces(m->wire, &move->segment);
  move->err = (qk_err_t){0};
  if (move->left == 0) return;
  pthread_mutex_lock(&m->lock);
  const int k = move->write ? 0 : 1;
  *m->line[k].last = move;
  m->line[k].last = &move->next;
  pthread_cond_broadcast(&m->work);
  pthread_mutex_unlock(&m->lock);
}

bool qk_copy_threads_done(qk_copy_threads_t *m, const qk_move_t *move) {
  pthread_mutex_lock(&m->lock);
  const bool done = move->left == 0;
  pthread_mutex_unlock(&m->lock);
  return done;
}
