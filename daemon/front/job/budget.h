/*
 * budget.h: a limit of bytes and the bytes in use. A budget may be part of another one, which is
 * then checked and charged as well. Errors: QK_TOO_LARGE (more than the whole budget), QK_BUSY
 * (more than is left now); nothing has changed then. Pure.
 */
#ifndef QK_FRONT_BUDGET_H
#define QK_FRONT_BUDGET_H

#include <stdint.h>

#include "daemon/base/assert.h"
#include "daemon/base/err.h"

typedef struct qk_budget {
  int64_t limit, used;     /* bytes */
  const char *what;        /* what sets the limit */
  const char *advice;      /* how to make room; NULL: wait */
  struct qk_budget *above; /* NULL: none */
} qk_budget_t;

static inline qk_status_t qk_budget_check(const qk_budget_t *budget, int64_t bytes, qk_err_t *err) {
  for (; budget; budget = budget->above) {
    const long long limit = budget->limit, left = budget->limit - budget->used;
    if (bytes > limit)
      return qk_fail(err, QK_TOO_LARGE, "request of %lld bytes: the limit (%s) is %lld",
                     (long long)bytes, budget->what, limit);
    if (bytes > left)
      return qk_fail(err, QK_BUSY, "request of %lld bytes: %lld of %lld (%s) are free now%s%s",
                     (long long)bytes, left, limit, budget->what, budget->advice ? ": " : "",
                     budget->advice ? budget->advice : "");
  }
  return QK_OK;
}

static inline void qk_budget_charge(qk_budget_t *budget, int64_t bytes) {
  for (; budget; budget = budget->above) budget->used += bytes;
}

static inline void qk_budget_refund(qk_budget_t *budget, int64_t bytes) {
  for (; budget; budget = budget->above) {
    budget->used -= bytes;
    QK_ASSERT(budget->used >= 0);
  }
}

#endif
