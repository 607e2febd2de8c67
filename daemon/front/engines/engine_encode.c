#include "daemon/front/engines/engine_encode.h"

#include "daemon/base/assert.h"
#include "daemon/front/job/masses.h"
#include "daemon/front/settings/operator.h"
#include "proto/choices.h"
#include "proto/control.h"
#include "proto/engine.pb-c.h"

/* An envelope around one body: BODY_<NAME> and the member <name> of the generated union. */
#define ENVELOPE(NAME, name, pointer)                                                              \
  ((Quark__Engine__FrontMessage){                                                                  \
      .base = PROTOBUF_C_MESSAGE_INIT(&quark__engine__front_message__descriptor),                  \
      .body_case = QUARK__ENGINE__FRONT_MESSAGE__BODY_##NAME,                                      \
      .name = (pointer)})

static uint8_t *pack(const Quark__Engine__FrontMessage *message, size_t *bytes) {
  return qk_control_pack(&message->base, bytes);
}

/* The settings of multigrid that were given; room for QK_MG_KEY_COUNT. */
static size_t list_multigrid(const qk_settings_t *s, Quark__Setting *setting,
                             Quark__Setting **list) {
  static const char *const keys[] = {
#define X(name, key, form, help) key,
      QK_MG_KEYS(X)
#undef X
  };
  size_t n = 0;
  for (int k = 0; k < QK_MG_KEY_COUNT; k++) {
    if (s->mg[k] == NULL) continue;
    setting[n] = (Quark__Setting)QUARK__SETTING__INIT;
    setting[n].key = (char *)keys[k];
    setting[n].value = (char *)s->mg[k];
    list[n] = &setting[n];
    n++;
  }
  return n;
}

/* What an engine needs to know of the others of its setup, and of devices. */
static void set_place(const qk_settings_t *s, qk_engine_replica_t replica,
                      Quark__Engine__Load *load) {
  load->has_replicas = load->has_replica = s->replicas > 1;
  load->replicas = (uint32_t)s->replicas;
  load->replica = (uint32_t)replica.number;
  load->has_write = load->write = s->replicas > 1 && replica.writes;
  load->n_device = (size_t)s->ndevices;
  load->device = (uint32_t *)s->device;
  load->bind = s->replicas > 1 ? s->numa != QK_NUMA_OFF : s->numa == QK_NUMA_ON;
  load->has_bind = load->bind;
}

uint8_t *qk_engine_encode_load(const qk_settings_t *s, qk_engine_replica_t replica,
                               const char *checkpoint, const qk_engine_start_t *start,
                               uint64_t fingerprint, int64_t reserve, size_t *bytes) {
  Quark__Engine__Load load = QUARK__ENGINE__LOAD__INIT;
  Quark__Setting setting[QK_MG_KEY_COUNT], *settings[QK_MG_KEY_COUNT];
  qk_operator_fields_t fields;
  uint32_t dims[4], grid[4];
  char fix[QK_FIX_TEXT_MAX + 1];
  for (int mu = 0; mu < 4; mu++) {
    dims[mu] = (uint32_t)s->dims[mu];
    grid[mu] = (uint32_t)s->grid[mu];
  }
  load.gauge = (char *)(start && start->memory[0] ? start->memory : s->gauge);
  load.n_dims = s->dims[0] > 0 ? 4 : 0;
  load.dims = dims;
  qk_operator_list(&s->op, QK_TEXT_CANONICAL, &fields);
  load.action = fields.action;
  load.n_parameter = fields.n_parameter;
  load.parameter = fields.parameter;
  load.has_ignore_checksum = load.ignore_checksum = s->ignore_checksum;
  if (s->fix.landau || s->fix.coulomb) load.fix_gauge = qk_fix_text(&s->fix, fix);
  load.n_boundary = 8;
  load.boundary = (double *)s->boundary;
  load.n_grid = s->grid[0] > 0 ? 4 : 0;
  load.grid = grid;
  load.backend = (char *)qk_settings_backend(s);
  load.solver = (char *)qk_settings_solver(s);
  load.inner = (Quark__Engine__Precision)qk_choice_precisions.number[s->precision];
  load.slots = (uint32_t)s->slots;
  load.link_reals = (uint32_t)qk_settings_link_reals(s);
  load.has_single_rhs = true;
  load.single_rhs = s->single_rhs;
  load.has_staging = true;
  load.staging = (uint32_t)s->staging;
  load.has_reserve = true;
  load.reserve = (uint64_t)reserve;
  load.has_deflate = s->deflate > 0;
  load.deflate = (uint32_t)s->deflate;
  load.deflate_from = (char *)s->deflate_from;
  if (start && (s->deflate > 0 || s->deflate_from) && start->vectors[0])
    load.deflate_file = (char *)start->vectors;
  load.has_fingerprint = fingerprint != 0;
  load.fingerprint = fingerprint;
  load.n_multigrid = list_multigrid(s, setting, settings);
  load.multigrid = settings;
  load.checkpoint = checkpoint[0] ? (char *)checkpoint : NULL;
  if (start && start->term[0]) load.clover = (char *)start->term;
  if (start && start->from[0]) load.evolve_from = (char *)start->from;
  if (start && start->from[0] && start->path[0]) load.evolve_path = (char *)start->path;
  set_place(s, replica, &load);
  return pack(&ENVELOPE(LOAD, load, &load), bytes);
}

uint8_t *qk_engine_encode_fill(uint32_t entry, uint64_t serial, const qk_rhs_t *rhs,
                               qk_fill_hint_t hint, size_t *bytes) {
  const qk_job_t *job = rhs->job;
  Quark__Engine__Fill fill = QUARK__ENGINE__FILL__INIT;
  fill.entry = entry;
  fill.serial = serial;
  fill.source = job->source == QUARK__SOURCE_KIND__SOURCE_FILE ? QUARK__SOURCE_KIND__SOURCE_UPLOAD
                                                               : job->source;
  fill.column = job->column ? &job->column[rhs->index] : NULL;
  fill.smear = job->smear;
  fill.shm_in = rhs->source ? rhs->source->name : NULL;
  if (rhs->uses[0]) {
    fill.shm_in = rhs->uses[0]->solution->name;
    fill.has_in_dtype = true;
    fill.in_dtype = rhs->uses[0]->job->dtype;
    fill.has_in_parity = true;
    fill.in_parity = rhs->uses[0]->job->parity;
  }
  fill.has_slab_first = fill.has_slab_count = qk_rhs_slab(rhs, &fill.slab_first, &fill.slab_count);
  fill.shm_out = rhs->solution ? rhs->solution->name : NULL;
  if (job->vectors[0]) fill.vectors = (char *)job->vectors;
  if (job->project[0]) fill.project = (char *)job->project;
  fill.has_project_count = job->project[0] != '\0';
  fill.project_count = job->project_count;
  fill.dtype = job->dtype;
  fill.basis = job->basis;
  fill.factor = job->factor;
  fill.tol = job->tol;
  fill.has_tol_abs = job->tol_abs > 0;
  fill.tol_abs = job->tol_abs;
  fill.has_tol_hq = job->tol_hq > 0;
  fill.tol_hq = job->tol_hq;
  fill.has_single_rhs = !job->single_rhs;
  fill.single_rhs = job->single_rhs;
  fill.max_iter = job->max_iter;
  fill.has_flavour = job->flavour != 1;
  fill.flavour = job->flavour;
  fill.has_five_d = fill.five_d = job->five_d;
  fill.has_work = job->work != QUARK__WORK__WORK_SOLVE;
  fill.work = job->work;
  fill.has_dagger = fill.dagger = job->dagger;
  fill.has_parity = job->parity != QUARK__PARITY__PARITY_ALL;
  fill.parity = job->parity;
  fill.has_schur = job->schur != QUARK__SCHUR__SCHUR_NONE;
  fill.schur = job->schur;
  fill.has_mass = fill.has_family = fill.has_block = fill.has_block_left = job->nmass > 0;
  if (job->nmass > 0) {
    fill.mass = qk_rhs_mass(rhs);
    fill.family = qk_rhs_family(rhs, job->number);
    fill.block = qk_rhs_block(rhs, job->number);
    fill.block_left = qk_rhs_block_left(rhs);
  }
  fill.has_order = true;
  fill.order = hint.order;
  fill.has_backlog = true;
  fill.backlog = hint.backlog;
  return pack(&ENVELOPE(FILL, fill, &fill), bytes);
}

/* Names of the segments of a propagator whose first column is given; returns their number. */
static size_t name_columns(qk_rhs_t *first, char *name[QK_PROPAGATOR_COLUMNS]) {
  const uint32_t n = first->job->shape.columns;
  QK_ASSERT(n <= QK_PROPAGATOR_COLUMNS);
  for (uint32_t i = 0; i < n; i++) name[i] = first[i].solution->name;
  return n;
}

uint8_t *qk_engine_encode_contract(uint64_t serial, const qk_rhs_t *rhs, size_t *bytes) {
  Quark__Engine__Contract contract = QUARK__ENGINE__CONTRACT__INIT;
  char *a[QK_PROPAGATOR_COLUMNS], *b[QK_PROPAGATOR_COLUMNS];
  contract.serial = serial;
  contract.contraction = rhs->job->contraction;
  contract.n_shm_a = name_columns(rhs->uses[0], a);
  contract.shm_a = a;
  contract.dtype_a = rhs->uses[0]->job->dtype;
  if (rhs->uses[1]) {
    contract.n_shm_b = name_columns(rhs->uses[1], b);
    contract.shm_b = b;
    contract.has_dtype_b = true;
    contract.dtype_b = rhs->uses[1]->job->dtype;
  }
  contract.shm_out = rhs->solution->name;
  return pack(&ENVELOPE(CONTRACT, contract, &contract), bytes);
}

uint8_t *qk_engine_encode_eigen(uint64_t serial, const Quark__EigenProblem *problem,
                                const qk_rhs_t *field, const char *shm_out, const char *file,
                                bool restore, size_t *bytes) {
  char memory[QK_SHM_NAME_MAX + 16];
  Quark__Engine__Eigen eigen = QUARK__ENGINE__EIGEN__INIT;
  if (field) {
    snprintf(memory, sizeof memory, "memory:%s:%s", field->solution->name,
             field->job->dtype == QUARK__DTYPE__DTYPE_F32 ? "f32" : "f64");
    eigen.memory = memory;
  }
  eigen.serial = serial;
  eigen.problem = (Quark__EigenProblem *)problem;
  eigen.shm_out = (char *)shm_out;
  eigen.file = *file ? (char *)file : NULL;
  eigen.has_restore = eigen.restore = restore;
  return pack(&ENVELOPE(EIGEN, eigen, &eigen), bytes);
}

uint8_t *qk_engine_encode_eigen_cancel(uint64_t serial, size_t *bytes) {
  Quark__Engine__EigenCancel cancel = QUARK__ENGINE__EIGEN_CANCEL__INIT;
  cancel.serial = serial;
  return pack(&ENVELOPE(EIGEN_CANCEL, eigen_cancel, &cancel), bytes);
}

uint8_t *qk_engine_encode_eigen_drop(const char *name, size_t *bytes) {
  Quark__Engine__EigenDrop drop = QUARK__ENGINE__EIGEN_DROP__INIT;
  drop.name = (char *)name;
  return pack(&ENVELOPE(EIGEN_DROP, eigen_drop, &drop), bytes);
}

uint8_t *qk_engine_encode_cancel(uint32_t entry, uint64_t serial, size_t *bytes) {
  Quark__Engine__CancelFill cancel = QUARK__ENGINE__CANCEL_FILL__INIT;
  cancel.entry = entry;
  cancel.serial = serial;
  return pack(&ENVELOPE(CANCEL, cancel, &cancel), bytes);
}

uint8_t *qk_engine_encode_adopt(uint64_t nonce, size_t *bytes) {
  Quark__Engine__Adopt adopt = QUARK__ENGINE__ADOPT__INIT;
  adopt.nonce = nonce;
  return pack(&ENVELOPE(ADOPT, adopt, &adopt), bytes);
}

uint8_t *qk_engine_encode_refresh(uint32_t kind, uint64_t number, bool write, size_t *bytes) {
  Quark__Engine__Refresh refresh = QUARK__ENGINE__REFRESH__INIT;
  refresh.kind = kind;
  refresh.number = number;
  refresh.write = write;
  return pack(&ENVELOPE(REFRESH, refresh, &refresh), bytes);
}

uint8_t *qk_engine_encode_ping(size_t *bytes) {
  Quark__Engine__FrontPing ping = QUARK__ENGINE__FRONT_PING__INIT;
  return pack(&ENVELOPE(PING, ping, &ping), bytes);
}

uint8_t *qk_engine_encode_stop(size_t *bytes) {
  Quark__Engine__Stop stop = QUARK__ENGINE__STOP__INIT;
  return pack(&ENVELOPE(STOP, stop, &stop), bytes);
}
