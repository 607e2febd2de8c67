/* What the page draws, kept in bounded memory. */
#include <criterion/criterion.h>

#include "daemon/front/measure/history.h"

Test(curve, keeps_every_point_while_there_is_room) {
  static qk_curve_t c;
  qk_curve_clear(&c);
  for (uint64_t i = 0; i < QK_CURVE_POINTS; i++) qk_curve_add(&c, i, 1.0 / (double)(i + 1));
  cr_assert_eq(c.n, QK_CURVE_POINTS);
  for (int i = 0; i < c.n; i++)
    cr_assert(c.point[i].iterations == (uint64_t)i && c.point[i].residual == 1.0 / (i + 1));
  qk_curve_clear(&c);
  cr_expect_eq(c.n, 0);
  qk_curve_add(&c, 7, 0.5);
  cr_expect(c.n == 1 && c.point[0].iterations == 7);
}

/* However long the solve: its beginning stays, points are evenly spaced, at least
 * half of the room is used. */
Test(curve, covers_the_whole_of_a_long_solve) {
  static qk_curve_t c;
  qk_curve_clear(&c);
  for (uint64_t i = 0; i < 100000; i++) {
    qk_curve_add(&c, i, 1);
    cr_assert_leq(c.n, QK_CURVE_POINTS);
    if (i >= QK_CURVE_POINTS) cr_assert_geq(c.n, QK_CURVE_POINTS / 2);
    cr_assert_eq(c.point[0].iterations, 0);
    cr_assert_leq(i - c.point[c.n - 1].iterations, c.stride);
  }
  for (int i = 1; i < c.n; i++)
    cr_assert_eq(c.point[i].iterations - c.point[i - 1].iterations, c.stride);
  cr_expect_eq(c.stride, 512);
}

Test(history, keeps_one_sample_for_each_two_seconds_and_the_means_between) {
  static qk_history_t h;
  for (int i = 0; i <= 1000; i++)
    qk_history_see(&h, &(qk_sample_t){.time = 0.1 * i,
                                      .solved = (uint64_t)i,
                                      .busy = i % 2 ? 16 : 0,
                                      .slots = 16,
                                      .queued = i});
  cr_assert(h.n >= 48 && h.n <= 51, "%d", h.n);
  for (int i = 1; i < h.n; i++) {
    const qk_sample_t *a = qk_history_at(&h, i - 1), *b = qk_history_at(&h, i);
    cr_assert(b->time - a->time >= QK_HISTORY_SECONDS &&
              b->time - a->time < QK_HISTORY_SECONDS + 0.2);
    cr_assert_float_eq(b->busy, 8, 0.5, "%g", b->busy);
    cr_assert_eq(b->slots, 16);
    cr_assert_float_eq(b->queued, (double)(a->solved + b->solved + 1) / 2, 1e-9);
  }
}

Test(history, forgets_the_oldest) {
  static qk_history_t h;
  for (int i = 0; i < 1000; i++)
    qk_history_see(&h, &(qk_sample_t){.time = QK_HISTORY_SECONDS * i, .solved = (uint64_t)i});
  cr_assert_eq(h.n, QK_HISTORY_SAMPLES);
  for (int i = 0; i < h.n; i++)
    cr_assert_eq(qk_history_at(&h, i)->solved, (uint64_t)(1000 - QK_HISTORY_SAMPLES + i));
}
