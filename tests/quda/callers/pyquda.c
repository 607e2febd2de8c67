/*
 * As PyQUDA calls: links twice, periodic for the clover term and with the sign for the hops;
 * multigrid, twelve columns in one call. Anisotropy: links in space divided by it, for the term
 * by another one.
 *
 * call=: multi (default), one, mat, matdag, dslash, clover, inverse, pc; multigrid=1; and all
 * that the parameters can say: norm=, matpc=, solution=, dagger=1, parity=odd, dslash=wilson,
 * mu=, basis=, hq=, absolute=1. device=1: links and fields in the memory of a GPU, 2: fields only
 * said to be. loads=2: all again, with links2=, when the file of pause= is there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kit.h"

typedef struct put_in {
  double space;
  bool sign;
  int last; /* time slice */
} put_in_t;

static double complex factor(void *arg, int mu, const int x[4]) {
  const put_in_t *p = arg;
  return (mu < 3 ? 1 / p->space : 1) * (p->sign && mu == 3 && x[3] == p->last ? -1 : 1);
}

typedef struct word {
  const char *name;
  int value;
} word_t;

static int choose(const kit_t *kit, const char *key, const word_t *words) {
  const char *text = kit_text(kit, key, words[0].name);
  while (words->name && strcmp(words->name, text) != 0) words++;
  if (!words->name) abort();
  return words->value;
}

static void choose_all(const kit_t *kit, QudaInvertParam *p) {
  static const word_t norms[] = {{"asymmetric", QUDA_ASYMMETRIC_MASS_NORMALIZATION},
                                 {"mass", QUDA_MASS_NORMALIZATION},
                                 {"kappa", QUDA_KAPPA_NORMALIZATION},
                                 {0}},
                      matpcs[] = {{"ee", QUDA_MATPC_EVEN_EVEN},
                                  {"oo", QUDA_MATPC_ODD_ODD},
                                  {"eea", QUDA_MATPC_EVEN_EVEN_ASYMMETRIC},
                                  {"ooa", QUDA_MATPC_ODD_ODD_ASYMMETRIC},
                                  {0}},
                      solutions[] = {{"mat", QUDA_MAT_SOLUTION},
                                     {"matpc", QUDA_MATPC_SOLUTION},
                                     {"matdagmat", QUDA_MATDAG_MAT_SOLUTION},
                                     {"matpcdagmatpc", QUDA_MATPCDAG_MATPC_SOLUTION},
                                     {"matpcdag", QUDA_MATPC_DAG_SOLUTION},
                                     {0}},
                      dslashes[] = {{"clover", QUDA_CLOVER_WILSON_DSLASH},
                                    {"wilson", QUDA_WILSON_DSLASH},
                                    {"twisted", QUDA_TWISTED_MASS_DSLASH},
                                    {"twisted-clover", QUDA_TWISTED_CLOVER_DSLASH},
                                    {"asqtad", QUDA_ASQTAD_DSLASH},
                                    {0}},
                      bases[] = {
                        {"degrand-rossi", QUDA_DEGRAND_ROSSI_GAMMA_BASIS},
                        {"ukqcd", QUDA_UKQCD_GAMMA_BASIS},
                        {"openqcd", QUDA_CHIRAL_GAMMA_BASIS},
#if LOOKALIKE != 1
                        {"dirac-pauli", QUDA_DIRAC_PAULI_GAMMA_BASIS},
#endif
                        {0}
                      };
  p->mass_normalization = choose(kit, "norm", norms);
  p->matpc_type = choose(kit, "matpc", matpcs);
  p->solution_type = choose(kit, "solution", solutions);
  p->dslash_type = choose(kit, "dslash", dslashes);
  p->gamma_basis = choose(kit, "basis", bases);
  p->dagger = kit_number(kit, "dagger", 0) ? QUDA_DAG_YES : QUDA_DAG_NO;
  p->tol_hq = kit_number(kit, "hq", 0);
  if (p->tol_hq > 0) p->residual_type = QUDA_HEAVY_QUARK_RESIDUAL;
  if (p->tol_hq > 0 && p->tol > 0) p->residual_type |= QUDA_L2_RELATIVE_RESIDUAL;
  if (kit_number(kit, "absolute", 0)) p->residual_type = QUDA_L2_ABSOLUTE_RESIDUAL;
  if (kit_number(kit, "both", 0)) p->residual_type |= QUDA_L2_RELATIVE_RESIDUAL;
  p->maxiter = (int)kit_number(kit, "maxiter", 10000);
  /* members that others than these would change */
  p->mu = kit_number(kit, "mu", 0);
  p->epsilon = kit_number(kit, "epsilon", 0);
#if LOOKALIKE != 1
  p->twist_flavor = kit_number(kit, "doublet", 0) ? QUDA_TWIST_NONDEG_DOUBLET : QUDA_TWIST_SINGLET;
#endif
#if LOOKALIKE != 4
  p->tm_rho = kit_number(kit, "tm_rho", 0);
#endif
  p->clover_rho = kit_number(kit, "clover_rho", 0);
  p->Ls = (int)kit_number(kit, "Ls", 1);
  if (kit_number(kit, "order", 0)) p->dirac_order = QUDA_LEX_DIRAC_ORDER;
  if (kit_number(kit, "half", 0)) p->cpu_prec = QUDA_HALF_PRECISION;
  if (kit_number(kit, "device", 0))
    p->input_location = p->output_location = QUDA_CUDA_FIELD_LOCATION;
}

/* The half of a brick with the sites of a parity. */
static void *half(const kit_t *kit, void *brick, bool odd) {
  return (char *)brick + (odd ? kit_bytes(kit) / 2 : 0);
}

static int x_fastest(const int *c, void *arg) {
  const kit_t *kit = arg;
  return ((c[3] * kit->grid[2] + c[2]) * kit->grid[1] + c[1]) * kit->grid[0] + c[0];
}

static bool has_device(const kit_t *kit) {
  return kit_number(kit, "device", 0) == 1;
}

/* Loads links, and frees them unless they are in use. */
static void load_links(const kit_t *kit, QudaGaugeParam *g, void *links[4]) {
  const size_t bytes = kit->sites * 18 * (kit->single ? sizeof(float) : sizeof(double));
  for (int mu = 0; has_device(kit) && mu < 4; mu++) links[mu] = kit_to_device(links[mu], bytes);
#if LOOKALIKE != 4
  if (has_device(kit)) g->location = QUDA_CUDA_FIELD_LOCATION;
#endif
  loadGaugeQuda(links, g);
}

static void free_links(const kit_t *kit, void *links[4]) {
  for (int mu = 0; !has_device(kit) && mu < 4; mu++) free(links[mu]);
}

static void load_term(const kit_t *kit, QudaGaugeParam *g, QudaInvertParam *p) {
  put_in_t in = {.space = kit_number(kit, "clover_xi", 1)};
  void *links[4];
  const QudaTboundary t = g->t_boundary;
  const double xi = g->anisotropy;
  kit_links(kit, factor, &in, links);
  g->t_boundary = QUDA_PERIODIC_T;
  g->anisotropy = 1;
  load_links(kit, g, links);
  g->t_boundary = t;
  g->anisotropy = xi;
  p->compute_clover = p->compute_clover_inverse = 1;
  p->clover_csw = in.space; /* PyQUDA keeps the anisotropy there */
  loadCloverQuda(NULL, NULL, p);
  free_links(kit, links);
}

static void apply(const kit_t *kit, const char *call, QudaInvertParam *p, void *x, void *b) {
  const bool odd = strcmp(kit_text(kit, "parity", "even"), "odd") == 0,
             pc = p->solution_type == QUDA_MATPC_SOLUTION,
             oo = p->matpc_type == QUDA_MATPC_ODD_ODD ||
                  p->matpc_type == QUDA_MATPC_ODD_ODD_ASYMMETRIC;
  const QudaParity parity = odd ? QUDA_ODD_PARITY : QUDA_EVEN_PARITY;
  void *out = pc ? half(kit, x, oo) : x, *in = pc ? half(kit, b, oo) : b;
  if (strcmp(call, "mat") == 0)
    MatQuda(out, in, p);
  else if (strcmp(call, "matdag") == 0)
    MatDagMatQuda(out, in, p);
  else if (strcmp(call, "dslash") == 0)
    dslashQuda(half(kit, x, odd), half(kit, b, !odd), p, parity);
  else if (strcmp(call, "clover") == 0 || strcmp(call, "inverse") == 0)
    cloverQuda(half(kit, x, odd), half(kit, b, odd), p, parity, strcmp(call, "inverse") == 0);
  else if (strcmp(call, "one") == 0)
    invertQuda(p->solution_type == QUDA_MATPCDAG_MATPC_SOLUTION ? half(kit, x, oo) : out,
               p->solution_type == QUDA_MATPCDAG_MATPC_SOLUTION ? half(kit, b, oo) : in, p);
  else
    abort();
}

/* What others do meanwhile is done when the file is there. */
static void wait_for_file(const char *path) {
  fflush(stdout);
  while (path && access(path, F_OK) != 0) usleep(1000);
}

/* Sources and room for solutions; solutions to the file. */
static void read_sources(const kit_t *kit, void **x, void **b) {
  for (int n = 0; n < kit->columns; n++) {
    b[n] = kit_source(kit, n);
    x[n] = kit_room(kit);
    if (!has_device(kit)) continue;
    b[n] = kit_to_device(b[n], kit_bytes(kit));
    x[n] = kit_to_device(x[n], kit_bytes(kit));
  }
}

static void write_solutions(const kit_t *kit, void **x, void **b) {
  for (int n = 0; n < kit->columns; n++) {
    if (has_device(kit)) x[n] = kit_from_device(x[n], kit_bytes(kit));
    kit_write(kit, n, x[n]);
    free(x[n]);
    if (!has_device(kit)) free(b[n]);
  }
}

int main(int argc, char **argv) {
  kit_t kit;
  kit_begin(&kit, argc, argv);
  put_in_t in = {.space = kit_number(&kit, "xi", 1),
                 .sign = kit_number(&kit, "sign", 1) != 0,
                 .last = kit.dims[3] - 1};
  QudaGaugeParam g;
  QudaInvertParam p, mg_invert;
  void *links[4], **x = calloc((size_t)kit.columns, sizeof *x),
                  **b = calloc((size_t)kit.columns, sizeof *b);
  const char *call = kit_text(&kit, "call", "multi");
  initCommsGridQuda(4, kit.grid, x_fastest, &kit);
  initQuda(-1);
  kit_gauge_param(&kit, &g);
  g.anisotropy = in.space;
  kit_invert_param(&kit, &p);
  choose_all(&kit, &p);
  const int loads = (int)kit_number(&kit, "loads", 1);
  for (int load = 0; load < loads; load++) {
    if (load) wait_for_file(kit_text(&kit, "pause", NULL));
    if (load && kit_text(&kit, "links2", NULL)) kit.links_key = "links2";
    if (p.dslash_type != QUDA_WILSON_DSLASH && p.dslash_type != QUDA_TWISTED_MASS_DSLASH)
      load_term(&kit, &g, &p);
    kit_links(&kit, factor, &in, links);
    load_links(&kit, &g, links);
    void *mg = NULL;
    QudaMultigridParam m = newQudaMultigridParam();
    if (kit_number(&kit, "multigrid", 0)) {
      kit_invert_param(&kit, &mg_invert);
      mg_invert.tol = 0;
      m.invert_param = &mg_invert;
      mg = newMultigridQuda(&m);
      updateMultigridQuda(mg, &m);
      p.preconditioner = mg;
    }
    read_sources(&kit, x, b);
    p.num_src = kit.columns;
    if (strcmp(call, "multi") == 0) kit_invert_all(&p, x, b, links, &g);
    for (int n = 0; strcmp(call, "multi") != 0 && n < kit.columns; n++)
      apply(&kit, call, &p, x[n], b[n]);
    write_solutions(&kit, x, b);
    free_links(&kit, links);
    kit_report(&kit, &p);
    if (mg) destroyMultigridQuda(mg);
    freeCloverQuda();
    freeUniqueGaugeQuda(QUDA_WILSON_LINKS);
  }
  endQuda();
  free(x);
  free(b);
  kit_end(&kit);
  return 0;
}
