#include "daemon/engine/setup/loaded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/base/room.h"
#include "daemon/engine/action/links.h"
#include "daemon/engine/action/open.h"
#include "daemon/engine/gauge/clover_memory.h"
#include "daemon/engine/lattice/peers.h"
#include "daemon/engine/launch/launch.h"
#include "daemon/engine/setup/actions.h"
#include "daemon/engine/setup/grid.h"
#include "daemon/engine/setup/read_links.h"

enum { LINK_SITE_BYTES = 4 * 18 * 8 }; /* in double, on the host */

typedef struct loading {
  qk_comm_t *comm;
  const qk_load_t *load;
  qk_progress_fn *progress;
  void *arg;
  qk_clocks_t *clocks;
  qk_err_t *err;
  qk_deflate_kernel_t *kernel; /* of an action that is dense, else not used */
} loading_t;

/* The progress of what is called: each phase has its clock. arg: a loading_t. */
static void note(void *arg, const char *phase, int64_t done, int64_t total) {
  const loading_t *in = arg;
  qk_clocks_enter(in->clocks, phase);
  if (in->progress != NULL) in->progress(in->arg, phase, done, total);
}

static void enter(const loading_t *in, const char *phase) {
  note((void *)in, phase, 0, 1);
}

static int64_t wire_bytes(const qk_loaded_t *s) {
  return s->geom.local_volume * s->vectors * qk_geom_wire_reals(&s->geom) * (int)sizeof(double);
}

static qk_status_t init_device(qk_loaded_t *s) {
  qk_status_t status = qk_device_init(&s->dev, s->ops, s->ctx, &s->geom);
  return status == QK_OK ? s->ops->info(s->ctx, &s->device) : status;
}

/* One that was taken over is open. */
static qk_status_t open_device(const loading_t *in, qk_loaded_t *s) {
  qk_status_t status = QK_OK;
  if (s->ctx == NULL)
    status = qk_launch_device(in->comm, qk_choice_word(&qk_choice_backends, in->load->backend),
                              &in->load->place, &s->ops, &s->ctx, in->err);
  if (status == QK_OK) status = qk_device_explain(&s->dev, init_device(s), in->err);
  return qk_comm_agree(in->comm, status, in->err);
}

static qk_status_t lay_out(const loading_t *in, qk_loaded_t *s) {
  const qk_load_t *load = in->load;
  int dims[4], grid[4];
  bool given = load->dims[0] != 0;
  for (int mu = 0; mu < 4; mu++) dims[mu] = load->dims[mu];
  qk_status_t status = QK_OK;
  if (qk_comm_rank(in->comm) == 0)
    status = qk_gauge_probe(load->gauge, given ? dims : NULL, &s->info, in->err);
  status = qk_comm_agree(in->comm, status, in->err);
  if (status != QK_OK) return status;
  status = qk_comm_bcast(in->comm, &s->info, sizeof s->info, 0);
  if (status != QK_OK) return qk_fail(in->err, status, "the ranks could not share the header");
  s->info.ignore_checksum = load->ignore_checksum;
  const int *d = s->info.dims;
  if (given && memcmp(dims, d, sizeof dims) != 0)
    return qk_fail(in->err, QK_BAD_GEOMETRY, "the file holds %dx%dx%dx%d: dims ask for %dx%dx%dx%d",
                   d[0], d[1], d[2], d[3], dims[0], dims[1], dims[2], dims[3]);
  status = qk_open_fits(&load->values, 0, d[3], in->err);
  if (status != QK_OK) return status;
  status = qk_grid_choose(in->comm, load, s->ops->tuning, d, grid, s->grid_why, in->err);
  if (status != QK_OK) return status;
  status = qk_comm_set_grid(in->comm, grid, in->err);
  return status == QK_OK ? qk_action_geom(&load->values, in->comm, d, &s->geom, in->err) : status;
}

/* ---- choices, before anything large is allocated --------------------------------------------- */

static bool wants_multigrid(const qk_loaded_t *s) {
  return s->method == QK_SOLVER_MG;
}

/* The Krylov method: multigrid preconditions GCR. */
static qk_solver_choice_t krylov(const qk_loaded_t *s) {
  return wants_multigrid(s) ? QK_SOLVER_GCR : s->method;
}

/* Of the solvers of the action the best: multigrid, or the best beside it. */
static qk_solver_choice_t best_method(const qk_action_t *action, bool multigrid) {
  const char *const *m = action->method;
  if (!multigrid && strcmp(*m, "mg") == 0) m++;
  return (qk_solver_choice_t)qk_choice_solvers.number[qk_choice_find(&qk_choice_solvers, *m)];
}

/* Whether multigrid is possible here; `why` not. */
static qk_status_t multigrid_possible(const loading_t *in, const qk_loaded_t *s, qk_err_t *why) {
  const qk_status_t status = qk_mg_possible(&s->geom, s->ops->tuning, why);
  if (status != QK_OK || in->load->inner != QK_DOUBLE) return status;
  return qk_fail(why, QK_UNSUPPORTED, "the inner precision is double");
}

static qk_status_t choose_solver(const loading_t *in, qk_loaded_t *s) {
  const qk_load_t *load = in->load;
  qk_err_t why = {0};
  s->method = load->solver;
  if (load->solver == QK_SOLVER_AUTO) {
    const qk_action_t *action = qk_action_of(&load->values);
    const bool possible = !qk_load_deflates(load) && multigrid_possible(in, s, &why) == QK_OK;
    s->method = best_method(action, possible);
    if (!possible) qk_grid_advise(in->comm, load, s->ops->tuning, s->geom.global, &why);
    if (why.text[0] && qk_action_allows(action, "mg") && qk_comm_rank(in->comm) == 0)
      qk_info("setup", "%s instead of multigrid: %s", qk_choice_word(&qk_choice_solvers, s->method),
              why.text);
  }
  if (!wants_multigrid(s)) return QK_OK;
  if (load->inner == QK_DOUBLE)
    return qk_fail(in->err, QK_BAD_ARGUMENT,
                   "precision = double: multigrid iterates in single or half");
  s->mg_params = load->mg;
  if (s->vectors > 1 && load->mg.deflate > 0)
    return qk_fail(in->err, QK_BAD_ARGUMENT,
                   "mg-deflate = %d: multigrid of a doublet has no deflation, it must be none",
                   load->mg.deflate);
  if (s->vectors > 1) s->mg_params.deflate = -1; /* qk_mg_params_for */
  const qk_status_t status =
      qk_mg_params_complete(&s->geom, s->ops->tuning, &s->mg_params, in->err);
  if (status != QK_OK) qk_grid_advise(in->comm, load, s->ops->tuning, s->geom.global, in->err);
  return status;
}

/* Settings that have no effect here. */
static void tell_unused(const loading_t *in, const qk_loaded_t *s) {
  const qk_load_t *load = in->load;
  const qk_action_t *action = qk_action_of(&load->values);
  bool factors = false;
  for (int l = 0; l < QK_MG_LEVELS_MAX; l++) factors = factors || load->mg.level[l].twist != 0;
  if (qk_comm_rank(in->comm) != 0) return;
  if (factors && qk_action_twist(action, &load->values) == 0)
    qk_warn("setup", "mg-twist has no effect: %s has no twist with these parameters", action->name);
  if (load->evolve_from[0] != '\0' && !wants_multigrid(s))
    qk_warn("setup", "null vectors of %s are not used: the solver is %s, not multigrid",
            load->evolve_from, qk_choice_word(&qk_choice_solvers, s->method));
}

/* Double has all reals, for true residuals, until the links are known; so have links that colour
 * vectors hop over, which are not of SU(3). Blocks in half are fastest with 18: under multigrid,
 * and of slices. */
static int link_reals(const qk_load_t *load, bool blocks, qk_prec_t prec) {
  if (prec == QK_DOUBLE || qk_values_action(&load->values)->colour) return 18;
  if (load->link_reals > 0) return load->link_reals;
  return blocks && qk_prec_scaled(prec) ? 18 : 12;
}

/* Double for true residuals besides the inner precision. Multigrid is made in single. */
static void choose_operator(const loading_t *in, qk_loaded_t *s, qk_action_params_t *params) {
  const qk_load_t *load = in->load;
  *params = (qk_action_params_t){.values = load->values, .progress = note, .arg = (void *)in};
  memcpy(params->phase, load->phase, sizeof params->phase);
  params->want[QK_DOUBLE] = params->want[load->inner] = true;
  const bool blocks =
      wants_multigrid(s) || qk_action_slices(qk_action_of(&load->values), &load->values) > 1;
  for (int p = 0; p < QK_PRECS; p++) params->link_reals[p] = link_reals(load, blocks, (qk_prec_t)p);
  if (s->action->is_dense && load->deflate_from[0]) params->stored = &in->kernel->stored;
  if (s->ndeflate > 0) params->want[QK_SINGLE] = true;
  if (wants_multigrid(s)) {
    params->want[QK_SINGLE] = true;
    params->want[s->mg_params.level[0].smoother_prec] = true;
    params->want[s->mg_params.level[0].setup_prec] = true;
  }
}

/* Beside the links while the operator is made. */
static int term_site_bytes(const loading_t *in) {
  return in->load->clover[0] ? QK_CLOVER_TERM_SITE * (int)sizeof(double) : 0;
}

/* Host memory that nobody else counts on, and that pinned memory may take: a cgroup would kill for
 * more. Where the device is the host the plan looks after that. */
static double spare_host_memory(const loading_t *in, const qk_loaded_t *s) {
  qk_room_t room;
  qk_room_read("", &room);
  if (s->ops->host_memory || !room.bounded) return INFINITY;
  const int64_t reserve = qk_comm_host(in->comm) == 0 ? in->load->reserve : 0;
  return (double)(room.free - reserve) / qk_comm_local_size(in->comm) +
         (double)qk_pinned_bytes(s->pinned) -
         (double)s->geom.local_volume * (LINK_SITE_BYTES + term_site_bytes(in));
}

/* Free memory of all devices, minus a little for the backend. Ranks that compute on one host
 * share its memory, and share it with the front. Pinned memory that was taken over is used again,
 * or goes. */
static qk_status_t find_memory(const loading_t *in, qk_loaded_t *s, double *host) {
  double least[2] = {-(double)s->device.memory_free, -spare_host_memory(in, s)};
  if (s->ops->host_memory) {
    least[0] -= (double)qk_pinned_bytes(s->pinned) * qk_comm_local_size(in->comm);
    if (qk_comm_host(in->comm) == 0) least[0] += (double)in->load->reserve;
    least[0] = least[0] < 0 ? least[0] / qk_comm_local_size(in->comm) : 0;
  }
  qk_status_t status = qk_comm_max(in->comm, least, 2);
  if (status != QK_OK) return qk_fail(in->err, status, "the ranks could not compare memory");
  s->memory_free = (int64_t)(-0.97 * least[0]);
  *host = -least[1];
  return QK_OK;
}

/* How many sources wait beside the slots: fewer where they are large, or where `host` has no room
 * for their pinned memory and that of as many solutions twice. */
static int staging(const loading_t *in, const qk_loaded_t *s, double host) {
  const int64_t room = (int64_t)4 << 30, bytes = wire_bytes(s);
  const double fit = (host / (double)bytes - QK_PINNED_STAGING) / 3;
  int64_t most = bytes < room ? room / bytes : 1;
  if (fit < (double)most) most = fit > 0 ? (int64_t)fit : 0;
  return most < in->load->staging ? (int)most : in->load->staging;
}

/* What there is too little of on a host, and what could be changed. */
static void tell_bound(const loading_t *in, const qk_loaded_t *s) {
  const size_t n = strlen(in->err->text);
  snprintf(in->err->text + n, sizeof in->err->text - n,
           " (free by %.150s, less %.3g GB for uploads and results: max-memory)",
           s->device.memory_by, 1e-9 * (double)in->load->reserve);
}

/* What else would do than fewer slots, which the plan tells. Where the device is the host, more
 * devices are more ranks on more hosts. */
static void tell_advice(const loading_t *in, const qk_loaded_t *s, const qk_plan_input_t *input) {
  char advice[240];
  const size_t n = strlen(in->err->text);
  qk_plan_advise(input, &in->load->mg, s->ops->tuning, s->memory_free, qk_comm_size(in->comm),
                 advice, sizeof advice);
  if (advice[0] != '\0') snprintf(in->err->text + n, sizeof in->err->text - n, "; %s", advice);
}

static qk_status_t make_plan(const loading_t *in, qk_loaded_t *s, const qk_action_params_t *op) {
  const bool mg = wants_multigrid(s);
  double host = 0;
  qk_status_t status = find_memory(in, s, &host);
  const qk_plan_input_t input = {.ops = s->ops,
                                 .geom = &s->geom,
                                 .vectors = s->vectors,
                                 .action = qk_action_of(&op->values),
                                 .params = op,
                                 .method = krylov(s),
                                 .inner = in->load->inner,
                                 .nslot = in->load->nslot,
                                 .gcr_keep = mg ? QK_GCR_KEEP_PRECONDITIONED : QK_GCR_KEEP,
                                 .staging = staging(in, s, host),
                                 .single_rhs = in->load->single_rhs,
                                 .on_host = s->ops->host_memory,
                                 .deflate = s->ndeflate,
                                 .deflate_cut = s->deflate_cut,
                                 .mg = mg ? &s->mg_params : NULL};
  const int nvec = s->mg_params.level[0].nvec, ntest = s->mg_params.level[0].ntest;
  if (status == QK_OK)
    status = mg ? qk_plan_fit_vectors(&input, &in->load->mg, s->ops->tuning, s->memory_free,
                                      &s->mg_params, &s->plan, in->err)
                : qk_plan_fit(&input, s->memory_free, &s->plan, in->err);
  if (status == QK_DEVICE_MEMORY && s->ops->host_memory) tell_bound(in, s);
  if (status == QK_DEVICE_MEMORY) tell_advice(in, s, &input);
  if (status != QK_OK) return status;
  if (s->mg_params.level[0].nvec < nvec && qk_comm_rank(in->comm) == 0)
    qk_info("setup", "%d null vectors: %d would not fit", s->mg_params.level[0].nvec, nvec);
  if (mg && s->mg_params.level[0].ntest < ntest && qk_comm_rank(in->comm) == 0)
    qk_info("setup", "%d test vectors: %d would not fit", s->mg_params.level[0].ntest, ntest);
  if (mg && s->mg_params.together > in->load->mg.together && qk_comm_rank(in->comm) == 0)
    qk_info("setup", "null vectors are made %d at a time: all would not fit",
            s->mg_params.together);
  if (s->plan.parts == 0 && qk_comm_rank(in->comm) == 0)
    qk_info("setup", "no memory is kept for parts of the operator: requests for them may fail");
  s->nslot = s->plan.nslot;
  if (qk_comm_rank(in->comm) == 0)
    qk_info("setup", "%d slots%s: %.4g GB on each device, %.4g during setup, %.4g free%s%s",
            s->nslot, s->plan.compact ? ", compact" : "", 1e-9 * (double)s->plan.serving,
            1e-9 * (double)s->plan.setup, 1e-9 * (double)s->memory_free,
            s->device.memory_by[0] ? " by " : "", s->device.memory_by);
  return QK_OK;
}

/* ---- from links to solver -------------------------------------------------------------------- */

static qk_status_t build_solver(qk_loaded_t *s, bool single_rhs, qk_solver_t **solver,
                                qk_err_t *err) {
  qk_solver_params_t params = {.method = qk_choice_word(&qk_choice_solvers, krylov(s)),
                               .inner = s->inner,
                               .nslot = single_rhs ? 1 : s->nslot,
                               .compact = s->plan.compact && !single_rhs};
  if (s->mg != NULL) {
    params.check = 1;
    params.precond = qk_mg_service_precond(s->mg, single_rhs);
  }
  if (s->deflate != NULL) {
    params.deflation = s->deflate->flavour[0];
    params.deflation_minus = s->deflate->flavour[1];
  }
  return qk_solver_create(s->op, s->op->work, &params, solver, err);
}

static qk_status_t build_solvers(qk_loaded_t *s, qk_err_t *err) {
  qk_status_t status = build_solver(s, false, &s->solver, err);
  return status == QK_OK && s->plan.single_rhs ? build_solver(s, true, &s->single_rhs, err)
                                               : status;
}

/* While it serves, T is read in double, and by multigrid where it restricts; `all`: in every
 * precision, as for a setup of multigrid. */
static qk_status_t keep_local(const qk_loaded_t *s, bool all) {
  bool keep[QK_PRECS] = {false};
  if (s->op->ops->keep_local == NULL) return QK_OK;
  for (int p = 0; p < QK_PRECS; p++)
    keep[p] = all || (s->mg != NULL && (qk_prec_t)p == s->mg_params.level[0].smoother_prec);
  return qk_comm_agree(s->geom.comm, s->op->ops->keep_local(s->op, keep), NULL);
}

static void drop_solvers(qk_loaded_t *s) {
  qk_solver_destroy(s->single_rhs);
  qk_solver_destroy(s->solver);
  s->solver = s->single_rhs = NULL;
}

static qk_status_t build_multigrid(const loading_t *in, qk_loaded_t *s) {
  const qk_load_t *load = in->load;
  qk_mg_service_params_t params = {.mg = s->mg_params,
                                   .prec = load->inner,
                                   .nslot = s->nslot,
                                   .single_rhs = s->plan.single_rhs,
                                   .room = (size_t)s->plan.cycle_work,
                                   .checkpoint = load->checkpoint,
                                   .reads_only = load->reads_only,
                                   .shared = load->place.replicas > 1,
                                   .evolve_from = load->evolve_from,
                                   .evolve_path = load->evolve_path};
  params.identity = s->identity;
  params.identity.seed = s->mg_params.seed;
  return qk_mg_service_create(s->op, s->work, &params, note, (void *)in, &s->mg, in->err);
}

/* The clover term that the action is given, into *term, which the caller frees. */
static qk_status_t read_term(const loading_t *in, const qk_loaded_t *s, qk_action_params_t *op,
                             double **term) {
  const char *word = qk_value_word(&op->values, "clover");
  const uint64_t digest = strtoull(strchr(word, ':') + 1, NULL, 16);
  qk_clover_term_sum_t sum;
  *term = qk_malloc((size_t)s->geom.local_volume * (size_t)term_site_bytes(in));
  qk_status_t status =
      *term ? QK_OK : qk_fail(in->err, QK_NO_MEMORY, "no memory for a clover term");
  status = qk_comm_agree(in->comm, status, in->err);
  if (status != QK_OK) return status;
  status = qk_clover_memory_read(in->load->clover, digest, &s->geom, *term, &sum, in->err);
  op->term = *term;
  op->term_scale = sqrt(sum.squares / (12 * (double)s->geom.volume));
  return status;
}

static qk_status_t build_operator(const loading_t *in, qk_loaded_t *s, const qk_action_params_t *op,
                                  const double *links) {
  qk_action_params_t whole = *op;
  double *term = NULL;
  if (in->load->link_reals != 18 &&
      qk_links_are_exact(&op->values, s->check.unitarity, s->check.determinant))
    qk_plan_short_links(s->ops, &s->geom.lat, &whole, &s->plan);
  s->link_reals = whole.link_reals[in->load->inner];
  if (!in->load->clover[0])
    return qk_operator_create(&s->dev, s->work, links, &whole, &s->op, in->err);
  const qk_status_t status = read_term(in, s, &whole, &term);
  const qk_status_t made =
      status == QK_OK ? qk_operator_create(&s->dev, s->work, links, &whole, &s->op, in->err)
                      : status;
  qk_free(term);
  return made;
}

static qk_status_t find_low_modes(const loading_t *in, qk_loaded_t *s) {
  if (s->ndeflate == 0) return QK_OK;
  const qk_deflate_params_t params = {.n = s->ndeflate,
                                      .store = s->plan.deflate_store,
                                      .load = in->load,
                                      .identity = &s->identity,
                                      .cut = s->deflate_cut};
  enter(in, "eigenvectors");
  return qk_deflate_create(s->op, s->op->work, &params, note, (void *)in, &s->deflate, in->err);
}

static void identify(const qk_load_t *load, qk_loaded_t *s) {
  qk_mg_identity_t *id = &s->identity;
  *id = (qk_mg_identity_t){.gauge_digest = s->check.digest};
  qk_values_text(&load->values, QK_TEXT_CANONICAL, id->operator_text);
  memcpy(id->phase, load->phase, sizeof id->phase);
}

static qk_status_t build_from(const loading_t *in, qk_loaded_t *s, const qk_action_params_t *op,
                              const double *links) {
  identify(in->load, s);
  qk_status_t status = build_operator(in, s, op, links);
  if (status != QK_OK) return status;
  if (wants_multigrid(s)) {
    enter(in, "multigrid");
    status = build_multigrid(in, s);
    if (status == QK_BREAKDOWN && in->load->solver == QK_SOLVER_AUTO) {
      s->method = best_method(qk_action_of(&in->load->values), false);
      if (qk_comm_rank(in->comm) == 0)
        qk_warn("setup", "%s instead of multigrid: %s",
                qk_choice_word(&qk_choice_solvers, s->method), in->err->text);
      *in->err = (qk_err_t){0};
      status = QK_OK;
    }
    if (status != QK_OK) return status;
  }
  status = find_low_modes(in, s);
  status = status ? status : keep_local(s, false);
  if (status != QK_OK) return status;
  if (s->mg == NULL || s->vectors > 1)
    status = qk_work_make_room(s->op->work, (size_t)s->plan.work);
  status = qk_comm_agree(in->comm, status, in->err);
  if (status != QK_OK) return status;
  enter(in, "solver");
  return build_solvers(s, in->err);
}

/* The pages of pinned memory are found while the file is read and multigrid is set up. */
static qk_status_t begin_pinning(const loading_t *in, qk_loaded_t *s) {
  const bool local = qk_comm_local_size(in->comm) == qk_comm_size(in->comm); /* staging.h */
  const int n = QK_PINNED_STAGING + (local ? s->plan.staging + s->plan.leaving : 0);
  const int threads = s->ops->host_memory ? 0 : qk_launch_spare_threads(in->comm);
  const size_t bytes = (size_t)wire_bytes(s);
  qk_status_t status = QK_OK;
  if (s->pinned == NULL || !qk_pinned_serves(s->pinned, bytes, n)) {
    qk_pinned_destroy(s->pinned);
    s->pinned = NULL;
    status =
        qk_pinned_create(&s->dev, qk_host_pages(s->ops), bytes, n, threads, &s->pinned, in->err);
  }
  return qk_comm_agree(in->comm, status, in->err);
}

/* Device, lattice and all choices: nothing large yet but what threads begin. */
static qk_status_t prepare(const loading_t *in, qk_loaded_t *s, qk_action_params_t *op) {
  enter(in, "device");
  qk_status_t status = open_device(in, s);
  if (status != QK_OK) return status;
  status = lay_out(in, s);
  status = status ? status : qk_peers_create(&s->dev, in->err);
  if (status != QK_OK) return status;
  status = qk_deflate_check(&s->geom, in->load, &s->ndeflate, &s->deflate_cut, in->err);
  if (status != QK_OK) return status;
  status = choose_solver(in, s);
  if (status != QK_OK) return status;
  tell_unused(in, s);
  choose_operator(in, s, op);
  status = make_plan(in, s, op);
  return status == QK_OK ? begin_pinning(in, s) : status;
}

static qk_status_t reserve(const loading_t *in, qk_loaded_t *s, double **links) {
  const size_t bytes = (size_t)s->geom.local_volume * LINK_SITE_BYTES;
  qk_status_t status = qk_work_create(&s->dev, &s->work);
  *links = qk_malloc(bytes);
  if (status == QK_OK && *links == NULL)
    status = qk_fail(in->err, QK_NO_MEMORY, "no memory for %zu bytes of links", bytes);
  return qk_comm_agree(in->comm, qk_device_explain(&s->dev, status, in->err), in->err);
}

/* *links: of the caller until the setup has taken them, then NULL. */
static qk_status_t read_and_build(const loading_t *in, qk_loaded_t *s, const qk_action_params_t *op,
                                  double **links) {
  qk_status_t status = reserve(in, s, links);
  if (status != QK_OK) return status;
  enter(in, "read");
  status = qk_read_links(in->load, &s->dev, &s->info, in->clocks, note, (void *)in, *links,
                         &s->check, in->err);
  if (status != QK_OK) return status;
  status = build_from(in, s, op, *links);
  if (status != QK_OK) return status;
  status = qk_smear_cache_create(&s->dev, *links, &s->smear, in->err);
  if (status == QK_OK) *links = NULL;
  return status;
}

static qk_status_t build(const loading_t *in, qk_loaded_t *s) {
  qk_action_params_t op;
  double *links = NULL;
  qk_status_t status = prepare(in, s, &op);
  if (status == QK_OK) status = read_and_build(in, s, &op, &links);
  qk_free(links);
  return qk_device_explain(&s->dev, status, in->err);
}

/* s NULL: there is no memory for it. */
static void take_over(qk_loaded_t *s, qk_loaded_t *before, const qk_load_t *load) {
  if (before != NULL && s != NULL && before->backend == load->backend) {
    s->ops = before->ops;
    s->ctx = before->ctx;
    s->pinned = before->pinned;
    before->ctx = NULL;
    before->pinned = NULL;
  }
  qk_loaded_destroy(before);
}

qk_status_t qk_loaded_create(qk_comm_t *comm, const qk_load_t *load, qk_loaded_t *before,
                             qk_progress_fn *progress, void *arg, qk_loaded_t **setup,
                             qk_err_t *err) {
  qk_loaded_t *s = qk_calloc(1, sizeof *s);
  qk_deflate_kernel_t kernel = {0};
  const loading_t in = {comm, load, progress, arg, s != NULL ? &s->clocks : NULL, err, &kernel};
  qk_status_t status = QK_OK;
  take_over(s, before, load);
  if (s == NULL) status = qk_fail(err, QK_NO_MEMORY, "no memory for a setup");
  status = qk_comm_agree(comm, status, err);
  if (status == QK_OK) {
    s->backend = load->backend;
    s->fingerprint = load->fingerprint;
    s->replicas = load->place.replicas;
    s->inner = load->inner;
    memcpy(s->phase_t, load->phase[3], sizeof s->phase_t);
    s->action = qk_values_action(&load->values);
    s->mass = s->action->is_dense ? qk_value(&load->values, "mass") : 0;
    s->vectors = qk_action_vectors(s->action);
    qk_deflate_kernel_init(&kernel, load, &s->identity);
    status = build(&in, s);
    if (s->action->is_dense) s->deflate = kernel.told;
  }
  if (status == QK_OK) status = qk_device_explain(&s->dev, qk_loaded_count_memory(s), err);
  if (status != QK_OK) {
    qk_loaded_destroy(s);
    return status;
  }
  *setup = s;
  return QK_OK;
}

void qk_loaded_destroy(qk_loaded_t *setup) {
  if (setup == NULL) return;
  qk_smear_cache_destroy(setup->smear);
  qk_pinned_destroy(setup->pinned);
  drop_solvers(setup);
  qk_deflate_destroy(setup->deflate);
  qk_mg_service_destroy(setup->mg);
  if (setup->op != NULL) setup->op->ops->destroy(setup->op);
  qk_work_destroy(setup->work);
  qk_peers_destroy(&setup->dev);
  qk_device_fini(&setup->dev);
  if (setup->ctx != NULL) setup->ops->close(setup->ctx);
  qk_free(setup);
}

static qk_status_t refresh_and_build(qk_loaded_t *s, qk_mg_order_t order, qk_progress_fn *progress,
                                     void *arg, qk_err_t *err) {
  qk_status_t status = keep_local(s, true);
  if (status != QK_OK) return status;
  status = qk_mg_service_refresh(s->mg, order, progress, arg, err);
  if (status != QK_OK) return status;
  status = keep_local(s, false);
  if (status != QK_OK) return status;
  status = build_solvers(s, err);
  return status == QK_OK ? qk_loaded_count_memory(s) : status;
}

qk_status_t qk_loaded_refresh(qk_loaded_t *setup, qk_mg_order_t order, qk_progress_fn *progress,
                              void *arg, qk_err_t *err) {
  drop_solvers(setup);
  qk_status_t status = refresh_and_build(setup, order, progress, arg, err);
  return qk_device_explain(&setup->dev, status, err);
}

qk_status_t qk_loaded_count_memory(qk_loaded_t *setup) {
  uint64_t bytes[2] = {(uint64_t)setup->ops->allocated(setup->ctx), (uint64_t)qk_mem_bytes()};
  qk_status_t status = qk_comm_sum_u64(setup->geom.comm, bytes, 2);
  if (status != QK_OK) return status;
  setup->device_bytes = (int64_t)bytes[0];
  setup->host_bytes = (int64_t)bytes[1];
  return QK_OK;
}
