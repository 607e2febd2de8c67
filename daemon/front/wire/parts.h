/*
 * parts.h: one message of a ROUTER socket: routing id and content. A peer may send any number of
 * parts; those beyond the content are thrown away.
 */
#ifndef QK_FRONT_PARTS_H
#define QK_FRONT_PARTS_H

#include <zmq.h>

#include "daemon/front/job/session.h"

/* The next message; the caller initialises msg, and closes it in any case. whole: it had one part
 * after the routing id. *rest: more parts of it are left after thousands; while that is so, calls
 * go on with them. False: nothing to read. */
bool qk_parts_receive(void *socket, bool *rest, qk_peer_t *peer, zmq_msg_t *msg, bool *whole);

#endif
