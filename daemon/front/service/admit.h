/*
 * admit.h: whether a SUBMIT or CONTRACT is accepted: it, its user and the machine have what it takes.
 */
#ifndef QK_FRONT_ADMIT_H
#define QK_FRONT_ADMIT_H

#include "daemon/front/server.h"

/* Of all jobs. */
extern const qk_ties_t QK_SERVER_TIES;
void qk_admit_submit(qk_server_t *server, qk_session_t *session, const Quark__Submit *submit);
void qk_admit_contract(qk_server_t *server, qk_session_t *session, const Quark__Contract *contract);
void qk_admit_attach(qk_server_t *server, qk_session_t *session, qk_job_t *job);
/* A request that could not be recorded, and of which nothing has been told, is rejected after
 * all. */
void qk_admit_take_back(qk_server_t *server, qk_job_t *job);

#endif
