/*
 * rest.h: when a data thread reads nothing: for as long as what it has read of nobody has taken
 * more than its share of a processor, and for a while if there is no memory.
 *
 * Times are nanoseconds of a clock that only goes on. One thread.
 */
#ifndef QK_FRONT_REST_H
#define QK_FRONT_REST_H

#include <stdbool.h>
#include <stdint.h>

/* Zeros: there is no reason to rest. */
typedef struct qk_rest {
  uint64_t debt;  /* time that is still to be rested */
  uint64_t until; /* end of the rest that has begun */
} qk_rest_t;

/* Adds to what is to be rested, also in the middle of a rest. */
void qk_rest_owe(qk_rest_t *rest, uint64_t debt);
/* A rest that begins now, and lasts so long at least; what is owed comes on top. */
void qk_rest_begin(qk_rest_t *rest, uint64_t now, uint64_t duration);
/* Whether it is a time to rest. One rest lasts 0.1 s at most, then there is a look at what waits;
 * less than 1 ms is not worth one. */
bool qk_rest_is_on(qk_rest_t *rest, uint64_t now);

#endif
