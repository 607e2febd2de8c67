/*
 * h5_test_kit.h: field files for the tests: as these programs write them, and as others may.
 */
#ifndef QK_H5_TEST_KIT_H
#define QK_H5_TEST_KIT_H

#include <hdf5.h>

#include "client/files/h5file.h"

enum { H5T_REALS = 2 * 4 * 6 * 8 * 24 }; /* of a usual field of the examples */

extern char h5t_path[96];          /* of the file of a test, in a folder of its own */
extern const int h5t_dims[4];      /* of the examples */
extern const hsize_t h5t_shape[7]; /* of two right-hand sides */

/* Around each test. The folder must hold the file and nothing else in the end. */
void h5t_setup(void);
void h5t_teardown(void);

qk_h5meta_t h5t_meta(void);
/* Numbers of H5T_REALS that differ with the seed. */
void h5t_fill(double *x, int seed);
/* Numbers of right-hand side r, at least `reals` of them. */
typedef void h5t_fill_fn(double *x, int64_t r);
/* A file of fields of so many reals, complete but for its columns; and what stands in one. */
void h5t_write_fields(const qk_h5meta_t *meta, int bits, int64_t nrhs, int reals,
                      h5t_fill_fn *fill);
void h5t_expect_fields(qk_h5file_t *f, int bits, int64_t nrhs, int reals, h5t_fill_fn *fill);
/* A usual file, complete. */
void h5t_write(int bits, int64_t nrhs);
qk_h5file_t *h5t_open(void);
/* The file cannot be opened; the text has its path and the word. */
void h5t_refused(qk_status_t code, const char *word);

/* A file made by hand with HDF5: what other programs may bring. */
void h5t_foreign(const char *name, int rank, const hsize_t *extent, hid_t real, const char *re,
                 const char *im);
/* Adds an attribute to it. */
void h5t_set_numbers(const char *name, int n, const int *value);

#endif
