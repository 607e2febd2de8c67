/*
 * guests.h: who is connected to the two ROUTER sockets, as their monitors tell, so that there are
 * always descriptors left for everything else. libzmq takes whoever comes, and where there is no
 * descriptor for the next one its thread tries for ever.
 *
 * Room     is for as many connections as the process may have descriptors (RLIMIT_NOFILE), less
 *          what else it has open (looked at once a second) and a reserve. Who comes beyond that is
 *          let in where another one can be closed: one that has not said anything, else one without
 *          a session. Which of them is left to chance: the oldest would be whoever needs a while
 *          for its greeting when others come again and again. Else the newcomer is closed. Sessions
 *          are as many as take three quarters of that room: who comes for one gets in, and an idle
 *          one makes room (session.h).
 * Messages may have any number of parts for libzmq, which keeps them until the last one comes, and
 *          as many as they like for a peer: a connection that has sent more than could wait to be
 *          read, and has not been heard, is closed.
 * Closing  is shutdown(2) of the descriptor, on which libzmq lets the connection go. Descriptors
 *          are used again, maybe meanwhile: the socket's cookie tells.
 */
#ifndef QK_FRONT_GUESTS_H
#define QK_FRONT_GUESTS_H

#include "daemon/front/job/session.h"

struct qk_net;
typedef struct qk_guests qk_guests_t;

/* Messages of one peer that wait to be read. */
enum { QK_CONTROL_RCVHWM = 64, QK_DATA_HWM = 16 };

typedef enum qk_door { QK_DOOR_CONTROL, QK_DOOR_DATA, QK_DOORS } qk_door_t;

/* Before the sockets are bound. Where this libzmq has no monitors there is a warning, and *guests
 * is NULL, which all below take. */
void qk_guests_open(struct qk_net *net, qk_guests_t **guests);
/* Before the sockets are closed. */
void qk_guests_close(qk_guests_t *guests);
/* Reads what has happened to connections, and says whether all of it is known now. No connection
 * may pass its handshake before that: else the end of one could be taken for that of the next one
 * with its descriptor. */
bool qk_guests_catch_up(qk_guests_t *guests);
/* A message has come from that peer, by that descriptor. */
void qk_guests_heard(qk_guests_t *guests, qk_door_t door, int fd, const qk_peer_t *peer);
/* How many sessions there may be at most, with two connections each and room for newcomers. */
int qk_guests_sessions(const qk_guests_t *guests);
void qk_guests_tick(qk_guests_t *guests, double now);

#endif
