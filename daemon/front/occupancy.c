#include "daemon/front/occupancy.h"

#include <math.h>

double qk_occupancy_clock(qk_occupancy_t *o, double now) {
  if (o->waits) {
    o->saturated += now - o->at;
    o->idle += o->empty * (now - o->at);
  }
  o->at = now;
  return o->saturated;
}

void qk_occupancy_set(qk_occupancy_t *o, double now, bool waits, int empty) {
  qk_occupancy_clock(o, now);
  o->waits = waits;
  o->empty = empty;
}

void qk_occupancy_leave(qk_occupancy_t *o, double now, double filled, double seconds,
                        double solver_seconds) {
  const double saturated = qk_occupancy_clock(o, now) - filled;
  const double share = seconds > 0 ? fmin(1, fmax(0, solver_seconds / seconds)) : 0;
  o->solving += share * saturated;
  o->moving += (1 - share) * saturated;
}
