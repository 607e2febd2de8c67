#include "client/analysis/channels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/analysis/scan.h"
#include "proto/limits.h"

enum { GAMMAS = 16, SPINS = 4, NUCLEON_NUMBERS = 16, DELTA_NUMBERS = 144, POLARISATIONS = 3 };

/* One channel: the mean of up to three raw mesons, or a baryon. */
typedef struct qk_channel_line {
  char name[QK_CHANNEL_NAME];
  quark_channel_kind_t kind;
  int sign; /* of the meson; parity of the baryon */
  int count;
  uint32_t raw[POLARISATIONS];
} line_t;

/* ---- names ---- */

typedef struct meson {
  const char *name;
  int count;
  uint32_t gamma[POLARISATIONS];
} meson_t;

static const meson_t mesons[] = {
    {"pion", 1, {15}},         {"a4", 1, {7}},          {"a0", 1, {0}},       {"rho", 3, {1, 2, 4}},
    {"rho_t", 3, {9, 10, 12}}, {"a1", 3, {14, 13, 11}}, {"b1", 3, {3, 5, 6}},
};
enum { NMESON = sizeof mesons / sizeof mesons[0] };

/* Pions of staggered quarks by their taste, the polarisations of which have one spin. */
static const struct {
  const char *name;
  int count;
  uint32_t spin, taste[POLARISATIONS];
} tastes[] = {{"pioni5", 3, 15, {14, 13, 11}}, {"pionij", 3, 7, {6, 5, 3}},
              {"pioni0", 3, 15, {9, 10, 12}},  {"pioni", 3, 7, {1, 2, 4}},
              {"pion0", 1, 15, {8}},           {"pions", 1, 7, {0}}};
enum { NTASTE = sizeof tastes / sizeof tastes[0] };

/* The last one is of colour vectors, the others of quarks with spin, which `all` is for. */
static const struct {
  const char *name;
  quark_channel_kind_t kind;
  int parity;
} baryons[] = {{"nucleon", QUARK_NUCLEON, 1},
               {"nucleon_minus", QUARK_NUCLEON, -1},
               {"delta", QUARK_DELTA, 1},
               {"nucleon_corner", QUARK_CORNER, 1}};
enum { NBARYON = sizeof baryons / sizeof baryons[0], NSPIN = NBARYON - 1 };

/* gt G^+ gt = s G. Reversing k factors takes k (k - 1) / 2 exchanges; gt anticommutes with the
 * spatial ones. */
static int meson_sign(uint32_t gamma) {
  const int k = __builtin_popcount(gamma), space = __builtin_popcount(gamma & 7);
  const int s = (k * (k - 1) / 2 + space) % 2 ? -1 : 1;
  return -s;
}

void qk_gamma_print(uint32_t n, char text[QK_GAMMA_NAME]) {
  int length = 0;
  if (n == 0 || n == GAMMAS - 1) {
    strcpy(text, n ? "g5" : "id");
    return;
  }
  for (int mu = 0; mu < 4; mu++)
    if (n >> mu & 1)
      length += snprintf(text + length, QK_GAMMA_NAME - (size_t)length, "g%c", "xyzt"[mu]);
}

/* One of the words of qk_gamma_print, or a number. */
static bool parse_gamma(const char *text, size_t bytes, uint32_t *n) {
  char word[QK_GAMMA_NAME];
  for (uint32_t i = 0; i < GAMMAS; i++) {
    qk_gamma_print(i, word);
    if (strlen(word) == bytes && memcmp(word, text, bytes) == 0) {
      *n = i;
      return true;
    }
    snprintf(word, sizeof word, "%u", i);
    if (strlen(word) == bytes && memcmp(word, text, bytes) == 0) {
      *n = i;
      return true;
    }
  }
  return false;
}

bool qk_gamma_parse(const char *text, uint32_t *n) {
  return parse_gamma(text, strlen(text), n);
}

bool qk_channel_is_symmetric(const char *name) {
  for (int i = 0; i < NMESON; i++)
    if (strcmp(mesons[i].name, name) == 0) return true;
  for (int i = 0; i < NTASTE; i++)
    if (strcmp(tastes[i].name, name) == 0) return true;
  return false;
}

bool qk_channel_alternates(const char *name) {
  return strcmp(name, "pion") != 0 && strcmp(name, "g5-g5") != 0;
}

unsigned qk_channel_shift(const quark_channel_t *raw) {
  return raw->kind == QUARK_MESON ? raw->sink ^ raw->source : 0;
}

bool qk_channel_is_of_walls(const quark_channel_t *raw) {
  enum { GT = 8, G5 = 15 };
  return raw->kind != QUARK_MESON ||
         (raw->sink == raw->source && (raw->sink == GT || raw->sink == G5));
}

/* ---- the list ---- */

static uint32_t add_raw(qk_channels_t *c, quark_channel_t want) {
  for (uint32_t i = 0; i < c->nraw; i++)
    if (c->raw[i].kind == want.kind && c->raw[i].sink == want.sink &&
        c->raw[i].source == want.source)
      return i;
  c->raw[c->nraw] = want;
  return c->nraw++;
}

static line_t *add_line(qk_channels_t *c, const char *name, quark_channel_kind_t kind, int sign) {
  for (int i = 0; i < c->n; i++)
    if (strcmp(c->line[i].name, name) == 0) return NULL;
  line_t *line = &c->line[c->n++];
  *line = (line_t){.kind = kind, .sign = sign};
  snprintf(line->name, sizeof line->name, "%s", name);
  return line;
}

static void add_meson(qk_channels_t *c, const meson_t *m) {
  line_t *line = add_line(c, m->name, QUARK_MESON, meson_sign(m->gamma[0]));
  for (int i = 0; line && i < m->count; i++)
    line->raw[line->count++] = add_raw(c, (quark_channel_t){QUARK_MESON, m->gamma[i], m->gamma[i]});
}

/* The daemon gives them with the square of the matrix of spin. */
static void add_taste(qk_channels_t *c, int k) {
  line_t *line = add_line(c, tastes[k].name, QUARK_MESON, tastes[k].spin == 15 ? 1 : -1);
  c->tastes = true;
  for (int i = 0; line && i < tastes[k].count; i++)
    line->raw[line->count++] =
        add_raw(c, (quark_channel_t){QUARK_MESON, tastes[k].spin, tastes[k].taste[i]});
}

static void add_baryon(qk_channels_t *c, int i) {
  line_t *line = add_line(c, baryons[i].name, baryons[i].kind, baryons[i].parity);
  if (line) line->raw[line->count++] = add_raw(c, (quark_channel_t){.kind = baryons[i].kind});
}

static void add_pair(qk_channels_t *c, uint32_t sink, uint32_t source) {
  char name[QK_CHANNEL_NAME], a[QK_GAMMA_NAME], b[QK_GAMMA_NAME];
  qk_gamma_print(sink, a);
  qk_gamma_print(source, b);
  snprintf(name, sizeof name, "%s-%s", a, b);
  line_t *line = add_line(c, name, QUARK_MESON, 1);
  if (line) line->raw[line->count++] = add_raw(c, (quark_channel_t){QUARK_MESON, sink, source});
}

static bool add_word(qk_channels_t *c, const char *word, size_t bytes) {
  const bool all = bytes == 3 && memcmp(word, "all", bytes) == 0;
  bool known = all;
  for (int i = 0; i < NMESON; i++)
    if (all || (strlen(mesons[i].name) == bytes && memcmp(mesons[i].name, word, bytes) == 0)) {
      add_meson(c, &mesons[i]);
      known = true;
    }
  for (int i = 0; i < NBARYON; i++)
    if ((all && i < NSPIN) ||
        (strlen(baryons[i].name) == bytes && memcmp(baryons[i].name, word, bytes) == 0)) {
      add_baryon(c, i);
      known = true;
    }
  const bool every = bytes == 6 && memcmp(word, "tastes", bytes) == 0;
  if (every) {
    add_meson(c, &mesons[0]);
    add_meson(c, &mesons[1]);
    known = true;
  }
  for (int i = 0; i < NTASTE; i++)
    if (every || (strlen(tastes[i].name) == bytes && memcmp(tastes[i].name, word, bytes) == 0)) {
      add_taste(c, i);
      known = true;
    }
  if (known) return true;
  if (bytes == 5 && memcmp(word, "pairs", bytes) == 0) {
    for (uint32_t i = 0; i < GAMMAS * GAMMAS; i++) add_pair(c, i / GAMMAS, i % GAMMAS);
    return true;
  }
  uint32_t sink, source;
  const char *dash = memchr(word, '-', bytes);
  if (!dash || !parse_gamma(word, (size_t)(dash - word), &sink) ||
      !parse_gamma(dash + 1, bytes - (size_t)(dash + 1 - word), &source))
    return false;
  add_pair(c, sink, source);
  return true;
}

qk_status_t qk_channels_parse(const char *text, qk_channels_t *channels, qk_err_t *err) {
  enum { MOST = NMESON + NBARYON + NTASTE + GAMMAS * GAMMAS };
  static const char separators[] = ", \t\n";
  qk_channels_t c = {.line = calloc(MOST, sizeof *c.line), .raw = calloc(MOST + 16, sizeof *c.raw)};
  if (!c.line || !c.raw) {
    qk_channels_fini(&c);
    return qk_fail(err, QK_NO_MEMORY, "no memory for channels");
  }
  for (const char *p = text + strspn(text, separators); *p; p += strspn(p, separators)) {
    const size_t bytes = strcspn(p, separators);
    if (!add_word(&c, p, bytes)) {
      qk_channels_fini(&c);
      return qk_fail(err, QK_BAD_ARGUMENT,
                     "channel \"%.*s\": must be pion, a4, a0, rho, rho_t, a1, b1, nucleon, "
                     "nucleon_minus, delta, nucleon_corner, pioni5, pionij, pioni0, pioni, pion0, "
                     "pions, tastes, all, pairs, or two gamma matrices such as g5-gxgt or 15-9",
                     (int)(bytes < 40 ? bytes : 40), p);
    }
    p += bytes;
  }
  if (!c.n) {
    qk_channels_fini(&c);
    return qk_fail(err, QK_BAD_ARGUMENT, "no channel is named");
  }
  *channels = c;
  return QK_OK;
}

void qk_channels_fini(qk_channels_t *channels) {
  free(channels->line);
  free(channels->raw);
  *channels = (qk_channels_t){0};
}

const char *qk_channels_name(const qk_channels_t *channels, int i) {
  return channels->line[i].name;
}

/* ---- spin ---- */

typedef struct matrix {
  double complex e[SPINS][SPINS];
} matrix_t;

/* gamma_x, gamma_y, gamma_z: row r has its one element, e[r], in column 3 - r or r ^ 2. */
static matrix_t gamma_space(int i) {
  static const double complex element[3][SPINS] = {{I, I, -I, -I}, {-1, 1, 1, -1}, {I, -I, -I, I}};
  matrix_t m = {0};
  for (int r = 0; r < SPINS; r++) m.e[r][i == 2 ? r ^ 2 : SPINS - 1 - r] = element[i][r];
  return m;
}

static matrix_t product(const matrix_t *a, const matrix_t *b) {
  matrix_t c = {0};
  for (int i = 0; i < SPINS; i++)
    for (int j = 0; j < SPINS; j++)
      for (int k = 0; k < SPINS; k++) c.e[i][j] += a->e[i][k] * b->e[k][j];
  return c;
}

/* tr[(1 + parity gt)/2 G]; gt exchanges spins r and r ^ 2. */
static double complex projected(const double complex *g, int parity) {
  double complex sum = 0;
  for (int r = 0; r < SPINS; r++) sum += g[r * SPINS + r] + parity * g[(r ^ 2) * SPINS + r];
  return sum / 2;
}

/* sum_ij P_ij G_ji with P_ij = delta_ij - gi gj / 3, a matrix of spins. */
static void spin_three_halves(const double complex *g, double complex out[SPINS * SPINS]) {
  memset(out, 0, SPINS * SPINS * sizeof *out);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      const matrix_t gi = gamma_space(i), gj = gamma_space(j), gigj = product(&gi, &gj);
      matrix_t part;
      memcpy(part.e, g + (j * 3 + i) * SPINS * SPINS, sizeof part.e);
      const matrix_t turned = product(&gigj, &part);
      for (int k = 0; k < SPINS * SPINS; k++)
        out[k] += (i == j ? part.e[k / SPINS][k % SPINS] : 0) - turned.e[k / SPINS][k % SPINS] / 3;
    }
}

/* ---- evaluation ---- */

static int numbers_of(quark_channel_kind_t kind) {
  return kind == QUARK_NUCLEON ? NUCLEON_NUMBERS : kind == QUARK_DELTA ? DELTA_NUMBERS : 1;
}

int64_t qk_channels_numbers(const qk_channels_t *channels) {
  int64_t n = 0;
  for (uint32_t i = 0; i < channels->nraw; i++) n += numbers_of(channels->raw[i].kind);
  return n;
}

/* tr[(1 + parity gt)/2 G] of the raw matrix at time t (0 .. T - 1) from the source. */
static double complex baryon_at(const line_t *line, const double complex *raw, int t, int parity) {
  double complex spin[SPINS * SPINS];
  const double complex *g = raw + (int64_t)t * numbers_of(line->kind);
  if (line->kind == QUARK_DELTA) {
    spin_three_halves(g, spin);
    g = spin;
  }
  return projected(g, parity);
}

static void evaluate_baryon(const line_t *line, const double complex *raw, int nt,
                            double complex phase, double complex *out) {
  const double complex around = conj(phase * phase * phase);
  for (int t = 0; t < nt; t++) {
    const double complex ahead = baryon_at(line, raw, t, line->sign),
                         behind = baryon_at(line, raw, (nt - t) % nt, -line->sign);
    out[t] = line->sign * (ahead + behind * (t ? around : 1)) / 2;
  }
}

static void evaluate_meson(const line_t *line, const double complex *const raw[POLARISATIONS],
                           int nt, double complex *out) {
  for (int t = 0; t < nt; t++) {
    double complex sum = 0;
    for (int i = 0; i < line->count; i++) sum += raw[i][t];
    out[t] = line->sign * sum / line->count;
  }
}

void qk_channels_evaluate(const qk_channels_t *channels, const double complex *raw, int nmom,
                          int nt, double complex phase, double complex *out) {
  for (int i = 0; i < channels->n; i++) {
    const line_t *line = &channels->line[i];
    const int numbers = numbers_of(line->kind);
    const double complex *block[POLARISATIONS] = {0};
    for (int k = 0; k < line->count; k++) {
      int64_t before = 0;
      for (uint32_t r = 0; r < line->raw[k]; r++) before += numbers_of(channels->raw[r].kind);
      block[k] = raw + before * nmom * nt;
    }
    for (int p = 0; p < nmom; p++, out += nt) {
      const double complex *at[POLARISATIONS] = {0};
      for (int k = 0; k < line->count; k++) at[k] = block[k] + (int64_t)p * nt * numbers;
      if (line->kind == QUARK_MESON || line->kind == QUARK_CORNER) /* the mean of one */
        evaluate_meson(line, at, nt, out);
      else
        evaluate_baryon(line, at[0], nt, phase, out);
    }
  }
}

/* ---- momenta ---- */

qk_status_t qk_momenta_parse(const char *text, uint32_t *n, int32_t (**momenta)[3], qk_err_t *err) {
  int32_t(*p)[3] = malloc(QK_MOMENTA_MAX * sizeof *p);
  if (!p) return qk_fail(err, QK_NO_MEMORY, "no memory for momenta");
  uint32_t count = 0;
  const char *s = text + strspn(text, "; \t\n");
  while (*s) {
    for (int j = 0; j < 3; j++) {
      int64_t k;
      if (count == QK_MOMENTA_MAX) {
        free(p);
        return qk_fail(err, QK_BAD_ARGUMENT, "more than %d momenta", QK_MOMENTA_MAX);
      }
      if ((j && !qk_scan_word(&s, ",")) || !qk_scan_int(&s, -65536, 65536, &k) ||
          (j == 2 && *s && !strchr("; \t\n", *s))) {
        free(p);
        return qk_fail(err, QK_BAD_ARGUMENT,
                       "momenta \"%.80s\": must be triples of integers such as 0,0,0;1,0,0", text);
      }
      p[count][j] = (int32_t)k;
    }
    count++;
    s += strspn(s, "; \t\n");
  }
  if (!count) {
    free(p);
    return qk_fail(err, QK_BAD_ARGUMENT, "no momentum is named");
  }
  *n = count;
  *momenta = p;
  return QK_OK;
}
