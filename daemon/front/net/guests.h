/*
 * guests.h: counts the connections to the ROUTER sockets through their monitors, so that other
 * uses always find descriptors. libzmq accepts every connection; if there is no descriptor for the
 * next one, its thread tries for ever.
 *
 * Room     Connections may use the descriptors of the process (RLIMIT_NOFILE) minus its other open
 *          ones (checked once a second), one for each data thread and a reserve. A newcomer beyond
 *          that is accepted if another connection can be closed: one that has sent nothing, else
 *          one without a session, chosen at random. By age, an honest client that needs a while for
 *          its greeting would be closed by a flood. If there is none, the newcomer is closed.
 *          Sessions take at most three quarters of the room, so that a new client gets in and can
 *          replace an idle session (session.h).
 * Messages may have any number of parts for libzmq, which keeps them until the last one comes, and
 *          a peer may send any number of them. A connection that has sent more than may wait, and
 *          whose messages have not been read, is closed.
 * Closing  is shutdown(2) of the descriptor; libzmq then drops the connection. Descriptors are
 *          reused, perhaps meanwhile: the socket's cookie identifies the connection.
 */
#ifndef QK_FRONT_GUESTS_H
#define QK_FRONT_GUESTS_H

#include "daemon/front/job/session.h"

struct qk_net;
typedef struct qk_guests qk_guests_t;

/* Messages of one peer that wait to be read. */
enum { QK_CONTROL_RCVHWM = 64, QK_DATA_HWM = 16 };

/* A socket of clients: QK_DOOR_CONTROL, or QK_DOOR_DATA + number of the thread. */
typedef int qk_door_t;
enum { QK_DOOR_CONTROL, QK_DOOR_DATA, QK_DOORS = QK_DOOR_DATA + QK_DATA_THREADS_MAX };

/* Before the sockets are bound. Where this libzmq has no monitors there is a warning, and *guests
 * is NULL, which all below take. */
void qk_guests_open(struct qk_net *net, qk_guests_t **guests);
/* Before the sockets are closed. */
void qk_guests_close(qk_guests_t *guests);
/* Reads the events of connections; true if all are known now. No connection may pass its
 * handshake before that: otherwise the end of one could be attributed to the next one with its
 * descriptor. */
bool qk_guests_catch_up(qk_guests_t *guests);
/* Records a message from that peer on that descriptor. */
void qk_guests_heard(qk_guests_t *guests, qk_door_t door, int fd, const qk_peer_t *peer);
/* Largest number of sessions, with two connections each and room for newcomers. */
int qk_guests_sessions(const qk_guests_t *guests);
void qk_guests_tick(qk_guests_t *guests, double now);

#endif
