/*
 * control.h: messages of clients, by the control socket.
 */
#ifndef QK_FRONT_CONTROL_H
#define QK_FRONT_CONTROL_H

#include "daemon/front/net/net.h"

/* One turn of the socket. */
void qk_control_readable(void *net);

#endif
