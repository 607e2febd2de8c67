/*
 * router.h: the ROUTER sockets of clients: opening and binding them, receiving control messages.
 */
#ifndef QK_FRONT_ROUTER_H
#define QK_FRONT_ROUTER_H

#include <zmq.h>

#include "daemon/front/net/net.h"

/* A socket that ZAP guards; max_bytes: of a message; affinity: bits of the threads of libzmq that
 * serve it, 0: any. QK_INTERNAL. */
qk_status_t qk_router_open(qk_net_t *net, int64_t max_bytes, int rcvhwm, int sndhwm,
                           uint64_t affinity, void **out, qk_err_t *err);
/* real, of `size` bytes: the endpoint as it is bound. QK_BUSY, QK_BAD_ARGUMENT, QK_UNSUPPORTED,
 * QK_INTERNAL. */
qk_status_t qk_router_bind(void *socket, const char *endpoint, char *real, size_t size,
                           qk_err_t *err);

/* The next control message; the caller initialises msg, and closes it after true. whole: it had
 * one part after the routing id. Other parts are discarded: if there are thousands, later calls
 * continue as long as their time lasts, and net->rest is set until then. False: nothing to read. */
bool qk_router_receive(qk_net_t *net, qk_peer_t *peer, zmq_msg_t *msg, bool *whole);
/* A message of a socket has been handled; true if the others wait for the next turn. work: it
 * belonged to a request. */
bool qk_router_has_enough(qk_net_t *net, bool work);
/* The share of a processor that messages may take which belong to no request. */
double qk_router_share(const qk_net_t *net);
/* Identifies the sender of msg: fills in the rest of peer. False: its key is not authorised any
 * more. */
bool qk_router_who(const qk_net_t *net, zmq_msg_t *msg, qk_peer_t *peer, qk_who_t *who);

#endif
