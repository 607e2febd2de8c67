/*
 * data.h: chunks of fields, in and out, by the data socket.
 */
#ifndef QK_FRONT_DATA_H
#define QK_FRONT_DATA_H

#include "daemon/front/server.h"

/* One turn of the socket. */
void qk_data_readable(void *server);
/* Sends some chunks; true while there are more that could go now. */
bool qk_data_send(qk_server_t *server);
/* A part of the job's upload has come: what is complete is queued and spooled, what has failed is told, and the credit
 * raised; told in any case where `tell`. ready, failed: NULL or of qk_job_upload, qk_job_put. */
void qk_data_arrived(qk_server_t *server, qk_session_t *session, qk_job_t *job, qk_rhs_t *ready,
                     qk_rhs_t *failed, bool tell);
/* Puts rhs into the list of downloads where there is something to send. */
void qk_data_offer(qk_server_t *server, qk_rhs_t *rhs);

#endif
