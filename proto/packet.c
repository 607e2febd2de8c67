#include "proto/packet.h"

#include <string.h>
#include <sys/socket.h>

bool qk_packet_send(int socket, const ProtobufCMessage *message, int fd) {
  uint8_t data[QK_LOCAL_MAX];
  struct iovec part = {.iov_base = data, .iov_len = protobuf_c_message_pack(message, data)};
  _Alignas(struct cmsghdr) uint8_t rights[CMSG_SPACE(sizeof fd)] = {0};
  struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
  if (fd >= 0) {
    header.msg_control = rights;
    header.msg_controllen = sizeof rights;
    struct cmsghdr *c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  return sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

ssize_t qk_packet_receive(int socket, qk_packet_t *packet) {
  _Alignas(struct cmsghdr) uint8_t rights[CMSG_SPACE(sizeof(int))];
  struct iovec part = {.iov_base = packet->data, .iov_len = sizeof packet->data};
  struct msghdr header = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = rights, .msg_controllen = sizeof rights};
  const ssize_t n = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  packet->bytes = n > 0 ? (size_t)n : 0;
  packet->count = 0;
  if (n < 0) return n;
  packet->whole = (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    packet->count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(packet->fd, CMSG_DATA(c), (size_t)packet->count * sizeof(int));
  }
  return n;
}
