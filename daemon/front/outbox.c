#include "daemon/front/outbox.h"

#include <string.h>

#include "daemon/base/mem.h"

typedef struct letter {
  qk_link_t link;
  qk_peer_t peer;
  size_t bytes;
  uint8_t data[];
} letter_t;

void qk_outbox_init(qk_outbox_t *outbox) {
  qk_link_init(&outbox->letters);
}

bool qk_outbox_add(qk_outbox_t *outbox, const qk_peer_t *peer, const uint8_t *data, size_t bytes) {
  letter_t *l = qk_malloc(sizeof *l + bytes);
  if (!l) return false;
  l->peer = *peer;
  l->bytes = bytes;
  memcpy(l->data, data, bytes);
  qk_link_init(&l->link);
  qk_list_append(&outbox->letters, &l->link);
  return true;
}

bool qk_outbox_has(const qk_outbox_t *outbox, const qk_peer_t *peer) {
  for (qk_link_t *l = outbox->letters.next; l != &outbox->letters; l = l->next)
    if (qk_peer_equal(&QK_HOLDER(l, letter_t, link)->peer, peer)) return true;
  return false;
}

void qk_outbox_flush(qk_outbox_t *outbox, qk_deliver_fn *deliver, void *arg) {
  while (!qk_link_alone(&outbox->letters)) {
    letter_t *l = QK_HOLDER(outbox->letters.next, letter_t, link);
    if (deliver) deliver(arg, &l->peer, l->data, l->bytes);
    qk_link_remove(&l->link);
    qk_free(l);
  }
}
