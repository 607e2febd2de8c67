/*
 * pace.h: measures how fast recent right-hand sides were solved, and estimates how long work takes.
 *
 * Speed is that of one slot, in applications of the operator per second: one slot takes as long as
 * the whole batch, so n slots in use are n times as fast. Older measurements fade. Pure.
 */
#ifndef QK_FRONT_PACE_H
#define QK_FRONT_PACE_H

typedef struct qk_pace {
  double applications, seconds; /* of right-hand sides that have ended, in their slots; fading */
} qk_pace_t;

/* A right-hand side has ended. Without applications, or without time, nothing was measured. */
void qk_pace_add(qk_pace_t *pace, double applications, double seconds);

/* Seconds until `work` applications are done on so many slots, if the longest right-hand side
 * takes `longest` of them; 0 if nothing has been measured. */
double qk_pace_expect(const qk_pace_t *pace, double work, double longest, int slots);

#endif
