#include "daemon/engine/command.h"

#include <math.h>
#include <string.h>

_Static_assert(QUARK__BASIS__BASIS_DEGRAND_ROSSI == (int)QK_BASIS_DEGRAND_ROSSI &&
                   QUARK__BASIS__BASIS_UKQCD == (int)QK_BASIS_UKQCD &&
                   QUARK__BASIS__BASIS_DIRAC_PAULI == (int)QK_BASIS_DIRAC_PAULI &&
                   QUARK__BASIS__BASIS_OPENQCD == (int)QK_BASIS_OPENQCD,
               "bases have the numbers of quark.proto");
_Static_assert(QUARK__ENGINE__PRECISION__PRECISION_DOUBLE == (int)QK_DOUBLE &&
                   QUARK__ENGINE__PRECISION__PRECISION_SINGLE == (int)QK_SINGLE &&
                   QUARK__ENGINE__PRECISION__PRECISION_HALF == (int)QK_HALF,
               "precisions have the numbers of engine.proto");
_Static_assert((int)QK_SLOTS_MAX <= (int)QK_MAX_RHS, "a block holds all slots");

static qk_status_t bcast(qk_comm_t *comm, void *buf, size_t bytes) {
  return bytes == 0 ? QK_OK : qk_comm_bcast(comm, buf, bytes, 0);
}

qk_status_t qk_turn_share(qk_comm_t *comm, qk_turn_t *turn, bool idle) {
  qk_status_t status = idle ? qk_comm_bcast_idle(comm, &turn->head, sizeof turn->head, 0)
                            : qk_comm_bcast(comm, &turn->head, sizeof turn->head, 0);
  if (status == QK_OK && turn->head.kind == QK_TURN_LOAD)
    status = bcast(comm, &turn->load, sizeof turn->load);
  if (status == QK_OK)
    status = bcast(comm, turn->fill, (size_t)turn->head.nfill * sizeof turn->fill[0]);
  if (status == QK_OK)
    status = bcast(comm, turn->cancel, (size_t)turn->head.ncancel * sizeof turn->cancel[0]);
  return status;
}

static qk_status_t copy_text(const char *field, const char *text, char *to, size_t size,
                             qk_err_t *err) {
  size_t n = strlen(text);
  if (n >= size)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s has %zu characters: at most %zu", field, n, size - 1);
  memcpy(to, text, n + 1);
  return QK_OK;
}

static qk_status_t copy_four(const char *field, size_t n, const uint32_t *v, int32_t to[4],
                             qk_err_t *err) {
  if (n == 0) return QK_OK;
  if (n != 4) return qk_fail(err, QK_BAD_ARGUMENT, "%s has %zu entries: none or 4", field, n);
  for (int mu = 0; mu < 4; mu++) {
    if (v[mu] > INT32_MAX)
      return qk_fail(err, QK_BAD_ARGUMENT, "%s[%d] = %u: at most %d", field, mu, v[mu], INT32_MAX);
    to[mu] = (int32_t)v[mu];
  }
  return QK_OK;
}

static qk_status_t copy_phases(const Quark__Engine__Load *m, double phase[4][2], qk_err_t *err) {
  if (m->n_boundary != 8)
    return qk_fail(err, QK_BAD_ARGUMENT, "boundary has %zu entries: 8, real and imaginary",
                   m->n_boundary);
  for (int mu = 0; mu < 4; mu++) {
    double re = m->boundary[2 * mu], im = m->boundary[2 * mu + 1];
    if (!(fabs(hypot(re, im) - 1) < 1e-9))
      return qk_fail(err, QK_BAD_ARGUMENT, "boundary[%d] = (%g,%g): modulus must be 1", mu, re, im);
    phase[mu][0] = re;
    phase[mu][1] = im;
  }
  return QK_OK;
}

qk_status_t qk_load_parse(const Quark__Engine__Load *m, qk_load_t *load, qk_err_t *err) {
  static const char *const backends[] = {"auto", "cuda", "cpu"};
  static const char *const solvers[] = {"bicgstab", "cg", "gcr"};
  qk_load_t l = {.mass = m->mass, .csw = m->csw, .inner = (qk_prec_t)m->inner};
  qk_status_t status = QK_OK;
  bool backend = false, solver = false;
  for (int i = 0; i < 3; i++) {
    backend |= strcmp(m->backend, backends[i]) == 0;
    solver |= strcmp(m->solver, solvers[i]) == 0;
  }
  if (!backend)
    return qk_fail(err, QK_BAD_ARGUMENT, "backend = '%.32s': auto, cuda or cpu", m->backend);
  if (!solver)
    return qk_fail(err, QK_BAD_ARGUMENT, "solver = '%.32s': bicgstab, cg or gcr", m->solver);
  if (!isfinite(m->mass) || m->mass <= -4)
    return qk_fail(err, QK_BAD_ARGUMENT, "mass = %g: must be above -4", m->mass);
  if (!isfinite(m->csw)) return qk_fail(err, QK_BAD_ARGUMENT, "csw = %g: must be finite", m->csw);
  if ((unsigned)m->inner > QK_HALF)
    return qk_fail(err, QK_BAD_ARGUMENT, "inner = %d: no such precision", (int)m->inner);
  if (m->slots < 1 || m->slots > QK_SLOTS_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "slots = %u: 1 to %d", m->slots, QK_SLOTS_MAX);
  if (m->link_reals != 18 && m->link_reals != 12 && m->link_reals != 8)
    return qk_fail(err, QK_BAD_ARGUMENT, "link_reals = %u: 18, 12 or 8", m->link_reals);
  l.nslot = (int32_t)m->slots;
  l.link_reals = (int32_t)m->link_reals;

  status = copy_text("gauge", m->gauge, l.gauge, sizeof l.gauge, err);
  if (status == QK_OK) status = copy_text("backend", m->backend, l.backend, sizeof l.backend, err);
  if (status == QK_OK) status = copy_text("solver", m->solver, l.solver, sizeof l.solver, err);
  if (status == QK_OK) status = copy_four("dims", m->n_dims, m->dims, l.dims, err);
  if (status == QK_OK) status = copy_four("grid", m->n_grid, m->grid, l.grid, err);
  if (status == QK_OK) status = copy_phases(m, l.phase, err);
  if (status == QK_OK) *load = l;
  return status;
}

/* Coordinates are checked against the lattice in slots.c. */
static qk_status_t parse_column(const Quark__Engine__Fill *m, qk_fill_t *f, qk_err_t *err) {
  static const qk_source_kind_t kinds[] = {
      [QUARK__SOURCE_KIND__SOURCE_POINT] = QK_SOURCE_POINT,
      [QUARK__SOURCE_KIND__SOURCE_WALL] = QK_SOURCE_WALL,
      [QUARK__SOURCE_KIND__SOURCE_Z2] = QK_SOURCE_Z2,
      [QUARK__SOURCE_KIND__SOURCE_Z4] = QK_SOURCE_Z4,
  };
  const Quark__Column *c = m->column;
  if ((unsigned)m->source >= sizeof kinds / sizeof *kinds)
    return qk_fail(err, QK_BAD_ARGUMENT, "source = %d: no such kind", (int)m->source);
  if (c == NULL) return qk_fail(err, QK_BAD_ARGUMENT, "column is missing: a source needs one");
  f->source = kinds[m->source];
  bool noise = f->source == QK_SOURCE_Z2 || f->source == QK_SOURCE_Z4;
  int least = noise ? -1 : 0;
  if (c->spin < least || c->spin > 3)
    return qk_fail(err, QK_BAD_ARGUMENT, "spin = %d: %d to 3", c->spin, least);
  if (c->colour < least || c->colour > 2)
    return qk_fail(err, QK_BAD_ARGUMENT, "colour = %d: %d to 2", c->colour, least);
  if (c->t < least) return qk_fail(err, QK_BAD_ARGUMENT, "t = %d: at least %d", c->t, least);
  f->site[3] = c->t;
  if (f->source == QK_SOURCE_POINT) {
    f->site[0] = c->x;
    f->site[1] = c->y;
    f->site[2] = c->z;
  }
  f->spin = c->spin;
  f->colour = c->colour;
  f->seed = c->seed;
  return QK_OK;
}

qk_status_t qk_fill_parse(const Quark__Engine__Fill *m, int nslot, qk_fill_t *fill, qk_err_t *err) {
  qk_status_t status = QK_OK;
  qk_fill_t f = {.ticket = m->ticket,
                 .upload = m->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD,
                 .is_double = m->dtype == QUARK__DTYPE__DTYPE_F64,
                 .basis = (qk_basis_t)m->basis,
                 .factor = m->factor,
                 .tol = m->tol};
  if (m->slot >= (uint32_t)nslot)
    return qk_fail(err, QK_BAD_ARGUMENT, "slot = %u: 0 to %d", m->slot, nslot - 1);
  if (m->dtype != QUARK__DTYPE__DTYPE_F32 && m->dtype != QUARK__DTYPE__DTYPE_F64)
    return qk_fail(err, QK_BAD_ARGUMENT, "dtype = %d: no such type", (int)m->dtype);
  if ((unsigned)m->basis >= QK_BASIS_COUNT)
    return qk_fail(err, QK_BAD_ARGUMENT, "basis = %d: no such basis", (int)m->basis);
  if (!isfinite(m->factor) || m->factor == 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "factor = %g: must be finite and not 0", m->factor);
  if (!(m->tol > 0 && m->tol < 1))
    return qk_fail(err, QK_BAD_ARGUMENT, "tol = %g: between 0 and 1", m->tol);
  if (m->max_iter < 1 || m->max_iter > QK_ITERATIONS_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "max_iter = %llu: 1 to %llu",
                   (unsigned long long)m->max_iter, QK_ITERATIONS_MAX);
  f.slot = (int32_t)m->slot;
  f.max_iter = (int64_t)m->max_iter;

  if (!f.upload)
    status = parse_column(m, &f, err);
  else if (m->shm_in == NULL)
    status = qk_fail(err, QK_BAD_ARGUMENT, "shm_in is missing: an upload needs it");
  else
    status = copy_text("shm_in", m->shm_in, f.shm_in, sizeof f.shm_in, err);
  if (status == QK_OK && m->shm_out != NULL)
    status = copy_text("shm_out", m->shm_out, f.shm_out, sizeof f.shm_out, err);
  if (status == QK_OK) *fill = f;
  return status;
}
