/*
 * fill_hint.h: what the front tells the engine beside the right-hand side of a FILL (engine.proto),
 * so that the engine can decide which right-hand side begins when (placement.h). Hints change no
 * result.
 */
#ifndef QK_PROTO_FILL_HINT_H
#define QK_PROTO_FILL_HINT_H

#include <stdint.h>

/* The order of a right-hand side whose user has nothing else in the engine; that of all others. */
enum { QK_ORDER_FIRST = 0, QK_ORDER_OTHERS = 1 };

typedef struct qk_fill_hint {
  uint64_t order;   /* who waits in the engine gets a slot by ascending order, then as it came */
  uint32_t backlog; /* right-hand sides that follow as soon as there are entries for them */
} qk_fill_hint_t;

#endif
