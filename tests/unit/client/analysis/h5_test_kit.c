#include "tests/unit/client/analysis/h5_test_kit.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char h5t_path[96];
static char dir[64];

void h5t_setup(void) {
  strcpy(dir, "/tmp/qk-h5-XXXXXX");
  cr_assert_not_null(mkdtemp(dir));
  snprintf(h5t_path, sizeof h5t_path, "%s/f.h5", dir);
}

void h5t_teardown(void) {
  unlink(h5t_path);
  cr_expect_eq(rmdir(dir), 0, "the folder should hold the file and nothing else");
}

const int h5t_dims[4] = {2, 4, 6, 8};

qk_h5meta_t h5t_meta(void) {
  qk_h5meta_t m;
  qk_h5meta_init(&m);
  for (int mu = 0; mu < 4; mu++) m.dims[mu] = h5t_dims[mu];
  strcpy(m.kind, "propagator");
  strcpy(m.basis, "degrand-rossi");
  m.kappa = 0.125;
  m.mass = 0;
  m.csw = 1.5;
  strcpy(m.action, "wilson-clover;mass=0;csw=1.5");
  for (int i = 0; i < 8; i++) m.boundary[i] = i % 2 ? 0 : (i == 6 ? -1 : 1);
  m.tolerance = 1e-10;
  m.tolerance_hq = 1e-5;
  strcpy(m.gauge, "builtin:weak:2x4x6x8:1");
  strcpy(m.smear, "gauss:0.25,10");
  strcpy(m.links, "ape:0.6,20");
  strcpy(m.sequential, "gamma=g5,t=3,p=0:0:0");
  return m;
}

void h5t_fill(double *x, int seed) {
  for (int i = 0; i < H5T_REALS; i++) x[i] = sin(1.0 + seed + 0.37 * i);
}

enum { MOST_REALS = 4 * H5T_REALS };

/* The last right-hand side comes first. */
static qk_h5file_t *begin_fields(const qk_h5meta_t *meta, int bits, int64_t nrhs, int reals,
                                 h5t_fill_fn *fill) {
  static double x[MOST_REALS];
  static float y[MOST_REALS];
  qk_err_t err = {0};
  qk_h5file_t *f = NULL;
  cr_assert_eq(qk_h5file_create(h5t_path, meta, bits, nrhs, &f, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_h5file_rhs_bytes(f, bits), (size_t)reals * (size_t)bits / 8);
  for (int64_t r = nrhs - 1; r >= 0; r--) {
    fill(x, r);
    for (int i = 0; i < reals; i++) y[i] = (float)x[i];
    cr_assert_eq(qk_h5file_write(f, r, bits == 64 ? (void *)x : (void *)y, &err), QK_OK, "%s",
                 err.text);
  }
  return f;
}

void h5t_write_fields(const qk_h5meta_t *meta, int bits, int64_t nrhs, int reals,
                      h5t_fill_fn *fill) {
  qk_err_t err = {0};
  qk_h5file_t *f = begin_fields(meta, bits, nrhs, reals, fill);
  cr_assert_eq(qk_h5file_commit(f, &err), QK_OK, "%s", err.text);
  qk_h5file_close(f);
}

void h5t_expect_fields(qk_h5file_t *f, int bits, int64_t nrhs, int reals, h5t_fill_fn *fill) {
  static double x[MOST_REALS], want[MOST_REALS];
  for (int64_t r = 0; r < nrhs; r++) {
    fill(want, r);
    cr_assert_eq(qk_h5file_read(f, r, 64, x, NULL), QK_OK);
    for (int i = 0; i < reals; i++)
      cr_assert_eq(x[i], bits == 64 ? want[i] : (double)(float)want[i]);
  }
}

static void fill_usual(double *x, int64_t r) {
  h5t_fill(x, (int)r);
}

void h5t_write(int bits, int64_t nrhs) {
  qk_err_t err = {0};
  const qk_h5meta_t meta = h5t_meta();
  qk_h5file_t *f = begin_fields(&meta, bits, nrhs, H5T_REALS, fill_usual);
  for (int64_t r = nrhs - 1; r >= 0; r--) {
    qk_h5column_t c;
    qk_h5column_init(&c);
    c.status = r == 1 ? QK_NOT_CONVERGED : QK_OK;
    c.true_residual = 1e-11 * (double)(r + 1);
    if (r != 2) c.hq_residual = 1e-7 * (double)(r + 1);
    c.iterations = 100 + r;
    c.seconds = 0.5;
    strcpy(c.source, "point");
    for (int mu = 0; mu < 4; mu++) c.site[mu] = mu;
    c.spin = (int)r / 3;
    c.colour = (int)r % 3;
    c.seed = UINT64_MAX - (uint64_t)r;
    for (int j = 0; j < 3; j++) c.momentum[j] = j - 1;
    c.every = 4;
    c.gamma = 15;
    cr_assert_eq(qk_h5file_set_column(f, r, &c, &err), QK_OK);
  }
  cr_assert_neq(access(h5t_path, F_OK), 0, "the file must not be there before commit");
  cr_assert_eq(qk_h5file_commit(f, &err), QK_OK, "%s", err.text);
  qk_h5file_close(f);
}

qk_h5file_t *h5t_open(void) {
  qk_err_t err = {0};
  qk_h5file_t *f = NULL;
  cr_assert_eq(qk_h5file_open(h5t_path, NULL, &f, &err), QK_OK, "%s", err.text);
  return f;
}

/* A file made by hand with HDF5: what other programs may bring. */
void h5t_foreign(const char *name, int rank, const hsize_t *extent, hid_t real, const char *re,
                 const char *im) {
  const size_t size = H5Tget_size(real);
  const hid_t file = H5Fcreate(h5t_path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t type = H5Tcreate(H5T_COMPOUND, 2 * size);
  H5Tinsert(type, re, 0, real);
  H5Tinsert(type, im, size, real);
  const hid_t space = H5Screate_simple(rank, extent, NULL);
  const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  cr_assert_geq(set, 0);
  H5Dclose(set);
  H5Sclose(space);
  H5Tclose(type);
  H5Fclose(file);
}

void h5t_set_numbers(const char *name, int n, const int *value) {
  const hid_t file = H5Fopen(h5t_path, H5F_ACC_RDWR, H5P_DEFAULT);
  const hsize_t extent = (hsize_t)n;
  const hid_t space = H5Screate_simple(1, &extent, NULL);
  const hid_t attribute = H5Acreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, H5T_NATIVE_INT, value);
  H5Aclose(attribute);
  H5Sclose(space);
  H5Fclose(file);
}

const hsize_t h5t_shape[7] = {2, 8, 6, 4, 2, 4, 3};

void h5t_refused(qk_status_t code, const char *word) {
  qk_err_t err = {0};
  qk_h5file_t *f = NULL;
  cr_expect_eq(qk_h5file_open(h5t_path, NULL, &f, &err), code, "%s (%s)", qk_status_name(err.code),
               err.text);
  cr_expect_null(f);
  cr_expect_not_null(strstr(err.text, h5t_path), "%s", err.text);
  cr_expect_not_null(strstr(err.text, word), "\"%s\" has no \"%s\"", err.text, word);
}
