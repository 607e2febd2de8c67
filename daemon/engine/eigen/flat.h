/*
 * flat.h: vectors of several slices as one column each.
 *
 * An operator with a fifth dimension has the slices of a vector in columns rhs * ls + s of a block
 * (field.h: ls). A basis multiplies and adds whole vectors, so its blocks have a column a vector,
 * with the slices one behind the other (field.h: inner): flat fields. Without a fifth dimension
 * fields are flat as they are.
 */
#ifndef QK_ENGINE_FLAT_H
#define QK_ENGINE_FLAT_H

#include "daemon/engine/lattice/field.h"

/* Not to be moved while fields stand on it. */
typedef struct qk_flat {
  qk_geom_t geom;
  qk_device_t dev;
  const qk_device_t *from; /* of the operator */
  int slices;
} qk_flat_t;

void qk_flat_init(qk_flat_t *flat, const qk_device_t *dev);

/* The device of flat fields. */
static inline const qk_device_t *qk_flat_dev(const qk_flat_t *flat) {
  return flat->slices > 1 ? &flat->dev : flat->from;
}

/* Vectors that an operator takes at a time: eight, or as many as a block has columns for. */
static inline int qk_flat_together(const qk_flat_t *flat) {
  return QK_TILE * flat->slices <= QK_COLUMNS_MAX ? QK_TILE : QK_COLUMNS_MAX / flat->slices;
}

/* n vectors from columns `to_first` and `from_first` on, between a field of the operator and a flat
 * one, of the same sites; calls of an iteration (device.h). */
void qk_flat_pack(const qk_flat_t *flat, const qk_field_t *to, int to_first, const qk_field_t *from,
                  int from_first, int n);
void qk_flat_unpack(const qk_flat_t *flat, const qk_field_t *to, int to_first,
                    const qk_field_t *from, int from_first, int n);

#endif
