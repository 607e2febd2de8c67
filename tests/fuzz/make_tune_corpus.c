/*
 * make_tune_corpus.c: lines of protocols of quark-tune for fuzz_tune_record.c.
 *
 * usage: make_tune_corpus FOLDER   makes FOLDER/... and prints the names
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/engine/multigrid/mg_text.h"
#include "daemon/engine/tune/record.h"

static void set(qk_tune_record_t *r, const char *key, const char *text) {
  qk_err_t err = {0};
  if (qk_mg_text_set(&r->params, key, text, &err) == QK_OK) return;
  fprintf(stderr, "%s\n", err.text);
  exit(1);
}

static void save(const char *folder, const char *name, const qk_tune_case_t *of,
                 qk_tune_record_t *r) {
  char path[4096];
  if (!qk_tune_settings(&r->params, r->settings)) exit(1);
  char *line = qk_tune_record_line(of, r);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  if (!line || !f || fputs(line, f) < 0 || fclose(f) != 0) {
    perror(path);
    exit(1);
  }
  free(line);
  printf("%s\n", path);
}

int main(int argc, char **argv) {
  const qk_tune_case_t of = {.links = 1,
                             .dims = {8, 8, 8, 16},
                             .grid = {1, 1, 1, 1},
                             .op = "wilson-clover;mass=-0.1;csw=1.5",
                             .boundary_t = -1,
                             .tol = 1e-10,
                             .slots = 16,
                             .backend = "cuda",
                             .device = "NVIDIA H200",
                             .precision = "single",
                             .version = "0.1.0"};
  qk_tune_record_t r = {.gauge = "cfg.lime",
                        .time = "2026-11-27T21:30:00Z",
                        .what = "defaults",
                        .outcome = QK_TUNE_GOOD,
                        .seconds = 0.25,
                        .spread = 0.01,
                        .alone = 0.5,
                        .setup_seconds = 3,
                        .iterations = 12,
                        .residual = 1e-11,
                        .bytes = 1000000};
  if (argc != 2) return 64;
  mkdir(argv[1], 0777);
  set(&r, "mg-levels", "3");
  set(&r, "mg-blocks", "4x4x4x4,2x2x2x4");
  set(&r, "mg-vectors", "24,32");
  set(&r, "mg-pre", "none,2");
  set(&r, "mg-omega", "0.85,1.1");
  set(&r, "mg-prolongator", "half");
  save(argv[1], "good", &of, &r);
  r.outcome = QK_TUNE_STOPPED;
  r.spread = r.alone = -1;
  set(&r, "mg-seed", "18446744073709551614");
  set(&r, "mg-graphs", "no");
  save(argv[1], "stopped", &of, &r);
  r.outcome = QK_TUNE_FAILED;
  snprintf(r.error, sizeof r.error, "not enough device memory: \"64 GB\"");
  save(argv[1], "failed", &of, &r);
  return 0;
}
