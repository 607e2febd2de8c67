#include "daemon/front/engines/adopt.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/front/engines/engine_argv.h"
#include "daemon/front/host/runtime.h"

static const char PREFIX[] = "engine ", FOLDER[] = "runtime", IPC[] = "ipc://", FIFO[] = ".err";

/* ---- engines ------------------------------------------------------------------------------- */

/* "engine SETUP", and "engine SETUP.REPLICA" for all but the first. */
static void write_key(int64_t setup, int replica, char key[48]) {
  const int n = snprintf(key, 48, "%s%" PRId64, PREFIX, setup);
  if (replica > 0) snprintf(key + n, 48 - (size_t)n, ".%d", replica);
}

void qk_adopt_note(qk_journal_t *journal, const qk_adopted_t *l) {
  char key[48], value[QK_SOCKET_MAX + 120];
  write_key(l->setup, l->replica, key);
  snprintf(value, sizeof value, "%ld %llu %s %016" PRIx64 " %s", (long)l->process.pid,
           l->process.start, l->process.boot, l->fingerprint, l->endpoint);
  qk_journal_note_now(journal, key, value);
}

void qk_adopt_forget(qk_journal_t *journal, int64_t setup, int replica) {
  char key[48];
  write_key(setup, replica, key);
  qk_journal_note_soon(journal, key, NULL);
}

typedef struct list {
  qk_adopted_t *at;
  int n;
} list_t;

static bool on_note(void *arg, const char *key, const char *value, qk_err_t *why) {
  list_t *list = arg;
  char *end;
  qk_adopted_t l = {.setup = strtoll(key + strlen(PREFIX), &end, 10)};
  long pid, replica = *end == '.' ? strtol(end + 1, &end, 10) : 0;
  (void)why;
  if (list->n == QK_ADOPTED_MAX || *end || replica < 0 || replica >= QK_REPLICAS_MAX ||
      sscanf(value, "%ld %llu %36s %" SCNx64 " %143[^\n]", &pid, &l.process.start, l.process.boot,
             &l.fingerprint, l.endpoint) != 5 ||
      strncmp(l.endpoint, IPC, strlen(IPC)) != 0)
    return true;
  l.process.pid = (pid_t)pid;
  l.replica = (int)replica;
  list->at[list->n++] = l;
  return true;
}

/* Whether another setup has this engine now: the front has ended before it forgot this note. */
static bool is_handed_over(const list_t *list, int i) {
  const qk_adopted_t *l = &list->at[i];
  for (int k = 0; k < list->n; k++)
    if (list->at[k].setup > l->setup && list->at[k].process.pid == l->process.pid &&
        list->at[k].process.start == l->process.start)
      return true;
  return false;
}

int qk_adopt_list(qk_journal_t *journal, qk_adopted_t at[QK_ADOPTED_MAX]) {
  list_t list = {.at = at};
  qk_err_t err = {0};
  if (qk_journal_each_note(journal, PREFIX, on_note, &list, &err) != QK_OK)
    qk_error("journal", "%s", err.text);
  for (int i = 0; i < list.n;)
    if (is_handed_over(&list, i)) {
      qk_adopt_forget(journal, at[i].setup, at[i].replica);
      at[i] = at[--list.n];
    } else {
      i++;
    }
  return list.n;
}

void qk_adopt_fifo(const char *endpoint, char path[QK_SOCKET_MAX]) {
  snprintf(path, QK_SOCKET_MAX, "%.130s%s", endpoint + strlen(IPC), FIFO);
}

const char *qk_adopt_misfit(const qk_adopted_t *adopted, const char *dir, const qk_settings_t *s,
                            uint64_t fingerprint) {
  const char *path = adopted->endpoint + strlen(IPC);
  if (strncmp(path, dir, strlen(dir)) != 0 || path[strlen(dir)] != '/')
    return "its sockets are in a folder that quarkd no longer owns";
  if (!qk_engine_argv_lasts(s)) return "engine-grace is 0 now";
  if (adopted->fingerprint == 0 || adopted->fingerprint != fingerprint)
    return "it was started with other settings, or files have changed";
  return NULL;
}

void qk_adopt_end_engine(qk_journal_t *journal, const qk_adopted_t *l) {
  char fifo[QK_SOCKET_MAX];
  qk_info("adopt", "ending the engine of a setup that no longer exists, process %ld",
          (long)l->process.pid);
  if (!qk_procid_end(&l->process))
    qk_warn("adopt", "process %ld does not end", (long)l->process.pid);
  qk_adopt_fifo(l->endpoint, fifo);
  unlink(fifo);
  unlink(l->endpoint + strlen(IPC));
  qk_adopt_forget(journal, l->setup, l->replica);
}

/* ---- the private folder -------------------------------------------------------------------- */

/* Whether an engine that is noted has the socket or FIFO of that name. */
static bool is_needed(const char *name, const qk_adopted_t *list, int n) {
  for (int i = 0; i < n; i++) {
    const char *socket = strrchr(list[i].endpoint, '/') + 1, *rest = name + strlen(socket);
    if (strncmp(name, socket, strlen(socket)) == 0 && (!*rest || strcmp(rest, FIFO) == 0))
      return true;
  }
  return false;
}

/* Sockets and FIFOs of the front before. */
static void sweep(int fd, const qk_adopted_t *list, int n) {
  struct stat st;
  DIR *dir = fdopendir(fd);
  if (!dir) return;
  for (struct dirent *entry; (entry = readdir(dir));)
    if (!is_needed(entry->d_name, list, n) &&
        fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        (S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode)))
      unlinkat(fd, entry->d_name, 0);
  closedir(dir);
}

/* Nobody else may have got at what is in it. */
static bool is_ours(int fd) {
  struct stat st;
  return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
         (st.st_mode & 0777) == 0700;
}

static bool take_over(qk_journal_t *journal, const char *dir) {
  qk_adopted_t list[QK_ADOPTED_MAX];
  const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0 && is_ours(fd)) {
    sweep(fd, list, qk_adopt_list(journal, list));
    return true;
  }
  if (fd >= 0) close(fd);
  return false;
}

qk_status_t qk_adopt_dir(qk_journal_t *journal, char *dir, size_t size, qk_err_t *err) {
  if (journal && qk_journal_note(journal, FOLDER, dir, size) && take_over(journal, dir))
    return QK_OK;
  qk_status_t status = qk_runtime_dir(dir, size, err);
  if (status == QK_OK) qk_journal_note_soon(journal, FOLDER, dir);
  return status;
}
