#include "tests/support/smear_kit.h"

#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/mem.h"

size_t smear_reals(const qk_rig_t *rig) {
  return (size_t)rig->geom.local_volume * 72;
}

/* ---- oracle ---- */

static void file_io(const char *folder, const char *name, double *v, size_t reals, bool write) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, write ? "wb" : "rb");
  cr_assert_not_null(f, "%s", path);
  size_t n = write ? fwrite(v, sizeof *v, reals, f) : fread(v, sizeof *v, reals, f);
  cr_assert_eq(n, reals, "%s: %zu of %zu numbers", path, n, reals);
  fclose(f);
}

static void file_remove(const char *folder, const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  unlink(path);
}

/* script: in tests/ref */
static double *run_oracle(const qk_rig_t *rig, const char *script, const char *spec,
                          const double *links, const double *source, size_t reals) {
  const char *root = getenv("QK_SOURCE_ROOT"), *python = getenv("QK_PYTHON");
  const int *l = rig->geom.global;
  char folder[] = "/tmp/qk-smear-XXXXXX", command[1024], with[512] = "";
  double *out = qk_malloc(reals * sizeof *out);
  cr_assert_not_null(mkdtemp(folder));
  file_io(folder, "links", (double *)links, smear_reals(rig), true);
  if (source) {
    file_io(folder, "source", (double *)source, rig_reals(rig), true);
    snprintf(with, sizeof with, "%s/source", folder);
  }
  snprintf(command, sizeof command, "%s %s/tests/ref/%s %s %dx%dx%dx%d %s/links %s %s/out",
           python ? python : "/usr/bin/python3", root ? root : ".", script, spec, l[0], l[1], l[2],
           l[3], folder, with, folder);
  cr_assert_eq(system(command), 0, "%s", command);
  file_io(folder, "out", out, reals, false);
  file_remove(folder, "links");
  file_remove(folder, "source");
  file_remove(folder, "out");
  rmdir(folder);
  return out;
}

double *smear_oracle(const qk_rig_t *rig, const char *spec, const double *links,
                     const double *source, size_t reals) {
  return run_oracle(rig, "smear_ref.py", spec, links, source, reals);
}

double *fat_oracle(const qk_rig_t *rig, const char *spec, const double *links, size_t reals) {
  return run_oracle(rig, "fat_ref.py", spec, links, NULL, reals);
}

/* ---- the engine ---- */

qk_gaugefield_t *smear_field(const qk_rig_t *rig, const double *links, int halo) {
  qk_gaugefield_t *f = NULL;
  rig_must(qk_gaugefield_create(&rig->dev, halo, &f), "links", NULL);
  rig_must(qk_gaugefield_import(f, links), "links", NULL);
  return f;
}

double *smear_links(const qk_rig_t *rig, const char *spec, const double *links) {
  qk_err_t err = {0};
  qk_link_smear_t smear;
  double *out = qk_malloc(smear_reals(rig) * sizeof *out);
  qk_gaugefield_t *f = smear_field(rig, links, 1);
  rig_must(qk_link_smear_parse(spec, &smear, &err), spec, &err);
  rig_must(qk_link_smear_apply(f, &smear, &err), spec, &err);
  rig_must(qk_gaugefield_export(f, out), spec, NULL);
  qk_gaugefield_destroy(f);
  return out;
}

qk_gauss_t *smear_gauss(const qk_rig_t *rig, const double *links) {
  qk_err_t err = {0};
  qk_gauss_t *gauss = NULL;
  qk_gaugefield_t *f = smear_field(rig, links ? links : rig->links, 1);
  rig_must(qk_gauss_create(&rig->dev, rig->work, f, &gauss, &err), "gauss", &err);
  qk_gaugefield_destroy(f);
  return gauss;
}

double smear_distance(const double *a, const double *b, size_t reals) {
  double most = 0;
  for (size_t i = 0; i < reals; i++) {
    double d = fabs(a[i] - b[i]);
    if (!(d <= most)) most = d; /* NaN shows */
  }
  return most;
}

/* ---- gauge rotations ---- */

typedef double complex matrix_t[3][3];

double *smear_rotation(const qk_rig_t *rig, uint64_t seed) {
  const int *l = rig->geom.global;
  char name[64];
  qk_rig_t other;
  snprintf(name, sizeof name, "random:%dx%dx%dx%d:%lu", l[0], l[1], l[2], l[3],
           (unsigned long)seed);
  rig_open(&other, NULL, name, NULL);
  double *g = qk_malloc((size_t)rig->geom.local_volume * 18 * sizeof *g);
  for (int64_t n = 0; n < rig->geom.local_volume; n++)
    memcpy(g + 18 * n, other.links + 72 * n, 18 * sizeof *g);
  rig_close(&other);
  return g;
}

void smear_rotate_links(const qk_rig_t *rig, const double *rotation, double *links) {
  smear_rotate_paths(rig, rotation, 1, links);
}

void smear_rotate_paths(const qk_rig_t *rig, const double *rotation, int length, double *links) {
  const int *l = rig->geom.global;
  const matrix_t *g = (const matrix_t *)rotation;
  matrix_t *u = (matrix_t *)links;
  for (int64_t n = 0; n < rig->geom.volume; n++) {
    int64_t stride = 1;
    for (int mu = 0; mu < 4; mu++) {
      const int64_t x = n / stride % l[mu], to = n + ((x + length) % l[mu] - x) * stride;
      matrix_t old;
      memcpy(old, u[4 * n + mu], sizeof old);
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
          double complex sum = 0;
          for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++) sum += g[n][i][a] * old[a][b] * conj(g[to][j][b]);
          u[4 * n + mu][i][j] = sum;
        }
      stride *= l[mu];
    }
  }
}

void smear_rotate_spinor(const qk_rig_t *rig, const double *rotation, double *v) {
  const matrix_t *g = (const matrix_t *)rotation;
  double complex *psi = (double complex *)v;
  for (int64_t n = 0; n < rig->geom.volume; n++)
    for (int spin = 0; spin < 4; spin++, psi += 3) {
      const double complex old[3] = {psi[0], psi[1], psi[2]};
      for (int i = 0; i < 3; i++)
        psi[i] = g[n][i][0] * old[0] + g[n][i][1] * old[1] + g[n][i][2] * old[2];
    }
}
