/* Pinned buffers that threads make: in pieces that can be held up, or fail. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/engine/lattice/pinned.h"
#include "tests/unit/engine/lattice/held_pages.h"

enum { PIECES = 3, LAST = 5000 };
static const size_t bytes = (size_t)(PIECES - 1) * QK_PINNED_PIECE + LAST;

static qk_device_t dev;

static void open_device(void) {
  qk_ops_ctx_t *ctx = NULL;
  dev.ops = qk_ops_cpu();
  cr_assert_eq(dev.ops->open(0, &ctx, NULL), QK_OK);
  dev.ctx = ctx;
}

TestSuite(pinned, .init = open_device);

static qk_pinned_t *create(int n, int threads) {
  qk_pinned_t *p = NULL;
  qk_err_t err = {0};
  cr_assert_eq(qk_pinned_create(&dev, &held_pages, bytes, n, threads, &p, &err), QK_OK, "%s",
               err.text);
  return p;
}

Test(pinned, buffers_become_ready_in_their_order) {
  qk_pinned_t *p = create(2, 1);
  cr_expect_eq(qk_pinned_ready(p), 0);
  cr_expect(qk_pinned_buffer(p, 0) != NULL && qk_pinned_buffer(p, 0) != qk_pinned_buffer(p, 1));
  held_pages_allow(PIECES);
  qk_pinned_await(p, 1);
  cr_expect_eq(qk_pinned_ready(p), 1);
  cr_expect_eq(held_pages_asked().bytes, LAST);
  held_pages_allow(2 * PIECES);
  qk_pinned_await(p, 2);
  memset((char *)qk_pinned_buffer(p, 1) + bytes - 100, 1, 100);
  qk_pinned_destroy(p);
  const held_pages_count_t asked = held_pages_asked();
  cr_expect(asked.pinned == 2 * PIECES && asked.unpinned == 2 * PIECES);
  cr_expect(asked.mapped == 2 && asked.unmapped == 2);
}

Test(pinned, a_piece_that_cannot_be_pinned_serves_all_the_same) {
  held_pages_fail(2);
  held_pages_allow(2 * PIECES);
  qk_pinned_t *p = create(2, 1);
  qk_pinned_await(p, 2);
  ((char *)qk_pinned_buffer(p, 0))[QK_PINNED_PIECE] = 1;
  qk_pinned_destroy(p);
  cr_expect_eq(held_pages_asked().unpinned, 2 * PIECES - 1, "what was not pinned is not unpinned");
}

Test(pinned, the_end_comes_whatever_is_under_way) {
  held_pages_allow(8 * PIECES);
  qk_pinned_destroy(create(8, 2));
  const held_pages_count_t asked = held_pages_asked();
  cr_expect(asked.pinned <= 8 * PIECES && asked.unpinned == asked.pinned, "%d", asked.pinned);
  cr_expect_eq(asked.unmapped, 8);
}

Test(pinned, without_threads_all_is_ready_at_once) {
  held_pages_allow(2 * PIECES);
  qk_pinned_t *p = create(2, 0);
  cr_expect_eq(qk_pinned_ready(p), 2);
  qk_pinned_destroy(p);
  qk_pinned_destroy(create(0, 4));
  qk_pinned_destroy(NULL);
}

Test(pinned, what_cannot_be_mapped_is_refused_and_leaves_nothing) {
  qk_pinned_t *p = NULL;
  qk_err_t err = {0};
  cr_expect_eq(qk_pinned_create(&dev, &held_pages, (size_t)1 << 50, 2, 2, &p, &err),
               QK_DEVICE_MEMORY);
  cr_expect(strstr(err.text, "1125899906842624") != NULL, "%s", err.text);
  cr_expect(p == NULL && held_pages_asked().pinned == 0);
}
