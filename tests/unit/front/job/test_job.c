/* Requests without a daemon: what an upload may do, and what memory is charged and returned. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "daemon/front/job/kept.h"

static const qk_shape_t SHAPE = {{4, 6, 8, 10}, QK_SITE_REALS, QK_PROPAGATOR_COLUMNS};
enum { SITES = 4 * 6 * 8 * 10, FIELD = SITES * 24 * 4 };

static uint8_t field[FIELD];
static qk_shm_space_t space;
static qk_budget_t budget;
static qk_terms_t terms;

static void setup(void) {
  for (size_t i = 0; i < sizeof field; i++) field[i] = (uint8_t)(i * 13 + i / 1000);
  budget = (qk_budget_t){.limit = 64 << 20, .what = "max-memory"};
  qk_shm_space_init(&space, NULL);
  terms = (qk_terms_t){
      .shape = &SHAPE, .kappa = 0.125, .budget = &budget, .space = &space, .keep = 100};
}

static Quark__Submit submit_of(uint32_t nrhs) {
  Quark__Submit s = QUARK__SUBMIT__INIT;
  s.request = 1;
  s.nrhs = nrhs;
  s.dtype = QUARK__DTYPE__DTYPE_F32;
  s.tol = 1e-8;
  s.source = QUARK__SOURCE_KIND__SOURCE_UPLOAD;
  s.sink = QUARK__SINK__SINK_DOWNLOAD;
  return s;
}

static qk_job_t *job_of(const Quark__Submit *s) {
  qk_job_t *job;
  qk_err_t err = {0};
  cr_assert_eq(qk_job_check(s, &SHAPE, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_job_create(s, &terms, &job, &err), QK_OK, "%s", err.text);
  return job;
}

/* Frame and payload, as a data thread deals with them. */
static qk_status_t take(qk_job_t *job, const qk_frame_t *f, const uint8_t *payload,
                        qk_rhs_t **ready) {
  qk_err_t err = {0}, wrote = {0};
  qk_rhs_t *failed;
  qk_chunk_t c;
  *ready = NULL;
  const qk_status_t s = qk_job_upload(job, f, 0, &c, &failed, &err);
  if (s != QK_OK || !c.transfer) return s;
  qk_transfer_write(c.transfer, payload + c.skip, f->chunk_bytes - c.skip, c.offset, NULL, &wrote);
  cr_assert_eq(qk_job_uploaded(&c, qk_frame_is_last(f) ? &f->field_checksum : NULL, &wrote, 0,
                               ready, &failed, &err),
               job);
  return err.code;
}

/* One chunk of `field` as right-hand side rhs. */
static qk_status_t chunk(qk_job_t *job, uint32_t rhs, uint64_t offset, uint32_t bytes,
                         qk_rhs_t **ready) {
  qk_frame_t f = {.kind = QK_FRAME_UPLOAD,
                  .request = 1,
                  .rhs = rhs,
                  .chunk_bytes = bytes,
                  .field_bytes = FIELD,
                  .offset = offset};
  if (qk_frame_is_last(&f)) f.field_checksum = qk_checksum(field, FIELD);
  return take(job, &f, field + offset, ready);
}

static int shm_objects(void) {
  int n = 0;
  char prefix[32];
  snprintf(prefix, sizeof prefix, "quarkd-%ld-", (long)getpid());
  DIR *dir = opendir("/dev/shm");
  for (struct dirent *e; (e = readdir(dir));) n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
  closedir(dir);
  return n;
}

static void check_nothing_is_left(void) {
  cr_assert_eq(budget.used, 0);
  cr_assert_eq(shm_objects(), 0);
  cr_assert_eq(qk_mem_bytes(), 0);
}

TestSuite(job, .init = setup);

Test(job, charges_all_it_may_need_and_refuses_what_does_not_fit) {
  qk_err_t err = {0};
  qk_job_t *job, *other;
  Quark__Submit s = submit_of(3);
  int64_t cost = qk_job_cost(&s, &SHAPE);
  cr_assert_geq(cost, 6 * FIELD);
  cr_assert_lt(cost, 6 * FIELD + 10000);
  budget.limit = 2 * cost - 1;
  job = job_of(&s);
  cr_assert_eq(budget.used, cost);
  cr_assert_eq(qk_job_create(&s, &terms, &other, &err), QK_BUSY);
  cr_assert_eq(budget.used, cost);
  qk_job_destroy(job);
  check_nothing_is_left();
  budget.limit = cost - 1;
  err = (qk_err_t){0};
  cr_assert_eq(qk_job_create(&s, &terms, &other, &err), QK_TOO_LARGE);
  s.sink = QUARK__SINK__SINK_NONE;
  cr_assert_lt(qk_job_cost(&s, &SHAPE), 3 * FIELD + 10000);
  const qk_shape_t huge = {{256, 256, 256, 127}, 24, 12}; /* the largest volume, just below 2^31 */
  s = submit_of(QK_REQUEST_RHS_MAX);
  s.dtype = QUARK__DTYPE__DTYPE_F64;
  cr_assert_eq(qk_job_cost(&s, &huge) >> 20, 127ll * 16 * 24 * 8 * 2048);
}

Test(job, has_fields_of_the_setup_s_shape) {
  const qk_shape_t colours = {{4, 6, 8, 10}, 6, 3}, flavours = {{4, 6, 8, 10}, 48, 24};
  Quark__Submit s = submit_of(1);
  cr_expect_eq(qk_job_field_bytes(&s, &SHAPE), FIELD);
  cr_expect_eq(qk_job_field_bytes(&s, &colours), FIELD / 4);
  cr_expect_eq(qk_job_field_bytes(&s, &flavours), 2 * FIELD);
}

Test(job, takes_an_upload_in_chunks_of_any_size) {
  Quark__Submit s = submit_of(2);
  qk_job_t *job = job_of(&s);
  qk_rhs_t *ready;
  cr_assert_eq(job->upload_until, 2 * FIELD);
  cr_assert_eq(chunk(job, 0, 0, 1, &ready), QK_OK);
  cr_assert_eq(chunk(job, 0, 1, 1000, &ready), QK_OK);
  cr_assert_null(ready);
  cr_assert_eq(chunk(job, 0, 1001, FIELD - 1001, &ready), QK_OK);
  cr_assert_eq(ready, &job->rhs[0]);
  cr_assert_eq(ready->state, QK_RHS_QUEUED);
  cr_assert_arr_eq(qk_shm_data(ready->source, NULL), field, FIELD);
  cr_assert_eq(chunk(job, 1, 0, FIELD, &ready), QK_OK);
  cr_assert_eq(ready, &job->rhs[1]);
  cr_assert_eq(shm_objects(), 2);
  qk_job_destroy(job);
  check_nothing_is_left();
}

Test(job, refuses_gaps_and_leaves_out_what_is_here) {
  Quark__Submit s = submit_of(2);
  qk_job_t *job = job_of(&s);
  qk_rhs_t *ready;
  cr_assert_eq(chunk(job, 0, 100, 100, &ready), QK_BAD_PROTOCOL);
  cr_assert_eq(chunk(job, 1, 0, 100, &ready), QK_BAD_PROTOCOL);
  cr_assert_eq(chunk(job, 2, 0, 100, &ready), QK_BAD_PROTOCOL);
  cr_assert_eq(chunk(job, 0, 0, 200, &ready), QK_OK);
  cr_assert_eq(chunk(job, 0, 0, 200, &ready), QK_OK); /* is here already */
  cr_assert_eq(chunk(job, 0, 100, 50, &ready), QK_OK);
  cr_assert_eq(chunk(job, 0, 100, 200, &ready), QK_OK); /* half of it is */
  cr_assert_eq(job->upload_next, 300);
  cr_assert_eq(chunk(job, 0, 301, 100, &ready), QK_BAD_PROTOCOL);
  cr_assert_eq(chunk(job, 0, 250, FIELD - 250, &ready), QK_OK);
  cr_assert_not_null(ready);
  cr_assert_arr_eq(qk_shm_data(ready->source, NULL), field, FIELD);
  qk_job_destroy(job);
  check_nothing_is_left();
}

Test(job, refuses_a_field_of_another_size_or_checksum) {
  Quark__Submit s = submit_of(1);
  qk_job_t *job = job_of(&s);
  qk_rhs_t *ready;
  qk_frame_t f = {
      .kind = QK_FRAME_UPLOAD, .request = 1, .chunk_bytes = 100, .field_bytes = FIELD + 1};
  cr_assert_eq(take(job, &f, field, &ready), QK_BAD_PROTOCOL);
  f = (qk_frame_t){.kind = QK_FRAME_UPLOAD,
                   .request = 1,
                   .chunk_bytes = FIELD,
                   .field_bytes = FIELD,
                   .field_checksum = qk_checksum(field, FIELD) + 1};
  cr_assert_eq(take(job, &f, field, &ready), QK_BAD_CHECKSUM);
  cr_assert_null(ready);
  cr_assert_eq(job->upload_next, 0); /* it may be sent again */
  cr_assert_eq(chunk(job, 0, 0, FIELD, &ready), QK_OK);
  cr_assert_not_null(ready);
  qk_job_destroy(job);
  check_nothing_is_left();
}

/* A chunk of the first field on its way into memory. */
static qk_chunk_t begin(qk_job_t *job, uint64_t offset, uint32_t bytes) {
  qk_err_t err = {0};
  qk_rhs_t *failed;
  qk_chunk_t c;
  const qk_frame_t f = {.kind = QK_FRAME_UPLOAD,
                        .request = 1,
                        .chunk_bytes = bytes,
                        .field_bytes = FIELD,
                        .offset = offset};
  cr_assert_eq(qk_job_upload(job, &f, 0, &c, &failed, &err), QK_OK, "%s", err.text);
  return c;
}

static qk_job_t *finish(const qk_chunk_t *c, uint64_t offset, uint32_t bytes, qk_rhs_t **ready,
                        qk_err_t *err) {
  const uint64_t sum = qk_checksum(field, FIELD);
  qk_rhs_t *failed;
  qk_err_t wrote = {0};
  qk_transfer_write(c->transfer, field + offset, bytes, offset, NULL, &wrote);
  return qk_job_uploaded(c, offset + bytes == FIELD ? &sum : NULL, &wrote, 0, ready, &failed, err);
}

Test(job, tells_of_chunks_when_they_are_in_memory) {
  Quark__Submit s = submit_of(2);
  qk_job_t *job = job_of(&s);
  qk_rhs_t *ready;
  qk_err_t err = {0};
  qk_chunk_t a = begin(job, 0, 1000), b = begin(job, 1000, FIELD - 1000);
  cr_assert_eq(job->upload_next, 0);
  cr_assert_null(begin(job, 0, 1000).transfer); /* again, from a client that has reconnected */
  cr_assert_eq(finish(&a, 0, 1000, &ready, &err), job);
  cr_assert_eq(job->upload_next, 1000);
  cr_assert_null(ready);
  cr_assert_eq(finish(&b, 1000, FIELD - 1000, &ready, &err), job);
  cr_assert_eq(job->upload_next, FIELD);
  cr_assert_eq(ready, &job->rhs[0]);
  qk_job_destroy(job);
  check_nothing_is_left();
}

Test(job, may_end_while_chunks_and_parts_are_on_their_way) {
  Quark__Submit s = submit_of(1);
  qk_job_t *job = job_of(&s);
  qk_rhs_t *ready;
  qk_err_t err = {0};
  const qk_outcome_t bad = {.status = QK_CANCELLED};
  qk_chunk_t a = begin(job, 0, 1000), b = begin(job, 1000, FIELD - 1000);
  qk_rhs_end(&job->rhs[0], &bad, 1.0); /* it is cancelled: what comes is thrown away */
  cr_assert_eq(finish(&a, 0, 1000, &ready, &err), job);
  cr_assert_null(ready);
  qk_job_destroy(job);
  cr_assert_null(finish(&b, 1000, FIELD - 1000, &ready, &err));
  cr_assert_null(ready);
  check_nothing_is_left();
}

/* A whole field by the local socket takes the place of what came in chunks, and is on its way. */
Test(job, forgets_chunks_of_a_field_that_comes_whole) {
  Quark__Submit s = submit_of(2);
  qk_job_t *job = job_of(&s);
  qk_rhs_t *ready;
  qk_shm_t *whole;
  qk_err_t err = {0};
  qk_chunk_t a = begin(job, 0, 1000);
  cr_assert_eq(qk_shm_create(&space, FIELD, &whole, &err), QK_OK);
  memcpy(qk_shm_data(whole, NULL), field, FIELD);
  qk_job_put(job, 0, whole, qk_checksum(field, FIELD), &ready);
  cr_assert_eq(ready, &job->rhs[0]);
  cr_assert_null(finish(&a, 0, 1000, &ready, &err));
  cr_assert_eq(job->upload_next, FIELD);
  cr_assert_eq(chunk(job, 1, 0, FIELD, &ready), QK_OK);
  cr_assert_eq(ready, &job->rhs[1]);
  qk_job_destroy(job);
  check_nothing_is_left();
}

/* The client has done nothing wrong: its right-hand side ends, its session does not. */
Test(job, ends_one_right_hand_side_if_its_memory_cannot_be_written) {
  Quark__Submit s = submit_of(2);
  qk_job_t *job = job_of(&s);
  qk_rhs_t *ready;
  qk_err_t err = {0};
  qk_chunk_t a = begin(job, 0, 1000), b = begin(job, 1000, FIELD - 1000);
  char segment[QK_SHM_NAME_MAX];
  memcpy(segment, a.transfer->segment, sizeof segment);
  snprintf(a.transfer->segment, sizeof segment, "/quarkd-none");
  cr_assert_eq(finish(&a, 0, 1000, &ready, &err), job);
  cr_assert_eq(job->rhs[0].state, QK_RHS_ENDED);
  cr_assert_eq(job->rhs[0].outcome.status, QK_NO_MEMORY);
  memcpy(b.transfer->segment, segment, sizeof segment); /* it can be written again, with a hole */
  cr_assert_eq(finish(&b, 1000, FIELD - 1000, &ready, &err), job);
  cr_assert_eq(err.code, QK_OK, "%s", err.text);
  cr_assert_null(ready);
  cr_assert_eq(chunk(job, 1, 0, FIELD, &ready), QK_OK);
  cr_assert_eq(ready, &job->rhs[1]);
  qk_job_destroy(job);
  check_nothing_is_left();
}

/* After a restart the front has the first part of a field in memory, and no checksum of it. */
Test(job, reads_back_what_a_restarted_upload_has) {
  Quark__Submit s = submit_of(1);
  qk_job_t *job = job_of(&s);
  qk_rhs_t *ready;
  qk_err_t err = {0};
  cr_assert_eq(qk_shm_create(&space, FIELD, &job->rhs[0].source, &err), QK_OK);
  memcpy(qk_shm_data(job->rhs[0].source, NULL), field, 5000);
  qk_job_resume_upload(job, 5000);
  cr_assert_eq(chunk(job, 0, 5000, FIELD - 5000, &ready), QK_OK);
  cr_assert_eq(ready, &job->rhs[0]);
  cr_assert_arr_eq(qk_shm_data(ready->source, NULL), field, FIELD);
  qk_job_destroy(job);
  check_nothing_is_left();
}

Test(job, grants_upload_credit_in_a_window) {
  Quark__Submit s = submit_of(64);
  qk_job_t *job = job_of(&s);
  qk_rhs_t *ready;
  cr_assert_eq(job->upload_until, QK_UPLOAD_WINDOW);
  uint64_t until = job->upload_until;
  for (uint32_t rhs = 0; rhs < 64; rhs++) {
    cr_assert_eq(chunk(job, rhs, 0, FIELD, &ready), QK_OK);
    if (qk_job_raise_credit(job)) {
      cr_assert_gt(job->upload_until, until);
      until = job->upload_until;
    }
    cr_assert_leq(job->upload_until - job->upload_next, QK_UPLOAD_WINDOW);
    cr_assert_leq(job->upload_until, 64 * (uint64_t)FIELD);
  }
  cr_assert_eq(job->upload_until, 64 * (uint64_t)FIELD);
  qk_job_destroy(job);

  job = job_of(&s);
  uint32_t last = QK_UPLOAD_WINDOW / FIELD;
  for (uint32_t rhs = 0; rhs < last; rhs++) cr_assert_eq(chunk(job, rhs, 0, FIELD, &ready), QK_OK);
  cr_assert_eq(chunk(job, last, 0, FIELD, &ready), QK_BAD_PROTOCOL); /* over the credit */
  qk_job_destroy(job);
}

static qk_rhs_t *solved(qk_job_t *job) {
  qk_rhs_t *ready, *rhs = &job->rhs[0];
  qk_err_t err = {0};
  const qk_outcome_t good = {.status = QK_OK, .written = true};
  cr_assert_eq(chunk(job, 0, 0, FIELD, &ready), QK_OK);
  cr_assert_eq(qk_shm_create(&space, FIELD, &rhs->solution, &err), QK_OK);
  memcpy(qk_shm_data(rhs->solution, NULL), field, FIELD);
  rhs->state = QK_RHS_RUNNING;
  job->running++;
  qk_rhs_end(rhs, &good, 1.0);
  return rhs;
}

Test(job, returns_memory_step_by_step) {
  Quark__Submit s = submit_of(1);
  qk_job_t *job = job_of(&s);
  int64_t all = budget.used;
  qk_rhs_t *rhs = solved(job);
  cr_assert_eq(budget.used, all - FIELD); /* the source */
  cr_assert_eq(shm_objects(), 1);
  qk_rhs_ack(rhs);
  cr_assert_eq(budget.used, all - 2 * FIELD);
  cr_assert_eq(shm_objects(), 0);
  qk_job_destroy(job);
  check_nothing_is_left();

  job = job_of(&s); /* an end without a solution returns both at once */
  const qk_outcome_t bad = {.status = QK_CANCELLED};
  qk_rhs_end(&job->rhs[0], &bad, 1.0);
  cr_assert_eq(budget.used, all - 2 * FIELD);
  cr_assert_eq(qk_rhs_bytes(&job->rhs[0]), 0);
  qk_job_destroy(job);
  check_nothing_is_left();
}

/* Sends until the grant is used up; returns the bytes sent and checks them. */
static uint64_t pump(qk_rhs_t *rhs, uint64_t *checksum) {
  static uint8_t bytes[FIELD];
  uint64_t sum = 0, piece;
  qk_err_t err = {0};
  while (qk_rhs_sendable(rhs)) {
    cr_assert_eq(qk_rhs_send(rhs, 3000, false), QK_OK);
    const uint64_t n = rhs->span_until - rhs->span_from;
    cr_assert_leq(n, 3000);
    cr_assert_eq(qk_transfer_read(rhs->leaving, bytes, n, rhs->span_from, false, &piece, &err),
                 QK_OK);
    cr_assert_arr_eq(bytes, field + rhs->span_from, n);
    *checksum = qk_transfer_checksum(rhs->leaving);
    cr_assert_eq(qk_rhs_sent(rhs->leaving, rhs->span_until), rhs);
    sum += n;
  }
  return sum;
}

Test(job, sends_again_what_a_client_has_not_taken) {
  Quark__Submit s = submit_of(1);
  qk_job_t *job = job_of(&s);
  qk_rhs_t *rhs = solved(job);
  uint64_t from = 500;
  qk_err_t err = {0};
  cr_assert_eq(qk_rhs_grant(rhs, FIELD, NULL, &err), QK_OK);
  cr_assert_eq(qk_rhs_send(rhs, 3000, false), QK_OK);
  cr_assert_eq(qk_rhs_sent(rhs->leaving, 1000), rhs); /* it took the first of them */
  cr_assert_eq(rhs->sent, 1000);
  cr_assert_eq(qk_rhs_send(rhs, 3000, false), QK_OK);
  cr_assert_eq(qk_rhs_grant(rhs, FIELD, &from, &err), QK_OK); /* and goes back meanwhile */
  cr_assert_eq(qk_rhs_sent(rhs->leaving, 4000), rhs);
  cr_assert_eq(rhs->sent, 500);
  cr_assert_eq(qk_rhs_send(rhs, 3000, false), QK_OK);
  qk_transfer_t *leaving = rhs->leaving;
  rhs->spilled = true;
  qk_rhs_unload(rhs); /* the solution leaves memory: nobody will know what came of that */
  cr_assert_eq(rhs->sent, 500);
  cr_assert_null(qk_rhs_sent(leaving, 3500));
  rhs->spilled = false;
  qk_job_destroy(job);
  check_nothing_is_left();
}

Test(job, sends_a_solution_under_credit_and_again_from_anywhere) {
  Quark__Submit s = submit_of(1);
  qk_job_t *job = job_of(&s);
  qk_rhs_t *rhs = solved(job);
  uint64_t sum = 0, back = 1000;
  qk_err_t err = {0};
  cr_assert_eq(pump(rhs, &sum), 0);
  cr_assert_eq(qk_rhs_grant(rhs, 5000, NULL, &err), QK_OK);
  cr_assert_eq(pump(rhs, &sum), 5000);
  cr_assert_eq(qk_rhs_grant(rhs, 4000, NULL, &err), QK_OK); /* grants never fall */
  cr_assert_eq(pump(rhs, &sum), 0);
  cr_assert_eq(qk_rhs_grant(rhs, FIELD, &back, &err), QK_OK);
  cr_assert_eq(pump(rhs, &sum), FIELD - back);
  cr_assert_eq(sum, qk_checksum(field, FIELD));
  back = 0;
  cr_assert_eq(qk_rhs_grant(rhs, FIELD, &back, &err), QK_OK);
  cr_assert_eq(pump(rhs, &sum), FIELD);
  cr_assert_eq(sum, qk_checksum(field, FIELD));
  cr_assert_eq(qk_rhs_grant(rhs, FIELD + 1, NULL, &err), QK_BAD_ARGUMENT);
  back = 6000;
  err = (qk_err_t){0};
  cr_assert_eq(qk_rhs_grant(rhs, 5000, &back, &err), QK_BAD_ARGUMENT);
  qk_job_destroy(job);
  check_nothing_is_left();
}

/* ---- what is kept -------------------------------------------------------------------------- */

typedef struct keeper {
  qk_sched_t sched;
  qk_sessions_t sessions;
  qk_session_t *session;
  qk_budget_t *quota;
} keeper_t;

static void keeper_init(keeper_t *k, int64_t quota) {
  const uint8_t id[QK_CLIENT_ID] = {1};
  qk_err_t err = {0};
  memset(k, 0, sizeof *k);
  qk_sched_init(&k->sched);
  cr_assert_eq(qk_session_create(&k->sessions, &k->sched, id, "ada", 0, &k->session, &err), QK_OK);
  terms.user = k->session->user;
  k->quota = qk_sched_user_kept(terms.user);
  k->quota->limit = quota;
}

static qk_job_t *keep(keeper_t *k, uint32_t nrhs, uint64_t request) {
  Quark__Submit s = submit_of(nrhs);
  s.request = request;
  s.sink = QUARK__SINK__SINK_KEEP;
  qk_job_t *job = job_of(&s);
  qk_list_append(&k->session->jobs, &job->link);
  return job;
}

static void solve(qk_rhs_t *rhs, double now) {
  qk_err_t err = {0};
  const qk_outcome_t good = {.status = QK_OK, .written = true};
  cr_assert_eq(qk_shm_create(&space, rhs->job->field_bytes, &rhs->solution, &err), QK_OK);
  rhs->state = QK_RHS_RUNNING;
  rhs->job->running++;
  qk_rhs_end(rhs, &good, now);
}

Test(job, charges_what_is_kept_to_its_user) {
  keeper_t k;
  keeper_init(&k, 3 * FIELD);
  qk_job_t *job = keep(&k, 2, 1), *other;
  qk_err_t err = {0};
  cr_assert_eq(k.quota->used, 2 * FIELD);
  Quark__Submit s = submit_of(2);
  s.sink = QUARK__SINK__SINK_KEEP;
  cr_assert_eq(qk_job_create(&s, &terms, &other, &err), QK_BUSY);
  cr_assert(strstr(err.text, "keep-memory"));
  s.nrhs = 4;
  err = (qk_err_t){0};
  cr_assert_eq(qk_job_create(&s, &terms, &other, &err), QK_TOO_LARGE);
  solve(&job->rhs[0], 1);
  qk_rhs_ack(&job->rhs[0]);
  cr_assert_eq(qk_kept_count(job), 1);
  cr_assert_eq(k.quota->used, 2 * FIELD); /* ACK frees nothing of it */
  const qk_outcome_t bad = {.status = QK_CANCELLED};
  qk_rhs_end(&job->rhs[1], &bad, 1);
  cr_assert_eq(k.quota->used, FIELD); /* no solution, nothing to keep */
  qk_job_destroy(job);
  cr_assert_eq(k.quota->used, 0);
  qk_session_destroy(&k.sessions, k.session);
  check_nothing_is_left();
}

Test(job, lives_on_while_its_solutions_are_in_use) {
  keeper_t k;
  keeper_init(&k, 100 * FIELD);
  qk_job_t *kept = keep(&k, 1, 1);
  solve(&kept->rhs[0], 1);
  Quark__Submit s = submit_of(2);
  Quark__Column c = QUARK__COLUMN__INIT, *columns[2] = {&c, &c};
  qk_err_t err = {0};
  s.request = 2;
  s.source = QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL;
  s.column = columns;
  s.n_column = 2;
  c.request = 1;
  qk_job_t *job = job_of(&s);
  cr_assert_eq(qk_kept_bind(k.session, job, &err), QK_OK, "%s", err.text);
  cr_assert_eq(job->rhs[1].uses[0], &kept->rhs[0]);
  cr_assert_eq(kept->holds, 2);
  cr_assert_not(qk_kept_expired(kept, 1e9));
  const qk_outcome_t end = {.status = QK_CANCELLED};
  qk_rhs_end(&job->rhs[0], &end, 5);
  cr_assert_eq(kept->used_at, 5);
  kept->forgotten = true;
  qk_job_settle(kept);
  cr_assert_eq(shm_objects(), 1); /* one of two still uses it */
  qk_rhs_end(&job->rhs[1], &end, 6);
  cr_assert_eq(shm_objects(), 0);
  cr_assert_eq(k.quota->used, 0);
  qk_job_destroy(job);
  qk_session_destroy(&k.sessions, k.session);
  check_nothing_is_left();
}

Test(job, expires_when_all_has_ended_and_its_time_is_over) {
  keeper_t k;
  keeper_init(&k, 100 * FIELD);
  qk_job_t *job = keep(&k, 2, 1);
  cr_assert_eq(job->keep, 100);
  solve(&job->rhs[0], 7);
  cr_assert_not(qk_kept_expired(job, 1000)); /* the other one has not ended */
  solve(&job->rhs[1], 9);
  cr_assert_not(qk_kept_expired(job, 109));
  cr_assert(qk_kept_expired(job, 109.1));
  qk_job_destroy(job);
  qk_session_destroy(&k.sessions, k.session);
  check_nothing_is_left();
}

Test(job, charges_a_contraction_for_its_result) {
  Quark__Channel meson = QUARK__CHANNEL__INIT, nucleon = meson, delta = meson;
  Quark__Channel *channel[3] = {&meson, &nucleon, &delta};
  Quark__Contraction c = QUARK__CONTRACTION__INIT;
  Quark__Contract m = QUARK__CONTRACT__INIT;
  int32_t momentum[6] = {0};
  nucleon.kind = QUARK__CHANNEL_KIND__CHANNEL_NUCLEON;
  delta.kind = QUARK__CHANNEL_KIND__CHANNEL_DELTA;
  m.contraction = &c;
  c.channel = channel;
  c.n_channel = 3;
  c.momentum = momentum;
  c.n_momentum = 6;
  qk_job_t *job;
  qk_err_t err = {0};
  cr_assert_eq(qk_job_create_contract(&m, &terms, &job, &err), QK_OK, "%s", err.text);
  cr_assert_eq(job->field_bytes, (1 + 16 + 144) * 2 * 10 * 16); /* channels, momenta, T, complex */
  cr_assert_eq(budget.used, qk_job_cost_contract(&m, &SHAPE));
  cr_assert_gt(budget.used, (int64_t)job->field_bytes);
  cr_assert_eq(job->rhs[0].state, QK_RHS_QUEUED);
  cr_assert_eq(job->upload_until, 0);
  qk_job_destroy(job);
  check_nothing_is_left();
}

Test(job, tells_a_repetition_from_another_request) {
  Quark__Submit a = submit_of(2), b = submit_of(2);
  cr_assert_eq(qk_job_digest(&a.base), qk_job_digest(&b.base));
  b.tol = 1e-9;
  cr_assert_neq(qk_job_digest(&a.base), qk_job_digest(&b.base));
}

Test(job, takes_the_factor_of_the_normalisation) {
  Quark__Submit s = submit_of(1);
  qk_job_t *job = job_of(&s);
  cr_assert_eq(job->factor, 1);
  qk_job_destroy(job);
  s.normalisation = QUARK__NORMALISATION__NORMALISATION_KAPPA;
  job = job_of(&s);
  cr_assert_eq(job->factor, 4); /* 1 / (2 kappa) */
  qk_job_destroy(job);
}

Test(job, takes_the_flavour_of_all_its_right_hand_sides) {
  Quark__Submit s = submit_of(2);
  s.has_flavour = true;
  for (s.flavour = -1; s.flavour <= 1; s.flavour++) {
    qk_job_t *job = job_of(&s);
    cr_assert_eq(job->flavour, s.flavour < 0 ? -1 : 1);
    Quark__Submit *again = quark__submit__unpack(NULL, job->message_bytes, job->message);
    cr_assert(again && again->flavour == s.flavour, "the journal has what came");
    quark__submit__free_unpacked(again, NULL);
    qk_job_destroy(job);
  }
}
