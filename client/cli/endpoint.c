/* The place of a daemon: an endpoint, the file that quarkd wrote it to, or the contents of such a
 * file. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/cli/ctl.h"

/* A file that is not there yet is told from an endpoint by its slash. */
static bool is_path(const char *text) {
  return !strstr(text, "://") && (strchr(text, '/') != NULL || access(text, F_OK) == 0);
}

/* "# quarkd 42 on node3, Slurm job 7, since ..." behind the endpoint. */
static void read_words(const char *text, ctl_where_t *where) {
  const size_t n = strcspn(text, " \t\r\n");
  const char *note = strstr(text + n, "# ");
  snprintf(where->endpoint, sizeof where->endpoint, "%.*s", (int)n, text);
  for (size_t i = 0; note && note[2 + i] >= ' ' && note[2 + i] <= '~'; i++)
    if (i + 1 < sizeof where->who) where->who[i] = note[2 + i];
}

int ctl_where(const char *given, ctl_where_t *where) {
  char text[1024];
  *where = (ctl_where_t){.path = is_path(given) ? given : NULL};
  if (!where->path) {
    read_words(given, where);
    if (strstr(where->endpoint, "://")) return 0;
    ctl_complain("endpoint \"%s\": neither an endpoint such as tcp://HOST:PORT nor a file here",
                 where->endpoint);
    return EXIT_CONFIG;
  }
  FILE *f = fopen(given, "re");
  const int cause = errno;
  const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
  text[n] = '\0';
  if (f) fclose(f);
  read_words(text, where);
  if (strstr(where->endpoint, "://")) return 0;
  if (f)
    ctl_complain("%s: its first line is not an endpoint such as tcp://HOST:PORT", given);
  else if (cause == ENOENT)
    ctl_complain("%s: no such file: no quarkd with this --endpoint-file is running", given);
  else
    ctl_complain("%s: %s", given, strerror(cause));
  return !f && cause == ENOENT ? EXIT_UNAVAILABLE : EXIT_CONFIG;
}

char *ctl_where_lasting(const char *given) {
  char *path = is_path(given) ? realpath(given, NULL) : NULL;
  return path ? path : strndup(given, strcspn(given, " \t\r\n"));
}

/* A daemon locks its file as long as it lives. 1: the file is locked, 0: it is not, -1: unknown. */
static int is_held(const char *path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return -1;
  const int held = flock(fd, LOCK_SH | LOCK_NB) == 0 ? 0 : errno == EWOULDBLOCK ? 1 : -1;
  close(fd);
  return held;
}

/* ---- does somebody listen there? ---- */

/* Tries for a second. A host that does not answer counts as one where nobody listens. */
static bool takes_connection(int domain, const struct sockaddr *address, socklen_t bytes) {
  const int fd = socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct pollfd writable = {.fd = fd, .events = POLLOUT};
  int error = 0;
  socklen_t size = sizeof error;
  bool taken = fd >= 0 && connect(fd, address, bytes) == 0;
  if (fd >= 0 && !taken && errno == EINPROGRESS && poll(&writable, 1, 1000) == 1)
    taken = getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  if (fd >= 0) close(fd);
  return taken;
}

static bool port_listens(const char *host_and_port) {
  const char *colon = strrchr(host_and_port, ':');
  char host[sizeof((ctl_where_t *)NULL)->endpoint];
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  struct addrinfo *list;
  bool taken = false;
  if (!colon) return false;
  const bool brackets = host_and_port[0] == '[' && colon[-1] == ']';
  snprintf(host, sizeof host, "%.*s", (int)(colon - host_and_port) - 2 * brackets,
           host_and_port + brackets);
  if (getaddrinfo(host, colon + 1, &hints, &list) != 0) return false;
  for (const struct addrinfo *a = list; a && !taken; a = a->ai_next)
    taken = takes_connection(a->ai_family, a->ai_addr, a->ai_addrlen);
  freeaddrinfo(list);
  return taken;
}

bool ctl_where_listens(const ctl_where_t *where) {
  static const char TCP[] = "tcp://", IPC[] = "ipc://";
  struct sockaddr_un local = {.sun_family = AF_UNIX};
  if (strncmp(where->endpoint, TCP, strlen(TCP)) == 0)
    return port_listens(where->endpoint + strlen(TCP));
  if (strncmp(where->endpoint, IPC, strlen(IPC)) != 0) return false;
  snprintf(local.sun_path, sizeof local.sun_path, "%s", where->endpoint + strlen(IPC));
  return takes_connection(AF_UNIX, (const struct sockaddr *)&local, sizeof local);
}

void ctl_where_silent(const ctl_where_t *where) {
  const int held = where->path ? is_held(where->path) : -1;
  if (!where->who[0]) return;
  if (held == 0)
    ctl_complain("%s has ended and left %s behind: the next quarkd will overwrite it", where->who,
                 where->path);
  else if (held == 1)
    ctl_complain("%s runs, but does not answer: can %s be reached from here?", where->who,
                 where->endpoint);
  else
    ctl_complain("that was the endpoint of %s: is it still running?", where->who);
}
