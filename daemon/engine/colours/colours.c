#include "daemon/engine/colours/colours.h"

#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/hadron/local_mesons.h"
#include "daemon/engine/hadron/local_nucleon.h"
#include "daemon/engine/lattice/gamma_basis.h"

/* Sites times momenta of a step: a tenth of a second or two on one core. */
enum { STEP_PRODUCTS = 1 << 25 };

typedef enum stage { READ, SMEAR, ADD, SUM, END } stage_t;

struct qk_colours {
  qk_loaded_t *setup;
  qk_field_io_t *port;
  const qk_correlate_t *what;
  qk_field_t *const *field;
  qk_local_mesons_t *mesons;
  qk_local_nucleon_t *nucleon; /* NULL: not asked for */
  void *room[2];               /* a part of each propagator */
  qk_colour_part_t part[2];    /* column `column` in them */
  double largest[2];
  stage_t stage;
  int column, slice; /* the next ones */
};

static bool has_two(const qk_correlate_t *what) {
  return what->b[0][0] != '\0';
}

static int propagators(const qk_colours_t *c) {
  return has_two(c->what) ? 2 : 1;
}

bool qk_colours_need_fields(const qk_correlate_t *what) {
  return what->sink.steps > 0 || what->shift > 0;
}

void qk_colours_destroy(qk_colours_t *c) {
  if (c == NULL) return;
  qk_local_mesons_destroy(c->mesons);
  qk_local_nucleon_destroy(c->nucleon);
  for (int i = 0; i < 2; i++) qk_free(c->room[i]);
  qk_free(c);
}

static qk_status_t make(qk_colours_t *c) {
  const qk_correlate_t *what = c->what;
  const qk_geom_t *geom = &c->setup->geom;
  bool nucleon = false;
  for (int i = 0; i < what->nchannel; i++) nucleon |= what->channel[i].kind == QK_CHANNEL_CORNER;
  qk_status_t status =
      qk_local_mesons_create(geom, what->nmom, what->mom, what->origin, &c->mesons);
  if (status == QK_OK && nucleon)
    status = qk_local_nucleon_create(geom, what->nmom, what->mom, what->origin, has_two(what),
                                     &c->nucleon);
  for (int i = 0; i < propagators(c) && status == QK_OK; i++) {
    c->room[i] = qk_malloc(qk_wire_part_bytes(c->port->wire, true));
    if (c->room[i] == NULL) status = QK_NO_MEMORY;
  }
  return status;
}

qk_status_t qk_colours_create(qk_loaded_t *setup, qk_field_io_t *port, const qk_correlate_t *what,
                              qk_field_t *const field[2], qk_colours_t **colours, qk_err_t *err) {
  qk_colours_t *c = qk_calloc(1, sizeof *c);
  qk_status_t status = QK_NO_MEMORY;
  if (c != NULL) {
    *c = (qk_colours_t){.setup = setup, .port = port, .what = what, .field = field};
    c->stage = qk_colours_need_fields(what) ? READ : ADD;
    status = make(c);
  }
  if (status != QK_OK) qk_fail(err, status, "no memory for a contraction");
  status = qk_comm_agree(setup->geom.comm, status, err);
  if (status == QK_OK)
    *colours = c;
  else
    qk_colours_destroy(c);
  return status;
}

/* ---- columns --------------------------------------------------------------------------------- */

static qk_input_t input_of(const qk_colours_t *c, int propagator, int column) {
  const qk_correlate_t *what = c->what;
  return (qk_input_t){.name = propagator ? what->b[column] : what->a[column],
                      .is_double = propagator ? what->b_double : what->a_double,
                      .parity = QK_FULL};
}

/* part: memory of a local vector in double. */
static qk_status_t read_part(const qk_colours_t *c, const qk_input_t *input, void *part,
                             qk_err_t *err) {
  qk_segment_t in;
  qk_status_t status = qk_segment_open_input(c->port->wire, input, &in, err);
  if (status != QK_OK) return status;
  status = qk_segment_read(c->port->wire, &in, part, err);
  qk_segment_close(&in);
  return status;
}

/* The next column of both goes into its field. */
static qk_status_t read_column(qk_colours_t *c, qk_err_t *err) {
  double one[4][4][2];
  qk_status_t status = QK_OK;
  qk_gamma_basis_import(QK_BASIS_DEGRAND_ROSSI, one);
  for (int i = 0; i < propagators(c) && status == QK_OK; i++) {
    const qk_input_t input = input_of(c, i, c->column);
    status = qk_field_io_read(c->port, &input, one, c->field[i], c->column, err);
  }
  if (++c->column < QK_COLOUR_COLUMNS) return status;
  c->column = 0;
  c->stage = SMEAR;
  return status;
}

/* c->column counts propagators here. */
static qk_status_t smear_one(qk_colours_t *c, qk_err_t *err) {
  const qk_correlate_t *what = c->what;
  qk_status_t status = QK_OK;
  if (what->sink.steps > 0)
    status = qk_smear_cache_apply(c->setup->smear, &what->sink, c->field[c->column], err);
  if (c->column == 0 && what->shift > 0 && status == QK_OK) {
    const qk_smearing_t shift = {.links = what->sink.links, .shift = what->shift};
    status = qk_smear_cache_apply(c->setup->smear, &shift, c->field[0], err);
  }
  if (++c->column < propagators(c)) return status;
  c->column = 0;
  c->stage = ADD;
  return status;
}

/* A column of a propagator, as it comes or from its field. */
static qk_status_t take_part(qk_colours_t *c, int propagator, qk_err_t *err) {
  const qk_input_t input = input_of(c, propagator, c->column);
  const size_t bytes = qk_wire_part_bytes(c->port->wire, true);
  double one[4][4][2];
  qk_colour_part_t *part = &c->part[propagator];
  *part = (qk_colour_part_t){c->room[propagator], true};
  if (!qk_colours_need_fields(c->what)) {
    part->is_double = input.is_double;
    return read_part(c, &input, c->room[propagator], err);
  }
  qk_gamma_basis_export(QK_BASIS_DEGRAND_ROSSI, one);
  const qk_status_t status =
      qk_field_io_export(c->port, one, 1, c->field[propagator], c->column, err);
  if (status == QK_OK) memcpy(c->room[propagator], c->port->part, bytes);
  return status;
}

static void note_largest(qk_colours_t *c, int propagator) {
  const qk_colour_part_t *part = &c->part[propagator];
  const double *v = part->data;
  const size_t n = qk_wire_part_bytes(c->port->wire, true) / sizeof *v;
  double *most = &c->largest[propagator];
  if (!part->is_double) *most = INFINITY;
  for (size_t i = 0; i < n && part->is_double; i++)
    if (fabs(v[i]) > *most) *most = fabs(v[i]);
}

void qk_colours_largest(const qk_colours_t *c, double largest[2]) {
  memcpy(largest, c->largest, sizeof c->largest);
}

static qk_status_t take_column(qk_colours_t *c, qk_err_t *err) {
  for (int i = 0; i < propagators(c); i++) {
    const qk_status_t status = take_part(c, i, err);
    if (status != QK_OK) return status;
    note_largest(c, i);
  }
  if (propagators(c) == 1) c->part[1] = c->part[0];
  if (c->nucleon) qk_local_nucleon_add(c->nucleon, c->column, c->part[0], c->part[1]);
  return QK_OK;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* The end of the slices of this step, which begin at c->slice. */
static int slices_end(const qk_colours_t *c) {
  const int *l = c->setup->geom.lat.l;
  const int64_t slice = (int64_t)l[0] * l[1] * l[2] * c->what->nmom, n = STEP_PRODUCTS / slice;
  return n < 1 ? c->slice + 1 : n < l[3] - c->slice ? c->slice + (int)n : l[3];
}

/* Some slices of the column, which is read with the first of them. */
static qk_status_t add_slices(qk_colours_t *c, qk_err_t *err) {
  const int end = slices_end(c);
  const qk_status_t status = c->slice == 0 ? take_column(c, err) : QK_OK;
  if (status != QK_OK) return status;
  qk_local_mesons_add(c->mesons, c->part[0], c->part[1], c->slice, end);
  c->slice = end % c->setup->geom.lat.l[3];
  if (c->slice == 0 && ++c->column == QK_COLOUR_COLUMNS) c->stage = c->nucleon ? SUM : END;
  return QK_OK;
}

static void sum_slices(qk_colours_t *c) {
  const int end = slices_end(c);
  qk_local_nucleon_sum(c->nucleon, c->slice, end);
  c->slice = end % c->setup->geom.lat.l[3];
  if (c->slice == 0) c->stage = END;
}

/* The numbers of all channels, in their order: mesons are summed at once, and take the places of
 * nucleons along. */
static qk_status_t end(qk_colours_t *c, double *numbers, qk_err_t *err) {
  const qk_correlate_t *what = c->what;
  const size_t one = 2 * (size_t)what->nmom * (size_t)c->setup->geom.global[3];
  int spin[QK_CHANNELS_MAX], taste[QK_CHANNELS_MAX];
  const double *nucleon = NULL;
  for (int i = 0; i < what->nchannel; i++) {
    spin[i] = what->channel[i].sink;
    taste[i] = what->channel[i].source;
  }
  qk_status_t status = qk_local_mesons_end(c->mesons, what->nchannel, spin, taste, numbers);
  for (int i = 0; i < what->nchannel && status == QK_OK; i++) {
    double *to = numbers + (size_t)i * one;
    if (what->channel[i].kind != QK_CHANNEL_CORNER) continue;
    if (nucleon)
      memcpy(to, nucleon, one * sizeof *to);
    else
      status = qk_local_nucleon_end(c->nucleon, c->setup->phase_t, to);
    nucleon = to;
  }
  if (status == QK_OK) return QK_OK;
  return qk_fail(err, status, "the ranks could not add their correlators");
}

qk_status_t qk_colours_step(qk_colours_t *c, double *numbers, bool *over, qk_err_t *err) {
  *over = c->stage == END;
  switch (c->stage) {
  case READ:
    return read_column(c, err);
  case SMEAR:
    return smear_one(c, err);
  case ADD:
    return add_slices(c, err);
  case SUM:
    sum_slices(c);
    return QK_OK;
  case END:
    break;
  }
  return end(c, numbers, err);
}
