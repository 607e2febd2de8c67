#include "daemon/engine/setup.h"

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/engine/launch.h"

typedef struct loading {
  qk_comm_t *comm;
  const qk_load_t *load;
  qk_progress_fn *progress;
  void *arg;
  qk_err_t *err;
} loading_t;

qk_status_t qk_setup_explain(const qk_setup_t *setup, qk_status_t status, qk_err_t *err) {
  bool told = err->text[0] != '\0' && strcmp(err->text, qk_status_text(status)) != 0;
  if (status == QK_OK || told) return status;
  bool device = setup->ctx != NULL && (status == QK_DEVICE_MEMORY || status == QK_DEVICE_ERROR);
  const char *words = device ? setup->ops->last_error(setup->ctx) : "";
  *err = (qk_err_t){0};
  return qk_fail(err, status, "%s", words[0] != '\0' ? words : qk_status_text(status));
}

static void enter(const loading_t *in, const char *phase) {
  if (in->progress != NULL) in->progress(in->arg, phase, 0, 1);
}

static qk_status_t open_device(const loading_t *in, qk_setup_t *s) {
  qk_status_t status = qk_launch_device(in->comm, in->load->backend, &s->ops, &s->ctx, in->err);
  if (status == QK_OK) status = qk_setup_explain(s, s->ops->info(s->ctx, &s->device), in->err);
  return qk_comm_agree(in->comm, status, in->err);
}

static qk_status_t lay_out(const loading_t *in, qk_setup_t *s) {
  const qk_load_t *load = in->load;
  int dims[4], grid[4];
  bool given = load->dims[0] != 0;
  for (int mu = 0; mu < 4; mu++) {
    dims[mu] = load->dims[mu];
    grid[mu] = load->grid[mu];
  }
  qk_status_t status = QK_OK;
  if (qk_comm_rank(in->comm) == 0)
    status = qk_gauge_probe(load->gauge, given ? dims : NULL, &s->info, in->err);
  status = qk_comm_agree(in->comm, status, in->err);
  if (status != QK_OK) return status;
  status = qk_comm_bcast(in->comm, &s->info, sizeof s->info, 0);
  if (status != QK_OK) return qk_fail(in->err, status, "the ranks could not share the header");

  const int *d = s->info.dims;
  if (given && memcmp(dims, d, sizeof dims) != 0)
    return qk_fail(in->err, QK_BAD_GEOMETRY, "the file holds %dx%dx%dx%d: dims ask for %dx%dx%dx%d",
                   d[0], d[1], d[2], d[3], dims[0], dims[1], dims[2], dims[3]);
  status = qk_comm_choose_grid(qk_comm_size(in->comm), d, grid, in->err);
  if (status == QK_OK) status = qk_comm_set_grid(in->comm, grid, in->err);
  if (status == QK_OK) status = qk_geom_init(&s->geom, in->comm, d, in->err);
  return status;
}

static qk_status_t read_links(const loading_t *in, qk_setup_t *s, double *links) {
  qk_status_t status = qk_gauge_read(in->load->gauge, &s->info, &s->geom, links, &s->check,
                                     in->progress, in->arg, in->err);
  return status == QK_OK ? qk_gauge_judge(&s->info, &s->check, in->err) : status;
}

/* The solver needs double for true residuals and the inner precision; double keeps all 18 reals. */
static qk_status_t build_operator(const loading_t *in, qk_setup_t *s, const double *links) {
  const qk_load_t *load = in->load;
  qk_wilson_params_t params = {.mass = load->mass, .csw = load->csw};
  memcpy(params.phase, load->phase, sizeof params.phase);
  params.want[QK_DOUBLE] = params.want[load->inner] = true;
  params.link_reals[load->inner] = s->link_reals;
  params.link_reals[QK_DOUBLE] = 18;
  return qk_wilson_create(&s->dev, s->work, links, &params, &s->op, in->err);
}

static qk_status_t build_solver(const loading_t *in, qk_setup_t *s) {
  qk_solver_params_t params = {
      .method = s->solver_name, .inner = in->load->inner, .nslot = s->nslot};
  return qk_solver_create(s->op, s->work, &params, &s->solver, in->err);
}

static qk_status_t build(const loading_t *in, qk_setup_t *s) {
  double *links = NULL;
  qk_status_t status = open_device(in, s);
  if (status != QK_OK) return status;
  status = lay_out(in, s);
  if (status != QK_OK) goto out;

  s->dev = (qk_device_t){.ops = s->ops, .ctx = s->ctx, .geom = &s->geom};
  status = qk_work_create(&s->dev, &s->work);
  size_t bytes = (size_t)s->geom.local_volume * 72 * sizeof *links;
  links = qk_malloc(bytes);
  if (status == QK_OK && links == NULL)
    status = qk_fail(in->err, QK_NO_MEMORY, "no memory for %zu bytes of links", bytes);
  status = qk_comm_agree(in->comm, qk_setup_explain(s, status, in->err), in->err);
  if (status != QK_OK) goto out;

  enter(in, "read");
  status = read_links(in, s, links);
  if (status != QK_OK) goto out;
  enter(in, "clover");
  status = build_operator(in, s, links);
  if (status != QK_OK) goto out;
  enter(in, "solver");
  status = build_solver(in, s);
  if (status != QK_OK) goto out;
  status = qk_smear_cache_create(&s->dev, links, &s->smear, in->err);
  if (status == QK_OK) links = NULL;

out:
  qk_free(links);
  return qk_setup_explain(s, status, in->err);
}

qk_status_t qk_setup_create(qk_comm_t *comm, const qk_load_t *load, qk_progress_fn *progress,
                            void *arg, qk_setup_t **setup, qk_err_t *err) {
  loading_t in = {comm, load, progress, arg, err};
  qk_setup_t *s = qk_calloc(1, sizeof *s);
  qk_status_t status = QK_OK;
  if (s == NULL) status = qk_fail(err, QK_NO_MEMORY, "no memory for a setup");
  status = qk_comm_agree(comm, status, err);
  if (status == QK_OK) {
    s->nslot = load->nslot > 0 ? load->nslot : QK_SLOTS_CHOSEN;
    s->link_reals = load->link_reals > 0 ? load->link_reals : 12;
    s->solver_name = strcmp(load->solver, "auto") == 0 ? "bicgstab" : load->solver;
    memcpy(s->phase_t, load->phase[3], sizeof s->phase_t);
    status = build(&in, s);
  }
  if (status == QK_OK) status = qk_setup_explain(s, qk_setup_count_memory(s), err);
  if (status != QK_OK) {
    qk_setup_destroy(s);
    return status;
  }
  *setup = s;
  return QK_OK;
}

void qk_setup_destroy(qk_setup_t *setup) {
  if (setup == NULL) return;
  qk_smear_cache_destroy(setup->smear);
  qk_solver_destroy(setup->solver);
  if (setup->op != NULL) setup->op->ops->destroy(setup->op);
  qk_work_destroy(setup->work);
  if (setup->ctx != NULL) setup->ops->close(setup->ctx);
  qk_free(setup);
}

qk_status_t qk_setup_count_memory(qk_setup_t *setup) {
  uint64_t bytes[2] = {(uint64_t)setup->ops->allocated(setup->ctx), (uint64_t)qk_mem_bytes()};
  qk_status_t status = qk_comm_sum_u64(setup->geom.comm, bytes, 2);
  if (status != QK_OK) return status;
  setup->device_bytes = (int64_t)bytes[0];
  setup->host_bytes = (int64_t)bytes[1];
  return QK_OK;
}
