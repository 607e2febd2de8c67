/*
 * make_eigen_corpus.c: the beginnings of files of eigenvectors: states and complete ones.
 *
 * usage: make_eigen_corpus FOLDER   makes FOLDER/... and prints the names
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/engine/checkpoint/eigen_header.h"

static void save(const char *folder, const char *name, qk_eigen_header_t *h) {
  char path[4096];
  uint8_t bytes[QK_EIGEN_HEADER_BYTES];
  const size_t size = (size_t)qk_eigen_table_bytes(h);
  double *number = calloc((size_t)h->numbers + 1, sizeof *number);
  uint64_t *sum = calloc((size_t)h->nblock, sizeof *sum);
  uint8_t *table = malloc(size);
  if (!number || !sum || !table) exit(1);
  for (int i = 0; i < h->numbers; i++) number[i] = 0.01 * i;
  qk_eigen_table_encode(h, number, sum, table);
  qk_eigen_header_encode(h, bytes);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(bytes, 1, sizeof bytes, f) != sizeof bytes ||
      fwrite(table, 1, size, f) != size || fclose(f) != 0) {
    perror(path);
    exit(1);
  }
  printf("%s\n", path);
  free(table);
  free(sum);
  free(number);
}

int main(int argc, char **argv) {
  qk_eigen_header_t h = {.identity = {.gauge_digest = 0x0123456789abcdef,
                                      .phase = {{1, 0}, {1, 0}, {1, 0}, {-1, 0}},
                                      .operator_text = "wilson-clover;mass=-0.3;csw=1"},
                         .problem = {.count = 20, .tol = 1e-8},
                         .dims = {4, 4, 4, 8},
                         .complete = true,
                         .vectors = 1,
                         .planes = 2,
                         .nblock = 3,
                         .numbers = 40};
  if (argc != 2) return 64;
  mkdir(argv[1], 0777);
  save(argv[1], "complete", &h);
  h.colours = true;
  save(argv[1], "colours", &h);
  h.colours = false;
  h.full = true;
  h.problem.kind = 1;
  save(argv[1], "gamma5", &h);
  h.complete = h.full = false;
  h.problem.kind = 0;
  h.vectors = 12;
  h.planes = 1;
  h.nblock = 5;
  h.numbers = 32;
  h.state = (qk_lanczos_state_t){
      .window = 0.1, .top = 6, .best = 1e-3, .order = 40, .restarts = 3, .windows = 4, .done = 2};
  save(argv[1], "state", &h);
  snprintf(h.problem.links, sizeof h.problem.links, "2:10:space:0.5");
  save(argv[1], "links", &h);
  h.problem.links[0] = '\0';
  h.problem.cut = (qk_coherent_cut_t){8, {4, 4, 2, 4}};
  save(argv[1], "state-of-basis", &h);
  h.based = true;
  h.smoother = (qk_chebyshev_params_t){8, 0.3, 6};
  h.nblock++;
  save(argv[1], "state-within", &h);
  h.complete = true;
  h.nblock = 1 + 3;
  h.numbers = 40;
  save(argv[1], "compressed", &h);
  return 0;
}
