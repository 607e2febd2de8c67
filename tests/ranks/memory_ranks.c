/*
 * memory_ranks GX GY GZ GT: an overlap operator, and with it Lanczos, is made on that grid of
 * ranks, while its allocation 1, 2, 3, ... of device memory fails on the last rank alone, until
 * none is left to fail. Each failure must end on all ranks, with one status, and leave no memory
 * behind. So must those of host memory before Lanczos begins.
 */
#include <stdio.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/eigen/stored.h"
#include "tests/support/rig.h"
#include "tests/support/values.h"

static const char operator_text[] = "overlap;mass=0.2;M=1.3;modes=2;sign-tol=0.01";

/* Vectors that are not there: making the operator ends here, where Lanczos would begin. */
static qk_status_t no_vectors(void *self, qk_operator_t *op, int n, double residual,
                              qk_eigen_t **eigen, qk_err_t *err) {
  (void)self;
  (void)op;
  (void)n;
  (void)residual;
  (void)eigen;
  return qk_fail(err, QK_NOT_FOUND, "none");
}

static const qk_stored_t none = {.read = no_vectors};

static qk_status_t live(qk_rig_t *rig, const qk_stored_t *stored) {
  qk_err_t err = {0};
  qk_operator_t *op = NULL;
  qk_action_params_t p = params_wilson(0, 0, -1);
  p.values = values_of(operator_text);
  p.stored = stored;
  const qk_status_t status = qk_operator_create(&rig->dev, rig->work, rig->links, &p, &op, &err);
  if (op) op->ops->destroy(op);
  qk_work_trim(rig->work);
  return status;
}

static bool on_any(const qk_rig_t *rig, bool mine) {
  double is = mine;
  rig_must(qk_comm_max(rig->comm, &is, 1), "max", NULL);
  return is > 0;
}

/* True if it is as it should be: one status, and the memory of before. */
static bool fail_once(qk_rig_t *rig, const char *point, const qk_stored_t *stored, int n,
                      qk_status_t *status) {
  char fault[64];
  const int64_t host = qk_mem_bytes(), device = rig->dev.ops->allocated(rig->dev.ctx);
  const bool last = qk_comm_rank(rig->comm) == qk_comm_size(rig->comm) - 1;
  snprintf(fault, sizeof fault, "%s:%d", point, n);
  qk_fault_set(last ? fault : NULL);
  *status = live(rig, stored);
  qk_fault_set(NULL);
  int first = (int)*status;
  rig_must(qk_comm_bcast(rig->comm, &first, sizeof first, 0), "bcast", NULL);
  const bool stays = qk_mem_bytes() != host || rig->dev.ops->allocated(rig->dev.ctx) != device;
  const bool bad = first != (int)*status || stays || !qk_dev_ok(&rig->dev);
  if (bad) fprintf(stderr, "%s: %s%s\n", fault, qk_status_name(*status), stays ? ", a leak" : "");
  return !on_any(rig, bad);
}

/* Until it ends as without a failure. */
static bool fail_everywhere(qk_rig_t *rig, const char *point, const qk_stored_t *stored) {
  enum { MOST = 400, LEAST = 5 };
  qk_status_t status = live(rig, stored); /* what stays from a first time is there */
  const qk_status_t end = stored ? QK_NOT_FOUND : QK_OK;
  bool good = status == end;
  int n = 0;
  for (status = QK_INTERNAL; status != end && n < MOST;)
    if (!fail_once(rig, point, stored, ++n, &status)) good = false;
  if (qk_comm_rank(rig->comm) == 0) printf("%s: %d failures\n", point, n - 1);
  return good && status == end && n > LEAST;
}

int main(int argc, char **argv) {
  qk_comm_t *comm = rig_ranks(&argc, &argv, 1);
  qk_rig_t rig;
  if (!comm || argc != 5) {
    fprintf(stderr, "usage: memory_ranks GX GY GZ GT\n");
    return 64;
  }
  rig_open(&rig, comm, "builtin:weak:4x4x4x8:7", NULL);
  const bool host = fail_everywhere(&rig, "alloc", &none),
             device = fail_everywhere(&rig, "device-alloc", NULL);
  rig_close(&rig);
  return !host || !device;
}
