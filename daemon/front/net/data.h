/*
 * data.h: chunks of fields, in and out, by the data socket.
 */
#ifndef QK_FRONT_DATA_H
#define QK_FRONT_DATA_H

#include "daemon/front/net/net.h"

/* One turn of the socket. */
void qk_data_readable(void *net);
/* Sends some chunks; true while there are more that could go now. */
bool qk_data_send(qk_net_t *net);
/* Puts rhs into the list of downloads where there is something to send. */
void qk_data_offer(qk_net_t *net, qk_rhs_t *rhs);

#endif
