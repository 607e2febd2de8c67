#include "client/bench/load.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/solving.h"

enum {
  LOOK_MS = 200,   /* how soon a client sees that it is to stop */
  RETRY_MS = 200,  /* where the daemon gives no advice */
  SHIFTS = 4096,   /* different uploads, cut from one field */
  AGAIN_EVERY = 16 /* requests of which one is solved twice */
};
static const double LATE = 1e-3; /* seconds */

/* ---- the requests ---------------------------------------------------------------------------- */

/* Draw number `draw` of item `index`, by splitmix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t draw(uint64_t seed, uint64_t index, uint64_t number) {
  uint64_t z =
      seed * 0xd1342543de82ef95u + index * 0x9e3779b97f4a7c15u + number * 0xa0761d6478bd642fu;
  for (int i = 0; i < 2; i++) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
  }
  return z;
}

/* In (0, 1]. */
static double fraction(uint64_t bits) {
  return (double)((bits >> 11) + 1) * 0x1p-53;
}

ctl_load_request_t ctl_load_request(const ctl_load_options_t *o, uint64_t index) {
  enum { GAP, THINK, NRHS, TOL, SOURCE, SEED, AGAIN };
  ctl_load_request_t r = {.index = index, .seed = draw(o->seed, index, SEED)};
  const double wait = -log(fraction(draw(o->seed, index, THINK)));
  if (o->rate > 0) r.gap = -log(fraction(draw(o->seed, index, GAP))) / o->rate;
  if (o->think > 0) r.think = o->think_fixed ? o->think : o->think * wait;
  r.nrhs = o->rhs_min + (uint32_t)(draw(o->seed, index, NRHS) % (o->rhs_max - o->rhs_min + 1));
  r.tol = o->tol[draw(o->seed, index, TOL) % (uint64_t)o->ntol];
  r.source = o->source[draw(o->seed, index, SOURCE) % (uint64_t)o->nsource];
  r.again = o->verify && r.source == QUARK_UPLOAD && draw(o->seed, index, AGAIN) % AGAIN_EVERY == 0;
  return r;
}

/* ---- the load -------------------------------------------------------------------------------- */

typedef struct client {
  ctl_load_t *load;
  quark_connection_t *conn;
  pthread_t thread;
  uint32_t user;
  void *field, *other; /* solutions; other: of a request that is solved twice */
  ctl_load_outcome_t got;
} client_t;

struct ctl_load {
  const ctl_load_options_t *options;
  uint32_t dims[4];
  double patience; /* seconds with a full daemon */
  size_t field_bytes;
  void *pool; /* uploads begin at different places of it */
  double begun, measured_from, until;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t stopped;
  uint64_t next, measured;
  double arrival; /* of the last request that was taken */
  bool stop;
  atomic_bool now;
  atomic_uint_fast64_t ended;
  atomic_int running;
  int count; /* clients that have a connection */
  client_t client[CTL_LOAD_CLIENTS];
};

/* Sleeps until then. False: the load is to stop. */
static bool sleep_until(ctl_load_t *load, double then) {
  struct timespec t = {.tv_sec = (time_t)then};
  t.tv_nsec = (long)((then - (double)t.tv_sec) * 1e9);
  pthread_mutex_lock(&load->lock);
  while (!load->stop && pthread_cond_timedwait(&load->stopped, &load->lock, &t) != ETIMEDOUT)
    continue;
  const bool goes_on = !load->stop;
  pthread_mutex_unlock(&load->lock);
  return goes_on;
}

/* The number of the next request and, in an open loop, its arrival. False: there is none. */
static bool take(client_t *c, ctl_load_request_t *r, double *begun) {
  ctl_load_t *load = c->load;
  const ctl_load_options_t *o = load->options;
  pthread_mutex_lock(&load->lock);
  *r = ctl_load_request(o, load->next);
  *begun = ctl_seconds() + (o->rate > 0 ? 0 : r->think);
  if (o->rate > 0) {
    *begun = load->arrival + r->gap;
    c->got.late += ctl_seconds() > *begun + LATE;
  }
  const bool measured = *begun >= load->measured_from;
  bool there = !load->stop && *begun < load->until;
  if (measured && o->requests > 0) there = there && load->measured < o->requests;
  if (there) {
    load->next++;
    load->arrival = *begun;
    load->measured += measured;
  }
  pthread_mutex_unlock(&load->lock);
  return there;
}

static bool add_sample(ctl_samples_t *s, const ctl_sample_t *sample) {
  if (s->count == s->room) {
    const size_t room = s->room ? 2 * s->room : 256;
    ctl_sample_t *at = realloc(s->at, room * sizeof *at);
    if (!at) return false;
    s->at = at;
    s->room = room;
  }
  s->at[s->count++] = *sample;
  return true;
}

/* ---- one request ----------------------------------------------------------------------------- */

static bool has_solutions(const ctl_load_t *load) {
  return load->options->sink == CTL_SINK_DOWNLOAD;
}

/* Where the source of a request stands. */
static void place_source(const ctl_load_t *load, const ctl_load_request_t *r, int32_t at[4]) {
  for (int mu = 0; mu < 4; mu++)
    at[mu] = (int32_t)(draw(r->seed, 0, (uint64_t)mu) % load->dims[mu]);
}

/* Columns of a generated source: spin and colour by turns, places and noise by the seed. */
static void make_columns(const ctl_load_t *load, const ctl_load_request_t *r,
                         quark_column_t *column) {
  const bool noise = r->source == QUARK_Z2 || r->source == QUARK_Z4;
  int32_t at[4];
  place_source(load, r, at);
  for (uint32_t i = 0; i < r->nrhs; i++) {
    column[i] = (quark_column_t){.t = noise ? -1 : at[3],
                                 .spin = noise ? -1 : (int32_t)(i / 3 % 4),
                                 .colour = noise ? -1 : (int32_t)(i % 3),
                                 .seed = draw(r->seed, 1, i)};
    if (r->source != QUARK_POINT) continue;
    column[i].x = at[0];
    column[i].y = at[1];
    column[i].z = at[2];
  }
}

static const void *upload_of(const ctl_load_t *load, const ctl_load_request_t *r, uint32_t rhs) {
  const size_t real = load->options->dtype == QUARK_F32 ? sizeof(float) : sizeof(double);
  return (const char *)load->pool + draw(r->seed, 2, rhs) % SHIFTS * 2 * real;
}

typedef enum end { DONE, REJECTED, ABANDONED, LOST } end_t;

static end_t lost(client_t *c, const quark_error_t *err) {
  c->got.lost = *err;
  return LOST;
}

/* After a refusal: true if the daemon is full; the time that it advises is then over. Else *end
 * says what happened. */
static bool ask_again(client_t *c, const quark_error_t *err, double give_up, end_t *end) {
  const bool leaves = err->code == QUARK_TIMEOUT || err->code == QUARK_SHUTTING_DOWN ||
                      err->code == QUARK_ENGINE_LOST;
  const double pause = 1e-3 * (err->retry_after_ms ? err->retry_after_ms : RETRY_MS);
  if (leaves)
    *end = lost(c, err);
  else if (!err->retryable || ctl_seconds() + pause > give_up)
    *end = REJECTED;
  else if (!sleep_until(c->load, ctl_seconds() + pause))
    *end = ABANDONED;
  else
    c->got.retried++;
  return *end == DONE;
}

static end_t submit(client_t *c, const ctl_load_request_t *r, uint64_t *request) {
  const ctl_load_options_t *o = c->load->options;
  quark_column_t *column = calloc(r->nrhs, sizeof *column);
  quark_params_t p;
  quark_error_t err = {.code = QUARK_NO_MEMORY, .text = "no memory for a request"};
  if (!column) return lost(c, &err);
  make_columns(c->load, r, column);
  quark_params_init(&p);
  p.nrhs = r->nrhs;
  p.dtype = o->dtype;
  p.tol = r->tol;
  p.max_iter = o->max_iter;
  p.priority = o->priority;
  p.source = r->source;
  p.column = r->source == QUARK_UPLOAD ? NULL : column;
  p.discard = o->sink == CTL_SINK_NONE;
  p.keep = o->sink == CTL_SINK_CORRELATOR;
  const double give_up = ctl_seconds() + c->load->patience;
  end_t end = DONE;
  while (quark_submit(c->conn, &p, request, NULL, &err) != QUARK_OK &&
         ask_again(c, &err, give_up, &end))
    continue;
  free(column);
  return end;
}

static end_t upload(client_t *c, const ctl_load_request_t *r, uint64_t request) {
  quark_error_t err;
  for (uint32_t i = 0; r->source == QUARK_UPLOAD && i < r->nrhs; i++) {
    if (c->load->now) return ABANDONED;
    if (quark_upload(c->conn, request, upload_of(c->load, r, i), c->load->field_bytes, &err))
      return lost(c, &err);
  }
  return DONE;
}

/* The next result of any request. */
static end_t next_result(client_t *c, quark_result_t *result) {
  quark_error_t err;
  quark_event_t event;
  do {
    if (c->load->now) return ABANDONED;
    if (quark_event_next(c->conn, LOOK_MS, &event, &err) != QUARK_OK) return lost(c, &err);
  } while (event.kind != QUARK_EVENT_RESULT);
  *result = event.result;
  return DONE;
}

/* The solution of a result, where it has one that is wanted. */
static end_t fetch(client_t *c, const quark_result_t *result, void *field) {
  quark_error_t err;
  if (has_solutions(c->load) && result->bytes > 0 &&
      quark_download(c->conn, result->request, result->rhs, field, c->load->field_bytes, &err) !=
          QUARK_OK)
    return lost(c, &err);
  if (quark_ack(c->conn, result->request, (int32_t)result->rhs, &err) != QUARK_OK)
    return lost(c, &err);
  return DONE;
}

/* ---- verification ---------------------------------------------------------------------------- */

/* |x|, and |x - y| where y is given. */
static double norm(const ctl_load_t *load, const void *x, const void *y) {
  const bool single = load->options->dtype == QUARK_F32;
  const size_t n = load->field_bytes / (single ? sizeof(float) : sizeof(double));
  const float *xf = x, *yf = y;
  const double *xd = x, *yd = y;
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    const double v = single ? xf[i] - (yf ? yf[i] : 0) : xd[i] - (yd ? yd[i] : 0);
    sum += v * v;
  }
  return sqrt(sum);
}

/* The solution that came has the norm that its RESULT names. */
static void verify_norm(client_t *c, const quark_result_t *result, const void *field) {
  const double rounding = c->load->options->dtype == QUARK_F32 ? 1e-6 : 1e-10;
  const double off = fabs(norm(c->load, field, NULL) / result->norm_x - 1);
  c->got.norms++;
  c->got.wrong += !(off <= rounding);
  c->got.worst_norm = fmax(c->got.worst_norm, off);
}

/* Solves the first right-hand side again. The two solutions may differ by the tolerance times the
 * condition number of M, which is not known. A larger difference shows the solution of another
 * system. */
static end_t verify_again(client_t *c, const ctl_load_request_t *r) {
  static const double condition = 1e4;
  ctl_load_request_t one = *r;
  one.nrhs = 1;
  uint64_t request;
  quark_result_t result;
  end_t end = submit(c, &one, &request);
  if (end != DONE) return end == REJECTED ? DONE : end;
  end = upload(c, &one, request);
  if (end == DONE) end = next_result(c, &result);
  if (end == DONE) end = fetch(c, &result, c->other);
  quark_release(c->conn, request, NULL);
  if (end != DONE || result.status != QUARK_OK) return end;
  const double off = norm(c->load, c->field, c->other) / norm(c->load, c->field, NULL);
  c->got.solves++;
  c->got.wrong += !(off <= fmin(0.1, fmax(1e-5, condition * r->tol)));
  c->got.worst_solve = fmax(c->got.worst_solve, off);
  return end;
}

/* ---- a client -------------------------------------------------------------------------------- */

/* A request that is under way. */
typedef struct flight {
  ctl_load_request_t r;
  uint64_t request;
  ctl_sample_t sample; /* of its right-hand sides, what is the same for all */
  uint32_t ended, failed;
  uint64_t correlator,
      bytes;  /* the contraction's request, 0: it has not been asked for; its result */
  bool first; /* c->field has the solution of the first right-hand side, which is solved again */
} flight_t;

typedef struct flights {
  flight_t at[CTL_LOAD_DEPTH];
  uint64_t count;
} flights_t;

static end_t take_off(client_t *c, flights_t *flights, const ctl_load_request_t *r, double begun) {
  flight_t *f = &flights->at[flights->count];
  *f = (flight_t){.r = *r,
                  .sample = {.begun = begun,
                             .queue = NAN,
                             .solver = NAN,
                             .user = c->user,
                             .measured = begun >= c->load->measured_from}};
  const end_t end = submit(c, r, &f->request);
  if (end != DONE) return end;
  flights->count++;
  return upload(c, r, f->request);
}

static end_t no_sample(client_t *c) {
  return lost(c, &(quark_error_t){.code = QUARK_NO_MEMORY, .text = "no memory for a sample"});
}

static end_t land(client_t *c, flights_t *flights, const flight_t *f) {
  const flight_t done = *f;
  ctl_sample_t s = done.sample;
  quark_release(c->conn, done.request, NULL);
  flights->at[f - flights->at] = flights->at[--flights->count];
  s.ended = ctl_seconds();
  if (!add_sample(&c->got.requests, &s)) return no_sample(c);
  return done.first ? verify_again(c, &done.r) : DONE;
}

/* Of a right-hand side that has ended. */
static end_t take_result(client_t *c, flight_t *f, const quark_result_t *result) {
  void *field = f->first ? c->other : c->field;
  ctl_sample_t s = f->sample;
  const end_t end = fetch(c, result, field);
  if (end != DONE) return end;
  s.ended = ctl_seconds();
  s.queue = result->queue_seconds;
  s.solver = result->seconds;
  s.iterations = result->iterations;
  s.status = result->status;
  if (!add_sample(&c->got.rhs, &s)) return no_sample(c);
  c->load->ended++;
  f->ended++;
  f->failed += result->status != QUARK_OK;
  if (c->load->options->verify && result->bytes > 0 && result->status == QUARK_OK)
    verify_norm(c, result, field);
  f->first = f->first || (f->r.again && result->rhs == 0 && result->status == QUARK_OK);
  return DONE;
}

/* Asks for the correlator; the propagator stays with the daemon until that is made. */
static end_t contract(client_t *c, flight_t *f) {
  static const quark_channel_t pion = {.kind = QUARK_MESON, .sink = 15, .source = 15};
  quark_contraction_t k;
  quark_error_t err;
  end_t end = DONE;
  quark_contraction_init(&k);
  k.request_a = f->request;
  k.nchannel = 1;
  k.channel = &pion;
  k.priority = c->load->options->priority;
  place_source(c->load, &f->r, k.origin);
  const double give_up = ctl_seconds() + c->load->patience;
  while (quark_contract(c->conn, &k, &f->correlator, &f->bytes, &err) != QUARK_OK &&
         ask_again(c, &err, give_up, &end))
    continue;
  if (end == REJECTED) c->got.spoilt++;
  quark_release(c->conn, f->request, NULL);
  return end;
}

static end_t take_correlator(client_t *c, const flight_t *f, const quark_result_t *result) {
  quark_error_t err = {.code = QUARK_NO_MEMORY, .text = "no memory for a correlator"};
  void *numbers = malloc(f->bytes);
  quark_code_t code = numbers ? QUARK_OK : err.code;
  if (numbers && result->status == QUARK_OK)
    code = quark_download(c->conn, f->correlator, 0, numbers, f->bytes, &err);
  free(numbers);
  if (code != QUARK_OK) return lost(c, &err);
  c->got.correlators += result->status == QUARK_OK;
  c->got.spoilt += result->status != QUARK_OK;
  quark_release(c->conn, f->correlator, NULL);
  return DONE;
}

/* All right-hand sides have ended: true where the correlator is to come. */
static bool awaits_correlator(client_t *c, flight_t *f, end_t *end) {
  if (c->load->options->sink != CTL_SINK_CORRELATOR || f->failed > 0) return false;
  *end = contract(c, f);
  if (*end == REJECTED) *end = DONE;
  return f->correlator > 0;
}

/* The next result of those under way. */
static end_t collect(client_t *c, flights_t *flights) {
  quark_result_t result;
  uint64_t i = 0;
  end_t end = next_result(c, &result);
  if (end != DONE) return end;
  while (i < flights->count && flights->at[i].request != result.request &&
         flights->at[i].correlator != result.request)
    i++;
  if (i == flights->count) return DONE; /* of a request that was given up */
  flight_t *f = &flights->at[i];
  if (f->correlator == result.request) {
    end = take_correlator(c, f, &result);
    return end == DONE ? land(c, flights, f) : end;
  }
  end = take_result(c, f, &result);
  if (end != DONE || f->ended < f->r.nrhs || awaits_correlator(c, f, &end)) return end;
  return end == DONE ? land(c, flights, f) : end;
}

/* Takes the next requests as far as they may be under way. */
static end_t fill(client_t *c, flights_t *flights, bool *more) {
  while (*more && flights->count < c->load->options->depth) {
    ctl_load_request_t r;
    double begun;
    *more = take(c, &r, &begun) && (begun <= ctl_seconds() || sleep_until(c->load, begun));
    if (!*more) return DONE;
    const uint64_t before = flights->count;
    const end_t end = take_off(c, flights, &r, begun);
    c->got.rejected += end == REJECTED;
    c->got.abandoned += end != REJECTED && flights->count == before;
    if (end == LOST || c->load->now) return end;
  }
  return DONE;
}

static void *run(void *arg) {
  client_t *c = arg;
  flights_t flights = {.count = 0};
  bool more = true;
  end_t end = DONE;
  while (end == DONE) {
    end = fill(c, &flights, &more);
    if (end == DONE && flights.count == 0) break;
    if (end == DONE) end = collect(c, &flights);
  }
  for (uint64_t i = 0; i < flights.count; i++) {
    quark_release(c->conn, flights.at[i].request, NULL);
    if (flights.at[i].correlator) quark_release(c->conn, flights.at[i].correlator, NULL);
  }
  c->got.abandoned += flights.count;
  c->load->running--;
  return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Uploads: random numbers in [-1, 1). */
static bool make_pool(ctl_load_t *load) {
  const bool single = load->options->dtype == QUARK_F32;
  const size_t n = load->field_bytes / (single ? sizeof(float) : sizeof(double)) + 2 * SHIFTS;
  load->pool = malloc(n * (single ? sizeof(float) : sizeof(double)));
  if (!load->pool) return false;
  for (size_t i = 0; i < n; i++) {
    const double x = 2 * fraction(draw(load->options->seed, i, 64)) - 1;
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
  for (uint64_t i = 0; i < o->clients && has_solutions(load); i++) {
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

/* Signals stay with the thread that looks for them. */
static int start(ctl_load_t *load) {
  sigset_t all, before;
  int started = 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  load->running = load->count;
  while (started < load->count &&
         pthread_create(&load->client[started].thread, NULL, run, &load->client[started]) == 0)
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
    client_t *c = &load->client[i];
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
  load->field_bytes = 24 * (o->dtype == QUARK_F32 ? sizeof(float) : sizeof(double));
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
    if (!add_sample(to, &from->at[i])) return; /* fewer than there were */
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
