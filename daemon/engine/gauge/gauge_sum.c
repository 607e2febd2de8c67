/* gauge_sum.c: the checksums of the formats, from parts of a lattice; links between file and
 * memory. */
#include <string.h>

#include "daemon/base/formats/bytes.h"
#include "daemon/base/formats/sum.h"
#include "daemon/base/links/su3.h"
#include "daemon/engine/gauge/gauge_format.h"

static uint32_t rotate(uint32_t w, int64_t by) {
  return by == 0 ? w : w << by | w >> (32 - by);
}

static void add_scidac(int64_t first, int64_t n, int64_t bytes, const uint8_t *raw,
                       qk_gauge_sum_t *sum) {
  uint32_t a = 0, b = 0;
#pragma omp parallel for reduction(^ : a, b)
  for (int64_t i = 0; i < n; i++) {
    uint32_t site[2] = {0, 0};
    qk_scidac_sum_add(first + i, 1, bytes, raw + i * bytes, site);
    a ^= site[0];
    b ^= site[1];
  }
  sum->x[0] ^= a;
  sum->x[1] ^= b;
}

static void add_milc(bool big, int64_t first, int64_t n, const uint8_t *raw, qk_gauge_sum_t *sum) {
  uint32_t a = 0, b = 0;
#pragma omp parallel for reduction(^ : a, b)
  for (int64_t i = 0; i < n; i++) {
    uint32_t w = qk_bytes_u32(raw + 4 * i, big);
    a ^= rotate(w, (first + i) % 29);
    b ^= rotate(w, (first + i) % 31);
  }
  sum->x[0] ^= a;
  sum->x[1] ^= b;
}

static void add_nersc(bool big, int64_t n, const uint8_t *raw, qk_gauge_sum_t *sum) {
  uint64_t s = 0;
#pragma omp parallel for reduction(+ : s)
  for (int64_t i = 0; i < n; i++) s += qk_bytes_u32(raw + 4 * i, big);
  sum->sum += s;
}

void qk_gauge_sum_add(const qk_gauge_layout_t *layout, int64_t first, int64_t n, int64_t site_bytes,
                      const uint8_t *raw, qk_gauge_sum_t *sum) {
  int64_t words = site_bytes / 4;
  switch (layout->sum) {
  case QK_GAUGE_SUM_NONE:
    break;
  case QK_GAUGE_SUM_SCIDAC:
    add_scidac(first, n, site_bytes, raw, sum);
    break;
  case QK_GAUGE_SUM_MILC:
    add_milc(layout->big_endian, first * words, n * words, raw, sum);
    break;
  case QK_GAUGE_SUM_NERSC:
    add_nersc(layout->big_endian, n * words, raw, sum);
    break;
  }
}

void qk_gauge_sum_words(const qk_gauge_layout_t *layout, const qk_gauge_sum_t *sum,
                        uint32_t word[2]) {
  bool nersc = layout->sum == QK_GAUGE_SUM_NERSC;
  word[0] = nersc ? (uint32_t)sum->sum : sum->x[0];
  word[1] = nersc ? 0 : sum->x[1];
}

static double load_real(const uint8_t *p, int bits, bool big) {
  if (bits == 32) {
    uint32_t w = qk_bytes_u32(p, big);
    float f;
    memcpy(&f, &w, sizeof f);
    return f;
  }
  uint64_t w = qk_bytes_u64(p, big);
  double d;
  memcpy(&d, &w, sizeof d);
  return d;
}

static void store_u32(uint32_t w, bool big, uint8_t *p) {
  for (int i = 0; i < 4; i++) p[i] = (uint8_t)(w >> 8 * (big ? 3 - i : i));
}

static void store_real(double v, int bits, bool big, uint8_t *p) {
  if (bits == 32) {
    float f = (float)v;
    uint32_t w;
    memcpy(&w, &f, sizeof w);
    store_u32(w, big, p);
    return;
  }
  uint64_t w;
  memcpy(&w, &v, sizeof w);
  store_u32((uint32_t)(w >> 32), big, p + (big ? 0 : 4));
  store_u32((uint32_t)w, big, p + (big ? 4 : 0));
}

void qk_gauge_decode(const qk_gauge_info_t *info, int64_t n, const uint8_t *raw, double *links) {
  const qk_gauge_layout_t *layout = &info->layout;
  int reals = 6 * layout->rows, width = info->bits / 8, bits = info->bits;
  bool big = layout->big_endian;
#pragma omp parallel for if (n > 1000)
  for (int64_t i = 0; i < n; i++) {
    const uint8_t *p = raw + i * reals * width;
    int64_t mu = i % 4;
    double *u = links + 18 * (i - mu + (layout->t_first ? 3 - mu : mu));
    for (int k = 0; k < reals; k++) u[k] = load_real(p + k * width, bits, big);
    if (layout->rows == 2) qk_su3_third_row(u);
  }
}

void qk_gauge_encode(const qk_gauge_info_t *info, int64_t n, const double *links, uint8_t *raw) {
  int width = info->bits / 8, bits = info->bits;
  bool big = info->layout.big_endian;
#pragma omp parallel for
  for (int64_t i = 0; i < 18 * n; i++) store_real(links[i], bits, big, raw + i * width);
}
