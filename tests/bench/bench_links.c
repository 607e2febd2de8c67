/*
 * bench_links.c: links from memory: sends a configuration to a quarkd, once and again, and prints
 * what each part took, beside copies of the same bytes in memory.
 *
 * usage: bench_links ENDPOINT XxYxZxT [f32|f64 [18|12 [RUNS]]]
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/quark.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void stop(const char *what, const quark_error_t *err) {
  fprintf(stderr, "bench_links: %s: %s\n", what, err->text);
  exit(1);
}

/* Diagonal links, whose phases differ from site to site. */
static void fill(void *links, bool f64, int reals, uint64_t n, int run) {
  for (uint64_t i = 0; i < n; i++) {
    const double a = 0.1 * (double)(i % 1000 + (uint64_t)run), angle[3] = {a, -2 * a, a};
    for (int row = 0; row < reals / 6; row++) {
      const uint64_t at = i * (uint64_t)reals + (uint64_t)(8 * row);
      for (int k = 0; k < 2; k++) {
        const double x = k ? sin(angle[row]) : cos(angle[row]);
        if (f64)
          ((double *)links)[at + (uint64_t)k] = x;
        else
          ((float *)links)[at + (uint64_t)k] = (float)x;
      }
    }
  }
}

/* Seconds from FIELD_OPEN to the RESULT. *upload: until all is sent. */
static double send_links(quark_connection_t *conn, const quark_field_params_t *p, const void *links,
                         double *upload, uint64_t *field) {
  quark_error_t err;
  quark_result_t result;
  uint64_t bytes;
  bool present;
  const double start = now();
  if (quark_field_open(conn, p, field, &bytes, &present, &err)) stop("open", &err);
  if (!present && quark_upload(conn, *field, links, bytes, &err)) stop("upload", &err);
  *upload = now() - start;
  if (quark_wait(conn, *field, 0, -1, &result, &err)) stop("wait", &err);
  if (result.status != QUARK_OK) {
    fprintf(stderr, "bench_links: refused: %s\n", result.text);
    exit(1);
  }
  return now() - start;
}

int main(int argc, char **argv) {
  quark_field_params_t p;
  quark_error_t err;
  quark_connection_t *conn;
  quark_field_params_init(&p);
  if (argc < 3 ||
      sscanf(argv[2], "%ux%ux%ux%u", &p.dims[0], &p.dims[1], &p.dims[2], &p.dims[3]) != 4) {
    fprintf(stderr, "usage: bench_links ENDPOINT XxYxZxT [f32|f64 [18|12 [RUNS]]]\n");
    return 64;
  }
  if (argc > 3 && strcmp(argv[3], "f32") == 0) p.dtype = QUARK_F32;
  if (argc > 4) p.reals = (uint32_t)atoi(argv[4]);
  const int runs = argc > 5 ? atoi(argv[5]) : 5;
  const uint64_t sites = (uint64_t)p.dims[0] * p.dims[1] * p.dims[2] * p.dims[3];
  const size_t bytes = sites * 4 * p.reals * (p.dtype == QUARK_F64 ? 8 : 4);
  void *links = calloc(1, bytes), *copy = malloc(bytes);
  if (!links || !copy || quark_connect(argv[1], NULL, &conn, &err)) stop("connect", &err);
  memset(copy, 1, bytes);
  printf("# %s, %s, %u reals a link, %.3f GB, %s\n", argv[2], p.dtype == QUARK_F64 ? "f64" : "f32",
         p.reals, 1e-9 * (double)bytes, quark_local(conn) ? "shared memory" : "socket");
  printf("# run  copy GB/s  digest GB/s  upload GB/s  with check GB/s  again ms\n");
  for (int run = 0; run < runs; run++) {
    uint64_t first, second, digest = 0;
    double upload, nothing;
    fill(links, p.dtype == QUARK_F64, (int)p.reals, 4 * sites, run);
    double start = now();
    memcpy(copy, links, bytes);
    const double copied = now() - start;
    start = now();
    quark_gauge_digest(links, p.dtype, p.reals, NULL, sites, &digest);
    const double digested = now() - start;
    p.has_digest = true;
    p.digest = digest;
    const double sent = send_links(conn, &p, links, &upload, &first);
    const double again = send_links(conn, &p, links, &nothing, &second);
    const double gb = 1e-9 * (double)bytes;
    printf("%5d %10.2f %12.2f %12.2f %16.2f %9.2f\n", run, gb / copied, gb / digested, gb / upload,
           gb / sent, 1e3 * again);
    quark_release(conn, second, NULL);
    quark_release(conn, first, NULL);
  }
  quark_close(conn);
  free(links);
  free(copy);
  return 0;
}
