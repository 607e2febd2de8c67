/*
 * worker.h: the life of the engine after it has started: what the front asks for, turn after turn.
 *
 * Rank 0 receives the messages of the front; each turn it tells the other ranks what has come in,
 * and all of them carry it out: load, fill, cancel, one interval of the solver, results out. While
 * no slot runs, rank 0 waits for the front and the others for rank 0, asleep.
 */
#ifndef QK_ENGINE_WORKER_H
#define QK_ENGINE_WORKER_H

#include "daemon/comm/comm.h"
#include "daemon/engine/serve/channel.h"

/* Returns QK_OK when told to stop (STOP or SIGTERM); QK_TIMEOUT when the front has been silent for
 * too long; DEVICE and PROCESS statuses, also those of one rank alone, when the process
 * cannot go on. channel: on rank 0, NULL elsewhere. Collective. */
qk_status_t qk_worker_run(qk_comm_t *comm, qk_channel_t *channel, qk_err_t *err);

#endif
