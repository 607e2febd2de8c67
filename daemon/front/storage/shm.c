#include "daemon/front/storage/shm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "proto/frame.h"

enum { TRIES = 16 }; /* names that are in the way of one object */

static const char SHM_DIR[] = "/dev/shm";
static const char FULL_ADVICE[] = ": it is full: give it more room, or lower --max-memory";
static const size_t LARGE = 4 << 20;
static const uint64_t SPARE_MS = 10000;

void qk_shm_space_init(qk_shm_space_t *space, const char *state) {
  *space = (qk_shm_space_t){.next = 0};
  qk_link_init(&space->live);
  qk_link_init(&space->spare);
  qk_link_init(&space->mapped);
  if (state)
    snprintf(space->prefix, sizeof space->prefix, "quarkd-s%016llx-",
             (unsigned long long)qk_checksum(state, strlen(state)));
  else
    snprintf(space->prefix, sizeof space->prefix, "quarkd-%ld-", (long)getpid());
}

/* name: without its slash. */
static qk_status_t add(qk_shm_space_t *space, const char *name, size_t bytes, qk_shm_t **out,
                       qk_err_t *err) {
  qk_shm_t *shm = qk_calloc(1, sizeof *shm);
  if (!shm) return qk_fail(err, QK_NO_MEMORY, "no memory for a shared-memory object");
  snprintf(shm->name, sizeof shm->name, "/%s", name);
  shm->bytes = bytes;
  shm->space = space;
  qk_link_init(&shm->link);
  qk_link_init(&shm->mapped);
  qk_list_append(&space->live, &shm->link);
  *out = shm;
  return QK_OK;
}

/* ---- mappings ------------------------------------------------------------------------------ */

/* It is not counted as mapped any more; the mapping is the caller's. */
static void forget_mapping(qk_shm_t *shm) {
  if (shm->data) shm->space->mappings--;
  qk_link_remove(&shm->mapped);
}

void qk_shm_unmap(qk_shm_t *shm) {
  if (!shm->data) return;
  forget_mapping(shm);
  munmap(shm->data, shm->bytes);
  shm->data = NULL;
}

static qk_status_t map(qk_shm_t *shm, qk_err_t *err) {
  qk_shm_space_t *space = shm->space;
  if (space->mappings == QK_SHM_MAPPINGS)
    qk_shm_unmap(QK_HOLDER(space->mapped.next, qk_shm_t, mapped));
  const int fd = qk_shm_open(shm, O_RDWR);
  void *data =
      fd < 0 ? MAP_FAILED : mmap(NULL, shm->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int e = errno;
  if (fd >= 0) close(fd);
  if (data == MAP_FAILED)
    return qk_fail(err, QK_NO_MEMORY, "%s%s cannot be mapped: %s", SHM_DIR, shm->name, strerror(e));
  shm->data = data;
  space->mappings++;
  return QK_OK;
}

uint8_t *qk_shm_data(qk_shm_t *shm, qk_err_t *err) {
  if (!shm->data && map(shm, err) != QK_OK) return NULL;
  qk_link_remove(&shm->mapped);
  qk_list_append(&shm->space->mapped, &shm->mapped);
  return shm->data;
}

/* ---- spare objects ------------------------------------------------------------------------- */

/* Off the list of spare ones. */
static qk_shm_t *take_off(qk_shm_t *shm) {
  qk_link_remove(&shm->link);
  shm->space->spare_bytes -= (int64_t)shm->bytes;
  return shm;
}

static void unlink_spare(uv_work_t *work) {
  const qk_shm_t *shm = work->data;
  shm_unlink(shm->name);
}

static void after_unlinking(uv_work_t *work, int cancelled) {
  (void)cancelled;
  qk_free(work->data);
}

/* The oldest one goes: at once, or on a thread. */
static int64_t drop_oldest(qk_shm_space_t *space, bool at_once) {
  qk_shm_t *shm = take_off(QK_HOLDER(space->spare.next, qk_shm_t, link));
  const int64_t bytes = (int64_t)shm->bytes;
  if (!at_once && uv_queue_work(space->loop, &shm->work, unlink_spare, after_unlinking) == 0)
    return bytes;
  unlink_spare(&shm->work);
  qk_free(shm);
  return bytes;
}

/* As many bytes of them as there are and as are asked for. */
static void drop_spare(qk_shm_space_t *space, int64_t bytes, bool at_once) {
  while (bytes > 0 && !qk_link_alone(&space->spare)) bytes -= drop_oldest(space, at_once);
}

/* False: there is none of these bytes. */
static bool take_spare(qk_shm_space_t *space, size_t bytes, qk_shm_t **out, qk_err_t *err) {
  qk_link_t *l = space->spare.next;
  while (l != &space->spare && QK_HOLDER(l, qk_shm_t, link)->bytes != bytes) l = l->next;
  if (l == &space->spare) return false;
  qk_shm_t *shm = take_off(QK_HOLDER(l, qk_shm_t, link));
  const int fd = qk_shm_open(shm, O_RDWR);
  const bool taken = fd >= 0 && add(space, shm->name + 1, bytes, out, err) == QK_OK;
  if (!taken) shm_unlink(shm->name);
  if (fd >= 0) close(fd);
  qk_free(shm);
  return taken;
}

/* Whether nobody else has it open or mapped, and all its pages are there. */
static bool is_sound(const qk_shm_t *shm) {
  struct stat st;
  const int fd = qk_shm_open(shm, O_RDWR);
  if (fd < 0) return false;
  /* a process that opens it now waits until the lease ends, and we get a signal: not SIGIO,
   * which would end us */
  const bool sound = fstat(fd, &st) == 0 && (size_t)st.st_blocks * 512 >= shm->bytes &&
                     fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
  if (sound) fcntl(fd, F_SETLEASE, F_UNLCK);
  close(fd);
  return sound;
}

/* From now on nobody finds it under the name that the journal, or an engine being killed, may
 * know. */
static bool rename_to_spare(qk_shm_t *shm) {
  char from[PATH_MAX], to[PATH_MAX];
  snprintf(from, sizeof from, "%s%s", SHM_DIR, shm->name);
  snprintf(to, sizeof to, "%s%s", SHM_DIR, shm->spare_name);
  if (rename(from, to) != 0) return false;
  memcpy(shm->name, shm->spare_name, sizeof shm->name);
  return true;
}

static void give_back(uv_work_t *work) {
  qk_shm_t *shm = work->data;
  if (shm->data) munmap(shm->data, shm->bytes);
  shm->sound = rename_to_spare(shm) && is_sound(shm);
  if (!shm->sound) shm_unlink(shm->name);
}

static void after_giving_back(uv_work_t *work, int cancelled) {
  qk_shm_t *shm = work->data;
  qk_shm_space_t *space = shm->space;
  (void)cancelled;
  if (shm->sound && !space->closing) {
    shm->since = uv_now(space->loop);
    qk_list_append(&space->spare, &shm->link);
    space->spare_bytes += (int64_t)shm->bytes;
    return;
  }
  if (shm->sound) shm_unlink(shm->name);
  qk_free(shm);
}

void qk_shm_tick(qk_shm_space_t *space) {
  const uint64_t now = uv_now(space->loop);
  while (!qk_link_alone(&space->spare) &&
         now - QK_HOLDER(space->spare.next, qk_shm_t, link)->since > SPARE_MS)
    drop_oldest(space, false);
}

void qk_shm_space_close(qk_shm_space_t *space) {
  space->closing = true;
  drop_spare(space, INT64_MAX, true);
}

/* ---- life ---------------------------------------------------------------------------------- */

/* Whoever looks into /dev/shm could take the names that come next, were they only numbered. */
static void new_name(qk_shm_space_t *space, char name[QK_SHM_NAME_MAX]) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) random = uv_hrtime();
  snprintf(name, QK_SHM_NAME_MAX, "/%s%llu-%016llx", space->prefix,
           (unsigned long long)space->next++, (unsigned long long)random);
}

/* A new object; its descriptor, or -1 with an error. */
static int open_new(qk_shm_space_t *space, char name[QK_SHM_NAME_MAX], qk_err_t *err) {
  for (int i = 0; i < TRIES; i++) {
    new_name(space, name);
    const int fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    if (errno != EEXIST) break;
  }
  if (errno == EEXIST)
    qk_fail(err, QK_IO_ERROR, "%s%s and %d more names are taken by others: find out who makes them",
            SHM_DIR, name, TRIES - 1);
  else
    qk_fail(err, QK_IO_ERROR, "%s%s cannot be made: %s", SHM_DIR, name, strerror(errno));
  return -1;
}

typedef enum pages { RESERVED, BARE, SPARSE } pages_t;

static qk_status_t create(qk_shm_space_t *space, size_t bytes, pages_t pages, qk_shm_t **shm,
                          qk_err_t *err) {
  char name[QK_SHM_NAME_MAX];
  const bool reserve = pages == RESERVED;
  if (pages != SPARSE && take_spare(space, bytes, shm, err)) return QK_OK;
  if (pages != SPARSE && bytes >= LARGE) drop_spare(space, (int64_t)bytes, reserve);
  const int fd = open_new(space, name, err);
  if (fd < 0) return QK_IO_ERROR;
  int e = qk_fault(QK_FAULT_ALLOC) ? ENOSPC : 0;
  if (e == 0 && reserve) e = posix_fallocate(fd, 0, (off_t)bytes);
  if (e == 0 && !reserve && ftruncate(fd, (off_t)bytes) != 0) e = errno;
  qk_status_t s;
  if (e != 0)
    s = qk_fail(err, e == ENOSPC || e == EFBIG ? QK_NO_MEMORY : QK_IO_ERROR,
                "%zu bytes in %s: %s%s", bytes, SHM_DIR, strerror(e),
                e == ENOSPC ? FULL_ADVICE : "");
  else
    s = add(space, name + 1, bytes, shm, err);
  if (s == QK_OK) (*shm)->sparse = pages == SPARSE;
  if (s != QK_OK) shm_unlink(name);
  close(fd);
  return s;
}

qk_status_t qk_shm_create(qk_shm_space_t *space, size_t bytes, qk_shm_t **shm, qk_err_t *err) {
  return create(space, bytes, RESERVED, shm, err);
}

qk_status_t qk_shm_create_bare(qk_shm_space_t *space, size_t bytes, qk_shm_t **shm, qk_err_t *err) {
  return create(space, bytes, BARE, shm, err);
}

qk_status_t qk_shm_create_sparse(qk_shm_space_t *space, size_t bytes, qk_shm_t **shm,
                                 qk_err_t *err) {
  return create(space, bytes, SPARSE, shm, err);
}

void qk_shm_count(const qk_shm_t *shm, uint64_t bytes) {
  qk_shm_space_t *space = shm->space;
  if (!shm->sparse) return;
  space->owed += (int64_t)bytes;
  while (!qk_link_alone(&space->spare) &&
         space->owed >= (int64_t)QK_HOLDER(space->spare.next, qk_shm_t, link)->bytes)
    space->owed -= drop_oldest(space, false);
  if (qk_link_alone(&space->spare)) space->owed = 0;
}

int qk_shm_open(const qk_shm_t *shm, int flags) {
  return shm_open(shm->name, flags | O_CLOEXEC, 0);
}

qk_status_t qk_shm_write(int fd, const void *data, size_t bytes, size_t offset, qk_err_t *err) {
  while (bytes > 0) {
    const ssize_t n = pwrite(fd, data, bytes, (off_t)offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return qk_fail(err, n == 0 || errno == ENOSPC ? QK_NO_MEMORY : QK_IO_ERROR,
                     "%s, byte %zu of an object: %s%s", SHM_DIR, offset,
                     n == 0 ? "full" : strerror(errno),
                     n == 0 || errno == ENOSPC ? FULL_ADVICE : "");
    data = (const char *)data + n;
    offset += (size_t)n;
    bytes -= (size_t)n;
  }
  return QK_OK;
}

/* Reads "NUMBER-RANDOM"; "NUMBER" alone was a name of earlier versions. */
static bool read_number(const char *text, uint64_t *number) {
  unsigned long long n, random;
  int end = 0;
  if (sscanf(text, "%20llu%n", &n, &end) != 1) return false;
  *number = n;
  if (text[end] == '\0') return true;
  text += end;
  end = 0;
  return sscanf(text, "-%16llx%n", &random, &end) == 1 && text[end] == '\0';
}

/* Whether the name, without its slash, is one of the space. */
static bool is_of(const qk_shm_space_t *space, const char *name, uint64_t *number) {
  const size_t length = strlen(space->prefix);
  return strncmp(name, space->prefix, length) == 0 && read_number(name + length, number);
}

qk_status_t qk_shm_adopt(qk_shm_space_t *space, const char *name, size_t bytes, qk_shm_t **shm,
                         qk_err_t *err) {
  uint64_t number;
  struct stat st;
  qk_status_t s = QK_NOT_FOUND;
  const bool ours = name[0] == '/' && is_of(space, name + 1, &number);
  const int fd = ours ? shm_open(name, O_RDWR | O_CLOEXEC, 0) : -1;
  if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && (size_t)st.st_size == bytes)
    s = add(space, name + 1, bytes, shm, err);
  else
    qk_fail(err, s, "no shared-memory object %s of %zu bytes", name, bytes);
  if (fd >= 0) close(fd);
  if (s != QK_OK) return s;
  (*shm)->stays = true;
  if (number >= space->next) space->next = number + 1;
  return s;
}

static bool is_spared(const qk_shm_t *shm) {
  return shm->space->loop && shm->bytes >= LARGE;
}

void qk_shm_destroy(qk_shm_t *shm) {
  if (!shm) return;
  qk_shm_space_t *space = shm->space;
  qk_link_remove(&shm->link);
  forget_mapping(shm);
  shm->work.data = shm;
  new_name(space, shm->spare_name);
  if (!space->leave && is_spared(shm) &&
      uv_queue_work(space->loop, &shm->work, give_back, after_giving_back) == 0)
    return;
  if (shm->data) munmap(shm->data, shm->bytes);
  if (!space->leave || !shm->stays) shm_unlink(shm->name);
  qk_free(shm);
}

int64_t qk_shm_free_bytes(const qk_shm_space_t *space) {
  struct statvfs v;
  if (statvfs(SHM_DIR, &v) != 0) return 0;
  return (int64_t)v.f_bavail * (int64_t)v.f_frsize + space->spare_bytes;
}

/* The owner's process id of one of our names, 0 for other names. */
static long owner_of(const char *name) {
  long pid;
  uint64_t number;
  int end = 0;
  if (sscanf(name, "quarkd-%ld-%n", &pid, &end) != 1 || end == 0) return 0;
  return pid > 0 && read_number(name + end, &number) ? pid : 0;
}

/* Names of all that is live, without their slashes, in order. */
typedef struct names {
  const char **at;
  size_t count;
} names_t;

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* False without memory. */
static bool list_live(const qk_shm_space_t *space, names_t *names) {
  size_t n = 0;
  for (const qk_link_t *l = space->live.next; l != &space->live; l = l->next) n++;
  *names = (names_t){.at = qk_calloc(n + 1, sizeof names->at[0])};
  if (!names->at) return false;
  for (const qk_link_t *l = space->live.next; l != &space->live; l = l->next)
    names->at[names->count++] = QK_HOLDER(l, const qk_shm_t, link)->name + 1;
  qsort(names->at, n, sizeof names->at[0], compare_names);
  return true;
}

/* Whether nobody will want the object any more. */
static bool is_left_over(const qk_shm_space_t *space, const names_t *live, const char *name) {
  uint64_t number;
  const long pid = owner_of(name);
  if (is_of(space, name, &number))
    return !bsearch(&name, live->at, live->count, sizeof live->at[0], compare_names);
  return pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

int qk_shm_sweep(const qk_shm_space_t *space) {
  names_t live;
  DIR *dir = list_live(space, &live) ? opendir(SHM_DIR) : NULL;
  int removed = 0;
  for (struct dirent *entry; dir && (entry = readdir(dir));) {
    struct stat st;
    if (!is_left_over(space, &live, entry->d_name)) continue;
    if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (st.st_uid == geteuid()) removed += unlinkat(dirfd(dir), entry->d_name, 0) == 0;
  }
  if (dir) closedir(dir);
  qk_free(live.at);
  return removed;
}
