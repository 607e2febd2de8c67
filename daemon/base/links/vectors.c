#include "daemon/base/links/vectors.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

void qk_vectors_add(const double site[QK_VECTORS_SITE], uint64_t global, qk_vectors_sum_t *s) {
  for (int k = 0; k < QK_VECTORS_SITE; k++) {
    s->squares += site[k] * site[k];
    if (isfinite(site[k]) || (s->bad++ > 0 && global >= s->site)) continue;
    s->site = global;
    s->number = k;
  }
  s->digest += XXH3_64bits_withSeed(site, QK_VECTORS_SITE * sizeof *site, (XXH64_hash_t)global);
}

void qk_vectors_end(uint64_t vector, qk_vectors_sum_t *s) {
  /* Of NaN, which `bad` tells: no number that the sums could not be compared by. */
  const double deviation = isnan(s->squares) ? INFINITY : fabs(s->squares - 1);
  s->squares = 0;
  if (deviation < s->deviation || (deviation == s->deviation && vector >= s->worst)) return;
  s->deviation = deviation;
  s->worst = vector;
}

void qk_vectors_join(qk_vectors_sum_t *s, const qk_vectors_sum_t *o) {
  if (o->bad > 0 && (s->bad == 0 || o->site < s->site)) {
    s->site = o->site;
    s->number = o->number;
  }
  if (o->deviation > s->deviation || (o->deviation == s->deviation && o->worst < s->worst)) {
    s->deviation = o->deviation;
    s->worst = o->worst;
  }
  s->bad += o->bad;
  s->digest += o->digest;
}

void qk_vectors_widen(const void *raw, int bits, double site[QK_VECTORS_SITE]) {
  if (bits == 64) {
    memcpy(site, raw, QK_VECTORS_SITE * sizeof *site);
    return;
  }
  for (int k = 0; k < QK_VECTORS_SITE; k++) site[k] = ((const float *)raw)[k];
}
