/*
 * data_thread.h: one data socket with a thread of its own, which moves the bytes of fields.
 *
 * The loop decides everything: whose a message is, whether it may come now, where its bytes go. The
 * thread receives messages and checks them (proto/frame.h), copies payloads into shared memory or
 * from there, and sends. Both hand each other parcels through two lists under a mutex:
 *
 *   thread --ARRIVED--> loop --WRITE--> thread --WRITE--> loop     a chunk of an upload
 *                       loop --SEND---> thread --SEND---> loop     a part of a solution, or BOUND
 *
 * A parcel that has arrived goes back by qk_data_thread_done. Until then it takes one of
 * QK_DATA_ROOM places; without a place the thread reads nothing more, and the peers wait. Chunks of
 * a request are written in the order in which they were handed over; parcels to be sent take turns,
 * one chunk each. A field of which the checksum lacks a part (transfer.h) is read back in turns,
 * too, and a run of zeros is written so, so that they hold up no others.
 *
 * On a machine with one processor there is no thread: the loop does the work itself, when it hands
 * over a parcel.
 */
#ifndef QK_FRONT_DATA_THREAD_H
#define QK_FRONT_DATA_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <zmq.h>

#include "daemon/front/host/loop.h"
#include "daemon/front/host/runtime.h"
#include "daemon/front/job/session.h"
#include "daemon/front/wire/rest.h"
#include "proto/frame.h"

enum { QK_DATA_ROOM = 32, QK_DATA_SPAN = 16 * QK_CHUNK_MAX };

/* FULL: the peer takes no more now; GONE: there is none; FAILED: the field cannot be read. */
typedef enum qk_sent { QK_SENT, QK_SENT_FULL, QK_SENT_GONE, QK_SENT_FAILED } qk_sent_t;

typedef enum qk_parcel_kind { QK_PARCEL_ARRIVED, QK_PARCEL_WRITE, QK_PARCEL_SEND } qk_parcel_kind_t;

typedef struct qk_parcel {
  qk_link_t link;
  qk_parcel_kind_t kind;
  qk_peer_t peer;
  qk_frame_t frame;
  /* of one that has arrived */
  bool takes_room;
  zmq_msg_t msg;
  bool whole, endless;    /* it had one part; it has thousands, and more of them are to come */
  qk_status_t status;     /* of qk_frame_decode; if it is QK_OK, frame and payload are valid */
  qk_frame_fault_t fault; /* else */
  const uint8_t *payload;
  uint64_t cost; /* nanoseconds of the thread's processor that it took to receive it */
  /* WRITE */
  qk_chunk_t chunk; /* where the payload goes */
  qk_err_t err;     /* set by the thread: QK_OK, or why not; of SEND if it is FAILED */
  /* SEND: the bytes [at, until) of a field, whose request, rhs and field_bytes are in `frame`;
   * without transfer a frame without payload, once */
  qk_transfer_t *transfer;
  uint64_t begin, at, until;
  qk_sent_t sent; /* set by the thread; `at` says how far it came */
} qk_parcel_t;

struct qk_data_thread;
/* The loop takes over a parcel. */
typedef void qk_data_thread_fn(void *arg, struct qk_data_thread *thread, qk_parcel_t *parcel);

typedef struct qk_data_thread {
  int index;
  void *socket;
  char endpoint[QK_ENDPOINT_MAX]; /* as it is bound */
  bool rest;                      /* the thread's: more parts are left of a message */
  /* of the loop */
  qk_loop_t *loop;
  qk_data_thread_fn *take;
  void *arg;
  qk_zsock_t sock; /* without a thread */
  double share;    /* likewise: of a processor that the parcel may take which is being looked at */
  uv_async_t wakes_loop;
  qk_link_t taken; /* news that are not looked at yet */
  int sending;     /* parts of solutions that have not come back */
  /* of the thread */
  bool threaded;
  pthread_t handle;
  qk_link_t outgoing, writing;
  /* shared */
  pthread_mutex_t lock;
  int wakes_thread; /* eventfd */
  qk_link_t orders, news;
  int room;
  uint64_t debt; /* nanoseconds for which nothing is to be received */
  bool stop;
} qk_data_thread_t;

/* Begins to serve a socket that is bound. threaded: by a thread; else the loop asks it to. take is
 * called on the loop. QK_INTERNAL, QK_NO_MEMORY. */
qk_status_t qk_data_thread_start(qk_data_thread_t *thread, qk_loop_t *loop, bool threaded,
                                 qk_data_thread_fn *take, void *arg, qk_err_t *err);
/* Ends the thread. The socket is the caller's again; parcels that are left are thrown away. */
void qk_data_thread_stop(qk_data_thread_t *thread);

/* Hands over a parcel of the kind WRITE or SEND, which comes back to `take`. */
void qk_data_thread_order(qk_data_thread_t *thread, qk_parcel_t *parcel);
/* A parcel that has arrived answers its sender: of the kind SEND now, with this frame. */
void qk_parcel_answer(qk_parcel_t *parcel, const qk_frame_t *frame);
/* Frees a parcel. work: it belonged to a request; share: of a processor that those which did not
 * may take. */
void qk_data_thread_done(qk_data_thread_t *thread, qk_parcel_t *parcel, bool work, double share);
/* A parcel to be sent to peer; NULL without memory. */
qk_parcel_t *qk_parcel_to_send(const qk_peer_t *peer, const qk_frame_t *frame);
/* Lists what has arrived in thread->taken, to be looked at before it is its turn. */
void qk_data_thread_collect(qk_data_thread_t *thread);

#endif
