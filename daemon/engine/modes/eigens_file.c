#include "daemon/engine/modes/eigens_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"

enum { B = QK_EIGEN_BLOCK };

/* ---- to a file ------------------------------------------------------------------------------- */

void qk_eigens_describe(const qk_eigens_t *s, qk_eigen_header_t *h) {
  const qk_loaded_t *l = s->setup;
  const qk_eigens_job_t *j = &s->job;
  const qk_geom_t *fields = l->op->dev->geom;
  const int inner = fields->inner > 1 ? fields->inner : 1;
  *h =
      (qk_eigen_header_t){.identity = l->identity,
                          .problem = j->order.problem,
                          .full = j->params.kind != QK_LANCZOS_NORMAL,
                          .colours = fields->ncomp == QK_COLOUR_COMPONENTS,
                          .vectors = qk_eigens_is_laplacian(s) ? 1 : inner * qk_geom_slices(fields),
                          .planes = j->params.prec == QK_DOUBLE ? 2 : 1};
  h->identity.seed = 0;
  memcpy(h->dims, l->geom.global, sizeof h->dims);
}

void qk_eigens_describe_basis(const qk_eigens_t *s, qk_eigen_header_t *h) {
  h->based = true;
  h->smoother = s->job.smoother;
  h->nblock += s->job.order.problem.cut.n / B;
}

/* Trouble with a file does not end a computation. */
static void give_up_file(qk_eigens_t *s, const qk_err_t *why) {
  if (qk_eigens_is_first(s))
    qk_warn("eigen", "%s is not written: %s", s->job.order.name, why->text);
  snprintf(s->job.unwritten, sizeof s->job.unwritten, "%.*s", QK_EIGEN_WHY - 1, why->text);
  s->job.writer = NULL;
}

void qk_eigens_describe_slices(const qk_eigens_t *s, qk_eigen_header_t *h) {
  const int count = s->job.order.problem.count;
  qk_eigens_describe(s, h);
  h->nblock = (count + B - 1) / B;
  h->numbers = 2 * count * s->setup->geom.global[3];
}

/* The slices that are done. */
static void describe_state_of_slices(qk_eigens_t *s) {
  qk_eigens_job_t *j = &s->job;
  qk_eigens_describe_slices(s, &j->h);
  j->h.state.nblock = j->h.nblock;
  j->h.state.done = qk_slices_news(j->slices).done;
  j->h.state.restarts = j->made->restarts;
  j->number = j->made->number;
}

qk_status_t qk_eigens_begin_saving(qk_eigens_t *s) {
  qk_eigens_job_t *j = &s->job;
  qk_err_t why = {0};
  j->saved = qk_clock_now();
  if (j->slices) {
    describe_state_of_slices(s);
  } else {
    qk_eigens_describe(s, &j->h);
    qk_lanczos_state(j->lanczos, &j->h.state, &j->number);
    j->h.nblock = j->h.state.nblock;
    j->h.numbers = (j->h.nblock - 1) * B;
    if (j->basis) qk_eigens_describe_basis(s, &j->h);
  }
  j->block = 0;
  j->stage = SAVE;
  const qk_status_t status =
      qk_eigen_writer_open(&s->setup->geom, j->order.file, &j->h, &j->writer, &why);
  if (status == QK_OK || qk_eigens_loses_process(status)) return status;
  give_up_file(s, &why);
  j->stage = ITERATE;
  return QK_OK;
}

/* Block j->block of a state, from the iteration. */
static qk_status_t get_block(const qk_eigens_job_t *j) {
  if (!j->basis) return qk_eigen_part_get(&j->h, qk_lanczos_block(j->lanczos, j->block), j->part);
  const qk_field_t *block = qk_lanczos_block(j->lanczos, j->block - j->basis->nblock);
  return qk_eigen_part_get_coefficients(&j->h, block, j->part);
}

qk_status_t qk_eigens_save_block(qk_eigens_t *s) {
  qk_eigens_job_t *j = &s->job;
  qk_err_t why = {0};
  qk_status_t status = QK_OK;
  if (j->block < j->h.nblock) {
    const bool there = j->slices || (j->h.based && !qk_eigen_is_coefficients(&j->h, j->block));
    const float *part = there ? j->made->part[j->block] : j->part;
    if (!there) status = get_block(j);
    if (status != QK_OK) return status;
    status = qk_eigen_writer_block(j->writer, j->block++, part, &why);
    if (status == QK_OK || qk_eigens_loses_process(status)) return status;
    qk_eigen_writer_abandon(j->writer);
  } else {
    status = qk_eigen_writer_close(j->writer, j->number, &why);
    j->stage = ITERATE;
    j->writer = NULL;
    j->cost = qk_clock_now() - j->saved;
    if (status == QK_OK || qk_eigens_loses_process(status)) return status;
  }
  give_up_file(s, &why);
  j->stage = ITERATE;
  return QK_OK;
}

qk_status_t qk_eigens_write_block(qk_eigens_t *s, bool *written) {
  qk_eigens_job_t *j = &s->job;
  qk_err_t why = {0};
  qk_status_t status = QK_OK;
  *written = !j->order.file[0];
  if (*written) return QK_OK;
  if (!j->writer)
    status = qk_eigen_writer_open(&s->setup->geom, j->order.file, &j->h, &j->writer, &why);
  else if (j->block < j->h.nblock) {
    status = qk_eigen_writer_block(j->writer, j->block, j->made->part[j->block], &why);
    j->block++;
    if (status != QK_OK) qk_eigen_writer_abandon(j->writer);
  } else {
    status = qk_eigen_writer_close(j->writer, j->made->number, &why);
    j->writer = NULL;
    *written = true;
    if (status == QK_OK) j->unwritten[0] = '\0'; /* whatever became of states */
  }
  if (status == QK_OK || qk_eigens_loses_process(status)) return status;
  give_up_file(s, &why);
  *written = true;
  return QK_OK;
}

/* ---- from a file ----------------------------------------------------------------------------- */

bool qk_eigens_is_damage(qk_status_t status) {
  return status == QK_BAD_FORMAT || status == QK_BAD_CHECKSUM || status == QK_TRUNCATED ||
         status == QK_IO_ERROR;
}

qk_status_t qk_eigens_there(const qk_eigens_t *s, bool *is) {
  double found = qk_eigens_is_first(s) && access(s->job.order.file, F_OK) == 0 ? 1 : 0;
  const qk_status_t status = qk_comm_max(qk_eigens_comm(s), &found, 1);
  *is = found > 0;
  return status;
}

static qk_status_t open_reader(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  qk_eigen_header_t wanted;
  qk_eigens_describe(s, &wanted);
  return qk_eigen_reader_open(&s->setup->geom, j->order.file, &wanted, &j->reader, &j->h,
                              &j->number, err);
}

qk_status_t qk_eigens_open_file(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  const bool given = qk_eigens_is_given(s);
  qk_status_t status = open_reader(s, err);
  if (status == QK_NOT_FOUND && given && !j->order.memory[0]) {
    j->params.prec = QK_SINGLE; /* nobody says in which precision they came */
    *err = (qk_err_t){0};
    status = open_reader(s, err);
  }
  if (status != QK_OK) return status;
  if (given && !j->h.complete)
    return qk_fail(err, QK_BAD_FORMAT, "%s: a state, of what is not computed", j->order.file);
  j->block = 0;
  if (!j->h.complete && !qk_eigens_is_laplacian(s)) return QK_OK;
  return qk_kept_create(&s->setup->geom, &j->order, &j->h, &j->made, err);
}

static void go_on_with_slices(qk_eigens_t *s) {
  qk_eigens_job_t *j = &s->job;
  j->made->restarts = j->h.state.restarts;
  j->made->h.complete = true;
  if (qk_eigens_is_first(s))
    qk_info("eigen", "%s goes on from time slice %d", j->order.name, j->h.state.done);
}

qk_status_t qk_eigens_as_damage(qk_status_t status, qk_err_t *err) {
  if (status != QK_BAD_ARGUMENT) return status;
  qk_err_prefix(err, "a state that no iteration is in");
  return err->code = QK_BAD_FORMAT;
}

static qk_status_t go_on_with_lanczos(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  const qk_status_t status =
      qk_eigens_as_damage(qk_lanczos_resume(j->lanczos, &j->h.state, j->number, err), err);
  if (status == QK_OK && qk_eigens_is_first(s))
    qk_info("eigen", "%s goes on from restart %d", j->order.name, j->h.state.restarts);
  return status;
}

/* Block b, which was read, to the iteration where it is one of a state. */
static qk_status_t set_block(qk_eigens_job_t *j, int b, const float *part) {
  if (!j->lanczos) return QK_OK;
  if (!j->h.based) return qk_eigen_part_set(&j->h, part, qk_lanczos_block(j->lanczos, b));
  if (!qk_eigen_is_coefficients(&j->h, b)) return qk_eigen_part_set(&j->h, part, j->basis->v[b]);
  return qk_eigen_part_set_coefficients(&j->h, part,
                                        qk_lanczos_block(j->lanczos, b - j->basis->nblock));
}

qk_status_t qk_eigens_read_block(qk_eigens_t *s, bool *ends, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  *ends = j->block == j->h.nblock;
  if (!*ends) {
    const int b = j->block++;
    const bool there =
        j->made && (j->h.complete || !j->h.based || !qk_eigen_is_coefficients(&j->h, b));
    float *part = there ? j->made->part[b] : j->part;
    const qk_status_t status = qk_eigen_reader_block(j->reader, b, part, err);
    return status == QK_OK ? set_block(j, b, part) : status;
  }
  const bool whole = j->h.complete || qk_eigens_is_laplacian(s);
  if (whole) memcpy(j->made->number, j->number, (size_t)j->h.numbers * sizeof *j->number);
  if (whole && !j->h.complete) go_on_with_slices(s);
  const qk_status_t status = whole ? QK_OK : go_on_with_lanczos(s, err);
  if (status != QK_OK) return status;
  qk_eigen_reader_close(j->reader);
  j->reader = NULL;
  return QK_OK;
}
