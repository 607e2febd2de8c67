/*
 * quarkd: the front. Owns the sockets, the sessions and the queue; starts, watches and restarts
 * the engine. Exit codes: 0, 64 usage, 65 gauge file refused, 69 unavailable, 75 try again, 78
 * configuration.
 */
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/front/host/zmq_guard.h"
#include "daemon/front/server.h"

enum { DESCRIPTORS = 65536 };

/* Idle OpenMP threads of a CPU engine spin for milliseconds by default, and disturb each other
 * on shared cores. libgomp reads this setting before the engine's main. A setting of the user
 * stays. */
static void calm_openmp(void) {
  if (!getenv("OMP_WAIT_POLICY") && !getenv("GOMP_SPINCOUNT")) setenv("GOMP_SPINCOUNT", "2000", 1);
}

/* Processors that this process may use: a batch system may have given it some of them. */
static long processors(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                     : sysconf(_SC_NPROCESSORS_ONLN);
}

/* Fields of local clients are copied by threads of libuv, 1 GB/s each, and those of others by data
 * threads: half of the cores. On a single one the loop does the work of these. */
static void share_cores(qk_settings_t *settings) {
  char text[16];
  const long half = processors() / 2;
  snprintf(text, sizeof text, "%ld", half < 4 ? 4 : half > 16 ? 16 : half);
  setenv("UV_THREADPOOL_SIZE", text, 0);
  if (settings->data_threads == 0)
    settings->data_threads = half < QK_DATA_THREADS_MAX ? half : QK_DATA_THREADS_MAX;
}

/* Chunks of fields come and go in buffers of a megabyte: their pages stay with the process. */
static void keep_buffers(void) {
  mallopt(M_MMAP_THRESHOLD, 8 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_TOP_PAD, 16 << 20);
}

/* Shells and systemd begin with 1024, for the sake of programs that use select(). */
static void raise_descriptors(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= DESCRIPTORS) return;
  limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/* libzmq numbers the peers of a socket from rand() on. Begun in the same way by every process, the
 * routing ids of those to come could be claimed by others. */
static bool seed_routing_ids(void) {
  unsigned seed;
  if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) return false;
  srand(seed);
  return true;
}

int main(int argc, char **argv) {
  int exit_code = 0;
  qk_settings_t settings;
  if (!qk_settings_parse(&settings, argc, argv, &exit_code)) {
    qk_settings_fini(&settings);
    return exit_code;
  }
  qk_log_init("quarkd", -1, (qk_level_t)settings.log_level);
  qk_log_use((qk_log_format_t)settings.log_format);
  signal(SIGPIPE, SIG_IGN);
  qk_zmq_guard();
  calm_openmp();
  share_cores(&settings);
  keep_buffers();
  raise_descriptors();
  qk_server_t *server = qk_malloc(sizeof *server);
  const bool seeded = seed_routing_ids();
  if (server && seeded) {
    exit_code = qk_server_run(server, &settings);
  } else {
    qk_error("server", server ? "getrandom gives no random bytes" : "no memory");
    exit_code = 75;
  }
  qk_free(server);
  qk_settings_fini(&settings);
  return exit_code;
}
