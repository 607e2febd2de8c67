/* The order of sites: QUDA's bricks, parts, and whole lattices. */
#include <string.h>

#include "layout.h"

size_t qk_quda_local_sites(const qk_quda_shape_t *shape, qk_quda_sites_t sites) {
  size_t n = 1;
  for (int mu = 0; mu < 4; mu++) n *= (size_t)shape->local[mu];
  return sites == QK_QUDA_ALL ? n : n / 2;
}

size_t qk_quda_whole_sites(const qk_quda_shape_t *shape, qk_quda_sites_t sites) {
  size_t n = qk_quda_local_sites(shape, sites);
  for (int mu = 0; mu < 4; mu++) n *= (size_t)shape->grid[mu];
  return n;
}

size_t qk_quda_rows(const qk_quda_shape_t *shape) {
  return (size_t)shape->local[1] * (size_t)shape->local[2] * (size_t)shape->local[3];
}

uint32_t qk_quda_part(const qk_quda_shape_t *shape) {
  uint32_t part = 0;
  for (int mu = 3; mu >= 0; mu--)
    part = part * (uint32_t)shape->grid[mu] + (uint32_t)shape->coord[mu];
  return part;
}

uint64_t qk_quda_row_begin(const qk_quda_shape_t *shape, size_t row, int at[4]) {
  uint64_t index = 0;
  at[0] = shape->coord[0] * shape->local[0];
  for (int mu = 1; mu < 4; mu++) {
    at[mu] = (int)(row % (size_t)shape->local[mu]) + shape->coord[mu] * shape->local[mu];
    row /= (size_t)shape->local[mu];
  }
  for (int mu = 3; mu >= 0; mu--)
    index = index * (uint64_t)shape->local[mu] * (uint64_t)shape->grid[mu] + (uint64_t)at[mu];
  return index;
}

/* Parity of the first site of a row. */
static int parity_of(const qk_quda_shape_t *shape, size_t row) {
  int at[4];
  qk_quda_row_begin(shape, row, at);
  return (at[0] + at[1] + at[2] + at[3]) & 1;
}

size_t qk_quda_brick_index(const qk_quda_shape_t *shape, size_t row, int x) {
  const size_t in_order = row * (size_t)shape->local[0] + (size_t)x;
  const int parity = (parity_of(shape, row) + x) & 1;
  return in_order / 2 + (parity ? qk_quda_local_sites(shape, QK_QUDA_ODD) : 0);
}

static size_t real_bytes(quark_dtype_t dtype) {
  return dtype == QUARK_F64 ? sizeof(double) : sizeof(float);
}

static size_t row_sites(const qk_quda_move_t *move) {
  return (size_t)move->shape.local[0] / (move->sites == QK_QUDA_ALL ? 1 : 2);
}

size_t qk_quda_row_bytes(const qk_quda_move_t *move) {
  return row_sites(move) * move->reals * real_bytes(move->part_dtype);
}

/* ---- rows ---- */

static double read_real(const void *from, quark_dtype_t dtype, size_t k) {
  return dtype == QUARK_F64 ? ((const double *)from)[k] : ((const float *)from)[k];
}

static void write_real(void *to, quark_dtype_t dtype, size_t k, double v) {
  if (dtype == QUARK_F64)
    ((double *)to)[k] = v;
  else
    ((float *)to)[k] = (float)v;
}

/* One site, multiplied; a real factor keeps what a complex one would make NaN of Inf. */
static void change_site(const void *from, quark_dtype_t from_dtype, void *to,
                        quark_dtype_t to_dtype, size_t reals, double complex twist, double factor) {
  for (size_t k = 0; k < reals; k += 2) {
    const double re = read_real(from, from_dtype, k), im = read_real(from, from_dtype, k + 1);
    if (cimag(twist) == 0) {
      write_real(to, to_dtype, k, creal(twist) * re * factor);
      write_real(to, to_dtype, k + 1, creal(twist) * im * factor);
    } else {
      const double complex v = twist * (re + I * im);
      write_real(to, to_dtype, k, creal(v) * factor);
      write_real(to, to_dtype, k + 1, cimag(v) * factor);
    }
  }
}

static inline __attribute__((always_inline)) void
copy_sites(char *to, size_t to_step, const char *from, size_t from_step, size_t bytes, size_t n) {
  for (size_t k = 0; k < n; k++) memcpy(to + k * to_step, from + k * from_step, bytes);
}

/* Every second site of a row of the part, or all, and a run of sites of the brick. */
typedef struct strip {
  char *brick, *part;
  size_t part_step, n;
  int at[4], x_step; /* coordinates of the first site */
} strip_t;

static void copy_strip(const strip_t *s, size_t bytes, bool to_part) {
  char *to = to_part ? s->part : s->brick;
  const char *from = to_part ? s->brick : s->part;
  const size_t to_step = to_part ? s->part_step : bytes, from_step = to_part ? bytes : s->part_step;
  if (s->part_step == bytes)
    memcpy(to, from, s->n * bytes);
  else if (bytes == 24 * sizeof(double)) /* sizes that the compiler knows */
    copy_sites(to, to_step, from, from_step, 24 * sizeof(double), s->n);
  else if (bytes == 24 * sizeof(float))
    copy_sites(to, to_step, from, from_step, 24 * sizeof(float), s->n);
  else
    copy_sites(to, to_step, from, from_step, bytes, s->n);
}

static void change_strip(const qk_quda_move_t *m, const strip_t *s, bool to_part) {
  const size_t bytes = m->reals * real_bytes(m->brick_dtype);
  const double complex *const twist_x = m->twist ? m->twist[0] : NULL;
  double complex rest = 1;
  if (twist_x) rest = m->twist[1][s->at[1]] * m->twist[2][s->at[2]] * m->twist[3][s->at[3]];
  for (size_t k = 0; k < s->n; k++) {
    double complex w = twist_x ? twist_x[s->at[0] + (int)k * s->x_step] * rest : 1;
    if (m->conjugate) w = conj(w);
    char *b = s->brick + k * bytes, *p = s->part + k * s->part_step;
    if (to_part)
      change_site(b, m->brick_dtype, p, m->part_dtype, m->reals, w, m->factor);
    else
      change_site(p, m->part_dtype, b, m->brick_dtype, m->reals, w, m->factor);
  }
}

static void move_strip(const qk_quda_move_t *m, const strip_t *s, bool to_part) {
  if (!s->part)
    memset(s->brick, 0, s->n * m->reals * real_bytes(m->brick_dtype));
  else if (m->brick_dtype == m->part_dtype && m->factor == 1 && !(m->twist && m->twist[0]))
    copy_strip(s, m->reals * real_bytes(m->brick_dtype), to_part);
  else
    change_strip(m, s, to_part);
}

static void move_row(const qk_quda_move_t *m, size_t row, char *brick, char *part, bool to_part) {
  const size_t part_site = m->reals * real_bytes(m->part_dtype),
               brick_site = m->reals * real_bytes(m->brick_dtype), n = row_sites(m);
  strip_t s = {.brick = brick + row * n * brick_site,
               .part = part,
               .part_step = part_site,
               .n = n,
               .x_step = 1};
  qk_quda_row_begin(&m->shape, row, s.at);
  const int first = (s.at[0] + s.at[1] + s.at[2] + s.at[3]) & 1; /* parity of x = 0 */
  if (m->sites != QK_QUDA_ALL) {
    s.at[0] += first != (int)m->sites;
    s.x_step = 2;
  }
  if (m->sites != QK_QUDA_ALL || m->in_order) {
    move_strip(m, &s, to_part);
    return;
  }
  const int begin = s.at[0];
  const size_t half = qk_quda_local_sites(&m->shape, QK_QUDA_ODD);
  s.n = n / 2, s.part_step = 2 * part_site, s.x_step = 2;
  for (int parity = 0; parity < 2; parity++) {
    const int x = parity != first;
    s.brick = brick + (row * (n / 2) + (parity ? half : 0)) * brick_site;
    s.part = part ? part + (size_t)x * part_site : NULL;
    s.at[0] = begin + x;
    move_strip(m, &s, to_part);
  }
}

void qk_quda_rows_to_part(const qk_quda_move_t *move, size_t first, size_t end, const void *brick,
                          void *part) {
  char *at = part;
  for (size_t row = first; row < end; row++, at += qk_quda_row_bytes(move))
    move_row(move, row, (char *)(uintptr_t)brick, at, true);
}

void qk_quda_rows_to_brick(const qk_quda_move_t *move, size_t first, size_t end, const void *part,
                           void *brick) {
  char *at = (char *)(uintptr_t)part;
  for (size_t row = first; row < end; row++) {
    move_row(move, row, brick, at, false);
    if (at) at += qk_quda_row_bytes(move);
  }
}

static bool all_zero(const char *data, size_t bytes) {
  uint32_t some = 0, word; /* the least that sites are made of */
  for (size_t k = 0; k < bytes; k += sizeof word) {
    memcpy(&word, data + k, sizeof word);
    some |= word;
  }
  return some == 0;
}

bool qk_quda_row_is_zero(const qk_quda_move_t *move, size_t row, const void *brick) {
  const size_t site = move->reals * real_bytes(move->brick_dtype), n = row_sites(move);
  const char *at = brick;
  if (move->sites != QK_QUDA_ALL || move->in_order)
    return all_zero(at + row * n * site, site) && all_zero(at + row * n * site, n * site);
  const size_t even = row * (n / 2) * site,
               odd = even + qk_quda_local_sites(&move->shape, QK_QUDA_ODD) * site;
  return all_zero(at + even, site) && all_zero(at + even, n / 2 * site) &&
         all_zero(at + odd, n / 2 * site);
}

/* ---- whole lattices ---- */

static size_t place_in_whole(const qk_quda_move_t *move, size_t row) {
  int at[4];
  const size_t site = qk_quda_row_begin(&move->shape, row, at);
  return site / (move->sites == QK_QUDA_ALL ? 1 : 2) * move->reals * real_bytes(move->part_dtype);
}

void qk_quda_part_to_whole(const qk_quda_move_t *move, const void *part, void *whole) {
  const size_t bytes = qk_quda_row_bytes(move);
  for (size_t row = 0; row < qk_quda_rows(&move->shape); row++)
    memcpy((char *)whole + place_in_whole(move, row), (const char *)part + row * bytes, bytes);
}

void qk_quda_whole_to_part(const qk_quda_move_t *move, const void *whole, void *part) {
  const size_t bytes = qk_quda_row_bytes(move);
  for (size_t row = 0; row < qk_quda_rows(&move->shape); row++)
    memcpy((char *)part + row * bytes, (const char *)whole + place_in_whole(move, row), bytes);
}
