#include "daemon/base/room.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 4096 };

static const int64_t UNLIMITED = INT64_MAX / 2; /* v1 says so with a number near 2^63 */

/* b behind a; what does not fit is left out. */
static void join(char out[QK_ROOM_PATH], const char *a, const char *b) {
  const size_t n = strnlen(a, QK_ROOM_PATH - 1), m = strnlen(b, QK_ROOM_PATH - 1 - n);
  memmove(out, a, n);
  memcpy(out + n, b, m);
  out[n + m] = '\0';
}

/* ---- files --------------------------------------------------------------------------------- */

static FILE *open_file(const char *folder, const char *name) {
  char path[2 * QK_ROOM_PATH];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return fopen(path, "re");
}

/* The number of a file that holds one; false where it holds none ("max"), or is not there. */
static bool read_number(const char *folder, const char *name, int64_t *value) {
  FILE *f = open_file(folder, name);
  const bool found = f && fscanf(f, "%" SCNd64, value) == 1;
  if (f) fclose(f);
  return found && *value >= 0;
}

/* Of a line "KEY NUMBER" or "KEY: NUMBER"; 0 where there is none. */
static int64_t read_key(const char *folder, const char *name, const char *key) {
  char line[LINE];
  int64_t value = 0;
  const size_t n = strlen(key);
  FILE *f = open_file(folder, name);
  while (f && fgets(line, sizeof line, f)) {
    if (strncmp(line, key, n) != 0 || (line[n] != ' ' && line[n] != ':')) continue;
    if (sscanf(line + n + 1, "%" SCNd64, &value) == 1) break;
  }
  if (f) fclose(f);
  return value;
}

/* ---- where the cgroup is ------------------------------------------------------------------- */

/* A folder of cgroups, and the part of the path in it that the process is in. */
typedef struct place {
  char mount[QK_ROOM_PATH], inside[QK_ROOM_PATH];
} place_t;

/* Whether a word of the list is "memory". */
static bool has_memory(const char *list) {
  for (const char *at = list; (at = strstr(at, "memory")); at++)
    if ((at == list || at[-1] == ',') && (at[6] == ',' || at[6] == '\0')) return true;
  return false;
}

/* What /proc/PID/cgroup says for v1 (unified: v2). */
static bool find_path(const char *proc, bool unified, char path[QK_ROOM_PATH]) {
  char line[LINE];
  bool found = false;
  FILE *f = open_file(proc, "cgroup");
  while (f && !found && fgets(line, sizeof line, f)) {
    char *list = strchr(line, ':'), *at = list ? strchr(++list, ':') : NULL;
    if (!at) continue;
    *at++ = '\0';
    at[strcspn(at, "\n")] = '\0';
    found = (unified ? !list[0] : has_memory(list)) && strlen(at) < QK_ROOM_PATH;
    if (found) join(path, at, "");
  }
  if (f) fclose(f);
  return found;
}

/* Whether the line of mountinfo is that of a file system of cgroups, and which part of them is
 * mounted where. */
static bool is_mount(const char *line, bool unified, char top[QK_ROOM_PATH],
                     char mount[QK_ROOM_PATH]) {
  char type[16], options[512];
  const char *rest = strstr(line, " - ");
  _Static_assert(QK_ROOM_PATH == 256, "the widths below");
  return rest && sscanf(line, "%*s %*s %*s %255s %255s", top, mount) == 2 &&
         sscanf(rest, " - %15s %*s %511s", type, options) == 2 &&
         (unified ? strcmp(type, "cgroup2") == 0
                  : strcmp(type, "cgroup") == 0 && has_memory(options));
}

/* In a container what is mounted may begin further down than the paths of /proc do. */
static const char *below(const char *path, const char *top) {
  const size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);
  if (strncmp(path, top, n) != 0 || (path[n] != '/' && path[n] != '\0')) return "";
  return strstr(path, "/..") || strcmp(path + n, "/") == 0 ? "" : path + n;
}

static bool find_place(const char *root, const char *proc, bool unified, place_t *place) {
  char path[QK_ROOM_PATH], top[QK_ROOM_PATH], mount[QK_ROOM_PATH], line[LINE];
  bool found = false;
  FILE *f = find_path(proc, unified, path) ? open_file(proc, "mountinfo") : NULL;
  while (f && !found && fgets(line, sizeof line, f))
    found = is_mount(line, unified, top, mount) && strlen(root) + strlen(mount) < QK_ROOM_PATH;
  if (f) fclose(f);
  if (!found) return false;
  join(place->mount, root, mount);
  join(place->inside, below(path, top), "");
  return strlen(place->mount) + strlen(place->inside) < QK_ROOM_PATH;
}

static void folder_of(const place_t *place, char folder[QK_ROOM_PATH]) {
  join(folder, place->mount, place->inside);
}

static void proc_of(const char *root, long pid, char proc[QK_ROOM_PATH]) {
  if (pid > 0)
    snprintf(proc, QK_ROOM_PATH, "%.200s/proc/%ld", root, pid);
  else
    snprintf(proc, QK_ROOM_PATH, "%.200s/proc/self", root);
}

/* ---- limits -------------------------------------------------------------------------------- */

static void bound(qk_room_t *room, int64_t limit, int64_t used, const char *folder,
                  const char *name) {
  const int64_t left = limit > used ? limit - used : 0;
  if (limit < room->limit) room->limit = limit;
  if (left >= room->free) return;
  room->free = left;
  room->bounded = true;
  join(room->by, folder, folder[0] ? "/" : "");
  join(room->by, room->by, name);
}

/* Pages of files are given up before anybody is killed; those of shared memory are not among
 * them. */
static void bound_by_group(qk_room_t *room, const char *folder, bool unified) {
  static const char *const names[2][2] = {{"memory.limit_in_bytes", NULL},
                                          {"memory.max", "memory.high"}};
  int64_t limit, used = 0;
  for (int i = 0; i < 2 && names[unified][i]; i++) {
    if (!read_number(folder, names[unified][i], &limit) || limit >= UNLIMITED) continue;
    read_number(folder, unified ? "memory.current" : "memory.usage_in_bytes", &used);
    used -= read_key(folder, "memory.stat", unified ? "inactive_file" : "total_inactive_file");
    used -= read_key(folder, "memory.stat", unified ? "active_file" : "total_active_file");
    bound(room, limit, used > 0 ? used : 0, folder, names[unified][i]);
  }
}

static void bound_by_groups(const char *root, qk_room_t *room, bool unified) {
  char proc[QK_ROOM_PATH], folder[QK_ROOM_PATH];
  place_t place;
  proc_of(root, 0, proc);
  if (!find_place(root, proc, unified, &place)) return;
  for (char *end = place.inside; end;) {
    folder_of(&place, folder);
    bound_by_group(room, folder, unified);
    end = strrchr(place.inside, '/');
    if (end) *end = '\0';
  }
}

/* 0: it is not set, or no number of MiB. */
static int64_t variable(const char *name) {
  const char *text = getenv(name);
  char *end;
  const long long value = text ? strtoll(text, &end, 10) : 0;
  return value > 0 && *end == '\0' && value < UNLIMITED >> 20 ? value : 0;
}

static void bound_by_slurm(const char *root, qk_room_t *room) {
  const int64_t node = variable("SLURM_MEM_PER_NODE"), cpu = variable("SLURM_MEM_PER_CPU"),
                cpus = variable("SLURM_CPUS_ON_NODE");
  char proc[QK_ROOM_PATH];
  int64_t size, resident = 0;
  proc_of(root, 0, proc);
  FILE *f = open_file(proc, "statm");
  if (!f || fscanf(f, "%" SCNd64 " %" SCNd64, &size, &resident) != 2) resident = 0;
  if (f) fclose(f);
  resident *= sysconf(_SC_PAGESIZE);
  if (node > 0)
    bound(room, node << 20, resident, "", "SLURM_MEM_PER_NODE");
  else if (cpu > 0 && cpus > 0 && cpu < (UNLIMITED >> 20) / cpus)
    bound(room, cpu * cpus << 20, resident, "", "SLURM_MEM_PER_CPU");
}

void qk_room_read(const char *root, qk_room_t *room) {
  char proc[QK_ROOM_PATH];
  snprintf(proc, sizeof proc, "%.200s/proc", root);
  const int64_t page = sysconf(_SC_PAGESIZE), total = read_key(proc, "meminfo", "MemTotal") << 10,
                available = read_key(proc, "meminfo", "MemAvailable") << 10;
  *room = (qk_room_t){.limit = total > 0 ? total : sysconf(_SC_PHYS_PAGES) * page,
                      .free = available > 0 ? available : sysconf(_SC_AVPHYS_PAGES) * page,
                      .by = "the machine"};
  bound_by_groups(root, room, false);
  bound_by_groups(root, room, true);
  bound_by_slurm(root, room);
}

/* ---- kills --------------------------------------------------------------------------------- */

void qk_room_group(const char *root, long pid, char group[QK_ROOM_PATH]) {
  char proc[QK_ROOM_PATH];
  place_t place;
  group[0] = '\0';
  proc_of(root, pid, proc);
  /* with both hierarchies the memory is v1's */
  if (find_place(root, proc, false, &place) || find_place(root, proc, true, &place))
    folder_of(&place, group);
}

int64_t qk_room_kills(const char *group) {
  if (!group[0]) return 0;
  const int64_t kills = read_key(group, "memory.events", "oom_kill");
  return kills > 0 ? kills : read_key(group, "memory.oom_control", "oom_kill");
}
