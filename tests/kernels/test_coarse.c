/* The coarse operator on one backend, against plain loops over the formulas of cuda/mg_ops.h. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/mg_kit.h"

static const int whole[4] = {0, 0, 0, 0};
static const int smallest[4] = {2, 2, 2, 2}, thin[4] = {4, 2, 2, 6}, uneven[4] = {2, 2, 4, 4};

/* A coarse lattice with its matrices, fields of one shape, and the operands of a call. */
typedef struct problem {
  kit_t kit; /* of the level */
  int n;
  double complex *links, *diag; /* host: [site, even ones first][dir][row][column] */
  qk_coarse_args_t args;        /* full lattice, all terms; no ghosts */
  mg_block_t in, z, x, out;
} problem_t;

/* Precisions of fields and matrices, and the shape of the fields. */
typedef struct shape {
  qk_prec_t fields, matrices;
  int n, nrhs;
  bool single_rhs;
} shape_t;

static const shape_t shapes[] = {
    {QK_DOUBLE, QK_DOUBLE, 4, 3, false},  {QK_DOUBLE, QK_DOUBLE, 12, 1, true},
    {QK_DOUBLE, QK_DOUBLE, 48, 9, false}, {QK_SINGLE, QK_SINGLE, 4, 1, true},
    {QK_SINGLE, QK_SINGLE, 12, 8, false}, {QK_SINGLE, QK_SINGLE, 48, 1, true},
    {QK_SINGLE, QK_SINGLE, 48, 3, false}, {QK_SINGLE, QK_SINGLE, 64, 16, false},
    {QK_SINGLE, QK_HALF, 4, 20, false},   {QK_SINGLE, QK_HALF, 12, 1, true},
    {QK_SINGLE, QK_HALF, 48, 1, true},    {QK_SINGLE, QK_HALF, 48, 1, false},
    {QK_SINGLE, QK_HALF, 48, 20, false},  {QK_SINGLE, QK_HALF, 64, 8, false},
    {QK_SINGLE, QK_HALF, 64, 33, false},
};
enum { NSHAPES = sizeof shapes / sizeof *shapes };

static const char *text(shape_t s) {
  static char line[96];
  snprintf(line, sizeof line, "prec %d with %d, n %d, %d rhs%s", (int)s.fields, (int)s.matrices,
           s.n, s.nrhs, s.single_rhs ? " (eight sites)" : "");
  return line;
}

static problem_t problem_open(const kit_t *kit, const int dims[4], const int split[4], shape_t s) {
  problem_t p = {.kit = mg_level(kit, dims, split, s.n), .n = s.n};
  const size_t nn = (size_t)p.kit.volume * (size_t)(s.n * s.n);
  p.links = mg_numbers(8 * nn, 5);
  p.diag = mg_numbers(nn, 6);
  p.in = mg_block(&p.kit, s.fields, s.nrhs, s.single_rhs, 7);
  p.z = mg_block(&p.kit, s.fields, s.nrhs, s.single_rhs, 8);
  p.x = mg_block(&p.kit, s.fields, s.nrhs, s.single_rhs, 9);
  p.out = mg_block(&p.kit, s.fields, s.nrhs, s.single_rhs, 10);
  p.args = (qk_coarse_args_t){.lat = p.kit.lat,
                              .out_parity = QK_FULL,
                              .c_hop = -0.5,
                              .c_z = 2,
                              .c_x = 0.25,
                              .links = mg_matrices(&p.kit, s.matrices, s.n, 8, p.links),
                              .diag = mg_matrices(&p.kit, s.matrices, s.n, 1, p.diag),
                              .in = p.in.f.v,
                              .z = p.z.f.v,
                              .x = p.x.f.v,
                              .out = p.out.f.v};
  return p;
}

static void problem_close(problem_t *p) {
  kit_free(&p->kit, p->args.links.data);
  kit_free(&p->kit, p->args.diag.data);
  mg_block_free(&p->kit, &p->in);
  mg_block_free(&p->kit, &p->z);
  mg_block_free(&p->kit, &p->x);
  mg_block_free(&p->kit, &p->out);
  free(p->links);
  free(p->diag);
}

/* The arguments for one parity: views of the full fields. */
static qk_coarse_args_t of_parity(const problem_t *p, qk_subset_t parity) {
  qk_coarse_args_t a = p->args;
  a.out_parity = parity;
  if (parity == QK_FULL) return a;
  a.in = kit_half(&p->kit, &a.in, parity == QK_EVEN);
  a.z = kit_half(&p->kit, &a.z, parity == QK_ODD);
  a.x = kit_half(&p->kit, &a.x, parity == QK_ODD);
  a.out = kit_half(&p->kit, &a.out, parity == QK_ODD);
  return a;
}

static void run(const problem_t *p, const qk_coarse_args_t *a) {
  kit_must(&p->kit, p->kit.ops->coarse(p->kit.ctx, a), "coarse");
}

static void add_product(int n, const double complex *m, const double complex *x,
                        double complex *sum) {
  for (int r = 0; r < n; r++)
    for (int c = 0; c < n; c++) sum[r] += m[r * n + c] * x[c];
}

/* Whether the hop from x in direction d takes part. */
static bool hop_takes_part(const problem_t *p, const qk_coarse_args_t *a, const int x[4], int d) {
  const int mu = d / 2, to = x[mu] + (d % 2 ? -1 : 1), l = p->kit.lat.l[mu], b = a->block[mu];
  if (a->hops != 0 && !(a->hops >> d & 1)) return false;
  if (b == 0) return true;
  if ((to < 0 || to >= l) && p->kit.lat.split[mu]) return false;
  return x[mu] / b == (to + l) % l / b;
}

/* One column by plain loops. Hops over the edges of split directions read `far`. */
static void plain(const problem_t *p, const qk_coarse_args_t *a, const double complex *in,
                  const double complex *far, const double complex *z, const double complex *x,
                  double complex *out) {
  const int n = p->n;
  double complex *hop = calloc((size_t)n, sizeof *hop), *own = calloc((size_t)n, sizeof *own);
  cr_assert(hop != NULL && own != NULL);
  for (int64_t i = 0; i < p->kit.volume; i++) {
    int at[4];
    mg_coords(&p->kit, i, at);
    if (a->out_parity != QK_FULL && mg_parity(&p->kit, i) != (int)a->out_parity) continue;
    memset(hop, 0, (size_t)n * sizeof *hop);
    memset(own, 0, (size_t)n * sizeof *own);
    const int64_t site = mg_index(&p->kit, i);
    for (int d = 0; d < 8; d++) {
      if (!hop_takes_part(p, a, at, d)) continue;
      int to[4];
      memcpy(to, at, sizeof to);
      to[d / 2] += d % 2 ? -1 : 1;
      const bool over = to[d / 2] < 0 || to[d / 2] >= p->kit.lat.l[d / 2];
      const double complex *from = over && p->kit.lat.split[d / 2] ? far : in;
      add_product(n, p->links + (site * 8 + d) * n * n, from + mg_site(&p->kit, to) * n, hop);
    }
    if (a->diag.data != NULL)
      add_product(n, p->diag + site * n * n, z + i * n, own);
    else
      memcpy(own, z + i * n, (size_t)n * sizeof *own);
    for (int c = 0; c < n; c++)
      out[i * n + c] = a->c_hop * hop[c] + a->c_z * own[c] + a->c_x * x[i * n + c];
  }
  free(hop);
  free(own);
}

/* Columns of `out`, each `step`-th and the last, against plain loops; what is not of the
 * parity must be as it was. */
static void check_some(const problem_t *p, const qk_coarse_args_t *a, const mg_block_t *far,
                       const char *what, int step) {
  const size_t size = kit_components(&p->kit);
  double complex *got = kit_vector(&p->kit), *want = kit_vector(&p->kit);
  for (int rhs = 0; rhs < a->out.nrhs; rhs++) {
    if (rhs % step != 0 && rhs + 1 < a->out.nrhs) continue;
    const double complex *in = p->in.x[rhs];
    memcpy(want, p->out.x[rhs], size * sizeof *want);
    plain(p, a, in, far ? far->x[rhs] : in, p->z.x[rhs], p->x.x[rhs], want);
    kit_export(&p->kit, &p->out.f.v, rhs, got);
    const double off = mg_off(got, want, size);
    cr_expect(off < (a->out.prec == QK_DOUBLE ? 1e-15 : 1e-6), "%s: rhs %d: off by %g", what, rhs,
              off);
  }
  free(got);
  free(want);
}

static void check(const problem_t *p, const qk_coarse_args_t *a, const mg_block_t *far,
                  const char *what) {
  check_some(p, a, far, what, 1);
}

/* The fields' numbers before the next call. */
static void reset(const problem_t *p) {
  for (int rhs = 0; rhs < p->out.f.v.nrhs; rhs++)
    kit_import(&p->kit, &p->out.f.v, rhs, p->out.x[rhs]);
}

Test(coarse, agrees_with_plain_loops_in_all_shapes_and_parities) {
  kit_t kit;
  mg_kit_open(&kit, smallest, whole);
  const int *const dims[] = {smallest, thin, uneven};
  for (int i = 0; i < NSHAPES; i++) {
    problem_t p = problem_open(&kit, dims[i % 3], whole, shapes[i]);
    for (int parity = QK_EVEN; parity <= QK_FULL; parity++) {
      const qk_coarse_args_t a = of_parity(&p, (qk_subset_t)parity);
      reset(&p);
      run(&p, &a);
      check(&p, &a, NULL, text(shapes[i]));
    }
    problem_close(&p);
  }
  kit_close(&kit);
}

/* Backends may share out the work of a site otherwise where sites are many. */
Test(coarse, agrees_with_plain_loops_on_many_sites) {
  static const int some[4] = {4, 4, 2, 6}, most[4] = {8, 4, 4, 8};
  static const struct {
    const int *dims;
    shape_t shape;
  } cases[] = {
      {some, {QK_SINGLE, QK_HALF, 16, 3, false}},    {some, {QK_SINGLE, QK_HALF, 32, 33, false}},
      {some, {QK_SINGLE, QK_HALF, 48, 1, true}},     {some, {QK_SINGLE, QK_HALF, 48, 12, false}},
      {some, {QK_SINGLE, QK_HALF, 48, 24, false}},   {some, {QK_SINGLE, QK_HALF, 64, 1, true}},
      {some, {QK_SINGLE, QK_HALF, 64, 9, false}},    {some, {QK_SINGLE, QK_HALF, 64, 17, false}},
      {some, {QK_SINGLE, QK_SINGLE, 48, 1, true}},   {some, {QK_SINGLE, QK_SINGLE, 64, 2, false}},
      {some, {QK_SINGLE, QK_SINGLE, 32, 10, false}}, {some, {QK_SINGLE, QK_SINGLE, 48, 20, false}},
      {most, {QK_SINGLE, QK_HALF, 48, 1, true}},     {most, {QK_SINGLE, QK_HALF, 64, 2, false}},
      {most, {QK_SINGLE, QK_HALF, 32, 8, false}},    {most, {QK_SINGLE, QK_SINGLE, 48, 1, true}},
      {most, {QK_SINGLE, QK_HALF, 48, 9, false}},
  };
  kit_t kit;
  mg_kit_open(&kit, smallest, whole);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    problem_t p = problem_open(&kit, cases[i].dims, whole, cases[i].shape);
    run(&p, &p.args);
    check_some(&p, &p.args, NULL, text(cases[i].shape), 3); /* some of each tile */
    problem_close(&p);
  }
  kit_close(&kit);
}

Test(coarse, leaves_out_what_the_masks_and_coefficients_say) {
  static const struct {
    uint32_t hops;
    int block[4];
    double c_hop, c_z, c_x;
    bool diag;
  } cases[] = {
      {0x01, {0}, 1, 0, 0, true},
      {0x80, {0}, 1, 0, 1, true},
      {0x2c, {0}, 0.5, 1, 0, true},
      {0, {2, 1, 2, 3}, 1, 1, 0, true},
      {0, {0, 0, 0, 2}, 1, 0, 0, true},
      {0xf0, {4, 2, 1, 6}, 1, 0, 0.5, true},
      {0, {0}, 0, 1, 0, true},
      {0, {0}, 0, 1, -1, false},
      {0, {0}, 1, -0.5, 0, false},
      {0, {0}, 0, 0, 3, true},
      {0xff, {1, 1, 1, 1}, 1, 1, 0, false},
  };
  kit_t kit;
  mg_kit_open(&kit, smallest, whole);
  const shape_t some[] = {shapes[1], shapes[4], shapes[10], shapes[12]};
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    problem_t p = problem_open(&kit, thin, whole, some[i]);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
      qk_coarse_args_t a = of_parity(&p, (qk_subset_t)(k % 3));
      a.hops = cases[k].hops;
      memcpy(a.block, cases[k].block, sizeof a.block);
      a.c_hop = cases[k].c_hop;
      a.c_z = cases[k].c_z;
      a.c_x = cases[k].c_x;
      if (!cases[k].diag) a.diag = (qk_coarse_links_t){0};
      if (a.c_hop == 0) a.in.data = a.links.data = NULL;
      if (a.c_z == 0) a.z.data = NULL;
      if (a.c_x == 0) a.x.data = NULL;
      reset(&p);
      run(&p, &a);
      char what[128];
      snprintf(what, sizeof what, "%s: case %zu", text(some[i]), k);
      check(&p, &a, NULL, what);
    }
    problem_close(&p);
  }
  kit_close(&kit);
}

Test(coarse, output_may_be_the_field_that_is_added) {
  kit_t kit;
  mg_kit_open(&kit, smallest, whole);
  for (int i = 9; i < 13; i++) {
    problem_t p = problem_open(&kit, uneven, whole, shapes[i]);
    qk_coarse_args_t a = of_parity(&p, QK_FULL);
    a.out = a.x;
    run(&p, &a);
    double complex *got = kit_vector(&p.kit), *want = kit_vector(&p.kit);
    for (int rhs = 0; rhs < a.out.nrhs; rhs++) {
      plain(&p, &a, p.in.x[rhs], NULL, p.z.x[rhs], p.x.x[rhs], want);
      kit_export(&p.kit, &a.out, rhs, got);
      cr_expect_lt(mg_off(got, want, kit_components(&p.kit)), 1e-6, "%s", text(shapes[i]));
    }
    free(got);
    free(want);
    problem_close(&p);
  }
  kit_close(&kit);
}

/* ---- eight bits ------------------------------------------------------------------------------ */

/* Rows of the host's links as they are in eight bits. */
static void round_to_eight(problem_t *p) {
  const int64_t rows = p->kit.volume * 8 * p->n;
  for (int64_t r = 0; r < rows; r++) {
    double complex *row = p->links + r * p->n;
    float top = 0;
    for (int c = 0; c < p->n; c++)
      top = fmaxf(top, fmaxf(fabsf((float)creal(row[c])), fabsf((float)cimag(row[c]))));
    const float unit = top > 0 ? top / 127 : 1;
    for (int c = 0; c < p->n; c++)
      row[c] = unit * (double)rintf((float)creal(row[c]) / unit) +
               I * (unit * (double)rintf((float)cimag(row[c]) / unit));
  }
}

/* One row is 0, one much smaller than the others, one larger. */
static void make_uneven(problem_t *p) {
  const float by[] = {0, 0x1p-8f, 0x1p10f};
  for (int i = 0; i < 3; i++)
    for (int c = 0; c < p->n; c++) p->links[((5 + i) * p->n + 3 * i) * p->n + c] *= by[i];
  kit_free(&p->kit, p->args.links.data);
  p->args.links = mg_matrices(&p->kit, QK_HALF, p->n, 8, p->links);
}

/* false: the backend has none. */
static bool make_eight(problem_t *p) {
  const qk_ops_t *ops = p->kit.ops;
  void *eight = kit_alloc(&p->kit, ops->coarse_eight_bytes(&p->kit.lat, &p->args.links));
  const qk_coarse_eight_args_t make = {p->kit.lat, p->args.links, eight};
  const qk_status_t status = ops->coarse_eight(p->kit.ctx, &make);
  p->args.eight = eight;
  if (status == QK_UNSUPPORTED) return false;
  kit_must(&p->kit, status, "coarse_eight");
  return true;
}

static void check_eight(const kit_t *kit, const int dims[4], shape_t s) {
  problem_t p = problem_open(kit, dims, whole, s);
  make_uneven(&p);
  if (make_eight(&p)) {
    if (s.single_rhs) round_to_eight(&p);
    for (int parity = QK_EVEN; parity <= QK_FULL; parity++)
      for (int hops = 0; hops < 3; hops++) {
        qk_coarse_args_t a = of_parity(&p, (qk_subset_t)parity);
        a.hops = hops == 0 ? 0 : hops == 1 ? 0x24 : 0xf1;
        if (hops == 2) a.diag = (qk_coarse_links_t){0};
        reset(&p);
        run(&p, &a);
        check_some(&p, &a, NULL, text(s), 5);
      }
  }
  kit_free(&p.kit, (void *)p.args.eight);
  problem_close(&p);
}

/* Blocks take matrices of 16 bits as before. */
Test(coarse, takes_eight_bits_for_a_right_hand_side_alone) {
  static const int most[4] = {8, 4, 4, 8};
  kit_t kit;
  mg_kit_open(&kit, smallest, whole);
  check_eight(&kit, smallest, (shape_t){QK_SINGLE, QK_HALF, 16, 1, true});
  check_eight(&kit, uneven, (shape_t){QK_SINGLE, QK_HALF, 48, 1, true});
  check_eight(&kit, uneven, (shape_t){QK_SINGLE, QK_HALF, 64, 1, false});
  check_eight(&kit, uneven, (shape_t){QK_SINGLE, QK_HALF, 64, 9, false});
  check_eight(&kit, most, (shape_t){QK_SINGLE, QK_HALF, 32, 1, true});
  check_eight(&kit, most, (shape_t){QK_SINGLE, QK_HALF, 64, 1, true});
  check_eight(&kit, most, (shape_t){QK_SINGLE, QK_HALF, 80, 1, true});
  kit_close(&kit);
}

/* ---- ghosts ---------------------------------------------------------------------------------- */

/* Ghosts with the faces of `far`, as if it stood on both neighbouring ranks. */
static void fill_ghosts(const problem_t *p, qk_coarse_args_t *a, const mg_block_t *far,
                        kit_field_t ghost[4][2]) {
  qk_coarse_pack_args_t pack = {.lat = p->kit.lat, .in_parity = QK_FULL, .in = far->f.v};
  if (a->out_parity != QK_FULL) {
    pack.in_parity = a->out_parity == QK_EVEN ? QK_ODD : QK_EVEN;
    pack.in = kit_half(&p->kit, &far->f.v, pack.in_parity == QK_ODD);
  }
  for (int mu = 0; mu < 4; mu++)
    for (int side = 0; side < 2 && p->kit.lat.split[mu]; side++) {
      ghost[mu][side] = kit_ghost(&p->kit, &a->out, mu, a->out_parity, p->n);
      a->ghost[mu][side] = ghost[mu][side].v;
      pack.to[mu][1 - side] = ghost[mu][side].v;
    }
  kit_must(&p->kit, p->kit.ops->coarse_pack(p->kit.ctx, &pack), "coarse_pack");
}

static void free_ghosts(const problem_t *p, kit_field_t ghost[4][2]) {
  for (int mu = 0; mu < 4; mu++)
    for (int side = 0; side < 2 && p->kit.lat.split[mu]; side++)
      kit_field_free(&p->kit, &ghost[mu][side]);
}

/* The interior without ghosts, then the boundary. */
static void run_by_regions(const problem_t *p, const qk_coarse_args_t *a) {
  qk_coarse_args_t part = *a;
  memset(part.ghost, 0, sizeof part.ghost);
  part.region = QK_REGION_INTERIOR;
  run(p, &part);
  memcpy(part.ghost, a->ghost, sizeof part.ghost);
  part.region = QK_REGION_BOUNDARY;
  run(p, &part);
}

static void check_ghosts(const kit_t *kit, const int dims[4], const int split[4], shape_t s) {
  problem_t p = problem_open(kit, dims, split, s);
  mg_block_t far = mg_block(&p.kit, s.fields, s.nrhs, s.single_rhs, 11);
  for (int parity = QK_EVEN; parity <= QK_FULL; parity++)
    for (int blocks = 0; blocks < 2; blocks++) {
      kit_field_t ghost[4][2];
      qk_coarse_args_t a = of_parity(&p, (qk_subset_t)parity);
      if (blocks) a.block[1] = a.lat.l[1], a.block[3] = 2;
      fill_ghosts(&p, &a, &far, ghost);
      reset(&p);
      run(&p, &a);
      check(&p, &a, &far, text(s));
      reset(&p);
      run_by_regions(&p, &a);
      check(&p, &a, &far, "by regions");
      free_ghosts(&p, ghost);
    }
  mg_block_free(&p.kit, &far);
  problem_close(&p);
}

Test(coarse, takes_hops_over_split_edges_from_ghosts) {
  static const int splits[][4] = {
      {1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}, {1, 1, 1, 1}};
  static const int dims[4] = {4, 4, 4, 4}, long_t[4] = {2, 4, 2, 6}, t_only[4] = {0, 1, 0, 1};
  const shape_t some[] = {shapes[0], shapes[1], shapes[4], shapes[5], shapes[8], shapes[10]};
  kit_t kit;
  mg_kit_open(&kit, smallest, whole);
  for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
    check_ghosts(&kit, dims, splits[i], some[i]);
  check_ghosts(&kit, long_t, t_only, shapes[12]);
  check_ghosts(&kit, long_t, t_only, some[5]);
  kit_close(&kit);
}

Test(coarse, needs_no_ghosts_where_its_masks_leave_the_direction_out) {
  static const int split[4] = {0, 0, 1, 1};
  kit_t kit;
  mg_kit_open(&kit, smallest, whole);
  problem_t p = problem_open(&kit, uneven, split, shapes[4]);
  qk_coarse_args_t a = p.args;
  a.hops = 0x0f;
  run(&p, &a);
  check(&p, &a, NULL, "hops in x and y");
  a.hops = 0;
  a.block[2] = 4;
  a.block[3] = 2;
  run(&p, &a);
  check(&p, &a, NULL, "blocks in z and t");
  problem_close(&p);
  kit_close(&kit);
}

Test(coarse, reads_ghosts_of_the_shortest_split_lattice) {
  static const int split[4] = {1, 0, 0, 1};
  kit_t kit;
  mg_kit_open(&kit, smallest, whole);
  check_ghosts(&kit, smallest, split, shapes[4]);
  check_ghosts(&kit, smallest, split, shapes[10]);
  kit_close(&kit);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

Test(coarse, keeps_right_hand_sides_apart) {
  kit_t kit;
  mg_kit_open(&kit, smallest, whole);
  for (int i = 0; i < NSHAPES; i++) {
    const shape_t s = shapes[i];
    if (s.nrhs < 2) continue;
    problem_t p = problem_open(&kit, smallest, whole, s);
    const size_t size = kit_components(&p.kit);
    const int bad = s.nrhs / 2;
    double complex *before = malloc((size_t)s.nrhs * size * sizeof *before);
    double complex *after = kit_vector(&p.kit), *v = kit_vector(&p.kit);
    run(&p, &p.args);
    for (int rhs = 0; rhs < s.nrhs; rhs++)
      kit_export(&p.kit, &p.out.f.v, rhs, before + (size_t)rhs * size);
    for (size_t k = 0; k < size; k++) v[k] = k % 5 ? 1e30 : NAN;
    kit_import(&p.kit, &p.in.f.v, bad, v);
    kit_import(&p.kit, &p.z.f.v, bad, v);
    run(&p, &p.args);
    for (int rhs = 0; rhs < s.nrhs; rhs++) {
      kit_export(&p.kit, &p.out.f.v, rhs, after);
      if (rhs != bad)
        cr_expect(mg_same_bits(after, before + (size_t)rhs * size, size), "%s: rhs %d has changed",
                  text(s), rhs);
      else
        cr_expect(isnan(creal(after[0])), "%s: NaN has been lost", text(s));
    }
    free(before);
    free(after);
    free(v);
    problem_close(&p);
  }
  kit_close(&kit);
}

/* Numbers that no short format holds: rounding of the matrices to 16 bits,
 * of the vectors to tf32. */
Test(coarse, rounds_no_more_than_its_formats) {
  static const double most[3] = {1e-14, 1.5e-3, 1.5e-3};
  kit_t kit;
  mg_kit_open(&kit, smallest, whole);
  for (int i = 0; i < NSHAPES; i++) {
    problem_t p = problem_open(&kit, smallest, whole, shapes[i]);
    const double loose =
        shapes[i].matrices == QK_SINGLE && shapes[i].n % 16 != 0 ? 1e-6 : most[shapes[i].matrices];
    const size_t nn = (size_t)(p.kit.volume * p.n * p.n);
    for (size_t k = 0; k < 8 * nn; k++) p.links[k] *= 0.3;
    for (size_t k = 0; k < nn; k++) p.diag[k] *= 0.3;
    kit_free(&p.kit, p.args.links.data);
    kit_free(&p.kit, p.args.diag.data);
    p.args.links = mg_matrices(&p.kit, shapes[i].matrices, p.n, 8, p.links);
    p.args.diag = mg_matrices(&p.kit, shapes[i].matrices, p.n, 1, p.diag);
    double complex *got = kit_vector(&p.kit), *want = kit_vector(&p.kit);
    for (size_t k = 0; k < kit_components(&p.kit); k++) p.in.x[0][k] *= 0.7;
    kit_import(&p.kit, &p.in.f.v, 0, p.in.x[0]);
    run(&p, &p.args);
    plain(&p, &p.args, p.in.x[0], NULL, p.z.x[0], p.x.x[0], want);
    kit_export(&p.kit, &p.out.f.v, 0, got);
    const double off = mg_off(got, want, kit_components(&p.kit));
    cr_expect(off < loose, "%s: off by %g", text(shapes[i]), off);
    free(got);
    free(want);
    problem_close(&p);
  }
  kit_close(&kit);
}

/* ---- refusals -------------------------------------------------------------------------------- */

#define REFUSED(change, word)                                                                      \
  do {                                                                                             \
    qk_coarse_args_t a = p.args;                                                                   \
    change;                                                                                        \
    kit_refused(&p.kit, p.kit.ops->coarse(p.kit.ctx, &a), word);                                   \
  } while (0)

Test(coarse, refuses_descriptors_that_do_not_fit) {
  kit_t kit;
  mg_kit_open(&kit, smallest, whole);
  problem_t p = problem_open(&kit, thin, whole, shapes[8]);
  REFUSED(a.lat.l[1] = 3, "lattice");
  REFUSED(a.out_parity = (qk_subset_t)3, "out_parity = 3");
  REFUSED(a.region = (qk_region_t)7, "region = 7");
  REFUSED(a.out.ncomp = 6, "ncomp = 6");
  REFUSED(a.out.ncomp = 132, "ncomp = 132");
  REFUSED(a.out.prec = QK_HALF, "prec = 2");
  REFUSED(a.out.data = NULL, "out has no data");
  REFUSED(a.out.nrhs = 65, "nrhs = 65");
  REFUSED(a.out.ntile = 1, "ntile = 1");
  REFUSED(a.out.nsites = 8, "nsites = 8");
  REFUSED(a.in.nrhs = 19, "in: nrhs, ntile = 19, 3");
  REFUSED(a.in.ncomp = 8, "in: ncomp = 8");
  REFUSED(a.in = a.out, "in may not be out");
  REFUSED(a.z = a.out, "z may not be out");
  REFUSED(a.x.data = NULL, "x has no data");
  REFUSED(a.x.prec = QK_DOUBLE, "x: prec = 0");
  REFUSED(a.links.data = NULL, "links has no data");
  REFUSED(a.links.n = 8, "links: n, ndir = 8, 8");
  REFUSED(a.links.ndir = 1, "links: n, ndir = 4, 1");
  REFUSED(a.links.prec = QK_DOUBLE, "links: prec = 0");
  REFUSED(a.diag.prec = QK_SINGLE, "diag: prec = 1");
  REFUSED(a.diag.ndir = 8, "diag: n, ndir = 4, 8");
  REFUSED(a.hops = 0x100, "hops = 0x100");
  REFUSED(a.block[3] = 4, "block[3] = 4");
  REFUSED(a.lat.split[3] = 1, "ghost");
  REFUSED(a.eight = a.links.data, "eight: links: prec, n = 2, 4");
  problem_close(&p);
  kit_close(&kit);
}
