#include "client/libquark/request/pack.h"

#include <stdlib.h>

#include "proto/control.h"

Quark__Smearing *quark__pack_smearing(const quark_smearing_t *s, Quark__Smearing *m) {
  static const size_t params[] = {
      [QUARK_LINKS_AS_THEY_ARE] = 0, [QUARK_APE] = 1, [QUARK_STOUT] = 1, [QUARK_HYP] = 3};
  quark__smearing__init(m);
  m->alpha = s->alpha;
  m->steps = s->steps;
  m->has_shift = s->shift > 0;
  m->shift = s->shift;
  if (s->links == QUARK_LINKS_AS_THEY_ARE) return m;
  m->has_links = m->has_link_steps = m->has_link_spatial = true;
  m->links = (Quark__LinkSmear)s->links;
  m->n_link_param = (unsigned)s->links <= QUARK_HYP ? params[s->links] : 0;
  m->link_param = (double *)(uintptr_t)s->link_param;
  m->link_steps = s->link_steps;
  m->link_spatial = !s->link_all;
  return m;
}

/* NULL: there is none. Links alone are those of shifts. */
static Quark__Smearing *smearing_of(const quark_smearing_t *s, Quark__Smearing *m) {
  const bool any = s->steps > 0 || s->shift > 0 || s->links != QUARK_LINKS_AS_THEY_ARE;
  return any ? quark__pack_smearing(s, m) : NULL;
}

/* Members that a kind of source does not use are sent only if they are set: the daemon refuses
 * them. */
static void set_column(Quark__Column *m, const quark_column_t *c, quark_source_t source) {
  quark__column__init(m);
  m->x = c->x;
  m->y = c->y;
  m->z = c->z;
  m->t = c->t;
  m->spin = c->spin;
  m->colour = c->colour;
  m->seed = c->seed;
  m->px = c->px;
  m->py = c->py;
  m->pz = c->pz;
  m->t_every = c->t_every;
  m->request = c->request;
  m->rhs = c->rhs;
  m->gamma = c->gamma;
  m->flavour = c->flavour;
  m->has_x = m->has_y = m->has_z = source == QUARK_POINT;
  m->has_t = true;
  m->has_spin = m->has_colour = source != QUARK_SEQUENTIAL;
  m->has_seed = source == QUARK_Z2 || source == QUARK_Z4;
  m->has_px = c->px != 0;
  m->has_py = c->py != 0;
  m->has_pz = c->pz != 0;
  m->has_t_every = c->t_every != 0;
  m->has_request = c->request != 0;
  m->has_rhs = c->rhs != 0;
  m->has_gamma = c->gamma != 0;
  m->has_flavour = c->flavour != 0;
  m->vector = c->vector;
  m->slice = c->slice;
  m->has_vector = c->vector != 0;
  m->has_slice = c->slice != 0;
}

static Quark__Sink sink_of(const quark_params_t *p) {
  if (p->sink_file.path) return QUARK__SINK__SINK_FILE;
  if (p->keep) return QUARK__SINK__SINK_KEEP;
  if (p->project) return QUARK__SINK__SINK_PROJECT;
  return p->discard ? QUARK__SINK__SINK_NONE : QUARK__SINK__SINK_DOWNLOAD;
}

/* A file as a message, whose path is still that of the user; NULL: there is none. */
static Quark__File *file_of(const quark_file_t *file, Quark__File *m) {
  if (!file->path) return NULL;
  quark__file__init(m);
  m->path = (char *)(uintptr_t)file->path;
  m->has_offset = file->offset > 0;
  m->offset = file->offset;
  m->has_size = file->size > 0;
  m->size = file->size;
  return m;
}

bool quark__has_grid(const uint32_t grid[4]) {
  return grid[0] || grid[1] || grid[2] || grid[3];
}

/* What older daemons do not know is said only if it is not the default. */
static void set_features(Quark__Submit *submit, const quark_params_t *p) {
  submit->has_tol_abs = p->tol_abs != 0;
  submit->tol_abs = p->tol_abs;
  submit->has_tol_hq = p->tol_hq != 0;
  submit->tol_hq = p->tol_hq;
  submit->has_single_rhs = p->batch_only;
  submit->single_rhs = !p->batch_only;
  submit->has_flavour = p->flavour != 0 && p->flavour != 1;
  submit->flavour = p->flavour;
  submit->n_masses = p->nmass;
  submit->masses = (double *)(uintptr_t)p->mass;
  submit->has_five_d = submit->five_d = p->five_d;
  submit->has_work = p->work != QUARK_WORK_SOLVE;
  submit->work = (Quark__Work)p->work;
  submit->n_grid = quark__has_grid(p->grid) ? 4 : 0;
  submit->grid = (uint32_t *)(uintptr_t)p->grid;
  submit->has_part = submit->n_grid > 0 && p->part >= 0;
  submit->part = (uint32_t)p->part;
  submit->has_dagger = submit->dagger = p->dagger;
  submit->has_parity = p->parity != QUARK_PARITY_ALL;
  submit->parity = (Quark__Parity)p->parity;
  submit->has_schur = p->schur != QUARK_SCHUR_NONE;
  submit->schur = (Quark__Schur)p->schur;
}

uint8_t *quark__pack_submit(uint64_t number, const quark_params_t *p, const char *setup,
                            size_t *bytes) {
  const bool fields = p->source == QUARK_UPLOAD || p->source == QUARK_FILE;
  const size_t n = fields ? 0 : p->nrhs / (p->nmass > 0 ? p->nmass : 1);
  Quark__Column *column = calloc(n ? n : 1, sizeof *column),
                **list = calloc(n ? n : 1, sizeof *list);
  Quark__Submit submit = QUARK__SUBMIT__INIT;
  Quark__Smearing smear;
  Quark__File from, to;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  uint8_t *packed = NULL;
  if (!column || !list) goto out;
  for (size_t i = 0; i < n; i++) {
    set_column(&column[i], &p->column[i], p->source);
    list[i] = &column[i];
  }
  submit.request = number;
  submit.setup = (char *)(uintptr_t)(p->setup ? p->setup : setup);
  submit.nrhs = p->nrhs;
  submit.dtype = (Quark__Dtype)p->dtype;
  submit.has_basis = submit.has_normalisation = submit.has_max_iter = submit.has_deadline_ms = true;
  submit.basis = (Quark__Basis)p->basis;
  submit.normalisation = (Quark__Normalisation)p->normalisation;
  submit.tol = p->tol;
  submit.max_iter = p->max_iter;
  set_features(&submit, p);
  submit.deadline_ms = p->deadline_ms;
  submit.has_priority = true;
  submit.priority = (uint32_t)p->priority;
  submit.source = (Quark__SourceKind)p->source;
  submit.vectors = p->source == QUARK_VECTOR ? (char *)(uintptr_t)p->vectors : NULL;
  submit.project = (char *)(uintptr_t)p->project;
  submit.has_project_count = p->project != NULL;
  submit.project_count = p->project_count;
  submit.column = list;
  submit.n_column = n;
  submit.sink = sink_of(p);
  submit.smear = smearing_of(&p->smear, &smear);
  submit.has_keep_ms = p->keep_ms > 0;
  submit.keep_ms = p->keep_ms;
  submit.has_detach_ms = p->detach_ms > 0;
  submit.detach_ms = p->detach_ms;
  if (p->source == QUARK_FILE) submit.source_file = file_of(&p->source_file, &from);
  submit.sink_file = file_of(&p->sink_file, &to);
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_SUBMIT;
  message.submit = &submit;
  packed = qk_control_pack(&message.base, bytes);
out:
  free(list);
  free(column);
  return packed;
}

static void set_channel(Quark__Channel *m, const quark_channel_t *c) {
  quark__channel__init(m);
  m->kind = (Quark__ChannelKind)c->kind;
  m->has_sink = m->has_source = c->kind == QUARK_MESON;
  m->sink = c->sink;
  m->source = c->source;
}

uint8_t *quark__pack_contract(uint64_t number, const quark_contraction_t *c, size_t *bytes) {
  Quark__Channel *channel = calloc(c->nchannel, sizeof *channel),
                 **list = calloc(c->nchannel, sizeof *list);
  Quark__Contraction m = QUARK__CONTRACTION__INIT;
  Quark__Contract contract = QUARK__CONTRACT__INIT;
  Quark__Smearing sink;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  uint8_t *packed = NULL;
  if (!channel || !list) goto out;
  for (uint32_t i = 0; i < c->nchannel; i++) {
    set_channel(&channel[i], &c->channel[i]);
    list[i] = &channel[i];
  }
  m.request_a = c->request_a;
  m.has_first_a = true;
  m.first_a = c->first_a;
  m.has_request_b = m.has_first_b = c->request_b > 0;
  m.request_b = c->request_b;
  m.first_b = c->first_b;
  m.channel = list;
  m.n_channel = c->nchannel;
  m.momentum = (int32_t *)(uintptr_t)c->momentum;
  m.n_momentum = 3 * (size_t)c->nmomentum;
  m.origin = (int32_t *)(uintptr_t)c->origin;
  m.n_origin = 4;
  m.sink = smearing_of(&c->sink, &sink);
  contract.request = number;
  contract.contraction = &m;
  contract.has_deadline_ms = true;
  contract.deadline_ms = c->deadline_ms;
  contract.has_priority = true;
  contract.priority = (uint32_t)c->priority;
  contract.has_detach_ms = c->detach_ms > 0;
  contract.detach_ms = c->detach_ms;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_CONTRACT;
  message.contract = &contract;
  packed = qk_control_pack(&message.base, bytes);
out:
  free(list);
  free(channel);
  return packed;
}
