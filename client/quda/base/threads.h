/*
 * threads.h: some threads that put fields into another order while this one talks to the daemon.
 * QUARK_QUDA_THREADS of them; else as many as this rank has cores. One task at a time, of one
 * thread; a task touches its arguments alone.
 */
#ifndef QUARK_QUDA_THREADS_H
#define QUARK_QUDA_THREADS_H

#include <stddef.h>

typedef void (*qk_quda_piece_fn)(void *arg, size_t piece);

/* Begins a task: task(arg, k) for k = 0 .. pieces - 1, in any order, several at a time. */
void qk_quda_start(qk_quda_piece_fn task, void *arg, size_t pieces);
/* Returns when the task that was begun, if any, is done. */
void qk_quda_finish(void);
/* Both. */
void qk_quda_parallel(qk_quda_piece_fn task, void *arg, size_t pieces);
/* Number of threads. */
size_t qk_quda_threads(void);
/* Ends the threads; the next task begins others. */
void qk_quda_threads_end(void);

#endif
