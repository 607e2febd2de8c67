/*
 * zmq_guard.h: keeps libzmq from ending quarkd when a connection is reset.
 *
 * A peer that has sent more than its queue takes is not read from until the queue has room. If its
 * connection is reset meanwhile, libzmq (4.3.5 and before, issues 4364 and 4841) gives its socket up
 * and then ends the process with "Assertion failed: !_io_error" as soon as a heartbeat is due or a
 * PING of the peer is found among what it had sent. Any peer can bring that about.
 *
 * The guard is an epoll_wait of quarkd's own, which libzmq calls in place of the C library's. It
 * reports no ends and resets, only that a socket can be read from or written to: so libzmq meets them
 * when it reads, which it does well. Other threads get what the system says.
 */
#ifndef QK_FRONT_ZMQ_GUARD_H
#define QK_FRONT_ZMQ_GUARD_H

/* Before the first socket is made. Libzmqs that do not use epoll are not guarded. */
void qk_zmq_guard(void);

#endif
