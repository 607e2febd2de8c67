#include "daemon/front/measure/history.h"

void qk_curve_clear(qk_curve_t *curve) {
  curve->n = 0;
  curve->seen = 0;
  curve->stride = 1;
}

void qk_curve_add(qk_curve_t *curve, uint64_t iterations, double residual) {
  if (curve->seen++ % curve->stride != 0) return;
  if (curve->n == QK_CURVE_POINTS) { /* an even number: this point is one of those that stay */
    curve->n /= 2;
    curve->stride *= 2;
    for (int i = 0; i < curve->n; i++) curve->point[i] = curve->point[2 * i];
  }
  curve->point[curve->n].iterations = iterations;
  curve->point[curve->n++].residual = residual;
}

static void keep(qk_history_t *h, const qk_sample_t *sample) {
  if (h->n == QK_HISTORY_SAMPLES) {
    h->sample[h->first] = *sample;
    h->first = (h->first + 1) % QK_HISTORY_SAMPLES;
  } else {
    h->sample[h->n++] = *sample;
  }
}

void qk_history_see(qk_history_t *h, const qk_sample_t *now) {
  h->sum.busy += now->busy;
  h->sum.slots += now->slots;
  h->sum.queued += now->queued;
  h->seen++;
  if (h->n > 0 && now->time < qk_history_at(h, h->n - 1)->time + QK_HISTORY_SECONDS) return;
  qk_sample_t mean = *now;
  mean.busy = h->sum.busy / h->seen;
  mean.slots = h->sum.slots / h->seen;
  mean.queued = h->sum.queued / h->seen;
  keep(h, &mean);
  h->sum = (qk_sample_t){0};
  h->seen = 0;
}

const qk_sample_t *qk_history_at(const qk_history_t *h, int i) {
  return &h->sample[(h->first + i) % QK_HISTORY_SAMPLES];
}
