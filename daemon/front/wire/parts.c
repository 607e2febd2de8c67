#include "daemon/front/wire/parts.h"

#include <string.h>

enum { PARTS_AT_A_TIME = 4096 };

static void skip_some(void *socket, bool *rest) {
  for (int i = 0; i < PARTS_AT_A_TIME && *rest; i++) {
    zmq_msg_t part;
    zmq_msg_init(&part);
    *rest = zmq_msg_recv(&part, socket, ZMQ_DONTWAIT) >= 0 && zmq_msg_more(&part);
    zmq_msg_close(&part);
  }
}

bool qk_parts_receive(void *socket, bool *rest, qk_peer_t *peer, zmq_msg_t *msg, bool *whole) {
  skip_some(socket, rest);
  if (*rest || zmq_msg_recv(msg, socket, ZMQ_DONTWAIT) < 0) return false;
  /* ZMTP allows 255 bytes, libzmq any number: such a peer has no id here, and what it says is
   * junk. */
  const size_t id_bytes = zmq_msg_size(msg);
  peer->bytes = id_bytes <= sizeof peer->id ? (uint8_t)id_bytes : 0;
  peer->ended = false;
  memcpy(peer->id, zmq_msg_data(msg), peer->bytes);
  if (!zmq_msg_more(msg) || zmq_msg_recv(msg, socket, ZMQ_DONTWAIT) < 0) return false;
  *rest = zmq_msg_more(msg);
  *whole = !*rest && peer->bytes > 0;
  skip_some(socket, rest);
  return true;
}
