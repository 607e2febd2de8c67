/*
 * eigen_from.h: vectors of a file that the daemon is to keep as eigenvectors.
 */
#ifndef QUARKCTL_EIGEN_FROM_H
#define QUARKCTL_EIGEN_FROM_H

#include "client/cli/ctl.h"
#include "client/quark.h"

/* Sends the vectors of the file, one by one, and tells under which request the daemon has them, how
 * many there are of a time slice, and how precise they are. Exit codes; errors have been told. */
int ctl_eigen_send(quark_connection_t *conn, const char *path, uint64_t *field, uint32_t *count,
                   bool *single);

#endif
