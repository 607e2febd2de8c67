#include "daemon/front/net/clients.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "proto/frame.h"

enum { PATH_BYTES = 4096, FILE_BYTES_MAX = 4096 };
/* Times of files are those of the last tick of the kernel's clock: 10 ms at most. */
static const double FRESH_SECONDS = 0.02;

static const char *const ROLES[] = {"read", "submit", "operate"};
enum { ROLE_COUNT = sizeof ROLES / sizeof ROLES[0] };

const char *qk_role_name(qk_role_t role) {
  return ROLES[role];
}

/* ---- one file ------------------------------------------------------------------------------ */

typedef struct reading {
  qk_client_t client;
  bool key, user, role;
  qk_err_t err;
} reading_t;

static bool take_role(const char *value, qk_role_t *role) {
  for (int i = 0; i < ROLE_COUNT; i++) {
    if (strcmp(value, ROLES[i]) != 0) continue;
    *role = (qk_role_t)i;
    return true;
  }
  return false;
}

static bool take_user(const char *value, char user[QK_USER_MAX + 1]) {
  const size_t n = strlen(value);
  for (size_t i = 0; i < n; i++)
    if (value[i] <= ' ' || value[i] > '~') return false;
  if (n == 0 || n > QK_USER_MAX) return false;
  memcpy(user, value, n + 1);
  return true;
}

/* Values are not shown: somebody may have put a secret there. */
static int take(void *arg, const char *section, const char *name, const char *value) {
  reading_t *r = arg;
  bool *given = strcmp(name, "key") == 0    ? &r->key
                : strcmp(name, "user") == 0 ? &r->user
                : strcmp(name, "role") == 0 ? &r->role
                                            : NULL;
  if (section[0] || !given) {
    qk_fail(&r->err, QK_BAD_FORMAT, "it has names other than key, user and role");
    return 0;
  }
  if (*given) qk_fail(&r->err, QK_BAD_FORMAT, "%s is given twice", name);
  *given = true;
  if (given == &r->key && !qk_key_valid(value))
    qk_fail(&r->err, QK_BAD_FORMAT, "key must be %d characters of Z85", QK_KEY_TEXT - 1);
  else if (given == &r->key)
    memcpy(r->client.key, value, QK_KEY_TEXT);
  if (given == &r->user && !take_user(value, r->client.user))
    qk_fail(&r->err, QK_BAD_FORMAT, "user must be 1 to %d printable characters", QK_USER_MAX);
  if (given == &r->role && !take_role(value, &r->client.role))
    qk_fail(&r->err, QK_BAD_FORMAT, "role must be read, submit or operate");
  return r->err.code == QK_OK;
}

static qk_status_t check_mode(const struct stat *st, qk_err_t *err) {
  if (!S_ISREG(st->st_mode)) return qk_fail(err, QK_DENIED, "not a regular file");
  if (st->st_mode & (S_IWGRP | S_IWOTH))
    return qk_fail(err, QK_DENIED, "mode %04o lets others write it: chmod go-w it",
                   (unsigned)st->st_mode & 07777);
  if (st->st_size > FILE_BYTES_MAX)
    return qk_fail(err, QK_BAD_FORMAT, "%lld bytes: the limit is %d", (long long)st->st_size,
                   FILE_BYTES_MAX);
  return QK_OK;
}

static qk_status_t read_stream(FILE *in, reading_t *r) {
  const int line = ini_parse_file(in, take, r);
  if (ferror(in)) return qk_fail(&r->err, QK_IO_ERROR, "%s", strerror(errno));
  if (line != 0) qk_fail(&r->err, QK_BAD_FORMAT, "line %d is not name = value", line);
  if (!r->key || !r->user || !r->role)
    qk_fail(&r->err, QK_BAD_FORMAT, "%s is missing", !r->key ? "key" : !r->user ? "user" : "role");
  return r->err.code;
}

qk_status_t qk_clients_read_file(const char *path, qk_client_t *client, qk_err_t *err) {
  struct stat st;
  reading_t r = {.key = false};
  const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  FILE *in = NULL;
  if (fd < 0 || fstat(fd, &st) != 0)
    qk_fail(&r.err, QK_IO_ERROR, "%s", strerror(errno));
  else if (check_mode(&st, &r.err) == QK_OK && !(in = fdopen(fd, "r")))
    qk_fail(&r.err, QK_NO_MEMORY, "%s", strerror(errno));
  if (in) read_stream(in, &r);
  if (in)
    fclose(in);
  else if (fd >= 0)
    close(fd);
  if (r.err.code != QK_OK) return qk_fail(err, r.err.code, "%.300s: %s", path, r.err.text);
  *client = r.client;
  return QK_OK;
}

/* ---- the folder ---------------------------------------------------------------------------- */

static int is_client(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

/* What changes with every change of the file, and of nothing else. */
static uint64_t mark(const char *name, const struct stat *st) {
  char text[512];
  int n = snprintf(text, sizeof text, "%s %llu %lld.%09ld %lld.%09ld %lld %o", name,
                   (unsigned long long)st->st_ino, (long long)st->st_mtim.tv_sec,
                   st->st_mtim.tv_nsec, (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec,
                   (long long)st->st_size, (unsigned)st->st_mode);
  return qk_checksum(text, n < (int)sizeof text ? (size_t)n : sizeof text);
}

static uint64_t place(const char *folder, bool *fresh) {
  struct stat st;
  struct timespec now; /* of the clock that files get their times from */
  *fresh = false;
  if (stat(folder, &st) != 0) return (uint64_t)errno;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  const double age =
      (double)(now.tv_sec - st.st_mtim.tv_sec) + 1e-9 * (double)(now.tv_nsec - st.st_mtim.tv_nsec);
  *fresh = age >= 0 && age < FRESH_SECONDS;
  return mark("", &st);
}

static uint64_t look(const char *folder, struct dirent **entry, int n) {
  struct stat st = {0};
  char path[PATH_BYTES];
  if (stat(folder, &st) != 0) return (uint64_t)errno;
  uint64_t sum = 1 + (uint64_t)n + ((uint64_t)st.st_mode << 32);
  for (int i = 0; i < n; i++) {
    struct stat of = {0};
    snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
    if (stat(path, &of) != 0) of.st_size = -errno;
    sum += mark(entry[i]->d_name, &of);
  }
  return sum ? sum : 1;
}

/* What may be over soon, and leaves no trace in names and times. */
static bool is_momentary(qk_status_t status) {
  return status == QK_IO_ERROR || status == QK_NO_MEMORY;
}

static void add(qk_clients_t *clients, const char *path, bool tell) {
  qk_err_t err = {0};
  qk_client_t *new = &clients->at[clients->count];
  const qk_status_t status = qk_clients_read_file(path, new, &err);
  if (status == QK_OK && qk_clients_find(clients, new->key))
    qk_fail(&err, QK_BAD_FORMAT, "%s: another file has the same key", path);
  if (err.code == QK_OK) clients->count++;
  if (is_momentary(status)) clients->unsure++;
  if (err.code != QK_OK && tell) qk_error("clients", "%s; nobody gets in by this file", err.text);
}

static void read_all(qk_clients_t *clients, struct dirent **entry, int n, bool tell) {
  struct stat st;
  char path[PATH_BYTES];
  const char *folder = clients->folder;
  clients->count = clients->unsure = 0;
  if (n < 0 || stat(folder, &st) != 0) {
    clients->unsure = 1;
    if (tell) qk_error("clients", "%s: %s; nobody gets in", folder, strerror(errno));
  } else if (st.st_mode & (S_IWGRP | S_IWOTH)) {
    qk_error("clients", "%s: mode %04o lets others write there: chmod go-w it; nobody gets in",
             folder, (unsigned)st.st_mode & 07777);
  } else if (n > QK_CLIENTS_MAX) {
    qk_error("clients", "%s: %d files, the limit is %d; nobody gets in", folder, n, QK_CLIENTS_MAX);
  } else {
    for (int i = 0; i < n; i++) {
      if (snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name) < (int)sizeof path)
        add(clients, path, tell);
    }
    if (tell) qk_info("clients", "%s: %d authorised keys", folder, clients->count);
  }
}

void qk_clients_init(qk_clients_t *clients, const char *folder) {
  clients->folder = folder;
  clients->seen = clients->place = clients->changes = 0;
  clients->fresh = false;
  clients->count = clients->unsure = 0;
}

bool qk_clients_moved(const qk_clients_t *clients) {
  bool fresh;
  return clients->fresh || place(clients->folder, &fresh) != clients->place;
}

void qk_clients_refresh(qk_clients_t *clients) {
  struct dirent **entry = NULL;
  clients->place =
      place(clients->folder, &clients->fresh); /* what changes from here on shows next time */
  const int n = scandir(clients->folder, &entry, is_client, alphasort);
  const int cause = errno;
  const uint64_t now = n < 0 ? (uint64_t)cause : look(clients->folder, entry, n);
  errno = cause;
  const int unsure = clients->unsure;
  if (now != clients->seen || unsure > 0) {
    read_all(clients, entry, n, now != clients->seen);
    clients->changes++;
  }
  if (now == clients->seen && clients->unsure != unsure) read_all(clients, entry, n, true);
  clients->seen = now;
  for (int i = 0; i < n; i++) free(entry[i]);
  free(entry);
}

const qk_client_t *qk_clients_find(const qk_clients_t *clients, const char *key) {
  for (int i = 0; i < clients->count; i++)
    if (strcmp(clients->at[i].key, key) == 0) return &clients->at[i];
  return NULL;
}
