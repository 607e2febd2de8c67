/*
 * ops.h: everything the engine asks of a device, as one table per backend.
 *
 * qk_ops_cpu() runs the kernels with g++ and OpenMP, qk_ops_gpu() the same bodies under CUDA; in a
 * build without CUDA the GPU table is a stub whose open() says so. Memory of a backend is touched
 * through the table only, except that memory of the CPU backend is ordinary host memory.
 *
 * Order        Kernels and copies run in the order of the calls on their queue (0: compute, 1:
 *              copies to the device, 2: copies to the host, 3: halos); queues are ordered against
 *              each other by queue_wait only. All calls may return before the work is done;
 *              queue_sync waits, queue_idle asks. Not collective.
 * Errors       QK_DEVICE_MEMORY from alloc (nothing changed); QK_DEVICE_ERROR from anything (the
 *              context is lost: only a new process helps); QK_BAD_ARGUMENT for descriptors that do
 *              not fit each other (nothing launched). Errors of a kernel may show at a later call.
 * Lanes        No kernel lets one RHS depend on another: NaN in a lane stays there, and a lane's
 *              result has the same bits whatever the other lanes of its block hold.
 *              Reductions have a fixed order: same input, same bits, whatever the thread count.
 * Masks        mask: device bytes [nrhs], NULL for all ones. A lane with mask 0 keeps its old
 *              value, in the fields and in red.
 * Scalars      Device arrays of complex doubles [nrhs][2].
 */
#ifndef QK_CUDA_OPS_H
#define QK_CUDA_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "cuda/coherent_ops.h"
#include "cuda/fifth_ops.h"
#include "cuda/gauge_ops.h"
#include "cuda/linkfield_ops.h"
#include "cuda/mg_ops.h"
#include "cuda/peer_ops.h"
#include "cuda/project_ops.h"
#include "cuda/rows.h"
#include "cuda/shift_ops.h"
#include "cuda/stag_ops.h"
#include "cuda/tuning.h"
#include "cuda/types.h"
#include "cuda/vector_block_ops.h"
#include "daemon/base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qk_ops_ctx qk_ops_ctx_t; /* one per process and device; used by one thread */
typedef struct qk_graph qk_graph_t;

enum { QK_QUEUES = 4 };

typedef enum qk_copy { QK_COPY_TO_DEVICE, QK_COPY_TO_HOST, QK_COPY_DEVICE } qk_copy_t;

typedef struct qk_device_info {
  char name[96];        /* "NVIDIA H200" or the CPU's model */
  int64_t memory_total; /* bytes */
  int64_t memory_free;
  char memory_by[256]; /* on the CPU what sets it (daemon/base/room.h); else "" */
  int32_t threads;     /* OpenMP threads, or multiprocessors */
  char bus[24];        /* where it is on the PCI bus: "0000:17:00.0"; CPU: "" */
  char code[48];       /* compute capability that the kernels were built for: "9.0"; CPU: "" */
} qk_device_info_t;

/* ---- hopping: out = [hop and site-diagonal term of `in`] fused with what follows ----------------
 *
 *   hop(n) = sum_mu [ (1 - s g_mu) U_mu(n) in(n+mu) + (1 + s g_mu) U_mu(n-mu)^+ in(n-mu) ]
 *            each direction times weight[mu]; s = +1, or -1 for dagger. A hop across the global
 *            edge of direction mu takes the factor phase[mu] forwards and its conjugate backwards
 *   diag_on_sum == 0:  out = c_hop*hop + c_z*T z + c_x*x + c_y*y
 *   diag_on_sum == 1:  out = T (c_hop*hop + c_z*z) + c_x*x + c_y*y
 *
 * T is `diag`, T^+ for dagger. c_hop == 0 leaves the hop out (in is not read).
 * out_parity QK_FULL: in, out, x, z are full fields. QK_EVEN/QK_ODD: out, x, z hold that parity, in
 * the other one (the kernel is given single-parity views). x, y, z may be absent (data NULL) when
 * their coefficient is 0; x and y may be the same as out, in and z never (z == in is allowed).
 * One precision, also of links and diag, block shape and nrhs; where it is half and c_hop is not 0,
 * out may be in single, not rounded. Work: 1320 flop a site for the hop, 504 for a clover term.
 */
typedef struct qk_hop_args {
  qk_lattice_t lat;
  qk_subset_t out_parity;
  qk_region_t region;
  uint32_t hops; /* bit 2*mu + (0: from n+mu, 1: from n-mu): hops that take part; 0: all */
  int32_t block
      [4]; /* > 0: hops between blocks of these extents (local coordinates) are left out; 0: none */
  int32_t dagger;
  int32_t diag_on_sum;
  double c_hop, c_z, c_x, c_y;
  /* Complex boundary phase per direction; 0 cuts the boundary (what is beyond must be finite). */
  double phase[4][2];
  double weight[4]; /* of the hops of a direction; 0 says 1, so that no weights are all 1 */
  /* Device bytes [nrhs]: right-hand sides for which Q of T is conjugated; NULL: none. */
  const uint8_t *minus;
  qk_links_t links;
  qk_local_t diag;
  qk_spinor_t in, z, x, y, out;
  /* Per direction that is split: half-spinors received from the rank behind ([0], already
   * multiplied by U^+ by the sender) and ahead ([1], projected only). Parity of the input sites;
   * for QK_FULL out_parity the even input parity first, then the odd one,
   * each face padded to a multiple of 8. */
  qk_spinor_t ghost[4][2];
  qk_turns_t turns;
  /* Of fields in half: sums may be rounded to 16 bits, too, which is enough for a smoother. The GPU
   * does it for blocks, one parity, links of 18 reals, a hop without dagger and no z, on sites that
   * read no ghosts, with real phases and all hops; everything else is computed as ever. */
  int32_t rough;
} qk_hop_args_t;

/* RHS that one call takes at most of those whose numbers stand beside each other in a block, or
 * that have fields of their own. */
enum { QK_RHS_TOGETHER = 4 };

/* The same for n fields of one RHS each, 1 to QK_RHS_TOGETHER of them: the data of those of number
 * k stand in of[k], all else of them in `hop`, and minus[k] is its flavour. Links and T are read
 * once for all, by the GPU in double, with real phases and all hops; otherwise it is one call of
 * hop after the other, as on the CPU. No ghosts are read: no direction may be split, or the region
 * is the interior. No out is a field of another number. */
typedef struct qk_hop_each_args {
  qk_hop_args_t hop;
  int32_t n;
  struct {
    void *in, *z, *x, *y, *out;
  } of[QK_RHS_TOGETHER];
} qk_hop_each_args_t;

/* Fills the send buffers that a neighbour reads as ghosts. to[mu][0] goes to the rank behind (its
 * ghost[mu][1]): (1 - s g) in(n) on our face 0. to[mu][1] goes ahead (its ghost[mu][0]):
 * U_mu(n)^+ (1 + s g) in(n) on our face l-1. Face index: the cb index rule with direction mu left
 * out, over the input sites of that parity. Same layout as qk_hop_args.ghost. in_parity as the
 * input. whole: the spinors as they are, without (1 -+ s g), for gauss; `to` has 12 components. */
typedef struct qk_pack_args {
  qk_lattice_t lat;
  qk_subset_t in_parity;
  int32_t dagger;
  int32_t whole;
  qk_links_t links;
  qk_spinor_t in;
  qk_spinor_t to[4][2]; /* data NULL where not split */
  qk_turns_t turns;
} qk_pack_args_t;

/* ---- Gaussian smearing: one step in space, n + j over j = x, y, z -------------------------------
 *
 *   out(n) = c_own in(n) + c_hop sum_j [ U_j(n) in(n+j) + U_j(n-j)^+ in(n-j) ]
 *
 * Periodic. Full fields of one precision, block shape and nrhs, links too (18 or 12 reals); out is
 * not in. region and ghost as in qk_hop_args_t, with whole spinors (pack: whole); t is never split
 * here: lat.split[3] must be 0, l[3] may be 1 if vcb is a multiple of 8. 1776 flop a site.
 */
typedef struct qk_gauss_args {
  qk_lattice_t lat;
  qk_region_t region;
  double c_own, c_hop;
  qk_links_t links;
  qk_spinor_t in, out;
  qk_spinor_t ghost[3][2];
  qk_turns_t turns;
} qk_gauss_args_t;

/* ---- block BLAS ---------------------------------------------------------------------------------
 *
 * One pass over the fields, per-RHS scalars read on the device; results of reductions go to
 * red[k][nrhs][2] (sums over this rank). ratio(a, b) = a/b, or 0 where b is 0 or a/b is not finite.
 * f0, f1, ... are fields, c0, c1, ... scalars; (a,b) = sum conj(a) b. "lo" may have another
 * precision than the first field; all others of a call have one precision.
 * X(NAME, fields, scalars, reductions, formula)
 */
#define QK_BLAS_TABLE(X)                                                                           \
  X(ZERO, 1, 0, 0, "f0 = 0")                                                                       \
  X(COPY, 2, 0, 0, "f0 = f1 (lo)")                                                                 \
  X(ADD, 2, 0, 0, "f0 += f1 (lo)")                                                                 \
  X(SUB, 3, 0, 0, "f0 = f1 - f2")                                                                  \
  X(SCALE, 1, 1, 0, "f0 *= c0")                                                                    \
  X(AXPY, 2, 1, 0, "f0 += c0 f1")                                                                  \
  X(XPAY, 2, 1, 0, "f0 = f1 + c0 f0")                                                              \
  X(NORM2, 1, 0, 1, "r0 = |f0|^2")                                                                 \
  X(CDOT, 2, 0, 1, "r0 = (f0,f1)")                                                                 \
  X(CDOT_NORM2, 2, 0, 2, "r0 = (f0,f1), r1 = |f0|^2")                                              \
  X(BICGSTAB_S, 2, 2, 1,                                                                           \
    "f0 -= ratio(c0,c1) f1, r0 = |f0|^2            (f0 r, f1 v; c0 rho, c1 (r0,v))")               \
  X(BICGSTAB_XR, 5, 4, 2,                                                                          \
    "f0 += ratio(c0,c1) f2 + ratio(c2,c3) f1, f1 -= ratio(c2,c3) f3, r0 = (f4,f1), r1 = |f1|^2"    \
    "  (f0 x, f1 s in r out, f2 p, f3 t, f4 r0; c2 (t,s), c3 (t,t))")                              \
  X(BICGSTAB_P, 3, 5, 0,                                                                           \
    "f0 = f1 + ratio(c0,c1) ratio(c1,c2) ratio(c4,c3) (f0 - ratio(c3,c4) f2)"                      \
    "  (f0 p, f1 r, f2 v; c0 new rho, c1 old rho, c2 (r0,v), c3 (t,s), c4 (t,t);"                  \
    " beta = (new rho / old rho) (alpha / omega), alpha = ratio(c1,c2), omega = ratio(c3,c4))")    \
  X(CG_XR, 4, 2, 1,                                                                                \
    "f0 += ratio(c0,c1) f2, f1 -= ratio(c0,c1) f3, r0 = |f1|^2  (f0 x, f1 r, f2 p, f3 Ap)")        \
  X(CG_P, 2, 2, 0, "f0 = f1 + ratio(c0,c1) f0                           (f0 p, f1 r)")             \
  X(CG_XP, 3, 3, 1,                                                                                \
    "f0 += ratio(c0,c1) f1, f1 = f2 + ratio(c2,c0) f1, r0 = |f1|^2    (f0 x, f1 p, f2 r)")         \
  X(CG_R, 3, 2, 1,                                                                                 \
    "f0 = f1 - ratio(c0,c1) f2, r0 = |f0|^2    (f0 next r, f1 r, which may be f0, f2 Ap)")         \
  X(GCR_XR, 4, 2, 1,                                                                               \
    "f0 += ratio(c0,c1) f2, f1 -= ratio(c0,c1) f3, r0 = |f1|^2 (f0 x, f1 r, f2 z, f3 w)")          \
  X(MR_XR, 3, 3, 0,                                                                                \
    "f0 += c2 ratio(c0,c1) f1, f1 -= c2 ratio(c0,c1) f2        (f0 x, f1 r, f2 Mr; c2 omega)")

typedef enum qk_blas_op {
  QK_BLAS_NONE, /* what nobody has filled in: BAD_ARGUMENT */
#define X(name, fields, scalars, reductions, formula) QK_BLAS_##name,
  QK_BLAS_TABLE(X)
#undef X
      QK_BLAS_COUNT
} qk_blas_op_t;

enum { QK_BLAS_MAX_FIELDS = 5, QK_BLAS_MAX_SCALARS = 5, QK_MULTI_MAX = 32 };

typedef struct qk_blas_args {
  qk_blas_op_t op;
  qk_spinor_t f[QK_BLAS_MAX_FIELDS];
  const double *c[QK_BLAS_MAX_SCALARS];
  const uint8_t *mask;
  double *red;
} qk_blas_args_t;

/* Many against one, for GCR: red[k] = (f[k], y), or y += sum_k c[k]/d[k] sign f[k] (ratio; d NULL:
 * c[k]), where all f may be half with y single. mask[k]: bytes [nrhs] per field. */
typedef struct qk_multi_args {
  int32_t n; /* <= QK_MULTI_MAX */
  qk_spinor_t f[QK_MULTI_MAX];
  qk_spinor_t y;
  const double *c;      /* [n][nrhs][2] */
  const double *d;      /* [n][nrhs][2] or NULL */
  const uint8_t *mask;  /* [n][nrhs] or NULL; masked entries give red 0, add nothing */
  const uint8_t *fresh; /* [nrhs] or NULL; multi_axpy takes y of these lanes for 0 */
  double sign;
  double *red; /* [n][nrhs][2] */
} qk_multi_args_t;

/* A step of GCR, all that follows the application w_n = M z_n. The first n directions are
 * orthogonal:
 *   c_k = ratio((w_k,w_n), |w_k|^2);  w_n -= sum_k c_k w_k;  z_n -= sum_k c_k z_k
 *   |w_n|^2 -= sum_k |c_k|^2 |w_k|^2  (0 where only rounding is left, and then a = 0)
 *   a = ratio((w_n,r), |w_n|^2);  x += a z_n (x_zero: x = a z_n);
 *   r -= a w_n;  next = r (where given)
 * x absent: the w stay as they are, and no z takes part (body/gcr.h); next may be half, r single.
 * The inner products are those before the step. No field may be another one. A lane with mask 0
 * takes nothing: all c_k and a are 0; what has c_k = 0 is not looked at. */
enum { QK_GCR_MAX = QK_MULTI_MAX - 2, QK_GRAM_MAX = 8 };

typedef struct qk_gcr_args {
  int32_t n; /* < QK_GCR_MAX */
  int32_t x_zero;
  qk_spinor_t w[QK_GCR_MAX], z[QK_GCR_MAX]; /* n+1 of them */
  qk_spinor_t x, r, next;
  const double *dots;        /* [n+2][nrhs][2]: (w_k,w_n), k = 0 .. n, then (r,w_n) */
  double *norm2[QK_GCR_MAX]; /* n+1: |w_k|^2; that of w_n is written. Without x: body/gcr.h */
  const uint8_t *mask;
} qk_gcr_args_t;

/* Least squares in a small space, each RHS for itself: the y that make |v_0 - sum_i y_i v_{i+1}|
 * least, by Cholesky of the Gram matrix in double. A vector that is a combination of those before
 * it, but for rounding, gets 0. */
typedef struct qk_gram_args {
  int32_t n, nrhs;    /* 1 <= n <= QK_GRAM_MAX */
  const double *dots; /* (v_i,v_j), 0 <= i <= j <= n, at [j*(j+1)/2 + i][nrhs][2] */
  double *y;          /* [n][nrhs][2] */
} qk_gram_args_t;

/* The fields of such a space, each read once or nearly so (n <= 4: once). n as in qk_gram_args_t;
 * all fields of one precision and shape, any number of components.
 *   space_dots  dots = (v_i,v_j), 0 <= i <= j <= n, in the order of qk_gram_args_t.dots:
 *               sums over this rank
 *   space_step  x += sum_i y_i v_i (x_zero: x = ...);  v_0 -= sum_i y_i v_{i+1}, unless
 *               `last`: v_0 stays then, and v_n is not read; x is none of the v */
typedef struct qk_space_args {
  int32_t n, x_zero, last;
  qk_spinor_t v[QK_GRAM_MAX + 1]; /* n+1 of them */
  qk_spinor_t x;
  double *dots;
  const double *y; /* [n][nrhs][2] */
} qk_space_args_t;

/* What the heavy-quark residual is made of, each RHS for itself: red[nrhs][2] = (the sum over the
 * sites with x != 0 of |r|^2 / |x|^2, the number of those with x = 0), of this rank. The squares
 * are those of all components of a site. double or single, of one shape, any ncomp. */
typedef struct qk_site_ratios_args {
  qk_spinor_t r, x;
  double *red;
} qk_site_ratios_args_t;

/* ---- right-hand sides in wire order against lanes of a block ------------------------------------
 *
 * RHS number rhs to rhs + n - 1 of the block, n up to QK_RHS_TOGETHER: those whose numbers stand
 * beside each other cost little more than one of them.
 * wire: of each RHS, device memory at a multiple of 16 bytes, [t][z][y][x][spin][colour] of the
 * local lattice, complex float or double; of colour vectors, which fields of 3 components are,
 * [t][z][y][x][colour], and `basis` is not looked at.
 * basis: 4x4 complex matrix row by row, applied to the spin index on the way
 * (field = basis * wire for import, wire = basis * field for export), then times `factor`.
 * Field subset QK_FULL, any precision.
 */
typedef struct qk_rhs_args {
  qk_lattice_t lat;
  qk_spinor_t field;
  int32_t rhs, n;
  int32_t is_double;
  void *wire[QK_RHS_TOGETHER];
  double basis[4][4][2];
  double factor;
} qk_rhs_args_t;

/* One RHS of a block against one of another: to[to_rhs] = from[from_rhs], or += where `add`.
 * Same subset, sites and ncomp; any precisions and tile shapes.
 * n > 1: as many RHS of the block, from to_rhs or from_rhs on, against n fields of one RHS
 * each, of the shape of the other, which is not half, with their data in single_rhs[]; up to
 * QK_RHS_TOGETHER. n = 0 is 1.
 * plus, of which there is none or n, where `to` is of one RHS in tiles of eight sites, not half:
 * fields like `to` that are added to in its place, and stay: to = plus[k] + RHS k. */
typedef struct qk_rhs_copy_args {
  qk_spinor_t to, from;
  int32_t to_rhs, from_rhs;
  int32_t add, n;
  void *single_rhs[QK_RHS_TOGETHER];
  const void *plus[QK_RHS_TOGETHER];
} qk_rhs_copy_args_t;

/* A source written into one RHS (others untouched), in the internal basis (DeGrand-Rossi).
 *   POINT  1 at `site`, spin, colour
 *   WALL   1 at each site of time slice site[3], spin, colour
 *   Z2     each component (+-1 +- 0i) ... Z4  (+-1 +- i)/sqrt2: on every site, or on one time slice
 *          when site[3] >= 0. The bits are Philox4x32-10 of key = seed and counter = (global
 *          lexicographic site, component group), so they depend on neither ranks nor backend.
 *          spin, colour >= 0 restrict ("dilute") the noise to that component; < 0: all.
 *          Of colour vectors spin is 0 (< 0: likewise).
 *   HELD   what the RHS holds, on every site or on one time slice, spin and colour as for noise
 * Noise and HELD with t_every > 0: on the time slices site[3], site[3] + t_every, ... Everything
 * but POINT is multiplied by exp(i 2 pi sum_j mom[j] x_j / L_j), |mom[j]| < L_j;
 * exactly 1 for mom = 0.
 */
typedef enum qk_source_kind {
  QK_SOURCE_POINT,
  QK_SOURCE_WALL,
  QK_SOURCE_Z2,
  QK_SOURCE_Z4,
  QK_SOURCE_HELD
} qk_source_kind_t;

typedef struct qk_source_args {
  qk_lattice_t lat;
  qk_spinor_t field;
  int32_t rhs;
  qk_source_kind_t kind;
  int32_t site[4]; /* global x, y, z, t; t = -1: every time slice (noise, HELD) */
  int32_t spin, colour;
  uint64_t seed;
  int32_t mom[3], t_every; /* zero where the kind has none */
} qk_source_args_t;

/* RHS number rhs (all: -1) of a full field of any ncomp, QK_DOUBLE or QK_SINGLE: complex
 * numbers uniform in the square (-1, 1)^2, the same for a global site, component, RHS and seed
 * on every backend and rank grid. */
typedef struct qk_noise_args {
  qk_lattice_t lat;
  qk_spinor_t field;
  int32_t rhs;
  uint64_t seed;
} qk_noise_args_t;

/* ---- contractions: sums over each local time slice of phase times an object of propagators ------
 *
 * a, b: full fields of one precision, double or single, with 12 columns 3*spin + colour of the
 * source. S[s c; s' c'] is component (s, c) of column (s', c'); sums over equal indices.
 *
 *   MESON    [be][al][ga][de]  conj(S_b[be c; al c']) S_a[ga c; de c']             256 numbers
 *   NUCLEON  [g][g']           B(5, 5; 1): q1 = a, q2 = b, q3 = a                   16
 *   DELTA    [i][j][g][g']     -2 f_j B(i, j; 2), f = 1, -1, 1: of a alone          3 x 3 x 16
 *
 *   B(i, j; w) = eps_abc eps_a'b'c' (C g_i)_{al be} (C g_j)_{al' be'} q2[be b; be' b']
 *                ( q1[al a; al' a'] q3[g c; g' c'] + w q1[al a; g' a'] q3[g c; al' c'] )
 *                with C = g_t g_y, and i, j over x, y, z
 *
 * phase: complex [nmom][l[0] + l[1] + l[2]], factors of the local coordinates x, y, z. out: complex
 * [nmom][l[3]][numbers]. Both device memory. All sums in double.
 */
typedef enum qk_hadron { QK_HADRON_MESON, QK_HADRON_NUCLEON, QK_HADRON_DELTA } qk_hadron_t;

typedef struct qk_contract_args {
  qk_lattice_t lat;
  qk_hadron_t hadron;
  qk_spinor_t a, b; /* b may be a; not looked at for DELTA */
  int32_t nmom;
  const double *phase;
  double *out;
} qk_contract_args_t;

typedef struct qk_ops {
  const char *name; /* "cpu" or "cuda": for people */
  /* Device memory is memory of the host: it may be read and written, and all ranks of a host take
   * their share of it. */
  bool host_memory;
  /* Numbers that stand side by side in a tile of doubles (README.md, "Site order and layouts"). */
  int piece;
  const qk_tuning_t *tuning;

  /* How many devices `open` can be asked for: 1 of the CPU. QK_NO_DEVICE, QK_UNSUPPORTED. */
  qk_status_t (*count)(int *count, qk_err_t *err);
  /* device: ordinal of the GPU, ignored by the CPU. QK_NO_DEVICE: there is none; QK_UNSUPPORTED:
   * this build has no kernels for that card, or the driver is too old; QK_DEVICE_ERROR,
   * QK_NO_MEMORY. */
  qk_status_t (*open)(int device, qk_ops_ctx_t **ctx, qk_err_t *err);
  void (*close)(qk_ops_ctx_t *ctx); /* NULL-safe */
  qk_status_t (*info)(qk_ops_ctx_t *ctx, qk_device_info_t *info);
  /* The text of the last failure of this context, for the log. */
  const char *(*last_error)(qk_ops_ctx_t *ctx);

  /* Device memory, 256-byte aligned; and host memory that copies run fastest with, short ones
   * without waiting for long ones of other queues. */
  qk_status_t (*alloc)(qk_ops_ctx_t *ctx, size_t bytes, void **ptr);
  void (*free)(qk_ops_ctx_t *ctx, void *ptr);
  qk_status_t (*alloc_host)(qk_ops_ctx_t *ctx, size_t bytes, void **ptr);
  void (*free_host)(qk_ops_ctx_t *ctx, void *ptr);
  int64_t (*allocated)(qk_ops_ctx_t *ctx); /* bytes of device memory held through alloc */

  /* Device memory, zeroed, that other processes of this host may open (peer_ops.h). open:
   * QK_UNSUPPORTED where that cannot be, last_error says why; close before the owner frees it. */
  qk_status_t (*peer_alloc)(qk_ops_ctx_t *ctx, size_t bytes, void **ptr, qk_peer_handle_t *handle);
  void (*peer_free)(qk_ops_ctx_t *ctx, void *ptr);
  qk_status_t (*peer_open)(qk_ops_ctx_t *ctx, const qk_peer_handle_t *handle, void **ptr);
  void (*peer_close)(qk_ops_ctx_t *ctx, void *ptr);

  qk_status_t (*copy)(qk_ops_ctx_t *ctx, void *dst, const void *src, size_t bytes, qk_copy_t kind,
                      int queue);
  qk_status_t (*zero)(qk_ops_ctx_t *ctx, void *dst, size_t bytes, int queue);
  qk_status_t (*queue_wait)(qk_ops_ctx_t *ctx, int waiter,
                            int on); /* later work of waiter after all now on `on` */
  qk_status_t (*queue_sync)(qk_ops_ctx_t *ctx, int queue);
  qk_status_t (*queue_idle)(qk_ops_ctx_t *ctx, int queue,
                            bool *idle); /* all that is on it is done */

  /* The kernels: rows.h. */
#define QK_ENTRY(name, arguments) qk_status_t (*name)(qk_ops_ctx_t * ctx, const arguments *args);
#define QK_SIZE_ENTRY(name, parameters) size_t(*name) parameters;
  QK_KERNELS(QK_ENTRY)
  QK_KERNEL_SIZES(QK_SIZE_ENTRY)
#undef QK_ENTRY
#undef QK_SIZE_ENTRY

  /* Graphs: what is called on queue 0 between begin and end is recorded, not run; launch runs it on
   * queue 0, at little cost a kernel, with the pointers it was recorded with. In between only calls
   * of this table that neither allocate nor wait. graph_begin: QK_UNSUPPORTED where the backend has
   * no graphs (CPU); graph_end always ends the recording. */
  qk_status_t (*graph_begin)(qk_ops_ctx_t *ctx);
  qk_status_t (*graph_end)(qk_ops_ctx_t *ctx, qk_graph_t **graph);
  qk_status_t (*graph_launch)(qk_ops_ctx_t *ctx, qk_graph_t *graph);
  void (*graph_destroy)(qk_ops_ctx_t *ctx, qk_graph_t *graph); /* NULL-safe */
} qk_ops_t;

const qk_ops_t *qk_ops_cpu(void);
const qk_ops_t *qk_ops_gpu(void);

/* "cpu", "cuda", or "auto": cuda if a device can be opened. A card that is there and cannot be used
 * is a warning in the log. NULL for another name. */
const qk_ops_t *qk_ops_by_name(const char *name);

#ifdef __cplusplus
}
#endif
#endif
