/*
 * example.c: the smallest program on libquark. It solves M x = b for one source, whose components
 * are all 1, and prints the result.
 *
 * usage: quark-example ENDPOINT X Y Z T   (the extents of the daemon's lattice)
 */
#include <stdio.h>
#include <stdlib.h>

#include "client/quark.h"

static int solve(quark_connection_t *conn, double *b, double *x, size_t bytes, quark_error_t *err) {
  quark_params_t params;
  quark_result_t result;
  uint64_t request, field_bytes;
  quark_params_init(&params);
  params.tol = 1e-10;
  if (quark_submit(conn, &params, &request, &field_bytes, err) != QUARK_OK) return 1;
  if (quark_upload(conn, request, b, bytes, err) != QUARK_OK) return 1;
  if (quark_wait(conn, request, 0, -1, &result, err) != QUARK_OK) return 1;
  printf("%s: residual %.3g, %llu iterations, %.3f s\n", quark_code_name(result.status),
         result.true_residual, (unsigned long long)result.iterations, result.seconds);
  if (result.bytes > 0 && quark_download(conn, request, 0, x, bytes, err) != QUARK_OK) return 1;
  quark_release(conn, request, NULL);
  printf("first component of x: %.15g %+.15g i\n", x[0], x[1]);
  return result.status != QUARK_OK;
}

int main(int argc, char **argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: quark-example ENDPOINT X Y Z T\n");
    return 64;
  }
  size_t reals = 24;
  for (int mu = 0; mu < 4; mu++) reals *= strtoul(argv[2 + mu], NULL, 10);
  double *b = calloc(reals, sizeof *b), *x = calloc(reals, sizeof *x);
  quark_connection_t *conn = NULL;
  quark_error_t err = {0};
  int failed = !b || !x;
  for (size_t i = 0; b && i < reals; i += 2) b[i] = 1;
  if (!failed) failed = quark_connect(argv[1], NULL, &conn, &err) != QUARK_OK;
  if (!failed) failed = solve(conn, b, x, reals * sizeof *b, &err);
  if (err.code) fprintf(stderr, "quark-example: %s (%s)\n", err.text, quark_code_name(err.code));
  quark_close(conn);
  free(b);
  free(x);
  return failed;
}
