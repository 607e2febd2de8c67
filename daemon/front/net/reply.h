/*
 * reply.h: messages to clients.
 */
#ifndef QK_FRONT_REPLY_H
#define QK_FRONT_REPLY_H

#include "daemon/front/net/net.h"
#include "daemon/front/service/setups.h"

qk_sent_t qk_reply_send(qk_net_t *net, const qk_peer_t *peer, Quark__ServerMessage *message);
/* Commits the journal and then sends the messages that wait for it. If the journal cannot be
 * written, new requests are taken back, and only messages about no request are sent. */
void qk_reply_waiting(qk_net_t *net);
void qk_reply_error(qk_net_t *net, const qk_peer_t *peer, qk_status_t status, const char *text,
                    bool fatal, uint64_t request);
/* On a connection without a session. What still waits for the one before is not told of its
 * requests, which may have the numbers of new ones; the rest of it goes before WELCOME. */
void qk_reply_begin(qk_net_t *net, qk_session_t *session);
void qk_reply_welcome(qk_net_t *net, const qk_session_t *session, bool resumed);
/* Messages about a request wait until the journal holds it. */
void qk_reply_accepted(qk_net_t *net, qk_session_t *session, qk_job_t *job, bool repeated);
/* ATTACHED, and the results of the job once more. */
void qk_reply_attach(qk_net_t *net, qk_session_t *session, qk_job_t *job);
void qk_reply_rejected(qk_net_t *net, const qk_peer_t *peer, uint64_t request, const qk_err_t *err);
void qk_reply_credit(qk_net_t *net, qk_session_t *session, qk_job_t *job);
void qk_reply_progress(qk_net_t *net, qk_session_t *session, const qk_job_t *job);
/* Ends the session if its queue is full. */
void qk_reply_result(qk_net_t *net, qk_session_t *session, qk_rhs_t *rhs);
void qk_reply_shutdown(qk_net_t *net, const qk_peer_t *peer, bool now);
void qk_reply_pong(qk_net_t *net, const qk_peer_t *peer);
/* STATUS: users, and then setups, that do not fit into the message are left out and counted. */
void qk_reply_status(qk_net_t *net, const qk_peer_t *peer, const qk_viewer_t *viewer,
                     const Quark__StatusRequest *request);
/* The answer to what changes a setup. */
void qk_reply_setup(qk_net_t *net, const qk_peer_t *peer, const qk_setup_t *setup);

#endif
