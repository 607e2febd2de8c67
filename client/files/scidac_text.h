/*
 * scidac_text.h: the texts of SciDAC files of fields: as they are written, and the tag <quarkd> as
 * it is read. For scidac_*.c only.
 *
 * Texts are printable ASCII: what is not, and the characters <, > and &, become '?'.
 */
#ifndef QK_CLIENT_SCIDAC_TEXT_H
#define QK_CLIENT_SCIDAC_TEXT_H

#include <stdio.h>

#include "client/files/scidac.h"

/* What the texts of a file tell. */
typedef struct qk_scidac_story {
  const qk_h5meta_t *meta;
  const qk_h5column_t *column;
  int columns;
} qk_scidac_story_t;

/* A record of a field: "Lattice", 'D', 4 spins, 2304 bytes a site. spins 0: none. */
typedef struct qk_scidac_type {
  const char *name;
  char precision;
  int spins, site_bytes;
} qk_scidac_type_t;

void qk_scidac_print_lattice(FILE *out, const int32_t dims[4]);
void qk_scidac_print_type(FILE *out, const qk_scidac_type_t *type);
/* Of the form of Chroma: the texts of the file and of the record. */
void qk_scidac_print_file(FILE *out);
void qk_scidac_print_record(FILE *out, const qk_scidac_story_t *story);
/* Of the form of MILC: the texts of the file, of the source, and of a column. */
void qk_scidac_print_usqcd_file(FILE *out, const qk_scidac_story_t *story);
void qk_scidac_print_usqcd_source(FILE *out, const qk_scidac_story_t *story);
void qk_scidac_print_usqcd_column(FILE *out, int column);

/* What <quarkd> says in `text`, if it is there. *found: it is, and meta and its columns are what it
 * says; what it does not name stays as it was. columns: of the file. Errors: QK_BAD_FORMAT,
 * QK_NO_MEMORY, QK_UNSUPPORTED (version). meta and column may be changed by a call that fails. */
qk_status_t qk_scidac_read_tag(const char *text, qk_h5meta_t *meta, qk_h5column_t *column,
                               int columns, bool *found, qk_err_t *err);

#endif
