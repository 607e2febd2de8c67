/* Links and clover terms to the daemon. */
#include <stdlib.h>
#include <string.h>

#include "base/grid.h"
#include "base/say.h"
#include "base/threads.h"
#include "connection.h"
#include "fields.h"

enum { REALS = 72 }; /* a site, of both */

void qk_quda_ticket(uint64_t request, bool joins, qk_quda_ticket_t *ticket) {
  quark_error_t err;
  *ticket = (qk_quda_ticket_t){.request = request, .joins = joins};
  if (!joins) return;
  quark_client_id(qk_quda_daemon(), ticket->owner);
  if (quark_join_token(qk_quda_daemon(), request, ticket->token, &err) != QUARK_OK)
    qk_quda_fail("a request in parts", &err);
}

uint64_t qk_quda_join(const qk_quda_ticket_t *ticket, const qk_quda_shape_t *shape) {
  quark_error_t err;
  uint64_t request;
  for (double begun = qk_quda_now();
       quark_join(qk_quda_daemon(), ticket->owner, ticket->request, ticket->token,
                  qk_quda_part(shape), &request, NULL, NULL, &err) != QUARK_OK;)
    qk_quda_again("joining a request", &err, begun);
  return request;
}

/* ---- the part of this rank ---- */

typedef struct narrowing {
  const qk_quda_move_t *move;
  const double *field;
  char *part;
  size_t pieces;
} narrowing_t;

static void narrow(void *arg, size_t piece) {
  const narrowing_t *n = arg;
  const size_t rows = qk_quda_rows(&n->move->shape), first = piece * rows / n->pieces,
               end = (piece + 1) * rows / n->pieces;
  qk_quda_rows_to_part(n->move, first, end, n->field, n->part + first * qk_quda_row_bytes(n->move));
}

/* The part as it is sent: *room, which the caller frees, or the field itself. */
static const void *part_of(const qk_quda_move_t *move, const double *field, void **room) {
  *room = NULL;
  if (move->part_dtype == QUARK_F64) return field;
  *room = qk_quda_alloc(qk_quda_rows(&move->shape) * qk_quda_row_bytes(move));
  narrowing_t n = {.move = move, .field = field, .part = *room, .pieces = qk_quda_threads()};
  qk_quda_parallel(narrow, &n, n.pieces);
  return *room;
}

/* ---- through rank 0 ---- */

typedef struct collected {
  qk_quda_move_t move;
  void *whole;
} collected_t;

static void collect(void *arg, int rank, const void *part) {
  collected_t *c = arg;
  qk_quda_grid_coord(rank, c->move.shape.coord);
  qk_quda_part_to_whole(&c->move, part, c->whole);
}

/* The daemon gets the field of this request; all ranks. request: the number of this rank; 0: it
 * has none. */
static void send(const qk_quda_operator_t *op, const qk_quda_ticket_t *ticket, uint64_t request) {
  const bool links = ticket->kind == QUARK_FIELD_GAUGE;
  const qk_quda_move_t move = {.shape = op->links->shape,
                               .sites = QK_QUDA_ALL,
                               .in_order = true,
                               .reals = REALS,
                               .brick_dtype = QUARK_F64,
                               .part_dtype = ticket->dtype,
                               .factor = 1};
  const size_t bytes = qk_quda_rows(&move.shape) * qk_quda_row_bytes(&move),
               all = bytes * (size_t)qk_quda_ranks();
  void *room;
  quark_error_t err;
  quark_code_t code = QUARK_OK;
  const void *part = part_of(&move, links ? op->links->u : op->term, &room);
  if (ticket->joins || qk_quda_ranks() == 1) {
    code = quark_upload(qk_quda_daemon(), request, part, bytes, &err);
  } else {
    collected_t c = {.move = move, .whole = request ? qk_quda_alloc(all) : NULL};
    qk_quda_gather(part, bytes, collect, &c);
    if (request) code = quark_upload(qk_quda_daemon(), request, c.whole, all, &err);
    free(c.whole);
  }
  if (code) qk_quda_fail("sending a field", &err);
  free(room);
}

static void open_field(const quark_field_params_t *params, const qk_quda_shape_t *shape,
                       uint64_t *request, bool *present) {
  quark_field_params_t p = *params;
  quark_error_t err;
  uint64_t bytes;
  for (double begun = qk_quda_now();;) {
    const bool joins = qk_quda_joins();
    for (int mu = 0; mu < 4; mu++) p.grid[mu] = joins ? (uint32_t)shape->grid[mu] : 0;
    p.part = joins ? (int32_t)qk_quda_part(shape) : -1;
    if (quark_field_open(qk_quda_daemon(), &p, request, &bytes, present, &err) == QUARK_OK) return;
    if (err.code == QUARK_UNSUPPORTED && joins)
      qk_quda_joins_not();
    else
      qk_quda_again("opening a field", &err, begun);
  }
}

uint64_t qk_quda_field_send(const qk_quda_operator_t *op, quark_field_kind_t kind) {
  const bool links = kind == QUARK_FIELD_GAUGE;
  const char *what = links ? "links" : "a clover term";
  quark_field_params_t params;
  quark_error_t err;
  quark_result_t result;
  uint64_t request;
  bool present;
  quark_field_params_init(&params);
  for (int mu = 0; mu < 4; mu++) params.dims[mu] = (uint32_t)op->links->dims[mu];
  params.kind = kind;
  params.dtype = links && op->links->single ? QUARK_F32 : QUARK_F64;
  params.has_digest = true;
  params.digest = links ? op->links->digest : op->term_digest;
  open_field(&params, &op->links->shape, &request, &present);
  if (!present) {
    qk_quda_ticket_t ticket;
    qk_quda_ticket(request, qk_quda_joins(), &ticket);
    ticket.is_field = true;
    ticket.kind = kind;
    ticket.dtype = params.dtype;
    qk_quda_broadcast(&ticket, sizeof ticket);
    send(op, &ticket, request);
  }
  if (quark_wait(qk_quda_daemon(), request, 0, -1, &result, &err) != QUARK_OK)
    qk_quda_fail("sending a field", &err);
  if (result.status != QUARK_OK)
    qk_quda_refuse("%s: %s: %s", what, quark_code_name(result.status), result.text);
  if (!present) qk_quda_barrier(); /* until then others hold their parts */
  qk_quda_log("%s %016llx: %s", what, (unsigned long long)params.digest,
              present ? "the daemon has it" : "sent");
  return request;
}

void qk_quda_dismiss(const qk_quda_ticket_t *ticket) {
  qk_quda_ticket_t last = *ticket;
  qk_quda_broadcast(&last, sizeof last);
}

void qk_quda_attend(const qk_quda_operator_t *op, qk_quda_ticket_t *ticket) {
  for (;;) {
    qk_quda_broadcast(ticket, sizeof *ticket);
    if (!ticket->joins && ticket->request) qk_quda_joins_not();
    if (!ticket->is_field) return;
    const uint64_t request = ticket->joins ? qk_quda_join(ticket, &op->links->shape) : 0;
    send(op, ticket, request);
    qk_quda_barrier();
    if (request) quark_release(qk_quda_daemon(), request, NULL);
  }
}
