#include "client/bench/load.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/bench/load_impl.h"
#include "client/cli/operator.h"
#include "client/cli/solving.h"

/* Uploads: random numbers in [-1, 1). */
static bool make_pool(ctl_load_t *load) {
  const bool single = load->options->dtype == QUARK_F32;
  const size_t n =
      load->field_bytes / (single ? sizeof(float) : sizeof(double)) + 2 * CTL_LOAD_SHIFTS;
  load->pool = malloc(n * (single ? sizeof(float) : sizeof(double)));
  if (!load->pool) return false;
  for (size_t i = 0; i < n; i++) {
    const double x = 2 * ctl_load_fraction(ctl_load_draw(load->options->seed, i, 64)) - 1;
    if (single)
      ((float *)load->pool)[i] = (float)x;
    else
      ((double *)load->pool)[i] = x;
  }
  return true;
}

static bool uploads(const ctl_load_options_t *o) {
  for (int i = 0; i < o->nsource; i++)
    if (o->source[i] == QUARK_UPLOAD) return true;
  return false;
}

static bool make_room(ctl_load_t *load) {
  const ctl_load_options_t *o = load->options;
  if (uploads(o) && !make_pool(load)) return false;
  for (uint64_t i = 0; i < o->clients && ctl_load_has_solutions(load); i++) {
    load->client[i].field = malloc(load->field_bytes);
    if (!load->client[i].field) return false;
    if (o->verify && !(load->client[i].other = malloc(load->field_bytes))) return false;
  }
  return true;
}

static void destroy(ctl_load_t *load) {
  for (int i = 0; i < load->count; i++) quark_close(load->client[i].conn);
  for (int i = 0; i < CTL_LOAD_CLIENTS; i++) {
    free(load->client[i].field);
    free(load->client[i].other);
    ctl_load_outcome_fini(&load->client[i].got);
  }
  pthread_cond_destroy(&load->stopped);
  pthread_mutex_destroy(&load->lock);
  free(load->pool);
  free(load);
}

/* The clients block all signals, so the calling thread receives them. */
static int start(ctl_load_t *load) {
  sigset_t all, before;
  int started = 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  load->running = load->count;
  while (started < load->count && pthread_create(&load->client[started].thread, NULL,
                                                 ctl_load_client, &load->client[started]) == 0)
    started++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (started == load->count) return 0;
  ctl_complain("a thread cannot be started for client %d of %d", started + 1, load->count);
  ctl_load_stop(load, true);
  for (int i = 0; i < started; i++) pthread_join(load->client[i].thread, NULL);
  return EXIT_AGAIN;
}

static int connect_clients(ctl_load_t *load, const ctl_common_t *common) {
  const ctl_load_options_t *o = load->options;
  for (uint64_t i = 0; i < o->clients; i++) {
    ctl_client_t *c = &load->client[i];
    char user[64];
    c->load = load;
    c->user = (uint32_t)(i % o->users);
    snprintf(user, sizeof user, "%s-%u", o->user ? o->user : "bench", c->user);
    const int code = ctl_connect_as(common, o->users > 1 ? user : o->user, &c->conn);
    if (code) return code;
    load->count++;
    if (ctl_interrupted()) return EXIT_AGAIN;
  }
  return 0;
}

int ctl_load_begin(const ctl_common_t *common, const ctl_load_options_t *o,
                   const quark_report_t *report, ctl_load_t **out) {
  pthread_condattr_t monotonic;
  ctl_load_t *load = calloc(1, sizeof *load);
  if (!load) {
    ctl_complain("no memory for the load");
    return EXIT_AGAIN;
  }
  load->options = o;
  load->patience = isnan(common->timeout) ? 300 : common->timeout;
  const qk_shape_t shape = ctl_operator_shape(report);
  load->two = qk_shape_vectors(&shape) > 1;
  load->field_bytes = shape.site_reals * (o->dtype == QUARK_F32 ? sizeof(float) : sizeof(double));
  for (int mu = 0; mu < 4; mu++) {
    load->dims[mu] = report->setup.dims[mu];
    load->field_bytes *= load->dims[mu];
  }
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&load->stopped, &monotonic);
  pthread_condattr_destroy(&monotonic);
  pthread_mutex_init(&load->lock, NULL);
  int code = EXIT_AGAIN;
  if (make_room(load))
    code = connect_clients(load, common);
  else
    ctl_complain("no memory for fields of %zu bytes, one for each client", load->field_bytes);
  if (code == 0) {
    load->begun = load->arrival = ctl_seconds();
    load->measured_from = load->begun + o->warmup;
    load->until = o->duration > 0 ? load->measured_from + o->duration : INFINITY;
    code = start(load);
  }
  if (code)
    destroy(load);
  else
    *out = load;
  return code;
}

double ctl_load_measured_from(const ctl_load_t *load) {
  return load->measured_from;
}

uint64_t ctl_load_ended(const ctl_load_t *load) {
  return load->ended;
}

bool ctl_load_done(const ctl_load_t *load) {
  return load->running == 0;
}

void ctl_load_stop(ctl_load_t *load, bool now) {
  pthread_mutex_lock(&load->lock);
  load->stop = true;
  if (now) load->now = true;
  pthread_cond_broadcast(&load->stopped);
  pthread_mutex_unlock(&load->lock);
}

static void join_samples(ctl_samples_t *to, ctl_samples_t *from) {
  for (size_t i = 0; i < from->count; i++)
    if (!ctl_load_add_sample(to, &from->at[i])) return; /* fewer than there were */
}

static void join(ctl_load_outcome_t *to, ctl_load_outcome_t *from) {
  join_samples(&to->rhs, &from->rhs);
  join_samples(&to->requests, &from->requests);
  to->retried += from->retried;
  to->rejected += from->rejected;
  to->abandoned += from->abandoned;
  to->late += from->late;
  to->correlators += from->correlators;
  to->spoilt += from->spoilt;
  to->norms += from->norms;
  to->solves += from->solves;
  to->wrong += from->wrong;
  to->worst_norm = fmax(to->worst_norm, from->worst_norm);
  to->worst_solve = fmax(to->worst_solve, from->worst_solve);
  if (to->lost.code == QUARK_OK) to->lost = from->lost;
}

void ctl_load_wait(ctl_load_t *load, ctl_load_outcome_t *outcome) {
  *outcome = (ctl_load_outcome_t){0};
  for (int i = 0; i < load->count; i++) {
    pthread_join(load->client[i].thread, NULL);
    join(outcome, &load->client[i].got);
  }
  destroy(load);
}

void ctl_load_outcome_fini(ctl_load_outcome_t *outcome) {
  free(outcome->rhs.at);
  free(outcome->requests.at);
  outcome->rhs = outcome->requests = (ctl_samples_t){0};
}
