#include "daemon/front/host/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/front/host/folder.h"

enum { IPC_PATH_MAX = 107, SOCKET_NAME_MAX = 32, PORT_MAX = 65535 };

/* tcp://...: with another colon. */
static bool names_port(const char *endpoint) {
  return strncmp(endpoint, "tcp://", 6) == 0 && strrchr(endpoint, ':') > endpoint + 5;
}

static qk_status_t tcp_endpoints(const char *listen, char *control, char *data, qk_err_t *err) {
  const char *colon = strrchr(listen, ':');
  const char *port_text = colon + 1;
  int host = (int)(colon - listen), end = -1;
  long port = 0;
  if (strcmp(port_text, "*") != 0 &&
      (sscanf(port_text, "%5ld%n", &port, &end) != 1 || port_text[end] != '\0' || port < 0))
    return qk_fail(err, QK_BAD_ARGUMENT, "listen = %s: must be tcp://HOST:PORT", listen);
  if (port >= PORT_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "listen = %s: ports end at %d, and data need the next one",
                   listen, PORT_MAX);
  if (port == 0) {
    snprintf(control, QK_ENDPOINT_MAX, "%.*s:*", host, listen);
    snprintf(data, QK_ENDPOINT_MAX, "%.*s:*", host, listen);
  } else {
    snprintf(control, QK_ENDPOINT_MAX, "%s", listen);
    snprintf(data, QK_ENDPOINT_MAX, "%.*s:%ld", host, listen, port + 1);
  }
  return QK_OK;
}

qk_status_t qk_runtime_endpoints(const char *listen, const char *listen_data,
                                 char control[QK_ENDPOINT_MAX], char data[QK_ENDPOINT_MAX],
                                 qk_err_t *err) {
  char next[QK_ENDPOINT_MAX];
  const size_t most = QK_ENDPOINT_MAX - 8;
  if (strlen(listen) > most || (listen_data && strlen(listen_data) > most))
    return qk_fail(err, QK_BAD_ARGUMENT, "listen: an endpoint has at most %zu bytes", most);
  qk_status_t s = QK_OK;
  if (names_port(listen)) {
    s = tcp_endpoints(listen, control, data, err);
  } else if (strncmp(listen, "ipc://", 6) == 0 && listen[6]) {
    snprintf(control, QK_ENDPOINT_MAX, "%s", listen);
    snprintf(data, QK_ENDPOINT_MAX, "%s-data", listen);
  } else {
    s = qk_fail(err, QK_BAD_ARGUMENT, "listen = %s: must be tcp://HOST:PORT or ipc://PATH", listen);
  }
  if (s != QK_OK || !listen_data) return s;
  if (names_port(listen_data)) return tcp_endpoints(listen_data, data, next, err);
  snprintf(data, QK_ENDPOINT_MAX, "%s", listen_data);
  return QK_OK;
}

bool qk_runtime_any_port(char endpoint[QK_ENDPOINT_MAX]) {
  if (!names_port(endpoint)) return false;
  snprintf(strrchr(endpoint, ':'), 3, ":*");
  return true;
}

bool qk_runtime_next_endpoint(const char *data, int i, char endpoint[QK_ENDPOINT_MAX]) {
  const bool tcp = names_port(data);
  const char *colon = strrchr(data, ':');
  const long port = tcp ? strtol(colon + 1, NULL, 10) : 0;
  int n;
  if (i == 0 || (tcp && port == 0))
    n = snprintf(endpoint, QK_ENDPOINT_MAX, "%s", data);
  else if (!tcp)
    n = snprintf(endpoint, QK_ENDPOINT_MAX, "%s-%d", data, i);
  else if (port + i > PORT_MAX)
    n = snprintf(endpoint, QK_ENDPOINT_MAX, "%.*s:*", (int)(colon - data), data);
  else
    n = snprintf(endpoint, QK_ENDPOINT_MAX, "%.*s:%ld", (int)(colon - data), data, port + i);
  return n < QK_ENDPOINT_MAX;
}

bool qk_runtime_local(const char *endpoint) {
  static const char *const local[] = {"ipc://", "tcp://127.", "tcp://[::1]:", "tcp://[::ffff:127."};
  for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
    if (strncmp(endpoint, local[i], strlen(local[i])) == 0) return true;
  return false;
}

static void name_any_host(char endpoint[QK_ENDPOINT_MAX], const char *name) {
  static const char *const any[] = {"tcp://0.0.0.0:", "tcp://[::]:"};
  for (size_t i = 0; i < sizeof any / sizeof any[0]; i++) {
    if (strncmp(endpoint, any[i], strlen(any[i])) != 0) continue;
    char port[16];
    snprintf(port, sizeof port, "%s", endpoint + strlen(any[i]));
    snprintf(endpoint, QK_ENDPOINT_MAX, "tcp://%s:%s", name, port);
    return;
  }
}

void qk_runtime_any_host(char endpoint[QK_ENDPOINT_MAX]) {
  name_any_host(endpoint, "*");
}

void qk_runtime_this_host(char endpoint[QK_ENDPOINT_MAX]) {
  char name[HOST_NAME_MAX + 1];
  if (gethostname(name, sizeof name) == 0) name_any_host(endpoint, name);
}

qk_status_t qk_runtime_engine_path(const char *given, char *path, size_t size, qk_err_t *err) {
  static const char *const places[] = {"quark-engine", "../engine/quark-engine",
                                       "../libexec/quarkd/quark-engine", "../libexec/quark-engine"};
  char self[PATH_MAX];
  if (given) {
    snprintf(path, size, "%s", given);
    if (access(path, X_OK) == 0) return QK_OK;
    return qk_fail(err, QK_NOT_FOUND, "engine = %.300s: %s", given, strerror(errno));
  }
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n < 0) return qk_fail(err, QK_INTERNAL, "/proc/self/exe: %s", strerror(errno));
  self[n] = '\0';
  *strrchr(self, '/') = '\0';
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    int length = snprintf(path, size, "%s/%s", self, places[i]);
    if (length > 0 && (size_t)length < size && access(path, X_OK) == 0) return QK_OK;
  }
  return qk_fail(err, QK_NOT_FOUND,
                 "quark-engine is not in %.200s, ../engine or ../libexec/quarkd: use --engine",
                 self);
}

qk_status_t qk_runtime_dir(char *dir, size_t size, qk_err_t *err) {
  const char *xdg = getenv("XDG_RUNTIME_DIR");
  bool use = xdg && xdg[0] == '/' && access(xdg, W_OK | X_OK) == 0 &&
             strlen(xdg) + sizeof "/quarkd-XXXXXX" + SOCKET_NAME_MAX < IPC_PATH_MAX;
  snprintf(dir, size, "%s/quarkd-XXXXXX", use ? xdg : "/tmp");
  if (mkdtemp(dir)) return QK_OK;
  qk_fail(err, QK_IO_ERROR, "%s: %s", dir, strerror(errno));
  dir[0] = '\0';
  return QK_IO_ERROR;
}

/* All folders of the path but the last name. */
static bool make_folders(char *path) {
  for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
    *slash = '\0';
    bool there = mkdir(path, 0700) == 0 || errno == EEXIST;
    *slash = '/';
    if (!there) return false;
  }
  return true;
}

/* "" where there is no such folder. */
static void state_file(char path[QK_PATH_MAX + 1]) {
  static const char *const places[][2] = {{"STATE_DIRECTORY", "/multigrid"},
                                          {"XDG_STATE_HOME", "/quarkd/multigrid"},
                                          {"HOME", "/.local/state/quarkd/multigrid"}};
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    const char *folder = getenv(places[i][0]);
    if (folder == NULL || folder[0] != '/') continue;
    int n = snprintf(path, QK_PATH_MAX + 1, "%s%s", folder, places[i][1]);
    if (n <= QK_PATH_MAX && make_folders(path)) return;
  }
  path[0] = '\0';
}

/* The folder of that name, where it is not there yet, and that nobody else may write into it. */
static qk_status_t open_state(const char *key, const char *dir, char *name, char real[PATH_MAX],
                              qk_err_t *err) {
  char what[QK_PATH_MAX + 16];
  if (!make_folders(name) || !realpath(dir, real))
    return qk_fail(err, QK_IO_ERROR, "%s = %s: %s", key, dir, strerror(errno));
  snprintf(what, sizeof what, "%s = %s", key, dir);
  return qk_folder_check(what, real, err);
}

qk_status_t qk_runtime_lock(const char *key, const char *dir, char path[QK_PATH_MAX + 1], int *out,
                            qk_err_t *err) {
  char real[PATH_MAX], name[PATH_MAX + 8], pid[24] = "";
  int fd;
  if (snprintf(name, sizeof name, "%s/lock", dir) > QK_PATH_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: a path of %zu bytes: the limit is %d", key,
                   strlen(dir), QK_PATH_MAX - 16);
  qk_status_t status = open_state(key, dir, name, real, err);
  if (status == QK_OK) status = qk_folder_open(name, &fd, err);
  if (status != QK_OK) return status;
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int e = errno;
    const ssize_t n = read(fd, pid, sizeof pid - 1);
    close(fd);
    if (e != EWOULDBLOCK) return qk_fail(err, QK_IO_ERROR, "%s: %s", name, strerror(e));
    return qk_fail(err, QK_BUSY, "%s = %s: another quarkd uses it (process %.*s)", key, dir,
                   n > 0 ? (int)strcspn(pid, "\n") : 1, n > 0 ? pid : "?");
  }
  snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
  if (ftruncate(fd, 0) != 0 || write(fd, pid, strlen(pid)) < 0) {
    qk_fail(err, QK_IO_ERROR, "%s: %s", name, strerror(errno));
    close(fd);
    return QK_IO_ERROR;
  }
  snprintf(path, QK_PATH_MAX + 1, "%s", real);
  *out = fd;
  return QK_OK;
}

qk_status_t qk_runtime_path(const char *key, const char *given, char path[QK_PATH_MAX + 1],
                            qk_err_t *err) {
  char here[PATH_MAX] = "";
  if (given[0] != '/' && getcwd(here, sizeof here) == NULL)
    return qk_fail(err, QK_IO_ERROR, "%s: current folder: %s", key, strerror(errno));
  int n = snprintf(path, QK_PATH_MAX + 1, "%s%s%s", here, here[0] ? "/" : "", given);
  if (n > QK_PATH_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: a path of %d bytes: the limit is %d", key, n,
                   QK_PATH_MAX);
  return QK_OK;
}

qk_status_t qk_runtime_checkpoint(const char *given, const char *state, char path[QK_PATH_MAX + 1],
                                  qk_err_t *err) {
  char in_state[QK_PATH_MAX + 16];
  path[0] = '\0';
  if (strcmp(given, "off") == 0) return QK_OK;
  if (strcmp(given, "auto") == 0 && !state) {
    state_file(path);
    return QK_OK;
  }
  if (strcmp(given, "auto") == 0) {
    snprintf(in_state, sizeof in_state, "%s/multigrid", state);
    given = in_state;
  }
  return qk_runtime_path("mg-checkpoint", given, path, err);
}

/* The file appears with its whole content at once; *fd is open. */
static qk_status_t write_file(const char *path, const char *text, int *fd, qk_err_t *err) {
  char part[PATH_MAX];
  const ssize_t n = (ssize_t)strlen(text);
  if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
    return qk_fail(err, QK_BAD_ARGUMENT, "a file name of %zu bytes is too long", strlen(path));
  unlink(part); /* of a front that was killed, or of others: it is not written to */
  *fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (*fd < 0) return qk_fail(err, QK_IO_ERROR, "%s: %s", part, strerror(errno));
  flock(*fd, LOCK_EX | LOCK_NB); /* where the file system has none nobody can tell */
  if (write(*fd, text, (size_t)n) == n && rename(part, path) == 0) return QK_OK;
  qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
  close(*fd);
  unlink(part);
  return QK_IO_ERROR;
}

qk_status_t qk_runtime_write_line(const char *path, const char *line, qk_err_t *err) {
  char text[QK_ENDPOINT_MAX + 2];
  int fd;
  snprintf(text, sizeof text, "%s\n", line);
  const qk_status_t status = write_file(path, text, &fd, err);
  if (status == QK_OK) close(fd);
  return status;
}

qk_status_t qk_runtime_announce(const char *path, const char *endpoint, int *fd, qk_err_t *err) {
  char text[QK_ENDPOINT_MAX + HOST_NAME_MAX + 160], host[HOST_NAME_MAX + 1] = "?", since[32];
  const char *job = getenv("SLURM_JOB_ID");
  const time_t now = time(NULL);
  struct tm utc;
  strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  gethostname(host, sizeof host - 1);
  snprintf(text, sizeof text, "%s\n# quarkd %ld on %s%s%.32s, since %s\n", endpoint, (long)getpid(),
           host, job ? ", Slurm job " : "", job ? job : "", since);
  return write_file(path, text, fd, err);
}

void qk_runtime_withdraw(const char *path, int fd) {
  struct stat ours, there;
  if (fd < 0) return;
  if (fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_ino == there.st_ino &&
      ours.st_dev == there.st_dev)
    unlink(path);
  close(fd);
}
