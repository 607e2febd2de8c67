#include "daemon/front/shm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"

static const char SHM_DIR[] = "/dev/shm";

qk_status_t qk_shm_create(uint64_t number, size_t bytes, qk_shm_t **out, qk_err_t *err) {
  qk_status_t s;
  qk_shm_t *shm = qk_calloc(1, sizeof *shm);
  if (!shm) return qk_fail(err, QK_NO_MEMORY, "no memory for a shared-memory object");
  snprintf(shm->name, sizeof shm->name, "/quarkd-%ld-%llu", (long)getpid(),
           (unsigned long long)number);
  int fd = shm_open(shm->name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) {
    s = qk_fail(err, QK_IO_ERROR, "shm_open %s: %s", shm->name, strerror(errno));
    goto free_shm;
  }
  int e = qk_fault(QK_FAULT_ALLOC) ? ENOSPC : posix_fallocate(fd, 0, (off_t)bytes);
  if (e != 0) {
    s = qk_fail(err, e == ENOSPC || e == EFBIG ? QK_NO_MEMORY : QK_IO_ERROR,
                "shared memory of %zu bytes: %s", bytes, strerror(e));
    goto unlink;
  }
  shm->data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (shm->data == MAP_FAILED) {
    s = qk_fail(err, QK_NO_MEMORY, "mmap of %zu bytes: %s", bytes, strerror(errno));
    goto unlink;
  }
  close(fd);
  shm->bytes = bytes;
  *out = shm;
  return QK_OK;

unlink:
  shm_unlink(shm->name);
  close(fd);
free_shm:
  qk_free(shm);
  return s;
}

void qk_shm_destroy(qk_shm_t *shm) {
  if (!shm) return;
  munmap(shm->data, shm->bytes);
  shm_unlink(shm->name);
  qk_free(shm);
}

int64_t qk_shm_free_bytes(void) {
  struct statvfs v;
  if (statvfs(SHM_DIR, &v) != 0) return 0;
  return (int64_t)v.f_bavail * (int64_t)v.f_frsize;
}

/* The owner's process id of one of our names, 0 for other names. */
static long owner_of(const char *name) {
  long pid;
  unsigned long long number;
  int end = 0;
  if (sscanf(name, "quarkd-%ld-%llu%n", &pid, &number, &end) != 2 || name[end] != '\0') return 0;
  return pid > 0 ? pid : 0;
}

int qk_shm_sweep(void) {
  DIR *dir = opendir(SHM_DIR);
  if (!dir) return 0;
  int removed = 0;
  for (struct dirent *entry; (entry = readdir(dir));) {
    long pid = owner_of(entry->d_name);
    struct stat st;
    if (pid == 0 || fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (st.st_uid != geteuid() || kill((pid_t)pid, 0) == 0 || errno != ESRCH) continue;
    removed += unlinkat(dirfd(dir), entry->d_name, 0) == 0;
  }
  closedir(dir);
  return removed;
}
