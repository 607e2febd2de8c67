/*
 * upload.h: the byte stream of an upload, and the memory that it is kept in.
 *
 * All fields of a request form one stream. The ring holds the bytes [written - capacity, written):
 * what may have to be sent again, and what has not been sent. It is on the heap, or, if the daemon
 * is on this machine, in a sealed memfd, which is called shared. A shared ring holds whole fields,
 * and every field of which a part has not arrived. An upload of fields that are in buffers of the
 * user (put.c) has a ring, too, which stays empty. Runs of zeros (runs.h) take no room in a ring on
 * the heap; in a shared one they are holes.
 *
 * Units    bytes; positions count from the start of the stream.
 * Threads  The caller holds the mutex of the connection.
 */
#ifndef QUARK_UPLOAD_H
#define QUARK_UPLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "client/libquark/memory/runs.h"
#include "proto/frame.h"

typedef struct upload {
  uint64_t capacity; /* of the ring; 0: nothing is uploaded */
  uint64_t field_bytes;
  uint8_t *ring;
  bool shared;
  int fd;
  bool by_put; /* fields are read where they are: rhs_t.buffer */
  uint64_t total, written, sent;
  uint64_t until;  /* credit: the daemon takes bytes up to here */
  uint64_t taken;  /* the daemon has the bytes up to here */
  bool by_blocks;  /* the checksums of fields (frame.h), which are made as they are sent */
  uint64_t summed; /* by_blocks: up to here */
  bool zeros;      /* the daemon takes runs; fields of a shared ring have sums of blocks */
  runs_t runs;
  uint64_t safe;         /* of a ring on the heap: nothing before is sent again */
  qk_field_hash_t *hash; /* of the field being written, or by_blocks of the one being sent */
} upload_t;

/* The memfd of a finished upload, kept for 10 s: making its pages takes longer than filling them.
 */
typedef struct spare {
  int fd; /* -1: none */
  uint64_t bytes;
  int64_t since; /* ms */
} spare_t;

/* Closes the spare memfd, at once or once its time is over. */
void quark__spare_drop(spare_t *spare);
void quark__spare_tick(spare_t *spare);

/* Makes a ring for nrhs fields. spare: it is to be shared, if possible in the spare memfd; NULL: it
 * is on the heap. by_blocks: what goes by chunks has checksums of blocks; zeros: the daemon takes
 * runs, and these checksums. False: no memory, or the sizes make no sense. */
bool quark__upload_init(upload_t *up, uint32_t nrhs, uint64_t field_bytes, spare_t *spare,
                        bool by_blocks, bool zeros);
/* Nothing has been written yet: the stream begins at that position, as far as the daemon is. */
void quark__upload_begin_at(upload_t *up, uint64_t position);
/* Frees the ring. up is then one that uploads nothing. */
void quark__upload_fini(upload_t *up);
/* The same, but leaves the memfd to spare if the daemon has read all of it. */
void quark__upload_finish(upload_t *up, spare_t *spare);

/* Bytes that can be written now. Of runs in a ring on the heap: any number. */
uint64_t quark__upload_space(upload_t *up);
/* Whether everything from that position on can be sent again. */
bool quark__upload_has(const upload_t *up, uint64_t position);
/* Appends bytes, at most the space and what the field lacks. False, with nothing changed: no
 * memory. */
bool quark__upload_write(upload_t *up, const uint8_t *data, uint64_t bytes);
/* The same of zeros, as a run; up->zeros. */
bool quark__upload_write_zeros(upload_t *up, uint64_t bytes);
/* The checksum of the field just completed. The next one begins. */
uint64_t quark__upload_checksum(upload_t *up);
/* Copies bytes that are in the ring, none of them of a run. */
bool quark__upload_read(const upload_t *up, uint64_t position, uint8_t *out, uint64_t bytes);

#endif
