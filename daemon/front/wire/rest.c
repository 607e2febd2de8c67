#include "daemon/front/wire/rest.h"

static const uint64_t LEAST = 1000000, MOST = 100000000;

void qk_rest_owe(qk_rest_t *rest, uint64_t debt) {
  rest->debt += debt;
}

void qk_rest_begin(qk_rest_t *rest, uint64_t now, uint64_t duration) {
  if (rest->until < now + duration) rest->until = now + duration;
}

bool qk_rest_is_on(qk_rest_t *rest, uint64_t now) {
  if (now < rest->until) return true;
  if (rest->debt < LEAST) return false;
  const uint64_t part = rest->debt < MOST ? rest->debt : MOST;
  rest->debt -= part;
  rest->until = now + part;
  return true;
}
