#include "daemon/engine/launch/launch.h"

#include "daemon/engine/launch/numa.h"

#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SPARE_THREADS_MAX = 8 };

bool qk_launch_by_mpi(void) {
  static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
    if (getenv(variables[i]) != NULL) return true;
  return false;
}

qk_status_t qk_launch_comm(const char *kind, int *argc, char ***argv, qk_comm_t **comm,
                           qk_err_t *err) {
  bool mpi = strcmp(kind, "mpi") == 0 || (strcmp(kind, "auto") == 0 && qk_launch_by_mpi());
  return mpi ? qk_comm_mpi_create(argc, argv, comm, err) : qk_comm_self_create(comm, err);
}

void qk_launch_threads(const qk_comm_t *comm) {
  if (getenv("OMP_NUM_THREADS") != NULL) return;
  int share = (int)sysconf(_SC_NPROCESSORS_ONLN) / qk_comm_local_size(comm);
  int bound = omp_get_num_procs();
  if (share < 1) share = 1;
  omp_set_num_threads(share < bound ? share : bound);
}

int qk_launch_spare_threads(const qk_comm_t *comm) {
  cpu_set_t cpus;
  const int n = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
  const int share = n / (2 * qk_comm_local_size(comm));
  return share < 1 ? 1 : share > SPARE_THREADS_MAX ? SPARE_THREADS_MAX : share;
}

static qk_status_t same_kind(qk_comm_t *comm, bool cpu, qk_err_t *err) {
  double cpus = cpu;
  int size = qk_comm_size(comm);
  qk_status_t status = qk_comm_sum(comm, &cpus, 1);
  if (status != QK_OK) return qk_fail(err, status, "the ranks could not compare devices");
  if (cpus == 0 || cpus == size) return QK_OK;
  return qk_fail(err, QK_NO_DEVICE,
                 "only %d of %d ranks have a GPU: name the backend, or start fewer ranks",
                 size - (int)cpus, size);
}

qk_status_t qk_launch_ordinal(const qk_launch_place_t *place, int local, int size, int count,
                              int *ordinal, qk_err_t *err) {
  const int needed = place->replicas * size, at = place->replica * size + local;
  if (place->ndevices == 0 && needed > count)
    return qk_fail(err, QK_NO_DEVICE,
                   "%d replicas of %d ranks need %d devices of this host, which has %d: list those "
                   "that are shared several times (devices)",
                   place->replicas, size, needed, count);
  if (place->ndevices > 0 && needed > place->ndevices)
    return qk_fail(err, QK_NO_DEVICE, "%d replicas of %d ranks need %d devices: %d are listed",
                   place->replicas, size, needed, place->ndevices);
  for (int i = 0; i < place->ndevices; i++)
    if (place->device[i] >= (uint32_t)count)
      return qk_fail(err, QK_NO_DEVICE, "device = %u: this machine has %d (counted from 0)",
                     place->device[i], count);
  *ordinal = place->ndevices > 0 ? (int)place->device[at] : at;
  return QK_OK;
}

/* Where nothing is said of devices it is the number of the rank, and opening says what is wrong. */
static qk_status_t find_device(const qk_comm_t *comm, const qk_ops_t *ops,
                               const qk_launch_place_t *place, int *ordinal, qk_err_t *err) {
  int count = 0;
  *ordinal = qk_comm_local_rank(comm);
  if (!place || ops->host_memory || (place->replicas <= 1 && place->ndevices == 0)) return QK_OK;
  const qk_status_t status = ops->count(&count, err);
  if (status != QK_OK) return status;
  return qk_launch_ordinal(place, *ordinal, qk_comm_local_size(comm), count, ordinal, err);
}

static qk_status_t open_device(const qk_comm_t *comm, const qk_ops_t *ops,
                               const qk_launch_place_t *place, qk_ops_ctx_t **ctx, qk_err_t *err) {
  int ordinal;
  const qk_status_t status = find_device(comm, ops, place, &ordinal, err);
  return status == QK_OK ? ops->open(ordinal, ctx, err) : status;
}

qk_status_t qk_launch_device(qk_comm_t *comm, const char *backend, const qk_launch_place_t *place,
                             const qk_ops_t **ops, qk_ops_ctx_t **ctx, qk_err_t *err) {
  const qk_ops_t *found = qk_ops_by_name(backend);
  qk_ops_ctx_t *opened = NULL;
  qk_status_t status = QK_OK;
  if (found == NULL) {
    status = qk_fail(err, QK_NO_DEVICE, "backend '%s' is not there", backend);
  } else {
    status = open_device(comm, found, place, &opened, err);
  }
  status = qk_comm_agree(comm, status, err);
  if (status == QK_OK) status = same_kind(comm, found->host_memory, err);
  if (status != QK_OK) {
    if (opened != NULL) found->close(opened);
    return status;
  }
  if (place && place->bind) qk_numa_bind(comm, found, opened, place->replicas, place->replica);
  *ops = found;
  *ctx = opened;
  return QK_OK;
}
