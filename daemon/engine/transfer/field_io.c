#include "daemon/engine/transfer/field_io.h"

#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/lattice/gamma_basis.h"

static qk_status_t reserve(qk_field_io_t *p) {
  return p->dev->ops->alloc(p->dev->ctx, qk_wire_part_bytes(p->wire, true), &p->vector);
}

qk_status_t qk_field_io_create(const qk_device_t *dev, qk_pinned_t *pinned, qk_field_io_t **port,
                               qk_err_t *err) {
  qk_field_io_t *p = qk_calloc(1, sizeof *p);
  qk_status_t status = QK_OK;
  if (p == NULL) status = qk_fail(err, QK_NO_MEMORY, "no memory for a port");
  status = qk_comm_agree(dev->geom->comm, status, err);
  if (status != QK_OK) goto fail;
  p->dev = dev;
  status = qk_wire_create(dev->geom, &p->wire, err);
  if (status != QK_OK) goto fail;

  status = qk_comm_agree(dev->geom->comm, qk_device_explain(dev, reserve(p), err), err);
  if (status != QK_OK) goto fail;
  qk_pinned_await(pinned, 1);
  p->part = qk_pinned_buffer(pinned, 0);
  *port = p;
  return QK_OK;

fail:
  qk_field_io_destroy(p);
  return status;
}

void qk_field_io_destroy(qk_field_io_t *port) {
  if (port == NULL) return;
  const qk_device_t *dev = port->dev;
  if (port->vector != NULL) dev->ops->free(dev->ctx, port->vector);
  qk_wire_destroy(port->wire);
  qk_free(port);
}

/* Bytes [at, end), within the pieces of the pinned buffer. */
static void copy(const qk_field_io_t *port, size_t at, size_t end, qk_copy_t kind) {
  char *host = port->part, *device = port->vector;
  const bool out = kind == QK_COPY_TO_HOST;
  for (size_t n; at < end; at += n) {
    n = QK_PINNED_PIECE - at % QK_PINNED_PIECE;
    if (n > end - at) n = end - at;
    qk_dev_copy(port->dev, (out ? host : device) + at, (out ? device : host) + at, n, kind);
  }
}

static void zero(const qk_field_io_t *port, size_t at, size_t end) {
  const qk_device_t *dev = port->dev;
  if (at == end || !qk_dev_ok(dev)) return;
  qk_dev_note(dev, dev->ops->zero(dev->ctx, (char *)port->vector + at, end - at, 0));
}

/* What was read of vector v, and zeros beside it, to the device. */
static void copy_in(const qk_field_io_t *port, const qk_segment_t *in, int v) {
  const size_t vector = qk_wire_vector_bytes(port->wire, in->is_double);
  size_t at, bytes;
  qk_segment_span(port->wire, in, v, &at, &bytes);
  zero(port, (size_t)v * vector, at);
  copy(port, at, at + bytes, QK_COPY_TO_DEVICE);
  zero(port, at + bytes, (size_t)(v + 1) * vector);
}

/* Vector k of it. */
static qk_rhs_args_t column_args(const qk_field_io_t *port, const qk_field_t *field, int k, int rhs,
                                 const double matrix[4][4][2], double factor, bool is_double) {
  char *const wire = port->vector;
  qk_rhs_args_t args = {.lat = port->dev->geom->lat,
                        .field = qk_field_vector(field, k).v,
                        .rhs = rhs,
                        .n = 1,
                        .is_double = is_double,
                        .wire = {wire + k * qk_wire_vector_bytes(port->wire, is_double)},
                        .factor = factor};
  memcpy(args.basis, matrix, sizeof args.basis);
  return args;
}

qk_status_t qk_field_io_read(qk_field_io_t *port, const qk_input_t *input,
                             const double matrix[4][4][2], const qk_field_t *field, int rhs,
                             qk_err_t *err) {
  qk_segment_t in;
  qk_status_t status = qk_segment_open_input(port->wire, input, &in, err);
  if (status != QK_OK) return status;
  status = qk_field_io_read_open(port, &in, matrix, field, rhs, err);
  qk_segment_close(&in);
  return status;
}

qk_status_t qk_field_io_read_open(qk_field_io_t *port, const qk_segment_t *in,
                                  const double matrix[4][4][2], const qk_field_t *field, int rhs,
                                  qk_err_t *err) {
  const qk_device_t *dev = port->dev;
  const qk_status_t status = qk_segment_read(port->wire, in, port->part, err);
  if (status != QK_OK) return status;

  for (int k = 0; k < qk_field_vectors(field); k++) {
    const qk_rhs_args_t args = column_args(port, field, k, rhs, matrix, 1, in->is_double);
    copy_in(port, in, k);
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->rhs_import(dev->ctx, &args));
  }
  qk_dev_sync(dev);
  return qk_device_explain(dev, qk_dev_status(dev), err);
}

/* Into port->part. */
static qk_status_t export_part(qk_field_io_t *port, const double matrix[4][4][2], double factor,
                               const qk_field_t *field, int rhs, bool is_double, qk_err_t *err) {
  const qk_device_t *dev = port->dev;
  for (int k = 0; k < qk_field_vectors(field); k++) {
    const qk_rhs_args_t args = column_args(port, field, k, rhs, matrix, factor, is_double);
    qk_dev_note(dev, dev->ops->rhs_export(dev->ctx, &args));
  }
  copy(port, 0, qk_wire_part_bytes(port->wire, is_double), QK_COPY_TO_HOST);
  qk_dev_sync(dev);
  return qk_device_explain(dev, qk_dev_status(dev), err);
}

qk_status_t qk_field_io_write(qk_field_io_t *port, const qk_segment_t *segment,
                              const double matrix[4][4][2], double factor, const qk_field_t *field,
                              int rhs, qk_err_t *err) {
  const qk_status_t status = export_part(port, matrix, factor, field, rhs, segment->is_double, err);
  return status == QK_OK ? qk_segment_write(port->wire, segment, port->part, err) : status;
}

qk_status_t qk_field_io_export(qk_field_io_t *port, const double matrix[4][4][2], double factor,
                               const qk_field_t *field, int rhs, qk_err_t *err) {
  return export_part(port, matrix, factor, field, rhs, true, err);
}

qk_status_t qk_field_io_move(qk_field_io_t *port, const double matrix[4][4][2],
                             const qk_field_t *in, int from, const qk_field_t *out, int to) {
  const qk_device_t *dev = port->dev;
  double one[4][4][2];
  qk_gamma_basis_import(QK_BASIS_DEGRAND_ROSSI, one);
  qk_rhs_args_t args = column_args(port, in, 0, from, one, 1, true);
  qk_status_t status = dev->ops->rhs_export(dev->ctx, &args);
  if (status != QK_OK) return status;
  args = column_args(port, out, 0, to, matrix, 1, true);
  return dev->ops->rhs_import(dev->ctx, &args);
}
