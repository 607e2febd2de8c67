/*
 * book.h: what is known of trials: records by case, and the files (protocols) that they come from
 * and go to.
 *
 * A protocol is a file of lines (record.h). A line is appended whole and brought to the disk under
 * a lock, so that several processes may share a file, and who is killed loses the trial that ran. A
 * line that cannot be read is told with its number and skipped. Errors: QK_IO_ERROR, QK_NO_MEMORY;
 * they name the file. Not collective.
 */
#ifndef QK_TUNE_BOOK_H
#define QK_TUNE_BOOK_H

#include "daemon/engine/tune/record.h"

typedef struct qk_tune_book {
  qk_tune_case_t *of;
  int ncase, case_room;
  qk_tune_record_t *record; /* as they were added */
  int nrecord, record_room;
} qk_tune_book_t;

void qk_tune_book_fini(qk_tune_book_t *book);
/* The number of a case, which is added where it is new; -1: no memory. */
int qk_tune_book_case(qk_tune_book_t *book, const qk_tune_case_t *of);
bool qk_tune_case_is(const qk_tune_case_t *a, const qk_tune_case_t *b);
/* False: no memory. */
bool qk_tune_book_add(qk_tune_book_t *book, const qk_tune_record_t *record);
/* The last record of these settings (qk_tune_settings); NULL: there is none. */
const qk_tune_record_t *qk_tune_book_find(const qk_tune_book_t *book, int of, const char *settings);
/* The record of least cost of a case; NULL: none is good. */
const qk_tune_record_t *qk_tune_book_best(const qk_tune_book_t *book, int of, double solves);

/* How far a case is from another one: settings that are good for one are likely to be good for
 * another that is near. 0: the same. */
double qk_tune_case_distance(const qk_tune_case_t *a, const qk_tune_case_t *b);

/* A file, and how far it has been read. Begin with zeros but for the path. */
typedef struct qk_tune_file {
  const char *path; /* borrowed */
  int64_t at;       /* bytes */
  int line;         /* whole ones before that */
  int good, bad;    /* lines so far that were taken, and that were not */
  bool left;        /* there is more, without an end */
} qk_tune_file_t;

/* why: of a line that is skipped. */
typedef void qk_tune_told_fn(void *arg, const char *path, int line, const char *why);
/* Adds all whole lines since the last call. A last line without an end is left for the next one.
 * QK_NOT_FOUND: there is no such file. */
qk_status_t qk_tune_file_read(qk_tune_file_t *file, qk_tune_book_t *book, qk_tune_told_fn *told,
                              void *arg, qk_err_t *err);
/* Appends a line, to a file that is made where there is none. What somebody left without an end
 * before gets one. NULL: nothing is written, but whether the file could be. */
qk_status_t qk_tune_file_append(const char *path, const char *line, qk_err_t *err);

#endif
