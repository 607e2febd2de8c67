/*
 * world.h: what is around the front in the fuzzer of whole sessions. The front's own code runs as it is; in place of libzmq's sockets,
 * libuv's loop, timers and signals, the clock, processes, shared memory and the log stands this, of one thread and without
 * system calls, so that the same bytes do the same again.
 *
 * qk_server_run calls play() where it would serve, and returns when play() has.
 */
#ifndef QK_FUZZ_WORLD_H
#define QK_FUZZ_WORLD_H

#include "daemon/front/server.h"

typedef enum world_channel { WORLD_CONTROL, WORLD_DATA, WORLD_ENGINE } world_channel_t;

/* ---- of the target ---- */
void play(void);
/* What the front sends; 0, or the errno with which that fails: EAGAIN (the peer does not read), EHOSTUNREACH (it has gone). */
int takes(world_channel_t channel, int peer);
void hears(world_channel_t channel, int peer, const uint8_t *data, size_t bytes);

/* ---- of the world ---- */
void world_begin(void);
/* A message for the front, of so many parts, from a peer 0 .. 255; lost where nobody listens. */
void world_say(world_channel_t channel, int peer, const void *data, size_t bytes, int parts);
bool world_readable(const void *socket);
/* One turn of the loop. */
void world_turn(void);
/* The clock goes on, and timers that are due run. */
void world_pass(double seconds);
void world_signal(int sig);
bool world_stopped(void); /* the front has left its loop */
/* Whether there is a process; whether it has been told to end by a signal. */
bool world_engine_lives(void);
bool world_engine_killed(void);
void world_engine_exits(void);
/* Bytes of shared memory that are there; from now on, whether there is room for more. */
int64_t world_fields(void);
void world_fill_memory(bool full);

#endif
