/*
 * session_engine.h: a pretend engine for the fuzzer of whole sessions. It keeps what was given to it, and says what it is told to,
 * right or wrong.
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

void engine_begin(void);
void engine_hears(const uint8_t *data, size_t bytes);
/* One message, or an end of the process. */
void engine_acts(tape_t *tape);
/* Any bytes. */
void engine_says(const void *data, size_t bytes, int parts);
void engine_heartbeat(void);
/* Brings what there is to READY, or finishes what it has; false: nothing is left to do. */
bool engine_helps(const qk_server_t *server);
/* Front and engine agree on what is in slots. */
void engine_check(const qk_server_t *server);

#endif
