/* What the callers share. */
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef KIT_MPI
#include <mpi.h>
#endif

#include "kit.h"

static void fail(const char *what) {
  fprintf(stderr, "caller: %s\n", what);
  exit(70);
}

const char *kit_text(const kit_t *kit, const char *key, const char *otherwise) {
  const size_t n = strlen(key);
  for (int k = 1; k < kit->argc; k++)
    if (strncmp(kit->argv[k], key, n) == 0 && kit->argv[k][n] == '=') return kit->argv[k] + n + 1;
  return otherwise;
}

double kit_number(const kit_t *kit, const char *key, double otherwise) {
  const char *text = kit_text(kit, key, NULL);
  return text ? atof(text) : otherwise;
}

void kit_numbers(const kit_t *kit, const char *key, int n, double *value) {
  const char *text = kit_text(kit, key, NULL);
  for (int k = 0; text && k < n; k++) {
    char *end;
    value[k] = strtod(text, &end);
    text = *end == ',' ? end + 1 : NULL;
  }
}

void kit_begin(kit_t *kit, int argc, char **argv) {
  double dims[4] = {4, 4, 4, 8}, grid[4] = {1, 1, 1, 1};
  *kit = (kit_t){.argc = argc, .argv = argv, .ranks = 1};
#ifdef KIT_MPI
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &kit->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &kit->ranks);
#endif
  kit_numbers(kit, "dims", 4, dims);
  kit_numbers(kit, "grid", 4, grid);
  kit->sites = 1;
  const bool t_fastest = kit_text(kit, "order", "x")[0] == 't'; /* else x, as MILC has it */
  for (int k = 0, rest = kit->rank; k < 4; k++) {
    const int mu = t_fastest ? 3 - k : k;
    kit->dims[mu] = (int)dims[mu];
    kit->grid[mu] = (int)grid[mu];
    kit->local[mu] = kit->dims[mu] / kit->grid[mu];
    kit->coord[mu] = rest % kit->grid[mu];
    rest /= kit->grid[mu];
    kit->sites *= (size_t)kit->local[mu];
  }
  kit->links_key = "links";
  kit->columns = (int)kit_number(kit, "columns", 1);
  kit->single = kit_number(kit, "single", 0) != 0;
  kit->kappa = kit_number(kit, "kappa", 0.12);
  kit->csw = kit_number(kit, "csw", 0);
  kit->tol = kit_number(kit, "tol", 1e-13);
  kit->prec = kit->single ? QUDA_SINGLE_PRECISION : QUDA_DOUBLE_PRECISION;
}

void kit_end(kit_t *kit) {
  (void)kit;
#ifdef KIT_MPI
  MPI_Finalize();
#endif
}

static void coordinates(const kit_t *kit, size_t brick, int x[4]) {
  const int *l = kit->local;
  const size_t half = kit->sites / 2, n = 2 * (brick % half);
  const size_t rest = n / (size_t)l[0];
  x[1] = (int)(rest % (size_t)l[1]);
  x[2] = (int)(rest / (size_t)l[1] % (size_t)l[2]);
  x[3] = (int)(rest / (size_t)l[1] / (size_t)l[2]);
  x[0] = (int)(n % (size_t)l[0]) + ((x[1] + x[2] + x[3]) % 2 != (int)(brick / half));
  for (int mu = 0; mu < 4; mu++) x[mu] += kit->coord[mu] * l[mu];
}

static size_t whole_index(const kit_t *kit, const int x[4]) {
  size_t n = 0;
  for (int mu = 3; mu >= 0; mu--) n = n * (size_t)kit->dims[mu] + (size_t)x[mu];
  return n;
}

typedef struct map {
  double *at;
  size_t bytes;
} map_t;

static map_t map_file(const kit_t *kit, const char *key, bool writes, size_t reals) {
  const int fd = open(kit_text(kit, key, ""), writes ? O_RDWR : O_RDONLY);
  struct stat st;
  if (fd < 0 || fstat(fd, &st)) fail(key);
  map_t m = {.bytes = (size_t)st.st_size};
  if (m.bytes < reals * sizeof *m.at) fail("a file is too short");
  m.at = mmap(NULL, m.bytes, writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  if (m.at == MAP_FAILED) fail(key);
  close(fd);
  return m;
}

static size_t volume_of(const kit_t *kit) {
  return kit->sites * (size_t)kit->ranks;
}

static void put(const kit_t *kit, void *to, size_t at, double v) {
  if (kit->single)
    ((float *)to)[at] = (float)v;
  else
    ((double *)to)[at] = v;
}

static size_t real_bytes(const kit_t *kit) {
  return kit->single ? 4 : 8;
}

void kit_links(const kit_t *kit, kit_factor_fn factor, void *arg, void *links[4]) {
  const map_t m = map_file(kit, kit->links_key, false, volume_of(kit) * 72);
  for (int mu = 0; mu < 4; mu++) links[mu] = malloc(kit->sites * 18 * real_bytes(kit));
  for (size_t s = 0; s < kit->sites; s++) {
    int x[4];
    coordinates(kit, s, x);
    const double *site = m.at + whole_index(kit, x) * 72;
    for (int k = 0; k < 36; k++) {
      const double complex w = factor ? factor(arg, k / 9, x) : 1,
                           v = (site[2 * k] + I * site[2 * k + 1]) * w;
      put(kit, links[k / 9], s * 18 + (size_t)(2 * (k % 9)), w == 1 ? site[2 * k] : creal(v));
      put(kit, links[k / 9], s * 18 + (size_t)(2 * (k % 9) + 1),
          w == 1 ? site[2 * k + 1] : cimag(v));
    }
  }
  munmap(m.at, m.bytes);
}

void *kit_milc_links(const kit_t *kit, void *const links[4]) {
  const size_t bytes = 18 * real_bytes(kit);
  char *all = malloc(kit->sites * 4 * bytes);
  for (size_t s = 0; s < kit->sites; s++)
    for (size_t mu = 0; mu < 4; mu++)
      memcpy(all + (4 * s + mu) * bytes, (char *)links[mu] + s * bytes, bytes);
  return all;
}

static void *read_brick(const kit_t *kit, const char *key, int n, size_t reals) {
  const size_t before = (size_t)n * volume_of(kit);
  const map_t m = map_file(kit, key, false, (before + volume_of(kit)) * reals);
  void *brick = malloc(kit->sites * reals * real_bytes(kit));
  for (size_t s = 0; s < kit->sites; s++) {
    int x[4];
    coordinates(kit, s, x);
    const double *site = m.at + (before + whole_index(kit, x)) * reals;
    for (size_t k = 0; k < reals; k++) put(kit, brick, s * reals + k, site[k]);
  }
  munmap(m.at, m.bytes);
  return brick;
}

void *kit_source(const kit_t *kit, int n) {
  return read_brick(kit, "in", n, 24);
}
void *kit_clover(const kit_t *kit) {
  return read_brick(kit, "clover", 0, 72);
}
size_t kit_bytes(const kit_t *kit) {
  return kit->sites * 24 * real_bytes(kit);
}
void *kit_room(const kit_t *kit) {
  return calloc(1, kit_bytes(kit));
}

/* ---- memory of a GPU ---- */

static void *of_driver(const char *name) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, name) : NULL;
  if (!symbol) fail(name);
  return symbol;
}

/* Calls of the driver want a context. */
static void copy_by_driver(const char *name, unsigned long long device, void *host, size_t bytes) {
  int (*attribute)(void *, int, unsigned long long), (*push)(void *), (*pop)(void **);
  int (*to_host)(void *, unsigned long long, size_t);
  int (*to_device)(unsigned long long, const void *, size_t);
  void *context;
  *(void **)&attribute = of_driver("cuPointerGetAttribute");
  *(void **)&push = of_driver("cuCtxPushCurrent_v2");
  *(void **)&pop = of_driver("cuCtxPopCurrent_v2");
  *(void **)&to_host = *(void **)&to_device = of_driver(name);
  if (attribute(&context, 1, device) || push(context)) fail("a context");
  if (strcmp(name, "cuMemcpyDtoH_v2") == 0 ? to_host(host, device, bytes)
                                           : to_device(device, host, bytes))
    fail(name);
  pop(&context);
}

void *kit_to_device(void *data, size_t bytes) {
  int (*allocate)(unsigned long long *, size_t);
  unsigned long long device;
  *(void **)&allocate = of_driver("cuMemAlloc_v2");
  if (allocate(&device, bytes)) fail("cuMemAlloc_v2");
  copy_by_driver("cuMemcpyHtoD_v2", device, data, bytes);
  free(data);
  return (void *)(size_t)device;
}

void *kit_from_device(void *device, size_t bytes) {
  void *data = malloc(bytes);
  copy_by_driver("cuMemcpyDtoH_v2", (size_t)device, data, bytes);
  return data;
}

/* The file is there, of its whole size: ranks write their sites. */
void kit_write(const kit_t *kit, int n, const void *brick) {
  const size_t before = (size_t)n * volume_of(kit);
  const map_t m = map_file(kit, "out", true, (before + volume_of(kit)) * 24);
  for (size_t s = 0; s < kit->sites; s++) {
    int x[4];
    coordinates(kit, s, x);
    double *site = m.at + (before + whole_index(kit, x)) * 24;
    for (size_t k = 0; k < 24; k++)
      site[k] =
          kit->single ? ((const float *)brick)[24 * s + k] : ((const double *)brick)[24 * s + k];
  }
  munmap(m.at, m.bytes);
}

void kit_gauge_param(const kit_t *kit, QudaGaugeParam *p) {
  *p = newQudaGaugeParam();
  for (int mu = 0; mu < 4; mu++) p->X[mu] = kit->local[mu];
  p->anisotropy = 1;
  p->type = QUDA_WILSON_LINKS;
  p->gauge_order = QUDA_QDP_GAUGE_ORDER;
  p->t_boundary = QUDA_ANTI_PERIODIC_T;
  p->cpu_prec = kit->prec;
}

void kit_invert_param(const kit_t *kit, QudaInvertParam *p) {
  *p = newQudaInvertParam();
  p->dslash_type = QUDA_CLOVER_WILSON_DSLASH;
  p->kappa = kit->kappa;
  p->solution_type = QUDA_MAT_SOLUTION;
  p->solve_type = QUDA_DIRECT_PC_SOLVE;
  p->matpc_type = QUDA_MATPC_EVEN_EVEN;
  p->dagger = QUDA_DAG_NO;
  p->mass_normalization = QUDA_ASYMMETRIC_MASS_NORMALIZATION;
  p->tol = kit->tol;
  p->maxiter = 10000;
  p->residual_type = QUDA_L2_RELATIVE_RESIDUAL;
  p->cpu_prec = kit->prec;
  p->dirac_order = QUDA_DIRAC_ORDER;
  p->gamma_basis = QUDA_DEGRAND_ROSSI_GAMMA_BASIS;
  p->clover_cpu_prec = kit->prec;
  p->clover_order = QUDA_PACKED_CLOVER_ORDER;
  p->clover_coeff = kit->kappa * kit->csw;
}

static double processor_seconds(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
         1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static double spent; /* in kit_invert_all */

void kit_report(const kit_t *kit, QudaInvertParam *p) {
#ifdef KIT_MPI
  double mine = spent;
  MPI_Reduce(&mine, &spent, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
#endif
  if (kit->rank) return;
  printf("residual %.3e %.3e iterations %d secs %.6f cpu %.3f\n", *(double *)&p->true_res,
         *(double *)&p->true_res_hq, p->iter, p->secs, spent);
}

void kit_invert_all(QudaInvertParam *p, void **x, void **b, void *links, QudaGaugeParam *gauge) {
  const double before = processor_seconds();
#if LOOKALIKE == 1
  invertMultiSrcQuda(x, b, p, links, gauge);
#else
  (void)links, (void)gauge;
  invertMultiSrcQuda(x, b, p);
#endif
  spent = processor_seconds() - before;
}
