/*
 * faults.h: a piece of the engine's life in which each passage of a fault point fails
 * once. For Criterion programs.
 */
#ifndef QK_TESTS_FAULTS_H
#define QK_TESTS_FAULTS_H

#include <criterion/criterion.h>
#include <stdio.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "tests/support/rig.h"

/* Stops at the first failure and gives back all that it took. */
typedef qk_status_t rig_life_t(qk_rig_t *rig, const void *arg);

/* Lives on new rigs of `gauge` with passage 1, 2, 3, ... of the point failing, until one succeeds;
 * from passage `sample` on, if it is not 0, in growing steps (a sample-th). Each failure must come
 * back as `expected` and leave no memory behind. */
static inline void rig_fail_everywhere(const char *gauge, const char *point, qk_status_t expected,
                                       int sample, rig_life_t *life, const void *arg) {
  char faults[64];
  qk_status_t status = QK_INTERNAL;
  int n = 0, lives = 0;
  while (status && lives < 2000) {
    qk_rig_t rig; /* a new one each time: a device that failed is lost */
    rig_open(&rig, NULL, gauge, NULL);
    int64_t host = qk_mem_bytes(), device = rig.dev.ops->allocated(rig.dev.ctx);
    n += 1 + (sample ? n / sample : 0);
    lives++;
    snprintf(faults, sizeof faults, "%s:%d", point, n);
    cr_assert(qk_fault_set(faults) == 0);
    status = life(&rig, arg);
    cr_assert(qk_fault_set(NULL) == 0);
    cr_assert(!status || status == expected, "%s: %s", faults, qk_status_name(status));
    cr_assert(qk_dev_ok(&rig.dev), "%s: a failure that nobody has asked for", faults);
    cr_assert(qk_mem_bytes() == host && rig.dev.ops->allocated(rig.dev.ctx) == device,
              "%s: %ld bytes of host, %ld of device memory stay", faults,
              (long)(qk_mem_bytes() - host), (long)(rig.dev.ops->allocated(rig.dev.ctx) - device));
    rig_close(&rig);
  }
  cr_expect(!status && lives > 20, "%s: %d lives, then %s", point, lives, qk_status_name(status));
}

#endif
