/*
 * contract_ranks FOLDER XxYxZxT GX GY GZ GT X0 Y0 Z0 T0 PX PY PZ ...: the correlators of the
 * propagators FOLDER/a.bin and b.bin, [column][t][z][y][x][spin][colour], on that grid of ranks:
 * all mesons, nucleon and Delta, written by rank 0 to FOLDER/out.bin as complex doubles
 * [channel][momentum][T][numbers].
 */
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/mem.h"
#include "daemon/engine/hadron/contract.h"
#include "tests/support/rig.h"

enum { PAIRS = 256, CHANNELS = PAIRS + 2, MOMENTA = 16 };

static void must(bool good, const char *what) {
  if (!good) {
    perror(what);
    abort();
  }
}

/* The local part of each column, read row by row. */
static qk_field_t *read_propagator(const qk_rig_t *rig, const char *folder, const char *name) {
  const qk_lattice_t *lat = &rig->geom.lat;
  const size_t row = (size_t)lat->l[0] * 24;
  char path[512];
  qk_field_t *f;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  must(file != NULL, path);
  rig_must(qk_field_create(&rig->dev, QK_DOUBLE, 12, QK_FULL, &f), path, NULL);
  double *v = rig_vector(rig);
  for (int column = 0; column < 12; column++) {
    double *to = v;
    for (int t = 0; t < lat->l[3]; t++)
      for (int z = 0; z < lat->l[2]; z++)
        for (int y = 0; y < lat->l[1]; y++, to += row) {
          int64_t site = column * (int64_t)lat->global[3] + t + lat->offset[3];
          site = site * lat->global[2] + z + lat->offset[2];
          site = site * lat->global[1] + y + lat->offset[1];
          site = site * lat->global[0] + lat->offset[0];
          must(fseek(file, (long)(site * 24 * (int64_t)sizeof *v), SEEK_SET) == 0 &&
                   fread(to, sizeof *v, row, file) == row,
               path);
        }
    rig_import(rig, f, column, v);
  }
  qk_free(v);
  fclose(file);
  return f;
}

static void write_result(const qk_rig_t *rig, const char *folder, const double *out, size_t n) {
  char path[512];
  if (qk_comm_rank(rig->comm) != 0) return;
  snprintf(path, sizeof path, "%s/out.bin", folder);
  FILE *file = fopen(path, "wb");
  must(file && fwrite(out, sizeof *out, n, file) == n && fclose(file) == 0, path);
}

static void run(qk_rig_t *rig, const char *folder, qk_contract_t *what) {
  qk_channel_id_t channel[CHANNELS];
  qk_err_t err = {0};
  for (int i = 0; i < PAIRS; i++) channel[i] = (qk_channel_id_t){QK_CHANNEL_MESON, i / 16, i % 16};
  channel[PAIRS] = (qk_channel_id_t){QK_CHANNEL_NUCLEON, 0, 0};
  channel[PAIRS + 1] = (qk_channel_id_t){QK_CHANNEL_DELTA, 0, 0};
  const size_t n = 2 * (PAIRS + 16 + 144) * (size_t)what->nmom * (size_t)rig->geom.global[3];
  double *out = qk_malloc(n * sizeof *out);
  rig_must(rig_contract(what, CHANNELS, channel, out, &err), "contraction", &err);
  write_result(rig, folder, out, n);
  qk_free(out);
}

int main(int argc, char **argv) {
  int mom[MOMENTA][3];
  char gauge[64];
  qk_comm_t *comm = rig_ranks(&argc, &argv, 3);
  qk_rig_t rig;
  qk_contract_t what = {.mom = mom, .nmom = (argc - 11) / 3};
  if (!comm || argc < 14 || what.nmom > MOMENTA) {
    fprintf(stderr, "usage: contract_ranks FOLDER DIMS GRID x4 ORIGIN x4 MOMENTUM x3 ...\n");
    return 64;
  }
  for (int mu = 0; mu < 4; mu++) what.origin[mu] = atoi(argv[7 + mu]);
  for (int i = 0; i < 3 * what.nmom; i++) mom[i / 3][i % 3] = atoi(argv[11 + i]);
  snprintf(gauge, sizeof gauge, "builtin:unit:%s", argv[2]);
  rig_open(&rig, comm, gauge, NULL);
  qk_field_t *a = read_propagator(&rig, argv[1], "a.bin");
  qk_field_t *b = read_propagator(&rig, argv[1], "b.bin");
  what.a = a;
  what.b = b;
  run(&rig, argv[1], &what);
  qk_field_destroy(b);
  qk_field_destroy(a);
  rig_close(&rig);
  return 0;
}
