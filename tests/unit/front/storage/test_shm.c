/* Objects of shared memory that are made again. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/front/storage/shm.h"

enum { LARGE = 8 << 20, SMALL = 4096 };

static uv_loop_t loop;
static qk_shm_space_t space;

static void begin(void) {
  cr_assert_eq(uv_loop_init(&loop), 0);
  qk_shm_space_init(&space, NULL);
  space.loop = &loop;
}

static void end(void) {
  qk_shm_space_close(&space);
  cr_expect_eq(uv_loop_close(&loop), 0);
  cr_expect_eq(space.spare_bytes, 0);
}

TestSuite(shm, .init = begin, .fini = end);

static qk_shm_t *make(size_t bytes) {
  qk_shm_t *shm = NULL;
  qk_err_t err = {0};
  cr_assert_eq(qk_shm_create(&space, bytes, &shm, &err), QK_OK, "%s", err.text);
  return shm;
}

static ino_t inode_of(const char *name) {
  struct stat st;
  char path[PATH_MAX];
  snprintf(path, sizeof path, "/dev/shm%s", name);
  return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* What names get in place of bytes that nobody can guess. */
static bool guessable;

ssize_t getrandom(void *bytes, size_t size, unsigned flags) {
  if (!guessable) return syscall(SYS_getrandom, bytes, size, flags);
  memset(bytes, 0x5a, size);
  return (ssize_t)size;
}

/* The name of the object that is `ahead` after the next one, taken by somebody. */
static void take_name(int ahead, char name[QK_SHM_NAME_MAX]) {
  snprintf(name, QK_SHM_NAME_MAX, "/%s%llu-5a5a5a5a5a5a5a5a", space.prefix,
           (unsigned long long)space.next + (unsigned)ahead);
  const int fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
  cr_assert_geq(fd, 0);
  close(fd);
}

/* Until the threads are done. */
static void settle(void) {
  uv_run(&loop, UV_RUN_DEFAULT);
}

/* Destroys it; its inode. */
static ino_t give_back(qk_shm_t *shm) {
  const ino_t inode = inode_of(shm->name);
  qk_shm_destroy(shm);
  settle();
  return inode;
}

/* Some file systems of containers have no leases: nothing is spared there. */
static void need_leases(void) {
  qk_shm_t *shm = make(LARGE);
  const int fd = qk_shm_open(shm, O_RDWR);
  const bool leases = fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
  close(fd);
  give_back(shm);
  qk_shm_space_close(&space);
  space.closing = false;
  if (!leases) cr_skip_test("no leases on /dev/shm");
}

Test(shm, one_that_nobody_has_is_made_again_under_another_name) {
  need_leases();
  char old[QK_SHM_NAME_MAX];
  qk_shm_t *first = make(LARGE);
  memcpy(old, first->name, sizeof old);
  const ino_t inode = give_back(first);
  cr_expect_eq(space.spare_bytes, LARGE);
  qk_shm_t *second = make(LARGE);
  cr_expect_eq(inode_of(second->name), inode);
  cr_expect(strcmp(second->name, old) != 0 && inode_of(old) == 0);
  cr_expect_eq(space.spare_bytes, 0);
  qk_shm_data(second, NULL)[LARGE - 1] = 7;
  const int fd = qk_shm_open(second, O_RDONLY);
  uint8_t last = 0;
  cr_expect(pread(fd, &last, 1, LARGE - 1) == 1 && last == 7);
  close(fd);
  give_back(second);
}

Test(shm, one_that_somebody_has_open_or_mapped_is_not) {
  for (int mapped = 0; mapped < 2; mapped++) {
    qk_shm_t *shm = make(LARGE);
    qk_shm_data(shm, NULL)[5] = 9;
    int fd = qk_shm_open(shm, O_RDONLY);
    const uint8_t *view = mmap(NULL, LARGE, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped) close(fd);
    const ino_t inode = give_back(shm);
    qk_shm_t *next = make(LARGE);
    cr_expect_neq(inode_of(next->name), inode);
    qk_shm_data(next, NULL)[5] = 1;
    cr_expect_eq(view[5], 9);
    munmap((void *)view, LARGE);
    if (!mapped) close(fd);
    qk_shm_destroy(next);
    settle();
    qk_shm_space_close(&space);
    space.closing = false;
  }
}

Test(shm, one_without_all_its_pages_is_not) {
  qk_shm_t *shm = NULL;
  qk_err_t err = {0};
  cr_assert_eq(qk_shm_create_bare(&space, LARGE, &shm, &err), QK_OK);
  const int fd = qk_shm_open(shm, O_RDWR);
  cr_expect_eq(qk_shm_write(fd, "x", 1, LARGE - 1, &err), QK_OK);
  close(fd);
  give_back(shm);
  cr_expect_eq(space.spare_bytes, 0);
}

Test(shm, small_ones_are_not_and_cost_none) {
  need_leases();
  give_back(make(LARGE));
  const ino_t inode = give_back(make(SMALL));
  cr_expect_neq(inode, 0);
  cr_expect_eq(space.spare_bytes, LARGE);
}

static _Atomic(bool) over;

/* Opens it as often as can be. */
static void *intrude(void *name) {
  while (!over) {
    const int fd = shm_open(name, O_RDONLY, 0);
    if (fd >= 0) close(fd);
  }
  return NULL;
}

/* Whoever opens an object while it has a lease gets it, and the holder a signal. */
Test(shm, who_opens_one_that_is_given_back_does_no_harm) {
  need_leases();
  pthread_t thread[2];
  for (int i = 0; i < 200; i++) {
    char name[QK_SHM_NAME_MAX];
    qk_shm_t *shm = make(LARGE);
    memcpy(name, shm->name, sizeof name);
    over = false;
    for (int k = 0; k < 2; k++) cr_assert_eq(pthread_create(&thread[k], NULL, intrude, name), 0);
    give_back(shm);
    over = true;
    for (int k = 0; k < 2; k++) pthread_join(thread[k], NULL);
  }
}

Test(shm, a_new_one_costs_as_many_bytes_of_spare_ones) {
  need_leases();
  qk_shm_t *first = make(LARGE), *second = make(LARGE), *third = make(LARGE);
  const int64_t free_bytes = qk_shm_free_bytes(&space);
  give_back(first);
  give_back(second);
  give_back(third);
  cr_expect_eq(space.spare_bytes, 3 * LARGE);
  cr_expect_geq(qk_shm_free_bytes(&space), free_bytes);
  qk_shm_t *other = make(LARGE + 4096);
  cr_expect_eq(space.spare_bytes, LARGE, "%lld", (long long)space.spare_bytes);
  give_back(other);
}

Test(shm, a_sparse_one_costs_spare_ones_as_it_is_filled) {
  need_leases();
  qk_shm_t *dense[3], *sparse[2];
  qk_err_t err = {0};
  for (int i = 0; i < 3; i++) dense[i] = make(LARGE);
  for (int i = 0; i < 3; i++) give_back(dense[i]);
  cr_expect_eq(space.spare_bytes, 3 * LARGE);
  for (int i = 0; i < 2; i++)
    cr_assert_eq(qk_shm_create_sparse(&space, LARGE, &sparse[i], &err), QK_OK);
  cr_expect_eq(space.spare_bytes, 3 * LARGE, "it is all zeros, and in the place of none");
  qk_shm_count(sparse[0], LARGE - 1);
  cr_expect_eq(space.spare_bytes, 3 * LARGE);
  qk_shm_count(sparse[1], 1);
  cr_expect_eq(space.spare_bytes, 2 * LARGE);
  qk_shm_count(sparse[1], LARGE);
  cr_expect_eq(space.spare_bytes, LARGE, "%lld", (long long)space.spare_bytes);
  for (int i = 0; i < 2; i++) give_back(sparse[i]);
  cr_expect_eq(space.spare_bytes, LARGE, "without its pages none is spared");
}

Test(shm, spare_ones_go_with_time_and_with_the_space) {
  need_leases();
  char name[QK_SHM_NAME_MAX];
  qk_shm_t *shm = make(LARGE);
  memcpy(name, shm->name, sizeof name);
  give_back(shm);
  qk_shm_tick(&space);
  cr_expect_eq(space.spare_bytes, LARGE);
  QK_HOLDER(space.spare.next, qk_shm_t, link)->since -= 10001;
  qk_shm_tick(&space);
  settle();
  cr_expect(space.spare_bytes == 0 && inode_of(name) == 0);
  shm = make(LARGE);
  memcpy(name, shm->name, sizeof name);
  qk_shm_destroy(shm); /* on its way when the space closes */
  qk_shm_space_close(&space);
  settle();
  cr_expect(space.spare_bytes == 0 && inode_of(name) == 0);
  space.closing = false;
}

Test(shm, what_stays_for_the_next_front_is_not_spared) {
  qk_shm_t *shm = make(LARGE);
  char name[QK_SHM_NAME_MAX];
  memcpy(name, shm->name, sizeof name);
  space.leave = shm->stays = true;
  give_back(shm);
  cr_expect(space.spare_bytes == 0 && inode_of(name) != 0);
  shm_unlink(name);
  shm = make(LARGE); /* no row names it */
  memcpy(name, shm->name, sizeof name);
  give_back(shm);
  cr_expect(space.spare_bytes == 0 && inode_of(name) == 0);
}

/* Mappings of this process that are objects of the space. */
static int mappings(void) {
  int n = 0;
  char line[1024], name[64];
  snprintf(name, sizeof name, "/dev/shm/%s", space.prefix);
  FILE *f = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, f)) n += strstr(line, name) != NULL;
  fclose(f);
  return n;
}

Test(shm, is_mapped_while_it_is_used_and_few_are_at_a_time) {
  enum { COUNT = 3 * QK_SHM_MAPPINGS };
  static qk_shm_t *shm[COUNT];
  for (int i = 0; i < COUNT; i++) shm[i] = make(SMALL);
  cr_expect_eq(mappings(), 0);
  for (int i = 0; i < COUNT; i++) memcpy(qk_shm_data(shm[i], NULL), &i, sizeof i);
  /* neighbours of one protection may be told as one, but these are of different files */
  cr_expect_eq(mappings(), QK_SHM_MAPPINGS);
  for (int i = 0; i < COUNT; i++) cr_expect(memcmp(qk_shm_data(shm[i], NULL), &i, sizeof i) == 0);
  qk_shm_unmap(shm[COUNT - 1]);
  qk_shm_unmap(shm[COUNT - 1]);
  cr_expect_eq(mappings(), QK_SHM_MAPPINGS - 1);
  for (int i = 0; i < COUNT; i++) qk_shm_destroy(shm[i]);
  cr_expect_eq(mappings(), 0);
  cr_expect_eq(space.mappings, 0);
}

Test(shm, one_whose_name_is_gone_cannot_be_mapped_and_says_so) {
  qk_shm_t *shm = make(SMALL);
  qk_err_t err = {0};
  cr_assert_eq(shm_unlink(shm->name), 0);
  cr_expect_null(qk_shm_data(shm, &err));
  cr_expect(err.code == QK_NO_MEMORY && strstr(err.text, shm->name), "%s", err.text);
  qk_shm_destroy(shm);
}

Test(shm, a_name_that_is_taken_is_passed_over) {
  char name[16][QK_SHM_NAME_MAX];
  qk_shm_t *shm = NULL;
  qk_err_t err = {0};
  guessable = true;
  for (int i = 0; i < 15; i++) take_name(i, name[i]);
  cr_assert_eq(qk_shm_create(&space, SMALL, &shm, &err), QK_OK, "%s", err.text);
  for (int i = 0; i < 15; i++) cr_expect(shm_unlink(name[i]) == 0);
  cr_expect(strcmp(shm->name, name[14]) != 0);
  qk_shm_destroy(shm);
  for (int i = 0; i < 16; i++) take_name(i, name[i]);
  cr_expect_eq(qk_shm_create(&space, SMALL, &shm, &err), QK_IO_ERROR);
  cr_expect(strstr(err.text, "/dev/shm") && strstr(err.text, name[15]), "%s", err.text);
  for (int i = 0; i < 16; i++) cr_expect(shm_unlink(name[i]) == 0);
}

Test(shm, names_cannot_be_guessed_and_are_known_again) {
  char first[QK_SHM_NAME_MAX];
  qk_shm_t *shm = make(SMALL), *other = NULL;
  memcpy(first, shm->name, sizeof first);
  cr_expect_eq(strlen(strrchr(first, '-')), 17);
  space.next = 0;
  qk_shm_destroy(shm);
  shm = make(SMALL);
  cr_expect_str_neq(strrchr(first, '-'), strrchr(shm->name, '-'));
  space.leave = shm->stays = true;
  memcpy(first, shm->name, sizeof first);
  qk_shm_destroy(shm);
  space.leave = false;
  cr_assert_eq(qk_shm_adopt(&space, first, SMALL, &other, NULL), QK_OK);
  cr_expect(other->stays);
  qk_shm_destroy(other);
  const char *const foreign[] = {"1-", "1-x", "1-5a5a5a5a5a5a5a5a5", "1-5a 2", "-5a", "1/5a", ""};
  for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
    snprintf(first, sizeof first, "/%s%s", space.prefix, foreign[i]);
    cr_expect_eq(qk_shm_adopt(&space, first, SMALL, &other, NULL), QK_NOT_FOUND);
  }
}
