/*
 * gate.h: counts pieces of a part that are on their way into memory, on other threads. Who takes a
 * part over waits until those of the one before are through. The loop's.
 */
#ifndef QK_FRONT_GATE_H
#define QK_FRONT_GATE_H

#include "daemon/base/mem.h"

typedef struct qk_gate {
  int holders; /* who created it, and each piece */
  int busy;    /* pieces */
} qk_gate_t;

/* NULL without memory. */
static inline qk_gate_t *qk_gate_create(void) {
  qk_gate_t *gate = qk_calloc(1, sizeof *gate);
  if (gate) gate->holders = 1;
  return gate;
}

/* All below are NULL-safe. */
static inline void qk_gate_release(qk_gate_t *gate) {
  if (gate && --gate->holders == 0) qk_free(gate);
}

static inline void qk_gate_enter(qk_gate_t *gate) {
  if (!gate) return;
  gate->holders++;
  gate->busy++;
}

static inline void qk_gate_leave(qk_gate_t *gate) {
  if (!gate) return;
  gate->busy--;
  qk_gate_release(gate);
}

#endif
