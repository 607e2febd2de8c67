/* Pinned buffers that threads make: of the CPU's memory, in pieces that can be held up, or fail. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "daemon/engine/lattice/pinned.h"

enum { PIECES = 3 };
static const size_t bytes = (size_t)(PIECES - 1) * QK_PINNED_PIECE + 5000;

/* What the backend was asked for. */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t news;
  int allowed; /* pieces that may be pinned; the next one waits */
  int bad;     /* the number of the piece that fails, counted from 1; 0: none */
  int pinned, unpinned, mapped, unmapped, partial;
} asked = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

static qk_status_t map(qk_ops_ctx_t *ctx, size_t n, void **ptr) {
  asked.mapped++;
  return qk_host_pages_cpu()->map(ctx, n, ptr);
}

static void unmap(qk_ops_ctx_t *ctx, void *ptr, size_t n) {
  cr_assert_eq(n, bytes);
  asked.unmapped++;
  qk_host_pages_cpu()->unmap(ctx, ptr, n);
}

static qk_status_t pin(qk_ops_ctx_t *ctx, void *piece, size_t n, qk_err_t *err) {
  (void)ctx;
  (void)piece;
  pthread_mutex_lock(&asked.lock);
  while (asked.pinned >= asked.allowed) pthread_cond_wait(&asked.news, &asked.lock);
  const int number = ++asked.pinned;
  asked.partial += n == 5000;
  pthread_mutex_unlock(&asked.lock);
  return number == asked.bad ? qk_fail(err, QK_DEVICE_MEMORY, "no more locked memory") : QK_OK;
}

static void unpin(qk_ops_ctx_t *ctx, void *piece) {
  (void)ctx;
  (void)piece;
  asked.unpinned++;
}

static void allow(int pieces) {
  pthread_mutex_lock(&asked.lock);
  asked.allowed = pieces;
  pthread_cond_broadcast(&asked.news);
  pthread_mutex_unlock(&asked.lock);
}

static const qk_host_pages_t pages = {map, pin, unpin, unmap};
static qk_device_t dev;

static void open_device(void) {
  qk_ops_ctx_t *ctx = NULL;
  dev.ops = qk_ops_cpu();
  cr_assert_eq(dev.ops->open(0, &ctx, NULL), QK_OK);
  dev.ctx = ctx;
}

TestSuite(pinned, .init = open_device);

Test(pinned, buffers_become_ready_in_their_order) {
  qk_pinned_t *p = NULL;
  qk_err_t err = {0};
  cr_assert_eq(qk_pinned_create(&dev, &pages, bytes, 2, 1, &p, &err), QK_OK, "%s", err.text);
  cr_expect_eq(qk_pinned_ready(p), 0);
  cr_expect(qk_pinned_buffer(p, 0) != NULL && qk_pinned_buffer(p, 0) != qk_pinned_buffer(p, 1));
  allow(PIECES);
  qk_pinned_await(p, 1);
  cr_expect_eq(qk_pinned_ready(p), 1);
  allow(2 * PIECES);
  qk_pinned_await(p, 2);
  memset((char *)qk_pinned_buffer(p, 1) + bytes - 100, 1, 100);
  qk_pinned_destroy(p);
  cr_expect(asked.pinned == 2 * PIECES && asked.partial == 2 && asked.unpinned == asked.pinned);
  cr_expect(asked.mapped == 2 && asked.unmapped == 2);
}

Test(pinned, a_piece_that_cannot_be_pinned_serves_all_the_same) {
  qk_pinned_t *p = NULL;
  qk_err_t err = {0};
  asked.bad = 2;
  allow(2 * PIECES);
  cr_assert_eq(qk_pinned_create(&dev, &pages, bytes, 2, 1, &p, &err), QK_OK, "%s", err.text);
  qk_pinned_await(p, 2);
  *(char *)qk_pinned_buffer(p, 0) = 1;
  qk_pinned_destroy(p);
  cr_expect_eq(asked.unpinned, 2 * PIECES - 1, "what was not pinned is not unpinned");
}

Test(pinned, the_end_comes_whatever_is_under_way) {
  qk_pinned_t *p = NULL;
  qk_err_t err = {0};
  allow(8 * PIECES);
  cr_assert_eq(qk_pinned_create(&dev, &pages, bytes, 8, 2, &p, &err), QK_OK, "%s", err.text);
  qk_pinned_destroy(p);
  cr_expect(asked.pinned <= 8 * PIECES && asked.unpinned == asked.pinned, "%d", asked.pinned);
  cr_expect_eq(asked.unmapped, 8);
}

Test(pinned, without_threads_all_is_ready_at_once) {
  qk_pinned_t *p = NULL;
  qk_err_t err = {0};
  allow(2 * PIECES);
  cr_assert_eq(qk_pinned_create(&dev, &pages, bytes, 2, 0, &p, &err), QK_OK, "%s", err.text);
  cr_expect_eq(qk_pinned_ready(p), 2);
  qk_pinned_destroy(p);
  cr_expect_eq(qk_pinned_create(&dev, &pages, bytes, 0, 4, &p, &err), QK_OK);
  qk_pinned_destroy(p);
  qk_pinned_destroy(NULL);
}

Test(pinned, what_cannot_be_mapped_is_refused_and_leaves_nothing) {
  qk_pinned_t *p = NULL;
  qk_err_t err = {0};
  cr_expect_eq(qk_pinned_create(&dev, &pages, (size_t)1 << 50, 2, 2, &p, &err), QK_DEVICE_MEMORY);
  cr_expect(strstr(err.text, "1125899906842624") != NULL, "%s", err.text);
  cr_expect(p == NULL && asked.pinned == 0);
}
