/*
 * mg_ranks GAUGE GX GY GZ GT: numbers of a hierarchy on that grid of ranks, "name value" by rank 0:
 * operators and prolongators that stand on given random vectors, applied to others; then what
 * multigrid of relaxed vectors gains.
 */
#include <stdio.h>

#include "daemon/base/mem.h"
#include "daemon/engine/multigrid/nullspace.h"
#include "tests/support/mg_rig.h"

static const qk_mg_params_t params = {
    .nlevel = 3,
    .level = {{.block = {2, 2, 2, 2}, .nvec = 8, .setup_iterations = 20, .setup_passes = 1},
              {.block = {1, 2, 1, 1}, .nvec = 8, .setup_iterations = 20, .iterations = 4},
              {.iterations = 8}}};

static const char *prefix = ""; /* of the names */
static bool speaks;             /* rank 0 */

static qk_field_t *field(const qk_mg_level_t *level, int nrhs, qk_subset_t subset) {
  qk_field_t *f;
  rig_must(qk_field_create(&level->dev, QK_SINGLE, nrhs, subset, &f), "field", NULL);
  return f;
}

static qk_field_t *noise(void *arg, int l, int first, int n, const qk_device_t *dev) {
  qk_field_t *f;
  (void)arg;
  rig_must(qk_field_create(dev, QK_SINGLE, n, QK_FULL, &f), "field", NULL);
  rig_must(qk_nullspace_random(dev, 11 + (uint64_t)(l + first), f), "noise", NULL);
  return f;
}

/* Re (a, b) of the one column, over the ranks that have parts of it. */
static void print(const char *name, int l, const qk_field_t *a, const qk_field_t *b) {
  const qk_device_t *dev = a->dev;
  void *red = NULL;
  double dot[2];
  rig_must(dev->ops->alloc(dev->ctx, sizeof dot, &red), "scalars", NULL);
  qk_blas_args_t args = {.op = QK_BLAS_CDOT, .f = {a->v, b->v}, .red = red};
  rig_must(dev->ops->blas(dev->ctx, &args), "dot", NULL);
  rig_must(dev->ops->copy(dev->ctx, dot, red, sizeof dot, QK_COPY_TO_HOST, 0), "dot", NULL);
  rig_must(dev->ops->queue_sync(dev->ctx, 0), "dot", NULL);
  dev->ops->free(dev->ctx, red);
  rig_must(qk_comm_sum(dev->geom->comm, dot, 2), "sum", NULL);
  if (speaks) printf("%s%s_%d %.9e\n", prefix, name, l, dot[0]);
}

static void print_level(const qk_mg_t *mg, int l) {
  const qk_mg_level_t *level = &mg->level[l];
  const qk_operator_ops_t *ops = level->op->ops;
  qk_field_t *phi = field(level, 1, QK_FULL), *image = field(level, 1, QK_FULL);
  qk_field_t *even = field(level, 1, QK_EVEN), *hat = field(level, 1, QK_EVEN);
  qk_field_t *fine = field(&mg->level[l - 1], 1, QK_FULL);
  rig_must(qk_nullspace_random(&level->dev, 5, phi), "noise", NULL);
  for (int dagger = 0; dagger < 2; dagger++) {
    rig_must(ops->apply(level->op, image, phi, dagger, NULL, 0), "M", NULL);
    print(dagger ? "norm_Mdag" : "norm_M", l, image, image);
    print(dagger ? "dot_Mdag" : "dot_M", l, phi, image);
  }
  for (int mu = 0; mu < 4; mu++) {
    rig_must(ops->hop_forward(level->op, image, phi, mu), "hop", NULL);
    print("norm_hop", 4 * l + mu, image, image);
  }
  rig_must(ops->prepare(level->op, even, phi), "prepare", NULL);
  print("norm_prepare", l, even, even);
  rig_must(ops->apply_system(level->op, hat, even, false, NULL), "Mhat", NULL);
  print("norm_Mhat", l, hat, hat);
  rig_must(ops->apply_blocks(level->op, hat, even, (int[]){2, 2, 2, 2}), "blocks", NULL);
  print("norm_blocks", l, hat, hat);
  qk_prolongator_prolong(mg->level[l - 1].down, fine, phi, false);
  rig_must(qk_dev_status(&level->dev), "P", NULL);
  print("norm_P", l, fine, fine);
  qk_field_destroy(fine);
  qk_field_destroy(hat);
  qk_field_destroy(even);
  qk_field_destroy(image);
  qk_field_destroy(phi);
}

/* Iterations with that hierarchy to 1e-10, one right-hand side at a time: slots of a block
 * end in pairs of them. */
static void print_iterations(qk_rig_t *rig, qk_mg_t *mg) {
  mg_rig_t m = {.mg = mg};
  double *v = rig_vector(rig);
  mg_rig_slots(rig, &m, QK_SINGLE, 1, 0);
  for (int i = 0; i < 2; i++) {
    rig_random(rig, 3 + (uint64_t)i, v);
    rig_import(rig, qk_solver_rhs(m.solver, 0), 0, v);
    rig_must(qk_solver_set_flavour(m.solver, 0, i == 0 ? 1 : -1), "flavour", NULL);
    rig_must(qk_solver_fill(m.solver, 0, 1e-10, 500), "fill", NULL);
    rig_run(m.solver);
    const qk_slot_t *s = qk_solver_slot(m.solver, 0);
    rig_must(s->status, "solve", NULL);
    if (speaks) printf("%siterations_%d %d\n", prefix, i, (int)s->iterations);
    qk_solver_clear(m.solver, 0);
  }
  qk_free(v);
  mg_rig_close(&m);
}

static void print_all(qk_rig_t *rig) {
  qk_err_t err = {0};
  qk_mg_params_t p = params;
  qk_mg_t *mg;
  rig_must(qk_mg_create_from(rig->op, rig->work, &p, noise, NULL, &mg, &err), "hierarchy", &err);
  for (int l = 1; l < mg->nlevel; l++) print_level(mg, l);
  qk_mg_destroy(mg);
  rig_must(qk_mg_create(rig->op, rig->work, &p, NULL, NULL, &mg, &err), "multigrid", &err);
  if (speaks) printf("%sconvergence %.6f\n", prefix, mg->convergence);
  print_iterations(rig, mg);
}

int main(int argc, char **argv) {
  qk_comm_t *comm = rig_ranks(&argc, &argv, 2);
  qk_rig_t rig;
  if (!comm || argc != 6) {
    fprintf(stderr, "usage: mg_ranks GAUGE GX GY GZ GT\n");
    return 64;
  }
  speaks = qk_comm_rank(comm) == 0;
  rig_open(&rig, comm, argv[1], NULL);
  rig_operator(&rig, 0.05, 1, -1);
  print_all(&rig);
  prefix = "twisted_";
  rig_action(&rig, "twisted-clover;mass=0.05;mu=0.1;csw=1", -1);
  print_all(&rig);
  rig_close(&rig);
  return 0;
}
