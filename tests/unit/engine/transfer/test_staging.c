/* Staging buffers that come into use as their pinned memory becomes ready. */
#include <criterion/criterion.h>

#include "tests/unit/engine/lattice/held_pages.h"
#include "tests/unit/engine/setup/setup_kit.h"

/* A setup whose pinned memory the test lets become ready; buffers are pieces on this lattice. */
static loaded_t load_held(int slots, int ready) {
  qk_load_t load = a_load("builtin:weak:4x4x4x8:1", "bicgstab", QK_SINGLE, slots);
  loaded_t l;
  qk_err_t err = {0};
  cr_assert_eq(open_load(&load, &l, &err), QK_OK, "%s", err.text);
  qk_loaded_t *s = l.setup;
  const int n = QK_PINNED_STAGING + s->plan.staging + s->plan.leaving;
  const size_t bytes = (size_t)s->geom.local_volume * 24 * sizeof(double);
  qk_pinned_destroy(s->pinned);
  held_pages_allow(ready);
  cr_assert_eq(qk_pinned_create(&s->dev, &held_pages, bytes, n, 1, &s->pinned, &err), QK_OK, "%s",
               err.text);
  cr_assert_eq(qk_field_io_create(&s->dev, s->pinned, &l.port, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_inflight_create(s, l.port, &l.inflight, &err), QK_OK, "%s", err.text);
  return l;
}

static void poll_until(qk_staging_t *stage, int in, int out) {
  qk_err_t err = {0};
  while (qk_staging_vacant(stage) < in || qk_staging_room(stage) < out)
    cr_assert_eq(qk_staging_poll(stage, true, &err), QK_OK, "%s", err.text);
}

Test(staging, serves_with_the_first_buffers_and_others_join) {
  loaded_t l = load_held(8, QK_PINNED_STAGING + 4);
  qk_staging_t *stage = qk_inflight_stage(l.inflight);
  cr_assert(l.setup->plan.staging == 4 && l.setup->plan.leaving == 8);
  cr_expect(qk_staging_vacant(stage) == 2 && qk_staging_room(stage) == 2);
  solve_all(&l);
  cr_expect(qk_staging_vacant(stage) == 2 && qk_staging_room(stage) == 2, "no more is ready");
  held_pages_allow(QK_PINNED_STAGING + 7);
  poll_until(stage, 3, 4);
  cr_expect(qk_staging_vacant(stage) == 3 && qk_staging_room(stage) == 4, "two out for one in");
  held_pages_allow(100);
  poll_until(stage, 4, 8);
  solve_all(&l);
  close_load(&l);
  cr_expect_eq(held_pages_asked().unpinned, QK_PINNED_STAGING + 12);
}

Test(staging, fewer_than_the_first_are_all_that_is_waited_for) {
  loaded_t l = load_held(2, QK_PINNED_STAGING + 3);
  qk_staging_t *stage = qk_inflight_stage(l.inflight);
  cr_assert(l.setup->plan.staging == 1 && l.setup->plan.leaving == 2);
  cr_expect(qk_staging_vacant(stage) == 1 && qk_staging_room(stage) == 2);
  solve_all(&l);
  close_load(&l);
}
