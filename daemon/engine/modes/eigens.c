#include "daemon/engine/modes/eigens.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/engine/modes/eigens_compressed.h"
#include "daemon/engine/modes/eigens_file.h"

enum { B = QK_EIGEN_BLOCK };
/* Coarser than this single precision does, where the operator holds it. */
static const double coarse = 1e-5;
/* Of H^2 against H: what its residual must be so that H has the one that is asked for. */
static const double squared = 1e-4, finest = 1e-13;
/* Time between states, in times that one took to write: they have all vectors. */
static const double between = 20;

/* ---- what is kept ---------------------------------------------------------------------------- */

static qk_kept_t **find(qk_eigens_t *s, const char *name) {
  for (int i = 0; i < QK_EIGEN_NAMES_MAX; i++)
    if (s->kept[i] && strcmp(s->kept[i]->name, name) == 0) return &s->kept[i];
  return NULL;
}

static void remove_file(const qk_eigens_t *s, const char *file) {
  if (qk_eigens_is_first(s) && file[0]) unlink(file);
}

void qk_eigens_drop(qk_eigens_t *s, const char *name) {
  qk_kept_t **v = find(s, name);
  if (!v) return;
  remove_file(s, (*v)->file);
  qk_kept_destroy(*v);
  *v = NULL;
}

/* ---- the end of an EIGEN --------------------------------------------------------------------- */

/* All of it but what is kept. */
static void clear(qk_eigens_t *s) {
  qk_eigens_job_t *j = &s->job;
  qk_kept_destroy(j->made);
  qk_eigen_writer_abandon(j->writer);
  qk_eigen_reader_close(j->reader);
  qk_eigen_destroy(j->eigen);
  qk_given_destroy(j->given);
  qk_slices_destroy(j->slices);
  qk_lanczos_destroy(j->lanczos);
  qk_compressed_destroy(j->compressed);
  qk_coherent_pass_destroy(j->pass);
  qk_coherent_destroy(j->basis);
  qk_work_destroy(j->work);
  qk_free(j->part);
  *j = (qk_eigens_job_t){0};
}

static void tell(const qk_eigens_t *s, const qk_kept_t *v, qk_eigens_done_t *done) {
  const int n = 2 * v->h.problem.count;
  done->lowest = v->number[0];
  done->highest = v->number[n - 2];
  for (int i = 0; i < v->h.numbers; i += n) { /* time slices of a Laplacian */
    done->lowest = fmin(done->lowest, v->number[i]);
    done->highest = fmax(done->highest, v->number[i + n - 2]);
  }
  for (int i = 0; i < v->h.numbers; i += 2) done->residual = fmax(done->residual, v->number[i + 1]);
  if (s->setup->op->sign && v->h.problem.kind == QUARK__EIGEN_KIND__EIGEN_GAMMA5)
    done->zero =
        qk_zero_modes_find(v->number, v->h.problem.count, s->setup->mass, s->setup->op->sign->tol);
  done->restarts = v->restarts;
  done->applications = v->applications;
  done->host_bytes = qk_kept_bytes(&s->setup->geom, v);
}

/* Values and residuals to whoever asked for them. */
static qk_status_t put_numbers(qk_eigens_t *s, const char *name, const qk_kept_t *v,
                               qk_err_t *err) {
  qk_object_t out = {.fd = -1};
  const int64_t bytes = v->h.numbers * (int64_t)sizeof *v->number;
  if (!name[0]) return QK_OK;
  const qk_status_t opened = qk_object_open(s->wire, name, bytes, &out, err);
  const qk_status_t status =
      opened == QK_OK ? qk_object_write(s->wire, &out, v->number, err) : opened;
  qk_object_close(&out);
  return status;
}

static void begin_done(const qk_eigens_t *s, qk_eigens_done_t *done) {
  *done =
      (qk_eigens_done_t){.serial = s->job.order.serial, .seconds = qk_clock_now() - s->job.since};
}

/* Refused, or failed: its file stays. why: words for it, if there are any. */
static qk_status_t fail(qk_eigens_t *s, qk_status_t status, qk_err_t *why, bool *over,
                        qk_eigens_done_t *done, qk_err_t *err) {
  begin_done(s, done);
  done->verdict = *why;
  done->verdict.code = status;
  qk_device_explain(&s->setup->dev, status, &done->verdict);
  clear(s);
  *over = true;
  if (!qk_eigens_loses_process(status)) return QK_OK;
  *err = done->verdict;
  return status;
}

static qk_status_t conclude(qk_eigens_t *s, const qk_kept_t *v, bool *over, qk_eigens_done_t *done,
                            qk_err_t *err) {
  qk_err_t why = {0};
  const qk_status_t status = put_numbers(s, s->job.order.shm_out, v, &why);
  if (status != QK_OK) return fail(s, status, &why, over, done, err);
  begin_done(s, done);
  tell(s, v, done);
  snprintf(done->unwritten, sizeof done->unwritten, "%s", s->job.unwritten);
  clear(s);
  *over = true;
  return QK_OK;
}

/* The vectors that were made are kept, where there is a place. */
static qk_status_t keep(qk_eigens_t *s, bool *over, qk_eigens_done_t *done, qk_err_t *err) {
  for (int i = 0; i < QK_EIGEN_NAMES_MAX; i++) {
    if (s->kept[i]) continue;
    s->kept[i] = s->job.made;
    s->kept[i]->op = s->setup->op;
    s->job.made = NULL;
    return conclude(s, s->kept[i], over, done, err);
  }
  qk_err_t why = {0};
  qk_fail(&why, QK_BUSY, "%d names of eigenvectors are kept: drop one", QK_EIGEN_NAMES_MAX);
  return fail(s, QK_BUSY, &why, over, done, err);
}

/* ---- the computation ------------------------------------------------------------------------- */

/* Memory of a device, the least of all ranks; ranks on one host share theirs. */
static qk_status_t find_free(const qk_eigens_t *s, double *least) {
  const qk_loaded_t *l = s->setup;
  const int shared = l->ops->host_memory ? qk_comm_local_size(qk_eigens_comm(s)) : 1;
  qk_device_info_t info = {0};
  qk_status_t status = qk_comm_agree(qk_eigens_comm(s), l->ops->info(l->ctx, &info), NULL);
  if (status != QK_OK) return status;
  double most = -0.97 * (double)info.memory_free / shared;
  status = qk_comm_max(qk_eigens_comm(s), &most, 1);
  *least = -most;
  return status;
}

static int64_t device_bytes(const qk_eigens_t *s) {
  const qk_loaded_t *l = s->setup;
  const qk_lanczos_params_t *p = &s->job.params;
  const qk_geom_t *fields = l->op->dev->geom;
  if (qk_eigens_is_laplacian(s)) return qk_slices_bytes(&l->geom, &s->job.order.links, p);
  const qk_subset_t system = p->kind == QK_LANCZOS_GAMMA5 ? QK_FULL : l->op->system;
  if (qk_eigens_is_compressed(s)) return qk_eigens_compressed_bytes(s);
  const int more = l->op->inexact ? QK_INEXACT_FIELDS : 0;
  const int64_t work = (3 + more) * (int64_t)qk_field_bytes(fields, p->prec, B, system);
  return qk_lanczos_bytes(fields, system, p) + work;
}

static qk_status_t check_memory(const qk_eigens_t *s, qk_err_t *err) {
  const qk_lanczos_params_t *p = &s->job.params;
  const double needed = (double)device_bytes(s);
  double least = 0;
  qk_status_t status = find_free(s, &least);
  if (status != QK_OK || needed <= least) return status;
  return qk_fail(err, QK_DEVICE_MEMORY,
                 "%d eigenvectors in a space of %d need %.4g GB on each device: %.4g are free",
                 p->n, p->space, 1e-9 * needed, 1e-9 * least);
}

static bool holds_single(const qk_loaded_t *l) {
  return l->inner == QK_SINGLE || l->mg != NULL || l->deflate != NULL;
}

static qk_status_t choose(qk_eigens_t *s, qk_err_t *err) {
  const qk_eigen_problem_t *p = &s->job.order.problem;
  qk_lanczos_params_t *q = &s->job.params;
  *q = (qk_lanczos_params_t){.n = p->count,
                             .space = p->space,
                             .order = p->order,
                             .tol = p->tol,
                             .restarts = p->restarts ? p->restarts : QK_EIGEN_RESTARTS_MAX,
                             .seed = 1};
  if (qk_eigen_is_laplacian(p)) {
    const bool single =
        qk_eigen_is_given(p) ? qk_given_bits(s->job.order.memory) == 32 : p->tol >= coarse;
    q->kind = QK_LANCZOS_LAPLACIAN;
    q->prec = single ? QK_SINGLE : QK_DOUBLE;
    return QK_OK;
  }
  if (s->setup->op->system == QK_FULL && p->kind != QUARK__EIGEN_KIND__EIGEN_GAMMA5)
    return qk_fail(err, QK_UNSUPPORTED,
                   "kind = %d (normal): the action %s connects all sites and has no Mhat on even "
                   "ones; there are those of gamma_5 M (kind = 1, gamma5) and of the Laplacian "
                   "(kind = 2, laplacian)",
                   (int)p->kind, s->setup->op->action);
  if (p->kind == QUARK__EIGEN_KIND__EIGEN_GAMMA5) {
    q->kind = QK_LANCZOS_GAMMA5;
    q->accept = p->tol;
    q->tol = fmax(squared * p->tol, finest);
    return qk_lanczos_has_gamma5(s->setup->op, err);
  }
  q->prec = p->tol >= coarse && holds_single(s->setup) ? QK_SINGLE : QK_DOUBLE;
  return qk_eigens_is_compressed(s) ? qk_eigens_choose_basis(s, err) : QK_OK;
}

static qk_status_t reserve_part(qk_eigens_t *s, qk_err_t *err) {
  qk_eigen_header_t h;
  qk_eigens_describe(s, &h);
  int64_t floats = qk_eigen_part_floats(&s->setup->geom, &h, 0);
  if (qk_eigens_is_compressed(s) && qk_eigens_coefficient_floats(s) > floats)
    floats = qk_eigens_coefficient_floats(s);
  s->job.part = qk_malloc((size_t)floats * sizeof(float));
  const qk_status_t status =
      s->job.part ? QK_OK
                  : qk_fail(err, QK_NO_MEMORY, "no memory for eight eigenvectors: %lld bytes",
                            (long long)floats * (long long)sizeof(float));
  return qk_comm_agree(qk_eigens_comm(s), status, err);
}

/* From a slice on; what is made is there, if any were done before. */
static qk_status_t start_slices(qk_eigens_t *s, int first, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  qk_eigen_header_t h;
  qk_status_t status = check_memory(s, err);
  if (status == QK_OK && !j->made) {
    qk_eigens_describe_slices(s, &h);
    h.complete = true;
    status = qk_kept_create(&s->setup->geom, &j->order, &h, &j->made, err);
  }
  if (status != QK_OK) return status;
  j->stage = ITERATE;
  return qk_slices_create(s->setup, &j->order.links, &j->params, j->made, first, &j->slices, err);
}

static qk_status_t start_lanczos(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  qk_operator_t *op = s->setup->op;
  qk_status_t status = check_memory(s, err);
  if (status != QK_OK) return status;
  status = qk_comm_agree(qk_eigens_comm(s), qk_work_create(op->dev, &j->work), err);
  if (status != QK_OK) return status;
  status = reserve_part(s, err);
  if (status != QK_OK) return status;
  j->stage = ITERATE;
  if (j->h.based) return qk_eigens_go_on_within(s, err);
  return qk_lanczos_create(op, j->work, &j->params, &j->lanczos, err);
}

static qk_status_t begin_collecting(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  qk_status_t status = qk_lanczos_vectors(j->lanczos, &j->eigen, err);
  if (status != QK_OK) return status;
  const int restarts = j->eigen->restarts;
  qk_lanczos_destroy(j->lanczos);
  j->lanczos = NULL;
  qk_eigens_describe(s, &j->h);
  j->h.complete = true;
  j->h.nblock = j->eigen->nblock;
  j->h.numbers = 2 * j->eigen->n;
  status = qk_kept_create(&s->setup->geom, &j->order, &j->h, &j->made, err);
  if (status != QK_OK) return status;
  for (int i = 0; i < j->eigen->n; i++) {
    j->made->number[2 * i] = j->eigen->value[i];
    j->made->number[2 * i + 1] = j->eigen->residual[i];
  }
  j->made->restarts = restarts;
  j->block = 0;
  j->stage = COLLECT;
  return QK_OK;
}

static qk_status_t collect_block(qk_eigens_t *s) {
  qk_eigens_job_t *j = &s->job;
  const int b = j->block++;
  const qk_status_t status = j->compressed
                                 ? qk_eigens_collect_coefficients(s, b)
                                 : qk_eigen_part_get(&j->h, j->eigen->block[b], j->made->part[b]);
  if (status != QK_OK || j->block < j->h.nblock) return status;
  qk_compressed_destroy(j->compressed);
  j->compressed = NULL;
  qk_eigen_destroy(j->eigen);
  j->eigen = NULL;
  j->block = 0;
  j->stage = WRITE;
  int64_t *done = s->setup->op->applications;
  j->made->applications = done[j->params.prec] - j->applications_before;
  return QK_OK;
}

/* The same on all ranks: rank 0 has the clock. */
static qk_status_t is_time_to_save(const qk_eigens_t *s, bool *is) {
  const qk_eigens_job_t *j = &s->job;
  double due = qk_eigens_is_first(s) && qk_clock_now() - j->saved >= between * j->cost ? 1 : 0;
  const qk_status_t status = qk_comm_max(qk_eigens_comm(s), &due, 1);
  *is = due > 0;
  return status;
}

static qk_status_t iterate_slices(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  qk_status_t status = qk_slices_step(j->slices, err);
  if (status != QK_OK) return status;
  const qk_slices_news_t news = qk_slices_news(j->slices);
  bool save = false;
  if (news.over) {
    j->made->applications = news.applications;
    qk_slices_destroy(j->slices);
    j->slices = NULL;
    j->h = j->made->h;
    j->block = 0;
    j->stage = WRITE;
  } else if (news.finished && j->order.file[0]) {
    status = is_time_to_save(s, &save);
  }
  return save ? qk_eigens_begin_saving(s) : status;
}

static qk_status_t iterate(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  if (j->slices) return iterate_slices(s, err);
  qk_status_t status = qk_lanczos_step(j->lanczos, err);
  if (status != QK_OK) return status;
  const qk_lanczos_news_t news = qk_lanczos_news(j->lanczos);
  if (news.over && qk_eigens_is_compressed(s))
    return j->basis ? qk_eigens_begin_refining(s, err) : qk_eigens_begin_basis(s, err);
  if (news.over) return begin_collecting(s, err);
  bool save = false;
  if (news.restarted && j->order.file[0]) status = is_time_to_save(s, &save);
  return save ? qk_eigens_begin_saving(s) : status;
}

/* Vectors of a client: nothing is computed. */
static qk_status_t start_taking(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  qk_eigen_header_t h;
  qk_eigens_describe_slices(s, &h);
  h.complete = true;
  qk_status_t status = qk_kept_create(&s->setup->geom, &j->order, &h, &j->made, err);
  if (status != QK_OK) return status;
  j->stage = TAKE;
  return qk_given_create(&s->setup->geom, j->order.memory, j->made, &j->given, err);
}

static qk_status_t take(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  bool over = false;
  const qk_status_t status = qk_given_step(j->given, &over, err);
  if (status != QK_OK || !over) return status;
  qk_given_destroy(j->given);
  j->given = NULL;
  j->h = j->made->h;
  j->block = 0;
  j->stage = WRITE;
  return QK_OK;
}

static qk_status_t start(qk_eigens_t *s, qk_err_t *err) {
  if (qk_eigens_is_given(s)) return start_taking(s, err);
  return qk_eigens_is_laplacian(s) ? start_slices(s, 0, err) : start_lanczos(s, err);
}

/* What the file begins with says what is read, and into what. */
static qk_status_t open_file(qk_eigens_t *s, qk_err_t *err) {
  qk_status_t status = qk_eigens_open_file(s, err);
  if (status == QK_OK && !s->job.h.complete && !s->job.made)
    status = qk_eigens_as_damage(start_lanczos(s, err), err);
  if (status == QK_OK && s->job.lanczos && s->job.h.state.nblock > qk_lanczos_kept(s->job.lanczos))
    status = qk_fail(err, QK_BAD_FORMAT, "%s: a state of %d blocks", s->job.order.file,
                     s->job.h.state.nblock);
  s->job.stage = READ;
  return status;
}

/* A block, or what follows the last one. */
static qk_status_t read_block(qk_eigens_t *s, bool *complete, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  bool ends = false;
  qk_status_t status = qk_eigens_read_block(s, &ends, err);
  if (status != QK_OK || !ends) return status;
  *complete = j->h.complete;
  if (*complete) return QK_OK;
  j->stage = ITERATE;
  return qk_eigens_is_laplacian(s) ? start_slices(s, j->h.state.done, err) : QK_OK;
}

/* From the beginning, once more. */
static qk_status_t start_anew(qk_eigens_t *s, const qk_err_t *why, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job, fresh = {.order = j->order,
                                         .since = j->since,
                                         .applications_before = j->applications_before};
  if (qk_eigens_is_first(s)) qk_warn("eigen", "%s begins anew: %s", j->order.name, why->text);
  clear(s);
  *j = fresh;
  *err = (qk_err_t){0};
  const qk_status_t status =
      choose(s, err); /* those of an iteration within a basis are other ones */
  return status ? status : start(s, err);
}

/* ---- life ------------------------------------------------------------------------------------ */

qk_status_t qk_eigens_create(qk_loaded_t *setup, qk_wire_t *wire, qk_eigens_t **eigens,
                             qk_err_t *err) {
  qk_eigens_t *s = *eigens = qk_calloc(1, sizeof *s);
  if (s) {
    s->setup = setup;
    s->wire = wire;
  }
  return qk_comm_agree(setup->geom.comm, s ? QK_OK : QK_NO_MEMORY, err);
}

void qk_eigens_destroy(qk_eigens_t *s) {
  if (!s) return;
  clear(s);
  qk_hermitian_drop(s->dense);
  for (int i = 0; i < QK_EIGEN_NAMES_MAX; i++) qk_kept_destroy(s->kept[i]);
  qk_free(s);
}

bool qk_eigens_busy(const qk_eigens_t *s) {
  return s->job.stage != IDLE;
}

/* All of it goes but the dense problem that is under way. There is none while another is left. */
static void leave(qk_eigens_t *s) {
  qk_eigens_job_t *j = &s->job;
  if (!s->dense && j->lanczos) s->dense = qk_lanczos_take_dense(j->lanczos);
  if (!s->dense && j->compressed) s->dense = qk_compressed_take_dense(j->compressed);
  s->left = true;
  clear(s);
}

void qk_eigens_abandon(qk_eigens_t *s) {
  if (qk_eigens_busy(s)) leave(s);
}

void qk_eigens_cancel(qk_eigens_t *s) {
  const qk_eigens_progress_t told = qk_eigens_progress(s);
  const qk_eigens_job_t of = {
      .stage = LEAVE, .order = s->job.order, .since = s->job.since, .told = told};
  if (s->job.stage == LEAVE) return;
  remove_file(s, s->job.order.file);
  leave(s);
  s->job = of;
}

/* *over: no thread is left. */
static qk_status_t await_left(qk_eigens_t *s, bool *over) {
  const qk_status_t status = qk_hermitian_leave(qk_eigens_comm(s), &s->dense, over);
  if (status == QK_OK && *over) s->left = false;
  return status;
}

/* From the file, or from noise. */
static qk_status_t begin(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  bool is = false;
  qk_status_t status = choose(s, err);
  if (status == QK_OK && j->order.file[0]) status = qk_eigens_there(s, &is);
  if (status != QK_OK) return status;
  if (!is)
    return j->order.restore
               ? qk_fail(err, QK_NOT_FOUND, "eigenvectors of %s are not here", j->order.name)
               : start(s, err);
  status = open_file(s, err);
  if (!qk_eigens_is_damage(status) || j->order.restore) return status;
  const qk_err_t why = *err;
  return start_anew(s, &why, err);
}

static void count_from_here(qk_eigens_t *s) {
  s->job.applications_before = s->setup->op->applications[s->job.params.prec];
}

qk_status_t qk_eigens_begin(qk_eigens_t *s, const qk_eigen_order_t *order, bool *over,
                            qk_eigens_done_t *done, qk_err_t *err) {
  qk_err_t why = {0};
  qk_kept_t **known = find(s, order->name);
  s->job = (qk_eigens_job_t){.order = *order, .since = qk_clock_now()};
  *over = false;
  if (known && qk_kept_is_of(*known, &order->problem)) return conclude(s, *known, over, done, err);
  qk_status_t status = QK_OK;
  if (known)
    status = qk_fail(&why, QK_BAD_ARGUMENT, "eigenvectors of this name are here: drop them");
  else if (s->left)
    s->job.stage = AWAIT;
  else
    status = begin(s, &why);
  count_from_here(s);
  return status == QK_OK ? QK_OK : fail(s, status, &why, over, done, err);
}

static qk_status_t await(qk_eigens_t *s, qk_err_t *why) {
  bool over = false;
  const qk_status_t status = await_left(s, &over);
  if (status != QK_OK || !over) return status;
  s->job.stage = IDLE;
  const qk_status_t begun = begin(s, why);
  count_from_here(s);
  return begun;
}

static qk_status_t leaving(qk_eigens_t *s, qk_err_t *why) {
  bool over = false;
  const qk_status_t status = await_left(s, &over);
  return status == QK_OK && over ? qk_fail(why, QK_CANCELLED, "cancelled") : status;
}

static qk_status_t step(qk_eigens_t *s, bool *ready, qk_err_t *why) {
  switch (s->job.stage) {
  case AWAIT:
    return await(s, why);
  case LEAVE:
    return leaving(s, why);
  case READ:
    return read_block(s, ready, why);
  case TAKE:
    return take(s, why);
  case ITERATE:
    return iterate(s, why);
  case SAVE:
    return qk_eigens_save_block(s);
  case CUT:
    return qk_eigens_cut_basis(s, why);
  case BASE:
    return qk_eigens_take_basis(s, why);
  case REFINE:
    return qk_eigens_refine(s, why);
  case COLLECT:
    return collect_block(s);
  default:
    return qk_eigens_write_block(s, ready);
  }
}

qk_status_t qk_eigens_step(qk_eigens_t *s, bool *over, qk_eigens_done_t *done, qk_err_t *err) {
  qk_err_t why = {0};
  bool ready = false;
  const bool reading = s->job.stage == READ;
  qk_status_t status = step(s, &ready, &why);
  *over = false;
  if (status != QK_OK && reading && qk_eigens_is_damage(status) && !s->job.order.restore) {
    const qk_err_t damage = why;
    status = start_anew(s, &damage, &why);
  }
  if (status != QK_OK) return fail(s, status, &why, over, done, err);
  return ready ? keep(s, over, done, err) : QK_OK;
}

qk_eigens_progress_t qk_eigens_progress(const qk_eigens_t *s) {
  const qk_eigens_job_t *j = &s->job;
  const int count = j->order.problem.count,
            slices = qk_eigens_is_laplacian(s) ? s->setup->geom.global[3] : 1;
  qk_eigens_progress_t progress = {.serial = j->order.serial, .seconds = qk_clock_now() - j->since};
  if (j->stage == LEAVE) {
    progress.restart = j->told.restart;
    progress.converged = j->told.converged;
  } else if (j->slices) {
    const qk_slices_news_t news = qk_slices_news(j->slices);
    progress.restart = j->made->restarts + news.restarts;
    progress.converged = count * news.done + news.converged;
  } else if (j->lanczos) {
    const qk_lanczos_news_t news = qk_lanczos_news(j->lanczos);
    progress.restart = news.restarts;
    progress.converged = news.converged;
  } else if (j->made) {
    progress.converged = count * slices;
  }
  return progress;
}

/* ---- use ------------------------------------------------------------------------------------- */

qk_status_t qk_eigens_find(const qk_eigens_t *s, const char *name, const qk_kept_t **kept,
                           qk_err_t *err) {
  qk_kept_t **found = find((qk_eigens_t *)(uintptr_t)s, name);
  if (!found) return qk_fail(err, QK_NOT_FOUND, "there are no eigenvectors of the name %s", name);
  *kept = *found;
  return QK_OK;
}
