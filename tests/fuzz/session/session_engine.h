/*
 * session_engine.h: pretend engines for the fuzzer of whole sessions. They keep what was
 * given to them, and say what they are told to, right or wrong. "The n-th" is of those
 * that speak, counted round.
 */
#ifndef QK_FUZZ_SESSION_ENGINE_H
#define QK_FUZZ_SESSION_ENGINE_H

#include "daemon/front/server.h"

/* The bytes that a session is made of; zeros behind their end. */
typedef struct tape {
  const uint8_t *at, *end;
} tape_t;

static inline uint8_t tape_byte(tape_t *tape) {
  return tape->at < tape->end ? *tape->at++ : 0;
}

void engines_begin(void);
/* A process with nothing said. */
void engine_starts(int engine);
bool engine_is_ready(int engine);
void engine_hears(int engine, const uint8_t *data, size_t bytes);
/* The n-th says one message, or ends. */
void engine_acts(int n, tape_t *tape);
/* Any bytes. */
void engine_says(int n, const void *data, size_t bytes, int parts);
/* A heartbeat of all. */
void engines_beat(void);
/* All end, or those that were told to by a signal. */
void engines_exit(bool killed);
/* All that can go on do so without this front, which is about to end. */
void engines_outlive(void);
/* Each comes one step nearer to READY, or finishes something that it has; false:
 * nothing is left to do. */
bool engines_help(const qk_server_t *server);
/* All that is in slots is solved. */
void engines_finish(void);
/* Front and engines agree on what is in slots. */
void engines_check(const qk_server_t *server);

#endif
