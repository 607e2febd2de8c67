#include "daemon/front/view/json.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/utf8.h"

static json_t *text(const char *words) {
  char *clean = words ? strdup(words) : NULL;
  if (!clean) return json_null();
  qk_utf8_clean(clean);
  json_t *string = json_string(clean);
  free(clean);
  return string;
}

static json_t *digest(uint64_t value) {
  char digits[17];
  snprintf(digits, sizeof digits, "%016" PRIx64, value);
  return json_string(digits);
}

static json_t *enumerator(const ProtobufCEnumDescriptor *kind, int number) {
  const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(kind, number);
  return value ? json_string(value->name) : json_null();
}

#define AS(type) (*(const type *)at)

/* The value at this address, which is there. */
static json_t *value_of(const ProtobufCFieldDescriptor *field, const void *at) {
  switch (field->type) {
  case PROTOBUF_C_TYPE_INT32:
  case PROTOBUF_C_TYPE_SINT32:
    return json_integer(AS(int32_t));
  case PROTOBUF_C_TYPE_UINT32:
    return json_integer(AS(uint32_t));
  case PROTOBUF_C_TYPE_UINT64:
    return json_integer((json_int_t)AS(uint64_t));
  case PROTOBUF_C_TYPE_FIXED64:
    return digest(AS(uint64_t));
  case PROTOBUF_C_TYPE_DOUBLE: {
    json_t *number = json_real(AS(double));
    return number ? number : json_null(); /* jansson has no NaN */
  }
  case PROTOBUF_C_TYPE_BOOL:
    return json_boolean(AS(protobuf_c_boolean));
  case PROTOBUF_C_TYPE_ENUM:
    return enumerator(field->descriptor, AS(int));
  case PROTOBUF_C_TYPE_STRING:
    return text(AS(char *));
  case PROTOBUF_C_TYPE_MESSAGE:
    return AS(ProtobufCMessage *) ? qk_json_message(AS(ProtobufCMessage *)) : json_null();
  default:
    return NULL;
  }
}

static size_t size_of(ProtobufCType type) {
  switch (type) {
  case PROTOBUF_C_TYPE_INT32:
  case PROTOBUF_C_TYPE_SINT32:
  case PROTOBUF_C_TYPE_UINT32:
  case PROTOBUF_C_TYPE_ENUM:
    return sizeof(uint32_t);
  case PROTOBUF_C_TYPE_BOOL:
    return sizeof(protobuf_c_boolean);
  case PROTOBUF_C_TYPE_STRING:
  case PROTOBUF_C_TYPE_MESSAGE:
    return sizeof(void *);
  default:
    return sizeof(uint64_t);
  }
}

static json_t *member(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *field) {
  const char *base = (const char *)m, *at = base + field->offset;
  const bool pointer =
      field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE;
  if (field->label == PROTOBUF_C_LABEL_OPTIONAL && !pointer &&
      !*(const protobuf_c_boolean *)(base + field->quantifier_offset))
    return json_null();
  if (field->label != PROTOBUF_C_LABEL_REPEATED) return value_of(field, at);
  const size_t n = *(const size_t *)(base + field->quantifier_offset);
  const char *first = AS(char *);
  json_t *list = json_array();
  for (size_t i = 0; i < n; i++)
    json_array_append_new(list, value_of(field, first + i * size_of(field->type)));
  return list;
}

json_t *qk_json_message(const ProtobufCMessage *m) {
  json_t *object = json_object();
  for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
    const ProtobufCFieldDescriptor *field = &m->descriptor->fields[i];
    json_object_set_new(object, field->name, member(m, field));
  }
  return object;
}
