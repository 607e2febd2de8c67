#include "daemon/engine/lattice/pinned.h"

#include <pthread.h>

#include "daemon/base/assert.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"

enum { THREADS_MAX = 16 };

typedef struct buffer {
  void *data;
  int left; /* pieces that are not ready */
} buffer_t;

struct qk_pinned {
  qk_ops_ctx_t *ctx;
  const qk_host_pages_t *pages;
  size_t bytes;
  int n, pieces; /* pieces: of a buffer */
  bool beside;   /* other work */
  double since;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t news;
  buffer_t *buffer;
  bool *pinned; /* [n][pieces] */
  int next;     /* piece that nobody has begun, of all buffers */
  int ready;    /* buffers, the first ones */
  int failed;   /* pieces that are not pinned ... */
  qk_err_t why; /* ... the first of them */
  bool stop;
  int nthread;
  pthread_t thread[THREADS_MAX];
};

/* ---- pieces ---------------------------------------------------------------------------------- */

static void *piece_at(const qk_pinned_t *p, int piece) {
  return (char *)p->buffer[piece / p->pieces].data + (size_t)(piece % p->pieces) * QK_PINNED_PIECE;
}

static size_t piece_bytes(const qk_pinned_t *p, int piece) {
  const size_t at = (size_t)(piece % p->pieces) * QK_PINNED_PIECE;
  return p->bytes - at < QK_PINNED_PIECE ? p->bytes - at : QK_PINNED_PIECE;
}

/* When the last buffer is ready. */
static void tell(const qk_pinned_t *p) {
  const double mb = 1e-6 * (double)p->bytes, seconds = qk_clock_now() - p->since;
  if (p->failed > 0)
    qk_warn("memory",
            "%d of %d pieces of the %d buffers for fields under way are not pinned, copies are "
            "slower: %s",
            p->failed, p->n * p->pieces, p->n, p->why.text);
  else if (p->beside)
    qk_info("memory", "%d buffers of %.4g MB for fields under way are ready after %.2f s", p->n, mb,
            seconds);
}

/* With the lock. */
static void finish_piece(qk_pinned_t *p, int piece, const qk_err_t *err) {
  p->pinned[piece] = err->code == QK_OK;
  if (err->code != QK_OK && p->failed++ == 0) p->why = *err;
  p->buffer[piece / p->pieces].left--;
  const int before = p->ready;
  while (p->ready < p->n && p->buffer[p->ready].left == 0) p->ready++;
  if (p->ready == before) return;
  pthread_cond_broadcast(&p->news);
  if (p->ready == p->n) tell(p);
}

static void *work(void *arg) {
  qk_pinned_t *p = arg;
  pthread_mutex_lock(&p->lock);
  while (!p->stop && p->next < p->n * p->pieces) {
    const int piece = p->next++;
    qk_err_t err = {0};
    pthread_mutex_unlock(&p->lock);
    p->pages->pin(p->ctx, piece_at(p, piece), piece_bytes(p, piece), &err);
    pthread_mutex_lock(&p->lock);
    finish_piece(p, piece, &err);
  }
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static qk_status_t map_buffers(qk_pinned_t *p, const qk_device_t *dev, qk_err_t *err) {
  const size_t n = (size_t)p->n;
  p->buffer = qk_calloc(n > 0 ? n : 1, sizeof *p->buffer);
  p->pinned = qk_calloc(n > 0 ? n * (size_t)p->pieces : 1, sizeof *p->pinned);
  if (p->buffer == NULL || p->pinned == NULL)
    return qk_fail(err, QK_NO_MEMORY, "no memory for a table of %d buffers", p->n);
  for (int i = 0; i < p->n; i++) {
    p->buffer[i].left = p->pieces;
    const qk_status_t status = p->pages->map(p->ctx, p->bytes, &p->buffer[i].data);
    if (status != QK_OK) return qk_device_explain(dev, status, err);
  }
  return QK_OK;
}

qk_status_t qk_pinned_create(const qk_device_t *dev, const qk_host_pages_t *pages, size_t bytes,
                             int n, int threads, qk_pinned_t **pinned, qk_err_t *err) {
  QK_ASSERT(bytes > 0 && n >= 0);
  qk_pinned_t *p = qk_calloc(1, sizeof *p);
  if (p == NULL) return qk_fail(err, QK_NO_MEMORY, "no memory for buffers of fields under way");
  p->ctx = dev->ctx;
  p->pages = pages;
  p->bytes = bytes;
  p->n = n;
  p->pieces = (int)((bytes + QK_PINNED_PIECE - 1) / QK_PINNED_PIECE);
  p->beside = threads > 0;
  p->since = qk_clock_now();
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->news, NULL);
  const qk_status_t status = map_buffers(p, dev, err);
  if (status != QK_OK) {
    qk_pinned_destroy(p);
    return status;
  }
  while (p->nthread < threads && p->nthread < THREADS_MAX &&
         pthread_create(&p->thread[p->nthread], NULL, work, p) == 0)
    p->nthread++;
  if (p->nthread == 0) work(p);
  *pinned = p;
  return QK_OK;
}

void qk_pinned_destroy(qk_pinned_t *p) {
  if (p == NULL) return;
  pthread_mutex_lock(&p->lock);
  p->stop = true;
  pthread_mutex_unlock(&p->lock);
  for (int i = 0; i < p->nthread; i++) pthread_join(p->thread[i], NULL);
  for (int k = 0; p->pinned != NULL && k < p->n * p->pieces; k++)
    if (p->pinned[k]) p->pages->unpin(p->ctx, piece_at(p, k));
  for (int i = 0; p->buffer != NULL && i < p->n; i++)
    if (p->buffer[i].data != NULL) p->pages->unmap(p->ctx, p->buffer[i].data, p->bytes);
  pthread_cond_destroy(&p->news);
  pthread_mutex_destroy(&p->lock);
  qk_free(p->pinned);
  qk_free(p->buffer);
  qk_free(p);
}

/* ---- queries --------------------------------------------------------------------------------- */

bool qk_pinned_serves(const qk_pinned_t *pinned, size_t bytes, int n) {
  return pinned->bytes == bytes && pinned->n >= n;
}

int64_t qk_pinned_bytes(const qk_pinned_t *pinned) {
  return pinned == NULL ? 0 : (int64_t)pinned->bytes * pinned->n;
}

void *qk_pinned_buffer(const qk_pinned_t *pinned, int i) {
  QK_ASSERT(i >= 0 && i < pinned->n);
  return pinned->buffer[i].data;
}

int qk_pinned_ready(qk_pinned_t *pinned) {
  pthread_mutex_lock(&pinned->lock);
  const int ready = pinned->ready;
  pthread_mutex_unlock(&pinned->lock);
  return ready;
}

void qk_pinned_await(qk_pinned_t *pinned, int n) {
  QK_ASSERT(n <= pinned->n);
  pthread_mutex_lock(&pinned->lock);
  while (pinned->ready < n) pthread_cond_wait(&pinned->news, &pinned->lock);
  pthread_mutex_unlock(&pinned->lock);
}
