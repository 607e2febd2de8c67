/*
 * eigen.h: reads what the daemon says of eigenvectors. The calls of quark_eigen.h are in eigen.c.
 */
#ifndef QUARK_LIB_EIGEN_H
#define QUARK_LIB_EIGEN_H

#include "client/libquark/connection/connection.h"

/* Stores those of a STATUS, on the connection's thread. */
void quark__eigen_read_locked(quark_connection_t *conn, const Quark__SetupReport *m);

#endif
