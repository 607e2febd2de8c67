/*
 * data.h: chunks of fields, in and out, by the data threads (wire/data_thread.h): what is decided
 * of them.
 */
#ifndef QK_FRONT_DATA_H
#define QK_FRONT_DATA_H

#include "daemon/front/net/net.h"

/* A data thread hands over a parcel. */
void qk_data_take(void *net, qk_data_thread_t *thread, qk_parcel_t *parcel);
/* Notes whom the data threads have heard, before connections are looked at (guests.h). */
void qk_data_tick(qk_net_t *net);
/* Hands parts of solutions to the data threads; true while there are more that could go now. */
bool qk_data_send(qk_net_t *net);
/* Puts rhs into the list of downloads where there is something to send. */
void qk_data_offer(qk_net_t *net, qk_rhs_t *rhs);

#endif
