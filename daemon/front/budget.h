/*
 * budget.h: bytes that may be used, and those that are. Errors: QK_TOO_LARGE (over the whole
 * budget), QK_BUSY (over what is left now); nothing has changed then. Pure.
 */
#ifndef QK_FRONT_BUDGET_H
#define QK_FRONT_BUDGET_H

#include <stdint.h>

#include "daemon/base/assert.h"
#include "daemon/base/err.h"

typedef struct qk_budget {
  int64_t limit, used; /* bytes */
} qk_budget_t;

/* what: the option that sets the limit; advice: what makes room, or "". */
static inline qk_status_t qk_budget_check(const qk_budget_t *budget, int64_t bytes,
                                          const char *what, const char *advice, qk_err_t *err) {
  const long long limit = budget->limit, left = budget->limit - budget->used;
  if (bytes > limit)
    return qk_fail(err, QK_TOO_LARGE, "request of %lld bytes: the limit (%s) is %lld",
                   (long long)bytes, what, limit);
  if (bytes > left)
    return qk_fail(err, QK_BUSY, "request of %lld bytes: %lld of %lld (%s) are free now%s",
                   (long long)bytes, left, limit, what, advice);
  return QK_OK;
}

static inline void qk_budget_charge(qk_budget_t *budget, int64_t bytes) {
  budget->used += bytes;
}

static inline void qk_budget_refund(qk_budget_t *budget, int64_t bytes) {
  budget->used -= bytes;
  QK_ASSERT(budget->used >= 0);
}

#endif
