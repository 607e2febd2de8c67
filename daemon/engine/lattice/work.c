#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/engine/lattice/field.h"

typedef struct entry {
  qk_field_t *field;
  int below;     /* entry reserved before this one, or NONE; FREE when not in use */
  bool in_room;  /* the field has no memory of its own */
  size_t before; /* in_room: what was taken of the room without it */
} entry_t;

enum { NONE = -1, FREE = -2 };

struct qk_work {
  const qk_device_t *dev;
  int n, capacity, top; /* top: the entry reserved last, or NONE */
  entry_t *entry;       /* in the order of creation */
  void *room;           /* NULL: none */
  size_t room_bytes, taken;
  qk_field_t none; /* what is taken after a failure */
};

qk_status_t qk_work_create(const qk_device_t *dev, qk_work_t **work) {
  qk_work_t *w = qk_calloc(1, sizeof *w);
  if (!w) return QK_NO_MEMORY;
  w->dev = dev;
  w->top = NONE;
  *work = w;
  return QK_OK;
}

bool qk_work_idle(const qk_work_t *work) {
  return work->top == NONE;
}

/* Where entry i will stand when those that are free are gone. */
static int place_of(const qk_work_t *work, int i) {
  int place = 0;
  for (int k = 0; k < i; k++) place += work->entry[k].below != FREE;
  return i == NONE ? NONE : place;
}

static void entry_destroy(const entry_t *e) {
  if (e->in_room)
    qk_free(e->field);
  else
    qk_field_destroy(e->field);
}

static void drop_room(qk_work_t *work) {
  if (work->room) work->dev->ops->free(work->dev->ctx, work->room);
  work->room = NULL;
  work->room_bytes = work->taken = 0;
}

void qk_work_trim(qk_work_t *work) {
  int kept = 0;
  for (int i = 0; i < work->n; i++)
    if (work->entry[i].below != FREE) work->entry[i].below = place_of(work, work->entry[i].below);
  work->top = place_of(work, work->top);
  for (int i = 0; i < work->n; i++) {
    if (work->entry[i].below == FREE)
      entry_destroy(&work->entry[i]);
    else
      work->entry[kept++] = work->entry[i];
  }
  work->n = kept;
  if (work->top == NONE) drop_room(work);
}

void qk_work_destroy(qk_work_t *work) {
  if (!work) return;
  QK_ASSERT(work->top == NONE);
  qk_work_trim(work);
  qk_free(work->entry);
  qk_free(work);
}

static qk_status_t grow(qk_work_t *work) {
  entry_t *entry = qk_grow(work->entry, &work->capacity, work->n + 1, sizeof *entry);
  if (!entry) return QK_NO_MEMORY;
  work->entry = entry;
  return QK_OK;
}

/* An entry that is free: one for the room, or one of this kind. */
static int find_free(const qk_work_t *work, bool in_room, qk_prec_t prec, int nrhs,
                     qk_subset_t subset) {
  const int columns = nrhs * qk_geom_slices(work->dev->geom);
  for (int i = 0; i < work->n; i++) {
    const entry_t *e = &work->entry[i];
    const qk_spinor_t *v = &e->field->v;
    if (e->below != FREE || e->in_room != in_room) continue;
    if (in_room || (v->prec == prec && v->nrhs == columns && v->subset == subset)) return i;
  }
  return NONE;
}

/* A new entry, with a field for the room that has no place yet, or one of its own. */
static qk_status_t add_entry(qk_work_t *work, bool in_room, qk_prec_t prec, int nrhs,
                             qk_subset_t subset) {
  qk_status_t status = grow(work);
  if (status) return status;
  entry_t *e = &work->entry[work->n];
  *e = (entry_t){.below = FREE, .in_room = in_room};
  if (in_room) {
    e->field = qk_calloc(1, sizeof *e->field);
    status = e->field ? QK_OK : QK_NO_MEMORY;
  } else {
    status = qk_field_create(work->dev, prec, nrhs, subset, &e->field);
  }
  if (!status) work->n++;
  return status;
}

static void place(qk_work_t *work, entry_t *e, qk_prec_t prec, int nrhs, qk_subset_t subset,
                  size_t bytes) {
  *e->field = qk_field_at(work->dev, prec, nrhs, subset, (char *)work->room + work->taken);
  e->before = work->taken;
  work->taken += bytes;
}

qk_status_t qk_work_reserve(qk_work_t *work, qk_prec_t prec, int nrhs, qk_subset_t subset,
                            qk_field_t **field) {
  const size_t bytes = qk_field_bytes(work->dev->geom, prec, nrhs, subset) + QK_WORK_ALIGNMENT - 1;
  const size_t aligned = bytes - bytes % QK_WORK_ALIGNMENT;
  const bool in_room = aligned <= work->room_bytes - work->taken;
  int i = find_free(work, in_room, prec, nrhs, subset);
  if (i == NONE) {
    i = work->n;
    qk_status_t status = add_entry(work, in_room, prec, nrhs, subset);
    if (status) return status;
  }
  if (in_room) place(work, &work->entry[i], prec, nrhs, subset, aligned);
  work->entry[i].below = work->top;
  work->top = i;
  *field = work->entry[i].field;
  return QK_OK;
}

qk_status_t qk_work_make_room(qk_work_t *work, size_t bytes) {
  const qk_device_t *dev = work->dev;
  QK_ASSERT(work->top == NONE);
  drop_room(work);
  if (bytes == 0) return QK_OK;
  qk_status_t status = dev->ops->alloc(dev->ctx, bytes, &work->room);
  if (status) {
    work->room = NULL;
    return status;
  }
  work->room_bytes = bytes;
  return dev->ops->zero(dev->ctx, work->room, bytes, 0);
}

qk_field_t *qk_work_take(qk_work_t *work, qk_prec_t prec, int nrhs, qk_subset_t subset) {
  qk_field_t *field = &work->none;
  if (qk_dev_ok(work->dev))
    qk_dev_note(work->dev, qk_work_reserve(work, prec, nrhs, subset, &field));
  return field;
}

void qk_work_release(qk_work_t *work, qk_field_t *field) {
  if (!field || field == &work->none) return;
  QK_ASSERT(work->top != NONE && work->entry[work->top].field == field);
  int i = work->top;
  work->top = work->entry[i].below;
  work->entry[i].below = FREE;
  if (work->entry[i].in_room) work->taken = work->entry[i].before;
}
