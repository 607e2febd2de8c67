/*
 * copy.h: copies a field from a client's descriptor into a segment of the space, on a libuv thread;
 * or a part of a field into the segment of the whole.
 *
 * The descriptor is a memfd, sealed so that its size is fixed, but the client may still write to
 * it. It is read by pread and never mapped; the checksum is that of the bytes read.
 */
#ifndef QK_FRONT_COPY_H
#define QK_FRONT_COPY_H

#include <uv.h>

#include "daemon/front/storage/brick.h"
#include "daemon/front/storage/gate.h"
#include "daemon/front/storage/shm.h"
#include "proto/frame.h"

typedef struct qk_copy {
  int from; /* -1: none; owned */
  uint64_t offset, announced;
  bool sparse;                   /* holes are not read; announced is the checksum of blocks */
  bool dense;                    /* the field is to be mapped: their zeros are written */
  uint64_t bytes;                /* of the field */
  uint64_t copied;               /* without holes */
  char segment[QK_SHM_NAME_MAX]; /* where it goes */
  qk_brick_t brick;              /* of a part */
  qk_gate_t *gate;               /* likewise */
  qk_shm_t *field;   /* of a whole field: where it goes; whoever takes it sets it to NULL */
  uint64_t checksum; /* of what was read */
  qk_err_t err;      /* QK_NO_MEMORY, or QK_BAD_PROTOCOL: not what was announced */
  qk_field_hash_t *hash;
  uint8_t *buffer;
  void (*done)(struct qk_copy *copy);
  uv_work_t work;
} qk_copy_t;

/* Whether the field of these bytes is there. QK_BAD_PROTOCOL. */
qk_status_t qk_copy_check(int fd, uint64_t offset, uint64_t bytes, qk_err_t *err);
/* Calls done in a later turn of the loop. QK_NO_MEMORY: it does not, and err has the reason. */
qk_status_t qk_copy_start(qk_copy_t *copy, uv_loop_t *loop, qk_shm_space_t *space, uint64_t bytes,
                          void (*done)(qk_copy_t *copy));
/* The same of a part, which goes into that segment of the whole field and through the gate. */
qk_status_t qk_copy_start_part(qk_copy_t *copy, uv_loop_t *loop, const qk_shm_t *whole,
                               const qk_brick_t *brick, qk_gate_t *gate,
                               void (*done)(qk_copy_t *copy));
/* One that was not started, or is done. */
void qk_copy_fini(qk_copy_t *copy);

#endif
