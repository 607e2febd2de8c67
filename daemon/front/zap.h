/*
 * zap.h: authentication of tcp peers by CURVE: ZeroMQ's ZAP handler (ZeroMQ RFC 27), on the front's loop.
 *
 * From sockets that are guarded only messages of peers that hold the secret of an authorised key are taken. The folder of clients is looked at for each connection, and once a second, so that a key that is
 * taken away stops working for open connections too. One thread.
 */
#ifndef QK_FRONT_ZAP_H
#define QK_FRONT_ZAP_H

#include <zmq.h>

#include "daemon/front/clients.h"
#include "daemon/front/loop.h"

/* Who sent a message. user NULL: nobody has verified it. */
typedef struct qk_who {
  qk_role_t role;
  const char *user;
} qk_who_t;

typedef struct qk_zap qk_zap_t;

/* key_file, folder: --curve-key, --curve-clients; folder is borrowed. To be opened before the sockets, closed after them.
 * Errors: QK_UNSUPPORTED (libzmq without CURVE), QK_BAD_ARGUMENT (the key file), QK_NO_MEMORY, QK_INTERNAL. */
qk_status_t qk_zap_open(qk_loop_t *loop, void *zmq, const char *key_file, const char *folder,
                        qk_zap_t **zap, qk_err_t *err);
void qk_zap_close(qk_zap_t *zap); /* NULL-safe */

/* Before the socket is bound. QK_INTERNAL. */
qk_status_t qk_zap_guard(const qk_zap_t *zap, void *socket, qk_err_t *err);

/* False: the key of its sender is not authorised any more. Without zap (NULL) everybody has the role operate. */
bool qk_zap_who(const qk_zap_t *zap, zmq_msg_t *msg, qk_who_t *who);

/* Connections refused so far. */
uint64_t qk_zap_refused(const qk_zap_t *zap);

#endif
