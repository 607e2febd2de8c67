#include "daemon/engine/hadron/smear_cache.h"

#include "daemon/base/mem.h"

enum { KEPT = 3 }; /* kinds of link smearing */

typedef struct entry {
  qk_link_smear_t kind;
  qk_gauss_t *gauss; /* NULL: free */
  uint64_t used;     /* when: a count of calls */
} entry_t;

struct qk_smear_cache {
  const qk_device_t *dev;
  qk_work_t *work;
  double *links;
  entry_t entry[KEPT];
  uint64_t calls;
};

static bool equal_links(const qk_link_smear_t *a, const qk_link_smear_t *b) {
  bool none_a = a->kind == QK_LINK_SMEAR_NONE || a->steps == 0;
  bool none_b = b->kind == QK_LINK_SMEAR_NONE || b->steps == 0;
  if (none_a || none_b) return none_a && none_b;
  int params = a->kind == QK_LINK_SMEAR_HYP ? 3 : 1;
  bool equal = a->kind == b->kind && a->steps == b->steps && a->hex == b->hex;
  if (a->kind != QK_LINK_SMEAR_HYP) equal = equal && a->spatial == b->spatial;
  for (int i = 0; i < params; i++) equal = equal && a->param[i] == b->param[i];
  return equal;
}

bool qk_smearing_any(const qk_smearing_t *smearing) {
  return smearing->steps > 0 || smearing->shift > 0;
}

bool qk_smearing_equal(const qk_smearing_t *a, const qk_smearing_t *b) {
  if (a->steps != b->steps || a->shift != b->shift) return false;
  if (!qk_smearing_any(a)) return true;
  return (a->steps == 0 || a->alpha == b->alpha) && equal_links(&a->links, &b->links);
}

qk_status_t qk_smear_cache_create(const qk_device_t *dev, double *links, qk_smear_cache_t **cache,
                                  qk_err_t *err) {
  qk_smear_cache_t *c = qk_calloc(1, sizeof *c);
  qk_status_t status = c != NULL ? qk_work_create(dev, &c->work) : QK_NO_MEMORY;
  if (status != QK_OK) qk_fail(err, status, "no memory for a table of smeared links");
  status = qk_comm_agree(dev->geom->comm, status, err);
  if (status != QK_OK) {
    if (c != NULL) qk_work_destroy(c->work);
    qk_free(c);
    return status;
  }
  c->dev = dev;
  c->links = links;
  *cache = c;
  return QK_OK;
}

static void empty(qk_smear_cache_t *cache) {
  for (int i = 0; i < KEPT; i++) {
    qk_gauss_destroy(cache->entry[i].gauss);
    cache->entry[i] = (entry_t){0};
  }
}

void qk_smear_cache_destroy(qk_smear_cache_t *cache) {
  if (cache == NULL) return;
  empty(cache);
  qk_work_destroy(cache->work);
  qk_free(cache->links);
  qk_free(cache);
}

static bool is_memory(qk_status_t status) {
  return status == QK_DEVICE_MEMORY || status == QK_NO_MEMORY;
}

static qk_status_t smear_into(const qk_smear_cache_t *cache, const qk_link_smear_t *kind,
                              qk_gaugefield_t *field, qk_err_t *err) {
  const qk_status_t status = qk_gaugefield_import(field, cache->links);
  const bool none = kind->kind == QK_LINK_SMEAR_NONE || kind->steps == 0;
  return status != QK_OK || none ? status : qk_link_smear_apply(field, kind, err);
}

/* *field: to be destroyed whatever comes out. */
static qk_status_t smear(const qk_smear_cache_t *cache, const qk_link_smear_t *kind,
                         qk_gaugefield_t **field, qk_err_t *err) {
  const qk_status_t status = qk_gaugefield_create(cache->dev, 1, field);
  return status == QK_OK ? smear_into(cache, kind, *field, err) : status;
}

/* All that it calls agrees on what memory there is; other failures end the process. */
static qk_status_t make(qk_smear_cache_t *cache, const qk_link_smear_t *kind, qk_gauss_t **gauss,
                        qk_err_t *err) {
  qk_gaugefield_t *field = NULL;
  const qk_status_t smeared = smear(cache, kind, &field, err);
  const qk_status_t status =
      smeared == QK_OK ? qk_gauss_create(cache->dev, cache->work, field, gauss, err) : smeared;
  qk_gaugefield_destroy(field);
  return status;
}

/* The entry of that kind; else a free one or the one not used for longest, made anew. */
static qk_status_t find(qk_smear_cache_t *cache, const qk_link_smear_t *kind, entry_t **found,
                        qk_err_t *err) {
  entry_t *e = &cache->entry[0];
  for (int i = 0; i < KEPT; i++) {
    entry_t *other = &cache->entry[i];
    if (other->gauss != NULL && equal_links(&other->kind, kind)) {
      *found = other;
      return QK_OK;
    }
    if (other->used < e->used) e = other;
  }
  qk_gauss_destroy(e->gauss);
  *e = (entry_t){0};
  qk_err_t first = {0};
  qk_status_t status = make(cache, kind, &e->gauss, &first);
  if (is_memory(status)) {
    empty(cache);
    first = (qk_err_t){0};
    status = make(cache, kind, &e->gauss, &first);
  }
  if (status != QK_OK) {
    *err = first;
    return status;
  }
  e->kind = *kind;
  *found = e;
  return QK_OK;
}

qk_status_t qk_smear_cache_apply(qk_smear_cache_t *cache, const qk_smearing_t *smearing,
                                 qk_field_t *field, qk_err_t *err) {
  entry_t *e;
  qk_status_t status = find(cache, &smearing->links, &e, err);
  if (status == QK_OK) {
    e->used = ++cache->calls;
    status = qk_gauss_shift(e->gauss, field, smearing->shift);
    if (status == QK_OK && smearing->steps > 0)
      status = qk_gauss_apply(e->gauss, field, smearing->alpha, smearing->steps);
  }
  qk_work_trim(cache->work);
  return status;
}

static qk_status_t export(const qk_smear_cache_t *cache, const qk_link_smear_t *kind, double *links,
                          qk_err_t *err) {
  qk_gaugefield_t *field = NULL;
  const qk_status_t smeared = smear(cache, kind, &field, err);
  const qk_status_t status = smeared == QK_OK ? qk_gaugefield_export(field, links) : smeared;
  qk_gaugefield_destroy(field);
  return status;
}

qk_status_t qk_smear_cache_links(qk_smear_cache_t *cache, const qk_link_smear_t *kind,
                                 double **links, qk_err_t *err) {
  const qk_geom_t *geom = cache->dev->geom;
  double *made = qk_malloc((size_t)geom->local_volume * 72 * sizeof *made);
  const qk_status_t there = qk_comm_agree(geom->comm, made ? QK_OK : QK_NO_MEMORY, err);
  const qk_status_t status = there == QK_OK ? export(cache, kind, made, err) : there;
  if (status == QK_OK)
    *links = made;
  else
    qk_free(made);
  return status;
}
