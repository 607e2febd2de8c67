/*
 * load_impl.h: the load generator inside: shared by load.c, load_request.c and load_client.c.
 *
 * load.c makes the load and its threads, load_client.c is the work of one thread, load_request.c
 * makes the requests. Functions are called from any thread.
 */
#ifndef QUARKCTL_LOAD_IMPL_H
#define QUARKCTL_LOAD_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "client/bench/load.h"

enum { CTL_LOAD_SHIFTS = 4096 /* different uploads, cut from one field */ };

typedef struct ctl_client {
  ctl_load_t *load;
  quark_connection_t *conn;
  pthread_t thread;
  uint32_t user;
  void *field, *other; /* solutions; other: of a request that is solved twice */
  ctl_load_outcome_t got;
} ctl_client_t;

struct ctl_load {
  const ctl_load_options_t *options;
  uint32_t dims[4];
  bool two;        /* right-hand sides have two flavours */
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
  ctl_client_t client[CTL_LOAD_CLIENTS];
};

/* 64 random bits: number `number` of item `index`. Pure. */
uint64_t ctl_load_draw(uint64_t seed, uint64_t index, uint64_t number);
/* The bits as a number in (0, 1]. Pure. */
double ctl_load_fraction(uint64_t bits);

/* The thread of a ctl_client_t. */
void *ctl_load_client(void *client);
/* True if solutions are downloaded. */
bool ctl_load_has_solutions(const ctl_load_t *load);
/* False: no memory. */
bool ctl_load_add_sample(ctl_samples_t *samples, const ctl_sample_t *sample);

#endif
