/*
 * net.h: the clients of the daemon, and what they are told.
 */
#ifndef QK_FRONT_NET_H
#define QK_FRONT_NET_H

#include "daemon/front/server.h"

/* What its clients are told, by their connections. */
qk_job_events_t qk_net_events(qk_server_t *server);

#endif
