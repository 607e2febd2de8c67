#include "client/libquark/setups.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/libquark/ask.h"
#include "client/libquark/connection/error.h"
#include "proto/action/operator_text.h"

_Static_assert((int)QUARK_SETUPS <= (int)QK_SETUPS_MAX, "some of those that there can be");

#define COPY(to, from) snprintf((to), sizeof(to), "%s", (from) ? (from) : "")

_Static_assert((int)QUARK_ACTION_TEXT > (int)QK_PARAM_NAME_MAX &&
                   (int)QUARK_PARAMETER_TEXT >= (int)QK_OPERATOR_TEXT,
               "there is room for every action");

void quark__parameters_read(Quark__Setting *const *parameter, size_t n,
                            char text[QUARK_PARAMETER_TEXT]) {
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; i < n; i++) {
    const char *key = parameter[i]->key, *value = parameter[i]->value;
    const int bytes =
        snprintf(text + used, QUARK_PARAMETER_TEXT - used, "%s%s=%s", used ? ";" : "", key, value);
    if (bytes < 0 || used + (size_t)bytes >= QUARK_PARAMETER_TEXT) {
      text[used] = '\0'; /* none of it rather than half of a number */
      return;
    }
    used += (size_t)bytes;
  }
}

uint32_t quark_parameters_split(char *parameters, uint32_t most, quark_parameter_t *parameter) {
  uint32_t n = 0;
  for (char *rest = parameters; rest && *rest; n++) {
    char *value = strsep(&rest, ";"), *key = strsep(&value, "=");
    if (n < most) parameter[n] = (quark_parameter_t){key, value ? value : ""};
  }
  return n;
}

void quark__deflation_read(quark_deflation_t *d, const Quark__DeflationReport *m) {
  *d = (quark_deflation_t){0};
  if (!m) return;
  d->vectors = m->vectors;
  d->lowest = m->lowest;
  d->highest = m->highest;
  d->seconds = m->seconds;
  d->bytes = m->bytes;
  d->restored = m->restored;
  COPY(d->origin, m->origin);
  COPY(d->trouble, m->trouble);
}

static void read_setup(quark_setup_t *s, const Quark__SetupState *m) {
  *s = (quark_setup_t){.state = (quark_state_t)m->state,
                       .is_default = m->is_default,
                       .phase_done = m->done,
                       .phase_total = m->total,
                       .code = (quark_code_t)m->status,
                       .kappa = m->kappa,
                       .csw = m->csw,
                       .checksum_ignored = m->checksum_ignored,
                       .plaquette = m->has_plaquette ? m->plaquette : NAN,
                       .digest = m->digest,
                       .slots = m->slots,
                       .slots_busy = m->slots_busy,
                       .restarts = m->restarts,
                       .queued = m->queued,
                       .open = m->open,
                       .device_bytes = m->device_bytes,
                       .idle = m->idle,
                       .site_reals = m->has_site_reals ? m->site_reals : QK_SITE_REALS,
                       .columns = m->has_columns ? m->columns : QK_PROPAGATOR_COLUMNS};
  COPY(s->name, m->name);
  COPY(s->gauge, m->gauge);
  COPY(s->solver, m->solver);
  COPY(s->phase, m->phase);
  COPY(s->text, m->text);
  COPY(s->action, m->action);
  COPY(s->owner, m->owner);
  COPY(s->origin, m->origin);
  COPY(s->origin_trouble, m->origin_trouble);
  quark__parameters_read(m->parameter, m->n_parameter, s->parameters);
  quark__deflation_read(&s->deflation, m->deflation);
  for (size_t mu = 0; mu < 4 && m->n_dims == 4; mu++) s->dims[mu] = m->dims[mu];
  for (size_t i = 0; i < 8; i++) s->boundary[i] = i < m->n_boundary ? m->boundary[i] : NAN;
}

void quark__setups_read_locked(quark_connection_t *conn, const Quark__StatusReport *m) {
  answers_t *answers = conn->answers;
  answers->nsetups = (uint32_t)(m->n_setups < QUARK_SETUPS ? m->n_setups : QUARK_SETUPS);
  answers->setups_left = (uint32_t)m->n_setups - answers->nsetups + m->setups_left_out;
  for (uint32_t i = 0; i < answers->nsetups; i++) read_setup(&answers->setups[i], m->setups[i]);
}

static quark_code_t ask_from_locked(quark_connection_t *conn, uint32_t first, quark_error_t *err) {
  Quark__StatusRequest request = QUARK__STATUS_REQUEST__INIT;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  request.has_first_setup = first > 0;
  request.first_setup = first;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_STATUS;
  message.status = &request;
  return quark__ask_locked(conn, &message, &conn->answers->reports, "STATUS", err);
}

quark_code_t quark_setups(quark_connection_t *conn, quark_setup_t setup[QUARK_SETUPS],
                          uint32_t *count, quark_error_t *err) {
  const answers_t *answers = conn->answers;
  pthread_mutex_lock(&conn->lock);
  const quark_code_t code = ask_from_locked(conn, 0, err);
  if (code == QUARK_OK) {
    *count = answers->nsetups;
    memcpy(setup, answers->setups, answers->nsetups * sizeof *setup);
  }
  pthread_mutex_unlock(&conn->lock);
  return code;
}

quark_code_t quark_setup_list(quark_connection_t *conn, quark_setup_t *setup, uint32_t room,
                              uint32_t *count, quark_error_t *err) {
  const answers_t *answers = conn->answers;
  quark_code_t code;
  uint32_t n = 0;
  pthread_mutex_lock(&conn->lock);
  do {
    code = ask_from_locked(conn, n, err);
    if (code != QUARK_OK) break;
    const uint32_t fits = n < room ? room - n : 0;
    const uint32_t take = answers->nsetups < fits ? answers->nsetups : fits;
    if (take > 0) memcpy(setup + n, answers->setups, take * sizeof *setup);
    n += answers->nsetups;
  } while (answers->nsetups > 0 && answers->setups_left > 0);
  pthread_mutex_unlock(&conn->lock);
  if (code == QUARK_OK) *count = n;
  return code;
}

static quark_code_t ask(quark_connection_t *conn, const Quark__ClientMessage *message,
                        unsigned feature, const char *what, quark_error_t *err) {
  pthread_mutex_lock(&conn->lock);
  const quark_code_t code =
      quark__ask_for_locked(conn, message, feature, &conn->answers->setup_replies, what, err);
  pthread_mutex_unlock(&conn->lock);
  return code;
}

void quark_load_init(quark_load_t *load) {
  *load = (quark_load_t){.kappa = NAN, .mass = NAN, .csw = NAN, .slots = -1, .deflate = -1};
}

/* The parameters as fields of a message: settings, and the list of pointers to them. */
static quark_code_t list_parameters(const quark_load_t *l, Quark__Load *load,
                                    Quark__Setting **settings, quark_error_t *err) {
  for (uint32_t i = 0; i < l->nparameter; i++)
    if (!l->parameter || !l->parameter[i].key || !l->parameter[i].value)
      return quark__fail(err, QUARK_BAD_ARGUMENT, "parameter %u has no key or no value", i);
  *settings = calloc(l->nparameter + (size_t)1, sizeof **settings);
  load->parameter = calloc(l->nparameter + (size_t)1, sizeof *load->parameter);
  if (!*settings || !load->parameter)
    return quark__fail(err, QUARK_NO_MEMORY, "no memory for %u parameters", l->nparameter);
  for (uint32_t i = 0; i < l->nparameter; i++) {
    Quark__Setting *s = load->parameter[i] = *settings + i;
    quark__setting__init(s);
    s->key = (char *)(uintptr_t)l->parameter[i].key;
    s->value = (char *)(uintptr_t)l->parameter[i].value;
  }
  load->n_parameter = l->nparameter;
  return QUARK_OK;
}

/* To links that were sent, or are known by their digest. */
static bool is_reference(const char *gauge) {
  return gauge && (strncmp(gauge, "field:", 6) == 0 || strncmp(gauge, "digest:", 7) == 0);
}

quark_code_t quark_load(quark_connection_t *conn, const quark_load_t *l, quark_error_t *err) {
  Quark__Load load = QUARK__LOAD__INIT;
  Quark__Setting *settings = NULL;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  if (!l->name) return quark__fail(err, QUARK_BAD_ARGUMENT, "a setup needs a name");
  unsigned feature = l->action || l->nparameter ? QK_FEATURE_ACTIONS : 0;
  /* a daemon that has one of these has those before, too */
  if (l->evolve_from) feature = QK_FEATURE_EVOLVE;
  if (is_reference(l->gauge)) feature = QK_FEATURE_FIELDS;
  if (l->deflate > 0) feature = QK_FEATURE_DEFLATE; /* 0 an old daemon may ignore: it has none */
  if (l->deflate_from) feature = QK_FEATURE_DEFLATE_FROM;
  if (l->replicas > 1 || l->devices) feature = QK_FEATURE_REPLICAS; /* an old one has 1 */
  if (l->fix_gauge) feature = QK_FEATURE_FIX_GAUGE;
  quark_code_t code = list_parameters(l, &load, &settings, err);
  if (code != QUARK_OK) goto out;
  load.name = (char *)(uintptr_t)l->name;
  load.gauge = (char *)(uintptr_t)l->gauge;
  load.n_dims = l->dims[0] > 0 ? 4 : 0;
  load.dims = (uint32_t *)(uintptr_t)l->dims;
  load.has_kappa = !isnan(l->kappa);
  load.kappa = l->kappa;
  load.has_mass = !isnan(l->mass);
  load.mass = l->mass;
  load.has_csw = !isnan(l->csw);
  load.csw = l->csw;
  load.boundary = (char *)(uintptr_t)l->boundary;
  load.solver = (char *)(uintptr_t)l->solver;
  load.precision = (char *)(uintptr_t)l->precision;
  load.has_slots = l->slots >= 0;
  load.slots = l->slots >= 0 ? (uint32_t)l->slots : 0;
  load.has_make_default = load.make_default = l->make_default;
  load.has_ignore_checksum = load.ignore_checksum = l->ignore_checksum;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_LOAD;
  message.load = &load;
  load.action = (char *)(uintptr_t)l->action;
  load.evolve_from = (char *)(uintptr_t)l->evolve_from;
  load.deflate_from = (char *)(uintptr_t)l->deflate_from;
  load.has_deflate = l->deflate >= 0;
  load.deflate = l->deflate >= 0 ? (uint32_t)l->deflate : 0;
  load.has_replicas = l->replicas != 0;
  load.replicas = (uint32_t)l->replicas;
  load.devices = (char *)(uintptr_t)l->devices;
  load.fix_gauge = (char *)(uintptr_t)l->fix_gauge;
  code = ask(conn, &message, feature, "LOAD", err);
out:
  free(load.parameter);
  free(settings);
  return code;
}

quark_code_t quark_drop(quark_connection_t *conn, const char *name, bool now, quark_error_t *err) {
  Quark__Drop drop = QUARK__DROP__INIT;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  drop.name = (char *)(uintptr_t)name;
  drop.has_now = drop.now = now;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_DROP;
  message.drop = &drop;
  return ask(conn, &message, 0, "DROP", err);
}

quark_code_t quark_make_default(quark_connection_t *conn, const char *name, quark_error_t *err) {
  Quark__MakeDefault make = QUARK__MAKE_DEFAULT__INIT;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  make.name = (char *)(uintptr_t)name;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_MAKE_DEFAULT;
  message.make_default = &make;
  return ask(conn, &message, 0, "MAKE_DEFAULT", err);
}
