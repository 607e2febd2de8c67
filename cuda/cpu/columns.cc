/* Columns and sources on the CPU: one site after the other, shared among the threads. */
#include "cuda/body/columns.h"

#include "cuda/args/args.h"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

/* Lattices up to this many sites are done before threads would have met. */
constexpr int64_t small = 1024;

template <class F> void for_indices(int64_t n, const F &body) {
#pragma omp parallel for schedule(static) if (n > small)
  for (int64_t i = 0; i < n; i++) body(i);
}

template <class F> void for_sites(const qk_lattice_t &lat, const F &body) {
  for_indices(2 * (int64_t)lat.vcb, body);
}

/* Calls body with the field in its storage type. */
template <class F> void with_field(const qk_spinor_t &f, const F &body) {
  with_storage(f.prec, [&](auto s) { body(spinor_of<stored<decltype(s)>>(f)); });
}

/* Column k of site n in wire order. */
template <int REALS> void from_wire(const qk_rhs_args_t &a, int64_t n, int k, double *v) {
  const int64_t at = n * REALS;
  for (int c = 0; c < REALS; c++)
    v[c] = a.is_double ? ((const double *)a.wire[k])[at + c] : ((const float *)a.wire[k])[at + c];
}
template <int REALS> void to_wire(const qk_rhs_args_t &a, int64_t n, int k, const double *v) {
  const int64_t at = n * REALS;
  for (int c = 0; c < REALS; c++)
    if (a.is_double)
      ((double *)a.wire[k])[at + c] = v[c];
    else
      ((float *)a.wire[k])[at + c] = (float)v[c];
}

} // namespace

/* body(components, field, site, column): all columns of all sites, unless the arguments are
 * refused. */
template <class F>
static qk_status_t for_columns(qk_ops_ctx_t *ctx, const qk_rhs_args_t *a, const F &body) {
  const qk_status_t status = qk_args_rhs(ctx, a);
  if (status != QK_OK) return status;
  with_components(a->field, [&](auto components) {
    with_field(a->field, [&](auto f) {
      for_indices(2 * (int64_t)a->lat.vcb * a->n,
                  [=](int64_t i) { body(components, f, i / a->n, (int)(i % a->n)); });
    });
  });
  return QK_OK;
}

qk_status_t rhs_import(qk_ops_ctx_t *ctx, const qk_rhs_args_t *a) {
  return for_columns(ctx, a, [=](auto components, const auto &f, int64_t n, int k) {
    constexpr int N = components;
    double in[2 * N];
    from_wire<2 * N>(*a, n, k, in);
    import_site<N>(*a, f, n, k, in);
  });
}

qk_status_t rhs_export(qk_ops_ctx_t *ctx, const qk_rhs_args_t *a) {
  return for_columns(ctx, a, [=](auto components, const auto &f, int64_t n, int k) {
    constexpr int N = components;
    double out[2 * N];
    export_site<N>(*a, f, n, k, out);
    to_wire<2 * N>(*a, n, k, out);
  });
}

qk_status_t rhs_copy(qk_ops_ctx_t *ctx, const qk_rhs_copy_args_t *a) {
  qk_status_t status = qk_args_rhs_copy(ctx, a);
  if (status != QK_OK) return status;
  with_field(a->to, [=](auto to) {
    with_field(a->from, [=](auto from) {
      for_indices(copy_columns(*a), [=](int64_t i) { copy_column_site(*a, to, from, i); });
    });
  });
  return QK_OK;
}

qk_status_t source(qk_ops_ctx_t *ctx, const qk_source_args_t *a) {
  qk_status_t status = qk_args_source(ctx, a);
  if (status != QK_OK) return status;
  with_components(a->field, [=](auto components) {
    with_field(a->field, [=](auto f) {
      for_sites(a->lat, [=](int64_t n) { source_site<components>(*a, f, n); });
    });
  });
  return QK_OK;
}

template <class S> static void noise_all(const qk_noise_args_t &a) {
  const spinor<S> f = spinor_of<S>(a.field);
  for_sites(a.lat, [=](int64_t n) {
    for (int pair = 0; pair < noise_pairs(a.field); pair++) noise_pair(a, f, n, pair);
  });
}

qk_status_t noise(qk_ops_ctx_t *ctx, const qk_noise_args_t *a) {
  qk_status_t status = qk_args_noise(ctx, a);
  if (status != QK_OK) return status;
  if (a->field.prec == QK_DOUBLE)
    noise_all<double>(*a);
  else
    noise_all<float>(*a);
  return QK_OK;
}

} // namespace QK_NS
