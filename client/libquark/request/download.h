/*
 * download.h: the downloads of one request.
 *
 * A download is on the stack of the caller that waits for it, and in the list of its request. It
 * ends with the whole solution in its buffer, with a descriptor of it, or with an error. Ended ones
 * are in no list.
 *
 * Units    bytes.
 * Threads  The caller holds the mutex of the connection.
 */
#ifndef QUARK_DOWNLOAD_H
#define QUARK_DOWNLOAD_H

#include "client/libquark/connection/connection.h"

typedef enum download_way {
  DOWNLOAD_CHUNKS, /* by GRANT */
  DOWNLOAD_ASK,    /* a descriptor is to be asked for */
  DOWNLOAD_ASKED,
  DOWNLOAD_HELD /* in a new session, until RESULT says whether the solution is still the same */
} download_way_t;

typedef struct download {
  struct download *next;
  uint64_t request;
  uint32_t rhs;
  uint8_t *buffer;
  uint64_t bytes, received, granted;
  bool by_blocks; /* its checksum (frame.h) */
  qk_field_hash_t *hash;
  download_way_t way;
  int fd; /* of the whole solution, once it is done; -1: it is in the buffer */
  bool done;
  quark_code_t code;
  quark_error_t error;
} download_t;

/* NULL: that right-hand side is not being downloaded. */
download_t *quark__download_find(download_t *list, uint32_t rhs);
/* Takes d out of the list, if it is there. */
void quark__download_remove(download_t **list, const download_t *d);
/* Ends all of the list with an error. */
void quark__download_fail(download_t **list, quark_code_t code, const char *text);

/* Begins, or goes on from the bytes received: whole by descriptor if possible, else by chunks. */
quark_code_t quark__download_begin_locked(quark_connection_t *conn, download_t *d,
                                          quark_error_t *err);
/* Stops all of the list: there is a new session, and RESULT has not come again. */
void quark__download_hold(download_t *list);
/* RESULT came again: the download of its right-hand side goes on. another: from the beginning, as
 * the solution is another one. */
void quark__download_result_locked(quark_connection_t *conn, download_t **list,
                                   const quark_result_t *result, bool another);

/* Takes a chunk. Chunks of an earlier attempt are left out. */
void quark__download_chunk_locked(quark_connection_t *conn, download_t **list,
                                  const qk_frame_t *frame, const uint8_t *payload);
/* Ends d with a descriptor of the whole solution, which it takes. */
void quark__download_shared(download_t **list, download_t *d, int fd);
/* Makes downloads that wait for descriptors go on by chunks. */
void quark__download_by_chunks_locked(quark_connection_t *conn, download_t *list);

#endif
