#include "daemon/engine/serve/round.h"

#include <math.h>
#include <stdio.h>

#include "daemon/engine/lattice/gamma.h"
#include "proto/column_check.h"
#include "proto/eigen_check.h"

_Static_assert(QUARK__BASIS__BASIS_DEGRAND_ROSSI == (int)QK_BASIS_DEGRAND_ROSSI &&
                   QUARK__BASIS__BASIS_UKQCD == (int)QK_BASIS_UKQCD &&
                   QUARK__BASIS__BASIS_DIRAC_PAULI == (int)QK_BASIS_DIRAC_PAULI &&
                   QUARK__BASIS__BASIS_OPENQCD == (int)QK_BASIS_OPENQCD,
               "bases have the numbers of quark.proto");
_Static_assert(QUARK__LINK_SMEAR__LINK_SMEAR_APE == (int)QK_LINK_SMEAR_APE &&
                   QUARK__LINK_SMEAR__LINK_SMEAR_STOUT == (int)QK_LINK_SMEAR_STOUT &&
                   QUARK__LINK_SMEAR__LINK_SMEAR_HYP == (int)QK_LINK_SMEAR_HYP,
               "kinds of link smearing have the numbers of quark.proto");
_Static_assert(QUARK__CHANNEL_KIND__CHANNEL_MESON == (int)QK_CHANNEL_MESON &&
                   QUARK__CHANNEL_KIND__CHANNEL_NUCLEON == (int)QK_CHANNEL_NUCLEON &&
                   QUARK__CHANNEL_KIND__CHANNEL_DELTA == (int)QK_CHANNEL_DELTA &&
                   QUARK__CHANNEL_KIND__CHANNEL_CORNER == (int)QK_CHANNEL_CORNER,
               "channels have the numbers of quark.proto");

/* ---- the broadcast -------------------------------------------------------------------------- */

qk_status_t qk_round_share(qk_comm_t *comm, qk_round_t *round, bool idle) {
  qk_status_t status = idle ? qk_comm_bcast_idle(comm, &round->head, sizeof round->head, 0)
                            : qk_comm_bcast(comm, &round->head, sizeof round->head, 0);
  if (status != QK_OK) return status;
  const qk_round_head_t *head = &round->head;
  const struct {
    void *data;
    size_t bytes; /* 0: none of this round */
  } part[] = {
      {&round->load, head->kind == QK_ROUND_LOAD ? sizeof round->load : 0},
      {&round->correlate, head->kind == QK_ROUND_CONTRACT ? sizeof round->correlate : 0},
      {&round->eigen,
       head->kind == QK_ROUND_EIGEN || head->kind == QK_ROUND_EIGEN_DROP ? sizeof round->eigen : 0},
      {round->fill, (size_t)head->nfill * sizeof round->fill[0]},
      {round->cancel, (size_t)head->ncancel * sizeof round->cancel[0]},
  };
  for (size_t i = 0; status == QK_OK && i < sizeof part / sizeof *part; i++)
    if (part[i].bytes > 0) status = qk_comm_bcast(comm, part[i].data, part[i].bytes, 0);
  return status;
}

/* ---- right-hand sides ----------------------------------------------------------------------- */

static qk_status_t parse_dtype(const char *field, Quark__Dtype dtype, bool *is_double,
                               qk_err_t *err) {
  if (dtype != QUARK__DTYPE__DTYPE_F32 && dtype != QUARK__DTYPE__DTYPE_F64)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s = %d: no such type", field, (int)dtype);
  *is_double = dtype == QUARK__DTYPE__DTYPE_F64;
  return QK_OK;
}

/* What proto/column_check.h says of a part of a message. */
static qk_status_t judge(qk_status_t status, const char why[QK_WHY], qk_err_t *err) {
  return status == QK_OK ? QK_OK : qk_fail(err, status, "%s", why);
}

static qk_link_smear_t links_of(const Quark__Smearing *m) {
  qk_link_smear_t links = {.kind = (qk_link_smear_kind_t)m->links,
                           .steps = (int)m->link_steps,
                           .spatial = m->link_spatial};
  for (size_t i = 0; i < m->n_link_param; i++) links.param[i] = m->link_param[i];
  return links;
}

/* Absent: no smearing. */
static qk_status_t parse_smearing(const Quark__Smearing *m, qk_smearing_t *smearing,
                                  qk_err_t *err) {
  char why[QK_WHY];
  if (m == NULL) return QK_OK;
  const qk_status_t status = judge(qk_smearing_check(m, "smearing", why), why, err);
  if (status != QK_OK) return status;
  *smearing = (qk_smearing_t){
      .alpha = m->alpha, .steps = (int32_t)m->steps, .links = links_of(m), .shift = m->shift};
  return QK_OK;
}

/* Fields for which not all is defined. */
static const char *other(const qk_action_row_t *action) {
  return action->colour ? "fields with colour alone" : "a doublet";
}

/* Whether there are as many is asked in eigens.c. */
static qk_status_t parse_vector(const Quark__Engine__Fill *m, const qk_action_row_t *action,
                                qk_fill_t *f, qk_err_t *err) {
  const Quark__Column *c = m->column;
  const int vectors = qk_action_vectors(action);
  char why[QK_WHY];
  if (c == NULL || m->vectors == NULL)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "column, vectors: a source that is an eigenvector needs "
                   "both");
  if (c->flavour > 1 || c->flavour < -1 || (c->flavour < 0 && vectors == 1))
    return qk_fail(err, QK_BAD_ARGUMENT, "flavour of a column = %d: %d to 1", c->flavour,
                   vectors > 1 ? -1 : 0);
  if (c->vector >= QK_EIGEN_COUNT_MAX || c->slice >= QK_LS_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "vector, slice = %u, %u: below %d and %d", c->vector,
                   c->slice, QK_EIGEN_COUNT_MAX, QK_LS_MAX);
  if (c->spin < 0 || c->spin > (action->colour ? 0 : 3) || c->t < -1)
    return qk_fail(err, QK_BAD_ARGUMENT, "spin, t = %d, %d: 0 to %d, and at least -1", c->spin,
                   c->t, action->colour ? 0 : 3);
  const qk_status_t status = judge(qk_eigen_check_name("vectors", m->vectors, why), why, err);
  if (status != QK_OK) return status;
  f->component = vectors == 1 ? 1 : c->flavour;
  f->vector = (int32_t)c->vector;
  f->slice = (int32_t)c->slice;
  f->site[3] = c->t;
  f->spin = c->spin;
  f->colour = -1;
  return qk_load_text("vectors", m->vectors, f->vectors, sizeof f->vectors, err);
}

/* Coordinates and momenta are checked against the lattice in source.c. */
static qk_status_t parse_column(const Quark__Engine__Fill *m, const qk_action_row_t *action,
                                qk_fill_t *f, qk_err_t *err) {
  static const qk_source_kind_t kinds[] = {
      [QUARK__SOURCE_KIND__SOURCE_POINT] = QK_SOURCE_POINT,
      [QUARK__SOURCE_KIND__SOURCE_WALL] = QK_SOURCE_WALL,
      [QUARK__SOURCE_KIND__SOURCE_Z2] = QK_SOURCE_Z2,
      [QUARK__SOURCE_KIND__SOURCE_Z4] = QK_SOURCE_Z4,
      [QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL] = QK_SOURCE_HELD,
  };
  const Quark__Column *c = m->column;
  const int vectors = qk_action_vectors(action), spins = action->colour ? 1 : 4;
  if ((unsigned)m->source >= sizeof kinds / sizeof *kinds)
    return qk_fail(err, QK_BAD_ARGUMENT, "source = %d: no such kind", (int)m->source);
  if (c == NULL) return qk_fail(err, QK_BAD_ARGUMENT, "column is missing: a source needs one");
  f->source = kinds[m->source];
  bool noise = f->source == QK_SOURCE_Z2 || f->source == QK_SOURCE_Z4;
  bool sequential = f->source == QK_SOURCE_HELD;
  int least = noise || sequential ? -1 : 0;
  if (c->spin < least || c->spin >= spins)
    return qk_fail(err, QK_BAD_ARGUMENT, "spin = %d: %d to %d", c->spin, least, spins - 1);
  if (c->colour < least || c->colour > 2)
    return qk_fail(err, QK_BAD_ARGUMENT, "colour = %d: %d to 2", c->colour, least);
  if (c->t < least) return qk_fail(err, QK_BAD_ARGUMENT, "t = %d: at least %d", c->t, least);
  f->site[3] = c->t;
  if (f->source == QK_SOURCE_POINT) {
    f->site[0] = c->x;
    f->site[1] = c->y;
    f->site[2] = c->z;
  }
  if (f->source == QK_SOURCE_POINT && (c->px != 0 || c->py != 0 || c->pz != 0))
    return qk_fail(err, QK_BAD_ARGUMENT, "momentum = %d,%d,%d: a point source has none", c->px,
                   c->py, c->pz);
  if (c->t_every > (noise && c->t >= 0 ? (uint32_t)INT32_MAX : 0))
    return qk_fail(err, QK_BAD_ARGUMENT, "t_every = %u: only for noise from a time slice on",
                   c->t_every);
  if (c->gamma >= QK_GAMMAS)
    return qk_fail(err, QK_BAD_ARGUMENT, "gamma = %u: must be 0 to %d", c->gamma, QK_GAMMAS - 1);
  if (c->flavour > 1 || c->flavour < (vectors > 1 ? -1 : 0))
    return qk_fail(err, QK_BAD_ARGUMENT, "flavour of a column = %d: %d to 1", c->flavour,
                   vectors > 1 ? -1 : 0);
  if (sequential && vectors > 1)
    return qk_fail(err, QK_UNSUPPORTED, "a sequential source: not for %s", other(action));
  if (action->colour && c->gamma != 0)
    return qk_fail(err, QK_UNSUPPORTED, "gamma = %u: not for %s", c->gamma, other(action));
  f->component = c->flavour == 0 && (!noise || vectors == 1) ? 1 : c->flavour;
  f->mom[0] = c->px;
  f->mom[1] = c->py;
  f->mom[2] = c->pz;
  f->t_every = (int32_t)c->t_every;
  f->gamma = (int32_t)c->gamma;
  f->spin = sequential ? -1 : c->spin;
  f->colour = sequential ? -1 : c->colour;
  f->seed = c->seed;
  return QK_OK;
}

/* What of the source stands in shared memory: all of an upload, the propagator that a sequential
 * source is made of; nothing of others. */
static qk_status_t parse_input(const Quark__Engine__Fill *m, qk_fill_t *f, qk_err_t *err) {
  const bool sequential = !f->upload && f->source == QK_SOURCE_HELD;
  f->in_double = f->is_double;
  f->slab = (qk_slab_t){m->has_slab_count, m->slab_first, m->slab_count};
  if (m->has_slab_first != m->has_slab_count || (m->has_slab_count && !f->upload))
    return qk_fail(err, QK_BAD_ARGUMENT, "slab_first, slab_count: both, of an upload, or none");
  if (!f->upload && !sequential) return QK_OK;
  if (sequential && m->has_in_dtype) {
    qk_status_t status = parse_dtype("in_dtype", m->in_dtype, &f->in_double, err);
    if (status != QK_OK) return status;
  }
  if (m->shm_in == NULL)
    return qk_fail(err, QK_BAD_ARGUMENT, "shm_in is missing: %s needs it",
                   f->upload ? "an upload" : "a sequential source");
  return qk_load_text("shm_in", m->shm_in, f->shm_in, sizeof f->shm_in, err);
}

static qk_status_t parse_source(const Quark__Engine__Fill *m, const qk_action_row_t *action,
                                qk_fill_t *f, qk_err_t *err) {
  qk_status_t status = parse_dtype("dtype", m->dtype, &f->is_double, err);
  if (status != QK_OK) return status;
  const bool eigen = m->source == QUARK__SOURCE_KIND__SOURCE_VECTOR;
  status = f->upload ? QK_OK
           : eigen   ? parse_vector(m, action, f, err)
                     : parse_column(m, action, f, err);
  if (status != QK_OK) return status;
  status = parse_input(m, f, err);
  if (status != QK_OK) return status;
  return parse_smearing(m->smear, &f->smear, err);
}

void qk_fill_export(const qk_fill_t *fill, double matrix[4][4][2]) {
  qk_gamma_basis_export(fill->basis, matrix);
  if (fill->work != QUARK__WORK__WORK_SOLVE || !fill->dagger) return;
  for (int i = 0; i < 4; i++)
    for (int j = 2; j < 4; j++)
      for (int c = 0; c < 2; c++) matrix[i][j][c] = -matrix[i][j][c];
}

qk_subset_t qk_fill_subset(Quark__Parity parity) {
  if (parity == QUARK__PARITY__PARITY_ALL) return QK_FULL;
  return parity == QUARK__PARITY__PARITY_EVEN ? QK_EVEN : QK_ODD;
}

qk_input_t qk_fill_input(const qk_fill_t *fill) {
  return (qk_input_t){fill->shm_in, fill->in_double, qk_fill_subset(fill->in_parity), fill->slab};
}

Quark__Parity qk_fill_source_parity(Quark__Work work, Quark__Parity parity) {
  const bool hops = work == QUARK__WORK__WORK_HOP || work == QUARK__WORK__WORK_DIAG_INVERSE_HOP;
  if (!hops || parity == QUARK__PARITY__PARITY_ALL) return parity;
  return parity == QUARK__PARITY__PARITY_EVEN ? QUARK__PARITY__PARITY_ODD
                                              : QUARK__PARITY__PARITY_EVEN;
}

static qk_status_t parse_parity(const Quark__Engine__Fill *m, const qk_action_row_t *action,
                                qk_fill_t *f, qk_err_t *err) {
  const bool is_schur = m->work == QUARK__WORK__WORK_SCHUR;
  const bool solves = m->work == QUARK__WORK__WORK_SOLVE;
  if ((unsigned)m->parity > QUARK__PARITY__PARITY_ODD)
    return qk_fail(err, QK_BAD_ARGUMENT, "parity = %d: no such parity", (int)m->parity);
  if ((unsigned)m->in_parity > QUARK__PARITY__PARITY_ODD)
    return qk_fail(err, QK_BAD_ARGUMENT, "in_parity = %d: no such parity", (int)m->in_parity);
  if ((unsigned)m->schur > QUARK__SCHUR__SCHUR_ASYMMETRIC)
    return qk_fail(err, QK_BAD_ARGUMENT, "schur = %d: no such system", (int)m->schur);
  if (m->schur != QUARK__SCHUR__SCHUR_NONE && !solves && !is_schur)
    return qk_fail(err, QK_BAD_ARGUMENT, "schur = %d: not with work = %d", (int)m->schur,
                   (int)m->work);
  const bool all = m->parity == QUARK__PARITY__PARITY_ALL;
  if (all && (is_schur || m->schur != QUARK__SCHUR__SCHUR_NONE))
    return qk_fail(err, QK_BAD_ARGUMENT, "parity is missing: work = %d, schur = %d need one",
                   (int)m->work, (int)m->schur);
  if ((qk_action_vectors(action) > 1 || action->colour) &&
      (!all || m->in_parity != QUARK__PARITY__PARITY_ALL))
    return qk_fail(err, QK_UNSUPPORTED, "fields of one parity: not for %s", other(action));
  if (action->colour && solves && m->dagger)
    return qk_fail(err, QK_UNSUPPORTED, "a solve of the adjoint: not for %s", other(action));
  f->parity = m->parity;
  f->schur = m->schur;
  f->in_parity = qk_fill_source_parity(m->work, m->parity);
  if (m->source == QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL) f->in_parity = m->in_parity;
  return QK_OK;
}

/* Whether the vectors are there, and so many, is asked in projector.c. */
static qk_status_t parse_project(const Quark__Engine__Fill *m, const qk_action_row_t *action,
                                 qk_fill_t *f, qk_err_t *err) {
  char why[QK_WHY];
  if (m->project == NULL) return QK_OK;
  const qk_status_t status = judge(qk_eigen_check_name("project", m->project, why), why, err);
  if (status != QK_OK) return status;
  if (m->project_count < 1 || m->project_count > QK_EIGEN_COUNT_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "project_count = %u: 1 to %d", m->project_count,
                   QK_EIGEN_COUNT_MAX);
  if (m->shm_out == NULL) return qk_fail(err, QK_BAD_ARGUMENT, "shm_out: a projection needs it");
  if (m->parity != QUARK__PARITY__PARITY_ALL)
    return qk_fail(err, QK_BAD_ARGUMENT, "parity = %d: a projection is of all sites",
                   (int)m->parity);
  if (m->five_d) return qk_fail(err, QK_BAD_ARGUMENT, "five_d: of four dimensions is a projection");
  if (qk_action_vectors(action) > 1 || action->colour)
    return qk_fail(err, QK_UNSUPPORTED, "a projection: not for %s", other(action));
  f->project_count = (int32_t)m->project_count;
  return qk_load_text("project", m->project, f->project, sizeof f->project, err);
}

/* A solve for a mass of its own. */
static qk_status_t parse_mass(const Quark__Engine__Fill *m, const qk_action_row_t *action,
                              qk_fill_t *f, qk_err_t *err) {
  char why[QK_WHY];
  if (!m->has_mass) return QK_OK;
  if (!action->has_masses)
    return qk_fail(err, QK_UNSUPPORTED, "mass = %g: %s is solved for that of its setup alone",
                   m->mass, action->name);
  if (!qk_action_takes_mass(action, m->mass, why))
    return qk_fail(err, QK_BAD_ARGUMENT, "mass = %s", why);
  if (m->work != QUARK__WORK__WORK_SOLVE || m->dagger || m->project || m->five_d ||
      m->schur != QUARK__SCHUR__SCHUR_NONE || m->parity != QUARK__PARITY__PARITY_ALL)
    return qk_fail(err, QK_BAD_ARGUMENT, "mass = %g: of solves of M on all sites", m->mass);
  if (m->tol_abs > 0 || m->tol_hq > 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "tol_abs, tol_hq = %g, %g: 0 with a mass", m->tol_abs,
                   m->tol_hq);
  if (m->family == 0 || m->block == 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "family, block = %llu, %llu: greater than 0 with a mass",
                   (unsigned long long)m->family, (unsigned long long)m->block);
  f->has_mass = true;
  f->mass = m->mass;
  f->family = m->family;
  f->block = m->block;
  f->block_left = m->block_left < QK_MASSES_TOGETHER ? (int32_t)m->block_left : QK_MASSES_TOGETHER;
  return QK_OK;
}

static qk_status_t parse_ends(const Quark__Engine__Fill *m, const qk_action_row_t *action,
                              qk_fill_t *f, qk_err_t *err) {
  qk_status_t status = parse_source(m, action, f, err);
  if (status != QK_OK) return status;
  status = parse_mass(m, action, f, err);
  return status == QK_OK ? parse_project(m, action, f, err) : status;
}

qk_status_t qk_fill_parse(const Quark__Engine__Fill *m, int entries, const qk_action_row_t *action,
                          qk_fill_t *fill, qk_err_t *err) {
  qk_fill_t f = {.serial = m->serial,
                 .upload = m->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD,
                 .hint = {.order = m->order, .backlog = m->backlog},
                 .basis = (qk_gamma_basis_t)m->basis,
                 .factor = m->factor,
                 .stopping = {m->tol, m->tol_abs, m->tol_hq, m->factor},
                 .batch_only = !m->single_rhs,
                 .five = m->five_d,
                 .work = m->work,
                 .dagger = m->dagger};
  if (m->entry >= (uint32_t)entries)
    return qk_fail(err, QK_BAD_ARGUMENT, "entry = %u: must be 0 to %d", m->entry, entries - 1);
  if ((unsigned)m->basis >= QK_BASIS_COUNT)
    return qk_fail(err, QK_BAD_ARGUMENT, "basis = %d: no such basis", (int)m->basis);
  if (action->colour && m->basis != QUARK__BASIS__BASIS_DEGRAND_ROSSI)
    return qk_fail(err, QK_BAD_ARGUMENT, "basis = %d: fields with colour alone have none",
                   (int)m->basis);
  if (!isfinite(m->factor) || m->factor == 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "factor = %g: must be finite and not 0", m->factor);
  if ((unsigned)m->work > QUARK__WORK__WORK_SMEAR)
    return qk_fail(err, QK_BAD_ARGUMENT, "work = %d: no such work", (int)m->work);
  const bool solves = m->work == QUARK__WORK__WORK_SOLVE;
  if (solves && (!qk_stopping_is_valid(&f.stopping) || m->tol >= 1))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "tol, tol_abs, tol_hq = %g, %g, %g: finite, not negative, one over 0, tol below "
                   "1",
                   m->tol, m->tol_abs, m->tol_hq);
  if (solves && (m->max_iter < 1 || m->max_iter > QK_ITERATIONS_MAX))
    return qk_fail(err, QK_BAD_ARGUMENT, "max_iter = %llu: 1 to %llu",
                   (unsigned long long)m->max_iter, QK_ITERATIONS_MAX);
  if (m->flavour < -1 || m->flavour > 1)
    return qk_fail(err, QK_BAD_ARGUMENT, "flavour = %d: must be 1 or -1", m->flavour);
  if (m->flavour < 0 && !action->has_flavours)
    return qk_fail(err, QK_BAD_ARGUMENT, "flavour = %d: the action has none, only 1 is accepted",
                   m->flavour);
  qk_status_t status = parse_parity(m, action, &f, err);
  if (status != QK_OK) return status;
  if (f.five && (!solves || m->project != NULL || m->parity != QUARK__PARITY__PARITY_ALL))
    return qk_fail(err, QK_BAD_ARGUMENT, "five_d: of solves on all sites");
  if (f.five && f.upload && m->smear != NULL)
    return qk_fail(err, QK_BAD_ARGUMENT, "five_d: an uploaded source is not smeared");
  if (m->smear != NULL && m->smear->shift > 0 && !action->colour)
    return qk_fail(err, QK_BAD_ARGUMENT, "shift = %u: of fields with colour alone",
                   m->smear->shift);
  f.flavour = m->flavour < 0 ? -1 : 1;
  f.entry = (int32_t)m->entry;
  f.max_iter = solves ? (int64_t)m->max_iter : 0;
  status = parse_ends(m, action, &f, err);
  if (status != QK_OK) return status;
  if (m->shm_out != NULL)
    status = qk_load_text("shm_out", m->shm_out, f.shm_out, sizeof f.shm_out, err);
  if (status == QK_OK) *fill = f;
  return status;
}

/* ---- eigenvectors --------------------------------------------------------------------------- */

_Static_assert((int)QUARK__EIGEN_KIND__EIGEN_LAPLACIAN == QK_EIGEN_IS_LAPLACIAN, "kinds");

/* Words that tell kinds of smearing apart. */
static void links_text(const Quark__Smearing *m, char text[QK_EIGEN_LINKS]) {
  size_t n = 0;
  text[0] = '\0';
  if (m == NULL || m->links == QUARK__LINK_SMEAR__LINK_SMEAR_NONE) return;
  n += (size_t)snprintf(text, QK_EIGEN_LINKS, "%d:%u%s", (int)m->links, m->link_steps,
                        m->link_spatial ? ":space" : "");
  for (size_t i = 0; i < m->n_link_param && n < QK_EIGEN_LINKS; i++)
    n += (size_t)snprintf(text + n, QK_EIGEN_LINKS - n, ":%.17g", m->link_param[i]);
}

qk_status_t qk_eigen_parse(const Quark__Engine__Eigen *m, const int dims[4],
                           const qk_action_row_t *action, qk_eigen_order_t *order, qk_err_t *err) {
  const Quark__EigenProblem *p = m->problem;
  qk_shape_t shape = qk_shape_of(action);
  char why[QK_WHY];
  for (int mu = 0; mu < 4; mu++) shape.dims[mu] = (uint32_t)dims[mu];
  qk_status_t status = judge(qk_eigen_check(p, &shape, why), why, err);
  if (status != QK_OK) return status;
  qk_eigen_order_t o = {.serial = m->serial,
                        .problem = {.kind = (int)p->kind,
                                    .count = (int)p->count,
                                    .space = (int)p->space,
                                    .order = (int)p->order,
                                    .restarts = (int)p->restarts,
                                    .tol = p->tol},
                        .restore = m->restore};
  links_text(p->links, o.problem.links);
  o.problem.cut.n = (int)p->basis;
  if (p->basis > 0) qk_eigen_block(p, shape.dims, o.problem.cut.block);
  if (p->field) snprintf(o.problem.links, sizeof o.problem.links, "%s", p->field);
  if (p->links) o.links = links_of(p->links);
  const char *out = m->shm_out ? m->shm_out : "", *file = m->file ? m->file : "";
  status = qk_load_text("name", p->name, o.name, sizeof o.name, err);
  if (status != QK_OK) return status;
  status = qk_load_text("shm_out", out, o.shm_out, sizeof o.shm_out, err);
  if (status != QK_OK) return status;
  status = qk_load_text("file", file, o.file, sizeof o.file, err);
  if (status != QK_OK) return status;
  const char *memory = m->memory ? m->memory : "";
  status = qk_load_text("memory", memory, o.memory, sizeof o.memory, err);
  if (status == QK_OK && !p->field != !*memory && !(p->field && m->restore))
    status = qk_fail(err, QK_BAD_ARGUMENT, "memory: it goes with a field, and a field with it");
  if (status == QK_OK) *order = o;
  return status;
}

/* ---- correlators ---------------------------------------------------------------------------- */

static qk_status_t copy_columns(const char *field, size_t columns, size_t n, char *const name[],
                                char to[QK_PROPAGATOR_COLUMNS][QK_SHM_NAME_MAX + 1],
                                qk_err_t *err) {
  qk_status_t status = QK_OK;
  if (n != columns)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s has %zu names: %zu, one for each column", field, n,
                   columns);
  for (size_t i = 0; i < n && status == QK_OK; i++)
    status = qk_load_text(field, name[i], to[i], sizeof to[i], err);
  return status;
}

static qk_status_t parse_channels(const Quark__Contraction *m, bool colour, qk_correlate_t *c,
                                  qk_err_t *err) {
  if (m->n_channel < 1 || m->n_channel > QK_CHANNELS_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "channel has %zu entries: 1 to %d", m->n_channel,
                   QK_CHANNELS_MAX);
  for (size_t i = 0; i < m->n_channel; i++) {
    const Quark__Channel *from = m->channel[i];
    const bool corner = from->kind == QUARK__CHANNEL_KIND__CHANNEL_CORNER;
    if ((unsigned)from->kind > QK_CHANNEL_CORNER)
      return qk_fail(err, QK_BAD_ARGUMENT, "channel[%zu]: kind = %d: no such kind", i,
                     (int)from->kind);
    if (from->sink >= QK_GAMMAS || from->source >= QK_GAMMAS)
      return qk_fail(err, QK_BAD_ARGUMENT, "channel[%zu]: sink, source = %u, %u: 0 to %d", i,
                     from->sink, from->source, QK_GAMMAS - 1);
    const bool meson = from->kind == QUARK__CHANNEL_KIND__CHANNEL_MESON;
    if (colour ? !corner && !meson : corner)
      return qk_fail(err, QK_UNSUPPORTED,
                     "channel[%zu]: of fields with colour alone there are mesons and the local "
                     "nucleon, which is of them alone",
                     i);
    const uint32_t shift = colour && meson ? from->sink ^ from->source : 0;
    if (i == 0) c->shift = shift;
    if (shift > QK_SHIFT_MAX || shift != c->shift)
      return qk_fail(err, QK_UNSUPPORTED,
                     "channel[%zu]: of fields with colour alone spin and taste differ in x, y and "
                     "z, by the same in all channels",
                     i);
    c->channel[i] = (qk_channel_id_t){.kind = (qk_channel_kind_t)from->kind,
                                      .sink = (int)from->sink,
                                      .source = (int)from->source};
  }
  c->nchannel = (int32_t)m->n_channel;
  return QK_OK;
}

/* None given: zero momentum, and the origin of the lattice. */
static qk_status_t parse_momenta(const Quark__Contraction *m, const uint32_t dims[4],
                                 qk_correlate_t *c, qk_err_t *err) {
  char why[QK_WHY];
  qk_status_t status = judge(qk_momenta_check(m, dims, why), why, err);
  if (status != QK_OK) return status;
  status = judge(qk_origin_check(m, dims, why), why, err);
  if (status != QK_OK) return status;
  for (size_t i = 0; i < m->n_momentum; i++) c->mom[i / 3][i % 3] = m->momentum[i];
  for (size_t mu = 0; mu < m->n_origin; mu++) c->origin[mu] = m->origin[mu];
  c->nmom = m->n_momentum == 0 ? 1 : (int32_t)(m->n_momentum / 3);
  return QK_OK;
}

/* Where the propagators are, and where the correlators go. */
static qk_status_t parse_memory(const Quark__Engine__Contract *m, size_t columns, qk_correlate_t *c,
                                qk_err_t *err) {
  qk_status_t status = copy_columns("shm_a", columns, m->n_shm_a, m->shm_a, c->a, err);
  if (status == QK_OK && m->n_shm_b > 0)
    status = copy_columns("shm_b", columns, m->n_shm_b, m->shm_b, c->b, err);
  if (status != QK_OK) return status;
  status = parse_dtype("dtype_a", m->dtype_a, &c->a_double, err);
  if (status != QK_OK) return status;
  c->b_double = c->a_double;
  if (m->has_dtype_b) status = parse_dtype("dtype_b", m->dtype_b, &c->b_double, err);
  if (status != QK_OK) return status;
  return qk_load_text("shm_out", m->shm_out, c->shm_out, sizeof c->shm_out, err);
}

static qk_status_t parse_contraction(const Quark__Contraction *m, const uint32_t dims[4],
                                     bool colour, qk_correlate_t *c, qk_err_t *err) {
  qk_status_t status = parse_channels(m, colour, c, err);
  if (status != QK_OK) return status;
  status = parse_momenta(m, dims, c, err);
  if (status != QK_OK) return status;
  status = parse_smearing(m->sink, &c->sink, err);
  if (status == QK_OK && c->sink.shift > 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "sink: shift = %u: that of sinks follows from channels",
                   c->sink.shift);
  return status;
}

qk_status_t qk_correlate_parse(const Quark__Engine__Contract *m, const uint32_t dims[4],
                               const qk_action_row_t *action, qk_correlate_t *correlate,
                               qk_err_t *err) {
  qk_correlate_t c = {.serial = m->serial};
  qk_status_t status =
      parse_memory(m, action->colour ? QK_COLOUR_COLUMNS : QK_PROPAGATOR_COLUMNS, &c, err);
  if (status != QK_OK) return status;
  status = parse_contraction(m->contraction, dims, action->colour, &c, err);
  if (status == QK_OK) *correlate = c;
  return status;
}
