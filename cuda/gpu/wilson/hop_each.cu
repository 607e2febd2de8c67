/* The operator in double for several fields of one RHS each: eight threads in a row have eight
 * sites of a field, the next eight the same sites of the next field, so that a warp finds links and
 * local terms in L1 that one of its fields has loaded. The arithmetic of a site is that of one
 * field, and so are its bits. */
#include "cuda/gpu/wilson/hop.cuh"

namespace QK_NS {
namespace {

struct hop_each_job {
  qk_hop_each_args_t each;
  hop_numbers<double> num;
  walk sites;
  divider n;
};

template <int REALS, bool DRESSED>
__global__ void __launch_bounds__(hop_threads, hop_resident<double>)
    hop_each_kernel(const __grid_constant__ hop_each_job job) {
  const int thread = (int)(blockIdx.x * hop_threads + threadIdx.x);
  int group = thread / QK_TILE;
  const int k = split_off(group, job.n), n = group * QK_TILE + thread % QK_TILE;
  if (n >= job.sites.nwork) return;
  qk_hop_args_t a = job.each.hop;
  a.in.data = job.each.of[k].in;
  a.z.data = job.each.of[k].z;
  a.x.data = job.each.of[k].x;
  a.y.data = job.each.of[k].y;
  a.out.data = job.each.of[k].out;
  if (a.minus != nullptr) a.minus += k;
  const one_site at = {site_at(a.lat, job.sites, n), 1, 0};
  hop_body<one_site, double, REALS, false, DRESSED>{a, job.num, at, at.here.parity}.run();
}

/* Two fields still find the slices of their neighbours in L2, more are visited as a block is. */
walk sites_of_each(const qk_hop_each_args_t &each) {
  const qk_hop_args_t &a = each.hop;
  const site_box box = box_of(a.lat, a.region);
  const int slice[4] = {box.extent[0], box.extent[1], box.extent[2], 1};
  walk w = each.n > 2 ? walk_in_rows(box, a.out_parity) : walk_over(box, a.out_parity, slice);
  w.backwards = a.out_parity == QK_EVEN;
  return w;
}

int64_t threads_of(const hop_each_job &job) {
  return ((int64_t)job.sites.nwork + QK_TILE - 1) / QK_TILE * QK_TILE * job.each.n;
}

template <int REALS> void start(const hop_each_job &job, cudaStream_t stream) {
  const unsigned blocks = (unsigned)((threads_of(job) + hop_threads - 1) / hop_threads);
  if (is_dressed(job.each.hop))
    hop_each_kernel<REALS, true><<<blocks, hop_threads, 0, stream>>>(job);
  else
    hop_each_kernel<REALS, false><<<blocks, hop_threads, 0, stream>>>(job);
}

} // namespace

bool hop_each_is_one(const qk_hop_each_args_t &each) {
  const qk_hop_args_t &a = each.hop;
  const int64_t threads = 2 * (int64_t)a.lat.vcb * each.n + hop_threads;
  return each.n > 1 && a.out.prec == QK_DOUBLE && !is_general(a) &&
         a.region != QK_REGION_BOUNDARY && threads < INT32_MAX;
}

qk_status_t hop_each_launch(qk_ops_ctx_t *ctx, const qk_hop_each_args_t &each) {
  const hop_each_job job = {each, hop_numbers_of<double>(each.hop), sites_of_each(each),
                            divider_by(each.n)};
  if (job.sites.nwork == 0) return QK_OK;
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  if (each.hop.links.reals == 18)
    start<18>(job, stream);
  else if (each.hop.links.reals == 12)
    start<12>(job, stream);
  else
    start<8>(job, stream);
  return qk_gpu_launched(ctx, "hop_each");
}

} // namespace QK_NS
