#include "daemon/front/measure/pace.h"

#include <math.h>

static const double FADE = 0.95; /* at each right-hand side: some twenty count */

void qk_pace_add(qk_pace_t *pace, double applications, double seconds) {
  if (!(applications > 0 && seconds > 0)) return;
  pace->applications = FADE * pace->applications + applications;
  pace->seconds = FADE * pace->seconds + seconds;
}

double qk_pace_expect(const qk_pace_t *pace, double work, double longest, int slots) {
  if (pace->applications <= 0 || slots < 1) return 0;
  return fmax(work / slots, longest) * pace->seconds / pace->applications;
}
