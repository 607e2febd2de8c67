#include "tests/support/rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/lattice/peers.h"
#include "tests/support/values.h"

qk_status_t rig_contract(const qk_contract_t *what, int nchannel, const qk_channel_id_t channel[],
                         double *out, qk_err_t *err) {
  qk_contractor_t *c = NULL;
  qk_status_t status = qk_contractor_create(what->a->dev, &c);
  if (status) return qk_fail(err, status, "no memory for a contractor");
  status = qk_contract_begin(c, what, nchannel, channel, err);
  if (!status) status = qk_contract_end(c, what, nchannel, channel, out, err);
  qk_contractor_destroy(c);
  return status;
}

void rig_must(qk_status_t status, const char *what, const qk_err_t *err) {
  if (status == QK_OK) return;
  fprintf(stderr, "%s: %s%s%s\n", what, qk_status_text(status), err && err->text[0] ? ": " : "",
          err ? err->text : "");
  abort();
}

static const char *backend(void) {
  const char *name = getenv("QK_BACKEND");
  return name ? name : "cpu";
}

void rig_print(const qk_rig_t *rig, const char *gauge, const char *what) {
  const int *dims = rig->geom.global;
  qk_device_info_t info;
  rig_must(rig->dev.ops->info(rig->dev.ctx, &info), "device", NULL);
  printf("%s, %dx%dx%dx%d, %s, %s (%s)\n", gauge, dims[0], dims[1], dims[2], dims[3], what,
         info.name, rig->dev.ops->name);
}

bool rig_backend_present(void) {
  const qk_ops_t *ops = qk_ops_by_name(backend());
  qk_ops_ctx_t *ctx;
  qk_err_t err = {0};
  if (ops && ops->open(0, &ctx, &err) == QK_OK) {
    ops->close(ctx);
    return true;
  }
  fprintf(stderr, "backend %s: %s: skipped\n", backend(), err.text);
  return false;
}

/* ---- links ----------------------------------------------------------------------------------- */

static uint64_t splitmix(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static double uniform(uint64_t *state) {
  return (double)(int64_t)splitmix(state) * 0x1p-63;
}

/* Rows 1 and 2 by Gram-Schmidt, row 3 = conj(row 1 x row 2). */
static void make_su3(double u[3][3][2]) {
  double dot[2] = {0, 0}, norm = 0;
  for (int c = 0; c < 3; c++) norm += u[0][c][0] * u[0][c][0] + u[0][c][1] * u[0][c][1];
  for (int c = 0; c < 3; c++) {
    u[0][c][0] /= sqrt(norm);
    u[0][c][1] /= sqrt(norm);
    dot[0] += u[0][c][0] * u[1][c][0] + u[0][c][1] * u[1][c][1];
    dot[1] += u[0][c][0] * u[1][c][1] - u[0][c][1] * u[1][c][0];
  }
  norm = 0;
  for (int c = 0; c < 3; c++) {
    u[1][c][0] -= dot[0] * u[0][c][0] - dot[1] * u[0][c][1];
    u[1][c][1] -= dot[0] * u[0][c][1] + dot[1] * u[0][c][0];
    norm += u[1][c][0] * u[1][c][0] + u[1][c][1] * u[1][c][1];
  }
  for (int c = 0; c < 3; c++)
    for (int k = 0; k < 2; k++) u[1][c][k] /= sqrt(norm);
  for (int c = 0; c < 3; c++) {
    const double *a = u[0][(c + 1) % 3], *b = u[1][(c + 2) % 3];
    const double *d = u[0][(c + 2) % 3], *e = u[1][(c + 1) % 3];
    u[2][c][0] = a[0] * b[0] - a[1] * b[1] - (d[0] * e[0] - d[1] * e[1]);
    u[2][c][1] = -(a[0] * b[1] + a[1] * b[0] - (d[0] * e[1] + d[1] * e[0]));
  }
}

static void random_links(double *links, int64_t n, uint64_t seed) {
  for (int64_t i = 0; i < 18 * n; i++) links[i] = uniform(&seed);
  for (int64_t i = 0; i < n; i++) make_su3((double(*)[3][2])(links + 18 * i));
}

static void read_links(qk_rig_t *rig, const char *path) {
  qk_err_t err = {0};
  rig_must(qk_gauge_read(path, &rig->info, &rig->geom, rig->links, &rig->check, NULL, NULL, &err),
           path, &err);
}

/* The configuration at `path`, repeated in all directions. */
static void tile_links(qk_rig_t *rig, const char *path) {
  qk_err_t err = {0};
  qk_rig_t one = {0};
  const int *l = rig->geom.global;
  rig_must(qk_gauge_probe(path, NULL, &one.info, &err), path, &err);
  rig_must(qk_geom_init(&one.geom, rig->comm, one.info.dims, &err), path, &err);
  one.links = qk_malloc((size_t)one.geom.local_volume * 72 * sizeof(double));
  read_links(&one, path);
  const int *d = one.geom.global;
  for (int64_t n = 0; n < rig->geom.volume; n++) {
    int64_t x = n % l[0] % d[0], y = n / l[0] % l[1] % d[1], z = n / l[0] / l[1] % l[2] % d[2],
            t = n / l[0] / l[1] / l[2] % d[3];
    memcpy(rig->links + 72 * n, one.links + 72 * (((t * d[2] + z) * d[1] + y) * d[0] + x),
           72 * sizeof(double));
  }
  qk_free(one.links);
}

static void load_links(qk_rig_t *rig, const char *gauge, const int dims[4], qk_comm_t *comm) {
  qk_err_t err = {0};
  char text[64];
  bool random = strncmp(gauge, "random:", 7) == 0, tiled = strncmp(gauge, "tiled:", 6) == 0;
  const char *first = gauge + (random ? 7 : 6), *rest = NULL; /* "kind:first:rest" */
  if (random || tiled) {
    const char *colon = strchr(first, ':');
    rest = colon + 1;
    snprintf(text, sizeof text, "%.*s", (int)(colon - first), first);
    rig_must(qk_geom_parse_dims(text, rig->info.dims, &err), gauge, &err);
  } else {
    rig_must(qk_gauge_probe(gauge, dims, &rig->info, &err), gauge, &err);
  }
  rig_must(qk_geom_init(&rig->geom, comm, rig->info.dims, &err), gauge, &err);
  rig->links = qk_malloc((size_t)rig->geom.local_volume * 72 * sizeof(double));
  if (random)
    random_links(rig->links, rig->geom.local_volume * 4, strtoull(rest, NULL, 10));
  else if (tiled)
    tile_links(rig, rest);
  else
    read_links(rig, gauge);
}

/* ---- life ------------------------------------------------------------------------------------ */

qk_comm_t *rig_ranks(int *argc, char ***argv, int first) {
  qk_err_t err = {0};
  qk_comm_t *comm;
  int grid[4];
  rig_must(qk_comm_mpi_create(argc, argv, &comm, &err), "mpi", &err);
  if (*argc < first + 4) return NULL;
  for (int mu = 0; mu < 4; mu++) grid[mu] = atoi((*argv)[first + mu]);
  rig_must(qk_comm_set_grid(comm, grid, &err), "grid", &err);
  return comm;
}

int rig_batches(const char *text, int most, int batch[8]) {
  int count = 0;
  for (char *p = (char *)text; *p && count < 8; p += *p == ',') {
    const long n = strtol(p, &p, 10);
    if (n < 1 || n > most || (*p && *p != ',')) return 0;
    batch[count++] = (int)n;
  }
  return count;
}

void rig_open(qk_rig_t *rig, qk_comm_t *comm, const char *gauge, const int dims[4]) {
  qk_err_t err = {0};
  *rig = (qk_rig_t){.comm = comm};
  if (!comm) rig_must(qk_comm_self_create(&rig->comm, &err), "comm", &err);
  load_links(rig, gauge, dims, rig->comm);
  const qk_ops_t *ops = qk_ops_by_name(backend());
  qk_ops_ctx_t *ctx = NULL;
  const int device = qk_comm_local_rank(rig->comm);
  qk_status_t opened = ops->open(device, &ctx, &err);
  if (opened == QK_NO_DEVICE && device > 0) opened = ops->open(0, &ctx, &err); /* ranks share it */
  rig_must(opened, "device", &err);
  rig_must(qk_device_init(&rig->dev, ops, ctx, &rig->geom), "device", NULL);
  rig_must(qk_peers_create(&rig->dev, &err), "peers", &err);
  rig_must(qk_work_create(&rig->dev, &rig->work), "work", NULL);
}

static void make_operator(qk_rig_t *rig, const qk_action_params_t *p) {
  qk_err_t err = {0};
  if (rig->op) rig->op->ops->destroy(rig->op);
  rig->op = NULL;
  rig_must(qk_operator_create(&rig->dev, rig->work, rig->links, p, &rig->op, &err), "operator",
           &err);
}

void rig_operator(qk_rig_t *rig, double mass, double csw, double phase_t) {
  const qk_action_params_t p = params_wilson(mass, csw, phase_t);
  make_operator(rig, &p);
}

void rig_action(qk_rig_t *rig, const char *text, double phase_t) {
  qk_action_params_t p = params_wilson(0, 0, phase_t);
  p.values = values_of(text);
  make_operator(rig, &p);
}

uint8_t *rig_flavours(const qk_rig_t *rig, const uint8_t *minus, int n) {
  const qk_ops_t *ops = rig->dev.ops;
  void *device = NULL;
  rig_must(ops->alloc(rig->dev.ctx, (size_t)n, &device), "flavours", NULL);
  rig_must(ops->copy(rig->dev.ctx, device, minus, (size_t)n, QK_COPY_TO_DEVICE, 0), "flavours",
           NULL);
  rig_must(ops->queue_sync(rig->dev.ctx, 0), "flavours", NULL);
  return device;
}

void rig_close(qk_rig_t *rig) {
  if (rig->op) rig->op->ops->destroy(rig->op);
  qk_work_destroy(rig->work);
  qk_peers_destroy(&rig->dev);
  qk_device_fini(&rig->dev);
  rig->dev.ops->close(rig->dev.ctx);
  qk_free(rig->links);
  qk_comm_destroy(rig->comm);
}

/* ---- vectors --------------------------------------------------------------------------------- */

size_t rig_reals(const qk_rig_t *rig) {
  return (size_t)rig->geom.local_volume * 24;
}

double *rig_vector(const qk_rig_t *rig) {
  return qk_calloc(rig_reals(rig), sizeof(double));
}

void rig_random(const qk_rig_t *rig, uint64_t seed, double *v) {
  const qk_lattice_t *l = &rig->geom.lat;
  for (int t = 0; t < l->l[3]; t++)
    for (int z = 0; z < l->l[2]; z++)
      for (int y = 0; y < l->l[1]; y++)
        for (int x = 0; x < l->l[0]; x++) {
          uint64_t site = (uint64_t)t + (uint64_t)l->offset[3];
          site = site * (uint64_t)l->global[2] + (uint64_t)z + (uint64_t)l->offset[2];
          site = site * (uint64_t)l->global[1] + (uint64_t)y + (uint64_t)l->offset[1];
          site = site * (uint64_t)l->global[0] + (uint64_t)x + (uint64_t)l->offset[0];
          uint64_t state = seed * 0x2545f4914f6cdd1du + site;
          state = splitmix(&state);
          for (int c = 0; c < 24; c++) *v++ = uniform(&state);
        }
}

void rig_point(const qk_rig_t *rig, int spin, int colour, double *v) {
  const int *offset = rig->geom.lat.offset;
  memset(v, 0, rig_reals(rig) * sizeof *v);
  if (!offset[0] && !offset[1] && !offset[2] && !offset[3]) v[2 * (3 * spin + colour)] = 1;
}

static qk_rhs_args_t column(const qk_rig_t *rig, const qk_field_t *field, int rhs, void *wire) {
  qk_rhs_args_t a = {.lat = rig->geom.lat,
                     .field = field->v,
                     .rhs = rhs,
                     .n = 1,
                     .is_double = 1,
                     .wire = {wire},
                     .factor = 1};
  for (int s = 0; s < 4; s++) a.basis[s][s][0] = 1;
  return a;
}

static void *device_column(const qk_rig_t *rig) {
  void *wire = NULL;
  rig_must(rig->dev.ops->alloc(rig->dev.ctx, rig_reals(rig) * sizeof(double), &wire), "vector",
           NULL);
  return wire;
}

void rig_import(const qk_rig_t *rig, qk_field_t *field, int rhs, const double *v) {
  const qk_ops_t *ops = rig->dev.ops;
  void *wire = device_column(rig);
  qk_rhs_args_t a = column(rig, field, rhs, wire);
  size_t bytes = rig_reals(rig) * sizeof *v;
  rig_must(ops->copy(rig->dev.ctx, wire, v, bytes, QK_COPY_TO_DEVICE, 0), "import", NULL);
  rig_must(ops->rhs_import(rig->dev.ctx, &a), "import", NULL);
  rig_must(ops->queue_sync(rig->dev.ctx, 0), "import", NULL);
  ops->free(rig->dev.ctx, wire);
}

void rig_export(const qk_rig_t *rig, const qk_field_t *field, int rhs, double *v) {
  const qk_ops_t *ops = rig->dev.ops;
  void *wire = device_column(rig);
  qk_rhs_args_t a = column(rig, field, rhs, wire);
  size_t bytes = rig_reals(rig) * sizeof *v;
  rig_must(ops->rhs_export(rig->dev.ctx, &a), "export", NULL);
  rig_must(ops->copy(rig->dev.ctx, v, wire, bytes, QK_COPY_TO_HOST, 0), "export", NULL);
  rig_must(ops->queue_sync(rig->dev.ctx, 0), "export", NULL);
  ops->free(rig->dev.ctx, wire);
}

void rig_source(const qk_rig_t *rig, const qk_source_args_t *args, const qk_field_t *field) {
  qk_source_args_t a = *args;
  for (int k = 0; k < qk_field_vectors(field); k++) {
    a.field = qk_field_vector(field, k).v;
    a.seed += 1000 * (uint64_t)k;
    if (k > 0 && a.kind == QK_SOURCE_POINT)
      qk_dev_blas(&rig->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {a.field}});
    else
      rig_must(rig->dev.ops->source(rig->dev.ctx, &a), "source", NULL);
  }
}

void rig_apply(qk_rig_t *rig, const double *in, bool dagger, double *out) {
  qk_field_t *a, *b;
  rig_must(qk_work_reserve(rig->work, QK_DOUBLE, 1, QK_FULL, &a), "apply", NULL);
  rig_must(qk_work_reserve(rig->work, QK_DOUBLE, 1, QK_FULL, &b), "apply", NULL);
  rig_import(rig, a, 0, in);
  rig_must(rig->op->ops->apply(rig->op, b, a, dagger, NULL, 0), "apply", NULL);
  rig_export(rig, b, 0, out);
  qk_work_release(rig->work, b);
  qk_work_release(rig->work, a);
}

void rig_dot(const qk_rig_t *rig, const double *a, const double *b, double out[2]) {
  double re = 0, im = 0;
  for (size_t i = 0; i < rig_reals(rig); i += 2) {
    re += a[i] * b[i] + a[i + 1] * b[i + 1];
    im += a[i] * b[i + 1] - a[i + 1] * b[i];
  }
  out[0] = re;
  out[1] = im;
  rig_must(qk_comm_sum(rig->comm, out, 2), "sum", NULL);
}

double rig_norm2(const qk_rig_t *rig, const double *v) {
  double d[2];
  rig_dot(rig, v, v, d);
  return d[0];
}

double rig_distance(const qk_rig_t *rig, const double *a, const double *b) {
  double d[2] = {0, 0};
  for (size_t i = 0; i < rig_reals(rig); i++) {
    d[0] += (a[i] - b[i]) * (a[i] - b[i]);
    d[1] += b[i] * b[i];
  }
  rig_must(qk_comm_sum(rig->comm, d, 2), "sum", NULL);
  return sqrt(d[0] / d[1]);
}

/* ---- solvers --------------------------------------------------------------------------------- */

qk_solver_t *rig_solver(qk_rig_t *rig, const char *method, qk_prec_t inner, int nslot) {
  qk_err_t err = {0};
  qk_solver_t *solver = NULL;
  qk_solver_params_t p = {.method = method, .inner = inner, .nslot = nslot};
  rig_must(qk_solver_create(rig->op, rig->op->work, &p, &solver, &err), "solver", &err);
  return solver;
}

void rig_run(qk_solver_t *solver) {
  while (qk_solver_running(solver)) rig_must(qk_solver_step(solver), "step", NULL);
}
