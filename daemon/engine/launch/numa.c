#include "daemon/engine/launch/numa.h"

#include <ctype.h>
#include <dirent.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"

enum { NODES_MAX = 256, LINE = 4096, PATH = 512 };

/* ---- sysfs ----------------------------------------------------------------------------------- */

/* The first line of a file; false: it cannot be read. */
static bool read_line(const char *path, char line[LINE]) {
  FILE *f = fopen(path, "r");
  if (f == NULL) return false;
  const bool got = fgets(line, LINE, f) != NULL;
  fclose(f);
  if (got) line[strcspn(line, "\n")] = '\0';
  return got;
}

bool qk_numa_read_list(const char *text, cpu_set_t *cpus) {
  CPU_ZERO(cpus);
  for (const char *p = text; *p != '\0';) {
    char *end;
    if (!isdigit((unsigned char)*p)) return false;
    const long first = strtol(p, &end, 10);
    long last = first;
    if (*end == '-') {
      p = end + 1;
      if (!isdigit((unsigned char)*p)) return false;
      last = strtol(p, &end, 10);
    }
    if (last < first || last >= CPU_SETSIZE) return false;
    for (long cpu = first; cpu <= last; cpu++) CPU_SET((size_t)cpu, cpus);
    if (*end != ',' && *end != '\0') return false;
    p = *end == ',' ? end + 1 : end;
  }
  return CPU_COUNT(cpus) > 0;
}

int qk_numa_node(const char *sys, const char *bus) {
  char path[PATH], line[LINE], lower[32];
  size_t n = 0;
  for (; bus[n] != '\0' && n < sizeof lower - 1; n++) lower[n] = (char)tolower(bus[n]);
  lower[n] = '\0';
  snprintf(path, sizeof path, "%s/bus/pci/devices/%s/numa_node", sys, lower);
  if (n == 0 || !read_line(path, line)) return -1;
  char *end;
  const long node = strtol(line, &end, 10);
  return end != line && *end == '\0' && node >= 0 && node < NODES_MAX ? (int)node : -1;
}

bool qk_numa_node_cpus(const char *sys, int node, cpu_set_t *cpus) {
  char path[PATH], line[LINE];
  snprintf(path, sizeof path, "%s/devices/system/node/node%d/cpulist", sys, node);
  return read_line(path, line) && qk_numa_read_list(line, cpus);
}

/* ---- shares of a CPU ------------------------------------------------------------------------- */

typedef struct processor {
  int node, core, cpu; /* core: the first of the processors that are threads of it */
} processor_t;

static int core_of(const char *sys, int cpu) {
  char path[PATH], line[LINE];
  cpu_set_t siblings;
  snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/topology/thread_siblings_list", sys,
           cpu);
  if (!read_line(path, line) || !qk_numa_read_list(line, &siblings)) return cpu;
  for (int c = 0; c < cpu; c++)
    if (CPU_ISSET((size_t)c, &siblings)) return c;
  return cpu;
}

static int by_place(const void *a, const void *b) {
  const processor_t *x = a, *y = b;
  if (x->node != y->node) return x->node - y->node;
  if (x->core != y->core) return x->core - y->core;
  return x->cpu - y->cpu;
}

/* Those that are allowed, in the order of nodes and cores; how many. */
static int list_processors(const char *sys, const cpu_set_t *allowed,
                           processor_t list[CPU_SETSIZE]) {
  int n = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET((size_t)cpu, allowed)) list[n++] = (processor_t){0, core_of(sys, cpu), cpu};
  for (int node = 0; node < NODES_MAX; node++) {
    cpu_set_t cpus;
    if (!qk_numa_node_cpus(sys, node, &cpus)) continue;
    for (int i = 0; i < n; i++)
      if (CPU_ISSET((size_t)list[i].cpu, &cpus)) list[i].node = node;
  }
  qsort(list, (size_t)n, sizeof *list, by_place);
  return n;
}

bool qk_numa_share(const char *sys, const cpu_set_t *allowed, int replicas, int replica,
                   cpu_set_t *share) {
  processor_t list[CPU_SETSIZE];
  const int n = list_processors(sys, allowed, list);
  int ncores = 0;
  for (int i = 0; i < n; i++) ncores += i == 0 || list[i].core != list[i - 1].core;
  if (n < replicas) return false;
  const bool whole = ncores >= replicas;
  const int units = whole ? ncores : n, first = replica * units / replicas,
            end = (replica + 1) * units / replicas;
  CPU_ZERO(share);
  for (int i = 0, unit = -1; i < n; i++) {
    unit += !whole || i == 0 || list[i].core != list[i - 1].core;
    if (unit >= first && unit < end) CPU_SET((size_t)list[i].cpu, share);
  }
  return true;
}

/* ---- binding --------------------------------------------------------------------------------- */

static const char *bound_by_environment(void) {
  static const char *const names[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (getenv(names[i]) != NULL) return names[i];
  return NULL;
}

/* The threads that are there, and so those that they make. */
static bool bind_threads(const cpu_set_t *cpus) {
  DIR *dir = opendir("/proc/self/task");
  bool bound = sched_setaffinity(0, sizeof *cpus, cpus) == 0;
  if (dir == NULL) return bound;
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    const long tid = strtol(entry->d_name, NULL, 10);
    if (tid > 0 && sched_setaffinity((pid_t)tid, sizeof *cpus, cpus) != 0) bound = false;
  }
  closedir(dir);
  return bound;
}

static void limit_threads(int most) {
  if (getenv("OMP_NUM_THREADS") == NULL && omp_get_max_threads() > most) omp_set_num_threads(most);
}

static void use(const cpu_set_t *cpus, const char *why) {
  if (!bind_threads(cpus)) {
    qk_warn("worker", "threads are not bound to %s: the system does not allow it", why);
    return;
  }
  limit_threads(CPU_COUNT(cpus));
  qk_info("worker", "threads are bound to %s: %d processors", why, CPU_COUNT(cpus));
}

static void bind_to_device(const qk_ops_t *ops, qk_ops_ctx_t *ctx, const cpu_set_t *allowed) {
  qk_device_info_t info;
  cpu_set_t cpus;
  char why[96];
  if (ops->info(ctx, &info) != QK_OK) return;
  const int node = qk_numa_node("/sys", info.bus);
  if (node < 0 || !qk_numa_node_cpus("/sys", node, &cpus)) {
    qk_info("worker", "the NUMA node of device %s is not known: threads are not bound", info.bus);
    return;
  }
  CPU_AND(&cpus, &cpus, allowed);
  if (CPU_COUNT(&cpus) == 0) {
    qk_info("worker", "no processor of NUMA node %d may be used: threads are not bound", node);
    return;
  }
  snprintf(why, sizeof why, "NUMA node %d of device %s", node, info.bus);
  use(&cpus, why);
}

static void bind_to_share(const qk_comm_t *comm, const cpu_set_t *allowed, int replicas,
                          int replica) {
  cpu_set_t cpus;
  char why[64];
  if (qk_comm_local_size(comm) > 1) { /* binding ranks is mpirun's */
    const int threads = omp_get_max_threads() / replicas;
    limit_threads(threads < 1 ? 1 : threads);
    return;
  }
  if (!qk_numa_share("/sys", allowed, replicas, replica, &cpus)) {
    limit_threads(1);
    qk_info("worker", "%d processors for %d replicas: threads are not bound", CPU_COUNT(allowed),
            replicas);
    return;
  }
  snprintf(why, sizeof why, "the share of replica %d of %d", replica, replicas);
  use(&cpus, why);
}

void qk_numa_bind(const qk_comm_t *comm, const qk_ops_t *ops, qk_ops_ctx_t *ctx, int replicas,
                  int replica) {
  const char *by = bound_by_environment();
  cpu_set_t allowed;
  if (by != NULL) {
    qk_info("worker", "threads are bound by %s", by);
    return;
  }
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  if (ops->host_memory)
    bind_to_share(comm, &allowed, replicas, replica);
  else
    bind_to_device(ops, ctx, &allowed);
}
