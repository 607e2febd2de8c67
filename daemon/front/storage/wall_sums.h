/*
 * wall_sums.h: the sums over time slices that go with the RESULT of a solve for domain wall
 * fermions (WallSums of quark.proto), as the journal and clients have them: packed.
 *
 * They do not change. Who holds them counts, on the thread of the loop; the journal's writer reads
 * what a snapshot holds.
 */
#ifndef QK_FRONT_WALL_SUMS_H
#define QK_FRONT_WALL_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "proto/quark.pb-c.h"

typedef struct qk_wall_sums {
  int holders;
  size_t bytes;
  uint8_t packed[];
} qk_wall_sums_t;

enum { QK_WALL_SUMS_BYTES = 16 * 1024 }; /* at most, packed: over 3 * 8 * QK_WALL_TIMES_MAX */

/* With one holder. NULL: they are not such sums (each of finite numbers, of one length up to
 * QK_WALL_TIMES_MAX, or empty, which |q|^2 is not), or there is no memory: the result goes
 * without. */
qk_wall_sums_t *qk_wall_sums_pack(const Quark__WallSums *sums);
/* The same of what was packed. */
qk_wall_sums_t *qk_wall_sums_read(const uint8_t *packed, size_t bytes);
/* Return sums, which may be NULL. */
qk_wall_sums_t *qk_wall_sums_hold(qk_wall_sums_t *sums);
void qk_wall_sums_drop(qk_wall_sums_t **sums); /* *sums may be NULL, and is afterwards */

/* To be freed by quark__wall_sums__free_unpacked. NULL: there are none, or no memory. */
Quark__WallSums *qk_wall_sums_unpack(const qk_wall_sums_t *sums);

#endif
