/*
 * zmq_guard.h: keeps libzmq from ending quarkd when a connection is reset.
 *
 * libzmq does not read from a peer while the peer's queue is full. If the connection is reset
 * meanwhile, libzmq (4.3.5 and before, issues 4364 and 4841) drops its socket. It then ends the
 * process with "Assertion failed: !_io_error" when a heartbeat is due or when it finds a PING in
 * the unread data. Any peer can cause that.
 *
 * The guard is quarkd's own epoll_wait, which libzmq calls instead of the C library's. It hides
 * ends and resets and only reports that a socket is readable or writable. So libzmq sees the end
 * when it reads, which it handles correctly. Other threads get the events of the system.
 */
#ifndef QK_FRONT_ZMQ_GUARD_H
#define QK_FRONT_ZMQ_GUARD_H

/* Before the first socket is made. Libzmqs that do not use epoll are not guarded. */
void qk_zmq_guard(void);

#endif
