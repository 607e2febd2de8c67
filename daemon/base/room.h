/*
 * room.h: how much memory of the machine this process may have: the least of what the machine has,
 * of the limits of its cgroup and of those above it (v1: memory.limit_in_bytes, v2: memory.max and
 * memory.high), and of what Slurm has given to the job on this node (SLURM_MEM_PER_NODE, or
 * SLURM_MEM_PER_CPU for each of SLURM_CPUS_ON_NODE; MiB). Shared memory counts against all of them.
 *
 * root: where /proc and /sys are looked for; "": where they are. What cannot be read sets no limit.
 * Source: cgroups(7), Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst of Linux,
 * sbatch(1).
 */
#ifndef QK_BASE_ROOM_H
#define QK_BASE_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { QK_ROOM_PATH = 256 }; /* of a cgroup's folder or file; longer ones are not looked at */

typedef struct qk_room {
  int64_t limit; /* bytes: the least of all limits */
  int64_t free; /* bytes that can still be had; what the kernel would give up of its caches is among
                   them */
  char by[QK_ROOM_PATH]; /* what leaves the least free: the path of a limit, a variable of Slurm, or
                            "the machine" */
  bool bounded;          /* that is not the machine: who takes more is killed */
} qk_room_t;

void qk_room_read(const char *root, qk_room_t *room);

/* The cgroup that sets limits to a process (pid 0: this one); "": there is none. */
void qk_room_group(const char *root, long pid, char group[QK_ROOM_PATH]);
/* How many processes of the cgroup have been killed because memory had run out; 0 where that is not
 * known. */
int64_t qk_room_kills(const char *group);

#ifdef __cplusplus
}
#endif

#endif
