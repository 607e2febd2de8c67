/*
 * bench_restart: a multigrid setup beside its checkpoint: seconds of the setup, of the copy
 * from the device, of the write in the background, and of a restart from the file (which the
 * page cache still holds).
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/engine/checkpoint/mg_file.h"
#include "proto/action/operator_text.h"
#include "tests/support/rig.h"

typedef struct options {
  const char *gauge, *file;
  double kappa, csw;
  int deflate;
} options_t;

static const struct argp_option table[] = {
    {"gauge", 'g', "FILE", 0, "gauge file or builtin:... (default builtin:weak:8x8x8x16:1)", 0},
    {"kappa", 'k', "K", 0, "hopping parameter (0.1350)", 0},
    {"csw", 'c', "CSW", 0, "clover coefficient (1.769)", 0},
    {"deflate", 'd', "N", 0, "vectors of the coarsest level (as quarkd)", 0},
    {"file", 'f', "FILE", 0, "the checkpoint (bench_restart.mg), removed afterwards", 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
  switch (key) {
  case 'g':
    o->gauge = arg;
    return 0;
  case 'k':
    o->kappa = atof(arg);
    return 0;
  case 'c':
    o->csw = atof(arg);
    return 0;
  case 'd':
    o->deflate = atoi(arg);
    return 0;
  case 'f':
    o->file = arg;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void write_file(const qk_mg_t *mg, const char *path, const qk_mg_identity_t *id) {
  qk_err_t err = {0};
  qk_mg_save_t *save;
  struct stat st;
  bool ended;
  double start = now();
  rig_must(qk_mg_save_begin(mg, path, id, &save, &err), "save", &err);
  double copied = now();
  rig_must(qk_mg_save_poll(&save, true, &ended, &err), "save", &err);
  double written = now();
  if (stat(path, &st) != 0) abort();
  printf("checkpoint: %.3f GB; copied in %.3f s, written in %.3f s more\n",
         1e-9 * (double)st.st_size, copied - start, written - copied);
}

static void describe(const qk_mg_t *mg) {
  int64_t matrices = 0;
  for (int l = 1; l < mg->nlevel; l++) {
    const qk_coarse_params_t p = {.store = mg->params.level[l].store};
    matrices += qk_coarse_operator_bytes(&mg->level[l].geom, &p);
  }
  printf("coarse matrices, which are not in it: %.3f GB\n", 1e-9 * (double)matrices);
  for (int l = 0; l < mg->nlevel; l++)
    printf("  level %d: %.3f s\n", l, mg->level[l].setup_seconds);
}

int main(int argc, char **argv) {
  options_t o = {.gauge = "builtin:weak:8x8x8x16:1",
                 .file = "bench_restart.mg",
                 .kappa = 0.1350,
                 .csw = 1.769};
  const struct argp argp = {table, parse, NULL, "Restart benchmark. QK_BACKEND names the backend.",
                            NULL,  NULL,  NULL};
  argp_parse(&argp, argc, argv, 0, NULL, &o);
  if (!rig_backend_present()) return 77;
  const qk_mg_params_t params = {.deflate = o.deflate};
  qk_rig_t rig;
  qk_mg_t *mg;
  qk_err_t err = {0};
  rig_open(&rig, NULL, o.gauge, NULL);
  rig_operator(&rig, qk_mass_of_kappa(o.kappa), o.csw, -1);
  const qk_mg_identity_t id = {.gauge_digest = rig.check.digest, .operator_text = "wilson;mass=0"};
  double setup = 0;
  for (int k = 0; k < 2; k++) { /* the first one warms up */
    double start = now();
    rig_must(qk_mg_create(rig.op, rig.work, &params, NULL, NULL, &mg, &err), "setup", &err);
    setup = now() - start;
    if (k == 0) qk_mg_destroy(mg);
  }
  printf("%s, kappa %g, csw %g: setup %.3f s\n", o.gauge, o.kappa, o.csw, setup);
  write_file(mg, o.file, &id);
  qk_mg_destroy(mg);
  for (int k = 0; k < 2; k++) {
    double start = now();
    rig_must(qk_mg_load(rig.op, rig.work, o.file, &id, &params, NULL, NULL, &mg, &err), "load",
             &err);
    double seconds = now() - start;
    printf("restart: %.3f s, 1/%.1f of the setup\n", seconds, setup / seconds);
    if (k == 1) describe(mg);
    qk_mg_destroy(mg);
  }
  unlink(o.file);
  rig_close(&rig);
  return 0;
}
