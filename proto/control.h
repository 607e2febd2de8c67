/*
 * control.h: converts control messages to bytes and back, within the size limit of limits.h. One
 * ZeroMQ message is one envelope (quark.proto, engine.proto).
 *
 * pack returns bytes from malloc, which the caller frees. It returns NULL (with *bytes = 0) without
 * memory, or if the message exceeds QK_CONTROL_MAX. unpack returns NULL if the bytes exceed the
 * limit, are not such a message, have a string with a NUL in it (protobuf-c would cut it there), or
 * have no body that this version knows; free its result with the generated ..__free_unpacked(m,
 * NULL). For messages of clients it removes fields that this version does not know, at any depth.
 */
#ifndef QK_PROTO_CONTROL_H
#define QK_PROTO_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include "proto/engine.pb-c.h"
#include "proto/quark.pb-c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Any of the four envelopes. */
uint8_t *qk_control_pack(const ProtobufCMessage *message, size_t *bytes);

/* A message with all it holds; of any kind. NULL where pack would be NULL. Free as the others. */
ProtobufCMessage *qk_control_copy(const ProtobufCMessage *message);

Quark__ClientMessage *qk_control_unpack_client(const void *data, size_t bytes);
Quark__ServerMessage *qk_control_unpack_server(const void *data, size_t bytes);
Quark__Engine__FrontMessage *qk_control_unpack_front(const void *data, size_t bytes);
Quark__Engine__EngineMessage *qk_control_unpack_engine(const void *data, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
