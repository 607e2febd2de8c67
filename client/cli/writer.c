#include "client/cli/writer.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "client/cli/solving.h"

enum { COLUMNS = 2 };

/* A solution, from the fetch to the file. */
typedef struct column {
  int64_t rhs;      /* in the file */
  uint64_t request; /* and which one it is with the daemon */
  uint32_t index;
  quark_view_t view;
  void *buffer; /* for what cannot be mapped; the first that is makes it */
} column_t;

/* A solution that stays until the file is committed. */
typedef struct held {
  uint64_t request;
  uint32_t index;
  quark_view_t view; /* empty: none */
} held_t;

struct ctl_writer {
  quark_connection_t *conn;
  qk_fieldfile_t *file;
  size_t bytes; /* of a solution */
  bool ack;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* Under the lock. Column n is column[n % COLUMNS]: the caller's from `written` on, the thread's
   * from `taken` on. */
  uint64_t taken, written;
  bool stop, failed;
  qk_err_t file_err;  /* failed, with a code: why */
  quark_error_t err;  /* failed: why, if it is not the file */
  ctl_clocks_t clock; /* fetch is the caller's */
  column_t column[COLUMNS];
  held_t
      *held; /* of a file that gathers its columns: by right-hand side; the thread's till drain */
  int64_t nrhs;
};

/* ---- the thread ---- */

/* The memory of the solution is given back before the daemon is told that it may use it. */
static bool write_column(ctl_writer_t *w, column_t *c, ctl_clocks_t *clock) {
  const double begun = ctl_seconds();
  const bool stays = w->held && c->view.mapped;
  bool ok = qk_fieldfile_write(w->file, c->rhs, c->view.data, stays, &w->file_err) == QK_OK;
  if (ok && stays) {
    w->held[c->rhs] = (held_t){c->request, c->index, c->view};
    c->view = (quark_view_t){.data = NULL};
    return true;
  }
  const double written = ctl_seconds();
  if (ok) qk_fieldfile_push(w->file);
  clock->write = written - begun;
  clock->sync = ctl_seconds() - written;
  quark_view_close(&c->view);
  if (ok && w->ack) ok = quark_ack(w->conn, c->request, (int32_t)c->index, &w->err) == QUARK_OK;
  return ok;
}

static void *work(void *arg) {
  ctl_writer_t *w = arg;
  pthread_mutex_lock(&w->lock);
  while (!w->stop) {
    if (w->written == w->taken || w->failed) {
      pthread_cond_wait(&w->changed, &w->lock);
      continue;
    }
    column_t *c = &w->column[w->written % COLUMNS];
    ctl_clocks_t clock = {0};
    pthread_mutex_unlock(&w->lock);
    const bool ok = write_column(w, c, &clock);
    pthread_mutex_lock(&w->lock);
    w->clock.write += clock.write;
    w->clock.sync += clock.sync;
    w->failed = !ok;
    w->written++;
    pthread_cond_broadcast(&w->changed);
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

/* Signals are for the thread that waits for the daemon. */
static bool start(ctl_writer_t *w) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool started = pthread_create(&w->thread, NULL, work, w) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started;
}

int ctl_writer_create(quark_connection_t *conn, qk_fieldfile_t *file, size_t bytes, bool ack,
                      ctl_writer_t **writer) {
  ctl_writer_t *w = calloc(1, sizeof *w);
  const int64_t nrhs = qk_fieldfile_gathers(file) ? qk_fieldfile_nrhs(file) : 0;
  held_t *held = nrhs ? calloc((size_t)nrhs, sizeof *held) : NULL;
  if (w && (held || !nrhs)) {
    *w = (ctl_writer_t){
        .conn = conn, .file = file, .bytes = bytes, .ack = ack, .held = held, .nrhs = nrhs};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    if (start(w)) {
      *writer = w;
      return 0;
    }
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
  }
  free(held);
  free(w);
  ctl_complain("no memory for a thread that writes the file");
  return EXIT_AGAIN;
}

void ctl_writer_destroy(ctl_writer_t *w) {
  if (!w) return;
  pthread_mutex_lock(&w->lock);
  w->stop = true;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->lock);
  pthread_join(w->thread, NULL);
  for (int i = 0; i < COLUMNS; i++) {
    quark_view_close(&w->column[i].view);
    free(w->column[i].buffer);
  }
  for (int64_t i = 0; i < w->nrhs; i++) quark_view_close(&w->held[i].view);
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->lock);
  free(w->held);
  free(w);
}

/* ---- the caller ---- */

/* Waits until at most so many columns are on their way, or the thread has failed. */
static int wait_for(ctl_writer_t *w, uint64_t most) {
  pthread_mutex_lock(&w->lock);
  while (!w->failed && w->taken - w->written > most) pthread_cond_wait(&w->changed, &w->lock);
  const bool failed = w->failed;
  pthread_mutex_unlock(&w->lock);
  if (!failed) return 0;
  return w->file_err.code ? ctl_fail_file(&w->file_err) : ctl_fail(&w->err);
}

int ctl_writer_check(ctl_writer_t *w) {
  return wait_for(w, COLUMNS);
}

int ctl_writer_drain(ctl_writer_t *w) {
  return wait_for(w, 0);
}

int ctl_writer_take(ctl_writer_t *w, int64_t rhs, const quark_result_t *result) {
  const int code = wait_for(w, COLUMNS - 1);
  if (code) return code;
  column_t *c = &w->column[w->taken % COLUMNS];
  quark_error_t err;
  if (!c->buffer && !(c->buffer = malloc(w->bytes))) {
    ctl_complain("no memory for one field of %zu bytes", w->bytes);
    return EXIT_AGAIN;
  }
  c->rhs = rhs;
  c->request = result->request;
  c->index = result->rhs;
  const double begun = ctl_seconds();
  if (quark_view_open(w->conn, c->request, c->index, c->buffer, w->bytes, &c->view, &err) !=
      QUARK_OK)
    return ctl_fail(&err);
  w->clock.fetch += ctl_seconds() - begun;
  pthread_mutex_lock(&w->lock);
  w->taken++;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->lock);
  return 0;
}

int ctl_writer_give_back(ctl_writer_t *w) {
  quark_error_t err;
  for (int64_t i = 0; i < w->nrhs; i++) {
    held_t *h = &w->held[i];
    if (!h->view.data) continue;
    quark_view_close(&h->view);
    if (w->ack && quark_ack(w->conn, h->request, (int32_t)h->index, &err) != QUARK_OK)
      return ctl_fail(&err);
  }
  return 0;
}

ctl_clocks_t ctl_writer_clocks(const ctl_writer_t *w) {
  return w->clock;
}
