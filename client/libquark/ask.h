/*
 * ask.h: asks the daemon something and waits for the answer; the answers of a connection so far.
 *
 * Threads  The caller holds the mutex of the connection. The connection's thread stores answers
 *          (report.h, setups.h, handlers.c); callers copy them.
 */
#ifndef QUARK_ASK_H
#define QUARK_ASK_H

#include "client/libquark/connection/connection.h"

typedef struct answers {
  uint64_t reports, shutdowns, setup_replies; /* so far */
  uint64_t activities;                        /* of the reports: those with activity */
  quark_report_t report;                      /* the latest, and all below */
  quark_activity_t activity;
  quark_setup_t setups[QUARK_SETUPS];
  quark_eigen_report_t eigen[QUARK_EIGEN_NAMES]; /* of the setup of the latest report */
  uint32_t neigen;
  uint32_t nsetups, setups_left; /* left: behind them */
} answers_t;

/* Sends a message, and again in each new session, until *answers grows. what: its name. Errors: the
 * daemon's refusal, the death of the connection, QUARK_TIMEOUT, QUARK_NO_MEMORY. */
quark_code_t quark__ask_locked(quark_connection_t *conn, const Quark__ClientMessage *message,
                               const uint64_t *answers, const char *what, quark_error_t *err);
/* The same for a message that only daemons with this feature understand. QUARK_UNSUPPORTED: this
 * one does not have it, and was not asked. */
quark_code_t quark__ask_for_locked(quark_connection_t *conn, const Quark__ClientMessage *message,
                                   unsigned feature, const uint64_t *answers, const char *what,
                                   quark_error_t *err);

#endif
