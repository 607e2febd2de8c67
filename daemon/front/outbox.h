/*
 * outbox.h: messages to clients that wait until the journal holds what they say. In order. One thread.
 */
#ifndef QK_FRONT_OUTBOX_H
#define QK_FRONT_OUTBOX_H

#include "daemon/front/session.h"

typedef struct qk_outbox {
  qk_link_t letters;
} qk_outbox_t;

typedef void qk_deliver_fn(void *arg, const qk_peer_t *peer, const uint8_t *data, size_t bytes);

void qk_outbox_init(qk_outbox_t *outbox);
/* Copies. False without memory. */
bool qk_outbox_add(qk_outbox_t *outbox, const qk_peer_t *peer, const uint8_t *data, size_t bytes);
/* Whether something waits for this peer. */
bool qk_outbox_has(const qk_outbox_t *outbox, const qk_peer_t *peer);
/* Delivers all and empties it; with deliver NULL throws all away. */
void qk_outbox_flush(qk_outbox_t *outbox, qk_deliver_fn *deliver, void *arg);

#endif
