/*
 * outbox.h: messages to clients that wait until the journal has recorded their content. In order.
 * One thread.
 */
#ifndef QK_FRONT_OUTBOX_H
#define QK_FRONT_OUTBOX_H

#include "daemon/front/job/session.h"

typedef struct qk_outbox {
  qk_link_t letters;
} qk_outbox_t;

typedef void qk_deliver_fn(void *arg, const qk_peer_t *peer, const uint8_t *data, size_t bytes);

void qk_outbox_init(qk_outbox_t *outbox);
/* Copies. change: it waits until the journal holds all changes up to this one (marks.h), which is
 * not before those of earlier letters. job: of which it says what the journal does not hold yet; 0:
 * none, the letter is free and waits only to keep the order. False without memory. */
bool qk_outbox_add(qk_outbox_t *outbox, const qk_peer_t *peer, uint64_t change, int64_t job,
                   const uint8_t *data, size_t bytes);
/* Throws away what waits for that job. */
void qk_outbox_drop(qk_outbox_t *outbox, int64_t job);
/* Throws away what waits for this connection of the peer. */
void qk_outbox_drop_peer(qk_outbox_t *outbox, const qk_peer_t *peer);
/* The session of this connection has ended: throws away what waits about its requests. True if
 * something else waits. */
bool qk_outbox_end_session(qk_outbox_t *outbox, const qk_peer_t *peer);
/* Delivers the letters that wait for changes up to this one, and takes them out. */
void qk_outbox_flush(qk_outbox_t *outbox, uint64_t written, qk_deliver_fn *deliver, void *arg);
/* The free ones. */
void qk_outbox_flush_free(qk_outbox_t *outbox, qk_deliver_fn *deliver, void *arg);
/* Throws all away. */
void qk_outbox_fini(qk_outbox_t *outbox);

#endif
