#include "daemon/engine/serve/source.h"

#include <string.h>

#include "daemon/engine/lattice/gamma.h"
#include "daemon/engine/serve/open_slices.h"
#include "proto/column_check.h"

/* What a call makes sources of. */
typedef struct sources {
  qk_loaded_t *setup;
  qk_field_io_t *port;
  qk_staging_t *stage;
  int n;
  const qk_fill_t *const *fill;
  qk_buffer_t **buffer; /* NULL once it has been imported */
  qk_field_t *const *field;
  qk_err_t *verdict;
} sources_t;

static bool loses_process(qk_status_t status) {
  return status >= QK_DEVICE_MEMORY;
}

/* a b, 4x4 complex. */
static void multiply(const double a[4][4][2], const double b[4][4][2], double ab[4][4][2]) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      double re = 0, im = 0;
      for (int k = 0; k < 4; k++) {
        re += a[i][k][0] * b[k][j][0] - a[i][k][1] * b[k][j][1];
        im += a[i][k][0] * b[k][j][1] + a[i][k][1] * b[k][j][0];
      }
      ab[i][j][0] = re;
      ab[i][j][1] = im;
    }
}

static qk_status_t check_place(const qk_geom_t *geom, const qk_fill_t *fill, qk_err_t *err) {
  static const char WHAT[] = "source";
  uint32_t dims[4];
  int64_t site[4];
  char why[QK_WHY];
  for (int mu = 0; mu < 4; mu++) {
    dims[mu] = (uint32_t)geom->global[mu];
    site[mu] = fill->site[mu];
  }
  const int32_t mom[3] = {fill->mom[0], fill->mom[1], fill->mom[2]};
  qk_status_t status;
  if ((status = qk_site_check(site, true, dims, WHAT, why)) != QK_OK ||
      (status = qk_momentum_check(mom, dims, WHAT, why)) != QK_OK ||
      (status = qk_t_every_check((uint32_t)fill->t_every, dims, WHAT, why)) != QK_OK)
    return qk_fail(err, status, "%s", why);
  return QK_OK;
}

/* Column rhs of the field = matrix times what the fill has in shared memory. */
static qk_status_t read_vector(const sources_t *s, int i, const double matrix[4][4][2],
                               const qk_field_t *field, int rhs) {
  const qk_fill_t *fill = s->fill[i];
  qk_err_t *verdict = &s->verdict[i], lost = {0};
  qk_buffer_t *buffer = s->buffer[i];
  if (buffer == NULL)
    return qk_field_io_read(s->port, fill->shm_in, fill->in_double, matrix, field, rhs, verdict);
  s->buffer[i] = NULL;
  qk_status_t status = qk_staging_import(s->stage, 1, &buffer, matrix, field, rhs, verdict, &lost);
  if (status == QK_OK) return verdict->code;
  *verdict = lost;
  return status;
}

/* In the DeGrand-Rossi basis. A generated source of another basis has its components in that
 * basis; the solution for a sequential source gets its gamma when it is read. */
static qk_status_t generate(const sources_t *sources, int i, const qk_field_t *field, int rhs) {
  const qk_loaded_t *s = sources->setup;
  const qk_fill_t *fill = sources->fill[i];
  qk_err_t *err = &sources->verdict[i];
  bool sequential = fill->source == QK_SOURCE_HELD;
  double basis[4][4][2], gamma[4][4][2], matrix[4][4][2];
  qk_status_t status = check_place(&s->geom, fill, err);
  if (status != QK_OK) return status;
  qk_gamma_basis_import(fill->basis, basis);
  if (sequential) {
    qk_gamma_matrix(fill->gamma, gamma);
    multiply(gamma, basis, matrix);
    status = read_vector(sources, i, matrix, field, rhs);
    if (status != QK_OK) return status;
  }
  qk_source_args_t args = {.lat = s->geom.lat,
                           .field = field->v,
                           .rhs = rhs,
                           .kind = fill->source,
                           .spin = fill->spin,
                           .colour = fill->colour,
                           .seed = fill->seed,
                           .t_every = fill->t_every};
  memcpy(args.site, fill->site, sizeof args.site);
  memcpy(args.mom, fill->mom, sizeof args.mom);
  status = s->ops->source(s->ctx, &args);
  if (status == QK_OK && !sequential && fill->basis != QK_BASIS_DEGRAND_ROSSI)
    status = qk_field_io_move(sources->port, basis, field, rhs, field, rhs);
  return qk_device_explain(&s->dev, status, err);
}

static qk_status_t make_one(const sources_t *s, int i, const qk_field_t *field, int rhs) {
  double basis[4][4][2];
  if (!s->fill[i]->upload) return generate(s, i, field, rhs);
  qk_gamma_basis_import(s->fill[i]->basis, basis);
  return read_vector(s, i, basis, field, rhs);
}

/* A group: sources with one smearing, by their index among the fills. */
typedef struct group {
  int n, index[QK_TILE];
} group_t;

/* A failure that concerns all sources of a group, and no more than them. */
static void refuse(const group_t *group, const qk_err_t *reason, qk_err_t verdict[]) {
  for (int k = 0; k < group->n; k++)
    if (verdict[group->index[k]].code == QK_OK) verdict[group->index[k]] = *reason;
}

/* block has a column for each source of the group. */
static qk_status_t smear_into(const sources_t *sources, qk_field_t *block, const group_t *group,
                              qk_err_t *err) {
  qk_loaded_t *s = sources->setup;
  qk_err_t *verdict = sources->verdict;
  double one[4][4][2];
  qk_err_t reason = {0};
  for (int k = 0; k < group->n; k++) {
    int i = group->index[k];
    if (!loses_process(make_one(sources, i, block, k))) continue;
    *err = verdict[i];
    return verdict[i].code;
  }
  qk_status_t status =
      qk_smear_cache_apply(s->smear, &sources->fill[group->index[0]]->smear, block, &reason);
  qk_device_explain(&s->dev, status, &reason);
  if (status == QK_DEVICE_MEMORY || status == QK_NO_MEMORY) {
    qk_err_prefix(&reason, "smearing");
    refuse(group, &reason, verdict);
    return QK_OK;
  }
  qk_gamma_basis_import(QK_BASIS_DEGRAND_ROSSI, one);
  for (int k = 0; k < group->n && status == QK_OK; k++)
    if (verdict[group->index[k]].code == QK_OK)
      status = qk_field_io_move(sources->port, one, block, k, sources->field[group->index[k]], 0);
  *err = reason;
  return qk_device_explain(&s->dev, status, err);
}

/* The block has one shape whatever is in it, so that the same work fields serve every group. */
static qk_status_t make_smeared(const sources_t *sources, const group_t *group, qk_err_t *err) {
  const qk_loaded_t *s = sources->setup;
  int nrhs = s->nslot < QK_TILE ? s->nslot : QK_TILE;
  qk_field_t *block = NULL;
  qk_err_t reason = {0};
  qk_status_t status = qk_field_create(&s->dev, QK_DOUBLE, nrhs, QK_FULL, &block);
  status = qk_comm_agree(s->geom.comm, qk_device_explain(&s->dev, status, &reason), &reason);
  if (status == QK_OK)
    status = smear_into(sources, block, group, err);
  else if (status == QK_DEVICE_MEMORY || status == QK_NO_MEMORY) {
    qk_err_prefix(&reason, "smearing");
    refuse(group, &reason, sources->verdict);
    status = QK_OK;
  } else
    *err = reason;
  qk_field_destroy(block);
  return status;
}

static qk_status_t open_boundary(const sources_t *s, qk_err_t *err) {
  for (int i = 0; i < s->n; i++) {
    if (s->verdict[i].code != QK_OK) continue;
    const qk_status_t status =
        qk_open_slices_source(s->setup, s->fill[i], s->field[i], &s->verdict[i]);
    if (status != QK_OK) return qk_device_explain(&s->setup->dev, status, err);
  }
  return QK_OK;
}

static qk_status_t make_all(const sources_t *s, qk_err_t *err) {
  bool made[QK_SLOTS_MAX];
  for (int i = 0; i < s->n; i++)
    if (s->verdict[i].code == QK_OK) qk_open_slices_fill(s->setup, s->fill[i], &s->verdict[i]);
  for (int i = 0; i < s->n; i++) {
    made[i] = s->verdict[i].code != QK_OK;
    if (made[i] || s->fill[i]->smear.steps > 0) continue;
    made[i] = true;
    if (!loses_process(make_one(s, i, s->field[i], 0))) continue;
    *err = s->verdict[i];
    return s->verdict[i].code;
  }
  for (int i = 0; i < s->n; i++) {
    group_t group = {0};
    for (int k = i; k < s->n && group.n < QK_TILE; k++) {
      if (made[k] || !qk_smearing_equal(&s->fill[k]->smear, &s->fill[i]->smear)) continue;
      made[k] = true;
      group.index[group.n++] = k;
    }
    if (group.n == 0) continue;
    qk_status_t status = make_smeared(s, &group, err);
    if (status != QK_OK) return status;
  }
  return open_boundary(s, err);
}

qk_status_t qk_source_make(qk_loaded_t *setup, qk_field_io_t *port, qk_staging_t *stage, int n,
                           const qk_fill_t *const fill[], qk_buffer_t *buffer[],
                           qk_field_t *const field[], qk_err_t verdict[], qk_err_t *err) {
  const sources_t s = {setup, port, stage, n, fill, buffer, field, verdict};
  qk_status_t status = make_all(&s, err);
  for (int i = 0; i < n; i++) qk_buffer_drop(buffer[i]);
  return status;
}
