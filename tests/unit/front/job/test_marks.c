/* What the journal has not recorded yet: marks, and the snapshots that one commit writes. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/front/job/snapshot.h"

static const qk_shape_t SHAPE = {{4, 6, 8, 10}, QK_SITE_REALS, QK_PROPAGATOR_COLUMNS};

static qk_shm_space_t space;
static qk_budget_t budget;
static qk_terms_t terms;
static qk_marks_t marks;
static qk_snapshot_t snapshot;
static qk_gone_t *left;
static qk_job_t *job;

static qk_job_t *job_of(uint64_t request, uint32_t nrhs) {
  Quark__Submit s = QUARK__SUBMIT__INIT;
  qk_job_t *made;
  qk_err_t err = {0};
  s.request = request;
  s.nrhs = nrhs;
  s.dtype = QUARK__DTYPE__DTYPE_F32;
  s.tol = 1e-8;
  s.source = QUARK__SOURCE_KIND__SOURCE_UPLOAD;
  s.sink = QUARK__SINK__SINK_DOWNLOAD;
  cr_assert_eq(qk_job_create(&s, &terms, &made, &err), QK_OK, "%s", err.text);
  return made;
}

static void setup(void) {
  budget = (qk_budget_t){.limit = 64 << 20, .what = "max-memory"};
  qk_shm_space_init(&space, NULL);
  terms = (qk_terms_t){
      .shape = &SHAPE, .kappa = 0.125, .budget = &budget, .space = &space, .keep = 100};
  qk_marks_init(&marks);
  job = job_of(1, 2);
}

static void check(void) {
  qk_job_destroy(job);
  qk_marks_fini(&marks);
  cr_assert_eq(budget.used, 0);
  cr_assert(qk_link_alone(&space.live));
  cr_assert_eq(qk_mem_bytes(), 0);
}

static void take(void) {
  cr_assert_eq(qk_snapshot_take(&marks, false, &snapshot), QK_OK);
}

static void written(void) {
  qk_snapshot_settle(&marks, &snapshot, &left);
  qk_gone_remove(left, NULL);
  qk_gone_free(&left);
}

static void commit(void) {
  take();
  written();
}

/* A field in shared memory that rows name. */
static qk_shm_t *named_field(void) {
  qk_shm_t *named;
  qk_err_t err = {0};
  cr_assert_eq(qk_shm_create(&space, 4096, &named, &err), QK_OK, "%s", err.text);
  named->stays = true;
  return named;
}

static void end(uint32_t rhs) {
  const qk_outcome_t outcome = {.status = QK_CANCELLED, .iterations = 7};
  qk_rhs_end(&job->rhs[rhs], &outcome, 1);
}

/* ---- marks --------------------------------------------------------------------------------- */

TestSuite(marks, .init = setup, .fini = check);

Test(marks, a_new_job_is_marked_until_it_is_written) {
  cr_assert(qk_marks_clean(&marks));
  qk_marks_enter(&marks, job);
  cr_assert_eq(job->entry.id, 1);
  cr_assert(!qk_marks_clean(&marks) && qk_marks_lack_job(job));
  cr_assert_eq(qk_marks_first_new(&marks), job);
  take();
  cr_assert(snapshot.sync, "a request is on the disk before its client hears of it");
  cr_assert(!qk_marks_clean(&marks) && qk_marks_lack_job(job));
  written();
  cr_assert(qk_marks_clean(&marks) && !qk_marks_lack_job(job));
  cr_assert_null(qk_marks_first_new(&marks));
}

Test(marks, an_end_is_recorded_with_the_commit_behind_it) {
  qk_marks_enter(&marks, job);
  commit();
  end(0);
  cr_assert(qk_marks_lack_rhs(&job->rhs[0]));
  take();
  cr_assert(!snapshot.sync, "the end of the machine may undo it");
  cr_assert(qk_marks_lack_rhs(&job->rhs[0]));
  written();
  cr_assert(!qk_marks_lack_rhs(&job->rhs[0]) && qk_marks_lack_rhs(&job->rhs[1]));
}

Test(marks, what_should_be_on_disk_waits_for_a_commit_that_is_brought_there) {
  qk_marks_enter(&marks, job);
  commit();
  qk_marks_sync(&marks, false);
  commit();
  cr_assert(marks.sync, "that one was not");
  cr_assert_eq(qk_snapshot_take(&marks, true, &snapshot), QK_OK);
  cr_assert(snapshot.sync && !marks.sync);
  qk_snapshot_put_back(&marks, &snapshot);
  cr_assert(marks.sync, "it has failed");
  qk_job_t *later = job_of(2, 1);
  qk_marks_enter(&marks, later);
  take();
  cr_assert(snapshot.sync && !marks.sync, "a new request takes it along");
  written();
  qk_job_destroy(later);
  commit();
}

Test(marks, a_change_is_written_with_the_snapshot_that_has_it) {
  cr_assert(qk_marks_has_written(NULL, 7), "without a journal nothing waits");
  qk_marks_enter(&marks, job);
  const uint64_t first = qk_marks_number(&marks);
  cr_assert(first > 0 && !qk_marks_has_written(&marks, first));
  take();
  end(0);
  const uint64_t second = qk_marks_number(&marks);
  cr_assert_gt(second, first);
  cr_assert(!qk_marks_has_written(&marks, first));
  written();
  cr_assert(qk_marks_has_written(&marks, first) && !qk_marks_has_written(&marks, second));
  take();
  qk_snapshot_put_back(&marks, &snapshot);
  cr_assert(!qk_marks_has_written(&marks, second));
  qk_marks_drop_session(&marks, job->client_id);
  cr_assert_gt(qk_marks_number(&marks), second, "a row that goes is a change");
  commit();
  cr_assert(qk_marks_has_written(&marks, qk_marks_number(&marks)));
  end(1);
  qk_marks_seal(&marks);
  cr_assert(qk_marks_has_written(&marks, qk_marks_number(&marks)), "nothing more comes");
}

Test(marks, memory_that_rows_may_name_waits_for_the_commit) {
  qk_marks_enter(&marks, job);
  qk_marks_release(job, named_field());
  cr_assert_eq(qk_marks_released_bytes(&marks), 4096);
  take();
  qk_marks_release(job, named_field());
  cr_assert_eq(qk_marks_released_bytes(&marks), 8192);
  written();
  cr_assert_eq(qk_marks_released_bytes(&marks), 4096);
  cr_assert(!qk_link_alone(&space.live));
  commit();
  cr_assert_eq(qk_marks_released_bytes(&marks), 0);
  cr_assert(qk_link_alone(&space.live));
}

Test(marks, memory_goes_with_the_commit_and_files_behind_it) {
  qk_marks_enter(&marks, job);
  qk_marks_release(job, named_field());
  qk_marks_release_file(job, NULL, 1);
  take();
  qk_snapshot_settle(&marks, &snapshot, &left);
  cr_assert(qk_link_alone(&space.live));
  cr_assert_eq(qk_marks_released_bytes(&marks), 0);
  cr_assert(left && !left->next && left->what == QK_GONE_FILE && left->index == 1);
  qk_gone_free(&left);
}

Test(marks, what_waits_for_the_disk_waits_for_a_commit_that_goes_there) {
  qk_marks_enter(&marks, job);
  commit();
  cr_assert(qk_marks_has_synced(&marks, qk_marks_number(&marks)), "a new request is synced");
  qk_marks_rhs(&job->rhs[0]);
  const uint64_t number = qk_marks_number(&marks);
  commit();
  cr_assert(qk_marks_has_written(&marks, number));
  cr_assert(!qk_marks_has_synced(&marks, number));
  qk_marks_sync(&marks, true);
  cr_assert_eq(qk_snapshot_take(&marks, true, &snapshot), QK_OK);
  cr_assert(!marks.sync && !marks.sync_now);
  written();
  cr_assert(qk_marks_has_synced(&marks, number));
}

Test(marks, what_vanishes_before_it_is_recorded_keeps_nobody_waiting) {
  qk_job_t *gone = job_of(2, 1);
  qk_marks_enter(&marks, gone);
  qk_marks_catch_up(&marks);
  cr_assert(!qk_marks_has_written(&marks, qk_marks_number(&marks)));
  qk_job_destroy(gone);
  qk_marks_catch_up(&marks);
  cr_assert(qk_marks_has_written(&marks, qk_marks_number(&marks)));
}

Test(marks, a_job_that_goes_takes_its_rows_along_if_there_are_any) {
  qk_marks_enter(&marks, job);
  qk_marks_drop_job(job);
  cr_assert(qk_marks_clean(&marks), "nothing was written of it");
  qk_marks_job(job);
  commit();
  qk_marks_drop_job(job);
  cr_assert_not_null(marks.gone);
  cr_assert_eq(marks.gone->what, QK_GONE_JOB);
  cr_assert_eq(marks.gone->job, 1);
  commit();
  cr_assert_null(marks.gone);
  job->entry.written = false; /* it is destroyed only now */
}

Test(marks, what_is_withdrawn_is_never_written_but_its_rows_are_removed) {
  qk_marks_enter(&marks, job);
  qk_marks_withdraw(job);
  cr_assert_null(qk_marks_first_new(&marks));
  cr_assert_not_null(marks.gone);
  qk_marks_rhs(&job->rhs[0]);
  cr_assert(!qk_marks_lack_job(job), "nothing is recorded of it any more");
}

Test(marks, nothing_is_recorded_once_they_are_sealed) {
  qk_marks_enter(&marks, job);
  commit();
  qk_marks_seal(&marks);
  qk_marks_job(job);
  cr_assert(!qk_marks_lack_job(job) && !qk_marks_lack_rhs(&job->rhs[0]));
  qk_marks_release(job, named_field());
  cr_assert(qk_link_alone(&space.live), "it goes at once");
  qk_marks_drop_session(&marks, job->client_id);
  cr_assert(qk_marks_clean(&marks) && !marks.gone);
}

Test(marks, without_a_journal_there_is_nothing_to_wait_for) {
  qk_marks_enter(NULL, job);
  qk_marks_job(job);
  cr_assert(!qk_marks_lack_job(job) && !qk_marks_lack_rhs(&job->rhs[0]));
  cr_assert(qk_marks_clean(NULL));
  qk_marks_release(job, named_field());
  cr_assert(qk_link_alone(&space.live));
}

/* ---- snapshots ------------------------------------------------------------------------------- */

TestSuite(snapshot, .init = setup, .fini = check);

Test(snapshot, it_has_the_rows_as_they_were_when_it_was_taken) {
  job->deadline = 12;
  qk_marks_enter(&marks, job);
  end(1);
  take();
  const qk_job_record_t *record = snapshot.jobs;
  cr_assert_not_null(record);
  cr_assert_null(record->next);
  cr_assert(record->is_new && record->id == 1 && record->new_request.request == 1);
  cr_assert_eq(record->new_request.deadline, 12);
  cr_assert_eq(record->new_request.message_bytes, job->message_bytes);
  cr_assert_arr_eq(record->new_request.message, job->message, job->message_bytes);
  cr_assert_eq(record->nrhs, 1);
  end(0); /* too late for this one */
  job->rhs[1].outcome.iterations = 8;
  cr_assert_eq(record->nrhs, 1);
  cr_assert_eq(record->rhs[0].index, 1);
  cr_assert_eq(record->rhs[0].state, QK_RHS_ENDED);
  cr_assert_eq(record->rhs[0].outcome.iterations, 7);
  written();
  cr_assert(qk_marks_lack_rhs(&job->rhs[0]) && !qk_marks_lack_rhs(&job->rhs[1]));
  take();
  cr_assert(!snapshot.jobs->is_new && !snapshot.jobs->changed);
  cr_assert_eq(snapshot.jobs->rhs[0].index, 0);
  written();
  cr_assert(qk_marks_clean(&marks));
}

Test(snapshot, what_could_not_be_written_is_marked_before_what_came_since) {
  qk_marks_enter(&marks, job);
  end(1);
  qk_marks_release(job, named_field());
  qk_marks_drop_session(&marks, job->client_id);
  take();
  cr_assert_null(qk_marks_first_new(&marks));
  qk_job_t *later = job_of(2, 1);
  qk_marks_enter(&marks, later);
  qk_marks_job(job);
  qk_marks_drop_row(&marks, 77);
  qk_snapshot_put_back(&marks, &snapshot);
  cr_assert_eq(qk_marks_first_new(&marks), job);
  cr_assert_eq(qk_marks_released_bytes(&marks), 4096);
  take();
  cr_assert(snapshot.sync);
  cr_assert(snapshot.jobs->job == job && snapshot.jobs->is_new && snapshot.jobs->nrhs == 1);
  cr_assert_eq(snapshot.jobs->next->job, later);
  cr_assert_null(snapshot.jobs->next->next);
  cr_assert_eq(snapshot.gone->what, QK_GONE_SESSION);
  cr_assert_eq(snapshot.gone->next->job, 77);
  written();
  cr_assert(qk_marks_clean(&marks) && qk_link_alone(&space.live));
  qk_job_destroy(later);
  commit();
}

Test(snapshot, a_job_may_be_destroyed_while_it_is_written) {
  qk_job_t *going = job_of(2, 1);
  qk_marks_enter(&marks, going);
  take();
  const size_t bytes = going->message_bytes;
  uint8_t *message = malloc(bytes);
  memcpy(message, going->message, bytes);
  qk_job_destroy(going);
  cr_assert_arr_eq(snapshot.jobs->new_request.message, message, bytes);
  free(message);
  written();
  cr_assert_not_null(marks.gone, "the row that has just been written is removed");
  cr_assert_eq(marks.gone->job, 1);
  commit();
  going = job_of(3, 1);
  qk_marks_enter(&marks, going);
  take();
  qk_job_destroy(going);
  qk_snapshot_put_back(&marks, &snapshot);
  cr_assert(qk_link_alone(&marks.changed));
  cr_assert_eq(marks.gone->job, 2, "a commit that failed may have left the row");
}

Test(snapshot, without_memory_everything_stays_marked) {
  qk_job_t *later = job_of(2, 1);
  qk_marks_enter(&marks, job);
  qk_marks_enter(&marks, later);
  qk_marks_sync(&marks, false);
  cr_assert_eq(qk_fault_set("alloc:2"), 0);
  cr_assert_eq(qk_snapshot_take(&marks, true, &snapshot), QK_NO_MEMORY);
  cr_assert(marks.sync);
  cr_assert_eq(qk_fault_set(NULL), 0);
  cr_assert_eq(qk_marks_first_new(&marks), job);
  take();
  cr_assert(snapshot.sync && snapshot.jobs->job == job && snapshot.jobs->next->job == later);
  written();
  qk_job_destroy(later);
}

/* More than one takes; what may be removed when all of it is written stays as long. */
Test(snapshot, its_memory_is_bounded) {
  enum { JOBS = 24, RHS = 1000 };
  static qk_job_t *many[JOBS];
  budget.limit = INT64_MAX;
  qk_marks_enter(&marks, job);
  commit();
  for (int i = 0; i < JOBS; i++) {
    many[i] = job_of(2 + (uint64_t)i, RHS);
    qk_marks_enter(&marks, many[i]);
    for (int k = 0; k < RHS; k++) qk_marks_rhs(&many[i]->rhs[k]);
  }
  qk_marks_release(job, named_field());
  qk_marks_drop_session(&marks, job->client_id);
  const uint64_t last = qk_marks_number(&marks);
  int jobs = 0, snapshots = 0;
  for (uint64_t before = 0; !qk_marks_clean(&marks); snapshots++) {
    take();
    const bool is_last = qk_link_alone(&marks.changed);
    cr_assert_lt(snapshot.bytes, QK_SNAPSHOT_BYTES + (512 << 10));
    cr_assert(is_last == (snapshot.released != NULL) && is_last == (snapshot.gone != NULL));
    cr_assert_gt(snapshot.number, before);
    before = snapshot.number;
    for (const qk_job_record_t *r = snapshot.jobs; r; r = r->next) {
      cr_assert_eq(r->job, many[jobs++]);
      cr_assert_eq(r->nrhs, RHS);
    }
    written();
    cr_assert_eq(qk_marks_has_written(&marks, last), is_last);
  }
  cr_assert(jobs == JOBS && snapshots > 1, "%d, %d", jobs, snapshots);
  for (int i = 0; i < JOBS; i++) qk_job_destroy(many[i]);
  commit();
}
