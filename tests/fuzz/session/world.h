/*
 * world.h: what is around the front in the fuzzer of whole sessions. The front's own code runs as
 * it is; in place of libzmq's sockets, libuv's loop, threads, timers and signals, the clock,
 * processes, shared memory and the log stands this, of one thread, so that the same bytes do the
 * same again.
 *
 * qk_server_run calls play() where it would serve, and returns when play() has. It may be called
 * again: another front in the same world, which finds what the one before has left.
 */
#ifndef QK_FUZZ_WORLD_H
#define QK_FUZZ_WORLD_H

#include "daemon/front/server.h"

typedef enum world_channel { WORLD_CONTROL, WORLD_DATA, WORLD_ENGINE } world_channel_t;

/* ---- of the target ---- */
void play(void);
/* What the front sends; 0, or the errno with which that fails: EAGAIN (the peer does not read),
 * EHOSTUNREACH (it has gone). The peer of WORLD_ENGINE is the number of an engine. */
int takes(world_channel_t channel, int peer);
void hears(world_channel_t channel, int peer, const uint8_t *data, size_t bytes);
/* The front has started the process of an engine. */
void starts(int engine);

/* ---- of the world ---- */
void world_begin(void);
double world_now(void);
/* A message for the front, of so many parts, from a peer 0 .. 255; lost where nobody listens. */
void world_say(world_channel_t channel, int peer, const void *data, size_t bytes, int parts);
/* By which the peer speaks; from now on by another one with the same routing id. */
uint64_t world_connection(world_channel_t channel, int peer);
void world_reconnect(world_channel_t channel, int peer);
bool world_readable(const void *socket);
bool world_waiting(void);       /* a message on WORLD_CONTROL */
bool world_unheard(int engine); /* something that it has said */
/* Sockets are read; one turn of the loop, which begins with that. */
void world_receive(void);
void world_turn(void);
/* The clock goes on, and timers that are due run. */
void world_pass(double seconds);
void world_signal(int sig);
bool world_stopped(void); /* the front has left its loop */

/* ---- engines: world_process.c ---- */
enum { WORLD_ENGINES = QK_SETUPS_MAX };
void world_engines_begin(void);
/* The number of the engine that has this endpoint, or gets it; it is that engine's until its
 * process and its socket have gone. */
int world_engine_number(const char *endpoint);
void world_engine_hang_up(int engine);
/* Whether there is a process; whether it has been told to end by a signal. */
bool world_engine_lives(int engine);
bool world_engine_killed(int engine);
void world_engine_exits(int engine);
/* It goes on when the front ends, which is not told of that. */
void world_engine_outlives(int engine);
/* The front has its own pid; engines of the one before that it has not taken over have left. */
void world_front_begins(void);

/* ---- shared memory, disk: world_disk.c ---- */
void world_disk_begin(void);
/* The folder for the state, without files. */
const char *world_disk_folder(void);
/* Threads do what they were given, unless the disk is slow. */
void world_disk_turn(void);
/* At the end of a front: what threads have not done they never do. */
void world_disk_settle(void);
bool world_disk_busy(void);
void world_disk_slow(bool slow);
void world_disk_broken(bool broken);
/* Shared memory that fronts have left goes, as with the machine. */
void world_forget_memory(void);
/* Bytes of shared memory that a front has; from now on, whether there is room for more. */
int64_t world_fields(void);
void world_fill_memory(bool full);
/* There is room, and the disk can be read and written; false: it was so. */
bool world_mend(void);
/* Writes into the object of that name, where there is one, what no other has. */
void world_stamp(const char *name);

#endif
