#!/usr/bin/env python3
"""Makes the C source of quarkd._files, what Python knows of the SciDAC files of client/files.

usage: build_files.py OUT.c

The compiler checks these declarations against the headers. Members of the metadata are found by the table of h5meta.h, at run time.
"""
import sys

import cffi

DECLARATIONS = '''
typedef enum { QK_OK, QK_IO_ERROR, QK_NOT_FOUND, QK_NO_MEMORY, ... } qk_status_t;
const char *qk_status_name(qk_status_t status);
typedef struct { qk_status_t code; char text[...]; ...; } qk_err_t;

typedef enum { QK_H5_TEXT, QK_H5_REAL, QK_H5_INT, ... } qk_h5kind_t;
typedef struct { const char *name; qk_h5kind_t kind; size_t offset; int count; ...; } qk_h5attr_t;
const qk_h5attr_t *qk_h5meta_members(int *n);
typedef struct { int32_t dims[4]; ...; } qk_h5meta_t;
typedef struct {
  qk_status_t status;
  double true_residual, hq_residual;
  int64_t iterations;
  double seconds;
  char source[...];
  int32_t site[4], spin, colour;
  uint64_t seed;
  int32_t momentum[3], every, gamma, flavour;
  ...;
} qk_h5column_t;
void qk_h5meta_init(qk_h5meta_t *meta);
void qk_h5column_init(qk_h5column_t *column);
bool qk_h5column_status(const char *name, qk_status_t *status);

typedef struct qk_scidac_out qk_scidac_out_t;
qk_status_t qk_scidac_check(const char *path, bool usqcd, const qk_h5meta_t *meta, int64_t nrhs, qk_err_t *err);
qk_status_t qk_scidac_create(const char *path, bool usqcd, const qk_h5meta_t *meta, int bits, int64_t nrhs, qk_scidac_out_t **file,
                             qk_err_t *err);
qk_status_t qk_scidac_write(qk_scidac_out_t *file, int64_t rhs, const void *data, bool stays, qk_err_t *err);
qk_status_t qk_scidac_set_column(qk_scidac_out_t *file, int64_t rhs, const qk_h5column_t *column, qk_err_t *err);
qk_status_t qk_scidac_commit(qk_scidac_out_t *file, qk_err_t *err);
void qk_scidac_discard(qk_scidac_out_t *file);

typedef struct qk_scidac_in qk_scidac_in_t;
qk_status_t qk_scidac_open(const char *path, qk_scidac_in_t **file, qk_err_t *err);
const qk_h5meta_t *qk_scidac_meta(const qk_scidac_in_t *file);
const qk_h5column_t *qk_scidac_columns(const qk_scidac_in_t *file);
int64_t qk_scidac_nrhs(const qk_scidac_in_t *file);
int qk_scidac_bits(const qk_scidac_in_t *file);
qk_status_t qk_scidac_read(const qk_scidac_in_t *file, int64_t rhs, int bits, void *data, qk_err_t *err);
void qk_scidac_close(qk_scidac_in_t *file);
'''


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    ffi = cffi.FFI()
    ffi.cdef(DECLARATIONS)
    ffi.set_source('quarkd._files', '#include "client/files/scidac.h"\n', py_limited_api=True)
    ffi.emit_c_code(sys.argv[1])


if __name__ == '__main__':
    main()
