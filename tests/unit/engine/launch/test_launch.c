/* Which device a rank opens, and which processors it is bound to. */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/engine/launch/launch.h"
#include "daemon/engine/launch/numa.h"

/* ---- devices --------------------------------------------------------------------------------- */

static int ordinal_of(const qk_launch_place_t *place, int local, int size, int count) {
  qk_err_t err = {0};
  int ordinal = -1;
  cr_assert_eq(qk_launch_ordinal(place, local, size, count, &ordinal, &err), QK_OK, "%s", err.text);
  return ordinal;
}

static void expect_refused(const qk_launch_place_t *place, int size, int count, const char *says) {
  qk_err_t err = {0};
  int ordinal = -1;
  cr_expect_eq(qk_launch_ordinal(place, 0, size, count, &ordinal, &err), QK_NO_DEVICE);
  cr_expect_not_null(strstr(err.text, says), "\"%s\" does not say \"%s\"", err.text, says);
  cr_expect_eq(ordinal, -1);
}

Test(launch, replicas_have_devices_of_their_own) {
  bool taken[8] = {false};
  for (int r = 0; r < 4; r++)
    for (int local = 0; local < 2; local++) {
      const int at = ordinal_of(&(qk_launch_place_t){.replicas = 4, .replica = r}, local, 2, 8);
      cr_assert(at >= 0 && at < 8 && !taken[at]);
      taken[at] = true;
    }
}

Test(launch, devices_are_those_that_are_listed) {
  const qk_launch_place_t place = {
      .replicas = 2, .replica = 1, .ndevices = 4, .device = {5, 1, 7, 2}};
  cr_expect_eq(ordinal_of(&place, 0, 2, 8), 7);
  cr_expect_eq(ordinal_of(&place, 1, 2, 8), 2);
  const qk_launch_place_t shared = {.replicas = 2, .replica = 1, .ndevices = 2, .device = {0, 0}};
  cr_expect_eq(ordinal_of(&shared, 0, 1, 1), 0);
}

Test(launch, too_few_devices_are_told_by_each_replica) {
  for (int r = 0; r < 2; r++) {
    const qk_launch_place_t place = {.replicas = 2, .replica = r};
    expect_refused(&place, 1, 1, "2 replicas of 1 ranks need 2 devices of this host, which has 1");
    expect_refused(&place, 2, 3, "2 replicas of 2 ranks need 4 devices");
  }
  const qk_launch_place_t unknown = {.replicas = 2, .ndevices = 2, .device = {0, 3}};
  expect_refused(&unknown, 1, 3, "device = 3: this machine has 3");
  const qk_launch_place_t few = {.replicas = 2, .ndevices = 2, .device = {0, 1}};
  expect_refused(&few, 2, 8, "need 4 devices: 2 are listed");
}

/* ---- processors ------------------------------------------------------------------------------ */

static void expect_list(const char *text, const char *expected) {
  cpu_set_t cpus;
  char found[256] = "";
  size_t n = 0;
  cr_assert(qk_numa_read_list(text, &cpus), "%s", text);
  for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &cpus)) n += (size_t)sprintf(found + n, "%zu ", cpu);
  cr_expect_str_eq(found, expected);
}

Test(numa, reads_lists_of_processors) {
  cpu_set_t cpus;
  expect_list("0", "0 ");
  expect_list("0-3", "0 1 2 3 ");
  expect_list("1,4-5,9", "1 4 5 9 ");
  static const char *const wrong[] = {"", "a", "1-", "3-1", "1,,2", "0-100000", "-1", "1 2"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    cr_expect_not(qk_numa_read_list(wrong[i], &cpus), "%s", wrong[i]);
}

static char sys[] = "/tmp/qk-sys-XXXXXX";

static void write_file(const char *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void write_file(const char *text, const char *format, ...) {
  char path[512];
  va_list list;
  int n = snprintf(path, sizeof path, "%s/", sys);
  va_start(list, format);
  vsnprintf(path + n, sizeof path - (size_t)n, format, list);
  va_end(list);
  for (char *p = path + n; (p = strchr(p, '/')) != NULL; p++) {
    *p = '\0';
    mkdir(path, 0700);
    *p = '/';
  }
  FILE *f = fopen(path, "w");
  cr_assert(f);
  fputs(text, f);
  fclose(f);
}

/* Two nodes of four cores with two threads each: core c has the processors c and c + 8. */
static void make_machine(void) {
  cr_assert(mkdtemp(sys));
  write_file("0-3,8-11\n", "devices/system/node/node0/cpulist");
  write_file("4-7,12-15\n", "devices/system/node/node1/cpulist");
  for (int cpu = 0; cpu < 16; cpu++) {
    char siblings[32];
    snprintf(siblings, sizeof siblings, "%d,%d\n", cpu % 8, cpu % 8 + 8);
    write_file(siblings, "devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
  }
  write_file("1\n", "bus/pci/devices/0000:af:00.0/numa_node");
  write_file("-1\n", "bus/pci/devices/0000:17:00.0/numa_node");
}

static void remove_machine(void) {
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", sys);
  cr_expect_eq(system(command), 0);
}

Test(numa, knows_the_node_of_a_device, .init = make_machine, .fini = remove_machine) {
  cpu_set_t cpus, expected;
  cr_expect_eq(qk_numa_node(sys, "0000:AF:00.0"), 1);
  cr_expect_eq(qk_numa_node(sys, "0000:17:00.0"), -1);
  cr_expect_eq(qk_numa_node(sys, "0000:99:00.0"), -1);
  cr_expect_eq(qk_numa_node(sys, ""), -1);
  cr_assert(qk_numa_node_cpus(sys, 1, &cpus) && qk_numa_read_list("4-7,12-15", &expected));
  cr_expect(CPU_EQUAL(&cpus, &expected));
  cr_expect_not(qk_numa_node_cpus(sys, 2, &cpus));
}

static void expect_share(const char *allowed, int replicas, int replica, const char *expected) {
  cpu_set_t from, share, right;
  cr_assert(qk_numa_read_list(allowed, &from) && qk_numa_read_list(expected, &right));
  cr_assert(qk_numa_share(sys, &from, replicas, replica, &share));
  cr_expect(CPU_EQUAL(&share, &right), "replica %d of %d in %s is not %s", replica, replicas,
            allowed, expected);
}

Test(numa, shares_are_whole_cores_of_a_node, .init = make_machine, .fini = remove_machine) {
  expect_share("0-15", 1, 0, "0-15");
  expect_share("0-15", 2, 0, "0-3,8-11");
  expect_share("0-15", 2, 1, "4-7,12-15");
  expect_share("0-15", 3, 0, "0-1,8-9");
  expect_share("0-15", 3, 1, "2-4,10-12");
  expect_share("0-15", 3, 2, "5-7,13-15");
  expect_share("1,2,9,10", 2, 1, "2,10");
  expect_share("0,8", 2, 1, "8"); /* one core for two: a thread each */
  cpu_set_t from, share;
  cr_assert(qk_numa_read_list("3", &from));
  cr_expect_not(qk_numa_share(sys, &from, 2, 0, &share));
}
