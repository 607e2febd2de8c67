#include "daemon/engine/operator/part.h"

#include "daemon/engine/lattice/scalars.h"

/* ---- calls of an iteration (device.h) -------------------------------------------------------- */

static void hop(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool dagger) {
  if (qk_dev_ok(op->dev)) qk_dev_note(op->dev, op->ops->hop(op, out, in, dagger));
}

static void diag(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool inverse,
                 bool dagger) {
  if (qk_dev_ok(op->dev)) qk_dev_note(op->dev, op->ops->diag(op, out, in, inverse, dagger));
}

/* out = T^-1 hop in */
static void inverse_hop(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                        qk_field_t *between, bool dagger) {
  hop(op, between, in, dagger);
  diag(op, out, between, true, dagger);
}

static void copy(const qk_field_t *to, const qk_field_t *from) {
  qk_dev_blas(to->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {to->v, from->v}});
}

/* ---- Mhat ------------------------------------------------------------------------------------ */

/* Halves: p of the parity, q of the other one. */
typedef struct halves {
  qk_field_t out_p, out_q, room_p, room_q, in_p;
  const double *minus_quarter; /* device */
} halves_t;

static qk_field_t half(const qk_field_t *field, qk_subset_t parity) {
  return (qk_field_t){.dev = field->dev, .v = qk_field_parity(field, parity)};
}

/* sum = x - 1/4 sum */
static void subtract_from(const halves_t *h, const qk_field_t *x, const qk_field_t *sum) {
  qk_dev_blas(x->dev, QK_BLAS_XPAY, (qk_blas_args_t){.f = {sum->v, x->v}, .c = {h->minus_quarter}});
}

/* room_p = hop T^-1 hop first */
static void there_and_back(qk_operator_t *op, halves_t *h, const qk_field_t *first, bool dagger) {
  inverse_hop(op, &h->room_q, first, &h->out_q, dagger);
  hop(op, &h->room_p, &h->room_q, dagger);
}

/* T Mhat = T - 1/4 hop T^-1 hop, or with daggers. */
static void asymmetric(qk_operator_t *op, halves_t *h, bool dagger) {
  there_and_back(op, h, &h->in_p, dagger);
  diag(op, &h->out_p, &h->in_p, false, dagger);
  subtract_from(h, &h->out_p, &h->room_p);
  copy(&h->out_p, &h->room_p);
}

/* Mhat = 1 - 1/4 T^-1 hop T^-1 hop */
static void symmetric(qk_operator_t *op, halves_t *h) {
  there_and_back(op, h, &h->in_p, false);
  diag(op, &h->out_p, &h->room_p, true, false);
  subtract_from(h, &h->in_p, &h->out_p);
}

/* Mhat^+ = 1 - 1/4 hop^+ T^-1+ hop^+ T^-1+ */
static void symmetric_dagger(qk_operator_t *op, halves_t *h) {
  diag(op, &h->out_p, &h->in_p, true, true);
  there_and_back(op, h, &h->out_p, true);
  subtract_from(h, &h->in_p, &h->room_p);
  copy(&h->out_p, &h->room_p);
}

static void schur_halves(qk_operator_t *op, const qk_part_t *part, halves_t *h) {
  if (part->asymmetric)
    asymmetric(op, h, part->dagger);
  else if (part->dagger)
    symmetric_dagger(op, h);
  else
    symmetric(op, h);
}

static qk_status_t schur(qk_operator_t *op, const qk_part_t *part, const qk_field_t *out,
                         const qk_field_t *in, const qk_field_t *room) {
  const qk_subset_t p = part->parity, q = p == QK_EVEN ? QK_ODD : QK_EVEN;
  if (p == QK_FULL || !room || qk_field_vectors(in) > 1 || out == in || room == in || room == out ||
      in->v.subset != QK_FULL || out->v.subset != QK_FULL || room->v.subset != QK_FULL)
    return QK_BAD_ARGUMENT;
  qk_scalars_t quarter = {0};
  const qk_status_t status = qk_scalars_init(&quarter, in->dev, 1, in->v.nrhs);
  if (status == QK_OK) {
    halves_t h = {half(out, p),  half(out, q), half(room, p),
                  half(room, q), half(in, p),  qk_scalars_at(&quarter, 0)};
    qk_scalars_fill(&quarter, 0, -0.25);
    schur_halves(op, part, &h);
    qk_dev_sync(in->dev);
  }
  qk_scalars_fini(&quarter);
  return status == QK_OK ? qk_dev_status(op->dev) : status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

qk_status_t qk_part_apply(qk_operator_t *op, const qk_part_t *part, qk_field_t *out,
                          const qk_field_t *in, qk_field_t *room) {
  const bool dagger = part->dagger;
  if (part->kind == QK_PART_M) return op->ops->apply(op, out, in, dagger, NULL, 0);
  if (!op->ops->hop) return QK_BAD_ARGUMENT; /* M connects all sites, and has no parts */
  switch (part->kind) {
  case QK_PART_HOP:
    return op->ops->hop(op, out, in, dagger);
  case QK_PART_DIAG:
    return op->ops->diag(op, out, in, false, dagger);
  case QK_PART_DIAG_INVERSE:
    return op->ops->diag(op, out, in, true, dagger);
  case QK_PART_DIAG_INVERSE_HOP:
    if (!room) return QK_BAD_ARGUMENT;
    inverse_hop(op, out, in, room, dagger);
    return qk_dev_status(op->dev);
  case QK_PART_SCHUR:
    return schur(op, part, out, in, room);
  default:
    return QK_BAD_ARGUMENT;
  }
}
