#include "daemon/engine/serve/correlate.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/engine/hadron/local_mesons.h"
#include "daemon/engine/hadron/local_nucleon.h"
#include "daemon/engine/serve/open_slices.h"

struct qk_correlator {
  qk_loaded_t *setup;
  qk_field_io_t *port;
  qk_staging_t *stage;
  qk_field_t *field[2]; /* propagators; what is there may be of the CONTRACT before */
  qk_contractor_t *contractor;
  qk_local_mesons_t *mesons;   /* of colour vectors, in their place */
  qk_local_nucleon_t *nucleon; /* likewise, if it is asked for */
  void *beside;                /* and a part of the other propagator */
  double largest[2];           /* number of each propagator of colour vectors, on this rank */
  bool busy;                   /* what follows is of the one under way */
  qk_correlate_t what;
  qk_object_t out;
  double *numbers;
  int columns;     /* of its propagators together */
  int begun, here; /* columns that have begun to come, and that are in their fields */
  bool contracting;
  qk_buffer_t *buffer[2 * QK_PROPAGATOR_COLUMNS]; /* of columns on their way */
};

/* ---- life ------------------------------------------------------------------------------------ */

qk_status_t qk_correlator_create(qk_loaded_t *setup, qk_field_io_t *port, qk_staging_t *stage,
                                 qk_correlator_t **correlator, qk_err_t *err) {
  qk_correlator_t *r = qk_calloc(1, sizeof *r);
  qk_status_t status = r ? QK_OK : qk_fail(err, QK_NO_MEMORY, "no memory for contractions");
  status = qk_comm_agree(setup->geom.comm, status, err);
  if (status != QK_OK) {
    qk_free(r);
    return status;
  }
  r->setup = setup;
  r->port = port;
  r->stage = stage;
  r->out.fd = -1;
  *correlator = r;
  return QK_OK;
}

void qk_correlator_destroy(qk_correlator_t *r) {
  if (r == NULL) return;
  qk_correlator_drop(r);
  qk_correlator_rest(r);
  qk_free(r);
}

bool qk_correlator_busy(const qk_correlator_t *r) {
  return r->busy;
}

void qk_correlator_drop(qk_correlator_t *r) {
  for (int k = 0; k < r->columns; k++) {
    qk_buffer_drop(r->buffer[k]);
    r->buffer[k] = NULL;
  }
  qk_local_mesons_destroy(r->mesons);
  qk_local_nucleon_destroy(r->nucleon);
  qk_free(r->beside);
  qk_free(r->numbers);
  r->mesons = NULL;
  r->nucleon = NULL;
  r->beside = r->numbers = NULL;
  qk_object_close(&r->out);
  r->columns = r->begun = r->here = 0;
  r->busy = r->contracting = false;
}

static void drop_fields(qk_correlator_t *r) {
  for (int i = 1; i >= 0; i--) {
    qk_field_destroy(r->field[i]);
    r->field[i] = NULL;
  }
}

bool qk_correlator_rest(qk_correlator_t *r) {
  const bool any = r->contractor != NULL || r->field[0] != NULL || r->field[1] != NULL;
  qk_contractor_destroy(r->contractor);
  r->contractor = NULL;
  drop_fields(r);
  return any;
}

/* ---- begin ----------------------------------------------------------------------------------- */

static size_t result_bytes(const qk_correlator_t *r) {
  size_t numbers = 0;
  for (int i = 0; i < r->what.nchannel; i++)
    numbers += (size_t)qk_channel_numbers(r->what.channel[i].kind);
  return numbers * (size_t)r->what.nmom * (size_t)r->setup->geom.global[3] * 2 * sizeof(double);
}

static bool is_colour(const qk_correlator_t *r) {
  return r->setup->action->colour;
}

static qk_status_t agree(const qk_correlator_t *r, qk_status_t status, qk_err_t *err) {
  const qk_loaded_t *s = r->setup;
  return qk_comm_agree(s->geom.comm, qk_device_explain(&s->dev, status, err), err);
}

static bool has_two(const qk_correlate_t *what) {
  return what->b[0][0] != '\0';
}

static int propagators(const qk_correlator_t *r) {
  return has_two(&r->what) ? 2 : 1;
}

/* Fields of the precision, those that are there if they are. */
static qk_status_t make_fields(qk_correlator_t *r, qk_prec_t prec, qk_err_t *err) {
  const qk_device_t *dev = &r->setup->dev;
  const int columns = r->columns / propagators(r);
  qk_status_t status = QK_OK;
  if (r->field[0] != NULL && r->field[0]->v.prec != prec) drop_fields(r);
  for (int i = 0; i < propagators(r) && status == QK_OK; i++)
    if (r->field[i] == NULL)
      status = agree(r, qk_field_create(dev, prec, columns, QK_FULL, &r->field[i]), err);
  return status;
}

/* Colour vectors are contracted in the host's memory, where they come from, and go to the device
 * only to be smeared. */
static qk_status_t make_mesons(qk_correlator_t *r, qk_err_t *err) {
  const qk_correlate_t *what = &r->what;
  const qk_geom_t *geom = &r->setup->geom;
  bool nucleon = false;
  for (int i = 0; i < what->nchannel; i++) nucleon |= what->channel[i].kind == QK_CHANNEL_CORNER;
  r->largest[0] = r->largest[1] = 0;
  qk_status_t status =
      qk_local_mesons_create(geom, what->nmom, what->mom, what->origin, &r->mesons);
  if (status == QK_OK && nucleon)
    status = qk_local_nucleon_create(geom, what->nmom, what->mom, what->origin, has_two(what),
                                     &r->nucleon);
  if (status == QK_OK && has_two(what)) {
    r->beside = qk_malloc(qk_wire_part_bytes(r->port->wire, true));
    if (r->beside == NULL) status = QK_NO_MEMORY;
  }
  if (status != QK_OK) qk_fail(err, status, "no memory for a contraction");
  status = agree(r, status, err);
  return status == QK_OK && what->sink.steps > 0 ? make_fields(r, QK_DOUBLE, err) : status;
}

static qk_status_t make_room(qk_correlator_t *r, qk_err_t *err) {
  const qk_correlate_t *what = &r->what;
  const qk_prec_t prec =
      what->a_double || (has_two(what) && what->b_double) ? QK_DOUBLE : QK_SINGLE;
  const size_t bytes = result_bytes(r);
  qk_status_t status = qk_object_open(r->port->wire, what->shm_out, (int64_t)bytes, &r->out, err);
  if (status != QK_OK) return status;
  r->numbers = qk_malloc(bytes);
  if (r->numbers == NULL)
    status = qk_fail(err, QK_NO_MEMORY, "no memory for %zu bytes of correlators", bytes);
  if (status == QK_OK && is_colour(r)) return make_mesons(r, err);
  if (status == QK_OK && r->contractor == NULL)
    status = qk_contractor_create(&r->setup->dev, &r->contractor);
  status = agree(r, status, err);
  return status == QK_OK ? make_fields(r, prec, err) : status;
}

static bool loses_process(qk_status_t status) {
  return status == QK_DEVICE_ERROR || status == QK_COMM_ERROR || status == QK_INTERNAL;
}

/* What a status means for the CONTRACT, or for the process. */
static qk_status_t conclude(const qk_correlator_t *r, qk_status_t status, qk_err_t *verdict,
                            qk_err_t *err) {
  qk_device_explain(&r->setup->dev, status, verdict);
  verdict->code = status;
  if (!loses_process(status)) return QK_OK;
  *err = *verdict;
  return status;
}

static qk_status_t begin(qk_correlator_t *r, qk_err_t *verdict) {
  const qk_status_t status = qk_open_slices_smearing(r->setup, &r->what.sink, verdict);
  return status == QK_OK ? make_room(r, verdict) : status;
}

qk_status_t qk_correlator_begin(qk_correlator_t *r, const qk_correlate_t *what, qk_err_t *verdict,
                                qk_err_t *err) {
  QK_ASSERT(!r->busy);
  r->what = *what;
  r->columns = (has_two(what) ? 2 : 1) * (is_colour(r) ? QK_COLOUR_COLUMNS : QK_PROPAGATOR_COLUMNS);
  qk_status_t status = begin(r, verdict);
  r->busy = status == QK_OK;
  if (r->busy) return QK_OK;
  qk_correlator_drop(r);
  qk_correlator_rest(r);
  return conclude(r, status, verdict, err);
}

/* ---- columns --------------------------------------------------------------------------------- */

typedef struct column {
  qk_input_t input;
  const qk_field_t *field;
  int rhs;
} column_t;

static column_t column_of(const qk_correlator_t *r, int k) {
  const int rhs = k % QK_PROPAGATOR_COLUMNS;
  if (k < QK_PROPAGATOR_COLUMNS)
    return (column_t){{.name = r->what.a[rhs], .is_double = r->what.a_double, .parity = QK_FULL},
                      r->field[0],
                      rhs};
  return (column_t){
      {.name = r->what.b[rhs], .is_double = r->what.b_double, .parity = QK_FULL}, r->field[1], rhs};
}

/* Half of the buffers are for contractions where sources come, too. */
static int share(const qk_correlator_t *r) {
  return (r->setup->plan.staging + 1) / 2;
}

int qk_correlator_wants(const qk_correlator_t *r) {
  if (is_colour(r)) return 0;
  const int most = share(r) - (r->begun - r->here), more = r->columns - r->begun;
  return most < 0 ? 0 : more < most ? more : most;
}

/* Number of columns that go into their fields together: as many as are contiguous, or as there
 * are buffers for. */
static int together(const qk_correlator_t *r) {
  int n = QK_RHS_TOGETHER;
  while (n > share(r)) n /= 2;
  return n;
}

static bool have_come(const qk_correlator_t *r, int first, int n) {
  for (int k = first; k < first + n; k++)
    if (r->buffer[k] == NULL || !qk_buffer_done(r->buffer[k])) return false;
  return true;
}

/* Those that have come go into their fields. */
static qk_status_t take_columns(qk_correlator_t *r, qk_err_t *verdict, qk_err_t *err) {
  const int n = together(r);
  double one[4][4][2];
  qk_status_t status = QK_OK;
  qk_gamma_basis_import(QK_BASIS_DEGRAND_ROSSI, one);
  for (int k = 0; k < r->columns && status == QK_OK && verdict->code == QK_OK; k += n) {
    if (!have_come(r, k, n)) continue;
    const column_t c = column_of(r, k);
    status = qk_staging_import(r->stage, n, r->buffer + k, one, c.field, c.rhs, verdict, err);
    for (int i = 0; i < n; i++) r->buffer[k + i] = NULL;
    r->here += n;
  }
  return status;
}

/* Others begin to come, in what is left to them and in buffers that nobody else wants. */
static qk_status_t begin_columns(qk_correlator_t *r, int lacking, qk_err_t *verdict,
                                 qk_err_t *err) {
  qk_status_t status = QK_OK;
  while (r->begun < r->columns && status == QK_OK && verdict->code == QK_OK) {
    const column_t c = column_of(r, r->begun);
    if (qk_correlator_wants(r) == 0 && qk_staging_vacant(r->stage) <= lacking) break;
    status = qk_staging_load(r->stage, &c.input, &r->buffer[r->begun], verdict, err);
    if (r->buffer[r->begun] == NULL) break;
    r->begun++;
  }
  return status;
}

static qk_status_t read_columns(qk_correlator_t *r, qk_tick_fn *tick, void *arg, qk_err_t *err) {
  double one[4][4][2];
  qk_status_t status = QK_OK;
  qk_gamma_basis_import(QK_BASIS_DEGRAND_ROSSI, one);
  for (; r->here < r->columns && status == QK_OK; r->here++) {
    const column_t c = column_of(r, r->here);
    tick(arg);
    status = qk_field_io_read(r->port, &c.input, one, c.field, c.rhs, err);
  }
  return status;
}

/* ---- colour vectors -------------------------------------------------------------------------- */

/* part: memory of a local vector in double. */
static qk_status_t read_part(const qk_correlator_t *r, const char *name, bool is_double, void *part,
                             qk_err_t *err) {
  const qk_input_t input = {.name = name, .is_double = is_double, .parity = QK_FULL};
  qk_segment_t in;
  qk_status_t status = qk_segment_open_input(r->port->wire, &input, &in, err);
  if (status != QK_OK) return status;
  status = qk_segment_read(r->port->wire, &in, part, err);
  qk_segment_close(&in);
  return status;
}

/* Into their fields, and smeared there. */
static qk_status_t smear_colours(qk_correlator_t *r, qk_tick_fn *tick, void *arg, qk_err_t *err) {
  const qk_correlate_t *what = &r->what;
  double one[4][4][2];
  qk_status_t status = QK_OK;
  qk_gamma_basis_import(QK_BASIS_DEGRAND_ROSSI, one);
  for (int k = 0; k < r->columns && status == QK_OK; k++) {
    const int second = k / QK_COLOUR_COLUMNS, i = k % QK_COLOUR_COLUMNS;
    const qk_input_t input = {.name = second ? what->b[i] : what->a[i],
                              .is_double = second ? what->b_double : what->a_double,
                              .parity = QK_FULL};
    tick(arg);
    status = qk_field_io_read(r->port, &input, one, r->field[second], i, err);
  }
  for (int i = 0; i < propagators(r) && status == QK_OK; i++)
    status = qk_smear_cache_apply(r->setup->smear, &what->sink, r->field[i], err);
  return status;
}

/* A column of a propagator, 0 or 1, as it comes or from its field; in port->part. */
static qk_status_t take_part(qk_correlator_t *r, int propagator, int column, qk_colour_part_t *part,
                             qk_err_t *err) {
  const qk_correlate_t *what = &r->what;
  double one[4][4][2];
  *part = (qk_colour_part_t){r->port->part, true};
  qk_gamma_basis_export(QK_BASIS_DEGRAND_ROSSI, one);
  if (what->sink.steps > 0)
    return qk_field_io_export(r->port, one, 1, r->field[propagator], column, err);
  part->is_double = propagator ? what->b_double : what->a_double;
  return read_part(r, propagator ? what->b[column] : what->a[column], part->is_double,
                   r->port->part, err);
}

/* Numbers of single precision have products that a double holds. */
static void note_largest(qk_correlator_t *r, int propagator, const qk_colour_part_t *part) {
  const double *v = part->data;
  const size_t n = qk_wire_part_bytes(r->port->wire, true) / sizeof *v;
  double *most = &r->largest[propagator];
  if (!part->is_double) *most = INFINITY;
  for (size_t i = 0; i < n && part->is_double; i++)
    if (fabs(v[i]) > *most) *most = fabs(v[i]);
}

static qk_status_t add_colours(qk_correlator_t *r, int column, qk_err_t *err) {
  qk_colour_part_t a, b;
  if (has_two(&r->what)) {
    const qk_status_t status = take_part(r, 1, column, &b, err);
    if (status != QK_OK) return status;
    memcpy(r->beside, b.data, qk_wire_part_bytes(r->port->wire, b.is_double));
    b.data = r->beside;
    note_largest(r, 1, &b);
  }
  const qk_status_t status = take_part(r, 0, column, &a, err);
  if (status != QK_OK) return status;
  note_largest(r, 0, &a);
  if (!has_two(&r->what)) b = a;
  qk_local_mesons_add(r->mesons, a, b);
  if (r->nucleon) qk_local_nucleon_add(r->nucleon, column, a, b);
  return QK_OK;
}

/* The numbers of all channels, in their order: mesons are summed at once, and take the places of
 * nucleons along. */
static qk_status_t end_colours(qk_correlator_t *r, qk_err_t *err) {
  const qk_correlate_t *what = &r->what;
  const size_t one = 2 * (size_t)what->nmom * (size_t)r->setup->geom.global[3];
  int gamma[QK_CHANNELS_MAX];
  const double *nucleon = NULL;
  for (int i = 0; i < what->nchannel; i++) gamma[i] = what->channel[i].sink;
  qk_status_t status = qk_local_mesons_end(r->mesons, what->nchannel, gamma, r->numbers);
  for (int i = 0; i < what->nchannel && status == QK_OK; i++) {
    double *to = r->numbers + (size_t)i * one;
    if (what->channel[i].kind != QK_CHANNEL_CORNER) continue;
    if (nucleon)
      memcpy(to, nucleon, one * sizeof *to);
    else
      status = qk_local_nucleon_end(r->nucleon, r->setup->phase_t, to);
    nucleon = to;
  }
  if (status == QK_OK) return QK_OK;
  return qk_fail(err, status, "the ranks could not add their correlators");
}

static qk_status_t judge_numbers(const qk_correlator_t *r, double *most, qk_err_t *err);
static qk_status_t judge_product(const qk_correlator_t *r, const double size[2], double most,
                                 qk_err_t *err);

/* As judge does for spinors. Collective. */
static qk_status_t judge_colours(qk_correlator_t *r, qk_err_t *err) {
  double most, size[2];
  qk_status_t status = qk_comm_max(r->setup->geom.comm, r->largest, 2);
  if (status != QK_OK) return qk_fail(err, status, "the ranks could not compare propagators");
  status = judge_numbers(r, &most, err);
  if (status != QK_OK || most > DBL_MIN / DBL_EPSILON) return status;
  for (int i = 0; i < 2; i++) size[i] = log2(r->largest[i]);
  return judge_product(r, size, most, err);
}

static qk_status_t contract_colours(qk_correlator_t *r, qk_tick_fn *tick, void *arg,
                                    qk_err_t *err) {
  const qk_correlate_t *what = &r->what;
  qk_status_t status = what->sink.steps > 0 ? smear_colours(r, tick, arg, err) : QK_OK;
  for (int i = 0; i < QK_COLOUR_COLUMNS && status == QK_OK; i++) {
    tick(arg);
    status = add_colours(r, i, err);
  }
  if (status != QK_OK) return status;
  status = end_colours(r, err);
  if (status != QK_OK) return status;
  status = judge_colours(r, err);
  return status == QK_OK ? qk_object_write(r->port->wire, &r->out, r->numbers, err) : status;
}

/* ---- step ------------------------------------------------------------------------------------ */

static qk_contract_t contraction_of(const qk_correlator_t *r) {
  const qk_correlate_t *what = &r->what;
  const qk_loaded_t *s = r->setup;
  qk_contract_t c = {
      .a = r->field[0], .b = r->field[has_two(what) ? 1 : 0], .nmom = what->nmom, .mom = what->mom};
  memcpy(c.origin, what->origin, sizeof c.origin);
  memcpy(c.phase_t, s->phase_t, sizeof c.phase_t);
  return c;
}

/* All columns are here. */
static qk_status_t begin_contraction(qk_correlator_t *r, qk_tick_fn *tick, void *arg,
                                     qk_err_t *err) {
  const qk_correlate_t *what = &r->what;
  const qk_loaded_t *s = r->setup;
  qk_status_t status = QK_OK;
  for (int i = 0; i < propagators(r) && what->sink.steps > 0; i++) {
    tick(arg);
    status = qk_smear_cache_apply(s->smear, &what->sink, r->field[i], err);
    if (status != QK_OK) return status;
  }
  tick(arg);
  const qk_contract_t c = contraction_of(r);
  r->contracting = true;
  return qk_contract_begin(r->contractor, &c, what->nchannel, what->channel, err);
}

/* log2 |field|, however small its numbers are; -Inf: zero, Inf: not small. The field is of no more
 * use. */
static qk_status_t find_size(const qk_correlator_t *r, const qk_field_t *field, double *size) {
  enum { N = 2 * QK_TILE, LIFT = 600 };
  const qk_loaded_t *s = r->setup;
  double host[2][N][2] = {{{0}}}, norm2 = 0, *device = NULL;
  for (int i = 0; i < N; i++) host[0][i][0] = ldexp(1, LIFT);
  qk_status_t status = s->ops->alloc(s->ctx, sizeof host, (void **)&device);
  if (status != QK_OK) return status;
  qk_dev_copy(&s->dev, device, host, sizeof host, QK_COPY_TO_DEVICE);
  qk_dev_blas(&s->dev, QK_BLAS_SCALE, (qk_blas_args_t){.f = {field->v}, .c = {device}});
  qk_dev_blas(&s->dev, QK_BLAS_NORM2, (qk_blas_args_t){.f = {field->v}, .red = device + 2 * N});
  qk_dev_copy(&s->dev, host, device, sizeof host, QK_COPY_TO_HOST);
  qk_dev_sync(&s->dev);
  s->ops->free(s->ctx, device);
  status = qk_dev_status(&s->dev);
  if (status != QK_OK) return status;
  for (int i = 0; i < field->v.nrhs; i++) norm2 += host[1][i][0];
  status = qk_comm_sum(s->geom.comm, &norm2, 1);
  *size = log2(norm2) / 2 - LIFT;
  return status;
}

/* size: log2 of each propagator; -Inf: zero, Inf: not small. */
static qk_status_t judge_product(const qk_correlator_t *r, const double size[2], double most,
                                 qk_err_t *err) {
  const qk_correlate_t *what = &r->what;
  double product, factors = 2;
  for (int i = 0; i < what->nchannel; i++)
    if (what->channel[i].kind != QK_CHANNEL_MESON) factors = 3;
  product = factors / 2 * (size[0] + size[has_two(what) ? 1 : 0]);
  if (!isfinite(product) || product > log2(DBL_MIN / DBL_EPSILON)) return QK_OK;
  return qk_fail(
      err, QK_BAD_ARGUMENT,
      "the correlators are too small for f64: at most %.3g, although their propagators are "
      "not 0; scale the sources up",
      most);
}

/* Correlators that are next to nothing: products of propagators that are not, or of what is zero.
 * Those of single precision cannot be as small. */
static qk_status_t judge_small(const qk_correlator_t *r, double most, qk_err_t *err) {
  double size[2];
  if (r->field[0]->v.prec != QK_DOUBLE) return QK_OK;
  for (int i = 0; i < propagators(r); i++) {
    qk_status_t status = find_size(r, r->field[i], &size[i]);
    if (status != QK_OK) return status;
  }
  return judge_product(r, size, most, err);
}

/* Products of numbers that a double holds may be none. */
static qk_status_t judge_numbers(const qk_correlator_t *r, double *most, qk_err_t *err) {
  const int64_t n = r->out.bytes / (int64_t)sizeof *r->numbers;
  *most = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!isfinite(r->numbers[i]))
      return qk_fail(
          err, QK_BAD_ARGUMENT,
          "number %lld of the correlators is NaN or Inf: their propagators are too large, or "
          "hold such numbers",
          (long long)(i / 2));
    *most = fmax(*most, fabs(r->numbers[i]));
  }
  return QK_OK;
}

static qk_status_t judge(const qk_correlator_t *r, qk_err_t *err) {
  double most;
  const qk_status_t status = judge_numbers(r, &most, err);
  if (status != QK_OK) return status;
  return most > DBL_MIN / DBL_EPSILON ? QK_OK : judge_small(r, most, err);
}

static qk_status_t end_contraction(qk_correlator_t *r, qk_err_t *err) {
  const qk_correlate_t *what = &r->what;
  const qk_contract_t c = contraction_of(r);
  qk_status_t status =
      qk_contract_end(r->contractor, &c, what->nchannel, what->channel, r->numbers, err);
  if (status != QK_OK) return status;
  status = judge(r, err);
  return status == QK_OK ? qk_object_write(r->port->wire, &r->out, r->numbers, err) : status;
}

static qk_status_t step(qk_correlator_t *r, int lacking, qk_tick_fn *tick, void *arg, bool *over,
                        qk_err_t *verdict, qk_err_t *err) {
  qk_status_t status;
  if (is_colour(r)) return conclude(r, contract_colours(r, tick, arg, verdict), verdict, err);
  if (r->contracting) return conclude(r, end_contraction(r, verdict), verdict, err);
  if (qk_staging_exists(r->stage)) {
    status = take_columns(r, verdict, err);
    if (status == QK_OK && verdict->code == QK_OK) status = begin_columns(r, lacking, verdict, err);
    if (status != QK_OK || verdict->code != QK_OK) return status;
  } else {
    status = read_columns(r, tick, arg, verdict);
    if (status != QK_OK) return conclude(r, status, verdict, err);
  }
  if (r->here == r->columns) status = begin_contraction(r, tick, arg, verdict);
  *over = status != QK_OK;
  return conclude(r, status, verdict, err);
}

qk_status_t qk_correlator_step(qk_correlator_t *r, int lacking, qk_tick_fn *tick, void *arg,
                               bool *over, qk_err_t *verdict, qk_err_t *err) {
  *over = true;
  qk_status_t status = step(r, lacking, tick, arg, over, verdict, err);
  if (*over) qk_correlator_drop(r);
  return status;
}
