/*
 * shm.h: POSIX shared-memory objects that carry fields between front and engine. Made and removed
 * by the front, named to the engine. Mode 0600; their pages are reserved when they are made, so
 * that a full /dev/shm is an error here and not a SIGBUS later.
 *
 * A space is a set of names: /quarkd-<pid>-<number>-<random> of a front without a state folder,
 * whose objects go with the process (or are swept by the next front), and
 * /quarkd-s<hash>-<number>-<random> of a state folder, whose objects a later front adopts by name.
 * There each front begins with a number above those of all before it (restore.c). The random part
 * keeps other users of the machine from taking names that are to come; one that is taken all the
 * same is not tried again.
 *
 * An object is mapped when its bytes are asked for, and at most QK_SHM_MAPPINGS of a space are: a
 * process may have 65530 mappings (vm.max_map_count), and held solutions be more.
 *
 * To make the pages of a field and to give them back takes longer than to fill them. So large
 * objects of a space with a loop are spared when they are destroyed, for whoever creates one of the
 * same size next, under another name: for 10 s, where all their pages are there, and where nobody
 * else has the object open or mapped (a client whose solution it was), which a write lease tells:
 * fcntl(2), F_SETLEASE. Spare objects take no more memory than the space had before: to make a new
 * large one costs as many bytes of them.
 */
#ifndef QK_FRONT_SHM_H
#define QK_FRONT_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/base/err.h"
#include "daemon/base/list.h"
#include "proto/limits.h"

enum { QK_SHM_MAPPINGS = 256 };

typedef struct qk_shm_space {
  char prefix[32];
  uint64_t next; /* number of the next object */
  bool leave;    /* objects with `stays` outlive us: for the next front */
  uv_loop_t *
      /* whose threads free pages, which takes as long as allocating them; NULL: the caller does */
      loop;
  qk_link_t live;  /* what has been made or adopted and not destroyed */
  qk_link_t spare; /* what has been destroyed and can be made again, oldest first */
  int64_t spare_bytes;
  int64_t owed;     /* bytes that sparse ones have got and no spare one has gone for */
  qk_link_t mapped; /* of the live ones those that are mapped, the one used last at the end */
  int mappings;
  bool closing;
} qk_shm_space_t;

typedef struct qk_shm {
  char name[QK_SHM_NAME_MAX];
  uint8_t *data; /* qk_shm_data; NULL: it is not mapped */
  size_t bytes;
  qk_shm_space_t *space;
  qk_link_t link, mapped;
  bool sparse;    /* made without pages, and in the place of no spare one */
  bool stays;     /* rows of the journal may name it, and the next front wants it */
  uv_work_t work; /* giving it back */
  char spare_name[QK_SHM_NAME_MAX];
  bool sound;           /* given back: nobody has it and its pages are there */
  uint64_t since;       /* spare: ms of the loop's clock */
  struct qk_shm *after; /* in the journal's list of what waits for its rows */
} qk_shm_t;

/* state: absolute path of the state folder, or NULL. The space must stay where it is. */
void qk_shm_space_init(qk_shm_space_t *space, const char *state);

/* Before the loop ends: spare objects go, and there will be none. */
void qk_shm_space_close(qk_shm_space_t *space);
/* A few times a second, where there is a loop. */
void qk_shm_tick(qk_shm_space_t *space);

/* Of any content.
 * Errors: QK_NO_MEMORY (also where /dev/shm is full), QK_IO_ERROR. */
qk_status_t qk_shm_create(qk_shm_space_t *space, size_t bytes, qk_shm_t **shm, qk_err_t *err);
/* The same without allocated pages: before qk_shm_write has written all of it, no other access
 * is allowed. */
qk_status_t qk_shm_create_bare(qk_shm_space_t *space, size_t bytes, qk_shm_t **shm, qk_err_t *err);
/* All zeros, without pages (holes.h): none of the spare ones is taken, nor goes for it before
 * there are bytes in it. */
qk_status_t qk_shm_create_sparse(qk_shm_space_t *space, size_t bytes, qk_shm_t **shm,
                                 qk_err_t *err);
/* So many bytes are written to it, or have been: spare ones go for those of a sparse one. The
 * loop's thread alone. */
void qk_shm_count(const qk_shm_t *shm, uint64_t bytes);
/* The object in memory, for reading and writing, until the next call for another one of the space;
 * the loop's thread alone. NULL: QK_NO_MEMORY. */
uint8_t *qk_shm_data(qk_shm_t *shm, qk_err_t *err);
/* It is not needed in memory for now. */
void qk_shm_unmap(qk_shm_t *shm);
/* For qk_shm_write; -1 with errno. The caller closes it. Any thread. */
int qk_shm_open(const qk_shm_t *shm, int flags);
/* Writes through a descriptor, which allocates the pages. Any thread. QK_NO_MEMORY: /dev/shm is
 * full. */
qk_status_t qk_shm_write(int fd, const void *data, size_t bytes, size_t offset, qk_err_t *err);
/* Adopts an object that an earlier front of this space has left; new numbers stay above its
 * number. Errors: QK_NOT_FOUND (no such object of this space, size and user), QK_NO_MEMORY. */
qk_status_t qk_shm_adopt(qk_shm_space_t *space, const char *name, size_t bytes, qk_shm_t **shm,
                         qk_err_t *err);
/* Unmaps, and spares or unlinks where the space does not leave them. NULL-safe. */
void qk_shm_destroy(qk_shm_t *shm);

/* Bytes that could be made now. */
int64_t qk_shm_free_bytes(const qk_shm_space_t *space);

/* Removes objects of this user that fronts without a state folder have left behind after their
 * end, and objects in this space that are not live. Returns how many. */
int qk_shm_sweep(const qk_shm_space_t *space);

#endif
