/* gauge_builtin.c: configurations that need no file. */
#include "daemon/engine/gauge/gauge_format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/links/su3.h"

static const double WEAK_NOISE = 0.15;

qk_status_t qk_gauge_builtin_probe(const char *path, qk_gauge_info_t *info, qk_err_t *err) {
  char text[128], *save = NULL, *word[5] = {0};
  int n = 0, dims[4];
  if (strlen(path) < sizeof text) {
    strcpy(text, path);
    for (char *w = strtok_r(text, ":", &save); w != NULL && n < 5; w = strtok_r(NULL, ":", &save))
      word[n++] = w;
  }
  bool unit = n == 3 && strcmp(word[1], "unit") == 0;
  bool weak = n == 4 && strcmp(word[1], "weak") == 0;
  int64_t seed = 0;
  if (!unit && !weak) {
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "builtin configurations are builtin:unit:XxYxZxT and builtin:weak:XxYxZxT:seed");
  }
  if (weak && !qk_parse_int(word[3], 0, INT64_MAX, &seed))
    return qk_fail(err, QK_BAD_ARGUMENT, "seed = %s is not a number in 0..10^18-1", word[3]);
  qk_status_t status = qk_geom_parse_dims(word[2], dims, err);
  if (status != QK_OK) return status;
  snprintf(info->format, sizeof info->format, "builtin %s", word[1]);
  memcpy(info->dims, dims, sizeof dims);
  info->bits = 64;
  info->layout.order = unit ? QK_GAUGE_UNIT : QK_GAUGE_WEAK;
  info->layout.rows = 3;
  info->layout.seed = (uint64_t)seed;
  return QK_OK;
}

/* The finaliser of SplitMix64: a bijection of 64-bit words that leaves no visible pattern. */
static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* In (0, 1], from a counter: word k of stream `seed`. */
static double uniform(uint64_t seed, uint64_t k) {
  uint64_t r = mix(mix(seed + 0x9e3779b97f4a7c15u) + k * 0x9e3779b97f4a7c15u);
  return ((double)(r >> 11) + 1) * 0x1p-53;
}

/* Rows 1 and 2 orthonormal by Gram-Schmidt, row 3 from them. */
static void reunitarise(double u[18]) {
  for (int row = 0; row < 2; row++) {
    double *a = u + 6 * row, norm = 0;
    if (row == 1) {
      double re = 0, im = 0;
      for (int j = 0; j < 6; j += 2) { /* (row 1)^* . (row 2) */
        re += u[j] * a[j] + u[j + 1] * a[j + 1];
        im += u[j] * a[j + 1] - u[j + 1] * a[j];
      }
      for (int j = 0; j < 6; j += 2) {
        a[j] -= re * u[j] - im * u[j + 1];
        a[j + 1] -= re * u[j + 1] + im * u[j];
      }
    }
    for (int j = 0; j < 6; j++) norm += a[j] * a[j];
    norm = 1 / sqrt(norm);
    for (int j = 0; j < 6; j++) a[j] *= norm;
  }
  qk_su3_third_row(u);
}

static void unit_link(double u[18]) {
  memset(u, 0, 18 * sizeof *u);
  u[0] = u[8] = u[16] = 1;
}

/* Box-Muller: one complex number of unit variance from two uniform ones. */
static void weak_link(uint64_t seed, uint64_t link, double u[18]) {
  unit_link(u);
  for (uint64_t k = 0; k < 9; k++) {
    double r = sqrt(-log(uniform(seed, (link * 9 + k) * 2)));
    double phi = 2 * M_PI * uniform(seed, (link * 9 + k) * 2 + 1);
    u[2 * k] += WEAK_NOISE * r * cos(phi);
    u[2 * k + 1] += WEAK_NOISE * r * sin(phi);
  }
  reunitarise(u);
}

void qk_gauge_builtin_fill(const qk_gauge_info_t *info, const qk_geom_t *geom, double *links) {
  const qk_lattice_t *lat = &geom->lat;
  bool weak = info->layout.order == QK_GAUGE_WEAK;
#pragma omp parallel for
  for (int64_t n = 0; n < geom->local_volume; n++) {
    int64_t rest = n, site = 0, stride = 1;
    for (int mu = 0; mu < 4; mu++) {
      site += (lat->offset[mu] + rest % lat->l[mu]) * stride;
      rest /= lat->l[mu];
      stride *= lat->global[mu];
    }
    for (int mu = 0; mu < 4; mu++) {
      double *u = links + 18 * (4 * n + mu);
      if (weak) {
        weak_link(info->layout.seed, (uint64_t)(4 * site + mu), u);
      } else {
        unit_link(u);
      }
    }
  }
}
