/*
 * worker.h: threads for work that may wait long, on a disk that stalls for example. The loop gives
 * work in order, and is told in one of its turns when it is over. Apart from libuv's threads, which
 * copy what clients send and must not wait for a disk.
 *
 * A piece of work belongs to the worker from qk_worker_give until `done` is called. Loop and thread
 * share nothing else: what `run` reads and writes is the work's own. All functions are the loop's
 * thread's.
 */
#ifndef QK_FRONT_WORKER_H
#define QK_FRONT_WORKER_H

#include "daemon/front/host/loop.h"

typedef struct qk_worker qk_worker_t;
typedef struct qk_work qk_work_t;

struct qk_work {
  qk_link_t link;                /* the worker's */
  void (*run)(qk_work_t *work);  /* on a thread */
  void (*done)(qk_work_t *work); /* in the loop; may give more, and free this one */
};

/* name: of its threads, at most 15 bytes. QK_NO_MEMORY: no thread can be made. */
qk_status_t qk_worker_open(qk_loop_t *loop, const char *name, int threads, qk_worker_t **worker,
                           qk_err_t *err);
void qk_worker_give(qk_worker_t *worker, qk_work_t *work);
/* Pieces that were given and are not done yet. 0 for NULL. */
int qk_worker_busy(const qk_worker_t *worker);
/* Where the loop does not run: waits until a piece is over, for at most so many seconds, and calls
 * `done` of what is. False: nothing was over. */
bool qk_worker_wait(qk_worker_t *worker, double seconds);
/* Ends its threads when all that was given is over, with `done` called. Before the loop ends, which
 * frees it. NULL-safe. */
void qk_worker_close(qk_worker_t *worker);

#endif
