/*
 * kit.h: what the callers share. They look like programs that use QUDA: each has its order of
 * calls and its layouts, reads links and sources from files of the whole lattice, and writes its
 * solutions.
 *
 * Arguments  key=value. dims=X,Y,Z,T, grid=.. (parts), links=, in=, out= (files), columns=N,
 *            kappa=, csw=, tol=, single=1; others are the caller's own.
 * Files      complex doubles; links [t][z][y][x][mu][row][column], fields
 *            [n][t][z][y][x][spin][colour].
 * Bricks     even sites, then odd ones, x fastest. Of links four pointers, or one (kit_milc_links).
 */
#ifndef QUDA_CALLERS_KIT_H
#define QUDA_CALLERS_KIT_H

#include <complex.h>
#include <quda.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct kit {
  int argc;
  char **argv;
  int dims[4], grid[4], local[4], coord[4], rank, ranks, columns;
  size_t sites; /* of the brick */
  bool single;
  double kappa, csw, tol;
  const char *links_key; /* the argument that names the file of links */
  QudaPrecision prec;
} kit_t;

void kit_begin(kit_t *kit, int argc, char **argv);
void kit_end(kit_t *kit);
const char *kit_text(const kit_t *kit, const char *key, const char *otherwise);
double kit_number(const kit_t *kit, const char *key, double otherwise);
void kit_numbers(const kit_t *kit, const char *key, int n, double *value); /* unchanged if absent */

/* A brick of links, [mu][site][18], times factor(arg, mu, global coordinates); doubles or
 * floats. */
typedef double complex (*kit_factor_fn)(void *arg, int mu, const int x[4]);
void kit_links(const kit_t *kit, kit_factor_fn factor, void *arg, void *links[4]);
void *kit_milc_links(const kit_t *kit, void *const links[4]); /* [site][mu][18] of them */
/* Column n of the sources; room for a solution; the solution to its file. */
void *kit_source(const kit_t *kit, int n);
void *kit_room(const kit_t *kit);
void kit_write(const kit_t *kit, int n, const void *brick);
size_t kit_bytes(const kit_t *kit); /* of a brick of a field */
/* A copy in the memory of a GPU, in place of data, which is freed; and back. By the stand-in for
 * libcuda.so.1. */
void *kit_to_device(void *data, size_t bytes);
void *kit_from_device(void *device, size_t bytes);

/* The clover term of a file, [t][z][y][x][72], as a brick. */
void *kit_clover(const kit_t *kit);

/* Parameters as most programs set them. */
void kit_gauge_param(const kit_t *kit, QudaGaugeParam *p);
void kit_invert_param(const kit_t *kit, QudaInvertParam *p);
/* "residual 1e-13 0 iterations 12 secs 0.1 cpu 0.2"; cpu: of all ranks, in kit_invert_all. */
void kit_report(const kit_t *kit, QudaInvertParam *p);

/* What the release calls invertMultiSrcQuda: with links, or without. */
void kit_invert_all(QudaInvertParam *p, void **x, void **b, void *links, QudaGaugeParam *gauge);

#endif
