/* Pieces that are read ahead: their order, how far ahead, and the first that fails. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "daemon/engine/gauge/gauge_ahead.h"

enum { BYTES = 100000, FEW = 10 };

/* What is read: piece k is full of byte k. */
typedef struct source {
  pthread_mutex_t lock;
  pthread_cond_t news;
  int64_t read, bad; /* pieces so far; the one that fails */
} source_t;

static qk_status_t read_piece(const void *arg, int64_t piece, uint8_t *raw, qk_err_t *err) {
  source_t *s = (source_t *)arg;
  pthread_mutex_lock(&s->lock);
  const int64_t expected = s->read++;
  pthread_cond_broadcast(&s->news);
  pthread_mutex_unlock(&s->lock);
  if (piece != expected) return qk_fail(err, QK_INTERNAL, "piece %d", (int)piece);
  if (piece == s->bad) return qk_fail(err, QK_IO_ERROR, "read of piece %d: broken", (int)piece);
  memset(raw, (int)piece, piece % 2 == 0 ? BYTES : FEW);
  return QK_OK;
}

static source_t source(int64_t bad) {
  return (source_t){
      .lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER, .bad = bad};
}

static void await_read(source_t *s, int64_t pieces) {
  pthread_mutex_lock(&s->lock);
  while (s->read < pieces) pthread_cond_wait(&s->news, &s->lock);
  pthread_mutex_unlock(&s->lock);
}

static qk_gauge_ahead_t *begin(source_t *s, int64_t pieces, int64_t bytes) {
  qk_gauge_ahead_t *ahead = NULL;
  qk_err_t err = {0};
  cr_assert_eq(qk_gauge_ahead_begin(read_piece, s, pieces, bytes, &ahead, &err), QK_OK, "%s",
               err.text);
  return ahead;
}

Test(gauge_ahead, pieces_come_in_order_and_stay_until_the_next) {
  for (int small = 0; small < 2; small++) { /* few bytes need no thread */
    source_t s = source(-1);
    const int64_t pieces = small ? 2 : 9;
    qk_gauge_ahead_t *ahead = begin(&s, pieces, BYTES);
    for (int64_t k = 0; k < pieces; k++) {
      const uint8_t *raw = NULL;
      qk_err_t err = {0};
      cr_assert_eq(qk_gauge_ahead_next(ahead, &raw, &err), QK_OK, "%s", err.text);
      if (!small && k + 1 < pieces) await_read(&s, k + 2); /* while this one is used */
      cr_expect(raw[0] == k && raw[FEW - 1] == k);
    }
    cr_expect(qk_gauge_ahead_end(ahead) >= 0);
    cr_expect_eq(s.read, pieces);
  }
}

Test(gauge_ahead, the_first_that_fails_is_told_when_its_turn_comes) {
  for (int small = 0; small < 2; small++) {
    source_t s = source(1);
    qk_gauge_ahead_t *ahead = begin(&s, small ? 2 : 9, BYTES);
    const uint8_t *raw = NULL;
    qk_err_t err = {0};
    cr_expect_eq(qk_gauge_ahead_next(ahead, &raw, &err), QK_OK);
    if (!small) await_read(&s, 2);
    cr_expect_eq(raw[0], 0);
    cr_expect_eq(qk_gauge_ahead_next(ahead, &raw, &err), QK_IO_ERROR);
    cr_expect_str_eq(err.text, "read of piece 1: broken");
    qk_gauge_ahead_end(ahead);
    cr_expect_eq(s.read, 2, "nothing is read after a failure");
  }
}

Test(gauge_ahead, an_end_before_the_last_piece_is_no_more_than_that) {
  source_t s = source(-1);
  const uint8_t *raw = NULL;
  qk_err_t err = {0};
  qk_gauge_ahead_t *ahead = begin(&s, 1000, BYTES);
  cr_expect_eq(qk_gauge_ahead_next(ahead, &raw, &err), QK_OK);
  qk_gauge_ahead_end(ahead);
  cr_expect_leq(s.read, 3, "two pieces ahead at most");
  qk_gauge_ahead_end(NULL);
}
