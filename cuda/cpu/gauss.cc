/* Gaussian smearing on the CPU: sites shared among the threads,
 * in vectors of eight RHS or sites. */
#include "cuda/body/gauss.h"
#include "cuda/args/hop_args.h"
#include "cuda/cpu/each.h"
#include "cuda/ctx.h"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

template <class S> void gauss_as(const qk_gauss_args_t &a) {
  if (a.out.ntile > 0)
    in_blocks<S>(a, gauss_sites(a), [&](const rhs_site<real<S>> &at, int parity) {
      gauss_body<rhs_site<real<S>>, S, 0, true>{a, at, parity}.run();
    });
  else /* in the order of the tiles */
    in_rows(a, walk_over(a.lat, QK_FULL, a.lat.l), [&](const eight_sites &at, int parity) {
      gauss_body<eight_sites, S, 0, true>{a, at, parity}.run();
    });
}

} // namespace

qk_status_t gauss(qk_ops_ctx_t *ctx, const qk_gauss_args_t *args) {
  const char *misfit = qk_gauss_misfit(args);
  if (misfit != NULL) return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "gauss: %s", misfit);
  with_storage(args->out.prec, [=](auto s) { gauss_as<stored<decltype(s)>>(*args); });
  return QK_OK;
}

} // namespace QK_NS
