/*
 * world_disk.c: shared memory, and what libuv's threads would do with it and with files. Without a
 * state folder shared memory is from malloc, so that a sanitizer sees its ends; with one it has
 * descriptors and outlives the front.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/assert.h"
#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/base/room.h"
#include "daemon/front/host/worker.h"
#include "daemon/front/state/strays.h"
#include "tests/fuzz/session/world.h"

enum { WORKS = 1 << 12, FOLDER = 64 };

/* An object that the front before has left: without a mapping. */
typedef struct left {
  struct left *next;
  char name[QK_SHM_NAME_MAX];
  size_t bytes;
  int fd;
} left_t;

/* The front's, with a descriptor where there is a state folder. */
typedef struct object {
  qk_shm_t shm;
  int fd;
} object_t;

static struct {
  int64_t fields;
  uint64_t stamp; /* the last one */
  bool full, slow, broken;
  struct {
    uv_work_t *work;
    uv_work_cb run;
    uv_after_work_cb after;
  } work[WORKS];
  int works;
  const qk_shm_space_t *space; /* of the front */
  left_t *left;
} disk;
static char folder[FOLDER];

/* ---- the folder ------------------------------------------------------------------------------ */

static void empty(const char *path) {
  DIR *dir = opendir(path);
  if (!dir) return;
  for (struct dirent *e; (e = readdir(dir)) != NULL;) unlinkat(dirfd(dir), e->d_name, 0);
  closedir(dir);
}

static const char *const rooms[] = {"spool", "eigen"};

static void empty_folder(bool remove) {
  char room[FOLDER + 8];
  for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
    snprintf(room, sizeof room, "%s/%s", folder, rooms[i]);
    empty(room);
    if (remove) rmdir(room);
  }
  empty(folder);
}

static void remove_folder(void) {
  empty_folder(true);
  rmdir(folder);
}

const char *world_disk_folder(void) {
  if (folder[0]) {
    empty_folder(false);
    return folder;
  }
  snprintf(folder, sizeof folder, "%s/quarkd-fuzz-XXXXXX",
           access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp");
  QK_ASSERT(mkdtemp(folder));
  atexit(remove_folder);
  return folder;
}

void world_disk_begin(void) {
  world_forget_memory();
  QK_ASSERT(disk.fields == 0 && disk.works == 0);
  disk.full = disk.slow = disk.broken = false;
}

/* ---- worker.h -------------------------------------------------------------------------------- */

/* The journal's writer is done at once, unless the disk is slow; others in the next turn. */
struct qk_worker {
  qk_worker_t *next;
  qk_link_t given;
  int busy;
  bool at_once;
};

static qk_worker_t *workers;

qk_status_t qk_worker_open(qk_loop_t *loop, const char *name, int threads, qk_worker_t **worker,
                           qk_err_t *err) {
  (void)loop, (void)threads, (void)err;
  qk_worker_t *w = calloc(1, sizeof *w);
  QK_ASSERT(w);
  qk_link_init(&w->given);
  w->at_once = strcmp(name, "journal") == 0;
  w->next = workers;
  workers = w;
  *worker = w;
  return QK_OK;
}

static void work_on(qk_worker_t *w) {
  for (int n = w->busy; n > 0; n--) {
    qk_work_t *work = QK_HOLDER(w->given.next, qk_work_t, link);
    qk_link_remove(&work->link);
    work->run(work);
    w->busy--;
    work->done(work);
  }
}

static void all_work(void) {
  for (qk_worker_t *w = workers; w; w = w->next) work_on(w);
}

static bool any_works(void) {
  int busy = 0;
  for (const qk_worker_t *w = workers; w; w = w->next) busy += w->busy;
  return busy > 0;
}

void qk_worker_give(qk_worker_t *worker, qk_work_t *work) {
  qk_link_init(&work->link);
  qk_list_append(&worker->given, &work->link);
  worker->busy++;
  if (worker->at_once && !disk.slow) work_on(worker);
}

int qk_worker_busy(const qk_worker_t *worker) {
  return worker ? worker->busy : 0;
}

bool qk_worker_wait(qk_worker_t *worker, double seconds) {
  const bool any = worker->busy > 0;
  (void)seconds;
  work_on(worker);
  return any;
}

void qk_worker_close(qk_worker_t *worker) {
  qk_worker_t **at = &workers;
  if (!worker) return;
  while (worker->busy > 0) work_on(worker);
  while (*at != worker) at = &(*at)->next;
  *at = worker->next;
  free(worker);
}

/* ---- threads, faults, the wall clock --------------------------------------------------------- */

int uv_queue_work(uv_loop_t *loop, uv_work_t *work, uv_work_cb run, uv_after_work_cb after) {
  (void)loop;
  QK_ASSERT(disk.works < WORKS);
  disk.work[disk.works].work = work;
  disk.work[disk.works].run = run;
  disk.work[disk.works++].after = after;
  return 0;
}

static void finish(bool run) {
  const int n = disk.works;
  for (int i = 0; i < n; i++) {
    if (run) disk.work[i].run(disk.work[i].work);
    disk.work[i].after(disk.work[i].work, 0);
  }
  disk.works -= n;
  memmove(disk.work, disk.work + n, (size_t)disk.works * sizeof disk.work[0]);
}

void world_disk_turn(void) {
  if (disk.slow) return;
  finish(true);
  all_work();
}

void world_disk_settle(void) {
  finish(false);
}

bool world_disk_busy(void) {
  return disk.works > 0 || any_works();
}

void world_disk_slow(bool slow) {
  disk.slow = slow;
}

void world_disk_broken(bool broken) {
  disk.broken = broken;
}

bool qk_fault(qk_fault_point_t point) {
  return disk.broken && (point == QK_FAULT_READ || point == QK_FAULT_WRITE);
}

/* The target's sources call it so (meson.build), and nobody else. */
int clock_gettime(clockid_t clock, struct timespec *t) {
  const double now = world_now();
  (void)clock;
  t->tv_sec = (time_t)now;
  t->tv_nsec = (long)((now - (double)t->tv_sec) * 1e9);
  return 0;
}

/* ---- room.h -------------------------------------------------------------------------------- */

void qk_room_read(const char *root, qk_room_t *room) {
  (void)root;
  *room = (qk_room_t){.limit = 1ll << 42, .free = 1ll << 41, .by = "the machine"};
}

void qk_room_group(const char *root, long pid, char group[QK_ROOM_PATH]) {
  (void)root, (void)pid;
  group[0] = '\0';
}

int64_t qk_room_kills(const char *group) {
  (void)group;
  return 0;
}

/* ---- shm.h ----------------------------------------------------------------------------------- */

void qk_shm_space_init(qk_shm_space_t *space, const char *state) {
  *space = (qk_shm_space_t){.prefix = "fuzz-"};
  if (state) space->prefix[4] = '+';
  qk_link_init(&space->live);
  disk.space = space;
}

static left_t **find_left(const char *name) {
  left_t **l = &disk.left;
  while (*l && strcmp((*l)->name, name) != 0) l = &(*l)->next;
  return l;
}

static qk_shm_t *add(qk_shm_space_t *space, const char *name, size_t bytes, int fd) {
  object_t *o = qk_calloc(1, sizeof *o);
  QK_ASSERT(o);
  uint8_t *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  QK_ASSERT(data != MAP_FAILED);
  o->shm = (qk_shm_t){.data = data, .bytes = bytes, .space = space};
  o->fd = fd;
  snprintf(o->shm.name, sizeof o->shm.name, "%s", name);
  qk_link_init(&o->shm.link);
  qk_list_append(&space->live, &o->shm.link);
  disk.fields += (int64_t)bytes;
  return &o->shm;
}

qk_status_t qk_shm_create(qk_shm_space_t *space, size_t bytes, qk_shm_t **shm, qk_err_t *err) {
  char name[QK_SHM_NAME_MAX];
  if (disk.full) return qk_fail(err, QK_NO_MEMORY, "shared memory of %zu bytes: full", bytes);
  snprintf(name, sizeof name, "/%s%llu", space->prefix, (unsigned long long)space->next++);
  if (*find_left(name)) return qk_fail(err, QK_IO_ERROR, "shm_open %s: it is there", name);
  const int fd = memfd_create(name, MFD_CLOEXEC);
  QK_ASSERT(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
  *shm = add(space, name, bytes, fd);
  return QK_OK;
}

qk_status_t qk_shm_create_bare(qk_shm_space_t *space, size_t bytes, qk_shm_t **shm, qk_err_t *err) {
  return qk_shm_create(space, bytes, shm, err);
}

qk_status_t qk_shm_create_sparse(qk_shm_space_t *space, size_t bytes, qk_shm_t **shm,
                                 qk_err_t *err) {
  return qk_shm_create(space, bytes, shm, err);
}

void qk_shm_count(const qk_shm_t *shm, uint64_t bytes) {
  (void)shm, (void)bytes;
}

qk_status_t qk_shm_adopt(qk_shm_space_t *space, const char *name, size_t bytes, qk_shm_t **shm,
                         qk_err_t *err) {
  unsigned long long number;
  left_t **l = find_left(name), *found = *l;
  if (!found || found->bytes != bytes)
    return qk_fail(err, QK_NOT_FOUND, "%s of %zu bytes", name, bytes);
  *l = found->next;
  *shm = add(space, name, bytes, found->fd);
  (*shm)->stays = true;
  free(found);
  QK_ASSERT(sscanf(name + 1 + strlen(space->prefix), "%llu", &number) == 1);
  if (number >= space->next) space->next = number + 1;
  return QK_OK;
}

/* NULL: there is none. */
static const object_t *find_live(const char *name) {
  for (const qk_link_t *l = disk.space->live.next; l != &disk.space->live; l = l->next)
    if (strcmp(QK_HOLDER(l, const qk_shm_t, link)->name, name) == 0)
      return (const object_t *)QK_HOLDER(l, const qk_shm_t, link);
  return NULL;
}

int shm_open(const char *name, int flags, mode_t mode) {
  (void)flags, (void)mode;
  const object_t *o = find_live(name);
  if (o) return fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
  errno = ENOENT;
  return -1;
}

void world_stamp(const char *name) {
  const object_t *o = find_live(name);
  disk.stamp++;
  if (o) memcpy(o->shm.data, &disk.stamp, sizeof disk.stamp);
}

uint8_t *qk_shm_data(qk_shm_t *shm, qk_err_t *err) {
  (void)err;
  return shm->data;
}

void qk_shm_unmap(qk_shm_t *shm) {
  (void)shm;
}

int qk_shm_open(const qk_shm_t *shm, int flags) {
  return shm_open(shm->name, flags, 0);
}

qk_status_t qk_shm_write(int fd, const void *data, size_t bytes, size_t offset, qk_err_t *err) {
  if (pwrite(fd, data, bytes, (off_t)offset) == (ssize_t)bytes) return QK_OK;
  return qk_fail(err, QK_IO_ERROR, "descriptor %d: %s", fd, strerror(errno));
}

/* It stays for the next front. */
static void leave(const object_t *o) {
  left_t *l = calloc(1, sizeof *l);
  QK_ASSERT(l);
  *l = (left_t){.next = disk.left, .bytes = o->shm.bytes, .fd = o->fd};
  memcpy(l->name, o->shm.name, sizeof l->name);
  disk.left = l;
}

void qk_shm_destroy(qk_shm_t *shm) {
  object_t *o = (object_t *)shm;
  if (!shm) return;
  disk.fields -= (int64_t)shm->bytes;
  qk_link_remove(&shm->link);
  munmap(shm->data, shm->bytes);
  if (shm->space->leave && shm->stays)
    leave(o);
  else
    close(o->fd);
  qk_free(o);
}

void qk_shm_tick(qk_shm_space_t *space) {
  (void)space;
}

void qk_shm_space_close(qk_shm_space_t *space) {
  (void)space;
}

int64_t qk_shm_free_bytes(const qk_shm_space_t *space) {
  (void)space;
  return disk.full ? 0 : 1ll << 40;
}

int qk_shm_sweep(const qk_shm_space_t *space) {
  int n = 0;
  (void)space;
  for (const left_t *l = disk.left; l; l = l->next) n++;
  world_forget_memory();
  return n;
}

/* ---- strays.h ------------------------------------------------------------------------------ */

void qk_strays_note(const qk_shm_space_t *space, const char *dir, int lock, uint64_t front) {
  (void)space, (void)dir, (void)lock, (void)front;
}

void qk_strays_forget(const qk_shm_space_t *space) {
  (void)space;
}

void qk_strays_sweep(uv_loop_t *loop, const qk_shm_space_t *space) {
  (void)loop, (void)space;
}

/* -------------------------------------------------------------------------------------------- */

void world_forget_memory(void) {
  for (left_t *l; (l = disk.left) != NULL;) {
    disk.left = l->next;
    close(l->fd);
    free(l);
  }
}

int64_t world_fields(void) {
  return disk.fields;
}

void world_fill_memory(bool full) {
  disk.full = full;
}

bool world_mend(void) {
  const bool was_bad = disk.full || disk.broken;
  disk.full = disk.broken = false;
  return was_bad;
}
