/*
 * lime.h: LIME files. A chain of records: a header of 144 bytes, big endian (0 uint32 magic; 4
 * uint16 version 1; 6 uint16 flags; 8 uint64 bytes of data; 16 char[128] type), then the data,
 * padded to a multiple of 8.
 *
 * Errors name the record, not the file: QK_BAD_FORMAT, QK_TRUNCATED, QK_TOO_LARGE, QK_NO_MEMORY,
 * QK_IO_ERROR. Nothing is allocated by what a header says before it is compared with the size of
 * the file.
 */
#ifndef QK_BASE_FORMATS_LIME_H
#define QK_BASE_FORMATS_LIME_H

#include <stdbool.h>

#include "daemon/base/formats/infile.h"

enum {
  QK_LIME_HEADER = 144,
  QK_LIME_TYPE = 129,          /* bytes of a type with its end */
  QK_LIME_TEXT_MAX = 1 << 20,  /* bytes of a text */
  QK_LIME_RECORDS_MAX = 10000, /* of a file */
};
typedef enum qk_lime_flags {
  QK_LIME_BEGIN = 0x8000, /* of a message, which is some records */
  QK_LIME_END = 0x4000,
} qk_lime_flags_t;

/* By the first four bytes. */
bool qk_lime_is(const uint8_t head[4]);

typedef struct qk_lime_record {
  char type[QK_LIME_TYPE];
  int64_t offset, bytes; /* of the data, all of which are in the file */
} qk_lime_record_t;

/* A place in the chain; zeros and the file: at its begin. */
typedef struct qk_lime_cursor {
  const qk_infile_t *file;
  int64_t pos;
  int records;
} qk_lime_cursor_t;

static inline bool qk_lime_ends(const qk_lime_cursor_t *cursor) {
  return cursor->pos >= cursor->file->size;
}
/* The next record, unless the chain ends here. */
qk_status_t qk_lime_next(qk_lime_cursor_t *cursor, qk_lime_record_t *record, qk_err_t *err);
/* All of a record of at most QK_LIME_TEXT_MAX bytes, with a zero at its end. The caller frees it
 * with qk_free. */
qk_status_t qk_lime_text(const qk_infile_t *file, const qk_lime_record_t *record, char **text,
                         qk_err_t *err);

/* Writes the header of a record and, unless text is NULL, all of it; else data and padding (of no
 * bytes, if they are a multiple of 8) are to follow. flags: of qk_lime_flags_t. */
qk_status_t qk_lime_put(int fd, const char *type, unsigned flags, int64_t bytes, const char *text,
                        qk_err_t *err);

#endif
