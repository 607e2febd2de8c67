/*
 * eigen_vectors.h: vectors of time slices, from a file to the daemon and back.
 */
#ifndef QUARKCTL_EIGEN_VECTORS_H
#define QUARKCTL_EIGEN_VECTORS_H

#include "client/cli/ctl.h"
#include "client/files/eigenfile.h"
#include "client/quark.h"

/* Sends the vectors of the file, one by one, and tells under which request the daemon has them, how
 * many there are of a time slice, and how precise they are. Exit codes; errors have been told. */
int ctl_eigen_send(quark_connection_t *conn, const char *path, uint64_t *field, uint32_t *count,
                   bool *single);

/* Writes the daemon's vectors of meta->name, `count` of each time slice, to a file that
 * ctl_eigen_send takes; single: in 32 bit. Exit codes likewise. */
int ctl_eigen_fetch(quark_connection_t *conn, const char *path, const qk_eigenmeta_t *meta,
                    uint32_t count, bool single);

#endif
