/* The operator kernels on one backend: against the numpy oracle, and by invariants. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/kernels/hop_kit.h"
#include "tests/support/oracle.h"

static const int whole[4] = {0, 0, 0, 0};
static const double antiperiodic[4][2] = {{1, 0}, {1, 0}, {1, 0}, {-1, 0}};
static const double twisted[4][2] = {{0.8, 0.6}, {1, 0}, {0, 1}, {-0.6, 0.8}};

static void run(const kit_t *kit, const qk_hop_args_t *a) {
  kit_must(kit, kit->ops->hop(kit->ctx, a), "hop");
}

static void gamma5(const kit_t *kit, double complex *v) {
  for (size_t i = 0; i < kit_components(kit); i++)
    if (i % 12 >= 6) v[i] = -v[i];
}

/* ---- the oracle ---- */

typedef struct oracle {
  int dims[4];
  double complex *links, *psi, *m_psi, *mdagger_psi;
} oracle_t;

/* phase: the boundary as Python complex numbers. */
static oracle_t oracle_run(const int dims[4], const char *boundary, double mass, double csw) {
  const char *root = getenv("QK_SOURCE_ROOT"), *python = getenv("QK_PYTHON");
  char folder[] = "/tmp/qk-oracle-XXXXXX", command[1024];
  cr_assert_not_null(mkdtemp(folder));
  snprintf(command, sizeof command,
           "%s %s/tests/ref/make_vectors.py --dims %dx%dx%dx%d --mass %.17g --csw %.17g "
           "--boundary=%s %s",
           python ? python : "/usr/bin/python3", root ? root : ".", dims[0], dims[1], dims[2],
           dims[3], mass, csw, boundary, folder);
  cr_assert_eq(system(command), 0, "%s", command);
  const size_t volume = (size_t)dims[0] * dims[1] * dims[2] * dims[3];
  oracle_t o = {.links = oracle_read(folder, "links.bin", volume * 36),
                .psi = oracle_read(folder, "psi.bin", volume * 12),
                .m_psi = oracle_read(folder, "M_psi.bin", volume * 12),
                .mdagger_psi = oracle_read(folder, "Mdagger_psi.bin", volume * 12)};
  memcpy(o.dims, dims, sizeof o.dims);
  char facts[512];
  snprintf(facts, sizeof facts, "%s/vectors.json", folder);
  unlink(facts);
  rmdir(folder);
  return o;
}

static void oracle_free(oracle_t *o) {
  free(o->links);
  free(o->psi);
  free(o->m_psi);
  free(o->mdagger_psi);
}

/* Columns scale * psi, with scale 1 + rhs, through M and M^+. */
static void check_against_oracle(const kit_t *kit, const oracle_t *o, const dirac_t *d,
                                 const double phase[4][2], int nrhs, bool single_rhs,
                                 qk_prec_t prec) {
  kit_field_t in = kit_field(kit, prec, nrhs, single_rhs, QK_FULL);
  kit_field_t out = kit_field(kit, prec, nrhs, single_rhs, QK_FULL);
  double complex *v = kit_vector(kit);
  for (int rhs = 0; rhs < nrhs; rhs++) {
    for (size_t i = 0; i < kit_components(kit); i++) v[i] = (1 + rhs) * o->psi[i];
    kit_import(kit, &in.v, rhs, v);
  }
  for (int dagger = 0; dagger < 2; dagger++) {
    dirac_apply(kit, d, dagger, phase, &in.v, &out.v);
    for (int rhs = 0; rhs < nrhs; rhs++) {
      kit_export(kit, &out.v, rhs, v);
      for (size_t i = 0; i < kit_components(kit); i++) v[i] /= 1 + rhs;
      const double off = kit_distance(kit, v, dagger ? o->mdagger_psi : o->m_psi);
      cr_expect(off < kit_tolerance(prec, d->links.reals),
                "prec %d, %d reals, rhs %d of %d%s%s: off by %g", prec, d->links.reals, rhs, nrhs,
                single_rhs ? " (eight sites)" : "", dagger ? ", dagger" : "", off);
    }
  }
  free(v);
  kit_field_free(kit, &in);
  kit_field_free(kit, &out);
}

Test(hop, agrees_with_the_oracle_in_all_precisions_and_link_forms) {
  const double mass = 0.1, csw = 1.2;
  oracle_t o = oracle_run((int[]){4, 6, 8, 10}, "0.8+0.6j,1,1j,-0.6+0.8j", mass, csw);
  kit_t kit;
  kit_open(&kit, o.dims, whole, o.links);
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++)
    for (int form = 0; form < 3; form++) {
      dirac_t d = dirac_open(&kit, prec, (int[]){18, 12, 8}[form], mass, csw);
      check_against_oracle(&kit, &o, &d, twisted, 1, true, prec);
      check_against_oracle(&kit, &o, &d, twisted, 3, false, prec);
      dirac_close(&kit, &d);
    }
  kit_close(&kit);
  oracle_free(&o);
}

Test(hop, agrees_with_the_oracle_for_ragged_blocks) {
  const double mass = -0.3, csw = 1.9;
  oracle_t o = oracle_run((int[]){6, 4, 2, 8}, "1,1,1,-1", mass, csw);
  kit_t kit;
  kit_open(&kit, o.dims, whole, o.links);
  dirac_t d = dirac_open(&kit, QK_DOUBLE, 12, mass, csw);
  const int nrhs[] = {1, 3, 8, 13, 24};
  for (int i = 0; i < 5; i++)
    check_against_oracle(&kit, &o, &d, antiperiodic, nrhs[i], false, QK_DOUBLE);
  dirac_close(&kit, &d);
  kit_close(&kit);
  oracle_free(&o);
}

Test(hop, agrees_with_the_oracle_on_the_smallest_lattice) {
  const double mass = 0.5, csw = 1;
  oracle_t o = oracle_run((int[]){2, 2, 2, 2}, "1,-1,1,1j", mass, csw);
  static const double phase[4][2] = {{1, 0}, {-1, 0}, {1, 0}, {0, 1}};
  kit_t kit;
  kit_open(&kit, o.dims, whole, o.links);
  dirac_t d = dirac_open(&kit, QK_DOUBLE, 18, mass, csw);
  check_against_oracle(&kit, &o, &d, phase, 1, true, QK_DOUBLE);
  check_against_oracle(&kit, &o, &d, phase, 8, false, QK_DOUBLE);
  dirac_close(&kit, &d);
  kit_close(&kit);
  oracle_free(&o);
}

/* ---- invariants ---- */

Test(hop, is_gamma5_hermitian) {
  kit_t kit;
  kit_open_random(&kit, (int[]){4, 8, 6, 4}, 0.5, 3);
  dirac_t d = dirac_open(&kit, QK_DOUBLE, 18, 0.2, 1.5);
  double complex *a = kit_vector(&kit), *b = kit_vector(&kit), *c = kit_vector(&kit);
  kit_random(&kit, 7, a);
  dirac_apply_vector(&kit, &d, true, twisted, a, b);
  gamma5(&kit, a);
  dirac_apply_vector(&kit, &d, false, twisted, a, c);
  gamma5(&kit, c);
  cr_expect_lt(kit_distance(&kit, c, b), 1e-15);
  free(a);
  free(b);
  free(c);
  dirac_close(&kit, &d);
  kit_close(&kit);
}

/* (a, M b) = conj (b, M^+ a), lattice sums in double. */
Test(hop, dagger_is_the_adjoint) {
  kit_t kit;
  kit_open_random(&kit, (int[]){4, 4, 6, 8}, 0.5, 4);
  dirac_t d = dirac_open(&kit, QK_DOUBLE, 12, 0.2, 1.1);
  double complex *a = kit_vector(&kit), *b = kit_vector(&kit), *c = kit_vector(&kit);
  double complex left = 0, right = 0;
  kit_random(&kit, 7, a);
  kit_random(&kit, 8, b);
  dirac_apply_vector(&kit, &d, false, twisted, b, c);
  for (size_t i = 0; i < kit_components(&kit); i++) left += conj(a[i]) * c[i];
  dirac_apply_vector(&kit, &d, true, twisted, a, c);
  for (size_t i = 0; i < kit_components(&kit); i++) right += conj(c[i]) * b[i];
  cr_expect_lt(cabs(left - right), 1e-12 * kit_components(&kit));
  free(a);
  free(b);
  free(c);
  dirac_close(&kit, &d);
  kit_close(&kit);
}

/* r = g psi at every site, g from a lattice of links whose direction 0 is taken. */
static void rotate(const kit_t *kit, const double complex *g, const double complex *psi,
                   double complex *r) {
  for (int64_t n = 0; n < kit->volume; n++)
    for (int s = 0; s < 4; s++)
      for (int i = 0; i < 3; i++) {
        double complex sum = 0;
        for (int j = 0; j < 3; j++) sum += g[n * 36 + 3 * i + j] * psi[n * 12 + 3 * s + j];
        r[n * 12 + 3 * s + i] = sum;
      }
}

static void rotate_links(const int dims[4], const double complex *g, const double complex *u,
                         double complex *r) {
  const int64_t stride[4] = {1, dims[0], (int64_t)dims[0] * dims[1],
                             (int64_t)dims[0] * dims[1] * dims[2]};
  const int64_t volume = stride[3] * dims[3];
  for (int64_t n = 0; n < volume; n++)
    for (int mu = 0; mu < 4; mu++) {
      const int x = (int)(n / stride[mu] % dims[mu]);
      const int64_t m = x == dims[mu] - 1 ? n - x * stride[mu] : n + stride[mu];
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
          double complex sum = 0;
          for (int k = 0; k < 3; k++)
            for (int l = 0; l < 3; l++)
              sum += g[n * 36 + 3 * i + k] * u[(n * 4 + mu) * 9 + 3 * k + l] *
                     conj(g[m * 36 + 3 * j + l]);
          r[(n * 4 + mu) * 9 + 3 * i + j] = sum;
        }
    }
}

Test(hop, is_gauge_covariant) {
  const int dims[4] = {4, 6, 4, 4};
  double complex *u = kit_random_links(dims, 0.5, 11), *g = kit_random_links(dims, 1, 12);
  double complex *v = kit_random_links(dims, 0, 0);
  rotate_links(dims, g, u, v);
  kit_t plain, turned;
  kit_open(&plain, dims, whole, u);
  kit_open(&turned, dims, whole, v);
  dirac_t d = dirac_open(&plain, QK_DOUBLE, 18, 0.1, 1.4);
  dirac_t e = dirac_open(&turned, QK_DOUBLE, 18, 0.1, 1.4);
  double complex *a = kit_vector(&plain), *b = kit_vector(&plain), *c = kit_vector(&plain);
  kit_random(&plain, 5, a);
  rotate(&plain, g, a, b);
  dirac_apply_vector(&turned, &e, false, antiperiodic, b, c); /* M[U^g] g psi */
  dirac_apply_vector(&plain, &d, false, antiperiodic, a, b);
  rotate(&plain, g, b, a); /* g M[U] psi */
  cr_expect_lt(kit_distance(&plain, c, a), 2e-15);
  free(a);
  free(b);
  free(c);
  dirac_close(&plain, &d);
  dirac_close(&turned, &e);
  kit_close(&plain);
  kit_close(&turned);
  free(u);
  free(v);
  free(g);
}

/* On unit links M exp(ipx) w = exp(ipx) (4 + m - sum cos p_mu + i sum g_mu sin p_mu) w; the square
 * of the gamma term is - sum sin^2, so M^+M is the number (4 + m - sum cos)^2 + sum sin^2. */
Test(hop, has_the_free_spectrum_on_unit_links) {
  const int dims[4] = {4, 8, 6, 10}, k[4] = {1, 3, 2, 4};
  const double mass = 0.3;
  double complex *links = kit_random_links(dims, 0, 0);
  kit_t kit;
  kit_open(&kit, dims, whole, links);
  double p[4], even = 4 + mass, odd = 0;
  for (int mu = 0; mu < 4; mu++) {
    p[mu] = 2 * M_PI * k[mu] / dims[mu] + (mu == 3 ? M_PI / dims[3] : 0);
    even -= cos(p[mu]);
    odd += sin(p[mu]) * sin(p[mu]);
  }
  double complex *wave = kit_vector(&kit), *a = kit_vector(&kit), *b = kit_vector(&kit);
  for (int64_t n = 0; n < kit.volume; n++) {
    double px = 0;
    int64_t m = n;
    for (int mu = 0; mu < 4; mu++) {
      px += p[mu] * (double)(m % dims[mu]);
      m /= dims[mu];
    }
    for (int c = 0; c < 12; c++) wave[n * 12 + c] = (c + 1 - 0.5 * I * c) * cexp(I * px);
  }
  for (int form = 0; form < 3; form++) {
    dirac_t d = dirac_open(&kit, QK_DOUBLE, (int[]){18, 12, 8}[form], mass, 0);
    dirac_apply_vector(&kit, &d, false, antiperiodic, wave, a);
    dirac_apply_vector(&kit, &d, true, antiperiodic, a, b);
    for (size_t i = 0; i < kit_components(&kit); i++) b[i] /= even * even + odd;
    cr_expect_lt(kit_distance(&kit, b, wave), 5e-15);
    dirac_close(&kit, &d);
  }
  free(wave);
  free(a);
  free(b);
  free(links);
  kit_close(&kit);
}

/* ---- parts of the operator ---- */

/* Terms of a call with z, x and, if c_y is not 0, y on the full lattice, in double, one column, as
 * a single RHS or in a block of 3. */
static void check_terms(const kit_t *kit, const dirac_t *d, bool single_rhs, bool on_sum,
                        double c_y) {
  const double c_hop = 0.7, c_z = -1.3, c_x = 0.4;
  const int nrhs = single_rhs ? 1 : 3, rhs = nrhs - 1;
  kit_field_t f[5];
  double complex *host[5], *hop = kit_vector(kit), *sum = kit_vector(kit), *got = kit_vector(kit);
  for (int i = 0; i < 5; i++) {
    f[i] = kit_field(kit, QK_DOUBLE, nrhs, single_rhs, QK_FULL);
    host[i] = kit_vector(kit);
    kit_random(kit, (uint64_t)(20 + i), host[i]);
    kit_import(kit, &f[i].v, rhs, host[i]);
  }
  qk_hop_args_t a = kit_dirac(kit, false, twisted);
  a.links = d->links;
  a.in = f[0].v;
  a.z = f[1].v;
  a.x = f[2].v;
  a.y = f[4].v;
  a.out = f[3].v;

  a.c_hop = 1; /* hop alone */
  a.c_z = a.c_x = 0;
  run(kit, &a);
  kit_export(kit, &f[3].v, rhs, hop);
  /* T applied to z, or to the sum */
  for (size_t i = 0; i < kit_components(kit); i++)
    sum[i] = on_sum ? c_hop * hop[i] + c_z * host[1][i] : host[1][i];
  kit_import(kit, &f[3].v, rhs, sum);
  a.diag = d->diag;
  a.c_hop = 0;
  a.c_z = 1;
  a.z = f[3].v;
  a.out = f[1].v;
  run(kit, &a);
  kit_export(kit, &f[1].v, rhs, sum);
  kit_import(kit, &f[1].v, rhs, host[1]);
  for (size_t i = 0; i < kit_components(kit); i++)
    sum[i] =
        (on_sum ? sum[i] : c_hop * hop[i] + c_z * sum[i]) + c_x * host[2][i] + c_y * host[4][i];

  a.z = f[1].v; /* all at once, in place of x */
  a.out = f[2].v;
  a.c_hop = c_hop;
  a.c_z = c_z;
  a.c_x = c_x;
  a.c_y = c_y;
  a.diag_on_sum = on_sum;
  run(kit, &a);
  kit_export(kit, &f[2].v, rhs, got);
  cr_expect_lt(kit_distance(kit, got, sum), 1e-15);
  for (int i = 0; i < 5; i++) {
    kit_field_free(kit, &f[i]);
    free(host[i]);
  }
  free(hop);
  free(sum);
  free(got);
}

Test(hop, adds_up_its_terms) {
  kit_t kit;
  kit_open_random(&kit, (int[]){4, 4, 4, 6}, 0.5, 6);
  dirac_t d = dirac_open(&kit, QK_DOUBLE, 18, 0.2, 1.3);
  for (int single_rhs = 0; single_rhs < 2; single_rhs++)
    for (int on_sum = 0; on_sum < 2; on_sum++) {
      check_terms(&kit, &d, single_rhs, on_sum, 0);
      check_terms(&kit, &d, single_rhs, on_sum, -0.8);
    }
  dirac_close(&kit, &d);
  d = dirac_open(&kit, QK_DOUBLE, 18, 0.2, 0);
  check_terms(&kit, &d, false, true, 0);
  check_terms(&kit, &d, false, true, 0.6);
  dirac_close(&kit, &d);
  kit_close(&kit);
}

/* The bytes of a field. */
static unsigned char *raw_bytes(const kit_t *kit, const kit_field_t *f, size_t *bytes) {
  static const size_t word[] = {8, 4, 2};
  const size_t lanes = (size_t)f->v.nsites * (size_t)(f->v.ntile > 0 ? f->v.ntile * QK_TILE : 1);
  *bytes = f->v.scale != NULL ? (size_t)((char *)f->v.scale - (char *)f->memory) + lanes * 4
                              : lanes * 24 * word[f->v.prec];
  unsigned char *host = malloc(*bytes);
  cr_assert_not_null(host);
  kit_must(kit, kit->ops->copy(kit->ctx, host, f->memory, *bytes, QK_COPY_TO_HOST, 0), "copy");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  return host;
}

static void expect_same_bytes(const kit_t *kit, const kit_field_t *a, const kit_field_t *b,
                              const char *what) {
  size_t na, nb;
  unsigned char *p = raw_bytes(kit, a, &na), *q = raw_bytes(kit, b, &nb);
  cr_expect(na == nb && memcmp(p, q, na) == 0, "%s", what);
  free(p);
  free(q);
}

/* One parity at a time gives the bits of the full operator. */
Test(hop, of_each_parity_makes_up_the_full_one) {
  kit_t kit;
  kit_open_random(&kit, (int[]){4, 6, 4, 4}, 0.5, 8);
  double complex *v = kit_vector(&kit);
  kit_random(&kit, 1, v);
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++)
    for (int nrhs = 1; nrhs <= 9; nrhs += 8) {
      dirac_t d = dirac_open(&kit, prec, 12, 0.2, 1.3);
      kit_field_t in = kit_field(&kit, prec, nrhs, nrhs == 1, QK_FULL);
      kit_field_t full = kit_field(&kit, prec, nrhs, nrhs == 1, QK_FULL);
      kit_field_t halves = kit_field(&kit, prec, nrhs, nrhs == 1, QK_FULL);
      kit_import(&kit, &in.v, nrhs - 1, v);
      dirac_apply(&kit, &d, false, twisted, &in.v, &full.v);
      for (int parity = 0; parity < 2; parity++) {
        qk_hop_args_t a = kit_dirac(&kit, false, twisted);
        a.out_parity = parity ? QK_ODD : QK_EVEN;
        a.links = d.links;
        a.diag = d.diag;
        a.in = kit_half(&kit, &in.v, 1 - parity);
        a.z = kit_half(&kit, &in.v, parity);
        a.out = kit_half(&kit, &halves.v, parity);
        run(&kit, &a);
      }
      expect_same_bytes(&kit, &halves, &full, "parities");
      kit_field_free(&kit, &in);
      kit_field_free(&kit, &full);
      kit_field_free(&kit, &halves);
      dirac_close(&kit, &d);
    }
  free(v);
  kit_close(&kit);
}

/* ---- ghosts ---- */

static void check_ghosts(const kit_t *split, const kit_t *wrapped, qk_prec_t prec, int nrhs,
                         bool dagger, qk_subset_t parity) {
  dirac_t d = dirac_open(split, prec, 12, 0.2, 1.3), e = dirac_open(wrapped, prec, 12, 0.2, 1.3);
  const bool single_rhs = nrhs == 1;
  kit_field_t in = kit_field(wrapped, prec, nrhs, single_rhs, QK_FULL), ghost[4][2] = {0};
  kit_field_t far = kit_field(split, prec, nrhs, single_rhs, QK_FULL), out[2];
  double complex *v = kit_vector(wrapped), *w = kit_vector(wrapped);
  for (int rhs = 0; rhs < nrhs; rhs++) {
    kit_random(wrapped, (uint64_t)rhs, v);
    kit_import(wrapped, &in.v, rhs, v);
    kit_import(split, &far.v, rhs, v);
  }
  qk_hop_args_t a[2];
  for (int i = 0; i < 2; i++) {
    const kit_t *kit = i ? split : wrapped;
    const kit_field_t *from = i ? &far : &in;
    out[i] = kit_field(kit, prec, nrhs, single_rhs, QK_FULL);
    a[i] = kit_dirac(kit, dagger, twisted);
    a[i].out_parity = parity;
    a[i].links = i ? d.links : e.links;
    a[i].diag = i ? d.diag : e.diag;
    a[i].in = parity == QK_FULL ? from->v : kit_half(kit, &from->v, parity == QK_EVEN);
    a[i].z = parity == QK_FULL ? from->v : kit_half(kit, &from->v, parity == QK_ODD);
    a[i].out = parity == QK_FULL ? out[i].v : kit_half(kit, &out[i].v, parity == QK_ODD);
  }
  run(wrapped, &a[0]);
  a[1].region = QK_REGION_INTERIOR; /* before the ghosts are there */
  run(split, &a[1]);
  kit_own_ghosts(split, &a[1], ghost);
  a[1].region = QK_REGION_BOUNDARY;
  run(split, &a[1]);
  for (int rhs = 0; rhs < nrhs; rhs++) {
    kit_export(wrapped, &out[0].v, rhs, v);
    kit_export(split, &out[1].v, rhs, w);
    const double off = kit_distance(wrapped, w, v);
    cr_expect(off < kit_tolerance(prec, 12), "prec %d, nrhs %d, parity %d: off by %g", prec, nrhs,
              parity, off);
  }
  for (int mu = 0; mu < 4; mu++)
    for (int side = 0; side < 2 && split->lat.split[mu]; side++)
      kit_field_free(split, &ghost[mu][side]);
  kit_field_free(wrapped, &in);
  kit_field_free(split, &far);
  kit_field_free(wrapped, &out[0]);
  kit_field_free(split, &out[1]);
  dirac_close(split, &d);
  dirac_close(wrapped, &e);
  free(v);
  free(w);
}

static void check_split(const int dims[4], const int split[4]) {
  kit_t parts, one;
  kit_open_both(&one, &parts, dims, split);
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++)
    for (int nrhs = 1; nrhs <= 9; nrhs += 8)
      for (int parity = QK_EVEN; parity <= QK_FULL; parity++)
        check_ghosts(&parts, &one, prec, nrhs, (nrhs + parity) % 2, parity);
  kit_close(&one);
  kit_close(&parts);
}

Test(hop, reads_ghosts_as_it_reads_neighbours_in_one_direction) {
  for (int mu = 0; mu < 4; mu++) {
    int split[4] = {0, 0, 0, 0};
    split[mu] = 1;
    check_split((int[]){4, 6, 4, 8}, split);
  }
}

Test(hop, reads_ghosts_as_it_reads_neighbours_in_all_directions) {
  check_split((int[]){4, 4, 6, 4}, (int[]){1, 1, 1, 1});
  check_split((int[]){6, 4, 2, 4}, (int[]){1, 0, 0, 1});
}

/* ---- lanes ---- */

Test(hop, keeps_lanes_apart) {
  kit_t kit;
  kit_open_random(&kit, (int[]){4, 4, 4, 4}, 0.5, 10);
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++) {
    dirac_t d = dirac_open(&kit, prec, 18, 0.2, 1.3);
    kit_field_t in = kit_field(&kit, prec, KIT_LANES, false, QK_FULL);
    kit_field_t out = kit_field(&kit, prec, KIT_LANES, false, QK_FULL);
    kit_fill_lanes(&kit, &in.v);
    dirac_apply(&kit, &d, false, twisted, &in.v, &out.v);
    kit_expect_lanes_apart(&kit, &out.v);
    kit_field_free(&kit, &in);
    kit_field_free(&kit, &out);
    dirac_close(&kit, &d);
  }
  kit_close(&kit);
}

/* ---- refusals ---- */

/* Arguments that are right: M, which has been applied once. */
static qk_hop_args_t whole_operator(kit_t *kit, const dirac_t *d, const kit_field_t *in,
                                    const kit_field_t *out) {
  qk_hop_args_t a = kit_dirac(kit, false, twisted);
  a.links = d->links;
  a.diag = d->diag;
  a.in = a.z = in->v;
  a.out = out->v;
  kit_must(kit, kit->ops->hop(kit->ctx, &a), "hop");
  return a;
}

Test(hop, refuses_what_does_not_fit) {
  kit_t kit;
  kit_open_random(&kit, (int[]){4, 4, 4, 4}, 0.5, 10);
  dirac_t d = dirac_open(&kit, QK_SINGLE, 12, 0.2, 1.3);
  kit_field_t in = kit_field(&kit, QK_SINGLE, 3, false, QK_FULL);
  kit_field_t out = kit_field(&kit, QK_SINGLE, 3, false, QK_FULL);
  const qk_hop_args_t good = whole_operator(&kit, &d, &in, &out);
  for (int i = 0; i < 9; i++) {
    qk_hop_args_t a = good;
    switch (i) {
    case 0:
      a.in.data = NULL;
      break;
    case 1:
      a.in = a.out;
      break;
    case 2:
      a.z.nrhs = 4;
      break;
    case 3:
      a.links.prec = QK_DOUBLE;
      break;
    case 4:
      a.links.reals = 10;
      break;
    case 5:
      a.diag.prec = QK_HALF;
      break;
    case 6:
      a.out_parity = QK_EVEN;
      break;
    case 7:
      a.lat.split[2] = 1;
      break;
    case 8:
      a.c_x = 1;
      break;
    }
    cr_expect_eq(kit.ops->hop(kit.ctx, &a), QK_BAD_ARGUMENT, "case %d", i);
    cr_expect_neq(kit.ops->last_error(kit.ctx)[0], '\0');
  }
  kit_must(&kit, kit.ops->queue_sync(kit.ctx, 0), "queue_sync");
  kit_field_free(&kit, &in);
  kit_field_free(&kit, &out);
  dirac_close(&kit, &d);
  kit_close(&kit);
}

Test(hop, refuses_what_is_no_precision_and_half_without_scales) {
  kit_t kit;
  kit_open_random(&kit, (int[]){4, 4, 4, 4}, 0.5, 10);
  dirac_t d = dirac_open(&kit, QK_HALF, 12, 0.2, 1.3);
  kit_field_t in = kit_field(&kit, QK_HALF, 3, false, QK_FULL);
  kit_field_t out = kit_field(&kit, QK_HALF, 3, false, QK_FULL);
  const qk_hop_args_t good = whole_operator(&kit, &d, &in, &out);
  qk_hop_args_t a = good;
  a.out.prec = a.in.prec = a.z.prec = a.links.prec = a.diag.prec = (qk_prec_t)QK_PRECS;
  kit_refused(&kit, kit.ops->hop(kit.ctx, &a), "block: prec is no precision");
  a = good;
  a.out.scale = NULL;
  kit_refused(&kit, kit.ops->hop(kit.ctx, &a), "block: scale is missing");
  a = good;
  a.in.scale = NULL;
  kit_refused(&kit, kit.ops->hop(kit.ctx, &a), "field: scale is missing");
  kit_field_free(&kit, &in);
  kit_field_free(&kit, &out);
  dirac_close(&kit, &d);
  kit_close(&kit);
}
