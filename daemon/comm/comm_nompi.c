/* Stands in for comm_mpi.c in a build without MPI. */
#include "daemon/comm/comm.h"

qk_status_t qk_comm_mpi_create(int *argc, char ***argv, qk_comm_t **comm, qk_err_t *err) {
  (void)argc, (void)argv, (void)comm;
  return qk_fail(err, QK_UNSUPPORTED, "this build has no MPI: only one rank is possible");
}
