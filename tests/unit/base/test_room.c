/* How much memory a process may have: an invented tree of /proc and /sys. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/room.h"

static char root[64];

/* The file and the folders above it. */
__attribute__((format(printf, 2, 3))) static void put(const char *path, const char *text, ...) {
  char full[512];
  va_list args;
  snprintf(full, sizeof full, "%s%s", root, path);
  for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
    *at = '\0';
    cr_assert(mkdir(full, 0700) == 0 || errno == EEXIST);
  }
  FILE *f = fopen(full, "w");
  cr_assert(f, "%s", full);
  va_start(args, text);
  vfprintf(f, text, args);
  va_end(args);
  fclose(f);
}

static void begin(void) {
  snprintf(root, sizeof root, "/tmp/qk-room-XXXXXX");
  cr_assert(mkdtemp(root));
  unsetenv("SLURM_MEM_PER_NODE");
  unsetenv("SLURM_MEM_PER_CPU");
  unsetenv("SLURM_CPUS_ON_NODE");
  put("/proc/meminfo", "MemTotal:  1000000 kB\nMemFree: 1 kB\nMemAvailable:  900000 kB\n");
  put("/proc/self/statm", "5000 1000 10 1 0 1 0\n");
}

static void end(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", root);
  cr_expect_eq(system(command), 0);
}

TestSuite(room, .init = begin, .fini = end);

static void v1(const char *path) {
  put("/proc/self/cgroup", "12:cpu,cpuacct:/x\n4:memory:%s\n0::/y\n", path);
  put("/proc/self/mountinfo", "30 20 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                              "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup "
                              "cgroup rw,memory\n36 31 0:33 / /sys/fs/cgroup/unified rw - cgroup2 "
                              "cgroup2 rw\n");
}

static void v2(const char *path, const char *top) {
  put("/proc/self/cgroup", "0::%s\n", path);
  put("/proc/self/mountinfo", "36 31 0:33 %s /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
      top);
}

static void expect(int64_t limit, int64_t free, const char *by) {
  qk_room_t room;
  char path[512];
  qk_room_read(root, &room);
  cr_expect_eq(room.limit, limit, "%lld", (long long)room.limit);
  cr_expect_eq(room.free, free, "%lld", (long long)room.free);
  snprintf(path, sizeof path, "%s%s", by[0] == '/' ? root : "", by);
  cr_expect_str_eq(room.by, path);
  cr_expect_eq(room.bounded, strcmp(by, "the machine") != 0);
}

enum { MIB = 1 << 20 };

Test(room, is_that_of_the_machine_where_nothing_else_is_said) {
  expect(1000000ll << 10, 900000ll << 10, "the machine");
  v1("/");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  expect(1000000ll << 10, 900000ll << 10, "the machine");
  v2("/user.slice", "/");
  put("/sys/fs/cgroup/user.slice/memory.max", "max\n");
  expect(1000000ll << 10, 900000ll << 10, "the machine");
}

Test(room, is_that_of_the_tightest_group_up_the_tree) {
  v1("/slurm/job_7/step_0");
  put("/sys/fs/cgroup/memory/slurm/job_7/step_0/memory.limit_in_bytes", "9223372036854771712\n");
  put("/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "%d\n", 400 * MIB);
  put("/sys/fs/cgroup/memory/slurm/job_7/memory.usage_in_bytes", "%d\n", 150 * MIB);
  put("/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "%d\n", 500 * MIB);
  put("/sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "%d\n", 160 * MIB);
  expect(400 * MIB, 250 * MIB, "/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes");
  put("/sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "%d\n", 490 * MIB);
  expect(400 * MIB, 10 * MIB, "/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes");
  put("/sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "%d\n", 501 * MIB);
  expect(400 * MIB, 0, "/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes");
}

Test(room, of_unified_groups_ends_where_they_are_throttled_or_killed) {
  v2("/system.slice/quarkd.service", "/");
  put("/sys/fs/cgroup/system.slice/quarkd.service/memory.max", "%d\n", 300 * MIB);
  put("/sys/fs/cgroup/system.slice/quarkd.service/memory.high", "max\n");
  put("/sys/fs/cgroup/system.slice/quarkd.service/memory.current", "%d\n", 100 * MIB);
  expect(300 * MIB, 200 * MIB, "/sys/fs/cgroup/system.slice/quarkd.service/memory.max");
  put("/sys/fs/cgroup/system.slice/quarkd.service/memory.high", "%d\n", 250 * MIB);
  expect(250 * MIB, 150 * MIB, "/sys/fs/cgroup/system.slice/quarkd.service/memory.high");
}

Test(room, counts_what_is_cached_of_files_as_free_and_shared_memory_as_used) {
  v2("/a", "/");
  put("/sys/fs/cgroup/a/memory.max", "%d\n", 300 * MIB);
  put("/sys/fs/cgroup/a/memory.current", "%d\n", 290 * MIB);
  put("/sys/fs/cgroup/a/memory.stat",
      "anon 7\nfile %d\nshmem %d\ninactive_file %d\nactive_file %d\n", 240 * MIB, 40 * MIB,
      120 * MIB, 80 * MIB);
  expect(300 * MIB, 210 * MIB, "/sys/fs/cgroup/a/memory.max");
  v1("/a");
  put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "%d\n", 300 * MIB);
  put("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "%d\n", 290 * MIB);
  put("/sys/fs/cgroup/memory/a/memory.stat",
      "inactive_file 1\ntotal_inactive_file %d\ntotal_active_file %d\n", 90 * MIB, 10 * MIB);
  expect(300 * MIB, 110 * MIB, "/sys/fs/cgroup/memory/a/memory.limit_in_bytes");
}

/* What is mounted there begins with the container's group, or the path is of another namespace. */
Test(room, is_found_in_a_container) {
  v2("/docker/0123abcd", "/docker/0123abcd");
  put("/sys/fs/cgroup/memory.max", "%d\n", 64 * MIB);
  expect(64 * MIB, 64 * MIB, "/sys/fs/cgroup/memory.max");
  v2("/docker/0123abcd/inner", "/docker/0123abcd");
  put("/sys/fs/cgroup/inner/memory.max", "%d\n", 32 * MIB);
  expect(32 * MIB, 32 * MIB, "/sys/fs/cgroup/inner/memory.max");
  v2("/../../other", "/");
  expect(64 * MIB, 64 * MIB, "/sys/fs/cgroup/memory.max");
  v2("/elsewhere", "/docker/0123abcd");
  expect(64 * MIB, 64 * MIB, "/sys/fs/cgroup/memory.max");
}

Test(room, is_what_slurm_gives_to_the_job_less_what_this_process_has) {
  const int64_t own = 1000 * sysconf(_SC_PAGESIZE);
  setenv("SLURM_MEM_PER_NODE", "200", 1);
  expect(200 * MIB, 200 * MIB - own, "SLURM_MEM_PER_NODE");
  setenv("SLURM_MEM_PER_NODE", "0", 1); /* all of the node's */
  expect(1000000ll << 10, 900000ll << 10, "the machine");
  unsetenv("SLURM_MEM_PER_NODE");
  setenv("SLURM_MEM_PER_CPU", "100", 1);
  expect(1000000ll << 10, 900000ll << 10, "the machine");
  setenv("SLURM_CPUS_ON_NODE", "3", 1);
  expect(300 * MIB, 300 * MIB - own, "SLURM_MEM_PER_CPU");
  static const char *const odd[] = {"", "x", "-5", "7x", "99999999999999999999"};
  for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
    setenv("SLURM_MEM_PER_CPU", odd[i], 1);
    expect(1000000ll << 10, 900000ll << 10, "the machine");
  }
}

Test(room, knows_how_many_were_killed) {
  char group[QK_ROOM_PATH], expected[512];
  qk_room_group(root, 0, group);
  cr_expect_str_empty(group);
  cr_expect_eq(qk_room_kills(group), 0);
  v2("/a/b", "/");
  put("/sys/fs/cgroup/a/b/memory.events", "low 0\noom 4\noom_kill 3\noom_group_kill 9\n");
  qk_room_group(root, 0, group);
  snprintf(expected, sizeof expected, "%s/sys/fs/cgroup/a/b", root);
  cr_expect_str_eq(group, expected);
  cr_expect_eq(qk_room_kills(group), 3);
  v1("/c");
  put("/sys/fs/cgroup/memory/c/memory.oom_control",
      "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  qk_room_group(root, 0, group);
  cr_expect_eq(qk_room_kills(group), 2);
}

/* Whatever stands in the files. */
Test(room, survives_paths_that_are_too_long_and_lines_that_make_no_sense) {
  char name[1024];
  memset(name, 'x', sizeof name - 1);
  name[0] = '/';
  name[sizeof name - 1] = '\0';
  v2(name, "/");
  expect(1000000ll << 10, 900000ll << 10, "the machine");
  put("/proc/self/mountinfo", "%s - \n - cgroup2\n\n1 2 3 4 5 - cgroup2 x y\n", name);
  expect(1000000ll << 10, 900000ll << 10, "the machine");
  put("/proc/self/cgroup", "0:\n:\n%s\n", name);
  expect(1000000ll << 10, 900000ll << 10, "the machine");
}
