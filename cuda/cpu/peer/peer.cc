/* Flags and sums between ranks of the CPU backend, through shared memory (cuda/peer_ops.h). */
#include <sched.h>
#include <string.h>
#include <time.h>

#include "cuda/args/peer_args.h"
#include "cuda/body/peer.h"
#include "cuda/cpu/ctx.h"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

double now() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool there(const uint32_t *flag, uint32_t epoch) {
  return has_arrived(__atomic_load_n(flag, __ATOMIC_ACQUIRE), epoch);
}

/* Until the flag says `epoch` or a later one. Ranks may be more than cores: after a short while a
 * waiting one leaves its core to others, and after a long one it sleeps. */
bool wait_for(const uint32_t *flag, uint32_t epoch, double seconds) {
  const struct timespec pause = {0, 50000};
  for (int tries = 0; tries < 2000; tries++)
    if (there(flag, epoch)) return true;
  const double start = now();
  while (!there(flag, epoch)) {
    const double waited = now() - start;
    if (waited > seconds) return false;
    if (waited < 0.01)
      sched_yield();
    else
      nanosleep(&pause, NULL);
  }
  return true;
}

qk_status_t too_late(qk_ops_ctx_t *ctx, double seconds) {
  return qk_ctx_fail(ctx, QK_COMM_ERROR,
                     "another rank did not send within %g s: it has ended, or hangs", seconds);
}

} // namespace

qk_status_t signal(qk_ops_ctx_t *ctx, const qk_signal_args_t *a) {
  const qk_status_t status = qk_args_signal(ctx, a);
  if (status != QK_OK) return status;
  for (int i = 0; i < a->n; i++) __atomic_store_n(a->flag[i], *a->epoch + 1, __ATOMIC_RELEASE);
  return QK_OK;
}

qk_status_t await(qk_ops_ctx_t *ctx, const qk_signal_args_t *a) {
  const qk_status_t status = qk_args_signal(ctx, a);
  if (status != QK_OK) return status;
  for (int i = 0; i < a->n; i++)
    if (!wait_for(a->flag[i], *a->epoch + 1, a->seconds)) return too_late(ctx, a->seconds);
  *a->epoch += 1;
  return QK_OK;
}

qk_status_t peer_sum(qk_ops_ctx_t *ctx, const qk_peer_sum_args_t *a) {
  const qk_status_t status = qk_args_peer_sum(ctx, a);
  if (status != QK_OK) return status;
  const uint32_t epoch = *a->epoch + 1;
  for (int r = 0; r < a->ranks; r++) {
    memcpy(sum_slot(*a, r, a->rank, epoch), a->v, (size_t)a->n * sizeof *a->v);
    __atomic_store_n(sum_flag(*a, r, a->rank), epoch, __ATOMIC_RELEASE);
  }
  for (int r = 0; r < a->ranks; r++)
    if (!wait_for(sum_flag(*a, a->rank, r), epoch, a->seconds)) return too_late(ctx, a->seconds);
  for (int i = 0; i < a->n; i++) {
    double sum = 0;
    for (int r = 0; r < a->ranks; r++) sum += sum_slot(*a, a->rank, r, epoch)[i];
    a->v[i] = sum;
  }
  *a->epoch = epoch;
  return QK_OK;
}

} // namespace QK_NS
