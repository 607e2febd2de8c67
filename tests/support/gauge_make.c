#include "tests/support/gauge_make.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tests/support/loops.h"

const gauge_make_t gauge_makes[] = {
    {MAKE_ILDG, 64, 3, true},   {MAKE_ILDG, 32, 3, true},     {MAKE_SCIDAC, 64, 3, true},
    {MAKE_SCIDAC, 32, 3, true}, {MAKE_BARE, 64, 3, true},     {MAKE_BARE, 32, 3, true},
    {MAKE_NERSC, 64, 3, true},  {MAKE_NERSC, 64, 3, false},   {MAKE_NERSC, 64, 2, true},
    {MAKE_NERSC, 64, 2, false}, {MAKE_NERSC, 32, 3, true},    {MAKE_NERSC, 32, 3, false},
    {MAKE_NERSC, 32, 2, true},  {MAKE_NERSC, 32, 2, false},   {MAKE_MILC, 32, 3, true},
    {MAKE_MILC, 32, 3, false},  {MAKE_OPENQCD, 64, 3, false}, {MAKE_DDALPHAAMG, 64, 3, false},
};
const int gauge_makes_count = sizeof gauge_makes / sizeof *gauge_makes;

const char *gauge_make_name(const gauge_make_t *m) {
  static const char *const kind[] = {"ILDG", "SciDAC",  "bare LIME", "NERSC",
                                     "MILC", "openQCD", "DDalphaAMG"};
  static char text[64];
  snprintf(text, sizeof text, "%s %d bit %d rows %s", kind[m->kind], m->bits, m->rows,
           m->big ? "big" : "little");
  return text;
}

void gauge_put(gauge_bytes_t *out, const void *data, size_t n) {
  if (n == 0) return;
  if (out->n + n > out->room) {
    out->room = 2 * (out->n + n);
    out->p = realloc(out->p, out->room);
    if (out->p == NULL) abort();
  }
  memcpy(out->p + out->n, data, n);
  out->n += n;
}

/* The low n bytes of v. */
static void put_int(gauge_bytes_t *out, uint64_t v, int n, bool big) {
  for (int i = 0; i < n; i++) {
    uint8_t byte = (uint8_t)(v >> 8 * (big ? n - 1 - i : i));
    gauge_put(out, &byte, 1);
  }
}

static void put_real(gauge_bytes_t *out, double v, int bits, bool big) {
  uint64_t w = 0;
  float f = (float)v;
  if (bits == 64) {
    memcpy(&w, &v, 8);
  } else {
    uint32_t h;
    memcpy(&h, &f, 4);
    w = h;
  }
  put_int(out, w, bits / 8, big);
}

static void put_text(gauge_bytes_t *out, const char *text) {
  gauge_put(out, text, strlen(text));
}

void gauge_put_record(gauge_bytes_t *out, const char *type, const void *data, size_t n) {
  char name[128] = {0};
  memcpy(name, type, strlen(type));
  put_int(out, 0x456789ab, 4, true);
  put_int(out, 1, 2, true);
  put_int(out, 0, 2, true);
  put_int(out, n, 8, true);
  gauge_put(out, name, sizeof name);
  gauge_put(out, data, n);
  put_int(out, 0, (int)((8 - n % 8) % 8), true);
}

static int64_t volume(const int d[4]) {
  return (int64_t)d[0] * d[1] * d[2] * d[3];
}

static int64_t site_of(const int d[4], int x, int y, int z, int t) {
  return (((int64_t)((t + d[3]) % d[3]) * d[2] + (z + d[2]) % d[2]) * d[1] + (y + d[1]) % d[1]) *
             d[0] +
         (x + d[0]) % d[0];
}

static void put_link(gauge_bytes_t *out, const double *u, int rows, int bits, bool big) {
  for (int i = 0; i < 6 * rows; i++) put_real(out, u[i], bits, big);
}

/* All links, x fastest, mu = x,y,z,t. */
static gauge_bytes_t plain(const gauge_make_t *m, const int d[4], const double *links) {
  gauge_bytes_t out = {0};
  for (int64_t i = 0; i < 4 * volume(d); i++)
    put_link(&out, links + 18 * i, m->rows, m->bits, m->big);
  return out;
}

static uint32_t rotate(uint32_t w, unsigned by) {
  return (uint32_t)((uint64_t)w << by | (uint64_t)w >> (32 - by));
}

static void make_lime(const gauge_make_t *m, const int d[4], const double *links,
                      gauge_bytes_t *out) {
  gauge_bytes_t data = plain(m, d, links);
  char text[512];
  uint32_t a = 0, b = 0;
  if (m->kind == MAKE_ILDG) {
    int n = snprintf(
        text, sizeof text,
        "<?xml version=\"1.0\"?><ildgFormat><version>1.0</version><field>su3gauge</field>"
        "<precision>%d</precision><lx>%d</lx><ly>%d</ly><lz>%d</lz><lt>%d</lt></ildgFormat>",
        m->bits, d[0], d[1], d[2], d[3]);
    gauge_put_record(out, "ildg-format", text, (size_t)n);
  }
  if (m->kind == MAKE_SCIDAC) {
    int n = snprintf(text, sizeof text,
                     "<scidacFile><spacetime>4</spacetime><dims>%d %d %d %d </dims>"
                     "<volfmt>0</volfmt></scidacFile>",
                     d[0], d[1], d[2], d[3]);
    gauge_put_record(out, "scidac-private-file-xml", text, (size_t)n + 1);
    n = snprintf(text, sizeof text,
                 "<scidacRecord><precision>%s</precision><colors>3</colors>"
                 "<typesize>%d</typesize><datacount>4</datacount></scidacRecord>",
                 m->bits == 64 ? "D" : "F", 9 * m->bits / 4);
    gauge_put_record(out, "scidac-private-record-xml", text, (size_t)n + 1);
  }
  out->links = out->n + 144;
  gauge_put_record(out, m->kind == MAKE_SCIDAC ? "scidac-binary-data" : "ildg-binary-data", data.p,
                   data.n);
  size_t site = data.n / (size_t)volume(d);
  for (int64_t i = 0; i < volume(d); i++) {
    uint32_t crc = (uint32_t)crc32(0, data.p + (size_t)i * site, (uInt)site);
    a ^= rotate(crc, (unsigned)(i % 29));
    b ^= rotate(crc, (unsigned)(i % 31));
  }
  int n = snprintf(
      text, sizeof text,
      "<scidacChecksum><version>1.0</version><suma>%x</suma><sumb>%x</sumb></scidacChecksum>", a,
      b);
  if (m->kind != MAKE_BARE) gauge_put_record(out, "scidac-checksum", text, (size_t)n);
  free(data.p);
}

static uint32_t word_at(const uint8_t *p, bool big) {
  uint32_t w = 0;
  for (int i = 0; i < 4; i++) w |= (uint32_t)p[i] << 8 * (big ? 3 - i : i);
  return w;
}

static void make_nersc(const gauge_make_t *m, const int d[4], const double *links, double plaquette,
                       double link_trace, gauge_bytes_t *out) {
  gauge_bytes_t data = plain(m, d, links);
  uint32_t sum = 0;
  char text[512];
  for (size_t i = 0; i < data.n; i += 4) sum += word_at(data.p + i, m->big);
  snprintf(text, sizeof text,
           "BEGIN_HEADER\nDATATYPE = 4D_SU3_GAUGE%s\nDIMENSION_1 = %d\nDIMENSION_2 = %d\n"
           "DIMENSION_3 = %d\nDIMENSION_4 = %d\nCHECKSUM = %x\nLINK_TRACE = %.10f\n"
           "PLAQUETTE = %.10f\nFLOATING_POINT = IEEE%d%s\nEND_HEADER\n",
           m->rows == 3 ? "_3x3" : "", d[0], d[1], d[2], d[3], sum, link_trace, plaquette, m->bits,
           m->big ? "BIG" : "LITTLE");
  put_text(out, text);
  out->links = out->n;
  gauge_put(out, data.p, data.n);
  free(data.p);
}

static void make_milc(const gauge_make_t *m, const int d[4], const double *links,
                      gauge_bytes_t *out) {
  gauge_bytes_t data = plain(m, d, links);
  char date[64] = "Thu Jan  1 00:00:00 1970";
  uint32_t sum29 = 0, sum31 = 0;
  for (size_t i = 0; i < data.n / 4; i++) {
    sum29 ^= rotate(word_at(data.p + 4 * i, m->big), i % 29);
    sum31 ^= rotate(word_at(data.p + 4 * i, m->big), i % 31);
  }
  put_int(out, 20103, 4, m->big);
  for (int mu = 0; mu < 4; mu++) put_int(out, (uint64_t)d[mu], 4, m->big);
  gauge_put(out, date, sizeof date);
  put_int(out, 0, 4, m->big);
  put_int(out, sum29, 4, m->big);
  put_int(out, sum31, 4, m->big);
  out->links = out->n;
  gauge_put(out, data.p, data.n);
  free(data.p);
}

static void make_ddalphaamg(const int d[4], const double *links, double plaquette,
                            gauge_bytes_t *out) {
  for (int mu = 3; mu >= 0; mu--) put_int(out, (uint64_t)d[mu], 4, false);
  put_real(out, 3 * plaquette, 64, false);
  out->links = out->n;
  for (int64_t i = 0; i < volume(d); i++) {
    for (int mu = 3; mu >= 0; mu--) put_link(out, links + 18 * (4 * i + mu), 3, 64, false);
  }
}

static void make_openqcd(const int d[4], const double *links, double plaquette,
                         gauge_bytes_t *out) {
  static const int order[4] = {3, 0, 1, 2};
  for (int i = 0; i < 4; i++) put_int(out, (uint64_t)d[order[i]], 4, false);
  put_real(out, 3 * plaquette, 64, false);
  out->links = out->n;
  for (int t = 0; t < d[3]; t++)
    for (int x = 0; x < d[0]; x++)
      for (int y = 0; y < d[1]; y++)
        for (int z = 0; z < d[2]; z++)
          for (int i = 0; i < 4 && (x + y + z + t) % 2 == 1; i++) {
            int mu = order[i];
            int64_t n = site_of(d, x, y, z, t);
            int64_t back = site_of(d, x - (mu == 0), y - (mu == 1), z - (mu == 2), t - (mu == 3));
            put_link(out, links + 18 * (4 * n + mu), 3, 64, false);
            put_link(out, links + 18 * (4 * back + mu), 3, 64, false);
          }
}

gauge_bytes_t gauge_make(const gauge_make_t *m, const int d[4], const double *links,
                         double plaquette, double link_trace) {
  gauge_bytes_t out = {0};
  switch (m->kind) {
  case MAKE_ILDG:
  case MAKE_SCIDAC:
  case MAKE_BARE:
    make_lime(m, d, links, &out);
    break;
  case MAKE_NERSC:
    make_nersc(m, d, links, plaquette, link_trace, &out);
    break;
  case MAKE_MILC:
    make_milc(m, d, links, &out);
    break;
  case MAKE_OPENQCD:
    make_openqcd(d, links, plaquette, &out);
    break;
  case MAKE_DDALPHAAMG:
    make_ddalphaamg(d, links, plaquette, &out);
    break;
  }
  return out;
}

double *gauge_random(const int d[4], double spread, unsigned seed) {
  int64_t n = 4 * volume(d);
  double *links = malloc((size_t)n * 18 * sizeof *links);
  if (links == NULL) abort();
  uint64_t state = seed * 2862933555777941757u + 3037000493u;
  for (int64_t i = 0; i < n; i++) {
    double complex u[3][3];
    for (int j = 0; j < 9; j++) {
      double part[2];
      for (int k = 0; k < 2; k++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        part[k] = (double)(state >> 33) / (double)(1u << 30) - 1;
      }
      u[j / 3][j % 3] = (j % 4 == 0) + spread * (part[0] + I * part[1]);
    }
    loops_reunitarise(u);
    memcpy(links + 18 * i, u, sizeof u);
  }
  return links;
}

static void matrix(const double *links, int64_t site, int mu, double complex u[3][3]) {
  memcpy(u, links + 18 * (4 * site + mu), 18 * sizeof *links);
}

void gauge_sums(const int d[4], const double *links, double *plaquette, double *link_trace) {
  double p = 0, trace = 0;
  for (int64_t s = 0; s < volume(d); s++) {
    int x[4];
    int64_t rest = s;
    for (int mu = 0; mu < 4; mu++, rest /= d[mu - 1]) x[mu] = (int)(rest % d[mu]);
    for (int mu = 0; mu < 4; mu++) {
      const double *u = links + 18 * (4 * s + mu);
      trace += u[0] + u[8] + u[16];
      for (int nu = 0; nu < mu; nu++) {
        double complex a[3][3], b[3][3], c[3][3], e[3][3];
        int f[4] = {x[0] + (mu == 0), x[1] + (mu == 1), x[2] + (mu == 2), x[3] + (mu == 3)};
        int g[4] = {x[0] + (nu == 0), x[1] + (nu == 1), x[2] + (nu == 2), x[3] + (nu == 3)};
        matrix(links, s, mu, a);
        matrix(links, site_of(d, f[0], f[1], f[2], f[3]), nu, b);
        matrix(links, site_of(d, g[0], g[1], g[2], g[3]), mu, c);
        matrix(links, s, nu, e);
        for (int i = 0; i < 81; i++) { /* tr a b c^+ e^+ */
          int r = i / 27, k = i / 9 % 3, l = i / 3 % 3, m = i % 3;
          p += creal(a[r][k] * b[k][l] * conj(c[m][l]) * conj(e[r][m]));
        }
      }
    }
  }
  *plaquette = p / (18 * (double)volume(d));
  *link_trace = trace / (12 * (double)volume(d));
}
