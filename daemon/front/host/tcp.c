#include "daemon/front/host/tcp.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

uint64_t qk_tcp_read(int fd) {
  struct tcp_info info = {0};
  socklen_t size = sizeof info;
  int waiting = 0;
  /* in this order: what comes between the two calls is not waiting for more than has come */
  if (ioctl(fd, SIOCINQ, &waiting) != 0 ||
      getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      size < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received ||
      info.tcpi_bytes_received < (uint64_t)waiting)
    return 0;
  return info.tcpi_bytes_received - (uint64_t)waiting;
}
