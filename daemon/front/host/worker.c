#include "daemon/front/host/worker.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"

enum { NAME = 16, THREADS_MAX = 4 };

struct qk_worker {
  uv_async_t wake; /* the loop */
  uv_mutex_t lock; /* of the lists and `closing` */
  uv_cond_t more, over;
  qk_link_t given, done;
  bool closing;
  int busy; /* the loop's */
  int threads;
  uv_thread_t thread[THREADS_MAX];
  char name[NAME];
};

/* ---- threads --------------------------------------------------------------------------------- */

/* With the lock; NULL: there will be none. */
static qk_work_t *next(qk_worker_t *w) {
  while (qk_link_alone(&w->given) && !w->closing) uv_cond_wait(&w->more, &w->lock);
  if (qk_link_alone(&w->given)) return NULL;
  qk_work_t *work = QK_HOLDER(w->given.next, qk_work_t, link);
  qk_link_remove(&work->link);
  return work;
}

static void work_on(void *arg) {
  qk_worker_t *w = arg;
  pthread_setname_np(pthread_self(), w->name);
  uv_mutex_lock(&w->lock);
  for (qk_work_t *work; (work = next(w)) != NULL;) {
    uv_mutex_unlock(&w->lock);
    work->run(work);
    uv_mutex_lock(&w->lock);
    qk_list_append(&w->done, &work->link);
    uv_cond_signal(&w->over);
    uv_async_send(&w->wake);
  }
  uv_mutex_unlock(&w->lock);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* NULL: nothing more is over. */
static qk_work_t *take_done(qk_worker_t *w) {
  qk_work_t *work = NULL;
  uv_mutex_lock(&w->lock);
  if (!qk_link_alone(&w->done)) {
    work = QK_HOLDER(w->done.next, qk_work_t, link);
    qk_link_remove(&work->link);
  }
  uv_mutex_unlock(&w->lock);
  return work;
}

static bool hand_back(qk_worker_t *w) {
  bool any = false;
  for (qk_work_t *work; (work = take_done(w)) != NULL; any = true) {
    w->busy--;
    work->done(work);
  }
  return any;
}

static void on_wake(uv_async_t *wake) {
  hand_back(wake->data);
}

static void on_closed(uv_handle_t *wake) {
  qk_worker_t *w = wake->data;
  uv_cond_destroy(&w->over);
  uv_cond_destroy(&w->more);
  uv_mutex_destroy(&w->lock);
  qk_free(w);
}

qk_status_t qk_worker_open(qk_loop_t *loop, const char *name, int threads, qk_worker_t **worker,
                           qk_err_t *err) {
  qk_worker_t *w = qk_calloc(1, sizeof *w);
  if (!w) return qk_fail(err, QK_NO_MEMORY, "no memory for the thread \"%s\"", name);
  qk_link_init(&w->given);
  qk_link_init(&w->done);
  snprintf(w->name, sizeof w->name, "%s", name);
  uv_mutex_init(&w->lock);
  uv_cond_init(&w->more);
  uv_cond_init(&w->over);
  uv_async_init(&loop->uv, &w->wake, on_wake);
  w->wake.data = w;
  int e = 0;
  while (w->threads < threads && w->threads < THREADS_MAX && e == 0) {
    e = uv_thread_create(&w->thread[w->threads], work_on, w);
    w->threads += e == 0;
  }
  if (e == 0) {
    *worker = w;
    return QK_OK;
  }
  qk_worker_close(w);
  return qk_fail(err, QK_NO_MEMORY, "no thread \"%s\" can be started: %s", name, uv_strerror(e));
}

void qk_worker_give(qk_worker_t *w, qk_work_t *work) {
  w->busy++;
  qk_link_init(&work->link);
  uv_mutex_lock(&w->lock);
  qk_list_append(&w->given, &work->link);
  uv_cond_signal(&w->more);
  uv_mutex_unlock(&w->lock);
}

int qk_worker_busy(const qk_worker_t *w) {
  return w ? w->busy : 0;
}

bool qk_worker_wait(qk_worker_t *w, double seconds) {
  const uint64_t until = uv_hrtime() + (uint64_t)(seconds * 1e9);
  uv_mutex_lock(&w->lock);
  for (uint64_t now; w->busy > 0 && qk_link_alone(&w->done) && (now = uv_hrtime()) < until;)
    uv_cond_timedwait(&w->over, &w->lock, until - now);
  uv_mutex_unlock(&w->lock);
  return hand_back(w);
}

void qk_worker_close(qk_worker_t *w) {
  if (!w) return;
  uv_mutex_lock(&w->lock);
  w->closing = true;
  uv_cond_broadcast(&w->more);
  uv_mutex_unlock(&w->lock);
  for (int i = 0; i < w->threads; i++) uv_thread_join(&w->thread[i]);
  hand_back(w);
  uv_close((uv_handle_t *)&w->wake, on_closed);
}
