/*
 * occupancy.h: measures what slots do while work waits for them.
 *
 * The front is saturated while right-hand sides are queued and an engine is ready. The slot-seconds
 * of that time have three parts:
 *
 *   solving  the engine iterates on a right-hand side (by its own clock)
 *   moving   a slot has a right-hand side, but messages, source or solution are in transfer
 *   idle     the slot is empty
 *
 * Occupancy is solving / (solving + moving + idle). If the engine has more right-hand sides than
 * slots, each is charged an equal share of the slots; the part of it that is not spent solving
 * counts as moving. Solving and moving are added when a right-hand side leaves, idle continuously;
 * no count ever decreases. A right-hand side that stays longer than the saturation is counted in
 * proportion. Pure: times are the caller's seconds and must not decrease.
 */
#ifndef QK_FRONT_OCCUPANCY_H
#define QK_FRONT_OCCUPANCY_H

#include <stdbool.h>

typedef struct qk_occupancy {
  double saturated;             /* seconds */
  double solving, moving, idle; /* slot-seconds */
  double shared;  /* slot-seconds of each right-hand side that has been there from the start */
  double balance; /* shares that were not spent solving; moving is its maximum */
  double at;      /* time at which the other members were last updated */
  bool waits;
  int slots, there;
} qk_occupancy_t;

/* Clock readings at the arrival of a right-hand side. */
typedef struct qk_occupancy_mark {
  double saturated, shared;
} qk_occupancy_mark_t;

/* Sets the state from now on: whether the front is saturated, and how many slots and right-hand
 * sides the engine has. */
void qk_occupancy_set(qk_occupancy_t *o, double now, bool waits, int slots, int there);
/* Keep the result as long as the right-hand side is there. */
qk_occupancy_mark_t qk_occupancy_mark(qk_occupancy_t *o, double now);
/* A right-hand side leaves that came at the mark, `seconds` ago; the engine solved it for
 * `solver_seconds`. */
void qk_occupancy_leave(qk_occupancy_t *o, double now, qk_occupancy_mark_t came, double seconds,
                        double solver_seconds);

#endif
