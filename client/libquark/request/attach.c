#include "client/libquark/request/attach.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/libquark/connection/error.h"
#include "client/libquark/request/submit.h"

static uint8_t *pack_attach(uint64_t number, size_t *bytes) {
  Quark__Attach attach = QUARK__ATTACH__INIT;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  attach.request = number;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_ATTACH;
  message.attach = &attach;
  return qk_control_pack(&message.base, bytes);
}

/* ---- what the daemon says of a request ---- */

static quark_column_t column_of(const Quark__Column *m) {
  return (quark_column_t){.x = m->x,
                          .y = m->y,
                          .z = m->z,
                          .t = m->t,
                          .spin = m->spin,
                          .colour = m->colour,
                          .seed = m->seed,
                          .px = m->px,
                          .py = m->py,
                          .pz = m->pz,
                          .t_every = m->t_every,
                          .request = m->request,
                          .rhs = m->rhs,
                          .gamma = m->gamma,
                          .flavour = m->flavour,
                          .vector = m->vector,
                          .slice = m->slice};
}

quark_smearing_t quark__read_smearing(const Quark__Smearing *m) {
  quark_smearing_t s = {0};
  if (!m) return s;
  s.alpha = m->alpha;
  s.steps = m->steps;
  s.shift = m->shift;
  s.links = (quark_link_smear_t)m->links;
  s.link_steps = m->link_steps;
  s.link_all = !m->link_spatial;
  for (size_t i = 0; i < m->n_link_param && i < 3; i++) s.link_param[i] = m->link_param[i];
  return s;
}

/* *path holds the name. False: no memory. */
static bool read_file(const Quark__File *m, char **path, quark_file_t *file) {
  if (!m) return true;
  *path = strdup(m->path);
  *file = (quark_file_t){.path = *path, .offset = m->offset, .size = m->size};
  return *path != NULL;
}

static bool read_submit(quark_attached_t *a, request_t *r, const Quark__Submit *m) {
  quark_params_t *p = &a->params;
  quark_params_init(p);
  p->nrhs = m->nrhs;
  p->dtype = (quark_dtype_t)m->dtype;
  p->basis = (quark_basis_t)m->basis;
  p->normalisation = (quark_normalisation_t)m->normalisation;
  p->tol = m->tol;
  p->tol_abs = m->tol_abs;
  p->tol_hq = m->tol_hq;
  p->batch_only = !m->single_rhs;
  p->max_iter = m->max_iter;
  p->flavour = m->flavour < 0 ? -1 : 1;
  p->five_d = m->five_d;
  if (m->n_masses > 0) {
    r->mass = calloc(m->n_masses, sizeof *r->mass);
    if (!r->mass) return false;
    memcpy(r->mass, m->masses, m->n_masses * sizeof *r->mass);
    p->mass = r->mass;
    p->nmass = (uint32_t)m->n_masses;
  }
  p->work = (quark_work_t)m->work;
  p->dagger = m->dagger;
  p->parity = (quark_parity_t)m->parity;
  p->schur = (quark_schur_t)m->schur;
  for (size_t mu = 0; mu < 4 && m->n_grid == 4; mu++) p->grid[mu] = m->grid[mu];
  p->part = m->has_part && m->part <= INT32_MAX ? (int32_t)m->part : -1;
  p->deadline_ms = m->deadline_ms;
  p->priority = (int)m->priority;
  p->source = (quark_source_t)m->source;
  p->discard = m->sink == QUARK__SINK__SINK_NONE;
  p->keep = m->sink == QUARK__SINK__SINK_KEEP;
  p->keep_ms = m->keep_ms;
  p->detach_ms = m->detach_ms;
  p->smear = quark__read_smearing(m->smear);
  if (m->vectors && !(p->vectors = r->vectors = strdup(m->vectors))) return false;
  if (m->project && !(p->project = r->project = strdup(m->project))) return false;
  p->project_count = m->project_count;
  if (!read_file(m->source_file, &r->paths[0], &p->source_file) ||
      !read_file(m->sink_file, &r->paths[1], &p->sink_file))
    return false;
  if (m->n_column == 0) return true;
  r->column = calloc(m->n_column, sizeof *r->column);
  if (!r->column) return false;
  for (size_t i = 0; i < m->n_column; i++) r->column[i] = column_of(m->column[i]);
  p->column = r->column;
  return true;
}

void quark__attach_read_locked(quark_connection_t *conn, const Quark__Attached *m) {
  request_t *r = quark__request_find_locked(conn, m->accepted->request);
  if (!r || !r->attached) return;
  r->attaching = false;
  if (r->state == REQUEST_SUBMITTED) {
    quark_attached_t *a = r->attached;
    const uint32_t nrhs = m->submit ? m->submit->nrhs : 1;
    a->contraction = m->contract != NULL;
    a->field = m->field_open != NULL;
    a->eigen = m->eigen != NULL;
    a->bytes = m->accepted->field_bytes;
    a->uploaded = m->accepted->upload_next;
    a->params.nrhs = nrhs;
    r->rhs = nrhs <= QK_REQUEST_RHS_MAX ? calloc(nrhs, sizeof *r->rhs) : NULL;
    if (!r->rhs || (m->submit && !read_submit(a, r, m->submit))) {
      quark__request_fail_locked(r, QUARK_NO_MEMORY, "no memory for a request");
      return;
    }
    r->nrhs = nrhs;
    r->keep = a->params.keep || a->field;
  }
  quark__request_accepted_locked(conn, m->accepted);
}

/* ---- the user's side ---- */

quark_code_t quark_attach(quark_connection_t *conn, uint64_t request, quark_attached_t *attached,
                          quark_error_t *err) {
  pthread_mutex_lock(&conn->lock);
  quark_code_t code = quark__check_alive_locked(conn, err);
  if (code == QUARK_OK && quark__request_find_locked(conn, request))
    code = quark__fail(err, QUARK_BAD_ARGUMENT, "request %llu is one of this connection",
                       (unsigned long long)request);
  if (code == QUARK_OK) {
    request_t *r = calloc(1, sizeof *r);
    if (r) {
      r->number = request;
      r->residual = NAN;
      r->attaching = true;
      r->attached = calloc(1, sizeof *r->attached);
      if (r->attached) r->submit = pack_attach(request, &r->submit_bytes);
    }
    code = quark__submit_locked(conn, r, "ATTACH", &request, NULL, err);
    if (code == QUARK_OK) *attached = *quark__request_find_locked(conn, request)->attached;
  }
  pthread_mutex_unlock(&conn->lock);
  return code;
}
