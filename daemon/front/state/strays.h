/*
 * strays.h: shared memory that was left for fronts that will not come. A front that is killed
 * leaves its objects to the next front that has its state folder on this machine; only that one
 * knows which of them it wants. If the folder is served on another machine since then, nobody
 * wants them: the front there has made again, or given up, what it did not find.
 *
 * So each front notes where its folder is (/dev/shm/quarkd-dir-<hash>). In the folder's lock file,
 * behind its process, it writes its number and the boot of its machine. A front that starts later
 * as the same user reads both, and removes the objects of earlier numbers if the boot is another.
 * If the folder is not there, or its lock file says nothing, the folder may come back: its objects
 * stay.
 */
#ifndef QK_FRONT_STRAYS_H
#define QK_FRONT_STRAYS_H

#include <stdint.h>

#include "daemon/front/storage/shm.h"

/* The front of this number has found all that it goes on with. dir: the state folder; lock: its
 * lock file, open at its end. */
void qk_strays_note(const qk_shm_space_t *space, const char *dir, int lock, uint64_t front);
/* Nothing of the space is left. */
void qk_strays_forget(const qk_shm_space_t *space);
/* Removes the strays of all other folders, on a thread, as a folder may be on a file system that
 * hangs. The log says how many there were. */
void qk_strays_sweep(uv_loop_t *loop, const qk_shm_space_t *space);
/* The same, at once. Returns how many there were. */
int qk_strays_remove(const char *own);

#endif
