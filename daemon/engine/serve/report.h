/*
 * report.h: the engine's messages to the front (engine.proto), one function each. A NULL channel
 * (all ranks but rank 0) sends nothing. Errors: those of qk_channel_send.
 */
#ifndef QK_ENGINE_REPORT_H
#define QK_ENGINE_REPORT_H

#include "daemon/engine/modes/eigens.h"
#include "daemon/engine/serve/channel.h"
#include "daemon/engine/serve/inflight.h"
#include "daemon/engine/setup/loaded.h"

/* nonce: of ADOPT; NULL: the engine has just started. */
qk_status_t qk_report_hello(qk_channel_t *channel, int ranks, const uint64_t *nonce, bool loaded);
qk_status_t qk_report_load_progress(qk_channel_t *channel, const char *phase, int64_t done,
                                    int64_t total);
qk_status_t qk_report_ready(qk_channel_t *channel, const qk_loaded_t *setup, double seconds);
qk_status_t qk_report_load_failed(qk_channel_t *channel, const qk_err_t *err);
qk_status_t qk_report_fill_progress(qk_channel_t *channel, int entry, uint64_t serial,
                                    const qk_slot_t *state);
/* A slot that was filled and has ended. */
qk_status_t qk_report_fill_done(qk_channel_t *channel, const qk_result_t *result);
/* A FILL that was not taken up. */
qk_status_t qk_report_fill_refused(qk_channel_t *channel, uint32_t entry, uint64_t serial,
                                   const qk_err_t *err);
qk_status_t qk_report_contracted(qk_channel_t *channel, uint64_t serial, const qk_err_t *err,
                                 double seconds);
qk_status_t qk_report_eigen_progress(qk_channel_t *channel, const qk_eigens_progress_t *progress);
qk_status_t qk_report_eigen_done(qk_channel_t *channel, const qk_eigens_done_t *done);
/* An EIGEN that was not taken up. */
qk_status_t qk_report_eigen_refused(qk_channel_t *channel, uint64_t serial, const qk_err_t *err);
qk_status_t qk_report_heartbeat(qk_channel_t *channel, uint64_t steps, int64_t device_bytes,
                                int64_t host_bytes);
/* What has become of multigrid since READY. */
qk_status_t qk_report_multigrid(qk_channel_t *channel, const qk_mg_service_t *mg);
qk_status_t qk_report_fatal(qk_channel_t *channel, const qk_err_t *err);

#endif
