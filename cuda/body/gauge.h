/*
 * gauge.h: what is made of the gauge field once per configuration, in double: checks, compressed
 * links, and the clover term with its inverse. Bodies work on one site of the full field.
 */
#ifndef QK_BODY_GAUGE_H
#define QK_BODY_GAUGE_H

#include <math.h>

#include "cuda/site/diag.h"
#include "cuda/site/mat3.h"
#include "cuda/site/spin.h"
#include "cuda/site/su3.h"

namespace QK_NS {

/* ---- reductions: N numbers a site, joined with join(sum, v) in a fixed order ---- */

struct plaquette_sums {
  static constexpr int n = 6;
  qk_gauge_args_t a;
  QK_HD void site(int s, double v[6]) const {
    const site_pos p = site_of(a.lat, s);
    int plane = 0;
    for (int mu = 0; mu < 3; mu++)
      for (int nu = mu + 1; nu < 4; nu++)
        v[plane++] = trace_re(plaquette_of(a.lat, a.u, p.x, mu, nu)) / 3;
  }
  QK_ANY static void join(double *sum, const double *v) {
    for (int k = 0; k < n; k++) sum[k] += v[k];
  }
};

/* The larger of two, and NaN if either is. */
QK_ANY double worst(double a, double b) {
  return a >= b || a != a ? a : b;
}

/* Largest |U^+U - 1|, largest |det U - 1|, sum of Re tr U / 3. */
struct unitarity_sums {
  static constexpr int n = 3;
  qk_gauge_args_t a;
  QK_HD void site(int s, double v[3]) const {
    const site_pos p = site_of(a.lat, s);
    v[0] = v[1] = v[2] = 0;
    for (int mu = 0; mu < 4; mu++) {
      const mat3 u = link_of(a.lat, a.u, p.x, mu), one = times<true, false>(u, u);
      for (int i = 0; i < 9; i++)
        v[0] = worst(v[0], hypot(one.e[2 * i] - (i % 4 == 0), one.e[2 * i + 1]));
      double c[6], re = -1, im = 0; /* det U = row 2 . conj(c) for c = conj(row 0 x row 1) */
      third_row(u.e, u.e + 6, c);
      for (int j = 0; j < 3; j++) {
        re += u.e[12 + 2 * j] * c[2 * j] + u.e[13 + 2 * j] * c[2 * j + 1];
        im += u.e[13 + 2 * j] * c[2 * j] - u.e[12 + 2 * j] * c[2 * j + 1];
      }
      v[1] = worst(v[1], hypot(re, im));
      v[2] += trace_re(u) / 3;
    }
  }
  QK_ANY static void join(double *sum, const double *v) {
    sum[0] = worst(sum[0], v[0]);
    sum[1] = worst(sum[1], v[1]);
    sum[2] += v[2];
  }
};

/* ---- open boundary ---- */

/* The global t of a site: on an outer slice, beside one, or neither. */
QK_HD bool is_outer(const qk_lattice_t &lat, int t) {
  return t == 0 || t == lat.global[3] - 1;
}
QK_HD bool is_edge(const qk_lattice_t &lat, int t) {
  return t == 1 || t == lat.global[3] - 2;
}

/* ---- links ---- */

template <class S, int REALS> struct links_site {
  qk_gauge_args_t a;
  S *out;
  int open;
  QK_HD void site(int s) const {
    const site_pos p = site_of(a.lat, s);
    const int t = a.lat.offset[3] + p.x[3];
    for (int mu = 0; mu < 4; mu++) {
      mat3 u = link_of(a.lat, a.u, p.x, mu);
      if (open && (is_outer(a.lat, t) || (mu == 3 && is_outer(a.lat, t + 1)))) u = mat3{};
      S words[18];
      compress_link(u.e, REALS, words);
      S *tile = out + ((int64_t)(s / QK_TILE) * 4 + mu) * (QK_TILE * REALS);
      for (int k = 0; k < REALS; k++) tile[inner<S, REALS>(k, s % QK_TILE)] = words[k];
    }
  }
};

/* The first OUT of IN stored reals. */
template <class S, int IN, int OUT> struct links_narrowed {
  const double *in;
  S *out;
  QK_HD void site(int s) const {
    for (int mu = 0; mu < 4; mu++) {
      const int64_t tile = (int64_t)(s / QK_TILE) * 4 + mu;
      const double *from = in + tile * (QK_TILE * IN);
      S *to = out + tile * (QK_TILE * OUT);
      for (int k = 0; k < OUT; k++)
        narrow((real<S>)from[inner<double, IN>(k, s % QK_TILE)], to[inner<S, OUT>(k, s % QK_TILE)]);
    }
  }
};

/* ---- site-diagonal terms ---- */

QK_HD double *diag_tile(double *data, int s, int block) {
  return data + ((int64_t)(s / QK_TILE) * 2 + block) * (QK_TILE * QK_DIAG_REALS);
}

/* Power of i of the element in row r of B_mu, and its column. */
QK_HD int block_power(int mu, int r) {
  return mu == 0 ? 1 : mu == 1 ? (r == 0 ? 2 : 0) : mu == 2 ? (r == 0 ? 1 : 3) : 0;
}
QK_HD int block_column(int mu, int r) {
  return mu < 2 ? 1 - r : r;
}

/* qk_plane_t of mu < nu. */
QK_HD int plane_of(int mu, int nu) {
  return mu + nu * (nu - 1) / 2;
}

/* diag - sum_{mu<nu} csw_{mu nu}/2 g_mu g_nu Fhat_{mu nu}: upper block B_mu B_nu^+,
 * lower block B_mu^+ B_nu. */
struct clover_site {
  qk_clover_set_args_t args;

  /* Adds one plane to the packed matrix of a block. Row r of g_mu g_nu has the element i^power in
   * column c. */
  QK_HD void add_plane(int block, int mu, int nu, const mat3 &f, double *m) const {
    const double csw = args.csw * args.plane[plane_of(mu, nu)];
    for (int r = 0; r < 2; r++) {
      const int mid = block_column(mu, r), c = block_column(nu, mid);
      const int power = block == 0 ? block_power(mu, r) - block_power(nu, c)
                                   : block_power(nu, mid) - block_power(mu, mid);
      const double re = -0.5 * csw * ((power & 3) == 0 ? 1 : (power & 3) == 2 ? -1 : 0);
      const double im = -0.5 * csw * ((power & 3) == 1 ? 1 : (power & 3) == 3 ? -1 : 0);
      for (int ci = 0; ci < 3; ci++)
        for (int cj = 0; cj < 3; cj++) {
          const int i = 3 * r + ci, j = 3 * c + cj;
          const double fr = f.e[6 * ci + 2 * cj], fi = f.e[6 * ci + 2 * cj + 1];
          if (i == j) m[i] += re * fr - im * fi;
          if (i <= j) continue;
          m[below(i, j)] += re * fr - im * fi;
          m[below(i, j) + 1] += re * fi + im * fr;
        }
    }
  }

  QK_HD void site(int s) const {
    const qk_gauge_args_t &a = args.gauge;
    const site_pos p = site_of(a.lat, s);
    const int t = a.lat.offset[3] + p.x[3];
    const bool outer = args.open.is && is_outer(a.lat, t);
    const double edge = args.open.is && is_edge(a.lat, t) ? args.open.edge : 0;
    double m[2][QK_DIAG_REALS];
    for (int block = 0; block < 2; block++)
      for (int k = 0; k < QK_DIAG_REALS; k++)
        m[block][k] = k >= 6 ? 0 : outer ? 1 : args.diag + edge;
    for (int mu = 0; mu < 3 && !outer; mu++)
      for (int nu = mu + 1; nu < 4; nu++) {
        const mat3 f = field_strength(a.lat, a.u, p.x, mu, nu);
        add_plane(0, mu, nu, f, m[0]);
        add_plane(1, mu, nu, f, m[1]);
      }
    for (int block = 0; block < 2; block++) {
      double *tile = diag_tile((double *)args.out.data, s, block);
      for (int k = 0; k < QK_DIAG_REALS; k++)
        tile[inner<double, QK_DIAG_REALS>(k, s % QK_TILE)] = m[block][k];
    }
  }
};

/* The matrix of a block, from its packed form in lane l of a tile. */
QK_HD void unpack6(const double *from, int l, double m[6][12]) {
  for (int i = 0; i < 6; i++) {
    m[i][2 * i] = from[inner<double, QK_DIAG_REALS>(i, l)];
    m[i][2 * i + 1] = 0;
    for (int j = 0; j < i; j++) {
      m[i][2 * j] = m[j][2 * i] = from[inner<double, QK_DIAG_REALS>(below(i, j), l)];
      m[i][2 * j + 1] = from[inner<double, QK_DIAG_REALS>(below(i, j) + 1, l)];
      m[j][2 * i + 1] = -m[i][2 * j + 1];
    }
  }
}

/* Columns p and q of m turned by the unitary ((c, s), (-s f, c f)), f a phase. */
QK_HD void turn_columns(double m[6][12], int p, int q, double c, double s, const double f[2]) {
  for (int i = 0; i < 6; i++) {
    const double pr = m[i][2 * p], pi = m[i][2 * p + 1];
    const double qr = m[i][2 * q] * f[0] - m[i][2 * q + 1] * f[1];
    const double qi = m[i][2 * q] * f[1] + m[i][2 * q + 1] * f[0];
    m[i][2 * p] = c * pr - s * qr;
    m[i][2 * p + 1] = c * pi - s * qi;
    m[i][2 * q] = s * pr + c * qr;
    m[i][2 * q + 1] = s * pi + c * qi;
  }
}

/* A Jacobi rotation of the hermitian a: a_pq becomes 0, and v takes the columns along. false if
 * |a_pq| is not above `small`. */
QK_HD bool rotate6(double a[6][12], double v[6][12], int p, int q, double small) {
  const double re = a[p][2 * q], im = a[p][2 * q + 1], size = sqrt(re * re + im * im);
  if (!(size > small)) return false;
  const double f[2] = {re / size, -im / size}; /* makes a_pq positive */
  const double theta = (a[q][2 * q] - a[p][2 * p]) / (2 * size);
  const double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(1 + theta * theta));
  const double c = 1 / sqrt(1 + t * t), s = t * c;
  turn_columns(a, p, q, c, s, f);
  turn_columns(v, p, q, c, s, f);
  for (int j = 0; j < 12; j += 2) { /* rows p and q, by the adjoint */
    const double pr = a[p][j], pi = a[p][j + 1];
    const double qr = a[q][j] * f[0] + a[q][j + 1] * f[1];
    const double qi = a[q][j + 1] * f[0] - a[q][j] * f[1];
    a[p][j] = c * pr - s * qr;
    a[p][j + 1] = c * pi - s * qi;
    a[q][j] = s * pr + c * qr;
    a[q][j + 1] = s * pi + c * qi;
  }
  a[p][2 * q] = a[p][2 * q + 1] = a[q][2 * p] = a[q][2 * p + 1] = 0;
  return true;
}

/* Rayleigh's quotient of column k of v, and |v_k|^2: the eigenvalue without the rounding of all
 * rotations, and what their columns are off by. */
QK_HD double quotient6(const double a[6][12], const double v[6][12], int k, double *norm2) {
  double sum = 0;
  *norm2 = 0;
  for (int i = 0; i < 6; i++) {
    double re = 0, im = 0;
    for (int j = 0; j < 6; j++) {
      re += a[i][2 * j] * v[j][2 * k] - a[i][2 * j + 1] * v[j][2 * k + 1];
      im += a[i][2 * j] * v[j][2 * k + 1] + a[i][2 * j + 1] * v[j][2 * k];
    }
    sum += v[i][2 * k] * re + v[i][2 * k + 1] * im;
    *norm2 += v[i][2 * k] * v[i][2 * k] + v[i][2 * k + 1] * v[i][2 * k + 1];
  }
  return sum / *norm2;
}

/* e, packed, = number exp(factor m) of a hermitian m. */
QK_HD void exp6(const double m[6][12], double factor, double number, double e[QK_DIAG_REALS]) {
  double a[6][12], v[6][12], top = 0, value[6];
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 12; j++) {
      a[i][j] = m[i][j];
      v[i][j] = j == 2 * i;
      top = worst(fabs(m[i][j]), top);
    }
  bool turned = top - top == 0; /* NaN has no eigenvalues */
  for (int sweep = 0; turned && sweep < 30; sweep++) {
    turned = false;
    for (int p = 0; p < 5; p++)
      for (int q = p + 1; q < 6; q++)
        if (rotate6(a, v, p, q, 0x1p-55 * top)) turned = true;
  }
  for (int k = 0; k < 6; k++) {
    double norm2;
    value[k] = number * exp(factor * (quotient6(m, v, k, &norm2) + (top - top)));
    value[k] /= norm2;
  }
  for (int i = 0; i < 6; i++)
    for (int j = 0; j <= i; j++) {
      double re = 0, im = 0;
      for (int k = 0; k < 6; k++) {
        const double ir = v[i][2 * k], ii = v[i][2 * k + 1];
        const double jr = v[j][2 * k], ji = v[j][2 * k + 1];
        re += value[k] * (ir * jr + ii * ji);
        im += value[k] * (ii * jr - ir * ji);
      }
      if (i == j) e[i] = re;
      if (i == j) continue;
      e[below(i, j)] = re;
      e[below(i, j) + 1] = im;
    }
}

/* Exponential of both blocks of a site; a reduction, since it counts the sites that are beyond. */
struct exp_sums {
  static constexpr int n = 1;
  qk_diag_exp_args_t args;
  double *out;

  QK_HD void site(int s, double v[1]) const {
    const int t = args.lat.offset[3] + site_of(args.lat, s).x[3], l = s % QK_TILE;
    const bool outer = args.open.is && is_outer(args.lat, t);
    const double edge = args.open.is && is_edge(args.lat, t) ? args.open.edge : 0;
    v[0] = 0;
    for (int block = 0; block < 2; block++) {
      double *to = diag_tile(out, s, block), m[6][12], e[QK_DIAG_REALS];
      unpack6(diag_tile((double *)args.in.data, s, block), l, m);
      if (!outer) exp6(m, args.factor, args.number + edge, e);
      for (int k = 0; k < QK_DIAG_REALS; k++) {
        if (outer) e[k] = k < 6;
        if (!(fabs(e[k]) <= args.most)) v[0] = 1;
        to[inner<double, QK_DIAG_REALS>(k, l)] = e[k];
      }
    }
  }
  QK_ANY static void join(double *sum, const double *v) { sum[0] += v[0]; }
};

/* m -> m^-1 for a 6x6 complex matrix by Gauss-Jordan elimination with row exchanges (the matrix may
 * be indefinite). false where a pivot is below 1e-14 of the largest element, or not finite. */
QK_HD bool invert6(double m[6][12]) {
  int row_of[6];
  double top = 0;
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 12; j++) top = fmax(top, fabs(m[i][j]));
  for (int c = 0; c < 6; c++) {
    int p = c;
    double best = -1;
    for (int i = c; i < 6; i++) {
      const double size = fabs(m[i][2 * c]) + fabs(m[i][2 * c + 1]);
      if (size > best) {
        best = size;
        p = i;
      }
    }
    if (!(best > 1e-14 * top) || best - best != 0) return false;
    row_of[c] = p;
    for (int j = 0; j < 12; j++) {
      const double t = m[c][j];
      m[c][j] = m[p][j];
      m[p][j] = t;
    }
    const double norm = m[c][2 * c] * m[c][2 * c] + m[c][2 * c + 1] * m[c][2 * c + 1];
    const double pr = m[c][2 * c] / norm, pi = -m[c][2 * c + 1] / norm;
    m[c][2 * c] = 1;
    m[c][2 * c + 1] = 0;
    for (int j = 0; j < 12; j += 2) {
      const double x = m[c][j], y = m[c][j + 1];
      m[c][j] = x * pr - y * pi;
      m[c][j + 1] = x * pi + y * pr;
    }
    for (int i = 0; i < 6; i++) {
      if (i == c) continue;
      const double fr = m[i][2 * c], fi = m[i][2 * c + 1];
      m[i][2 * c] = 0;
      m[i][2 * c + 1] = 0;
      for (int j = 0; j < 12; j += 2) {
        m[i][j] -= fr * m[c][j] - fi * m[c][j + 1];
        m[i][j + 1] -= fr * m[c][j + 1] + fi * m[c][j];
      }
    }
  }
  for (int c = 5; c >= 0; c--)
    for (int i = 0; i < 6; i++)
      for (int k = 0; k < 2; k++) {
        const double t = m[i][2 * c + k];
        m[i][2 * c + k] = m[i][2 * row_of[c] + k];
        m[i][2 * row_of[c] + k] = t;
      }
  return true;
}

/* m -> m^2 + shift */
QK_HD void square6(double m[6][12], double shift) {
  double r[6][12];
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 12; j += 2) {
      double re = 2 * i == j ? shift : 0, im = 0;
      for (int k = 0; k < 6; k++) {
        re += m[i][2 * k] * m[k][j] - m[i][2 * k + 1] * m[k][j + 1];
        im += m[i][2 * k] * m[k][j + 1] + m[i][2 * k + 1] * m[k][j];
      }
      r[i][j] = re;
      r[i][j + 1] = im;
    }
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 12; j++) m[i][j] = r[i][j];
}

/* True if the left half of m, hermitian, is positive: all pivots of L D L^+ are. */
QK_HD bool is_positive6(const double m[6][12]) {
  double a[6][12], top = 0;
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 12; j++) {
      a[i][j] = m[i][j];
      top = fmax(top, fabs(m[i][j]));
    }
  for (int c = 0; c < 6; c++) {
    const double pivot = a[c][2 * c];
    if (!(pivot > 1e-14 * top)) return false;
    for (int i = c + 1; i < 6; i++) {
      const double fr = a[i][2 * c] / pivot, fi = a[i][2 * c + 1] / pivot;
      for (int j = 2 * c; j < 12; j += 2) {
        a[i][j] -= fr * a[c][j] - fi * a[c][j + 1];
        a[i][j + 1] -= fr * a[c][j + 1] + fi * a[c][j];
      }
    }
  }
  return true;
}

/* Inverse of both blocks of a site, or of their squares plus a number; a reduction, since it counts
 * the sites that have none. */
struct invert_sums {
  static constexpr int n = 1;
  const double *in;
  double *out;
  bool square, positive;
  double shift, most;
  QK_HD void site(int s, double v[1]) const {
    v[0] = 0;
    for (int block = 0; block < 2; block++) {
      double *to = diag_tile(out, s, block), m[6][12];
      const int l = s % QK_TILE;
      unpack6(diag_tile((double *)in, s, block), l, m);
      if (square) square6(m, shift);
      if (positive && !is_positive6(m)) v[0] = 1;
      if (!invert6(m)) v[0] = 1;
      for (int i = 0; i < 6; i++)
        for (int j = 0; most > 0 && j < 12; j++)
          if (!(fabs(m[i][j]) <= most)) v[0] = 1;
      for (int i = 0; i < 6; i++) {
        to[inner<double, QK_DIAG_REALS>(i, l)] = m[i][2 * i];
        for (int j = 0; j < i; j++) {
          to[inner<double, QK_DIAG_REALS>(below(i, j), l)] = (m[i][2 * j] + m[j][2 * i]) / 2;
          to[inner<double, QK_DIAG_REALS>(below(i, j) + 1, l)] =
              (m[i][2 * j + 1] - m[j][2 * i + 1]) / 2;
        }
      }
    }
  }
  QK_ANY static void join(double *sum, const double *v) { sum[0] += v[0]; }
};

template <class S> struct convert_site {
  const double *in;
  S *out;
  QK_HD void site(int s) const {
    for (int block = 0; block < 2; block++) {
      const double *from = diag_tile((double *)in, s, block);
      S *to = out + ((int64_t)(s / QK_TILE) * 2 + block) * (QK_TILE * QK_DIAG_REALS);
      for (int k = 0; k < QK_DIAG_REALS; k++)
        narrow((real<S>)from[inner<double, QK_DIAG_REALS>(k, s % QK_TILE)],
               to[inner<S, QK_DIAG_REALS>(k, s % QK_TILE)]);
    }
  }
};

} // namespace QK_NS
#endif
