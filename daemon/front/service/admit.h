/*
 * admit.h: decides whether a SUBMIT, CONTRACT or FIELD_OPEN is accepted: checks request, limits of
 * its user, and memory.
 */
#ifndef QK_FRONT_ADMIT_H
#define QK_FRONT_ADMIT_H

#include "daemon/front/service/service.h"

/* OK: it is in its session, or was there already; either has been told. Else why it is rejected, as
 * *err says, which is for the caller to tell. */
qk_status_t qk_admit_submit(qk_service_t *service, qk_session_t *session,
                            const Quark__Submit *submit, qk_err_t *err);
qk_status_t qk_admit_eigen(qk_service_t *service, qk_session_t *session, const Quark__Eigen *eigen,
                           qk_err_t *err);
qk_status_t qk_admit_contract(qk_service_t *service, qk_session_t *session,
                              const Quark__Contract *contract, qk_err_t *err);
/* JOIN. *gone: nothing, or who had the part before has lost it. */
qk_status_t qk_admit_join(qk_service_t *service, qk_session_t *session, const Quark__Join *join,
                          qk_err_t *err);
qk_status_t qk_admit_field(qk_service_t *service, qk_session_t *session,
                           const Quark__FieldOpen *open, qk_err_t *err);
/* Tells the results of the job once more. */
void qk_admit_repeat_results(qk_service_t *service, qk_session_t *session, qk_job_t *job);
/* A request that could not be recorded, and of which nothing has been told, is rejected after
 * all. */
void qk_admit_take_back(qk_service_t *service, qk_job_t *job, qk_err_t *err);

#endif
