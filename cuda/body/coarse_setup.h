/*
 * coarse_setup.h: matrices of coarse operators one element at a time: to and from plain numbers,
 * closing of what the Galerkin products left open, faces; and the inverse of one site's matrix.
 *
 * Bodies for the launcher each_element: element(s, r, c) works on elements (r, c) of site or face
 * site s. Whatever the storage, elements are handled in double: this runs once per setup.
 */
#ifndef QK_BODY_COARSE_SETUP_H
#define QK_BODY_COARSE_SETUP_H

#include <math.h>

#include "cuda/body/complex.h"
#include "cuda/mg_ops.h"
#include "cuda/site/coarse.h"
#include "cuda/site/geom.h"

namespace QK_NS {

QK_HD double get_word(const void *data, qk_prec_t prec, int64_t at) {
  if (prec == QK_DOUBLE) return ((const double *)data)[at];
  if (prec == QK_SINGLE) return ((const float *)data)[at];
  return widen(((const half *)data)[at]);
}
QK_HD void put_word(void *data, qk_prec_t prec, int64_t at, double x) {
  if (prec == QK_DOUBLE) narrow(x, ((double *)data)[at]);
  if (prec == QK_SINGLE) narrow(x, ((float *)data)[at]);
  if (prec == QK_HALF) narrow((float)x, ((half *)data)[at]);
}

/* Element (r, c) of the matrix of direction d at a site. */
QK_HD dcx get_element(const qk_coarse_links_t &m, int64_t site, int d, int r, int c) {
  const int64_t at = coarse_matrix(m.n, m.ndir, site, d);
  return {get_word(m.data, m.prec, at + coarse_word(m.n, r, c, 0)),
          get_word(m.data, m.prec, at + coarse_word(m.n, r, c, 1))};
}
QK_HD void put_element(const qk_coarse_links_t &m, int64_t site, int d, int r, int c,
                       const dcx &x) {
  const int64_t at = coarse_matrix(m.n, m.ndir, site, d);
  put_word(m.data, m.prec, at + coarse_word(m.n, r, c, 0), x.re);
  put_word(m.data, m.prec, at + coarse_word(m.n, r, c, 1), x.im);
}

/* Element (r, c) of G5 m^+ G5 is conj(m_cr), with a minus sign between the chiralities. */
QK_HD dcx flipped(int n, int r, int c, const dcx &m_cr) {
  const double sign = (r < n / 2) == (c < n / 2) ? 1 : -1;
  return {sign * m_cr.re, -sign * m_cr.im};
}

/* The larger of two moduli, and NaN if either is. */
QK_HD double larger(double a, double b) {
  return a >= b || a != a ? a : b;
}

/* A place in plain numbers: [matrix][row][column] of complex doubles. */
QK_HD double *plain_at(double *plain, int64_t matrix, int n, int r, int c) {
  return plain + 2 * ((matrix * n + r) * n + c);
}

struct copy_to_plain {
  qk_coarse_copy_args_t a;
  QK_HD void element(int s, int r, int c) const {
    for (int d = 0; d < a.links.ndir; d++) {
      const dcx x = get_element(a.links, a.first + s, d, r, c);
      double *to = plain_at(a.plain, (int64_t)s * a.links.ndir + d, a.links.n, r, c);
      to[0] = x.re;
      to[1] = x.im;
    }
  }
};

struct copy_from_plain {
  qk_coarse_copy_args_t a;
  QK_HD void element(int s, int r, int c) const {
    for (int d = 0; d < a.links.ndir; d++) {
      const double *from = plain_at(a.plain, (int64_t)s * a.links.ndir + d, a.links.n, r, c);
      put_element(a.links, a.first + s, d, r, c, {from[0], from[1]});
    }
  }
};

struct converted {
  qk_coarse_links_t in, out;
  double twist;
  QK_HD void element(int s, int r, int c) const {
    for (int d = 0; d < in.ndir; d++) {
      dcx x = get_element(in, s, d, r, c);
      if (r == c) x.im += r < in.n / 2 ? twist : -twist;
      put_element(out, s, d, r, c, x);
    }
  }
};

struct closed {
  qk_coarse_close_args_t a;

  /* Element (r, c) of Y_-mu at p: of the matrix of the site behind, here or on the rank behind. */
  QK_HD dcx behind(const site_pos &p, int mu, int r, int c) const {
    const int n = a.inner.n;
    if (p.x[mu] == 0 && a.lat.split[mu]) {
      const int64_t at = (int64_t)(1 - p.parity) * a.lat.face[mu] + face_of(a.lat, p.x, mu);
      const double *m = plain_at((double *)a.ghost[mu], at, n, c, r);
      return flipped(n, r, c, {m[0], m[1]});
    }
    int x[4] = {p.x[0], p.x[1], p.x[2], p.x[3]};
    x[mu] = x[mu] == 0 ? a.lat.l[mu] - 1 : x[mu] - 1;
    const int64_t from = (int64_t)(1 - p.parity) * a.lat.vcb + cb_of(a.lat, x);
    return flipped(n, r, c, get_element(a.ahead, from, 2 * mu, c, r));
  }

  QK_HD void element(int s, int r, int c) const {
    const dcx both = get_element(a.inner, s, 0, r, c) +
                     flipped(a.inner.n, r, c, get_element(a.inner, s, 0, c, r));
    put_element(a.diag, s, 0, r, c, get_element(a.diag, s, 0, r, c) + both);
    if (a.ahead.data == NULL) return;
    const site_pos p = site_of(a.lat, s);
    for (int mu = 0; mu < 4; mu++) put_element(a.ahead, s, 2 * mu + 1, r, c, behind(p, mu, r, c));
  }
};

struct face_copied {
  qk_coarse_face_args_t a;
  QK_HD void element(int s, int r, int c) const {
    const int parity = s >= a.lat.face[a.mu], f = s - parity * a.lat.face[a.mu];
    const site_pos p = face_site(a.lat, parity, a.mu, a.lat.l[a.mu] - 1, f);
    const dcx x = get_element(a.ahead, (int64_t)parity * a.lat.vcb + p.cb, 2 * a.mu, r, c);
    double *to = plain_at(a.to, s, a.ahead.n, r, c);
    to[0] = x.re;
    to[1] = x.im;
  }
};

/* ---- inverse of one matrix ----
 *
 * Gauss-Jordan elimination in place with row exchanges, by a team of threads: rows are shared by
 * their groups, columns by the threads of a group (rows(), row(); lanes(), lane()). re, im: [n][n].
 * On return column c of the inverse stands in column from[c]. False where a pivot is below 2e-15 n
 * of the largest element, or not finite. */

/* The row at or below k with the largest element in column k. Every thread looks for itself. */
QK_HD int pivot_row(const double *re, const double *im, int n, int k, double *size) {
  int best = k;
  *size = -1;
  for (int r = k; r < n; r++) {
    const double x = fabs(re[r * n + k]) + fabs(im[r * n + k]);
    if (!(x <= *size) && *size - *size == 0) {
      *size = x;
      best = r;
    }
  }
  return best;
}

template <class Team>
QK_HD bool invert_matrix(const Team &team, double *re, double *im, int n, double top,
                         short *pivots) {
  for (int k = 0; k < n; k++) {
    double size;
    const int p = pivot_row(re, im, n, k, &size);
    const dcx inverse = ratio({1, 0}, {re[p * n + k], im[p * n + k]});
    const bool none = inverse.re == 0 && inverse.im == 0;
    if (!(size > 2e-15 * n * top) || size - size != 0 || none) return false;
    if (team.index() == 0) pivots[k] = (short)p;
    team.sync();
    for (int c = team.index(); c < n; c += team.size()) {
      const dcx below = {re[p * n + c], im[p * n + c]};
      re[p * n + c] = re[k * n + c];
      im[p * n + c] = im[k * n + c];
      const dcx x = c == k ? inverse : below * inverse;
      re[k * n + c] = x.re;
      im[k * n + c] = x.im;
    }
    team.sync();
    for (int r = team.row(); r < n; r += team.rows()) {
      if (r == k) continue;
      const double fr = re[r * n + k], fi = im[r * n + k];
      team.sync_row();
      if (team.lane() == k % team.lanes()) re[r * n + k] = im[r * n + k] = 0;
      for (int c = team.lane(); c < n; c += team.lanes()) {
        const double xr = re[k * n + c], xi = im[k * n + c];
        re[r * n + c] -= fr * xr - fi * xi;
        im[r * n + c] -= fr * xi + fi * xr;
      }
    }
    team.sync();
  }
  return true;
}

/* Undoes the exchanges: column c of the inverse stands in column from[c]. */
QK_HD void columns_after(const short *pivots, int n, short *from) {
  for (int c = 0; c < n; c++) from[c] = (short)c;
  for (int k = n - 1; k >= 0; k--) {
    const short t = from[k];
    from[k] = from[pivots[k]];
    from[pivots[k]] = t;
  }
}

} // namespace QK_NS
#endif
