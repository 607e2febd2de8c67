/*
 * fake_daemon_impl.h: the inside of the daemon of fake_daemon.h, for fake_daemon.c and
 * fake_local.c. All of it belongs to the daemon's thread.
 */
#ifndef QK_TESTS_FAKE_DAEMON_IMPL_H
#define QK_TESTS_FAKE_DAEMON_IMPL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/un.h>

#include "proto/limits.h"
#include "tests/support/fake_daemon.h"

enum { ID_MAX = 64 };

typedef struct peer {
  uint8_t id[ID_MAX];
  size_t bytes; /* 0: nobody */
} peer_t;

struct fake_state {
  fake_daemon_t *d;
  pthread_t thread;
  atomic_int stop;
  char data_endpoint[96];
  void *zmq, *control, *data;
  peer_t control_peer, data_peer;
  int session;
  uint64_t field_bytes;
  /* the request; number 0: none */
  uint64_t number, arrived, credit, upload_total;
  uint32_t nrhs, attempt; /* of all solutions */
  uint8_t *stream;
  uint64_t granted[8], sent[8];
  int ended[8], upload_chunks, download_chunks;
  int64_t repeat_at; /* ms; RESULTs are due again; 0: no */
  struct sockaddr_un local_address;
  int local_listen, local; /* -1: none */
};
typedef struct fake_state state_t;

extern const uint8_t fake_token[QK_CLIENT_ID];

/* ---- fake_daemon.c ---- */

void fake_end_rhs(state_t *s, uint32_t rhs, uint32_t status);
/* Moves the credit on behind what has arrived; tells the client. */
void fake_give_credit(state_t *s);
void fake_reply_credit(state_t *s);
/* Whether it takes runs of zeros, and sparse puts. */
bool fake_takes_zeros(const state_t *s);
uint64_t fake_sum(const uint8_t *field, size_t bytes, bool blocks);

/* ---- fake_local.c: the local socket ---- */

void fake_local_open(state_t *s);
void fake_local_close(state_t *s);
/* Closes the connection, if there is one. */
void fake_local_drop(state_t *s);
/* Takes a connection, or a message, if one waits. */
void fake_local_read(state_t *s);

#endif
