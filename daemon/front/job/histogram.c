#include "daemon/front/job/histogram.h"

#include <math.h>

void qk_histogram_add(qk_histogram_t *h, const double *bound, int n, double value) {
  int i = 0;
  while (i < n && !(value <= bound[i])) i++;
  h->count[i]++;
  if (!isnan(value)) h->sum += value;
}
