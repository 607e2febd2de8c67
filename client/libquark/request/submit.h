/*
 * submit.h: sends a new request and waits for the daemon's answer.
 *
 * quark_submit and quark_contract are in submit.c too.
 */
#ifndef QUARK_SUBMIT_H
#define QUARK_SUBMIT_H

#include "client/libquark/request/request.h"

/* Adds r, which it takes, to the list and waits until it is accepted. r may be NULL or lack its
 * packed message: QUARK_NO_MEMORY. what: the name of the message. *request, *bytes (may be NULL):
 * its number and field_bytes. The caller holds the mutex. Errors: the refusal of the daemon,
 * QUARK_TIMEOUT; r is then released. */
quark_code_t quark__submit_locked(quark_connection_t *conn, request_t *r, const char *what,
                                  uint64_t *request, uint64_t *bytes, quark_error_t *err);
/* A request with the next number, in no list and without its packed message. NULL: no memory. */
request_t *quark__request_new(const quark_connection_t *conn, uint32_t nrhs);

#endif
