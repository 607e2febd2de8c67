#include <math.h>

#include "client/bench/load_impl.h"

enum { AGAIN_EVERY = 16 /* requests of which one is solved twice */ };

/* splitmix64 (Steele, Lea, Flood, OOPSLA 2014) */
uint64_t ctl_load_draw(uint64_t seed, uint64_t index, uint64_t number) {
  uint64_t z =
      seed * 0xd1342543de82ef95u + index * 0x9e3779b97f4a7c15u + number * 0xa0761d6478bd642fu;
  for (int i = 0; i < 2; i++) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
  }
  return z;
}

double ctl_load_fraction(uint64_t bits) {
  return (double)((bits >> 11) + 1) * 0x1p-53;
}

ctl_load_request_t ctl_load_request(const ctl_load_options_t *o, uint64_t index) {
  enum { GAP, THINK, NRHS, TOL, SOURCE, SEED, AGAIN };
  ctl_load_request_t r = {.index = index, .seed = ctl_load_draw(o->seed, index, SEED)};
  const double wait = -log(ctl_load_fraction(ctl_load_draw(o->seed, index, THINK)));
  if (o->rate > 0) r.gap = -log(ctl_load_fraction(ctl_load_draw(o->seed, index, GAP))) / o->rate;
  if (o->think > 0) r.think = o->think_fixed ? o->think : o->think * wait;
  r.nrhs =
      o->rhs_min + (uint32_t)(ctl_load_draw(o->seed, index, NRHS) % (o->rhs_max - o->rhs_min + 1));
  r.tol = o->tol[ctl_load_draw(o->seed, index, TOL) % (uint64_t)o->ntol];
  r.source = o->source[ctl_load_draw(o->seed, index, SOURCE) % (uint64_t)o->nsource];
  r.again = o->verify && r.source == QUARK_UPLOAD &&
            ctl_load_draw(o->seed, index, AGAIN) % AGAIN_EVERY == 0;
  return r;
}
