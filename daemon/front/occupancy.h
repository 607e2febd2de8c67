/*
 * occupancy.h: what becomes of slots while work waits for them.
 *
 * The front is saturated while something is queued and an engine is there. Slot-seconds of that time are told apart:
 *
 *   solving  the engine iterates on a right-hand side (by its own clock)
 *   moving   a right-hand side is in the slot, and its message, its source or its solution on the way
 *   idle     the slot is empty
 *
 * Occupancy is solving / (solving + moving + idle). Solving and moving are added when a slot is left, idle as time
 * goes by; none ever falls. What is in a slot for longer than the saturation is counted by the part that saturation is
 * of it. Pure: times are the caller's seconds and must not fall.
 */
#ifndef QK_FRONT_OCCUPANCY_H
#define QK_FRONT_OCCUPANCY_H

#include <stdbool.h>

typedef struct qk_occupancy {
  double saturated;             /* seconds */
  double solving, moving, idle; /* slot-seconds */
  double at;                    /* when `waits` and `empty` were set, or accounted for */
  bool waits;
  int empty;
} qk_occupancy_t;

/* From now on: whether the front is saturated, and how many slots are empty. */
void qk_occupancy_set(qk_occupancy_t *o, double now, bool waits, int empty);
/* Seconds of saturation up to now; to be kept when a slot is filled. */
double qk_occupancy_clock(qk_occupancy_t *o, double now);
/* A slot is left that was filled when the clock showed `filled`, `seconds` ago; the engine solved in it for
 * `solver_seconds`. */
void qk_occupancy_leave(qk_occupancy_t *o, double now, double filled, double seconds,
                        double solver_seconds);

#endif
