/*
 * zap.h: identifies peers: ZeroMQ's ZAP handler (ZeroMQ RFC 27), on the front's loop.
 *
 * Every connection passes it. It rejects peers of ZMTP 1.0 and 2.0: they have no handshake, so that
 * a web page could make a browser imitate one. It gives each connection a number that is never
 * reused: peers choose their routing ids, which may pass from one connection to the next.
 *
 * With CURVE the sockets accept messages only from peers that hold the secret of an authorised key.
 * The folder of clients is checked once a second, so that a removed key stops working for open
 * connections too, and at a handshake if it has changed. Either takes at most a twentieth of the
 * time, however slow the folder is and however many strangers come. One thread.
 */
#ifndef QK_FRONT_ZAP_H
#define QK_FRONT_ZAP_H

#include <zmq.h>

#include "daemon/front/host/loop.h"
#include "daemon/front/net/clients.h"

/* The sender of a message. user, key NULL: not verified. */
typedef struct qk_who {
  uint64_t connection; /* that it came by; 0: not known */
  qk_role_t role;
  const char *user, *key;
} qk_who_t;

typedef struct qk_zap qk_zap_t;

/* key_file, folder: --curve-key, --curve-clients; NULL: no keys. folder is borrowed; *refused
 * counts connections whose key is not authorised. To be opened
 * before the sockets, closed after them. Errors: QK_UNSUPPORTED (libzmq without CURVE),
 * QK_BAD_ARGUMENT (the key file), QK_NO_MEMORY, QK_INTERNAL. */
qk_status_t qk_zap_open(qk_loop_t *loop, void *zmq, const char *key_file, const char *folder,
                        uint64_t *refused, qk_zap_t **zap, qk_err_t *err);
void qk_zap_close(qk_zap_t *zap); /* NULL-safe */
/* Handshakes wait while `ready` says false; it is asked again before each, and in each turn of the
 * loop. */
void qk_zap_wait_for(qk_zap_t *zap, bool (*ready)(void *arg), void *arg);

/* Before the socket is bound. QK_INTERNAL. */
qk_status_t qk_zap_guard(const qk_zap_t *zap, void *socket, qk_err_t *err);

/* Whether there are keys. */
bool qk_zap_curve(const qk_zap_t *zap);

/* False: the key of its sender is not authorised any more; the connection is there all the same.
 * Without keys everybody has the role operate. */
bool qk_zap_who(const qk_zap_t *zap, zmq_msg_t *msg, qk_who_t *who);
/* Whether the key is that user's, and has the role. True without keys. */
bool qk_zap_allows(const qk_zap_t *zap, const char *key, const char *user, qk_role_t role);
/* Grows when keys have been read again. */
uint64_t qk_zap_changes(const qk_zap_t *zap);

#endif
