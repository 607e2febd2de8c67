/*
 * oracle.h: numbers that the oracle (tests/ref) has left in a folder. For Criterion programs.
 */
#ifndef QK_TESTS_ORACLE_H
#define QK_TESTS_ORACLE_H

#include <complex.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* All n numbers of the file, which goes; malloc'd. */
static inline double complex *oracle_read(const char *folder, const char *name, size_t n) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  double complex *v = malloc(n * sizeof *v);
  FILE *f = fopen(path, "rb");
  cr_assert(v != NULL && f != NULL, "%s", path);
  cr_assert_eq(fread(v, sizeof *v, n, f), n, "%s is short", path);
  cr_assert_eq(fgetc(f), EOF, "%s is long", path);
  fclose(f);
  unlink(path);
  return v;
}

#endif
