#include "daemon/engine/serve/source.h"

#include <string.h>

#include "daemon/engine/krylov/parity_system.h"
#include "daemon/engine/lattice/gamma.h"
#include "daemon/engine/modes/eigens.h"
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
  const qk_input_t input = qk_fill_input(fill);
  if (buffer == NULL) return qk_field_io_read(s->port, &input, matrix, field, rhs, verdict);
  s->buffer[i] = NULL;
  qk_status_t status = qk_staging_import(s->stage, 1, &buffer, matrix, field, rhs, verdict, &lost);
  if (status == QK_OK) return verdict->code;
  *verdict = lost;
  return status;
}

/* Noise of the lower flavour of a doublet has other bits than that of the upper. */
static const uint64_t LOWER = (uint64_t)1 << 63;

/* One vector, `lower` or the only one, in the DeGrand-Rossi basis. A generated source of another
 * basis has its components in that basis; the solution for a sequential source gets its gamma when
 * it is read. */
static qk_status_t generate(const sources_t *sources, int i, bool lower, const qk_field_t *field,
                            int rhs) {
  const qk_loaded_t *s = sources->setup;
  const qk_fill_t *fill = sources->fill[i];
  qk_err_t *err = &sources->verdict[i];
  bool sequential = fill->source == QK_SOURCE_HELD;
  double basis[4][4][2], gamma[4][4][2], matrix[4][4][2];
  qk_status_t status = QK_OK;
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
                           .seed = lower ? fill->seed ^ LOWER : fill->seed,
                           .t_every = fill->t_every};
  memcpy(args.site, fill->site, sizeof args.site);
  memcpy(args.mom, fill->mom, sizeof args.mom);
  status = s->ops->source(s->ctx, &args);
  if (status == QK_OK && !sequential && fill->basis != QK_BASIS_DEGRAND_ROSSI)
    status = qk_field_io_move(sources->port, basis, field, rhs, field, rhs);
  return qk_device_explain(&s->dev, status, err);
}

/* An eigenvector: slice or flavour `part` of it, in the DeGrand-Rossi basis as it is; of a
 * Laplacian with a spin of the source's basis. */
static qk_status_t take_eigenvector(const sources_t *sources, int i, int part,
                                    const qk_field_t *field, int rhs) {
  const qk_fill_t *fill = sources->fill[i];
  const qk_field_t *own = field->v.nrhs > 1 ? sources->field[i] : field;
  qk_err_t *err = &sources->verdict[i];
  qk_gamma_basis_t basis = QK_BASIS_DEGRAND_ROSSI;
  qk_kept_pick_t pick = {fill->vector, part, fill->site[3], fill->spin};
  double matrix[4][4][2];
  const qk_kept_t *kept;
  qk_status_t status = qk_eigens_find(sources->setup->eigens, fill->vectors, &kept, err);
  if (status == QK_OK && qk_eigen_is_laplacian(&kept->h.problem)) {
    pick.vector = fill->slice;
    basis = fill->basis;
  }
  if (status == QK_OK) status = qk_kept_vector(kept, &pick, own, err);
  qk_gamma_basis_import(basis, matrix);
  if (status == QK_OK && (own != field || basis != QK_BASIS_DEGRAND_ROSSI))
    status = qk_field_io_move(sources->port, matrix, own, 0, field, rhs);
  /* want of memory ends this source alone */
  return status == QK_DEVICE_MEMORY || status == QK_NO_MEMORY ? QK_BUSY : status;
}

static qk_status_t zero(const qk_field_t *vector) {
  qk_dev_blas(vector->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {vector->v}});
  return qk_dev_status(vector->dev);
}

/* All vectors of RHS number rhs; if there are several, of a field of one right-hand side. */
static qk_status_t generate_all(const sources_t *s, int i, const qk_field_t *field, int rhs) {
  const qk_fill_t *fill = s->fill[i];
  const int n = qk_field_vectors(field);
  qk_status_t status = check_place(&s->setup->geom, fill, &s->verdict[i]);
  for (int k = 0; k < n && status == QK_OK; k++) {
    const qk_field_t vector = qk_field_vector(field, k);
    const bool lower = k > 0, empty = n > 1 && fill->component == (lower ? 1 : -1);
    if (empty)
      status = qk_device_explain(&s->setup->dev, zero(&vector), &s->verdict[i]);
    else if (fill->vectors[0])
      status = take_eigenvector(s, i, n > 1 ? k : fill->slice, &vector, rhs);
    else
      status = generate(s, i, lower, &vector, rhs);
  }
  return status;
}

static qk_status_t make_one(const sources_t *s, int i, const qk_field_t *field, int rhs) {
  double basis[4][4][2];
  if (!s->fill[i]->upload) return generate_all(s, i, field, rhs);
  if (s->fill[i]->five) return QK_OK; /* of five dimensions: qk_entry_enter_five reads it */
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

/* Vector `v` of the sources of the group from their fields to columns of the block, or back. */
static qk_status_t move(const sources_t *s, const group_t *group, int v, const qk_field_t *block,
                        bool back) {
  double one[4][4][2];
  qk_status_t status = QK_OK;
  qk_gamma_basis_import(QK_BASIS_DEGRAND_ROSSI, one);
  for (int k = 0; k < group->n && status == QK_OK; k++) {
    const int i = group->index[k];
    const qk_field_t vector = qk_field_vector(s->field[i], v);
    if (s->verdict[i].code != QK_OK) continue;
    status = back ? qk_field_io_move(s->port, one, block, k, &vector, 0)
                  : qk_field_io_move(s->port, one, &vector, 0, block, k);
  }
  return status;
}

/* Sources of several vectors in their fields, others in columns of the block. */
static qk_status_t make_group(const sources_t *s, qk_field_t *block, const group_t *group,
                              qk_err_t *err) {
  for (int k = 0; k < group->n; k++) {
    const int i = group->index[k];
    const qk_status_t status =
        s->setup->vectors > 1 ? make_one(s, i, s->field[i], 0) : make_one(s, i, block, k);
    if (!loses_process(status)) continue;
    *err = s->verdict[i];
    return s->verdict[i].code;
  }
  return QK_OK;
}

/* One vector of the sources, which is in the block, which has a column for each, if there is no
 * other. */
static qk_status_t smear_vector(const sources_t *sources, int v, qk_field_t *block,
                                const group_t *group, qk_err_t *err) {
  qk_loaded_t *s = sources->setup;
  qk_err_t *verdict = sources->verdict;
  qk_err_t reason = {0};
  qk_status_t status = s->vectors > 1 ? move(sources, group, v, block, false) : QK_OK;
  if (status != QK_OK) return qk_device_explain(&s->dev, status, err);
  status = qk_smear_cache_apply(s->smear, &sources->fill[group->index[0]]->smear, block, &reason);
  qk_device_explain(&s->dev, status, &reason);
  if (status == QK_DEVICE_MEMORY || status == QK_NO_MEMORY) {
    qk_err_prefix(&reason, "smearing");
    refuse(group, &reason, verdict);
    return QK_OK;
  }
  *err = reason;
  if (status != QK_OK) return qk_device_explain(&s->dev, status, err);
  return qk_device_explain(&s->dev, move(sources, group, v, block, true), err);
}

static qk_status_t smear_into(const sources_t *s, qk_field_t *block, const group_t *group,
                              qk_err_t *err) {
  qk_status_t status = make_group(s, block, group, err);
  for (int v = 0; v < s->setup->vectors && status == QK_OK; v++)
    status = smear_vector(s, v, block, group, err);
  return status;
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

/* What is asked for of a source that is there: one parity of it; gamma_5 times it where the adjoint
 * is solved for. */
static qk_status_t turn(const qk_loaded_t *s, const qk_fill_t *fill, const qk_field_t *field) {
  const qk_chiral_args_t args = {.plus = 1, .minus = -1, .in = field->v, .out = field->v};
  const Quark__Parity parity = qk_fill_source_parity(fill->work, fill->parity);
  const qk_status_t status = qk_parity_keep(field, qk_fill_subset(parity));
  if (status != QK_OK || !fill->dagger || fill->work != QUARK__WORK__WORK_SOLVE) return status;
  return s->ops->chiral(s->ctx, &args);
}

static qk_status_t turn_all(const sources_t *s, qk_err_t *err) {
  for (int i = 0; i < s->n; i++) {
    if (s->verdict[i].code != QK_OK) continue;
    const qk_status_t status = turn(s->setup, s->fill[i], s->field[i]);
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
    if (made[i] || qk_smearing_any(&s->fill[i]->smear)) continue;
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
  const qk_status_t status = open_boundary(s, err);
  return status == QK_OK ? turn_all(s, err) : status;
}

qk_status_t qk_source_make(qk_loaded_t *setup, qk_field_io_t *port, qk_staging_t *stage, int n,
                           const qk_fill_t *const fill[], qk_buffer_t *buffer[],
                           qk_field_t *const field[], qk_err_t verdict[], qk_err_t *err) {
  const sources_t s = {setup, port, stage, n, fill, buffer, field, verdict};
  qk_status_t status = make_all(&s, err);
  for (int i = 0; i < n; i++) qk_buffer_drop(buffer[i]);
  return status;
}
