#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/engine/field.h"

/* Fields ever reserved, in the order of creation; `held` lists those in use in stack order. The
 * deepest nesting is a handful of fields of a handful of kinds. */
enum { MAX_FIELDS = 128 };

struct qk_work {
  const qk_device_t *dev;
  int nfield, nheld;
  qk_field_t *field[MAX_FIELDS];
  bool busy[MAX_FIELDS];
  int held[MAX_FIELDS];
};

qk_status_t qk_work_create(const qk_device_t *dev, qk_work_t **work) {
  qk_work_t *w = qk_calloc(1, sizeof *w);
  if (!w) return QK_NO_MEMORY;
  w->dev = dev;
  *work = w;
  return QK_OK;
}

void qk_work_destroy(qk_work_t *work) {
  if (!work) return;
  QK_ASSERT(work->nheld == 0);
  for (int i = 0; i < work->nfield; i++) qk_field_destroy(work->field[i]);
  qk_free(work);
}

static int find_idle(const qk_work_t *work, qk_prec_t prec, int nrhs, qk_subset_t subset) {
  for (int i = 0; i < work->nfield; i++) {
    const qk_spinor_t *v = &work->field[i]->v;
    if (!work->busy[i] && v->prec == prec && v->nrhs == nrhs && v->subset == subset) return i;
  }
  return -1;
}

qk_status_t qk_work_reserve(qk_work_t *work, qk_prec_t prec, int nrhs, qk_subset_t subset,
                            qk_field_t **field) {
  int i = find_idle(work, prec, nrhs, subset);
  if (i < 0) {
    QK_ASSERT(work->nfield < MAX_FIELDS);
    qk_status_t status = qk_field_create(work->dev, prec, nrhs, subset, &work->field[work->nfield]);
    if (status) return status;
    i = work->nfield++;
  }
  work->busy[i] = true;
  work->held[work->nheld++] = i;
  *field = work->field[i];
  return QK_OK;
}

void qk_work_release(qk_work_t *work, qk_field_t *field) {
  if (!field) return;
  QK_ASSERT(work->nheld > 0);
  int i = work->held[--work->nheld];
  QK_ASSERT(work->field[i] == field);
  work->busy[i] = false;
}
