#include "tests/unit/engine/eigen/compressed_kit.h"

#include <criterion/criterion.h>
#include <string.h>

void compressed_cut(qk_coherent_t *h) {
  qk_coherent_pass_t *pass = NULL;
  qk_err_t err = {0};
  bool over = false;
  int steps = 0;
  rig_must(qk_coherent_pass_create(h, &pass, &err), "pass", &err);
  for (; !over; steps++) rig_must(qk_coherent_pass_step(pass, &over, &err), "pass", &err);
  cr_expect_eq(steps, 2 * h->nblock, "%d steps", steps);
  qk_coherent_pass_destroy(pass);
}

static qk_coherent_t *basis_of(qk_rig_t *rig, const qk_coherent_cut_t *cut, qk_prec_t prec,
                               double tol, double *top, double *last) {
  const qk_lanczos_params_t p = {.n = cut->n, .prec = prec, .tol = tol, .seed = 1};
  qk_eigen_t *e = NULL;
  qk_coherent_t *h = NULL;
  qk_err_t err = {0};
  rig_must(qk_lanczos(rig->op, rig->work, &p, NULL, NULL, &e, &err), "lanczos", &err);
  rig_must(qk_coherent_check(&rig->geom, cut, &err), "cut", &err);
  rig_must(qk_coherent_create_from(rig->op->dev, cut, e->block, &h), "basis", NULL);
  compressed_cut(h);
  *top = e->top;
  *last = e->value[e->n - 1];
  e->nblock = 0;
  qk_eigen_destroy(e);
  return h;
}

qk_compressed_t *compressed_make(qk_rig_t *rig, const qk_coherent_cut_t *cut, int n, qk_prec_t prec,
                                 double tol) {
  double top, last;
  qk_coherent_t *h = basis_of(rig, cut, prec, tol, &top, &last);
  qk_lanczos_params_t p = {.n = n, .prec = prec, .tol = 1e-3, .seed = 2, .top = top, .within = h};
  p.window = 2.5 * last * n / cut->n;
  const qk_chebyshev_params_t smooth = qk_compressed_polynomial(top);
  qk_eigen_t *e = NULL;
  qk_compressed_t *z = NULL;
  qk_err_t err = {0};
  bool over = false;
  rig_must(qk_lanczos(rig->op, rig->work, &p, NULL, NULL, &e, &err), "lanczos within", &err);
  rig_must(qk_compressed_create(rig->op, rig->work, h, &smooth, n, &z, &err), "set", &err);
  for (int b = 0; b < e->nblock; b++)
    qk_dev_blas(&rig->dev, QK_BLAS_COPY,
                (qk_blas_args_t){.f = {qk_compressed_block(z, b)->v, e->block[b]->v}});
  qk_eigen_destroy(e);
  while (!over) rig_must(qk_compressed_step(z, &over, &err), "step", &err);
  return z;
}
