#include "daemon/front/measure/occupancy.h"

#include <math.h>

static void account(qk_occupancy_t *o, double now) {
  const double dt = now - o->at;
  o->at = now;
  if (!o->waits) return;
  o->saturated += dt;
  o->idle += fmax(0, o->slots - o->there) * dt;
  o->shared += o->there > o->slots ? dt * o->slots / o->there : dt;
}

qk_occupancy_mark_t qk_occupancy_mark(qk_occupancy_t *o, double now) {
  account(o, now);
  return (qk_occupancy_mark_t){o->saturated, o->shared};
}

void qk_occupancy_set(qk_occupancy_t *o, double now, bool waits, int slots, int there) {
  account(o, now);
  o->waits = waits;
  o->slots = slots;
  o->there = there;
}

void qk_occupancy_leave(qk_occupancy_t *o, double now, qk_occupancy_mark_t came, double seconds,
                        double solver_seconds) {
  account(o, now);
  const double part = seconds > 0 ? (o->saturated - came.saturated) / seconds : 0;
  const double solving = part * fmin(seconds, fmax(0, solver_seconds));
  o->solving += solving;
  o->balance += o->shared - came.shared - solving;
  o->moving = fmax(o->moving, o->balance);
}
