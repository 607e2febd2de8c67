/*
 * progress.h: reports of work that takes long.
 *
 * phase: what is being done, a name from the function that reports; done of total: in its units. A
 * function says which phases it has, in what units, and on which ranks it reports.
 */
#ifndef QK_BASE_PROGRESS_H
#define QK_BASE_PROGRESS_H

#include <stdint.h>

typedef void qk_progress_fn(void *arg, const char *phase, int64_t done, int64_t total);

#endif
