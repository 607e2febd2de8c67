/*
 * field.h: block spinor fields on a device, and the stack from which work fields are reserved.
 *
 * A field is a block of nrhs right-hand sides; precision, subset and shape are members of the
 * handle. Layout: cuda/types.h. If a right-hand side has several vectors (geom.h: inner) the field
 * is one block after the other, of the first vectors, of the second ones, ... If it has a fifth
 * dimension (geom.h: ls) the slices are columns of the block, rhs * ls + s. Fields of one engine
 * are on one device; not thread-safe; not collective.
 */
#ifndef QK_ENGINE_FIELD_H
#define QK_ENGINE_FIELD_H

#include "daemon/engine/lattice/device.h"

typedef struct qk_field {
  const qk_device_t *dev;
  qk_spinor_t v;
  size_t bytes;
} qk_field_t;

/* nrhs 1..QK_MAX_RHS. All lanes are zero. Errors: QK_DEVICE_MEMORY. */
qk_status_t qk_field_create(const qk_device_t *dev, qk_prec_t prec, int nrhs, qk_subset_t subset,
                            qk_field_t **field);
void qk_field_destroy(qk_field_t *field); /* NULL-safe */
size_t qk_field_bytes(const qk_geom_t *geom, qk_prec_t prec, int nrhs, qk_subset_t subset);

/* The same in memory of somebody else, of qk_field_bytes; nothing is written there. */
qk_field_t qk_field_at(const qk_device_t *dev, qk_prec_t prec, int nrhs, qk_subset_t subset,
                       void *memory);

/* Bytes of the tiles of `v` (shape members set), alone or with the scales of half precision behind
 * them; and the pointers of v into memory of qk_spinor_bytes. */
size_t qk_spinor_data_bytes(const qk_spinor_t *v);
size_t qk_spinor_bytes(const qk_spinor_t *v);
void qk_spinor_place(qk_spinor_t *v, void *memory);

/* The even or odd half of a full field of one vector, or with QK_FULL all of it; of a half field,
 * itself. */
qk_spinor_t qk_field_parity(const qk_field_t *field, qk_subset_t parity);

/* The block of vector k of each right-hand side, of the same subset; without `inner` the field. */
qk_field_t qk_field_vector(const qk_field_t *field, int k);
/* Right-hand sides of a field, whose columns are all their slices. */
static inline int qk_field_nrhs(const qk_field_t *field) {
  return field->v.nrhs / qk_geom_slices(field->dev->geom);
}
static inline int qk_field_vectors(const qk_field_t *field) {
  return field->v.inner > 1 ? field->v.inner : 1;
}

/* Work fields: reserve and release in stack order. A released field keeps its memory for the next
 * reserve of the same kind, so nothing is allocated inside an iteration. Contents undefined. */
typedef struct qk_work qk_work_t;
qk_status_t qk_work_create(const qk_device_t *dev, qk_work_t **work);
void qk_work_destroy(qk_work_t *work); /* all fields must be released */
/* Room for fields of all kinds, which kinds that are not reserved at the same time share: fields
 * stand in it as long as it suffices. While no field is reserved; replaces the room of before. Each
 * field takes up to QK_WORK_ALIGNMENT bytes more. QK_DEVICE_MEMORY. */
enum { QK_WORK_ALIGNMENT = 512 };
qk_status_t qk_work_make_room(qk_work_t *work, size_t bytes);
qk_status_t qk_work_reserve(qk_work_t *work, qk_prec_t prec, int nrhs, qk_subset_t subset,
                            qk_field_t **field);
/* Within an iteration (device.h): after a failure, also of this call, a field without memory. */
qk_field_t *qk_work_take(qk_work_t *work, qk_prec_t prec, int nrhs, qk_subset_t subset);
void qk_work_release(qk_work_t *work, qk_field_t *field);
/* True if no field is reserved: the next fields are then the same as those reserved from here
 * before. */
bool qk_work_idle(const qk_work_t *work);
void qk_work_trim(qk_work_t *work); /* gives back the memory of released fields; when idle the room,
                                       too */

#endif
