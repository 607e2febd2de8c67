#include "client/selftest/reference.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/file.h"
#include "daemon/base/formats/lime.h"
#include "daemon/base/formats/sum.h"

enum { L = CTL_REFERENCE_EXTENT, SITES = CTL_REFERENCE_SITES, PLANES = 6, SPINOR = 12 };
enum { LINK_BYTES = 4 * 9 * 16 }; /* of a site in the file */

typedef double complex matrix_t[9];

struct ctl_reference {
  matrix_t u[SITES][4];      /* x fastest */
  matrix_t f[PLANES][SITES]; /* xy, xz, xt, yz, yt, zt */
  double plaquette;
};

/* ---- sites and matrices ---- */

static int step(int n, int mu, int by) {
  int stride = 1;
  for (int i = 0; i < mu; i++) stride *= L;
  const int x = n / stride % L;
  return n + ((x + by + L) % L - x) * stride;
}

static void mul(matrix_t c, const matrix_t a, const matrix_t b) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      c[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
}

static void dag(matrix_t c, const matrix_t a) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) c[3 * i + j] = conj(a[3 * j + i]);
}

/* q += the path a b c d. */
static void add_path(matrix_t q, const matrix_t a, const matrix_t b, const matrix_t c,
                     const matrix_t d) {
  matrix_t x, y;
  mul(x, a, b);
  mul(y, x, c);
  mul(x, y, d);
  for (int i = 0; i < 9; i++) q[i] += x[i];
}

/* A link, or back along one. */
static void link_of(const ctl_reference_t *r, int n, int mu, bool back, matrix_t out) {
  if (back)
    dag(out, r->u[step(n, mu, -1)][mu]);
  else
    memcpy(out, r->u[n][mu], sizeof(matrix_t));
}

/* From n in the direction +-mu, then +-nu, and round to n. */
static void add_leaf(const ctl_reference_t *r, int n, int mu, bool back_mu, int nu, bool back_nu,
                     matrix_t q) {
  matrix_t a, b, c, d;
  const int n1 = step(n, mu, back_mu ? -1 : 1), n2 = step(n1, nu, back_nu ? -1 : 1);
  const int n3 = step(n2, mu, back_mu ? 1 : -1);
  link_of(r, n, mu, back_mu, a);
  link_of(r, n1, nu, back_nu, b);
  link_of(r, n2, mu, !back_mu, c);
  link_of(r, n3, nu, !back_nu, d);
  add_path(q, a, b, c, d);
}

/* F = (Q - Q^+) / 8, of four leaves that turn the same way. */
static void set_strength(ctl_reference_t *r, int plane, int mu, int nu) {
  for (int n = 0; n < SITES; n++) {
    matrix_t q = {0}, h;
    add_leaf(r, n, mu, false, nu, false, q);
    r->plaquette += creal(q[0] + q[4] + q[8]) / (3.0 * PLANES * SITES);
    add_leaf(r, n, nu, false, mu, true, q);
    add_leaf(r, n, mu, true, nu, true, q);
    add_leaf(r, n, nu, true, mu, false, q);
    dag(h, q);
    for (int i = 0; i < 9; i++) r->f[plane][n][i] = (q[i] - h[i]) / 8;
  }
}

/* ---- links ---- */

/* splitmix64; -1 to 1. */
static double next_number(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (double)((z ^ z >> 31) >> 11) * 0x1p-52 - 1;
}

static void normalise(double complex *row) {
  double norm = 0;
  for (int i = 0; i < 3; i++) norm += creal(row[i] * conj(row[i]));
  for (int i = 0; i < 3; i++) row[i] /= sqrt(norm);
}

/* Near 1; two rows made orthonormal, the third is their cross product. */
static void random_link(uint64_t *state, matrix_t u) {
  double complex overlap = 0;
  for (int i = 0; i < 9; i++) {
    const double re = 0.35 * next_number(state), im = 0.35 * next_number(state);
    u[i] = (i % 4 == 0) + CMPLX(re, im);
  }
  normalise(u);
  for (int i = 0; i < 3; i++) overlap += conj(u[i]) * u[3 + i];
  for (int i = 0; i < 3; i++) u[3 + i] -= overlap * u[i];
  normalise(u + 3);
  for (int i = 0; i < 3; i++) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    u[6 + i] = conj(u[j] * u[3 + k] - u[k] * u[3 + j]);
  }
}

ctl_reference_t *ctl_reference_create(uint64_t seed) {
  ctl_reference_t *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  for (int n = 0; n < SITES; n++)
    for (int mu = 0; mu < 4; mu++) random_link(&seed, r->u[n][mu]);
  for (int mu = 0, plane = 0; mu < 4; mu++)
    for (int nu = mu + 1; nu < 4; nu++) set_strength(r, plane++, mu, nu);
  return r;
}

void ctl_reference_destroy(ctl_reference_t *reference) {
  free(reference);
}

double ctl_reference_plaquette(const ctl_reference_t *reference) {
  return reference->plaquette;
}

/* ---- the file ---- */

static qk_status_t put_links(const ctl_reference_t *r, int fd, uint32_t sum[2], qk_err_t *err) {
  uint8_t raw[LINK_BYTES];
  for (int n = 0; n < SITES; n++) {
    for (int i = 0; i < LINK_BYTES / 8; i++) {
      uint64_t w;
      memcpy(&w, (const uint8_t *)r->u[n] + 8 * i, sizeof w);
      w = __builtin_bswap64(w);
      memcpy(raw + 8 * i, &w, sizeof w);
    }
    qk_scidac_sum_add(n, 1, LINK_BYTES, raw, sum);
    const qk_status_t status = qk_file_put(fd, raw, LINK_BYTES, err);
    if (status != QK_OK) return status;
  }
  return QK_OK;
}

qk_status_t ctl_reference_write(const ctl_reference_t *r, const char *path, qk_err_t *err) {
  char text[256], checksum[QK_SCIDAC_SUM_TEXT];
  uint32_t sum[2] = {0, 0};
  const int n = snprintf(text, sizeof text,
                         "<ildgFormat><version>1.0</version><field>su3gauge</field>"
                         "<precision>64</precision><lx>%d</lx><ly>%d</ly><lz>%d</lz><lt>%d</lt>"
                         "</ildgFormat>",
                         L, L, L, L);
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
  qk_status_t status = qk_lime_put(fd, "ildg-format", QK_LIME_BEGIN, n, text, err);
  if (status == QK_OK)
    status = qk_lime_put(fd, "ildg-binary-data", 0, (int64_t)SITES * LINK_BYTES, NULL, err);
  if (status == QK_OK) status = put_links(r, fd, sum, err);
  const int bytes = qk_scidac_sum_print(sum, checksum);
  if (status == QK_OK)
    status = qk_lime_put(fd, "scidac-checksum", QK_LIME_END, bytes, checksum, err);
  if (close(fd) != 0 && status == QK_OK)
    status = qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
  return status;
}

/* ---- the operator ---- */

/* (gamma_mu psi)[s] = value[mu][s] psi[place[mu][s]] */
static const int place[4][4] = {{3, 2, 1, 0}, {3, 2, 1, 0}, {2, 3, 0, 1}, {2, 3, 0, 1}};
static const double complex value[4][4] = {
    {I, I, -I, -I}, {-1, 1, 1, -1}, {I, -I, -I, I}, {1, 1, 1, 1}};

/* out[spin] -= 1/2 (1 - sign gamma_mu) factor u psi */
static void add_hop(double complex *out, const double complex *psi, const matrix_t u, int mu,
                    int sign, double factor) {
  double complex h[4][3];
  for (int s = 0; s < 4; s++)
    for (int a = 0; a < 3; a++) {
      h[s][a] = 0;
      for (int b = 0; b < 3; b++) h[s][a] += u[3 * a + b] * psi[3 * s + b];
    }
  for (int s = 0; s < 4; s++)
    for (int a = 0; a < 3; a++)
      out[3 * s + a] -= 0.5 * factor * (h[s][a] - sign * value[mu][s] * h[place[mu][s]][a]);
}

static void add_clover(const ctl_reference_t *r, int n, double csw, const double complex *psi,
                       double complex *out) {
  for (int mu = 0, plane = 0; mu < 4; mu++)
    for (int nu = mu + 1; nu < 4; nu++, plane++)
      for (int s = 0; s < 4; s++) {
        const int s1 = place[mu][s], s2 = place[nu][s1];
        const double complex g = -0.5 * csw * value[mu][s] * value[nu][s1];
        for (int a = 0; a < 3; a++)
          for (int b = 0; b < 3; b++)
            out[3 * s + a] += g * r->f[plane][n][3 * a + b] * psi[3 * s2 + b];
      }
}

void ctl_reference_apply(const ctl_reference_t *r, double mass, double csw,
                         const double complex *in, double complex *out) {
  for (int n = 0; n < SITES; n++) {
    const double complex *psi = in + SPINOR * n;
    double complex *to = out + SPINOR * n;
    for (int i = 0; i < SPINOR; i++) to[i] = (4 + mass) * psi[i];
    for (int mu = 0; mu < 4; mu++) {
      const int up = step(n, mu, 1), down = step(n, mu, -1);
      matrix_t back;
      dag(back, r->u[down][mu]);
      add_hop(to, in + SPINOR * up, r->u[n][mu], mu, 1, mu == 3 && up < n ? -1 : 1);
      add_hop(to, in + SPINOR * down, back, mu, -1, mu == 3 && down > n ? -1 : 1);
    }
    add_clover(r, n, csw, psi, to);
  }
}
