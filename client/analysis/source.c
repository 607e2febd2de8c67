#include "client/analysis/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/analysis/scan.h"

enum { MOST_COLUMNS = 1 << 24, MOST_EXTENT = 1 << 16 };

static const char forms[] =
    "point:X,Y,Z,T[,flavour=+1|-1], wall:T[,p=PX:PY:PZ][,flavour=+1|-1], z2:SEED[:T] or "
    "z4:SEED[:T] with [,count=N][,every=N][,dilute=spin+colour+time+flavour][,p=PX:PY:PZ]"
    "[,flavour=+1|-1]";

bool qk_source_is_noise(const qk_source_t *source) {
  return source->kind == QUARK_Z2 || source->kind == QUARK_Z4;
}

static bool scan_coordinate(const char **p, int32_t *x) {
  int64_t value;
  if (**p == '-' || **p == '+' || !qk_scan_int(p, 0, MOST_EXTENT - 1, &value)) return false;
  *x = (int32_t)value;
  return true;
}

static bool scan_momentum(const char **p, quark_column_t *place) {
  int32_t *const k[3] = {&place->px, &place->py, &place->pz};
  for (int j = 0; j < 3; j++) {
    int64_t value;
    if ((j && !qk_scan_word(p, ":")) || !qk_scan_int(p, -MOST_EXTENT, MOST_EXTENT, &value))
      return false;
    *k[j] = (int32_t)value;
  }
  return true;
}

static bool scan_flavour(const char **p, quark_column_t *place) {
  if (qk_scan_word(p, "-1"))
    place->flavour = -1;
  else if (qk_scan_word(p, "+1") || qk_scan_word(p, "1"))
    place->flavour = 1;
  else
    return false;
  return true;
}

/* What may stand at the end of a point or a wall. */
static bool parse_end(const char *p, qk_source_t *s) {
  if (qk_scan_word(&p, ",flavour=") && !scan_flavour(&p, &s->place)) return false;
  return !*p;
}

static bool parse_point(const char *p, qk_source_t *s) {
  int32_t *const x[4] = {&s->place.x, &s->place.y, &s->place.z, &s->place.t};
  for (int mu = 0; mu < 4; mu++)
    if ((mu && !qk_scan_word(&p, ",")) || !scan_coordinate(&p, x[mu])) return false;
  return parse_end(p, s);
}

static bool parse_wall(const char *p, qk_source_t *s) {
  qk_scan_word(&p, "t=");
  if (!scan_coordinate(&p, &s->place.t)) return false;
  if (qk_scan_word(&p, ",p=") && !scan_momentum(&p, &s->place)) return false;
  return parse_end(p, s);
}

static bool scan_dilution(const char **p, qk_source_t *s) {
  do {
    bool *by = qk_scan_word(p, "spin")      ? &s->by_spin
               : qk_scan_word(p, "colour")  ? &s->by_colour
               : qk_scan_word(p, "time")    ? &s->by_time
               : qk_scan_word(p, "flavour") ? &s->by_flavour
                                            : NULL;
    if (!by || *by) return false;
    *by = true;
  } while (qk_scan_word(p, "+"));
  return true;
}

static bool scan_key(const char **p, qk_source_t *s, bool *has_seed) {
  int64_t n;
  if (qk_scan_word(p, "seed=")) {
    *has_seed = true;
    return qk_scan_uint64(p, &s->place.seed);
  }
  if (qk_scan_word(p, "t=")) return scan_coordinate(p, &s->place.t);
  if (qk_scan_word(p, "p=")) return scan_momentum(p, &s->place);
  if (qk_scan_word(p, "dilute=")) return scan_dilution(p, s);
  if (qk_scan_word(p, "flavour=")) return scan_flavour(p, &s->place);
  if (qk_scan_word(p, "count=")) {
    if (!qk_scan_int(p, 1, QK_SOURCE_COUNT_MAX, &n)) return false;
    s->count = (uint64_t)n;
    return true;
  }
  if (!qk_scan_word(p, "every=") || !qk_scan_int(p, 1, MOST_EXTENT, &n)) return false;
  s->place.t_every = (uint32_t)n;
  return true;
}

static bool parse_noise(const char *p, qk_source_t *s) {
  s->place.t = s->place.spin = s->place.colour = -1;
  bool has_seed = qk_scan_uint64(&p, &s->place.seed);
  if (has_seed) {
    if (qk_scan_word(&p, ":") && !scan_coordinate(&p, &s->place.t)) return false;
    if (*p && (!qk_scan_word(&p, ",") || !*p)) return false;
  }
  while (*p) {
    if (!scan_key(&p, s, &has_seed)) return false;
    if (*p && (!qk_scan_word(&p, ",") || !*p)) return false;
  }
  return has_seed;
}

qk_status_t qk_source_parse(const char *text, qk_source_t *source, qk_err_t *err) {
  static const struct {
    const char *name;
    quark_source_t kind;
    bool (*parse)(const char *, qk_source_t *);
  } kinds[] = {{"point:", QUARK_POINT, parse_point},
               {"wall:", QUARK_WALL, parse_wall},
               {"z2:", QUARK_Z2, parse_noise},
               {"z4:", QUARK_Z4, parse_noise}};
  qk_source_t s = {.kind = QUARK_UPLOAD};
  bool good = false;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && s.kind == QUARK_UPLOAD; i++) {
    const char *p = text;
    if (!qk_scan_word(&p, kinds[i].name)) continue;
    s.kind = kinds[i].kind;
    good = kinds[i].parse(p, &s);
  }
  if (!good) return qk_fail(err, QK_BAD_ARGUMENT, "source \"%.120s\": must be %s", text, forms);
  if (s.by_time && s.place.t >= 0)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "source \"%.120s\": dilute=time already selects the time slices: leave out t",
                   text);
  if (s.by_flavour && s.place.flavour)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "source \"%.120s\": dilute=flavour already selects the flavours: leave out "
                   "flavour",
                   text);
  if (s.place.t_every && s.place.t < 0) s.place.t = 0;
  *source = s;
  return QK_OK;
}

bool qk_source_has_flavour(const qk_source_t *source) {
  return source->place.flavour != 0 || source->by_flavour;
}

static qk_status_t check_flavour(const qk_source_t *s, const qk_shape_t *shape, qk_err_t *err) {
  if (!qk_source_has_flavour(s) || qk_shape_vectors(shape) > 1) return QK_OK;
  return qk_fail(err, QK_UNSUPPORTED,
                 "%s is for right-hand sides of two flavours (doublets); here they have one",
                 s->by_flavour          ? "dilute=flavour"
                 : s->place.flavour > 0 ? "flavour=+1"
                                        : "flavour=-1");
}

static qk_status_t check_spin(const qk_source_t *s, const qk_shape_t *shape, qk_err_t *err) {
  if (!s->by_spin || !qk_shape_is_colour(shape)) return QK_OK;
  return qk_fail(err, QK_UNSUPPORTED,
                 "dilute=spin is for right-hand sides with spins; here they have colour alone");
}

static qk_status_t check_place(const qk_source_t *s, const uint32_t dims[4], qk_err_t *err) {
  const quark_column_t *c = &s->place;
  const int32_t x[4] = {c->x, c->y, c->z, c->t}, p[3] = {c->px, c->py, c->pz};
  for (int mu = 0; mu < 4; mu++)
    if (x[mu] >= (int32_t)dims[mu])
      return qk_fail(err, QK_BAD_ARGUMENT, "%c = %d is outside the lattice, which has %u",
                     "xyzt"[mu], x[mu], dims[mu]);
  for (int j = 0; j < 3; j++)
    if (abs(p[j]) >= (int32_t)dims[j])
      return qk_fail(err, QK_BAD_ARGUMENT, "momentum p%c = %d, must be within +-%u", "xyz"[j], p[j],
                     dims[j] - 1);
  if (c->t_every > dims[3])
    return qk_fail(err, QK_BAD_ARGUMENT, "every = %u, must be 1 to the %u time slices", c->t_every,
                   dims[3]);
  return QK_OK;
}

/* The columns of one seed on one or all slices. */
static quark_column_t *add_components(const qk_source_t *s, const quark_column_t *place,
                                      quark_column_t *out) {
  for (int32_t flavour = 0; flavour < (s->by_flavour ? 2 : 1); flavour++)
    for (int32_t spin = 0; spin < (s->by_spin ? 4 : 1); spin++)
      for (int32_t colour = 0; colour < (s->by_colour ? 3 : 1); colour++) {
        *out = *place;
        if (s->by_flavour) out->flavour = 1 - 2 * flavour;
        if (s->by_spin) out->spin = spin;
        if (s->by_colour) out->colour = colour;
        out++;
      }
  return out;
}

static quark_column_t *add_noise(const qk_source_t *s, uint64_t seed, int32_t slices,
                                 quark_column_t *out) {
  for (int32_t t = 0; t < slices; t++) {
    quark_column_t place = s->place;
    place.seed = seed;
    if (s->by_time) place.t = t;
    out = add_components(s, &place, out);
  }
  return out;
}

/* The components of a point or wall: all, or those of one flavour; of colour vectors there is no
 * more than one spin. */
static void add_all(const qk_source_t *s, int64_t n, bool two, quark_column_t *out) {
  for (int32_t i = 0; i < n; i++) {
    out[i] = s->place;
    out[i].spin = i % QK_SOURCE_COMPONENTS / 3;
    out[i].colour = i % 3;
    if (two) out[i].flavour = i < QK_SOURCE_COMPONENTS ? 1 : -1;
  }
}

int qk_source_components(const qk_shape_t *shape) {
  return qk_shape_is_colour(shape) ? QK_COLOUR_COLUMNS : QK_SOURCE_COMPONENTS;
}

qk_status_t qk_source_columns(const qk_source_t *source, const qk_shape_t *shape, int64_t *n,
                              quark_column_t **columns, qk_err_t *err) {
  qk_status_t status = check_flavour(source, shape, err);
  if (status == QK_OK) status = check_spin(source, shape, err);
  if (status == QK_OK) status = check_place(source, shape->dims, err);
  if (status != QK_OK) return status;
  const uint32_t *dims = shape->dims;
  const bool noise = qk_source_is_noise(source),
             two = qk_shape_vectors(shape) > 1 && source->place.flavour == 0;
  const uint64_t seeds = source->count ? source->count : 1;
  const uint32_t every = source->place.t_every ? source->place.t_every : dims[3];
  const int32_t slices = source->by_time ? (int32_t)every : 1;
  const double total = noise ? (double)seeds * slices * (source->by_flavour ? 2 : 1) *
                                   (source->by_spin ? 4 : 1) * (source->by_colour ? 3 : 1)
                             : qk_source_components(shape) * (two ? 2 : 1);
  if (total > MOST_COLUMNS)
    return qk_fail(err, QK_BAD_ARGUMENT, "%.0f columns, must be at most %d", total, MOST_COLUMNS);
  quark_column_t *out = malloc((size_t)total * sizeof *out), *end = out;
  if (!out) return qk_fail(err, QK_NO_MEMORY, "no memory for %.0f columns", total);
  for (uint64_t i = 0; noise && i < seeds; i++)
    end = add_noise(source, source->place.seed + i, slices, end);
  if (!noise) add_all(source, (int64_t)total, two, out);
  *n = (int64_t)total;
  *columns = out;
  return QK_OK;
}

bool qk_flavour_parse(const char *text, int32_t *flavour) {
  if (strcmp(text, "1") != 0 && strcmp(text, "+1") != 0 && strcmp(text, "-1") != 0) return false;
  *flavour = *text == '-' ? -1 : 1;
  return true;
}
