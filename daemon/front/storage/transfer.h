/*
 * transfer.h: one field on its way between a client and shared memory, chunk by chunk.
 *
 * The loop makes a transfer, hands pieces of the field to a data thread (wire/data_thread.h), one
 * after the other, and takes them back when they are done. The thread reads or writes the segment
 * through a descriptor, never through a mapping: a segment that is destroyed meanwhile does no
 * harm. It opens the segment for one piece at a time, so a thread has one descriptor at most,
 * however many transfers there are.
 *
 * Part      of a field: offsets and bytes are those of the part, and its brick says where they are
 *           in the segment, which holds the whole field.
 * Checksum  of the field from its beginning: bytes before the first chunk that comes (of an upload
 *           that a restarted front goes on with, or of a download from the middle) are read back,
 *           some at a time.
 */
#ifndef QK_FRONT_TRANSFER_H
#define QK_FRONT_TRANSFER_H

#include <stdatomic.h>

#include "daemon/base/list.h"
#include "daemon/front/storage/brick.h"
#include "daemon/front/storage/gate.h"
#include "daemon/front/storage/shm.h"
#include "proto/frame.h"

typedef struct qk_transfer {
  /* the loop's */
  qk_link_t link;  /* in a list of its owner */
  void *owner;     /* NULL: nobody wants the field any more */
  int under_way;   /* pieces */
  qk_gate_t *gate; /* which they go through; borrowed while none is under way. NULL: none */
  /* of the piece that is under way; the loop's while there is none */
  char segment[QK_SHM_NAME_MAX]; /* "": there is none, bytes are only added to the checksum */
  qk_brick_t brick;              /* where its bytes are in the segment: does not change */
  bool dense;                    /* zeros are written, not left out: likewise */
  bool by_blocks;                /* the checksum: does not change */
  qk_field_hash_t *hash;
  uint64_t hashed;  /* bytes of the field in `hash` */
  bool blind;       /* bytes are missing in it */
  atomic_bool over; /* as owner == NULL, for the thread */
  atomic_bool stop; /* the piece that is under way goes no further */
} qk_transfer_t;

/* by_blocks: of the checksum (frame.h). NULL without memory. */
qk_transfer_t *qk_transfer_create(void *owner, bool by_blocks);
/* A piece is about to be handed over. field NULL: its bytes are not kept. */
void qk_transfer_start(qk_transfer_t *t, const qk_shm_t *field);
/* A piece has come back. False: nobody wants the field any more, and t may be gone. */
bool qk_transfer_finish(qk_transfer_t *t);
/* It is the part of a field that goes through the gate (may be NULL). Before its first piece. */
void qk_transfer_set_part(qk_transfer_t *t, const qk_brick_t *brick, qk_gate_t *gate);
/* Nobody wants the field any more: t goes when its last piece has come back. NULL-safe. */
void qk_transfer_leave(qk_transfer_t *t);

/* On the thread that has the piece. QK_IO_ERROR; QK_NO_MEMORY: also if the process has no
 * descriptor left, or /dev/shm is full. */

/* Reads back `most` bytes at most of those that the checksum lacks before the offset; *more: there
 * are others. The two below read back all of them. */
qk_status_t qk_transfer_catch_up(qk_transfer_t *t, uint64_t offset, uint64_t most, bool *more,
                                 qk_err_t *err);
/* Pieces of an upload come in order. block: the checksum of the piece where it is a block, else
 * NULL. */
qk_status_t qk_transfer_write(qk_transfer_t *t, const void *data, size_t bytes, uint64_t offset,
                              const uint64_t *block, qk_err_t *err);
/* The same of zeros. */
qk_status_t qk_transfer_zero(qk_transfer_t *t, uint64_t bytes, uint64_t offset, qk_err_t *err);
/* out: [bytes]. In order, or again from anywhere. block: whether the piece is one; *sum: its
 * checksum. */
qk_status_t qk_transfer_read(qk_transfer_t *t, void *out, size_t bytes, uint64_t offset, bool block,
                             uint64_t *sum, qk_err_t *err);
/* Whether that is the checksum of the field, all of which has gone through; true if the first part
 * of it was not kept, so that nobody knows. */
bool qk_transfer_has_checksum(const qk_transfer_t *t, uint64_t checksum);
/* The same, for a field that is read. */
uint64_t qk_transfer_checksum(const qk_transfer_t *t);

#endif
