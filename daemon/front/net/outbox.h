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

/* Which letters. */
typedef enum qk_letters { QK_LETTERS_ALL, QK_LETTERS_FREE } qk_letters_t;

typedef void qk_deliver_fn(void *arg, const qk_peer_t *peer, const uint8_t *data, size_t bytes);

void qk_outbox_init(qk_outbox_t *outbox);
/* Copies. job: of which it says what the journal does not hold yet; 0: none, the letter is free and
 * waits only to keep the order. False without memory. */
bool qk_outbox_add(qk_outbox_t *outbox, const qk_peer_t *peer, int64_t job, const uint8_t *data,
                   size_t bytes);
/* Throws away what waits for that job. */
void qk_outbox_drop(qk_outbox_t *outbox, int64_t job);
/* Throws away what waits for this connection of the peer. */
void qk_outbox_drop_peer(qk_outbox_t *outbox, const qk_peer_t *peer);
/* Delivers these letters and takes them out; with deliver NULL throws them away. */
void qk_outbox_flush(qk_outbox_t *outbox, qk_letters_t which, qk_deliver_fn *deliver, void *arg);

#endif
