/*
 * source.h: parses generated sources, and makes their columns.
 *
 *   point:X,Y,Z,T                 12 columns, 3 * spin + colour; 3 of colour vectors
 *   wall:T[,p=PX:PY:PZ]           12 columns, or 3, with the factor exp(i 2 pi p x / L)
 *                                   both: of a doublet 24, with 12 * flavour before, the upper
 *                                   flavour first; ,flavour=+1 or -1 at the end: the 12 of one
 *   z2:SEED[:T][,KEY=...]         noise on time slice T or on all; z4 in the same way. Keys:
 *   z4:KEY=...                      seed=N, t=T        in place of SEED and :T
 *                                   count=N            seeds SEED, SEED + 1, ...
 *                                   every=N            slices t, t + N, ... (t is 0 if not given)
 *                                   dilute=WORDS       spin, colour, time, flavour joined by +: a
 *                                                      column for each component; time: for each of
 *                                                      the slices 0 .. every - 1 (every is T if not
 *                                                      given)
 *                                   p=PX:PY:PZ
 *                                   flavour=+1|-1      of a doublet: in one flavour only
 *
 * The columns of noise are ordered by seed, time, flavour, spin and colour; colour runs fastest.
 * Coordinates are global. Errors: QK_BAD_ARGUMENT, with the text and what is wrong in it;
 * QK_NO_MEMORY.
 */
#ifndef QK_CLIENT_SOURCE_H
#define QK_CLIENT_SOURCE_H

#include "client/quark.h"
#include "daemon/base/err.h"
#include "proto/shape.h"

enum { QK_SOURCE_COMPONENTS = 12, QK_SOURCE_COUNT_MAX = 1 << 20 };

typedef struct qk_source {
  quark_source_t kind;
  quark_column_t place; /* what all columns have in common; flavour 0: not given */
  uint64_t count;       /* noise: number of seeds; 0: not given, which means 1 */
  bool by_spin, by_colour, by_time, by_flavour;
} qk_source_t;

/* Pure. */
qk_status_t qk_source_parse(const char *text, qk_source_t *source, qk_err_t *err);
bool qk_source_is_noise(const qk_source_t *source);
/* "+1", "1" or "-1". False: *flavour is unchanged. Pure. */
bool qk_flavour_parse(const char *text, int32_t *flavour);

/* Columns of a point or a wall, of one flavour: 12, or 3 where fields have colour alone. Pure. */
int qk_source_components(const qk_shape_t *shape);

/* Whether it says something about the flavours of a doublet. Pure. */
bool qk_source_has_flavour(const qk_source_t *source);

/* Makes the columns for fields of this shape. The caller frees them. Errors: coordinates outside,
 * momenta of L or more, more than 2^24 columns; QK_UNSUPPORTED: flavours where right-hand sides
 * have one, spins where they have none. */
qk_status_t qk_source_columns(const qk_source_t *source, const qk_shape_t *shape, int64_t *n,
                              quark_column_t **columns, qk_err_t *err);

#endif
