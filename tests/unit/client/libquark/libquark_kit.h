/*
 * libquark_kit.h: a daemon that only pretends, started for each test of the suite libquark and
 * judged at its end, and what tests do with a connection to it. Everything asserts.
 */
#ifndef QK_TESTS_LIBQUARK_KIT_H
#define QK_TESTS_LIBQUARK_KIT_H

#include "client/quark.h"
#include "tests/support/fake_daemon.h"

enum { LQ_FIELD = 9 * 1024 * 1024 + 4096, LQ_NRHS = 3 };

extern fake_daemon_t lq_fake;

/* The daemon's start and end; the suite does both for each test. */
void lq_setup(void);
void lq_teardown(void);

/* options may be NULL. */
quark_connection_t *lq_connect(const quark_options_t *options);
/* Uploads are to follow; point sources. The request. */
uint64_t lq_submit(quark_connection_t *conn, uint32_t nrhs);
uint64_t lq_submit_points(quark_connection_t *conn, uint32_t nrhs);
/* With columns of zeros, of which there are eight at most. */
uint64_t lq_submit_generated(quark_connection_t *conn, quark_params_t *p);
/* LQ_NRHS right-hand sides, no two chunks of which are equal; malloc'd. */
uint8_t *lq_stream(void);
void lq_upload(quark_connection_t *conn, uint64_t request, const uint8_t *stream, size_t piece);
/* Solutions are what was uploaded. */
void lq_expect_solutions(quark_connection_t *conn, uint64_t request, const uint8_t *stream);
/* All of it on a connection of its own, uploaded in pieces. */
void lq_round_trip(size_t piece);

#endif
