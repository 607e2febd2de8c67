#include "proto/control.h"

#include <stdlib.h>

#include "proto/limits.h"

uint8_t *qk_control_pack(const ProtobufCMessage *message, size_t *bytes) {
  *bytes = 0;
  size_t n = protobuf_c_message_get_packed_size(message);
  if (n > QK_CONTROL_MAX) return NULL;
  uint8_t *data = malloc(n ? n : 1);
  if (!data) return NULL;
  *bytes = protobuf_c_message_pack(message, data);
  return data;
}

ProtobufCMessage *qk_control_copy(const ProtobufCMessage *message) {
  size_t bytes;
  uint8_t *data = qk_control_pack(message, &bytes);
  if (!data) return NULL;
  ProtobufCMessage *copy = protobuf_c_message_unpack(message->descriptor, NULL, bytes, data);
  free(data);
  return copy;
}

Quark__ClientMessage *qk_control_unpack_client(const void *data, size_t bytes) {
  if (bytes > QK_CONTROL_MAX) return NULL;
  Quark__ClientMessage *m = quark__client_message__unpack(NULL, bytes, data);
  if (m && m->body_case != QUARK__CLIENT_MESSAGE__BODY__NOT_SET) return m;
  quark__client_message__free_unpacked(m, NULL);
  return NULL;
}

Quark__ServerMessage *qk_control_unpack_server(const void *data, size_t bytes) {
  if (bytes > QK_CONTROL_MAX) return NULL;
  Quark__ServerMessage *m = quark__server_message__unpack(NULL, bytes, data);
  if (m && m->body_case != QUARK__SERVER_MESSAGE__BODY__NOT_SET) return m;
  quark__server_message__free_unpacked(m, NULL);
  return NULL;
}

Quark__Engine__FrontMessage *qk_control_unpack_front(const void *data, size_t bytes) {
  if (bytes > QK_CONTROL_MAX) return NULL;
  Quark__Engine__FrontMessage *m = quark__engine__front_message__unpack(NULL, bytes, data);
  if (m && m->body_case != QUARK__ENGINE__FRONT_MESSAGE__BODY__NOT_SET) return m;
  quark__engine__front_message__free_unpacked(m, NULL);
  return NULL;
}

Quark__Engine__EngineMessage *qk_control_unpack_engine(const void *data, size_t bytes) {
  if (bytes > QK_CONTROL_MAX) return NULL;
  Quark__Engine__EngineMessage *m = quark__engine__engine_message__unpack(NULL, bytes, data);
  if (m && m->body_case != QUARK__ENGINE__ENGINE_MESSAGE__BODY__NOT_SET) return m;
  quark__engine__engine_message__free_unpacked(m, NULL);
  return NULL;
}
