#include "proto/control.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- strings ------------------------------------------------------------------------------- */

enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };

/* Moves *at behind a varint. */
static bool scan_varint(const uint8_t **at, const uint8_t *end, uint64_t *value) {
  *value = 0;
  for (int shift = 0; shift < 64 && *at < end; shift += 7) {
    const uint8_t byte = *(*at)++;
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

static bool scan(const ProtobufCMessageDescriptor *type, const uint8_t *at, const uint8_t *end);

/* Moves *at behind a field; whether its strings are whole. */
static bool scan_field(const ProtobufCMessageDescriptor *type, const uint8_t **at,
                       const uint8_t *end) {
  uint64_t tag, n;
  if (!scan_varint(at, end, &tag) || tag >> 32) return false;
  const int wire = (int)(tag & 7);
  if (wire == WIRE_VARINT) return scan_varint(at, end, &n);
  if (wire == WIRE_BYTES) {
    if (!scan_varint(at, end, &n)) return false;
  } else {
    if (wire != WIRE_64 && wire != WIRE_32) return false;
    n = wire == WIRE_64 ? 8 : 4;
  }
  if (n > (uint64_t)(end - *at)) return false;
  const uint8_t *const data = *at;
  *at += n;
  const ProtobufCFieldDescriptor *field =
      wire == WIRE_BYTES ? protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3))
                         : NULL;
  if (field && field->type == PROTOBUF_C_TYPE_STRING) return n == 0 || !memchr(data, 0, n);
  return !field || field->type != PROTOBUF_C_TYPE_MESSAGE ||
         scan(field->descriptor, data, data + n);
}

/* Whether no string of the message holds a NUL: protobuf-c gives strings without their length, so
 * what follows would be lost unseen. Types do not contain themselves, so the depth is bounded. */
static bool scan(const ProtobufCMessageDescriptor *type, const uint8_t *at, const uint8_t *end) {
  while (at < end)
    if (!scan_field(type, &at, end)) return false;
  return true;
}

static bool may_unpack(const ProtobufCMessageDescriptor *type, const void *data, size_t bytes) {
  return bytes <= QK_CONTROL_MAX && (bytes == 0 || scan(type, data, (const uint8_t *)data + bytes));
}

/* ---- unpacking ----------------------------------------------------------------------------- */

Quark__ClientMessage *qk_control_unpack_client(const void *data, size_t bytes) {
  if (!may_unpack(&quark__client_message__descriptor, data, bytes)) return NULL;
  Quark__ClientMessage *m = quark__client_message__unpack(NULL, bytes, data);
  if (m) forget_unknown(&m->base);
  if (m && m->body_case != QUARK__CLIENT_MESSAGE__BODY__NOT_SET) return m;
  quark__client_message__free_unpacked(m, NULL);
  return NULL;
}

Quark__ServerMessage *qk_control_unpack_server(const void *data, size_t bytes) {
  if (!may_unpack(&quark__server_message__descriptor, data, bytes)) return NULL;
  Quark__ServerMessage *m = quark__server_message__unpack(NULL, bytes, data);
  if (m && m->body_case != QUARK__SERVER_MESSAGE__BODY__NOT_SET) return m;
  quark__server_message__free_unpacked(m, NULL);
  return NULL;
}

Quark__Engine__FrontMessage *qk_control_unpack_front(const void *data, size_t bytes) {
  if (!may_unpack(&quark__engine__front_message__descriptor, data, bytes)) return NULL;
  Quark__Engine__FrontMessage *m = quark__engine__front_message__unpack(NULL, bytes, data);
  if (m && m->body_case != QUARK__ENGINE__FRONT_MESSAGE__BODY__NOT_SET) return m;
  quark__engine__front_message__free_unpacked(m, NULL);
  return NULL;
}

Quark__Engine__EngineMessage *qk_control_unpack_engine(const void *data, size_t bytes) {
  if (!may_unpack(&quark__engine__engine_message__descriptor, data, bytes)) return NULL;
  Quark__Engine__EngineMessage *m = quark__engine__engine_message__unpack(NULL, bytes, data);
  if (m && m->body_case != QUARK__ENGINE__ENGINE_MESSAGE__BODY__NOT_SET) return m;
  quark__engine__engine_message__free_unpacked(m, NULL);
  return NULL;
}
