#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/smoother/smoother.h"
#include "tests/support/rig.h"

enum { MOST = 12 };
static const int batches[] = {1, 5, MOST};
/* What |r - (b - Mhat x)| / |b| may come to. */
static const double rounding[] = {1e-12, 1e-5, 2e-2};

static void open_rig(qk_rig_t *rig) {
  rig_open(rig, NULL, "builtin:weak:4x4x4x8:3", NULL);
  rig_operator(rig, -0.2, 1.2, -1);
}

static qk_field_t *even_field(const qk_rig_t *rig, qk_prec_t prec, int nrhs) {
  qk_field_t *f;
  rig_must(qk_field_create(&rig->dev, prec, nrhs, QK_EVEN, &f), "field", NULL);
  return f;
}

static void blas(const qk_rig_t *rig, qk_blas_op_t op, qk_blas_args_t args) {
  args.op = op;
  rig_must(rig->dev.ops->blas(rig->dev.ctx, &args), "blas", NULL);
}

/* Column i of the even field is the even part of random vector seed[i]; seed 0: NaN. */
static void fill(const qk_rig_t *rig, qk_field_t *even, const uint64_t *seed) {
  qk_field_t *full;
  double *v = rig_vector(rig);
  rig_must(qk_field_create(&rig->dev, QK_DOUBLE, even->v.nrhs, QK_FULL, &full), "field", NULL);
  for (int i = 0; i < even->v.nrhs; i++) {
    rig_random(rig, seed[i], v);
    for (size_t k = 0; seed[i] == 0 && k < rig_reals(rig); k++) v[k] = NAN;
    rig_import(rig, full, i, v);
  }
  blas(rig, QK_BLAS_COPY, (qk_blas_args_t){.f = {even->v, qk_field_parity(full, QK_EVEN)}});
  qk_field_destroy(full);
  qk_free(v);
}

/* Column i with zeros on odd sites. */
static double *column(const qk_rig_t *rig, const qk_field_t *even, int i) {
  qk_field_t *full;
  double *v = rig_vector(rig);
  rig_must(qk_field_create(&rig->dev, QK_DOUBLE, even->v.nrhs, QK_FULL, &full), "field", NULL);
  blas(rig, QK_BLAS_COPY, (qk_blas_args_t){.f = {qk_field_parity(full, QK_EVEN), even->v}});
  rig_export(rig, full, i, v);
  qk_field_destroy(full);
  return v;
}

static void norms(const qk_rig_t *rig, const qk_field_t *f, double *norm) {
  void *red = NULL;
  double host[2 * QK_MAX_RHS];
  const qk_ops_t *ops = rig->dev.ops;
  rig_must(ops->alloc(rig->dev.ctx, sizeof host, &red), "red", NULL);
  blas(rig, QK_BLAS_NORM2, (qk_blas_args_t){.f = {f->v}, .red = red});
  rig_must(ops->copy(rig->dev.ctx, host, red, sizeof *host * 2 * f->v.nrhs, QK_COPY_TO_HOST, 0),
           "red", NULL);
  rig_must(ops->queue_sync(rig->dev.ctx, 0), "red", NULL);
  ops->free(rig->dev.ctx, red);
  for (int i = 0; i < f->v.nrhs; i++) norm[i] = sqrt(host[2 * i]);
}

static qk_smoother_t *create(qk_rig_t *rig, qk_smoother_kind_t kind, qk_prec_t prec, int nrhs) {
  const qk_smoother_params_t params = {.kind = kind, .block = {2, 4, 2, 4}};
  qk_err_t err = {0};
  qk_smoother_t *s = NULL;
  rig_must(qk_smoother_create(rig->op, rig->work, &params, prec, nrhs, &s, &err), "smoother", &err);
  return s;
}

static void run(qk_smoother_t *s, qk_field_t *x, qk_field_t *r, int steps, bool x_zero) {
  qk_smoother_run(s, x, r, steps, x_zero, false);
  rig_must(qk_dev_status(x->dev), "run", NULL);
}

/* r against b - Mhat x, and how far |r| has fallen. */
static void expect_residual(qk_rig_t *rig, const qk_field_t *b, const qk_field_t *x,
                            const qk_field_t *r, double fall, const char *what) {
  const int n = b->v.nrhs;
  double size[MOST], left[MOST], off[MOST];
  qk_field_t *t = even_field(rig, b->v.prec, n), *d = even_field(rig, b->v.prec, n);
  rig_must(rig->op->ops->apply_system(rig->op, t, x, false, b), "residual", NULL);
  blas(rig, QK_BLAS_SUB, (qk_blas_args_t){.f = {d->v, t->v, r->v}});
  norms(rig, b, size);
  norms(rig, r, left);
  norms(rig, d, off);
  for (int i = 0; i < n; i++) {
    cr_expect(left[i] < fall * size[i], "%s, precision %d: column %d of %d: |r| = %g of %g", what,
              b->v.prec, i, n, left[i], size[i]);
    cr_expect(off[i] <= rounding[b->v.prec] * size[i], "%s, precision %d: column %d of %d: off %g",
              what, b->v.prec, i, n, off[i] / size[i]);
  }
  qk_field_destroy(d);
  qk_field_destroy(t);
}

static void reduces(qk_smoother_kind_t kind, double fall) {
  uint64_t seed[MOST];
  for (int i = 0; i < MOST; i++) seed[i] = 10 + (uint64_t)i;
  qk_rig_t rig;
  open_rig(&rig);
  for (int p = 0; p < 3; p++)
    for (size_t k = 0; k < sizeof batches / sizeof *batches; k++) {
      const int n = batches[k];
      qk_smoother_t *s = create(&rig, kind, (qk_prec_t)p, n);
      qk_field_t *b = even_field(&rig, (qk_prec_t)p, n), *x = even_field(&rig, (qk_prec_t)p, n),
                 *r = even_field(&rig, (qk_prec_t)p, n);
      fill(&rig, b, seed);
      fill(&rig, x, seed);
      blas(&rig, QK_BLAS_COPY, (qk_blas_args_t){.f = {r->v, b->v}});
      run(s, x, r, 4, true);
      expect_residual(&rig, b, x, r, fall, qk_smoother_name(kind));
      run(s, x, r, 11, false);
      expect_residual(&rig, b, x, r, fall * fall, qk_smoother_name(kind));
      qk_field_destroy(r);
      qk_field_destroy(x);
      qk_field_destroy(b);
      qk_smoother_destroy(s);
    }
  rig_close(&rig);
}

/* y += c x, of one RHS. */
static void add(const qk_rig_t *rig, const qk_field_t *y, double c, const qk_field_t *x) {
  const qk_ops_t *ops = rig->dev.ops;
  const double host[2] = {c, 0};
  void *scalar = NULL;
  rig_must(ops->alloc(rig->dev.ctx, sizeof host, &scalar), "scalar", NULL);
  rig_must(ops->copy(rig->dev.ctx, scalar, host, sizeof host, QK_COPY_TO_DEVICE, 0), "scalar",
           NULL);
  blas(rig, QK_BLAS_AXPY, (qk_blas_args_t){.f = {y->v, x->v}, .c = {scalar}});
  rig_must(ops->queue_sync(rig->dev.ctx, 0), "scalar", NULL);
  ops->free(rig->dev.ctx, scalar);
}

/* |r - Mhat x|^2 / |r|^2 of x = sum_j c_j (1 - Mhat)^j r, by plain applications. */
static double left_by(qk_rig_t *rig, const qk_polynomial_t *p, const qk_field_t *r) {
  qk_field_t *x = even_field(rig, QK_DOUBLE, 1), *t = even_field(rig, QK_DOUBLE, 1),
             *s = even_field(rig, QK_DOUBLE, 1);
  double size, left;
  blas(rig, QK_BLAS_ZERO, (qk_blas_args_t){.f = {x->v}});
  blas(rig, QK_BLAS_COPY, (qk_blas_args_t){.f = {t->v, r->v}});
  for (int j = 0; j < p->n; j++) {
    add(rig, x, p->c[j], t);
    rig_must(rig->op->ops->apply_system(rig->op, s, t, false, NULL), "apply", NULL);
    blas(rig, QK_BLAS_SUB, (qk_blas_args_t){.f = {t->v, t->v, s->v}});
  }
  rig_must(rig->op->ops->apply_system(rig->op, s, x, false, r), "residual", NULL);
  norms(rig, r, &size);
  norms(rig, s, &left);
  qk_field_destroy(s);
  qk_field_destroy(t);
  qk_field_destroy(x);
  return pow(left / size, 2);
}

/* Learned from one residual, it leaves least of that: no coefficient can be changed with gain. */
Test(smoother, a_polynomial_is_the_best_for_what_it_learned_from) {
  qk_rig_t rig;
  open_rig(&rig);
  const uint64_t seed = 3;
  for (int n = 1; n <= 8; n++) {
    qk_smoother_t *s = create(&rig, QK_SMOOTHER_POLYNOMIAL, QK_DOUBLE, 1);
    qk_field_t *r = even_field(&rig, QK_DOUBLE, 1), *x = even_field(&rig, QK_DOUBLE, 1),
               *b = even_field(&rig, QK_DOUBLE, 1);
    qk_learning_t learning = {{{0}}};
    qk_polynomial_t p = {0};
    fill(&rig, b, &seed);
    blas(&rig, QK_BLAS_COPY, (qk_blas_args_t){.f = {r->v, b->v}});
    rig_must(qk_smoother_learn(s, &learning), "learn", NULL);
    qk_smoother_run(s, x, r, n, true, false); /* not a last run: it teaches nothing */
    cr_expect_eq(learning.h[0][0], 0);
    blas(&rig, QK_BLAS_COPY, (qk_blas_args_t){.f = {r->v, b->v}});
    qk_smoother_run(s, x, r, n, true, true); /* by ca-gcr: nothing is known yet */
    rig_must(qk_smoother_learn(s, NULL), "learn", NULL);
    cr_assert(qk_polynomial_fit(&learning, n, &p) && p.n == n);
    const double least = left_by(&rig, &p, b);
    cr_expect(least < 1 && least > 0);
    for (int j = 0; j < n; j++)
      for (int sign = -1; sign <= 1; sign += 2) {
        qk_polynomial_t other = p;
        other.c[j] += 0.01 * sign;
        cr_expect(left_by(&rig, &other, b) > least, "%d terms: c_%d = %g is not the best", n, j,
                  p.c[j]);
      }
    qk_smoother_set_polynomial(s, &p);
    if (n > 1) { /* what it runs is that polynomial */
      double size, left;
      qk_smoother_run(s, x, b, n, true, true);
      rig_must(rig.op->ops->apply_system(rig.op, r, x, false, b), "residual", NULL);
      norms(&rig, b, &size);
      norms(&rig, r, &left);
      cr_expect(fabs(pow(left / size, 2) / least - 1) < 1e-9, "%d terms: %g, not %g", n,
                pow(left / size, 2), least);
      double once, twice;
      norms(&rig, x, &once);
      qk_smoother_run(s, x, b, n, false, true); /* and again, added to x */
      norms(&rig, x, &twice);
      cr_expect(fabs(twice / once - 2) < 1e-12, "%d terms, twice: |x| = %g after %g", n, twice,
                once);
    }
    qk_field_destroy(b);
    qk_field_destroy(x);
    qk_field_destroy(r);
    qk_smoother_destroy(s);
  }
  rig_close(&rig);
}

Test(smoother, nothing_is_learned_from_nothing) {
  qk_learning_t none = {{{0}}}, wild = {{{0}}};
  qk_polynomial_t p = {.n = 7};
  cr_expect(!qk_polynomial_fit(&none, 4, &p) && p.n == 7);
  for (int i = 0; i < QK_LEARNED; i++)
    for (int j = 0; j < QK_LEARNED; j++) wild.h[i][j] = NAN;
  cr_expect(!qk_polynomial_fit(&wild, 4, &p) && p.n == 7);
  cr_expect(!qk_polynomial_fit(&wild, 0, &p) &&
            !qk_polynomial_fit(&wild, QK_POLYNOMIAL_MAX + 1, &p));
}

Test(smoother, mr_reduces_the_residual) {
  reduces(QK_SMOOTHER_MR, 0.5);
}
Test(smoother, schwarz_reduces_the_residual) {
  reduces(QK_SMOOTHER_SCHWARZ, 0.6);
}
Test(smoother, cagcr_reduces_the_residual) {
  reduces(QK_SMOOTHER_CAGCR, 0.4);
}
Test(smoother, chebyshev_reduces_the_residual) {
  reduces(QK_SMOOTHER_CHEBYSHEV, 0.7);
}

Test(smoother, residual_falls_in_every_step_where_it_is_minimised) {
  const qk_smoother_kind_t kind[] = {QK_SMOOTHER_MR, QK_SMOOTHER_CAGCR, QK_SMOOTHER_SCHWARZ};
  const uint64_t seed[] = {3, 4, 5};
  qk_rig_t rig;
  open_rig(&rig);
  qk_field_t *x = even_field(&rig, QK_SINGLE, 3), *r = even_field(&rig, QK_SINGLE, 3);
  for (int k = 0; k < 3; k++) {
    qk_smoother_t *s = create(&rig, kind[k], QK_SINGLE, 3);
    double before[3], now[3];
    fill(&rig, r, seed);
    norms(&rig, r, before);
    for (int i = 0; i < 12; i++) {
      run(s, x, r, 1 + i % 3, i == 0);
      norms(&rig, r, now);
      for (int c = 0; c < 3; c++) {
        cr_expect(now[c] < before[c], "%s, run %d: %g after %g", qk_smoother_name(kind[k]), i,
                  now[c], before[c]);
        before[c] = now[c];
      }
    }
    qk_smoother_destroy(s);
  }
  qk_field_destroy(r);
  qk_field_destroy(x);
  rig_close(&rig);
}

/* s steps of ca-gcr are s steps of GCR: the least residual in the Krylov space. */
Test(smoother, cagcr_is_no_worse_than_mr) {
  const uint64_t seed[] = {3, 4, 5};
  double mr[3], cagcr[3];
  qk_rig_t rig;
  open_rig(&rig);
  qk_field_t *x = even_field(&rig, QK_DOUBLE, 3), *r = even_field(&rig, QK_DOUBLE, 3);
  for (int steps = 1; steps <= 8; steps++)
    for (int k = 0; k < 2; k++) {
      qk_smoother_t *s = create(&rig, k ? QK_SMOOTHER_CAGCR : QK_SMOOTHER_MR, QK_DOUBLE, 3);
      fill(&rig, r, seed);
      run(s, x, r, steps, true);
      norms(&rig, r, k ? cagcr : mr);
      for (int i = 0; k == 1 && i < 3; i++)
        cr_expect(cagcr[i] <= mr[i], "%d steps: %g, mr %g", steps, cagcr[i], mr[i]);
      qk_smoother_destroy(s);
    }
  qk_field_destroy(r);
  qk_field_destroy(x);
  rig_close(&rig);
}

Test(smoother, leaves_the_bits_of_a_column_alone_whatever_stands_beside) {
  const uint64_t good[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, bad[] = {21, 2, 0, 4, 25, 0, 7, 8, 9};
  qk_rig_t rig;
  open_rig(&rig);
  for (int kind = 1; kind < QK_SMOOTHER_COUNT; kind++)
    for (int p = 1; p < 3; p++) {
      qk_field_t *x[2], *r = even_field(&rig, (qk_prec_t)p, 9);
      qk_smoother_t *s = create(&rig, (qk_smoother_kind_t)kind, (qk_prec_t)p, 9);
      for (int k = 0; k < 2; k++) {
        x[k] = even_field(&rig, (qk_prec_t)p, 9);
        fill(&rig, r, k ? bad : good);
        run(s, x[k], r, 5, true);
      }
      for (int i = 0; i < 9; i++) {
        if (good[i] != bad[i]) continue;
        double *a = column(&rig, x[0], i), *b = column(&rig, x[1], i);
        cr_expect(memcmp(a, b, rig_reals(&rig) * sizeof *a) == 0, "%s, precision %d: column %d",
                  qk_smoother_name((qk_smoother_kind_t)kind), p, i);
        qk_free(b);
        qk_free(a);
      }
      qk_smoother_destroy(s);
      for (int k = 0; k < 2; k++) qk_field_destroy(x[k]);
      qk_field_destroy(r);
    }
  rig_close(&rig);
}

/* ---- rougher arithmetic ---- */

static const qk_operator_ops_t *watched_ops;
static bool was_rough;

static qk_status_t watched(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool dagger,
                           const qk_field_t *x) {
  was_rough = op->rough;
  return watched_ops->apply_system(op, out, in, dagger, x);
}

Test(smoother, lets_the_operator_round_unless_it_is_exact) {
  qk_rig_t rig;
  open_rig(&rig);
  watched_ops = rig.op->ops;
  qk_operator_ops_t ops = *watched_ops;
  ops.apply_system = watched;
  rig.op->ops = &ops;
  qk_field_t *x = even_field(&rig, QK_SINGLE, 1), *r = even_field(&rig, QK_SINGLE, 1);
  for (int exact = 0; exact < 2; exact++) {
    const qk_smoother_params_t params = {.kind = QK_SMOOTHER_MR, .exact = exact};
    qk_smoother_t *s = NULL;
    rig_must(qk_smoother_create(rig.op, rig.work, &params, QK_SINGLE, 1, &s, NULL), "smoother",
             NULL);
    fill(&rig, r, (uint64_t[]){1});
    run(s, x, r, 1, true);
    cr_expect(was_rough == !exact && !rig.op->rough, "exact: %d", exact);
    qk_smoother_destroy(s);
  }
  rig.op->ops = watched_ops;
  qk_field_destroy(r);
  qk_field_destroy(x);
  rig_close(&rig);
}

Test(smoother, zero_stays_zero) {
  qk_rig_t rig;
  open_rig(&rig);
  for (int kind = 1; kind < QK_SMOOTHER_COUNT; kind++) {
    qk_field_t *x = even_field(&rig, QK_HALF, 2), *r = even_field(&rig, QK_HALF, 2);
    qk_smoother_t *s = create(&rig, (qk_smoother_kind_t)kind, QK_HALF, 2);
    double left[2];
    run(s, x, r, 9, true);
    norms(&rig, x, left);
    cr_expect(left[0] == 0 && left[1] == 0, "%s: %g", qk_smoother_name((qk_smoother_kind_t)kind),
              left[0]);
    qk_smoother_destroy(s);
    qk_field_destroy(r);
    qk_field_destroy(x);
  }
  rig_close(&rig);
}

Test(smoother, refuses_what_makes_no_sense) {
  const struct {
    qk_smoother_params_t params;
    int nrhs;
    const char *says;
  } cases[] = {
      {{.kind = QK_SMOOTHER_COUNT}, 1, "kind 6"},
      {{.kind = QK_SMOOTHER_MR, .omega = 2}, 1, "omega 2"},
      {{.kind = QK_SMOOTHER_MR, .omega = -0.5}, 1, "omega -0.5"},
      {{.kind = QK_SMOOTHER_SCHWARZ, .block = {2, 4, 3, 4}}, 1, "extent 3 does not divide"},
      {{.kind = QK_SMOOTHER_SCHWARZ}, 1, "extent 0"},
      {{.kind = QK_SMOOTHER_MR}, 0, "0 right-hand sides"},
      {{.kind = QK_SMOOTHER_MR}, QK_MAX_RHS + 1, "65 right-hand sides"},
  };
  qk_rig_t rig;
  open_rig(&rig);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    qk_smoother_t *s = NULL;
    qk_err_t err = {0};
    qk_status_t status =
        qk_smoother_create(rig.op, rig.work, &cases[i].params, QK_SINGLE, cases[i].nrhs, &s, &err);
    cr_expect(status == QK_BAD_ARGUMENT && s == NULL, "case %zu: %s", i, qk_status_name(status));
    cr_expect(strstr(err.text, cases[i].says), "case %zu: %s", i, err.text);
  }
  rig_close(&rig);
}

Test(smoother, names_are_read_back) {
  qk_smoother_kind_t kind;
  for (int k = 1; k < QK_SMOOTHER_COUNT; k++) {
    cr_expect(qk_smoother_parse(qk_smoother_name((qk_smoother_kind_t)k), &kind));
    cr_expect((int)kind == k);
  }
  cr_expect(!qk_smoother_parse("jacobi", &kind));
}
