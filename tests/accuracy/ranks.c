/*
 * ranks GAUGE GX GY GZ GT: smearing, one operator and a few solves on that grid of ranks (0:
 * chosen), printed with 17 digits by rank 0, so that runs on different grids can be compared line
 * by line. GAUGE: a file or builtin:...; the sources do not depend on the grid.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/gauge/link_smear.h"
#include "daemon/engine/hadron/gauss.h"
#include "tests/support/staggered/colours.h"

static void line(const qk_rig_t *rig, const char *what, double value) {
  if (qk_comm_rank(rig->comm) == 0) printf("%s %.17g\n", what, value);
}

static void print_applied(qk_rig_t *rig) {
  double *in = rig_vector(rig), *out = rig_vector(rig), dot[2];
  rig_random(rig, 5, in);
  for (int dagger = 0; dagger < 2; dagger++) {
    rig_apply(rig, in, dagger, out);
    rig_dot(rig, in, out, dot);
    line(rig, dagger ? "norm2_Mdag" : "norm2_M", rig_norm2(rig, out));
    line(rig, dagger ? "dot_Mdag_re" : "dot_M_re", dot[0]);
    line(rig, dagger ? "dot_Mdag_im" : "dot_M_im", dot[1]);
  }
  qk_free(out);
  qk_free(in);
}

/* The residual of the system from its source. */
static void print_residual(qk_rig_t *rig) {
  double *v = rig_vector(rig);
  qk_field_t *b, *x, *full;
  rig_must(qk_work_reserve(rig->work, QK_DOUBLE, 1, QK_FULL, &b), "source", NULL);
  rig_must(qk_work_reserve(rig->work, QK_DOUBLE, 1, QK_FULL, &full), "field", NULL);
  rig_must(qk_work_reserve(rig->work, QK_DOUBLE, 1, rig->op->system, &x), "solution", NULL);
  rig_random(rig, 6, v);
  rig_import(rig, full, 0, v);
  qk_dev_blas(rig->op->dev, QK_BLAS_COPY,
              (qk_blas_args_t){.f = {x->v, qk_field_parity(full, rig->op->system)}});
  rig_random(rig, 7, v);
  rig_import(rig, b, 0, v);
  qk_field_t r = {.dev = full->dev, .v = qk_field_parity(full, rig->op->system)};
  qk_dev_blas(rig->op->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {full->v}});
  rig_must(rig->op->ops->residual_system(rig->op, &r, x, b), "residual", NULL);
  rig_export(rig, full, 0, v);
  line(rig, "norm2_residual_system", rig_norm2(rig, v));
  qk_work_release(rig->work, x);
  qk_work_release(rig->work, full);
  qk_work_release(rig->work, b);
  qk_free(v);
}

/* Links smeared in each way, and a block of sources smeared with them:
 * plaquettes, norms, a product. */
static void print_smeared(qk_rig_t *rig, const char *spec, int halo) {
  char what[64];
  qk_err_t err = {0};
  qk_gaugefield_t *links = NULL;
  qk_gauss_t *gauss = NULL;
  qk_field_t *block = NULL;
  qk_link_smear_t smear;
  double plane[6], dot[2], *v = rig_vector(rig), *w = rig_vector(rig);
  rig_must(qk_gaugefield_create(&rig->dev, halo, &links), spec, NULL);
  rig_must(qk_gaugefield_import(links, rig->links), spec, NULL);
  rig_must(qk_link_smear_parse(spec, &smear, &err), spec, &err);
  rig_must(qk_link_smear_apply(links, &smear, &err), spec, &err);
  rig_must(qk_gaugefield_measure(links, plane, NULL), spec, NULL);
  for (int k = 0; k < 6; k++) {
    snprintf(what, sizeof what, "plane%d_%s", k, spec);
    line(rig, what, plane[k]);
  }
  rig_must(qk_gauss_create(&rig->dev, rig->work, links, &gauss, &err), spec, &err);
  rig_must(qk_field_create(&rig->dev, QK_DOUBLE, 2, QK_FULL, &block), spec, NULL);
  rig_random(rig, 5, v);
  rig_import(rig, block, 0, v);
  rig_point(rig, 2, 1, w);
  rig_import(rig, block, 1, w);
  rig_must(qk_gauss_apply(gauss, block, 0.4, 5), spec, NULL);
  rig_export(rig, block, 0, w);
  rig_dot(rig, v, w, dot);
  snprintf(what, sizeof what, "dot_gauss_%s", spec);
  line(rig, what, dot[0]);
  for (int i = 0; i < 2; i++) {
    rig_export(rig, block, i, w);
    snprintf(what, sizeof what, "norm2_gauss%d_%s", i, spec);
    line(rig, what, rig_norm2(rig, w));
  }
  qk_field_destroy(block);
  qk_gauss_destroy(gauss);
  qk_gaugefield_destroy(links);
  qk_free(w);
  qk_free(v);
}

/* All slots, whose right-hand sides are there, as one group. */
static void solve_group(qk_solver_t *solver, int n) {
  int slot[QK_MAX_RHS];
  int64_t limit[QK_MAX_RHS];
  double tol[QK_MAX_RHS];
  for (int i = 0; i < n; i++) {
    slot[i] = i;
    tol[i] = 1e-12;
    limit[i] = 5000;
    rig_must(qk_solver_set_group(solver, i, 1), "group", NULL);
  }
  rig_must(qk_solver_fill_many(solver, slot, n, tol, limit), "fill", NULL);
  rig_run(solver);
}

/* The solutions are all to 1e-12, so their norms agree to that and the iterations need not. */
static void print_solved(qk_rig_t *rig, const char *method, qk_prec_t inner, int nslot) {
  char what[64];
  double *v = rig_vector(rig);
  qk_solver_t *solver = rig_solver(rig, method, inner, nslot);
  for (int i = 0; i < nslot; i++) {
    if (i % 2)
      rig_point(rig, i % 4, i % 3, v);
    else
      rig_random(rig, 20 + (uint64_t)i, v);
    rig_import(rig, qk_solver_rhs(solver, i), 0, v);
  }
  solve_group(solver, nslot);
  for (int i = 0; i < nslot; i++) {
    const qk_slot_t *s = qk_solver_slot(solver, i);
    rig_export(rig, qk_solver_solution(solver, i), 0, v);
    snprintf(what, sizeof what, "norm2_x_%s_%d_%d", method, (int)inner, i);
    line(rig, what, s->status == QK_OK ? rig_norm2(rig, v) : NAN);
  }
  qk_solver_destroy(solver);
  qk_free(v);
}

enum { GROUP = 5 };

/* Solutions of a group of block CG. */
static void print_group(qk_rig_t *rig, qk_prec_t inner) {
  char what[64];
  double complex *v = colours_vector(rig);
  qk_solver_t *solver = rig_solver(rig, "block-cg", inner, GROUP);
  for (int i = 0; i < GROUP; i++) {
    colours_random(rig, 30 + (uint64_t)i, v);
    colours_import(rig, qk_solver_rhs(solver, i), 0, v);
  }
  solve_group(solver, GROUP);
  for (int i = 0; i < GROUP; i++) {
    colours_export(rig, qk_solver_solution(solver, i), 0, v);
    snprintf(what, sizeof what, "norm2_x_colours_block_%d_%d", (int)inner, i);
    line(rig, what,
         qk_solver_slot(solver, i)->status == QK_OK ? creal(colours_dot(rig, v, v)) : NAN);
  }
  qk_solver_destroy(solver);
  qk_free(v);
}

/* Staggered fermions: M, M^+, and solutions. */
static void print_colours(qk_rig_t *rig) {
  static const qk_prec_t inner[] = {QK_DOUBLE, QK_SINGLE, QK_HALF};
  double complex *v = colours_vector(rig), *w = colours_vector(rig);
  qk_field_t *in, *out;
  rig_must(qk_work_reserve(rig->work, QK_DOUBLE, 1, QK_FULL, &in), "source", NULL);
  rig_must(qk_work_reserve(rig->work, QK_DOUBLE, 1, QK_FULL, &out), "field", NULL);
  colours_random(rig, 5, v);
  colours_import(rig, in, 0, v);
  for (int dagger = 0; dagger < 2; dagger++) {
    rig_must(rig->op->ops->apply(rig->op, out, in, dagger, NULL, 0), "apply", NULL);
    colours_export(rig, out, 0, w);
    line(rig, dagger ? "norm2_colours_Mdag" : "norm2_colours_M", creal(colours_dot(rig, w, w)));
    line(rig, dagger ? "dot_colours_Mdag" : "dot_colours_M", cimag(colours_dot(rig, v, w)));
  }
  for (int i = 0; i < 3; i++) {
    char what[64];
    qk_solver_t *solver = rig_solver(rig, "cg", inner[i], 1 + i);
    colours_import(rig, qk_solver_rhs(solver, 0), 0, v);
    rig_must(qk_solver_fill(solver, 0, 1e-12, 5000), "fill", NULL);
    rig_run(solver);
    colours_export(rig, qk_solver_solution(solver, 0), 0, w);
    snprintf(what, sizeof what, "norm2_x_colours_%d", (int)inner[i]);
    line(rig, what,
         qk_solver_slot(solver, 0)->status == QK_OK ? creal(colours_dot(rig, w, w)) : NAN);
    qk_solver_destroy(solver);
  }
  qk_work_release(rig->work, out);
  qk_work_release(rig->work, in);
  qk_free(w);
  qk_free(v);
}

int main(int argc, char **argv) {
  qk_err_t err = {0};
  qk_comm_t *comm;
  qk_gauge_info_t info;
  qk_rig_t rig;
  int grid[4];
  rig_must(qk_comm_mpi_create(&argc, &argv, &comm, &err), "mpi", &err);
  if (argc != 6) {
    fprintf(stderr, "usage: ranks GAUGE GX GY GZ GT\n");
    return 64;
  }
  rig_must(qk_gauge_probe(argv[1], NULL, &info, &err), argv[1], &err);
  for (int mu = 0; mu < 4; mu++) grid[mu] = atoi(argv[2 + mu]);
  rig_must(qk_comm_choose_grid(qk_comm_size(comm), info.dims, NULL, NULL, grid, &err), "grid",
           &err);
  rig_must(qk_comm_set_grid(comm, grid, &err), "grid", &err);
  rig_open(&rig, comm, argv[1], NULL);
  print_smeared(&rig, "ape:0.6,3", 1);
  print_smeared(&rig, "stout:0.1,2,4d", 2);
  print_smeared(&rig, "hyp:0.75,0.6,0.3,1", 1);
  print_smeared(&rig, "hyp:0.6,0.5,0.2,2", 2);
  rig_operator(&rig, 0.1, 0, -1);
  print_applied(&rig);
  print_residual(&rig);
  rig_action(&rig, "wilson-clover;mass=0.1;csw=1.2;hop=0.4,0.5,0.6,1;links=slinc:0.1,1", -1);
  print_applied(&rig);
  print_residual(&rig);
  rig_action(&rig, "twisted-clover;mass=0.1;mu=0.3;csw=1.2;links=hex:0.95,0.76,0.38,1", -1);
  print_applied(&rig);
  print_residual(&rig);
  rig_operator(&rig, 0.1, 1.2, -1);
  print_applied(&rig);
  print_residual(&rig);
  print_solved(&rig, "bicgstab", QK_DOUBLE, 1);
  print_solved(&rig, "bicgstab", QK_SINGLE, 3);
  print_solved(&rig, "gcr", QK_HALF, 9);
  print_solved(&rig, "cg", QK_SINGLE, 2);
  print_solved(&rig, "block-cg", QK_HALF, 9);
  qk_work_trim(rig.work);
  rig.geom.ncomp = QK_COLOUR_COMPONENTS;
  rig_action(&rig, "staggered;mass=0.2;links=stout:0.1,1", -1);
  print_colours(&rig);
  rig_action(&rig, "asqtad;mass=0.2;u0=0.9", -1);
  print_colours(&rig);
  rig_action(&rig, "hisq;mass=0.2;epsilon=-0.1", -1);
  print_colours(&rig);
  for (int p = 0; p < QK_PRECS; p++) print_group(&rig, (qk_prec_t)p);
  rig_close(&rig);
  return 0;
}
