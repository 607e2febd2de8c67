/*
 * json.h: converts a message of quark.proto to JSON (jansson): an object with all fields by name.
 *
 * Absent fields and numbers that are not finite are null. Enumerators are their names; fixed64
 * (always digests) are 16 hexadecimal digits; texts are made valid (daemon/base/utf8.h). Bytes are
 * left out: quark.proto has them only for identities.
 */
#ifndef QK_FRONT_JSON_H
#define QK_FRONT_JSON_H

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

/* NULL: no memory. */
json_t *qk_json_message(const ProtobufCMessage *message);

#endif
