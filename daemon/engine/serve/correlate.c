#include "daemon/engine/serve/correlate.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/engine/colours/colours.h"
#include "daemon/engine/serve/open_slices.h"

struct qk_correlator {
  qk_loaded_t *setup;
  qk_field_io_t *port;
  qk_staging_t *stage;
  qk_field_t *field[2]; /* propagators; what is there may be of the CONTRACT before */
  qk_contractor_t *contractor;
  qk_colours_t *colours; /* of colour vectors, in its place */
  bool busy;             /* what follows is of the one under way */
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
  qk_colours_destroy(r->colours);
  qk_free(r->numbers);
  r->colours = NULL;
  r->numbers = NULL;
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

static qk_status_t make_colours(qk_correlator_t *r, qk_err_t *err) {
  const qk_status_t status =
      qk_colours_create(r->setup, r->port, &r->what, r->field, &r->colours, err);
  if (status != QK_OK || !qk_colours_need_fields(&r->what)) return status;
  return make_fields(r, QK_DOUBLE, err);
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
  if (status == QK_OK && is_colour(r)) return make_colours(r, err);
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

static qk_status_t judge_numbers(const qk_correlator_t *r, double *most, qk_err_t *err);
static qk_status_t judge_product(const qk_correlator_t *r, const double size[2], double most,
                                 qk_err_t *err);

/* As judge does for spinors. Collective. */
static qk_status_t judge_colours(qk_correlator_t *r, qk_err_t *err) {
  double most, size[2];
  qk_colours_largest(r->colours, size);
  qk_status_t status = qk_comm_max(r->setup->geom.comm, size, 2);
  if (status != QK_OK) return qk_fail(err, status, "the ranks could not compare propagators");
  status = judge_numbers(r, &most, err);
  if (status != QK_OK || most > DBL_MIN / DBL_EPSILON) return status;
  for (int i = 0; i < 2; i++) size[i] = log2(size[i]);
  return judge_product(r, size, most, err);
}

static qk_status_t contract_colours(qk_correlator_t *r, bool *over, qk_err_t *err) {
  qk_status_t status = qk_colours_step(r->colours, r->numbers, over, err);
  if (status == QK_OK && *over) status = judge_colours(r, err);
  if (status == QK_OK && *over) status = qk_object_write(r->port->wire, &r->out, r->numbers, err);
  *over |= status != QK_OK;
  return status;
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
  if (is_colour(r)) return conclude(r, contract_colours(r, over, verdict), verdict, err);
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
