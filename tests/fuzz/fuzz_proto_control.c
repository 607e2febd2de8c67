/*
 * Control messages of all four kinds from any bytes. What is accepted packs again within the
 * limit; a SUBMIT or CONTRACT that passes the check makes a job whose memory all comes back.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/front/job/job.h"
#include "daemon/front/state/journal.h"
#include "proto/control.h"
#include "proto/eigen_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void promise(bool kept) {
  if (!kept) abort();
}

static void packs_again(const ProtobufCMessage *m) {
  size_t bytes;
  uint8_t *packed = qk_control_pack(m, &bytes);
  promise(!packed || bytes <= QK_CONTROL_MAX);
  free(packed);
}

static void submit(const Quark__Submit *s, uint32_t vectors) {
  const qk_shape_t shape = {{2, 4, 6, 8}, vectors * QK_SITE_REALS, vectors * QK_PROPAGATOR_COLUMNS};
  static const qk_action_row_t plain = {.name = "plain"}; /* without flavours */
  qk_budget_t budget = {.limit = 1ll << 40};
  qk_terms_t terms = {.shape = &shape, .kappa = 0.125, .budget = &budget, .keep = 1};
  qk_sched_t sched;
  qk_err_t err = {0};
  qk_job_t *job;
  if (qk_job_check(s, &shape, &err) != QK_OK) {
    promise(err.text[0] && err.code != QK_OK);
    return;
  }
  promise(s->nrhs <= QK_REQUEST_RHS_MAX && s->n_column <= QK_REQUEST_RHS_MAX);
  promise(s->flavour >= -1 && s->flavour <= 1);
  for (size_t i = 0; i < s->n_column; i++)
    promise(s->column[i]->flavour >= (vectors > 1 ? -1 : 0) && s->column[i]->flavour <= 1);
  promise((unsigned)s->parity <= QUARK__PARITY__PARITY_ODD);
  promise(s->parity == QUARK__PARITY__PARITY_ALL || vectors == 1);
  promise(s->schur == QUARK__SCHUR__SCHUR_NONE || s->parity != QUARK__PARITY__PARITY_ALL);
  promise((unsigned)s->work <= QUARK__WORK__WORK_SMEAR);
  promise(s->work != QUARK__WORK__WORK_SOLVE || (s->tol >= 0 && s->tol < 1 && s->max_iter > 0));
  promise(s->work != QUARK__WORK__WORK_SOLVE || s->tol > 0 || s->tol_abs > 0 || s->tol_hq > 0);
  promise(vectors == 1 || s->source != QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL);
  const bool projects = s->sink == QUARK__SINK__SINK_PROJECT;
  promise(projects == !!s->project);
  promise(!projects || (vectors == 1 && s->n_column == s->nrhs && s->n_grid == 0 &&
                        s->project_count >= 1 && s->project_count <= QK_EIGEN_COUNT_MAX));
  promise((qk_job_check_action(s, &plain, &err) == QK_OK) == (s->flavour >= 0 && !s->five_d));
  promise(!s->five_d || (s->work == QUARK__WORK__WORK_SOLVE && s->n_grid == 0));
  qk_sched_init(&sched);
  if (qk_sched_user_hold(&sched, "user", &terms.user) != QK_OK) return;
  qk_sched_user_kept(terms.user)->limit = 1ll << 40;
  if (qk_job_create(s, &terms, &job, &err) == QK_OK) {
    promise(budget.used == qk_job_cost(s, &shape));
    promise(qk_job_solves(job) ? job->tol == s->tol : job->tol == 0);
    promise(isfinite(job->factor) && job->factor != 0);
    promise(job->flavour == (s->flavour < 0 ? -1 : 1));
    promise(!projects ||
            job->field_bytes == qk_projection_bytes(s->project_count, s->dtype, &shape));
    qk_job_destroy(job);
  }
  promise(budget.used == 0 && qk_sched_user_kept(terms.user)->used == 0);
  qk_sched_user_release(terms.user);
  promise(qk_mem_bytes() == 0);
}

static void contract(const Quark__Contract *c) {
  static const qk_shape_t shape = {{2, 4, 6, 8}, QK_SITE_REALS, QK_PROPAGATOR_COLUMNS};
  qk_budget_t budget = {.limit = 1ll << 40};
  const qk_terms_t terms = {.shape = &shape, .budget = &budget};
  qk_err_t err = {0};
  qk_job_t *job;
  if (qk_job_check_contract(c, &shape, &err) != QK_OK) {
    promise(err.text[0] && err.code != QK_OK);
    return;
  }
  if (qk_job_create_contract(c, &terms, &job, &err) != QK_OK) return;
  promise(budget.used == qk_job_cost_contract(c, &shape) && job->field_bytes > 0);
  qk_job_destroy(job);
  promise(budget.used == 0 && qk_mem_bytes() == 0);
}

static void eigen(const Quark__Eigen *e) {
  static const qk_shape_t shape = {{2, 4, 6, 8}, QK_SITE_REALS, QK_PROPAGATOR_COLUMNS};
  qk_budget_t budget = {.limit = 1ll << 40};
  const qk_terms_t terms = {.shape = &shape, .budget = &budget};
  qk_err_t err = {0};
  qk_job_t *job;
  if (qk_job_check_eigen(e, &shape, &err) != QK_OK) {
    promise(err.text[0] && err.code != QK_OK);
    return;
  }
  promise(strlen(e->problem->name) <= QK_EIGEN_NAME_MAX && !strchr(e->problem->name, '/'));
  promise(e->problem->count >= 1 && e->problem->count <= QK_EIGEN_COUNT_MAX);
  promise(protobuf_c_message_get_packed_size(&e->problem->base) <= QK_EIGEN_PACKED_MAX);
  if (qk_job_create_eigen(e, &terms, &job, &err) != QK_OK) return;
  promise(budget.used == qk_job_cost_eigen(e, &shape) && job->field_bytes > 0);
  qk_job_destroy(job);
  promise(budget.used == 0 && qk_mem_bytes() == 0);
}

static void field_open(const Quark__FieldOpen *open) {
  qk_sched_t sched;
  qk_budget_t budget = {.limit = 1ll << 40};
  qk_err_t err = {0};
  qk_job_t *job;
  if (qk_job_check_field(open, &err) != QK_OK) {
    promise(err.text[0] && err.code != QK_OK);
    return;
  }
  const qk_shape_t shape = qk_job_field_shape(open);
  qk_terms_t terms = {.shape = &shape, .budget = &budget};
  promise(!qk_shape_check(&shape));
  qk_sched_init(&sched);
  if (qk_sched_user_hold(&sched, "user", &terms.user) != QK_OK) return;
  qk_sched_user_kept(terms.user)->limit = 1ll << 40;
  if (qk_job_create_field(open, &terms, &job, &err) == QK_OK) {
    promise(budget.used == qk_job_cost_field(open) && job->field_bytes > 0);
    const bool sends = open->n_grid == 0 || open->has_part;
    promise((job->upload_until > 0) == sends && job->upload_until <= job->part_bytes);
    promise(job->field_bytes % job->part_bytes == 0);
    qk_job_destroy(job);
  }
  promise(budget.used == 0 && qk_sched_user_kept(terms.user)->used == 0);
  qk_sched_user_release(terms.user);
  promise(qk_mem_bytes() == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Quark__ClientMessage *client = qk_control_unpack_client(data, size);
  if (client) {
    packs_again(&client->base);
    for (uint32_t n = 1; client->body_case == QUARK__CLIENT_MESSAGE__BODY_SUBMIT && n <= 2; n++)
      submit(client->submit, n);
    if (client->body_case == QUARK__CLIENT_MESSAGE__BODY_CONTRACT) contract(client->contract);
    if (client->body_case == QUARK__CLIENT_MESSAGE__BODY_EIGEN) eigen(client->eigen);
    if (client->body_case == QUARK__CLIENT_MESSAGE__BODY_FIELD_OPEN) field_open(client->field_open);
    quark__client_message__free_unpacked(client, NULL);
  }
  Quark__ServerMessage *server = qk_control_unpack_server(data, size);
  if (server) {
    packs_again(&server->base);
    quark__server_message__free_unpacked(server, NULL);
  }
  Quark__Engine__FrontMessage *front = qk_control_unpack_front(data, size);
  if (front) {
    packs_again(&front->base);
    quark__engine__front_message__free_unpacked(front, NULL);
  }
  Quark__Engine__EngineMessage *engine = qk_control_unpack_engine(data, size);
  if (engine) {
    packs_again(&engine->base);
    quark__engine__engine_message__free_unpacked(engine, NULL);
  }
  return 0;
}
