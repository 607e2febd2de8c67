#include "proto/control.h"

#include <stdbool.h>
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

static void forget_unknown(ProtobufCMessage *message);

static void forget_in_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
  char *base = (char *)message;
  const void *quantifier = base + field->quantifier_offset, *at = base + field->offset;
  if (field->label == PROTOBUF_C_LABEL_REPEATED) {
    ProtobufCMessage *const *list = *(ProtobufCMessage *const *const *)at;
    for (size_t i = 0; i < *(const size_t *)quantifier; i++) forget_unknown(list[i]);
    return;
  }
  const bool other =
      (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && *(const uint32_t *)quantifier != field->id;
  if (!other) forget_unknown(*(ProtobufCMessage *const *)at);
}

/* protobuf-c keeps fields of other versions; they would reach the engine without being counted.
 * Types do not contain themselves, so the depth is bounded. */
static void forget_unknown(ProtobufCMessage *message) {
  if (!message) return;
  for (unsigned i = 0; i < message->n_unknown_fields; i++) free(message->unknown_fields[i].data);
  free(message->unknown_fields);
  message->unknown_fields = NULL;
  message->n_unknown_fields = 0;
  const ProtobufCMessageDescriptor *type = message->descriptor;
  for (unsigned i = 0; i < type->n_fields; i++)
    if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE) forget_in_field(message, &type->fields[i]);
}

Quark__ClientMessage *qk_control_unpack_client(const void *data, size_t bytes) {
  if (bytes > QK_CONTROL_MAX) return NULL;
  Quark__ClientMessage *m = quark__client_message__unpack(NULL, bytes, data);
  if (m) forget_unknown(&m->base);
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
