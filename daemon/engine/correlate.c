#include "daemon/engine/correlate.h"

#include <string.h>

#include "daemon/base/mem.h"

typedef struct run {
  qk_port_t *port;
  const qk_correlate_t *what;
  qk_tick_fn *tick;
  void *arg;
  qk_object_t out;
  double *numbers;
  qk_field_t *a, *b; /* b NULL: a */
  qk_err_t *err;
} run_t;

static size_t result_bytes(const run_t *r) {
  const qk_correlate_t *what = r->what;
  size_t numbers = 0;
  for (int i = 0; i < what->nchannel; i++)
    numbers += (size_t)qk_channel_numbers(what->channel[i].kind);
  return numbers * (size_t)what->nmom * (size_t)r->port->setup->geom.global[3] * 2 * sizeof(double);
}

static qk_status_t agree(const run_t *r, qk_status_t status) {
  const qk_setup_t *s = r->port->setup;
  return qk_comm_agree(s->geom.comm, qk_setup_explain(s, status, r->err), r->err);
}

static qk_status_t open_result(run_t *r) {
  size_t bytes = result_bytes(r);
  qk_status_t status =
      qk_object_open(r->port->wire, r->what->shm_out, (int64_t)bytes, &r->out, r->err);
  if (status != QK_OK) return status;
  r->numbers = qk_malloc(bytes);
  if (r->numbers == NULL)
    status = qk_fail(r->err, QK_NO_MEMORY, "no memory for %zu bytes of correlators", bytes);
  return agree(r, status);
}

static qk_status_t read_propagator(const run_t *r, const char names[][QK_SHM_NAME_MAX + 1],
                                   bool is_double, qk_prec_t prec, qk_field_t **field) {
  qk_setup_t *s = r->port->setup;
  double one[4][4][2];
  qk_status_t status =
      agree(r, qk_field_create(&s->dev, prec, QK_PROPAGATOR_COLUMNS, QK_FULL, field));
  qk_basis_import(QK_BASIS_DEGRAND_ROSSI, one);
  for (int k = 0; k < QK_PROPAGATOR_COLUMNS && status == QK_OK; k++) {
    r->tick(r->arg);
    status = qk_port_read(r->port, names[k], is_double, one, *field, k, r->err);
  }
  if (status == QK_OK && r->what->sink.steps > 0)
    status = qk_smear_cache_apply(s->smear, &r->what->sink, *field, r->err);
  r->tick(r->arg);
  return status;
}

static qk_status_t contract(run_t *r) {
  const qk_correlate_t *what = r->what;
  bool two = what->b[0][0] != '\0';
  qk_prec_t prec = what->a_double || (two && what->b_double) ? QK_DOUBLE : QK_SINGLE;
  qk_status_t status = open_result(r);
  if (status == QK_OK) status = read_propagator(r, what->a, what->a_double, prec, &r->a);
  if (status == QK_OK && two) status = read_propagator(r, what->b, what->b_double, prec, &r->b);
  if (status != QK_OK) return status;

  qk_contract_t c = {.a = r->a, .b = two ? r->b : r->a, .nmom = what->nmom, .mom = what->mom};
  memcpy(c.origin, what->origin, sizeof c.origin);
  memcpy(c.phase_t, r->port->setup->phase_t, sizeof c.phase_t);
  status = qk_contract_run(&c, what->nchannel, what->channel, r->numbers, r->err);
  return status == QK_OK ? qk_object_write(r->port->wire, &r->out, r->numbers, r->err) : status;
}

qk_status_t qk_correlate_run(qk_port_t *port, const qk_correlate_t *what, qk_tick_fn *tick,
                             void *arg, qk_err_t *verdict, qk_err_t *err) {
  run_t r = {.port = port, .what = what, .tick = tick, .arg = arg, .out.fd = -1, .err = verdict};
  qk_status_t status = contract(&r);
  qk_field_destroy(r.b);
  qk_field_destroy(r.a);
  qk_free(r.numbers);
  qk_object_close(&r.out);
  qk_setup_explain(port->setup, status, verdict);
  verdict->code = status;
  if (status != QK_DEVICE_ERROR && status != QK_COMM_ERROR && status != QK_INTERNAL) return QK_OK;
  *err = *verdict;
  return status;
}
