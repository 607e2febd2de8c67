/*
 * bench_hop: speed of the operator kernels beside that of a plain copy measured in the same run.
 *
 *   M     Wilson-clover on the full lattice, one kernel
 *   Mhat  even-odd preconditioned (symmetric), two kernels
 *
 * Times are medians over repetitions, per application and right-hand side. GFLOPS count 1320
 * flop a site for the hop and 504 for a clover term. GB/s count the least traffic: each
 * spinor of a kernel once in and once out, each link and each clover element it needs once
 * per block of right-hand sides.
 */
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/ops.h"

typedef struct bench {
  const qk_ops_t *ops;
  qk_ops_ctx_t *ctx;
  qk_lattice_t lat;
  int64_t volume;
  qk_gauge_args_t gauge;
  double copy_rate; /* bytes a second, read and written */
  double seconds;   /* time to spend on one line */
  bool json;
  bool rough; /* qk_hop_args_t.rough */
  bool apart; /* right-hand sides have fields of their own: hop_each */
} bench_t;

typedef struct line {
  bool even_odd;
  qk_prec_t prec;
  int reals, nrhs;
} line_t;

static const size_t word_bytes[] = {8, 4, 2};
static const char *const prec_names[] = {"double", "single", "half"};

static void must(const bench_t *b, qk_status_t status, const char *what) {
  if (status == QK_OK) return;
  fprintf(stderr, "bench_hop: %s: %s: %s\n", what, qk_status_text(status),
          b->ctx ? b->ops->last_error(b->ctx) : "");
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *device_memory(const bench_t *b, size_t bytes) {
  void *p = NULL;
  must(b, b->ops->alloc(b->ctx, bytes, &p), "alloc");
  return p;
}

/* ---- timing ---- */

typedef struct work {
  void (*run)(const bench_t *b, void *arg);
  void *arg;
} work_t;

static double timed(const bench_t *b, work_t w, int n) {
  must(b, b->ops->queue_sync(b->ctx, 0), "queue_sync");
  const double start = now();
  for (int i = 0; i < n; i++) w.run(b, w.arg);
  must(b, b->ops->queue_sync(b->ctx, 0), "queue_sync");
  return (now() - start) / n;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Median of nine batches, each long enough for the clock. */
static double measure(const bench_t *b, work_t w) {
  double t[9];
  timed(b, w, 1);
  const double once = timed(b, w, 2);
  int n = (int)(b->seconds / 9 / once);
  if (n < 1) n = 1;
  for (int i = 0; i < 9; i++) t[i] = timed(b, w, n);
  qsort(t, 9, sizeof *t, ascending);
  return t[4];
}

/* ---- what is timed ---- */

typedef struct copy_job {
  void *to, *from;
  size_t bytes;
} copy_job_t;

static void run_copy(const bench_t *b, void *arg) {
  const copy_job_t *c = arg;
  must(b, b->ops->copy(b->ctx, c->to, c->from, c->bytes, QK_COPY_DEVICE, 0), "copy");
}

static double copy_rate(const bench_t *b) {
  copy_job_t c = {.bytes = strcmp(b->ops->name, "cpu") == 0 ? (size_t)1 << 28 : (size_t)1 << 31};
  c.to = device_memory(b, c.bytes);
  c.from = device_memory(b, c.bytes);
  must(b, b->ops->zero(b->ctx, c.from, c.bytes, 0), "zero");
  must(b, b->ops->zero(b->ctx, c.to, c.bytes, 0), "zero");
  const double t = measure(b, (work_t){run_copy, &c});
  b->ops->free(b->ctx, c.to);
  b->ops->free(b->ctx, c.from);
  return 2 * (double)c.bytes / t;
}

typedef struct hop_job {
  int passes;
  qk_hop_each_args_t pass[2]; /* n 0: one field */
} hop_job_t;

static void run_hop(const bench_t *b, void *arg) {
  const hop_job_t *h = arg;
  for (int i = 0; i < h->passes; i++)
    must(b,
         h->pass[i].n ? b->ops->hop_each(b->ctx, &h->pass[i])
                      : b->ops->hop(b->ctx, &h->pass[i].hop),
         "hop");
}

/* Fields for n right-hand sides stand one behind the other: bytes from one to the next. */
static void spread(qk_hop_each_args_t *each, int n, size_t in, size_t own, size_t out) {
  each->n = n;
  for (size_t k = 0; k < (size_t)n; k++) {
    each->of[k].in = (char *)each->hop.in.data + k * in;
    if (each->hop.z.data) each->of[k].z = (char *)each->hop.z.data + k * own;
    if (each->hop.x.data) each->of[k].x = (char *)each->hop.x.data + k * own;
    each->of[k].out = (char *)each->hop.out.data + k * out;
  }
}

/* One, or where right-hand sides are apart those of all, of which the first is returned. */
static qk_spinor_t field(const bench_t *b, const line_t *l, qk_subset_t subset) {
  const int columns = b->apart ? 1 : l->nrhs;
  qk_spinor_t v = {.prec = l->prec,
                   .subset = subset,
                   .ncomp = 12,
                   .nrhs = columns,
                   .ntile = columns == 1 ? 0 : (columns + QK_TILE - 1) / QK_TILE,
                   .nsites = subset == QK_FULL ? b->volume : b->volume / 2};
  const size_t fields = b->apart ? (size_t)l->nrhs : 1;
  const size_t lanes = fields * (size_t)v.nsites * (size_t)(v.ntile > 0 ? v.ntile * QK_TILE : 1);
  const size_t scales = l->prec == QK_HALF ? lanes * sizeof(float) : 0;
  char *p = device_memory(b, lanes * 24 * word_bytes[l->prec] + scales);
  must(b, b->ops->zero(b->ctx, p, lanes * 24 * word_bytes[l->prec] + scales, 0), "zero");
  v.data = p;
  if (scales > 0) v.scale = (float *)(p + lanes * 24 * word_bytes[l->prec]);
  return v;
}

/* The even half of a full field. */
static qk_spinor_t even_half(qk_spinor_t v) {
  v.subset = QK_EVEN;
  v.nsites /= 2;
  return v;
}

static void fill_noise(const bench_t *b, const qk_spinor_t *v) {
  qk_source_args_t s = {.lat = b->lat,
                        .field = *v,
                        .kind = QK_SOURCE_Z4,
                        .site = {0, 0, 0, -1},
                        .spin = -1,
                        .colour = -1};
  for (s.rhs = 0; s.rhs < v->nrhs; s.rhs++) {
    s.seed = 17 + (uint64_t)s.rhs;
    must(b, b->ops->source(b->ctx, &s), "source");
  }
}

/* The field of right-hand side number k of those that are apart. */
static qk_spinor_t behind(const bench_t *b, qk_spinor_t v, int k) {
  v.data = (char *)v.data + (size_t)k * (size_t)b->volume * 24 * word_bytes[v.prec];
  return v;
}

static qk_local_t clover(const bench_t *b, qk_prec_t prec, bool inverse) {
  qk_local_t a = {.prec = QK_DOUBLE}, d = {.prec = prec};
  int64_t singular = 0;
  a.data = device_memory(b, b->ops->diag_bytes(&b->lat, QK_DOUBLE));
  d.data = device_memory(b, b->ops->diag_bytes(&b->lat, prec));
  const qk_clover_set_args_t set = {
      .gauge = b->gauge, .csw = 1.0, .diag = 4.1, .plane = {1, 1, 1, 1, 1, 1}, .out = a};
  must(b, b->ops->clover_set(b->ctx, &set), "clover_set");
  const qk_diag_invert_args_t invert = {.lat = b->lat, .in = a, .out = &a, .singular = &singular};
  if (inverse) must(b, b->ops->diag_invert(b->ctx, &invert), "diag_invert");
  const qk_diag_convert_args_t convert = {.lat = b->lat, .in = a, .out = &d};
  must(b, b->ops->diag_convert(b->ctx, &convert), "diag_convert");
  must(b, b->ops->queue_sync(b->ctx, 0), "queue_sync");
  b->ops->free(b->ctx, (void *)a.data);
  return d;
}

/* Bytes a site of the full lattice and RHS. */
static double least_bytes(const line_t *l) {
  const double word = (double)word_bytes[l->prec],
               spinor = 24 * word + (l->prec == QK_HALF ? 4 : 0);
  const double links = 4 * l->reals * word / l->nrhs, diag = 72 * word / l->nrhs;
  /* Mhat: each pass works on half the sites; the second one also reads x */
  return l->even_odd ? 2.5 * spinor + 2 * links + diag : 2 * spinor + links + diag;
}

/* t: seconds a right-hand side. */
static void show_line(const bench_t *b, const line_t *l, double t) {
  const double bytes = least_bytes(l) * (double)b->volume, flop = 1824.0 * (double)b->volume;
  if (b->json)
    printf("{\"op\":\"%s\",\"precision\":\"%s\",\"reals\":%d,\"nrhs\":%d,\"ms_per_rhs\":%.6g,"
           "\"gflops\":%.6g,\"gbytes_per_s\":%.6g,\"of_copy\":%.4g}\n",
           l->even_odd ? "Mhat" : "M", prec_names[l->prec], l->reals, l->nrhs, 1e3 * t,
           1e-9 * flop / t, 1e-9 * bytes / t, bytes / t / b->copy_rate);
  else
    printf("%-5s %-7s %5d %5d %12.5f %10.1f %10.1f %8.1f%%\n", l->even_odd ? "Mhat" : "M",
           prec_names[l->prec], l->reals, l->nrhs, 1e3 * t, 1e-9 * flop / t, 1e-9 * bytes / t,
           100 * bytes / t / b->copy_rate);
  fflush(stdout);
}

static void run_line(const bench_t *b, const line_t *l) {
  qk_links_t links = {.prec = l->prec, .reals = l->reals};
  links.data = device_memory(b, b->ops->links_bytes(&b->lat, l->prec, l->reals));
  const qk_links_set_args_t set = {.gauge = b->gauge, .out = links};
  must(b, b->ops->links_set(b->ctx, &set), "links_set");
  qk_local_t diag = clover(b, l->prec, l->even_odd);
  qk_spinor_t in = field(b, l, QK_FULL), out = field(b, l, l->even_odd ? QK_EVEN : QK_FULL);
  qk_spinor_t middle = l->even_odd ? field(b, l, QK_ODD) : (qk_spinor_t){0};
  for (int k = 0; k < (b->apart ? l->nrhs : 1); k++) {
    const qk_spinor_t one = behind(b, in, k);
    fill_noise(b, &one);
  }

  qk_hop_args_t a = {
      .lat = b->lat, .out_parity = QK_FULL, .links = links, .diag = diag, .rough = b->rough};
  for (int mu = 0; mu < 4; mu++) a.phase[mu][0] = mu == 3 ? -1 : 1;
  hop_job_t job = {.passes = 1};
  if (l->even_odd) {
    job.passes = 2;
    a.diag_on_sum = 1;
    qk_hop_args_t *first = &job.pass[0].hop, *second = &job.pass[1].hop;
    *first = *second = a;
    first->out_parity = QK_ODD;
    first->c_hop = 1;
    first->in = even_half(in);
    first->out = middle;
    second->out_parity = QK_EVEN;
    second->c_hop = -0.25;
    second->c_x = 1;
    second->in = middle;
    second->x = even_half(in);
    second->out = out;
  } else {
    a.c_hop = -0.5;
    a.c_z = 1;
    a.in = a.z = in;
    a.out = out;
    job.pass[0].hop = a;
  }
  if (b->apart) {
    const size_t full = (size_t)b->volume * 24 * word_bytes[l->prec];
    spread(&job.pass[0], l->nrhs, full, full, l->even_odd ? full / 2 : full);
    spread(&job.pass[1], l->nrhs, full / 2, full, full / 2);
  }
  show_line(b, l, measure(b, (work_t){run_hop, &job}) / l->nrhs);
  b->ops->free(b->ctx, (void *)links.data);
  b->ops->free(b->ctx, (void *)diag.data);
  b->ops->free(b->ctx, in.data);
  b->ops->free(b->ctx, out.data);
  b->ops->free(b->ctx, middle.data);
}

/* ---- set-up ---- */

static double uniform(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(*state >> 11) * 0x1p-52 - 1;
}

/* A diagonal phase times a rotation in two colours: SU(3), cheap to make, and no two alike. */
static void some_link(uint64_t *seed, double u[18]) {
  const double a = 2 * uniform(seed), b = 2 * uniform(seed), r = 0.5 * uniform(seed);
  const double c = cos(r), s = sin(r);
  memset(u, 0, 18 * sizeof *u);
  u[0] = c * cos(a);
  u[1] = c * sin(a);
  u[4] = s * cos(b);
  u[5] = s * sin(b);
  u[8] = 1;
  u[12] = -s * cos(b);
  u[13] = s * sin(b);
  u[16] = c * cos(a);
  u[17] = -c * sin(a);
}

static void set_gauge(bench_t *b) {
  const size_t links = (size_t)b->volume * 4, bytes = links * 18 * sizeof(double);
  double *host = malloc(bytes);
  if (host == NULL) must(b, QK_NO_MEMORY, "links");
  uint64_t seed = 1;
  for (size_t i = 0; i < links; i++) some_link(&seed, host + 18 * i);
  double *device = device_memory(b, bytes);
  must(b, b->ops->copy(b->ctx, device, host, bytes, QK_COPY_TO_DEVICE, 0), "copy");
  must(b, b->ops->queue_sync(b->ctx, 0), "queue_sync");
  free(host);
  b->gauge = (qk_gauge_args_t){.lat = b->lat, .u = {.data = device}};
  memcpy(b->gauge.u.e, b->lat.l, sizeof b->lat.l);
}

static void set_lattice(bench_t *b, const int dims[4]) {
  b->volume = (int64_t)dims[0] * dims[1] * dims[2] * dims[3];
  b->lat.vcb = (int32_t)(b->volume / 2);
  for (int mu = 0; mu < 4; mu++) {
    b->lat.l[mu] = b->lat.global[mu] = dims[mu];
    b->lat.at_lo[mu] = b->lat.at_hi[mu] = 1;
    b->lat.face[mu] = b->lat.vcb / dims[mu];
  }
}

static const char usage[] =
    "usage: bench_hop [--backend cpu|cuda|auto] [--dims XxYxZxT] [--precision double,single,half]\n"
    "                 [--reals 18,12,8] [--nrhs 1,8,16] [--op M,Mhat] [--seconds S] [--rough]\n"
    "                 [--apart] [--json]\n"
    "Default: cpu on 16x16x16x16, or 32x32x32x64 for cuda; all precisions, reals 12, nrhs "
    "1,8,16.\n"
    "--rough: sums of Mhat on blocks in half may be rounded to 16 bits, as smoothers have them.\n"
    "--apart: up to four right-hand sides in fields of their own.\n";

typedef struct options {
  const char *backend, *precs, *ops;
  char reals[64], nrhs[64];
  int dims[4];
} options_t;

/* -1, or what to exit with. */
static int parse(int argc, char **argv, options_t *o, bench_t *b) {
  static const struct option options[] = {
      {"backend", 1, 0, 'b'}, {"dims", 1, 0, 'd'},  {"precision", 1, 0, 'p'}, {"reals", 1, 0, 'r'},
      {"nrhs", 1, 0, 'n'},    {"op", 1, 0, 'o'},    {"seconds", 1, 0, 's'},   {"json", 0, 0, 'j'},
      {"rough", 0, 0, 'R'},   {"apart", 0, 0, 'a'}, {"help", 0, 0, 'h'},      {0, 0, 0, 0}};
  int *d = o->dims, c;
  bool right = true;
  while (right && (c = getopt_long(argc, argv, "", options, NULL)) != -1) switch (c) {
    case 'b':
      o->backend = optarg;
      break;
    case 'd':
      right = sscanf(optarg, "%dx%dx%dx%d", &d[0], &d[1], &d[2], &d[3]) == 4;
      break;
    case 'p':
      o->precs = optarg;
      break;
    case 'r':
      snprintf(o->reals, sizeof o->reals, "%s", optarg);
      break;
    case 'n':
      snprintf(o->nrhs, sizeof o->nrhs, "%s", optarg);
      break;
    case 'o':
      o->ops = optarg;
      break;
    case 's':
      b->seconds = atof(optarg);
      break;
    case 'j':
      b->json = true;
      break;
    case 'R':
      b->rough = true;
      break;
    case 'a':
      b->apart = true;
      break;
    case 'h':
      fputs(usage, stdout);
      return 0;
    default:
      right = false;
    }
  if (right) b->ops = qk_ops_by_name(o->backend);
  if (b->ops != NULL) return -1;
  fputs(usage, stderr);
  return 64;
}

static void show_head(const bench_t *b) {
  const int *dims = b->lat.l;
  qk_device_info_t info;
  must(b, b->ops->info(b->ctx, &info), "info");
  if (b->json)
    printf("{\"device\":\"%s\",\"threads\":%d,\"dims\":[%d,%d,%d,%d],\"copy_gbytes_per_s\":%.6g}\n",
           info.name, info.threads, dims[0], dims[1], dims[2], dims[3], 1e-9 * b->copy_rate);
  else
    printf("%s, %d %s, %dx%dx%dx%d, copy %.1f GB/s (read and written)\n"
           "%-5s %-7s %5s %5s %12s %10s %10s %9s\n",
           info.name, info.threads, strcmp(b->ops->name, "cpu") ? "multiprocessors" : "threads",
           dims[0], dims[1], dims[2], dims[3], 1e-9 * b->copy_rate, "op", "prec", "reals", "nrhs",
           "ms per RHS", "GFLOPS", "GB/s", "of copy");
}

/* Every number of right-hand sides, M and Mhat. */
static void run_batches(bench_t *b, const options_t *o, line_t l) {
  char counts[64], *next;
  snprintf(counts, sizeof counts, "%s", o->nrhs);
  for (char *n = strtok_r(counts, ",", &next); n != NULL; n = strtok_r(NULL, ",", &next)) {
    l.nrhs = atoi(n);
    for (int eo = 0; eo < 2; eo++) {
      l.even_odd = eo;
      if (eo ? strstr(o->ops, "Mhat") != NULL : strcmp(o->ops, "Mhat") != 0) run_line(b, &l);
    }
  }
}

int main(int argc, char **argv) {
  options_t o = {"auto", "double,single,half", "M,Mhat", "12", "1,8,16", {0}};
  bench_t b = {.seconds = 0.5};
  const int code = parse(argc, argv, &o, &b);
  if (code >= 0) return code;
  qk_err_t err = {0};
  if (b.ops->open(0, &b.ctx, &err) != QK_OK) {
    fprintf(stderr, "bench_hop: %s\n", err.text);
    return 69;
  }
  const bool gpu = strcmp(b.ops->name, "cpu") != 0;
  for (int mu = 0; mu < 4; mu++)
    if (o.dims[mu] == 0) o.dims[mu] = gpu ? (mu == 3 ? 64 : 32) : 16;
  set_lattice(&b, o.dims);
  set_gauge(&b);
  b.copy_rate = copy_rate(&b);
  show_head(&b);
  for (line_t l = {0}; l.prec <= QK_HALF; l.prec++) {
    if (strstr(o.precs, prec_names[l.prec]) == NULL) continue;
    char rest[64], *next;
    snprintf(rest, sizeof rest, "%s", o.reals);
    for (char *r = strtok_r(rest, ",", &next); r != NULL; r = strtok_r(NULL, ",", &next)) {
      l.reals = atoi(r);
      run_batches(&b, &o, l);
    }
  }
  b.ops->free(b.ctx, (void *)b.gauge.u.data);
  b.ops->close(b.ctx);
  return 0;
}
