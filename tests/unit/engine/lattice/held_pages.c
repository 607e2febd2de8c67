#include "tests/unit/engine/lattice/held_pages.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static int allowed, failing;
static held_pages_count_t asked;

static qk_status_t map(qk_ops_ctx_t *ctx, size_t bytes, void **ptr) {
  asked.mapped++;
  return qk_host_pages_cpu()->map(ctx, bytes, ptr);
}

static qk_status_t pin(qk_ops_ctx_t *ctx, void *piece, size_t bytes, qk_err_t *err) {
  (void)ctx;
  (void)piece;
  pthread_mutex_lock(&lock);
  while (asked.pinned >= allowed) pthread_cond_wait(&news, &lock);
  const int number = ++asked.pinned;
  asked.bytes = bytes;
  pthread_mutex_unlock(&lock);
  return number == failing ? qk_fail(err, QK_DEVICE_MEMORY, "no more locked memory") : QK_OK;
}

static void unpin(qk_ops_ctx_t *ctx, void *piece) {
  (void)ctx;
  (void)piece;
  asked.unpinned++;
}

static void unmap(qk_ops_ctx_t *ctx, void *ptr, size_t bytes) {
  asked.unmapped++;
  qk_host_pages_cpu()->unmap(ctx, ptr, bytes);
}

const qk_host_pages_t held_pages = {map, pin, unpin, unmap};

void held_pages_allow(int pieces) {
  pthread_mutex_lock(&lock);
  allowed = pieces;
  pthread_cond_broadcast(&news);
  pthread_mutex_unlock(&lock);
}

void held_pages_fail(int bad) {
  failing = bad;
}

held_pages_count_t held_pages_asked(void) {
  pthread_mutex_lock(&lock);
  const held_pages_count_t now = asked;
  pthread_mutex_unlock(&lock);
  return now;
}
