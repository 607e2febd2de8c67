/* machine.c: memory, shared memory, descriptors, and the disk of the state folder (checks.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "client/cli/solving.h"
#include "client/selftest/checks.h"
#include "daemon/base/file.h"
#include "daemon/base/room.h"

enum { MIB = 1 << 20, WRITE_MIB = 64, SYNCS = 8, DESCRIPTORS = 4096 };
static const double GIB = 1 << 30;
/* Below these quarkd works, but not well: fields of a lattice of 32^3x64 have 0.4 GB. */
static const double LEAST_MEMORY = 4, LEAST_SHM = 2, LEAST_DISK = 10; /* GiB */
static const double SLOW_WRITE = 100e6, SLOW_SYNC = 0.05;             /* bytes/s; seconds */

static void check_room(ctl_checks_t *checks) {
  qk_room_t room;
  qk_room_read("", &room);
  const bool little = (double)room.free < LEAST_MEMORY * GIB;
  ctl_checks_add(
      checks, "memory", little ? CTL_WARNING : CTL_OK,
      json_pack("{s:I, s:I}", "limit", (json_int_t)room.limit, "free", (json_int_t)room.free),
      little ? "give the job or container more memory: docs/operations.md, Memory" : NULL,
      "%.1f of %.1f GiB are free, by %s", (double)room.free / GIB, (double)room.limit / GIB,
      room.by);
}

/* Whether a page of it can be had: some containers have a /dev/shm that is not to be written. */
static int try_shm(const char *folder) {
  char name[64];
  snprintf(name, sizeof name, "%s/quark-selftest-%ld", folder, (long)getpid());
  const int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  const int failed = posix_fallocate(fd, 0, MIB);
  unlink(name);
  close(fd);
  return failed;
}

static void check_shm(ctl_checks_t *checks) {
  static const char folder[] = "/dev/shm";
  struct statvfs v;
  if (statvfs(folder, &v) != 0) {
    ctl_checks_add(checks, "memory", CTL_FAILED, NULL,
                   "mount a tmpfs there: quarkd keeps uploads and results in it", "%s: %s", folder,
                   strerror(errno));
    return;
  }
  const double size = (double)v.f_blocks * (double)v.f_frsize,
               left = (double)v.f_bavail * (double)v.f_frsize;
  const int e = try_shm(folder);
  json_t *values = json_pack("{s:f, s:f}", "size", size, "free", left);
  if (e)
    ctl_checks_add(checks, "memory", CTL_FAILED, values,
                   "let this user write there, and free some of it: quarkd keeps uploads and "
                   "results in it",
                   "%s: a file of 1 MiB cannot be made: %s", folder, strerror(e));
  else if (left < LEAST_SHM * GIB)
    ctl_checks_add(checks, "memory", CTL_WARNING, values,
                   "make it larger (mount -o remount,size=50% /dev/shm; docker run --shm-size): by "
                   "default uploads and results have half of what is free",
                   "%s has %.2f of %.2f GiB free", folder, left / GIB, size / GIB);
  else
    ctl_checks_add(checks, "memory", CTL_OK, values, NULL, "%s has %.1f of %.1f GiB free", folder,
                   left / GIB, size / GIB);
}

static void check_descriptors(ctl_checks_t *checks) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const bool few = limit.rlim_max < DESCRIPTORS;
  ctl_checks_add(
      checks, "memory", few ? CTL_WARNING : CTL_OK,
      json_pack("{s:I}", "descriptors", (json_int_t)limit.rlim_max),
      few ? "raise the hard limit (LimitNOFILE of systemd, ulimit -Hn): each client needs "
            "some"
          : NULL,
      "a process may have %llu descriptors", (unsigned long long)limit.rlim_max);
}

void ctl_check_memory(const ctl_selftest_options_t *test, ctl_checks_t *checks) {
  (void)test;
  check_room(checks);
  check_shm(checks);
  check_descriptors(checks);
}

/* ---- the disk ---- */

typedef struct disk {
  double write, sync, left; /* bytes/s to the disk; seconds of a small sync; bytes */
} disk_t;

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static qk_status_t sync_file(int fd, qk_err_t *err) {
  return fsync(fd) == 0 ? QK_OK : qk_fail(err, QK_IO_ERROR, "fsync: %s", strerror(errno));
}

static qk_status_t measure(int fd, disk_t *disk, qk_err_t *err) {
  static char block[MIB];
  double seconds[SYNCS];
  qk_status_t status = QK_OK;
  memset(block, 0x5a, sizeof block);
  const double begun = ctl_seconds();
  for (int i = 0; i < WRITE_MIB && status == QK_OK; i++)
    status = qk_file_put(fd, block, sizeof block, err);
  if (status == QK_OK) status = sync_file(fd, err);
  disk->write = (double)WRITE_MIB * MIB / (ctl_seconds() - begun);
  for (int i = 0; i < SYNCS && status == QK_OK; i++) {
    const double at = ctl_seconds();
    status = qk_file_put(fd, block, 4096, err);
    if (status == QK_OK) status = sync_file(fd, err);
    seconds[i] = ctl_seconds() - at;
  }
  if (status != QK_OK) return status;
  qsort(seconds, SYNCS, sizeof *seconds, by_size);
  disk->sync = seconds[SYNCS / 2];
  return QK_OK;
}

static qk_status_t try_disk(const char *folder, disk_t *disk, qk_err_t *err) {
  char name[QK_FILE_PATH];
  struct statvfs v;
  const int n = snprintf(name, sizeof name, "%s/quark-selftest-%ld.disk", folder, (long)getpid());
  if (n >= (int)sizeof name) return qk_fail(err, QK_BAD_ARGUMENT, "its path is too long");
  if (statvfs(folder, &v) != 0) return qk_fail(err, QK_IO_ERROR, "%s", strerror(errno));
  disk->left = (double)v.f_bavail * (double)v.f_frsize;
  const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return qk_fail(err, QK_IO_ERROR, "a file cannot be made in it: %s", strerror(errno));
  const qk_status_t status = measure(fd, disk, err);
  unlink(name);
  close(fd);
  return status;
}

void ctl_check_disk(const ctl_selftest_options_t *test, ctl_checks_t *checks) {
  disk_t d = {.write = 0};
  qk_err_t err = {0};
  const char *advice = NULL;
  if (try_disk(test->state, &d, &err) != QK_OK) {
    ctl_checks_add(checks, "disk", CTL_FAILED, NULL,
                   "name a folder that this user may write into (--state, as quarkd --state)",
                   "%.300s: %.150s", test->state, err.text);
    return;
  }
  if (d.left < LEAST_DISK * GIB)
    advice = "free some of it: with --state uploads and results go there";
  else if (d.write < SLOW_WRITE)
    advice = "use another disk for --state, or --spool waiting: docs/operations.md";
  else if (d.sync > SLOW_SYNC)
    advice =
        "put the journal on another disk (quarkd --journal): each accepted request waits for it";
  ctl_checks_add(checks, "disk", advice ? CTL_WARNING : CTL_OK,
                 json_pack("{s:f, s:f, s:f}", "bytes_per_second", d.write, "sync_seconds", d.sync,
                           "free", d.left),
                 advice, "%.300s: %.0f MB/s to the disk, %.2g ms for a small sync, %.1f GiB free",
                 test->state, d.write / 1e6, d.sync * 1e3, d.left / GIB);
}
