#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/engine/lattice/field.h"

typedef struct entry {
  qk_field_t *field;
  int below; /* entry reserved before this one, or NONE; FREE when not in use */
} entry_t;

enum { NONE = -1, FREE = -2 };

struct qk_work {
  const qk_device_t *dev;
  int n, capacity, top; /* top: the entry reserved last, or NONE */
  entry_t *entry;       /* in the order of creation */
  qk_field_t none;      /* what is taken after a failure */
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

void qk_work_trim(qk_work_t *work) {
  int kept = 0;
  for (int i = 0; i < work->n; i++)
    if (work->entry[i].below != FREE) work->entry[i].below = place_of(work, work->entry[i].below);
  work->top = place_of(work, work->top);
  for (int i = 0; i < work->n; i++) {
    if (work->entry[i].below == FREE)
      qk_field_destroy(work->entry[i].field);
    else
      work->entry[kept++] = work->entry[i];
  }
  work->n = kept;
}

void qk_work_destroy(qk_work_t *work) {
  if (!work) return;
  QK_ASSERT(work->top == NONE);
  qk_work_trim(work);
  qk_free(work->entry);
  qk_free(work);
}

static qk_status_t make_room(qk_work_t *work) {
  entry_t *entry = qk_grow(work->entry, &work->capacity, work->n + 1, sizeof *entry);
  if (!entry) return QK_NO_MEMORY;
  work->entry = entry;
  return QK_OK;
}

static int find_free(const qk_work_t *work, qk_prec_t prec, int nrhs, qk_subset_t subset) {
  for (int i = 0; i < work->n; i++) {
    const qk_spinor_t *v = &work->entry[i].field->v;
    if (work->entry[i].below == FREE && v->prec == prec && v->nrhs == nrhs && v->subset == subset)
      return i;
  }
  return NONE;
}

qk_status_t qk_work_reserve(qk_work_t *work, qk_prec_t prec, int nrhs, qk_subset_t subset,
                            qk_field_t **field) {
  int i = find_free(work, prec, nrhs, subset);
  if (i == NONE) {
    qk_status_t status = make_room(work);
    if (status) return status;
    i = work->n;
    status = qk_field_create(work->dev, prec, nrhs, subset, &work->entry[i].field);
    if (status) return status;
    work->n++;
  }
  work->entry[i].below = work->top;
  work->top = i;
  *field = work->entry[i].field;
  return QK_OK;
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
}
