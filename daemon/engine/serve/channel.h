/*
 * channel.h: what rank 0 receives and sends: messages of the front over a ZeroMQ DEALER, and
 * SIGTERM.
 *
 * Used by one thread. The signal is taken through a descriptor, so that it wakes a waiting rank 0
 * and nothing else: qk_channel_block_signals must be called before any thread is started.
 */
#ifndef QK_ENGINE_CHANNEL_H
#define QK_ENGINE_CHANNEL_H

#include <stdbool.h>

#include "daemon/base/err.h"
#include "proto/control.h"

typedef struct qk_channel qk_channel_t;

/* SIGTERM is left to qk_channel_terminated; SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 are ignored: they
 * come to all processes of a terminal or of a batch job, and it is the front that decides what they
 * mean. */
void qk_channel_block_signals(void);

/* Connects. silence_ms: how long the front may say nothing, or take no message. grace_ms: how long
 * there may be no front at the other end of the connection, where another may come (0: none will,
 * and silence is all that counts). What is sent meanwhile reaches nobody. Errors: QK_BAD_ARGUMENT
 * for an endpoint that is none, QK_IO_ERROR, QK_NO_MEMORY. */
qk_status_t qk_channel_open(const char *endpoint, int silence_ms, int grace_ms,
                            qk_channel_t **channel, qk_err_t *err);
/* Waits up to a second for messages on their way out. NULL-safe. */
void qk_channel_close(qk_channel_t *channel);

/* Returns when there is a message or SIGTERM, or after timeout_ms. */
void qk_channel_wait(qk_channel_t *channel, int timeout_ms);
/* Whether there is no front, and SIGTERM came since, or with its end. While there is one, it
 * decides. */
bool qk_channel_terminated(qk_channel_t *channel);
/* The next message, or NULL when there is none; the caller frees it. What is no message is logged
 * and skipped. */
Quark__Engine__FrontMessage *qk_channel_receive(qk_channel_t *channel);
/* True if the front has sent nothing for silence_ms, or is gone and no other has come for
 * grace_ms. Ask after each wait and each step of work: between two questions at most a quarter
 * of silence_ms (or 1.5 s) counts, so that after a stop of the engine its front has time to send
 * again. */
bool qk_channel_is_silent(qk_channel_t *channel);

/* Queues a message if there is a front. QK_IO_ERROR if the front accepts none for silence_ms. */
qk_status_t qk_channel_send(qk_channel_t *channel, const Quark__Engine__EngineMessage *message);

/* Milliseconds on a clock that only goes forward. */
double qk_now_ms(void);

#endif
