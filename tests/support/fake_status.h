/*
 * fake_status.h: what the daemon of fake_daemon.h says of itself. All pointers lead to static
 * storage, which the next call fills anew: for one thread at a time.
 */
#ifndef QK_TESTS_FAKE_STATUS_H
#define QK_TESTS_FAKE_STATUS_H

#include <stdbool.h>

#include "proto/quark.pb-c.h"

/* A setup that loads, and one that was refused. */
Quark__SetupState **fake_setups(void);

/* The answer to STATUS, with those two setups; activity: with slots and more users than a client
 * has room for. */
Quark__StatusReport *fake_status(bool activity);

#endif
