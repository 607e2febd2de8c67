/*
 * pinned.h: pinned host memory for fields under way, made beside other work: to find and pin the
 * pages of gigabytes takes seconds, and nobody has to wait for them.
 *
 * Buffers of one size. Their addresses are there at once; threads make them ready one after the
 * other, in pieces of QK_PINNED_PIECE bytes. No copy to or from the device may cross the edge of a
 * piece. A piece that cannot be pinned serves all the same, with slower copies; the log says so.
 *
 * Not collective. create and destroy are of the device's thread, the other calls of any thread.
 */
#ifndef QK_ENGINE_PINNED_H
#define QK_ENGINE_PINNED_H

#include "cuda/host_pages.h"
#include "daemon/engine/lattice/device.h"

enum { QK_PINNED_PIECE = 64 << 20 };

typedef struct qk_pinned qk_pinned_t;

/* n buffers of the pages of dev's backend; threads: how many work on them, 0: all are ready when
 * this returns. Borrows pages and
 * dev's context until destroy. Errors: QK_NO_MEMORY, QK_DEVICE_MEMORY
 * (address space, or a limit of the backend). */
qk_status_t qk_pinned_create(const qk_device_t *dev, const qk_host_pages_t *pages, size_t bytes,
                             int n, int threads, qk_pinned_t **pinned, qk_err_t *err);
/* NULL-safe; does not wait for what has not begun. */
void qk_pinned_destroy(qk_pinned_t *pinned);

/* Whether it has n buffers, or more, of so many bytes each. */
bool qk_pinned_serves(const qk_pinned_t *pinned, size_t bytes, int n);
/* Of all its buffers, ready or not; NULL: 0. */
int64_t qk_pinned_bytes(const qk_pinned_t *pinned);

void *qk_pinned_buffer(const qk_pinned_t *pinned, int i);
/* How many are ready: the first so many. */
int qk_pinned_ready(qk_pinned_t *pinned);
/* Waits until the first n are. */
void qk_pinned_await(qk_pinned_t *pinned, int n);

#endif
