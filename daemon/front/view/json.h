/*
 * json.h: a message of quark.proto as JSON (jansson): an object with all its fields by their names.
 *
 * Absent fields, and numbers that are not finite, are null; enumerators are their names; fixed64, which are digests, 16
 * hexadecimal digits; texts are cleaned (daemon/base/utf8.h). Bytes are left out: quark.proto has them for identities alone.
 */
#ifndef QK_FRONT_JSON_H
#define QK_FRONT_JSON_H

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

/* NULL: no memory. */
json_t *qk_json_message(const ProtobufCMessage *message);

#endif
