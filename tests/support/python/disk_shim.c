/*
 * disk_shim.c: a disk that fails when a test says so. Preloaded (LD_PRELOAD) into a program it
 * makes system calls on files of one folder fail, stall, or be the last ones of the process.
 * QK_SHIM_FOLDER is the folder, without links in its path; QK_SHIM_PAGE a file of numbers (page_t)
 * that the test changes while the process runs. Of reading only the opening of files. Names of
 * shared memory count as the folder's. Programs that the process starts are left alone. For x86 and
 * others alike: no system call is made but through the next library.
 */
#undef _FILE_OFFSET_BITS /* both names of each call are defined here */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* Kinds of calls, as bits. */
enum {
  WRITE = 1,
  SYNC = 2,
  OPEN = 4,
  NAMES = 8,
  ROOM = 16,
  PLACE = 32,
  READ = 64,
  MEMORY = 128,
  FOLDER = 256
};
enum { DESCRIPTORS = 1 << 16 };

/* As disk.py packs it. */
typedef struct page {
  _Atomic int64_t kinds; /* that fail, with error, or stall */
  _Atomic int64_t error; /* errno; 0: they succeed */
  _Atomic int64_t stall; /* ms before each; those that wait go on where it becomes less */
  _Atomic int64_t
      kill_at;           /* the call of that number is not made: the process is killed; 0: never */
  _Atomic int64_t calls; /* of all kinds but ROOM, PLACE and READ, counted from 1 */
  _Atomic int64_t met;   /* that have failed or stalled */
  _Atomic int64_t room;  /* bytes that the disk says it has; 0: what it has */
  _Atomic int64_t asked; /* how often it was asked for that */
  _Atomic int64_t least; /* bytes of a WRITE that fails or stalls */
} page_t;

static page_t *page;
static const char *folder;
static size_t length;
static _Atomic bool ours[DESCRIPTORS];

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("QK_SHIM_PAGE");
  int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
  unsetenv("LD_PRELOAD");
  folder = getenv("QK_SHIM_FOLDER");
  const int fd = path && folder && next ? next(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *data = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  length = strlen(folder);
  if (data != MAP_FAILED) page = data;
}

static bool is_path(const char *path) {
  return page && strncmp(path, folder, length) == 0 && (path[length] == '/' || !path[length]);
}

static bool is_ours(int fd) {
  return page && fd >= 0 && fd < DESCRIPTORS && ours[fd];
}

static void note(int fd, bool is) {
  if (fd >= 0 && fd < DESCRIPTORS) ours[fd] = is;
}

/* 0, or what the call fails with. bytes: that a WRITE writes. */
static int meet(int kind, int64_t bytes) {
  if (kind == ROOM) atomic_fetch_add(&page->asked, 1);
  if (!(kind & (ROOM | PLACE | READ))) {
    const int64_t n = atomic_fetch_add(&page->calls, 1) + 1, last = page->kill_at;
    if (last > 0 && n >= last) kill(getpid(), SIGKILL);
  }
  if (!(page->kinds & kind) || (kind == WRITE && bytes < page->least)) return 0;
  atomic_fetch_add(&page->met, 1);
  const struct timespec t = {.tv_nsec = 1000000};
  for (int64_t ms = 0; ms < page->stall; ms++) nanosleep(&t, NULL);
  return (int)page->error;
}

/* Found once, at the first call, when the program starts: dlsym takes locks, and is no call for
 * signal handlers and for children between fork and exec. */
#define NEXT(name)                                                                                 \
  ({                                                                                               \
    static __typeof__(&name) next;                                                                 \
    if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                  \
    next;                                                                                          \
  })
#define FAIL_OF(kind, bytes)                                                                       \
  do {                                                                                             \
    const int e = meet(kind, bytes);                                                               \
    if (e != 0) {                                                                                  \
      errno = e;                                                                                   \
      return -1;                                                                                   \
    }                                                                                              \
  } while (0)
#define FAIL(kind) FAIL_OF(kind, 0)

/* ---- names --------------------------------------------------------------------------------- */

#define OPENS(name)                                                                                \
  int name(const char *path, int flags, ...) {                                                     \
    va_list list;                                                                                  \
    va_start(list, flags);                                                                         \
    const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;                \
    va_end(list);                                                                                  \
    const bool is = is_path(path);                                                                 \
    if (is) FAIL(flags &(O_CREAT | O_WRONLY | O_RDWR) ? OPEN : READ);                              \
    const int fd = NEXT(name)(path, flags, mode);                                                  \
    note(fd, is);                                                                                  \
    return fd;                                                                                     \
  }

OPENS(open)
OPENS(open64)

#define OPENS_AT(name)                                                                             \
  int name(int at, const char *path, int flags, ...) {                                             \
    va_list list;                                                                                  \
    va_start(list, flags);                                                                         \
    const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;                \
    va_end(list);                                                                                  \
    const bool is = is_ours(at) || is_path(path);                                                  \
    if (is) FAIL(flags &(O_CREAT | O_WRONLY | O_RDWR) ? OPEN : READ);                              \
    const int fd = NEXT(name)(at, path, flags, mode);                                              \
    note(fd, is);                                                                                  \
    return fd;                                                                                     \
  }

OPENS_AT(openat)
OPENS_AT(openat64)

int unlinkat(int at, const char *path, int flags) {
  if (is_ours(at) || is_path(path)) FAIL(NAMES);
  return NEXT(unlinkat)(at, path, flags);
}

int rename(const char *from, const char *to) {
  if (is_path(to)) FAIL(NAMES);
  return NEXT(rename)(from, to);
}

int unlink(const char *path) {
  if (is_path(path)) FAIL(NAMES);
  return NEXT(unlink)(path);
}

int renameat(int at, const char *from, int at_to, const char *to) {
  if (is_ours(at) || is_ours(at_to) || is_path(to)) FAIL(NAMES);
  return NEXT(renameat)(at, from, at_to, to);
}

int mkdir(const char *path, mode_t mode) {
  if (is_path(path)) FAIL(NAMES);
  return NEXT(mkdir)(path, mode);
}

int statvfs(const char *path, struct statvfs *v) {
  if (is_path(path)) FAIL(ROOM);
  const int rc = NEXT(statvfs)(path, v);
  if (rc == 0 && is_path(path) && page->room > 0)
    v->f_bavail = (fsblkcnt_t)page->room / v->f_frsize;
  return rc;
}

int statvfs64(const char *path, struct statvfs64 *v) {
  if (is_path(path)) FAIL(ROOM);
  const int rc = NEXT(statvfs64)(path, v);
  if (rc == 0 && is_path(path) && page->room > 0)
    v->f_bavail = (fsblkcnt64_t)page->room / v->f_frsize;
  return rc;
}

int stat(const char *path, struct stat *st) {
  if (is_path(path)) FAIL(PLACE);
  return NEXT(stat)(path, st);
}

int stat64(const char *path, struct stat64 *st) {
  if (is_path(path)) FAIL(PLACE);
  return NEXT(stat64)(path, st);
}

/* ---- names of shared memory ------------------------------------------------------------------ */

static bool is_memory(const char *name) {
  return page && strncmp(name, "/quarkd-s", 9) == 0;
}

int shm_open(const char *name, int flags, mode_t mode) {
  if (is_memory(name) && flags & O_CREAT) FAIL(MEMORY);
  return NEXT(shm_open)(name, flags, mode);
}

int shm_unlink(const char *name) {
  if (is_memory(name)) FAIL(MEMORY);
  return NEXT(shm_unlink)(name);
}

/* ---- descriptors --------------------------------------------------------------------------- */

int close(int fd) {
  note(fd, false);
  return NEXT(close)(fd);
}

ssize_t write(int fd, const void *data, size_t bytes) {
  if (is_ours(fd)) FAIL_OF(WRITE, (int64_t)bytes);
  return NEXT(write)(fd, data, bytes);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) {
  if (is_ours(fd)) FAIL_OF(WRITE, (int64_t)bytes);
  return NEXT(pwrite)(fd, data, bytes, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset) {
  if (is_ours(fd)) FAIL_OF(WRITE, (int64_t)bytes);
  return NEXT(pwrite64)(fd, data, bytes, offset);
}

int ftruncate(int fd, off_t bytes) {
  if (is_ours(fd)) FAIL(WRITE);
  return NEXT(ftruncate)(fd, bytes);
}

int ftruncate64(int fd, off64_t bytes) {
  if (is_ours(fd)) FAIL(WRITE);
  return NEXT(ftruncate64)(fd, bytes);
}

static bool is_folder(int fd) {
  struct stat st;
  return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

int fsync(int fd) {
  if (is_ours(fd)) FAIL(is_folder(fd) ? SYNC | FOLDER : SYNC);
  return NEXT(fsync)(fd);
}

int fdatasync(int fd) {
  if (is_ours(fd)) FAIL(SYNC);
  return NEXT(fdatasync)(fd);
}
