/*
 * peers.h: assigns connections to sessions, and ends connections without one.
 *
 * A session has one connection of each kind, identified by its number (zap.h), not by its routing
 * id alone: a peer that uses the id of an ended connection is a stranger. A session that has lost a
 * peer, or whose peer has lost its key, only forgets that peer; HELLO and BIND restore it within
 * the lease.
 */
#ifndef QK_FRONT_PEERS_H
#define QK_FRONT_PEERS_H

#include <zmq.h>

#include "daemon/front/job/session.h"
#include "daemon/front/net/guests.h"

struct qk_net;

enum { QK_PEERS_LEAVING = 128, QK_PEERS_CUT = 1024 };

typedef struct qk_peers {
  /* numbers of the latest connections that were ended: their messages are ignored */
  uint64_t cut[QK_PEERS_CUT];
  unsigned ncut; /* so far */
  /* descriptors of such connections: shut down once they have been told the reason */
  int leaving[QK_PEERS_LEAVING];
  int nleaving, ntold; /* the first ntold have had one tick of time to receive it */
  uint64_t keys;       /* number of key changes that sessions have been checked against */
} qk_peers_t;

/* The session of this connection of the control socket (or data socket). NULL: a stranger. If a
 * stranger has the routing id of a session, the session forgets its own peer there. */
qk_session_t *qk_peers_control(struct qk_net *net, const qk_peer_t *peer);
qk_session_t *qk_peers_data(struct qk_net *net, const qk_peer_t *peer);
/* The connection has ended: a new one with its routing id must not receive messages that were
 * meant for it. Messages that it sent before, perhaps a GOODBYE, may still be unread, and belong
 * to the session. */
void qk_peers_gone(struct qk_net *net, qk_door_t door, const qk_peer_t *peer);
/* Sends nothing more to the session's connections, and accepts nothing from them. */
void qk_peers_forget(struct qk_net *net, qk_session_t *session, const char *why);

/* Ends the connection by which msg has just come, of the socket that is bound to endpoint. */
void qk_peers_cut(struct qk_net *net, const char *endpoint, zmq_msg_t *msg, const qk_peer_t *peer);
/* The same for a message with an absurd number of parts. */
void qk_peers_cut_endless(struct qk_net *net, const char *endpoint, zmq_msg_t *msg,
                          const qk_peer_t *peer);
/* Whether it was ended. */
bool qk_peers_is_cut(const struct qk_net *net, const qk_peer_t *peer);

/* Sessions whose keys have been removed forget their peers; ended connections are closed. */
void qk_peers_tick(struct qk_net *net);
/* Those connections go now. */
void qk_peers_close(struct qk_net *net);

#endif
