#include "daemon/front/net/outbox.h"

#include <string.h>

#include "daemon/base/mem.h"

typedef struct letter {
  qk_link_t link;
  qk_peer_t peer;
  uint64_t change;
  int64_t job;
  size_t bytes;
  uint8_t data[];
} letter_t;

static void throw_away(letter_t *l) {
  qk_link_remove(&l->link);
  qk_free(l);
}

void qk_outbox_init(qk_outbox_t *outbox) {
  qk_link_init(&outbox->letters);
}

bool qk_outbox_add(qk_outbox_t *outbox, const qk_peer_t *peer, uint64_t change, int64_t job,
                   const uint8_t *data, size_t bytes) {
  letter_t *l = qk_malloc(sizeof *l + bytes);
  if (!l) return false;
  l->peer = *peer;
  l->change = change;
  l->job = job;
  l->bytes = bytes;
  memcpy(l->data, data, bytes);
  qk_link_init(&l->link);
  qk_list_append(&outbox->letters, &l->link);
  return true;
}

void qk_outbox_drop_peer(qk_outbox_t *outbox, const qk_peer_t *peer) {
  for (qk_link_t *link = outbox->letters.next, *next; link != &outbox->letters; link = next) {
    letter_t *l = QK_HOLDER(link, letter_t, link);
    next = link->next;
    if (qk_peer_same(&l->peer, peer)) throw_away(l);
  }
}

bool qk_outbox_end_session(qk_outbox_t *outbox, const qk_peer_t *peer) {
  bool left = false;
  for (qk_link_t *link = outbox->letters.next, *next; link != &outbox->letters; link = next) {
    letter_t *l = QK_HOLDER(link, letter_t, link);
    next = link->next;
    if (!qk_peer_same(&l->peer, peer)) continue;
    left = left || l->job == 0;
    if (l->job != 0) throw_away(l);
  }
  return left;
}

void qk_outbox_drop(qk_outbox_t *outbox, int64_t job) {
  for (qk_link_t *link = outbox->letters.next, *next; link != &outbox->letters; link = next) {
    letter_t *l = QK_HOLDER(link, letter_t, link);
    next = link->next;
    if (l->job == job) throw_away(l);
  }
}

void qk_outbox_flush(qk_outbox_t *outbox, uint64_t written, qk_deliver_fn *deliver, void *arg) {
  while (!qk_link_alone(&outbox->letters)) {
    letter_t *l = QK_HOLDER(outbox->letters.next, letter_t, link);
    if (l->change > written) break;
    deliver(arg, &l->peer, l->data, l->bytes);
    throw_away(l);
  }
}

void qk_outbox_flush_free(qk_outbox_t *outbox, qk_deliver_fn *deliver, void *arg) {
  for (qk_link_t *link = outbox->letters.next, *next; link != &outbox->letters; link = next) {
    letter_t *l = QK_HOLDER(link, letter_t, link);
    next = link->next;
    if (l->job != 0) continue;
    deliver(arg, &l->peer, l->data, l->bytes);
    next = link->next; /* behind it there may be what the delivery has added */
    throw_away(l);
  }
}

void qk_outbox_fini(qk_outbox_t *outbox) {
  while (!qk_link_alone(&outbox->letters))
    throw_away(QK_HOLDER(outbox->letters.next, letter_t, link));
}
