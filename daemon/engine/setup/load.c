#include "daemon/engine/setup/load.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "daemon/engine/action/open.h"
#include "daemon/engine/eigen/lanczos.h"
#include "daemon/engine/multigrid/mg_text.h"
#include "daemon/engine/setup/actions.h"

#define X(name, word, number)                                                                      \
  _Static_assert((int)QUARK__ENGINE__PRECISION__PRECISION_##name == (int)QK_##name,                \
                 "precisions have the numbers of engine.proto");
QK_PRECISIONS(X, X, X)
#undef X
_Static_assert((int)QK_SLOTS_MAX <= (int)QK_MAX_RHS, "a block holds all slots");

qk_status_t qk_load_text(const char *field, const char *text, char *to, size_t size,
                         qk_err_t *err) {
  size_t n = strlen(text);
  if (n >= size)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s has %zu characters: at most %zu", field, n, size - 1);
  memcpy(to, text, n + 1);
  return QK_OK;
}

static qk_status_t copy_four(const char *field, size_t n, const uint32_t *v, int32_t to[4],
                             qk_err_t *err) {
  if (n == 0) return QK_OK;
  if (n != 4) return qk_fail(err, QK_BAD_ARGUMENT, "%s has %zu entries: none or 4", field, n);
  for (int mu = 0; mu < 4; mu++) {
    if (v[mu] > INT32_MAX)
      return qk_fail(err, QK_BAD_ARGUMENT, "%s[%d] = %u: at most %d", field, mu, v[mu], INT32_MAX);
    to[mu] = (int32_t)v[mu];
  }
  return QK_OK;
}

static qk_status_t copy_phases(const Quark__Engine__Load *m, double phase[4][2], qk_err_t *err) {
  if (m->n_boundary != 8)
    return qk_fail(err, QK_BAD_ARGUMENT, "boundary has %zu entries: 8, real and imaginary",
                   m->n_boundary);
  for (int mu = 0; mu < 4; mu++) {
    double re = m->boundary[2 * mu], im = m->boundary[2 * mu + 1];
    if (!(fabs(hypot(re, im) - 1) < 1e-9))
      return qk_fail(err, QK_BAD_ARGUMENT, "boundary[%d] = (%g,%g): modulus must be 1", mu, re, im);
    phase[mu][0] = re;
    phase[mu][1] = im;
  }
  return QK_OK;
}

/* Nothing crosses an open boundary: one phase, whatever was given. */
static void forget_phase(const qk_values_t *values, double phase[4][2]) {
  if (!qk_open_of(values).is) return;
  phase[3][0] = 1;
  phase[3][1] = 0;
}

static qk_status_t choose(const char *field, const char *word, const qk_choice_t *choice,
                          int *number, qk_err_t *err) {
  const int i = qk_choice_find(choice, word);
  if (i < 0) return qk_fail(err, QK_BAD_ARGUMENT, "%s = '%.32s': %s", field, word, choice->list);
  *number = choice->number[i];
  return QK_OK;
}

static qk_status_t parse_evolution(const Quark__Engine__Load *m, qk_load_t *l, qk_err_t *err) {
  const char *from = m->evolve_from ? m->evolve_from : "";
  const char *path = m->evolve_path ? m->evolve_path : "";
  const qk_status_t status =
      qk_load_text("evolve_from", from, l->evolve_from, sizeof l->evolve_from, err);
  if (status != QK_OK) return status;
  return qk_load_text("evolve_path", path, l->evolve_path, sizeof l->evolve_path, err);
}

static qk_status_t parse_multigrid(const Quark__Engine__Load *m, qk_load_t *l, qk_err_t *err) {
  qk_status_t status = QK_OK;
  for (size_t i = 0; i < m->n_multigrid && status == QK_OK; i++)
    status = qk_mg_text_set(&l->mg, m->multigrid[i]->key, m->multigrid[i]->value, err);
  if (status == QK_OK && m->checkpoint != NULL)
    status = qk_load_text("checkpoint", m->checkpoint, l->checkpoint, sizeof l->checkpoint, err);
  return status == QK_OK ? parse_evolution(m, l, err) : status;
}

static qk_status_t parse_deflation(const Quark__Engine__Load *m, qk_load_t *l, qk_err_t *err) {
  const char *file = m->deflate_file ? m->deflate_file : "";
  const char *from = m->deflate_from ? m->deflate_from : "";
  if (m->deflate > QK_EIGEN_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "deflate = %u: must be 0 to %d", m->deflate, QK_EIGEN_MAX);
  if (from[0] && !file[0])
    return qk_fail(err, QK_BAD_ARGUMENT, "deflate_from = %.64s: without deflate_file", from);
  if ((m->deflate > 0 || from[0]) && l->solver == QK_SOLVER_MG)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "deflate = %u: of cg, bicgstab and gcr; multigrid has mg-deflate", m->deflate);
  l->deflate = (int32_t)m->deflate;
  const qk_status_t status =
      qk_load_text("deflate_file", file, l->deflate_file, sizeof l->deflate_file, err);
  if (status != QK_OK) return status;
  return qk_load_text("deflate_from", from, l->deflate_from, sizeof l->deflate_from, err);
}

/* What is not there for an M that connects all sites. */
static qk_status_t check_dense(const qk_load_t *l, qk_err_t *err) {
  const qk_action_row_t *row = qk_values_action(&l->values);
  if (!row->is_dense) return QK_OK;
  if (qk_prec_scaled(l->inner))
    return qk_fail(err, QK_BAD_ARGUMENT, "precision = half: %s iterates in double or single",
                   row->name);
  if (l->deflate > 0)
    return qk_fail(
        err, QK_UNSUPPORTED,
        "deflate = %d: is not defined for the action %s; it projects eigenvectors of its "
        "own kernel (modes), which may have a name",
        l->deflate, row->name);
  return QK_OK;
}

/* The memory of a clover term that the action is given. */
static qk_status_t parse_clover(const Quark__Engine__Load *m, qk_load_t *l, qk_err_t *err) {
  const bool wanted = qk_values_action(&l->values)->has_term;
  if (wanted && m->clover == NULL)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "clover = %s: the term is not here; clients send it (FIELD_OPEN)",
                   qk_value_word(&l->values, "clover"));
  if (!wanted && m->clover != NULL)
    return qk_fail(err, QK_BAD_ARGUMENT, "clover = %.100s: the action %s takes none", m->clover,
                   qk_values_action(&l->values)->name);
  return wanted ? qk_load_text("clover", m->clover, l->clover, sizeof l->clover, err) : QK_OK;
}

static qk_status_t parse_action(const Quark__Engine__Load *m, qk_load_t *l, qk_err_t *err) {
  qk_setting_t setting[QK_VALUES_PARAMS];
  char why[QK_WHY];
  if (m->n_parameter > QK_VALUES_PARAMS)
    return qk_fail(err, QK_BAD_ARGUMENT, "%zu parameters: at most %d", m->n_parameter,
                   QK_VALUES_PARAMS);
  for (size_t i = 0; i < m->n_parameter; i++)
    setting[i] = (qk_setting_t){m->parameter[i]->key, m->parameter[i]->value};
  if (!qk_values_read(&l->values, m->action, setting, m->n_parameter, why))
    return qk_fail(err, QK_BAD_ARGUMENT, "%s", why);
  const qk_action_t *action = qk_action_of(&l->values);
  qk_status_t status = qk_action_check(action, &l->values, err);
  if (status != QK_OK) return status;
  status = parse_clover(m, l, err);
  if (status != QK_OK) return status;
  status = qk_open_fits(&l->values, (int)m->link_reals, 0, err);
  return status == QK_OK ? qk_action_solver(&l->values, m->solver, err) : status;
}

static qk_status_t check_numbers(const Quark__Engine__Load *m, qk_err_t *err) {
  if (qk_choice_of(&qk_choice_precisions, (int)m->inner) < 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "inner = %d: no such precision", (int)m->inner);
  if (m->slots > QK_SLOTS_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "slots = %u: must be 1 to %d, or 0", m->slots,
                   QK_SLOTS_MAX);
  if (m->link_reals > INT_MAX || qk_choice_of(&qk_choice_link_forms, (int)m->link_reals) < 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "link_reals = %u: must be 18, 12 or 8, or 0",
                   m->link_reals);
  if (m->replicas < 1 || m->replicas > QK_REPLICAS_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "replicas = %u: must be 1 to %d", m->replicas,
                   QK_REPLICAS_MAX);
  if (m->replica >= m->replicas)
    return qk_fail(err, QK_BAD_ARGUMENT, "replica = %u: there are %u, counted from 0", m->replica,
                   m->replicas);
  if (m->n_device > QK_DEVICES_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "device: %zu numbers, at most %d", m->n_device,
                   QK_DEVICES_MAX);
  if (m->staging > QK_STAGING_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "staging = %u: must be 0 to %d", m->staging,
                   QK_STAGING_MAX);
  return QK_OK;
}

static qk_status_t parse_choices(const Quark__Engine__Load *m, qk_load_t *l, qk_err_t *err) {
  int backend = 0, solver = 0;
  qk_status_t status = choose("backend", m->backend, &qk_choice_backends, &backend, err);
  if (status != QK_OK) return status;
  status = choose("solver", m->solver, &qk_choice_solvers, &solver, err);
  if (status != QK_OK) return status;
  l->backend = (qk_backend_t)backend;
  l->solver = (qk_solver_choice_t)solver;
  return parse_action(m, l, err);
}

static qk_status_t parse_lattice(const Quark__Engine__Load *m, qk_load_t *l, qk_err_t *err) {
  qk_status_t status = qk_load_text("gauge", m->gauge, l->gauge, sizeof l->gauge, err);
  if (status != QK_OK) return status;
  char why[QK_WHY];
  if (!qk_fix_read(m->fix_gauge, &l->fix, why)) return qk_fail(err, QK_BAD_ARGUMENT, "%s", why);
  status = copy_four("dims", m->n_dims, m->dims, l->dims, err);
  if (status != QK_OK) return status;
  status = copy_four("grid", m->n_grid, m->grid, l->grid, err);
  return status == QK_OK ? copy_phases(m, l->phase, err) : status;
}

static qk_launch_place_t place_of(const Quark__Engine__Load *m) {
  qk_launch_place_t place = {.replicas = (int32_t)m->replicas,
                             .replica = (int32_t)m->replica,
                             .ndevices = (int32_t)m->n_device,
                             .bind = m->bind};
  for (size_t i = 0; i < m->n_device; i++) place.device[i] = m->device[i];
  return place;
}

qk_status_t qk_load_parse(const Quark__Engine__Load *m, qk_load_t *load, qk_err_t *err) {
  qk_load_t l = {.inner = (qk_prec_t)m->inner,
                 .nslot = (int32_t)m->slots,
                 .link_reals = (int32_t)m->link_reals,
                 .single_rhs = m->single_rhs,
                 .ignore_checksum = m->ignore_checksum,
                 .staging = (int32_t)m->staging,
                 .reads_only = m->replicas > 1 && !m->write,
                 .fingerprint = m->fingerprint,
                 .reserve = m->reserve < INT64_MAX ? (int64_t)m->reserve : INT64_MAX};
  qk_status_t status = parse_choices(m, &l, err);
  if (status != QK_OK) return status;
  status = check_numbers(m, err);
  if (status != QK_OK) return status;
  l.place = place_of(m);
  status = parse_lattice(m, &l, err);
  if (status != QK_OK) return status;
  forget_phase(&l.values, l.phase);
  status = parse_multigrid(m, &l, err);
  if (status != QK_OK) return status;
  status = parse_deflation(m, &l, err);
  if (status != QK_OK) return status;
  status = check_dense(&l, err);
  if (status == QK_OK) *load = l;
  return status;
}
