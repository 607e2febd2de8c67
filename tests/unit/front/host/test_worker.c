/* worker.h: work on threads beside a loop. */
#include "daemon/front/host/worker.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>

enum { MANY = 1000 };

typedef struct piece {
  qk_work_t work;
  struct rig *rig;
  int number;
  bool was_run, was_done;
  pthread_t thread;
  bool again; /* is given once more when it is done */
} piece_t;

typedef struct rig {
  qk_loop_t loop;
  qk_worker_t *worker;
  piece_t piece[MANY];
  int done, in_order; /* pieces that were done in the order of their numbers */
  int last;           /* stops the loop */
  uv_sem_t gate;
} rig_t;

static rig_t *rig;

static bool on_turn(void *arg) {
  (void)arg;
  return false;
}

static void begin(void) {
  qk_err_t err = {0};
  rig = calloc(1, sizeof *rig);
  cr_assert_eq(qk_loop_init(&rig->loop, on_turn, rig, &err), QK_OK, "%s", err.text);
  uv_sem_init(&rig->gate, 0);
}

static void open_worker(int threads) {
  qk_err_t err = {0};
  cr_assert_eq(qk_worker_open(&rig->loop, "test", threads, &rig->worker, &err), QK_OK, "%s",
               err.text);
}

static void end(void) {
  qk_worker_close(rig->worker);
  qk_loop_fini(&rig->loop);
  uv_sem_destroy(&rig->gate);
  free(rig);
}

TestSuite(worker, .init = begin, .fini = end);

static void run(qk_work_t *work) {
  piece_t *p = QK_HOLDER(work, piece_t, work);
  p->was_run = true;
  p->thread = pthread_self();
}

static void wait_and_run(qk_work_t *work) {
  uv_sem_wait(&rig->gate);
  run(work);
}

static void done(qk_work_t *work) {
  piece_t *p = QK_HOLDER(work, piece_t, work);
  p->was_done = true;
  rig->in_order += p->number == rig->done++;
  if (p->again) {
    p->again = false;
    qk_worker_give(rig->worker, &p->work);
  }
  if (rig->done == rig->last) qk_loop_stop(&rig->loop);
}

static piece_t *give(int i, void (*how)(qk_work_t *work)) {
  piece_t *p = &rig->piece[i];
  *p = (piece_t){.work = {.run = how, .done = done}, .rig = rig, .number = i};
  qk_worker_give(rig->worker, &p->work);
  return p;
}

Test(worker, one_thread_does_all_in_order_and_the_loop_hears_of_it) {
  open_worker(1);
  rig->last = MANY;
  for (int i = 0; i < MANY; i++) give(i, run);
  cr_assert_eq(qk_worker_busy(rig->worker), MANY);
  qk_loop_run(&rig->loop);
  cr_assert_eq(rig->in_order, MANY);
  cr_assert_eq(qk_worker_busy(rig->worker), 0);
  for (int i = 0; i < MANY; i++)
    cr_assert(rig->piece[i].was_run && !pthread_equal(rig->piece[i].thread, pthread_self()));
}

Test(worker, several_threads_work_side_by_side) {
  open_worker(2);
  piece_t *stuck = give(0, wait_and_run);
  rig->last = MANY - 1;
  for (int i = 1; i < MANY; i++) give(i, run);
  qk_loop_run(&rig->loop);
  cr_assert(!stuck->was_done && qk_worker_busy(rig->worker) == 1);
  uv_sem_post(&rig->gate);
  while (!stuck->was_done) qk_worker_wait(rig->worker, 1);
}

Test(worker, what_is_done_may_be_given_again) {
  open_worker(1);
  rig->piece[0] = (piece_t){.work = {.run = run, .done = done}, .rig = rig, .again = true};
  rig->last = 2;
  qk_worker_give(rig->worker, &rig->piece[0].work);
  qk_loop_run(&rig->loop);
  cr_assert_eq(rig->done, 2);
}

Test(worker, without_a_loop_it_can_be_waited_for) {
  open_worker(1);
  cr_assert(!qk_worker_wait(rig->worker, 10), "there is nothing to wait for");
  piece_t *stuck = give(0, wait_and_run);
  cr_assert(!qk_worker_wait(rig->worker, 0.01), "the time is over");
  uv_sem_post(&rig->gate);
  while (!qk_worker_wait(rig->worker, 10)) continue;
  cr_assert(stuck->was_done);
}

Test(worker, closing_waits_for_what_was_given) {
  open_worker(2);
  for (int i = 0; i < MANY; i++) give(i, run);
  qk_worker_close(rig->worker);
  rig->worker = NULL;
  cr_assert_eq(rig->done, MANY);
  for (int i = 0; i < MANY; i++) cr_assert(rig->piece[i].was_run);
}
