#include "daemon/front/state/digest.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/mem.h"

static const size_t SMALL = 1 << 18; /* bytes: some ten microseconds */

struct qk_digest_task {
  uv_work_t work;
  qk_rhs_t *rhs; /* NULL: abandoned */
  void *data;
  size_t bytes;
  uint64_t digest;
};

static void finish(qk_rhs_t *rhs, uint64_t digest) {
  rhs->digest = digest;
  rhs->digested = true;
  qk_marks_rhs(rhs);
}

static void run(uv_work_t *work) {
  qk_digest_task_t *t = work->data;
  t->digest = qk_checksum(t->data, t->bytes);
}

static void after(uv_work_t *work, int cancelled) {
  qk_digest_task_t *t = work->data;
  (void)cancelled;
  munmap(t->data, t->bytes);
  if (t->rhs) {
    t->rhs->digesting = NULL;
    finish(t->rhs, t->digest);
  }
  qk_free(t);
}

/* In a mapping of its own: the solution may be let go meanwhile. */
static void start(uv_loop_t *loop, qk_rhs_t *rhs) {
  qk_digest_task_t *t = qk_calloc(1, sizeof *t);
  const int fd = t ? qk_shm_open(rhs->solution, O_RDONLY) : -1;
  if (fd >= 0) t->data = mmap(NULL, rhs->solution->bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (fd >= 0) close(fd);
  if (fd < 0 || t->data == MAP_FAILED) {
    qk_free(t);
    return;
  }
  t->rhs = rhs;
  t->bytes = rhs->solution->bytes;
  t->work.data = t;
  rhs->digesting = t;
  uv_queue_work(loop, &t->work, run, after);
}

void qk_digest_begin(uv_loop_t *loop, qk_rhs_t *rhs) {
  if (!rhs->job->entry.marks || !rhs->solution || !rhs->outcome.written || rhs->job->field) return;
  if (rhs->solution->bytes > SMALL) {
    start(loop, rhs);
    return;
  }
  qk_err_t err = {0};
  const uint8_t *data = qk_shm_data(rhs->solution, &err);
  if (data) finish(rhs, qk_checksum(data, rhs->solution->bytes));
  qk_shm_unmap(rhs->solution);
}

void qk_digest_abandon(qk_rhs_t *rhs) {
  if (rhs->digesting) rhs->digesting->rhs = NULL;
  rhs->digesting = NULL;
}
