/*
 * load.h: a load generator for a daemon: requests made from a seed, clients that send them, and the
 * samples that are taken of each.
 *
 * Requests  A request is a function of the options and of its number. The same seed makes the same
 *           requests, whoever sends them and when. In a closed loop each client has `depth`
 *           requests under way; when one is done, it waits its thinking time and takes the next
 *           one. In an open loop requests arrive at random times (Poisson), whatever the daemon
 *           does; the first free client takes the next one.
 * Time      That of ctl_seconds(). The latency of a request begins when it should be sent. In an
 *           open loop that is its arrival, even if no client was free or the daemon refused it.
 * Threads   One for each client, which has a connection and a session of its own. Samples belong to
 *           their client until ctl_load_wait has returned.
 */
#ifndef QUARKCTL_LOAD_H
#define QUARKCTL_LOAD_H

#include "client/cli/ctl.h"

enum { CTL_LOAD_MIX = 16, CTL_LOAD_CLIENTS = 512, CTL_LOAD_DEPTH = 64, CTL_LOAD_COLUMNS = 12 };

/* What becomes of solutions. CORRELATOR: a request is a propagator, which the daemon keeps and
 * makes a pion correlator of. Its download is part of the request. */
typedef enum ctl_sink { CTL_SINK_DOWNLOAD, CTL_SINK_NONE, CTL_SINK_CORRELATOR } ctl_sink_t;

typedef struct ctl_load_options {
  uint64_t clients, users, seed;
  uint64_t depth;    /* requests under way of a client; > 1: without rate, think and verify */
  uint64_t requests; /* to be measured; 0: no limit */
  double duration;   /* of the measurement, seconds; 0: no limit */
  double warmup;     /* seconds before the measurement */
  double rate;       /* requests a second; 0: closed loop */
  double think;      /* mean thinking time, seconds */
  bool think_fixed;  /* every time the same; else exponentially distributed */
  uint32_t rhs_min, rhs_max;
  double tol[CTL_LOAD_MIX];
  quark_source_t source[CTL_LOAD_MIX];
  int ntol, nsource;
  quark_dtype_t dtype;
  int priority;
  uint64_t max_iter;
  ctl_sink_t sink; /* CORRELATOR: points or walls in requests of CTL_LOAD_COLUMNS, without verify */
  bool verify;
  const char *user; /* several users: NAME of NAME-0, NAME-1, ...; NULL: that of this process */
} ctl_load_options_t;

/* One request of the load. */
typedef struct ctl_load_request {
  uint64_t index, seed; /* seed: of its sources */
  double gap;           /* open loop: seconds since the arrival of the one before */
  double think;         /* closed loop: seconds that its client waits first */
  uint32_t nrhs;
  double tol;
  quark_source_t source;
  bool again; /* if solutions are verified: its first right-hand side is solved twice */
} ctl_load_request_t;

/* The request of that number. Pure. */
ctl_load_request_t ctl_load_request(const ctl_load_options_t *options, uint64_t index);

/* What became of a right-hand side or of a request. */
typedef struct ctl_sample {
  double begun, ended;  /* by the clock; ended: with its solution */
  double queue, solver; /* seconds; NaN: not known */
  uint64_t iterations;
  uint32_t user;
  quark_code_t status; /* of a request that was done: QUARK_OK */
  bool measured;       /* it began after the warm-up */
} ctl_sample_t;

typedef struct ctl_samples {
  ctl_sample_t *at;
  size_t count, room;
} ctl_samples_t;

typedef struct ctl_load_outcome {
  ctl_samples_t rhs, requests;
  uint64_t retried, rejected, abandoned; /* submissions; requests; requests */
  uint64_t late;                         /* requests that found no client free when they arrived */
  uint64_t correlators, spoilt;          /* that came; that the daemon could not make */
  uint64_t norms, solves, wrong;  /* norms and solves verified; of both those that were wrong */
  double worst_norm, worst_solve; /* relative differences */
  quark_error_t lost;             /* code QUARK_OK: no client lost its daemon */
} ctl_load_outcome_t;

typedef struct ctl_load ctl_load_t;

/* Connects all clients and begins. Returns 0, or an exit code after it has printed the reason. */
int ctl_load_begin(const ctl_common_t *common, const ctl_load_options_t *options,
                   const quark_report_t *report, ctl_load_t **load);
/* The time at which the measurement begins. */
double ctl_load_measured_from(const ctl_load_t *load);
/* Right-hand sides that have ended so far. From any thread. */
uint64_t ctl_load_ended(const ctl_load_t *load);
/* True if all clients are done. */
bool ctl_load_done(const ctl_load_t *load);
/* Sends no new requests. now: those under way are given up. */
void ctl_load_stop(ctl_load_t *load, bool now);
/* Waits for the clients, collects their samples and frees the load. */
void ctl_load_wait(ctl_load_t *load, ctl_load_outcome_t *outcome);
void ctl_load_outcome_fini(ctl_load_outcome_t *outcome);

#endif
