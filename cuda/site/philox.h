/*
 * philox.h: the counter-based generator Philox4x32 with 10 rounds (Salmon, Moraes, Dror, Shaw,
 * "Parallel random numbers: as easy as 1, 2, 3", SC11, section 3.3). Same bits on every backend.
 */
#ifndef QK_SITE_PHILOX_H
#define QK_SITE_PHILOX_H

#include "cuda/site/lane.h"

namespace QK_NS {

/* Replaces the counter by its four random words. key0 is the low word of the key. */
QK_ANY void philox4x32_10(uint32_t counter[4], uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; round++) {
    const uint64_t a = (uint64_t)0xD2511F53u * counter[0], b = (uint64_t)0xCD9E8D57u * counter[2];
    const uint32_t c1 = counter[1], c3 = counter[3];
    counter[0] = (uint32_t)(b >> 32) ^ c1 ^ key0;
    counter[1] = (uint32_t)b;
    counter[2] = (uint32_t)(a >> 32) ^ c3 ^ key1;
    counter[3] = (uint32_t)a;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

} // namespace QK_NS
#endif
