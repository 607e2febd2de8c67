/* due.h: which jobs are looked at, and when; sums over all jobs. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/base/mem.h"
#include "daemon/front/job/due.h"
#include "daemon/front/job/session.h"

enum { MANY = 500 };

static const qk_shape_t SHAPE = {{4, 4, 4, 4}, QK_SITE_REALS, QK_PROPAGATOR_COLUMNS};

static qk_sched_t sched;
static qk_sessions_t sessions;
static qk_session_t *session;
static qk_shm_space_t space;
static qk_budget_t budget;
static qk_jobs_t jobs;
static qk_job_t *job[MANY];

static qk_job_t *make(uint64_t request, Quark__Sink sink) {
  const qk_terms_t terms = {.shape = &SHAPE,
                            .kappa = 0.125,
                            .budget = &budget,
                            .space = &space,
                            .jobs = &jobs,
                            .user = session->user,
                            .keep = 100};
  Quark__Submit s = QUARK__SUBMIT__INIT;
  qk_job_t *made;
  qk_err_t err = {0};
  s.request = request;
  s.nrhs = 2;
  s.dtype = QUARK__DTYPE__DTYPE_F32;
  s.tol = 1e-8;
  s.source = QUARK__SOURCE_KIND__SOURCE_UPLOAD;
  s.sink = sink;
  cr_assert_eq(qk_job_create(&s, &terms, &made, &err), QK_OK, "%s", err.text);
  return made;
}

static void setup(void) {
  const uint8_t id[QK_CLIENT_ID] = {1};
  qk_err_t err = {0};
  budget = (qk_budget_t){.limit = INT64_MAX, .what = "max-memory"};
  qk_shm_space_init(&space, NULL);
  qk_sched_init(&sched);
  cr_assert_eq(qk_session_create(&sessions, &sched, id, "u", 0, &session, &err), QK_OK);
  qk_sched_user_kept(session->user)->limit = INT64_MAX;
}

static void leave(qk_job_t *j) {
  qk_job_leave(j);
  j->session = NULL;
  qk_job_destroy(j);
}

static void check(void) {
  cr_assert(jobs.unsaved == 0 && jobs.held == 0 && jobs.kept == 0 && jobs.kept_bytes == 0);
  cr_assert_null(qk_due_take(&jobs, INFINITY));
  qk_session_destroy(&sessions, session);
  cr_assert_eq(qk_mem_bytes(), 0);
}

TestSuite(due, .init = setup, .fini = check);

Test(due, those_of_sessions_are_looked_at_in_the_order_of_their_times) {
  srand(7);
  for (int i = 0; i < MANY; i++) {
    job[i] = make((uint64_t)i + 1, QUARK__SINK__SINK_DOWNLOAD);
    qk_due_at(job[i], 1);
    cr_assert(isinf(job[i]->due_at), "it is in no session yet");
    qk_session_adopt(session, job[i]);
    cr_assert_eq(qk_due_take(&jobs, 0), job[i], "a new one is looked at once");
    qk_due_at(job[i], 10 + rand() % 50); /* many are alike */
    qk_due_at(job[i], 100);              /* too late to matter */
  }
  qk_due_never(job[3]);
  qk_due_at(job[5], 2);
  cr_assert_null(qk_due_take(&jobs, 1.9));
  cr_assert_eq(qk_due_take(&jobs, 2), job[5]);
  int n = 0;
  double last = 0;
  for (double now = 10; now < 60; now++)
    for (qk_job_t *j; (j = qk_due_take(&jobs, now)); n++) {
      cr_assert(now >= last && isinf(j->due_at) && j != job[3] && j != job[5]);
      last = now;
    }
  cr_assert_eq(n, MANY - 2);
  qk_due_at(job[7], 1);
  for (int i = 0; i < MANY; i++) leave(job[i]);
}

static void end(qk_job_t *j, uint32_t rhs, bool solved) {
  const qk_outcome_t outcome = {.status = solved ? QK_OK : QK_CANCELLED, .written = solved};
  qk_err_t err = {0};
  if (solved)
    cr_assert_eq(qk_shm_create(&space, j->field_bytes, &j->rhs[rhs].solution, &err), QK_OK);
  qk_rhs_end(&j->rhs[rhs], &outcome, 1);
}

Test(due, what_is_held_and_kept_is_counted) {
  qk_job_t *plain = make(1, QUARK__SINK__SINK_DOWNLOAD), *keeps = make(2, QUARK__SINK__SINK_KEEP);
  end(plain, 0, true);
  cr_assert_eq(jobs.held, 0, "it is in no session yet");
  qk_session_adopt(session, plain);
  qk_session_adopt(session, keeps);
  cr_assert_eq(jobs.held, 1);
  end(plain, 1, false);
  end(keeps, 0, true);
  end(keeps, 1, false);
  cr_assert(jobs.held == 4 && jobs.kept == 1 && keeps->kept == 1);
  cr_assert_eq(jobs.kept_bytes, (int64_t)keeps->field_bytes);
  qk_rhs_ack(&keeps->rhs[0]);
  cr_assert(jobs.held == 3 && jobs.kept == 1, "it is kept behind its acknowledgement");
  qk_rhs_ack(&plain->rhs[0]);
  cr_assert_eq(jobs.held, 2);
  qk_rhs_drop_solution(&keeps->rhs[0]);
  cr_assert(jobs.kept == 0 && keeps->kept == 0);
  leave(plain);
  cr_assert_eq(jobs.held, 1);
  leave(keeps);
}

/* A source that is to be on disk stays while its solution may have to be made again. */
Test(due, what_is_not_on_disk_yet_stays_and_is_counted) {
  qk_job_t *j = make(1, QUARK__SINK__SINK_DOWNLOAD);
  qk_err_t err = {0};
  for (int i = 0; i < 2; i++) {
    cr_assert_eq(qk_shm_create(&space, j->field_bytes, &j->rhs[i].source, &err), QK_OK);
    qk_rhs_unsave(&j->rhs[i], 1);
  }
  cr_assert_eq(jobs.unsaved, 2);
  const int64_t before = budget.used;
  end(j, 0, true);
  end(j, 1, false);
  cr_assert(j->rhs[0].source && !j->rhs[1].source, "it has ended without a solution");
  cr_assert_eq(jobs.unsaved, 1);
  qk_rhs_saved(&j->rhs[0]);
  cr_assert(!j->rhs[0].source && jobs.unsaved == 0);
  cr_assert_eq(budget.used, before - 3 * (int64_t)j->field_bytes);
  qk_job_destroy(j);
}
