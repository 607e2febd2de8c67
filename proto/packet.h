/*
 * packet.h: messages on the local socket between a client and the front, one packet each: a
 * protobuf of at most QK_LOCAL_MAX bytes, and at most one descriptor. These calls do not block.
 */
#ifndef QK_PROTO_PACKET_H
#define QK_PROTO_PACKET_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/limits.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qk_packet {
  uint8_t data[QK_LOCAL_MAX];
  size_t bytes;
  int fd[2]; /* as many as there is room for because of padding; they are the receiver's to close */
  int count; /* of descriptors that came */
  bool whole; /* nothing was cut off */
} qk_packet_t;

/* The message is one of quark.proto for the local socket. fd: a descriptor to send with it, which
 * stays the caller's; -1: none. False: errno says why. */
bool qk_packet_send(int socket, const ProtobufCMessage *message, int fd);

/* As recvmsg: 0 at the end of the connection, -1 and errno if there is none. */
ssize_t qk_packet_receive(int socket, qk_packet_t *packet);

#ifdef __cplusplus
}
#endif
#endif
