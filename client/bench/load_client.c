#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "client/bench/load_impl.h"
#include "client/cli/solving.h"

enum {
  LOOK_MS = 200, /* how soon a client sees that it is to stop */
  RETRY_MS = 200 /* if the daemon gives no advice */
};
static const double LATE = 1e-3; /* seconds */

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
static bool take(ctl_client_t *c, ctl_load_request_t *r, double *begun) {
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

bool ctl_load_add_sample(ctl_samples_t *s, const ctl_sample_t *sample) {
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

bool ctl_load_has_solutions(const ctl_load_t *load) {
  return load->options->sink == CTL_SINK_DOWNLOAD;
}

/* The site of the source of a request. */
static void place_source(const ctl_load_t *load, const ctl_load_request_t *r, int32_t at[4]) {
  for (int mu = 0; mu < 4; mu++)
    at[mu] = (int32_t)(ctl_load_draw(r->seed, 0, (uint64_t)mu) % load->dims[mu]);
}

/* Columns of a generated source: flavours, spins and colours in turn, site and noise by the seed.
 */
static void make_columns(const ctl_load_t *load, const ctl_load_request_t *r,
                         quark_column_t *column) {
  const bool noise = r->source == QUARK_Z2 || r->source == QUARK_Z4;
  int32_t at[4];
  place_source(load, r, at);
  for (uint32_t i = 0; i < r->nrhs; i++) {
    column[i] = (quark_column_t){.t = noise ? -1 : at[3],
                                 .spin = noise ? -1 : (int32_t)(i / 3 % 4),
                                 .colour = noise ? -1 : (int32_t)(i % 3),
                                 .seed = ctl_load_draw(r->seed, 1, i)};
    if (load->two && !noise) column[i].flavour = i / CTL_LOAD_COLUMNS % 2 ? -1 : 1;
    if (r->source != QUARK_POINT) continue;
    column[i].x = at[0];
    column[i].y = at[1];
    column[i].z = at[2];
  }
}

static const void *upload_of(const ctl_load_t *load, const ctl_load_request_t *r, uint32_t rhs) {
  const size_t real = load->options->dtype == QUARK_F32 ? sizeof(float) : sizeof(double);
  return (const char *)load->pool + ctl_load_draw(r->seed, 2, rhs) % CTL_LOAD_SHIFTS * 2 * real;
}

typedef enum end { DONE, REJECTED, ABANDONED, LOST } end_t;

static end_t lost(ctl_client_t *c, const quark_error_t *err) {
  c->got.lost = *err;
  return LOST;
}

/* After a refusal: true if the daemon is full; the time that it advises is then over. Else *end
 * says what happened. */
static bool ask_again(ctl_client_t *c, const quark_error_t *err, double give_up, end_t *end) {
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

static end_t submit(ctl_client_t *c, const ctl_load_request_t *r, uint64_t *request) {
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

static end_t upload(ctl_client_t *c, const ctl_load_request_t *r, uint64_t request) {
  quark_error_t err;
  for (uint32_t i = 0; r->source == QUARK_UPLOAD && i < r->nrhs; i++) {
    if (c->load->now) return ABANDONED;
    if (quark_upload(c->conn, request, upload_of(c->load, r, i), c->load->field_bytes, &err))
      return lost(c, &err);
  }
  return DONE;
}

/* The next result of any request. */
static end_t next_result(ctl_client_t *c, quark_result_t *result) {
  quark_error_t err;
  quark_event_t event;
  do {
    if (c->load->now) return ABANDONED;
    if (quark_event_next(c->conn, LOOK_MS, &event, &err) != QUARK_OK) return lost(c, &err);
  } while (event.kind != QUARK_EVENT_RESULT);
  *result = event.result;
  return DONE;
}

/* Downloads the solution of a result, if it has one that is wanted. */
static end_t fetch(ctl_client_t *c, const quark_result_t *result, void *field) {
  quark_error_t err;
  if (ctl_load_has_solutions(c->load) && result->bytes > 0 &&
      quark_download(c->conn, result->request, result->rhs, field, c->load->field_bytes, &err) !=
          QUARK_OK)
    return lost(c, &err);
  if (quark_ack(c->conn, result->request, (int32_t)result->rhs, &err) != QUARK_OK)
    return lost(c, &err);
  return DONE;
}

/* ---- verification ---------------------------------------------------------------------------- */

/* |x|; |x - y| if y is given. */
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

/* The solution must have the norm that its RESULT names. */
static void verify_norm(ctl_client_t *c, const quark_result_t *result, const void *field) {
  const double rounding = c->load->options->dtype == QUARK_F32 ? 1e-6 : 1e-10;
  const double off = fabs(norm(c->load, field, NULL) / result->norm_x - 1);
  c->got.norms++;
  c->got.wrong += !(off <= rounding);
  c->got.worst_norm = fmax(c->got.worst_norm, off);
}

/* Solves the first right-hand side again. The two solutions may differ by the tolerance times the
 * condition number of M, which is not known. A larger difference shows the solution of another
 * system. */
static end_t verify_again(ctl_client_t *c, const ctl_load_request_t *r) {
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

/* A request under way. */
typedef struct flight {
  ctl_load_request_t r;
  uint64_t request;
  ctl_sample_t sample; /* what all its right-hand sides have in common */
  uint32_t ended, failed;
  uint64_t correlator; /* the request of the contraction; 0: not submitted */
  uint64_t bytes;      /* of its result */
  bool first; /* c->field has the solution of the first right-hand side, which is solved again */
} flight_t;

typedef struct flights {
  flight_t at[CTL_LOAD_DEPTH];
  uint64_t count;
} flights_t;

static end_t take_off(ctl_client_t *c, flights_t *flights, const ctl_load_request_t *r,
                      double begun) {
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

static end_t no_sample(ctl_client_t *c) {
  return lost(c, &(quark_error_t){.code = QUARK_NO_MEMORY, .text = "no memory for a sample"});
}

static end_t land(ctl_client_t *c, flights_t *flights, const flight_t *f) {
  const flight_t done = *f;
  ctl_sample_t s = done.sample;
  quark_release(c->conn, done.request, NULL);
  flights->at[f - flights->at] = flights->at[--flights->count];
  s.ended = ctl_seconds();
  if (!ctl_load_add_sample(&c->got.requests, &s)) return no_sample(c);
  return done.first ? verify_again(c, &done.r) : DONE;
}

/* Takes the result of a right-hand side. */
static end_t take_result(ctl_client_t *c, flight_t *f, const quark_result_t *result) {
  void *field = f->first ? c->other : c->field;
  ctl_sample_t s = f->sample;
  const end_t end = fetch(c, result, field);
  if (end != DONE) return end;
  s.ended = ctl_seconds();
  s.queue = result->queue_seconds;
  s.solver = result->seconds;
  s.iterations = result->iterations;
  s.status = result->status;
  if (!ctl_load_add_sample(&c->got.rhs, &s)) return no_sample(c);
  c->load->ended++;
  f->ended++;
  f->failed += result->status != QUARK_OK;
  if (c->load->options->verify && result->bytes > 0 && result->status == QUARK_OK)
    verify_norm(c, result, field);
  f->first = f->first || (f->r.again && result->rhs == 0 && result->status == QUARK_OK);
  return DONE;
}

/* Asks for the correlator. The daemon keeps the propagator until the correlator is made. */
static end_t contract(ctl_client_t *c, flight_t *f) {
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

static end_t take_correlator(ctl_client_t *c, const flight_t *f, const quark_result_t *result) {
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

/* All right-hand sides have ended. True if the correlator is still to come. */
static bool awaits_correlator(ctl_client_t *c, flight_t *f, end_t *end) {
  if (c->load->options->sink != CTL_SINK_CORRELATOR || f->failed > 0) return false;
  *end = contract(c, f);
  if (*end == REJECTED) *end = DONE;
  return f->correlator > 0;
}

/* The next result of those under way. */
static end_t collect(ctl_client_t *c, flights_t *flights) {
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

/* Takes the next requests, as many as may be under way. */
static end_t fill(ctl_client_t *c, flights_t *flights, bool *more) {
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

void *ctl_load_client(void *arg) {
  ctl_client_t *c = arg;
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
