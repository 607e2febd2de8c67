/*
 * peers.h: which connection is which session's, and the end of connections that have none.
 *
 * A session has one connection of each kind, known by its number (zap.h), not by its routing id
 * alone: whoever comes with the id of a connection that has ended is a stranger. A session that has
 * lost a peer, or whose peer has lost its key, forgets it and nothing else; HELLO and BIND bring
 * one back, within the lease.
 */
#ifndef QK_FRONT_PEERS_H
#define QK_FRONT_PEERS_H

#include <zmq.h>

#include "daemon/front/job/session.h"
#include "daemon/front/net/guests.h"

struct qk_net;

enum { QK_PEERS_LEAVING = 128, QK_PEERS_CUT = 1024 };

typedef struct qk_peers {
  uint64_t cut[QK_PEERS_CUT];    /* connections that were ended, the latest ones: nothing of them is
                                 looked at */
  unsigned ncut;                 /* so far */
  int leaving[QK_PEERS_LEAVING]; /* descriptors of such connections: shut down once they have been
                                    told why */
  int nleaving, ntold;           /* the first ntold have had the time of a tick to receive it */
  uint64_t keys;                 /* changes of keys that sessions have followed */
} qk_peers_t;

/* The session of this connection of the control socket, or of that for data. NULL: a stranger, also
 * where its routing id is a session's, which then forgets its own peer there. */
qk_session_t *qk_peers_control(struct qk_net *net, const qk_peer_t *peer);
qk_session_t *qk_peers_data(struct qk_net *net, const qk_peer_t *peer);
/* The connection has ended: who comes next with its routing id does not receive what was meant for
 * it. What it said before, a GOODBYE perhaps, may still wait to be read, and is the session's. */
void qk_peers_gone(struct qk_net *net, qk_door_t door, const qk_peer_t *peer);
/* Nothing more is sent to the session's connections, nor taken from them. */
void qk_peers_forget(struct qk_net *net, qk_session_t *session, const char *why);

/* Ends the connection by which msg has just come from socket. */
void qk_peers_cut(struct qk_net *net, void *socket, zmq_msg_t *msg, const qk_peer_t *peer);
/* Likewise, where that message has more parts than anybody means. */
void qk_peers_cut_endless(struct qk_net *net, qk_door_t door, zmq_msg_t *msg,
                          const qk_peer_t *peer);
/* Whether it was ended. */
bool qk_peers_is_cut(const struct qk_net *net, const qk_peer_t *peer);

/* Sessions whose keys have been taken away forget their peers; connections that were ended go. */
void qk_peers_tick(struct qk_net *net);
/* Those connections go now. */
void qk_peers_close(struct qk_net *net);

#endif
