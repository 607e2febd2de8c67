/* session_twist.h: SUBMITs of which something is wrong, or unusual. */
#ifndef QK_TESTS_SESSION_TWIST_H
#define QK_TESTS_SESSION_TWIST_H

#include <stdint.h>

#include "proto/quark.pb-c.h"

/* how: one field of the message, and what becomes of it; most numbers change nothing. */
void client_twist(Quark__Submit *s, uint8_t how);

#endif
