/* What the Markov chain draws and computes with: the bodies themselves, on the CPU. */
#include <Random123/philox.h>
#include <algorithm>
#include <criterion/criterion.h>
#include <vector>

#include "cuda/body/links/update.h"

using namespace QK_NS;

/* The known answers of Random123's kat_vectors, and its own code for many more. */
Test(exact, philox_is_that_of_random123) {
  static const uint32_t known[3][10] = {
      {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
      {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
       0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
      {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
       0x94fdcceb, 0x5001e420, 0x24126ea1}};
  for (int i = 0; i < 3; i++) {
    uint32_t c[4] = {known[i][0], known[i][1], known[i][2], known[i][3]};
    philox4x32_10(c, known[i][4], known[i][5]);
    for (int k = 0; k < 4; k++) cr_expect_eq(c[k], known[i][6 + k], "answer %d, word %d", i, k);
  }
  r123::Philox4x32 oracle;
  uint32_t c[4] = {1, 2, 3, 4}, key[2] = {5, 6};
  for (int i = 0; i < 10000; i++) {
    const r123::Philox4x32::ctr_type want = oracle({{c[0], c[1], c[2], c[3]}}, {{key[0], key[1]}});
    philox4x32_10(c, key[0], key[1]);
    for (int k = 0; k < 4; k++) cr_assert_eq(c[k], want[k], "round %d, word %d", i, k);
    key[i % 2] ^= c[i % 4];
  }
}

/* Two numbers a call: 53 bits of two words each, one unit above zero. */
Test(exact, uniform_numbers_are_made_of_the_words_of_the_generator) {
  r123::Philox4x32 oracle;
  const uint64_t key = 0x123456789abcdef0;
  for (uint32_t n = 0; n < 1000; n++) {
    const uint32_t site[QK_WIDE] = {n, n + 7, 0xffffffff - n, n * n};
    wide_random r;
    draw(site, n, 3, 4, key, r);
    for (int l = 0; l < QK_WIDE; l++) {
      const auto w = oracle({{site[l], n, 3, 4}}, {{(uint32_t)key, (uint32_t)(key >> 32)}});
      for (int k = 0; k < 2; k++) {
        const uint64_t bits = ((uint64_t)w[2 * k] << 21 | w[2 * k + 1] >> 11) + 1;
        cr_assert_eq(r.u[k][l], (double)bits * 0x1p-53);
      }
      cr_assert_eq(r.spare[l], w[3] & 0x7ff);
    }
  }
}

Test(exact, logarithm_and_sine_are_right_to_rounding) {
  double worst_log = 0, worst_sine = 0;
  for (int i = 0; i < 400000; i++) {
    const double u = ((double)i + 1) / 400000, tiny = u * 0x1p-40, near = 1 - u * 0x1p-30;
    const double v[4] = {u, tiny, near, u * 0x1p-1000};
    const wide got = minus_log(wide{v[0], v[1], v[2], v[3]});
    const wide sine = sin_pi(wide{u - 0.5, 0.5 - u, 1e-9 * u, 0.5 - 1e-12 * u});
    const double x[4] = {u - 0.5, 0.5 - u, 1e-9 * u, 0.5 - 1e-12 * u};
    for (int l = 0; l < 4; l++) {
      const long double want = -logl(v[l]), s = sinl(3.14159265358979323846264338327950288L * x[l]);
      if (want != 0) worst_log = std::max(worst_log, (double)fabsl(got[l] / want - 1));
      if (s != 0) worst_sine = std::max(worst_sine, (double)fabsl(sine[l] / s - 1));
    }
  }
  cr_expect_lt(worst_log, 8e-16, "log: %g", worst_log);
  cr_expect_lt(worst_sine, 8e-16, "sine: %g", worst_sine);
  const wide end = minus_log(wide{1, 1, 1, 1}), top = sin_pi(wide{0.5, -0.5, 0, 0});
  cr_expect(end[0] == 0 && fabs(top[0] - 1) < 3e-16 && fabs(top[1] + 1) < 3e-16 && top[2] == 0);
}

/* ---- the SU(2) heatbath ---- */

static std::vector<double> draw_a0(double alpha, int n, double *mean_trials_left) {
  update_plan p = {};
  p.a.seed = 99;
  std::vector<double> a0;
  double left = 0;
  for (int i = 0; i < n; i += QK_WIDE) {
    wide_site s = {};
    for (int l = 0; l < QK_WIDE; l++) s.global[l] = (uint32_t)(i + l);
    wide delta;
    wide_mask done = {};
    kennedy_pendleton(p, s, 0, splat(alpha), done, delta);
    for (int l = 0; l < QK_WIDE; l++) {
      if (done[l])
        a0.push_back(1 - delta[l]);
      else
        left++;
    }
  }
  *mean_trials_left = left / n;
  return a0;
}

/* The weight of 1 - a0, without its largest factor. */
static double weight(double alpha, double delta) {
  return sqrt(delta * (2 - delta)) * exp(-alpha * delta);
}

/* Integral of the weight up to d, by the midpoint rule in sqrt(delta), where it is smooth. */
static double integral(double alpha, double d) {
  const int n = 2000;
  const double h = sqrt(d) / n;
  double sum = 0;
  for (int i = 0; i < n; i++) {
    const double r = (i + 0.5) * h;
    sum += weight(alpha, r * r) * 2 * r * h;
  }
  return sum;
}

/* Kolmogorov and Smirnov: sqrt(n) times the largest distance exceeds 1.95 once in a thousand. */
Test(exact, a0_has_the_distribution_of_the_heatbath) {
  const double alphas[] = {0.2, 1, 4, 30, 2000};
  for (double alpha : alphas) {
    double left, worst = 0;
    std::vector<double> a0 = draw_a0(alpha, 40000, &left);
    const double n = (double)a0.size(), all = integral(alpha, 2);
    cr_expect_lt(left, alpha < 1 ? 0.1 : 1e-4, "alpha %g: %g not drawn", alpha, left);
    std::sort(a0.begin(), a0.end());
    for (size_t i = 0; i < a0.size(); i += 40) {
      cr_assert(a0[i] >= -1 && a0[i] <= 1);
      worst = std::max(worst, fabs((double)i / n - (1 - integral(alpha, 1 - a0[i]) / all)));
    }
    cr_expect_lt(worst * sqrt(n), 1.95, "alpha %g: %g", alpha, worst * sqrt(n));
  }
}

Test(exact, directions_are_uniform_on_the_sphere) {
  update_plan p = {};
  const int n = 100000;
  double sum[3] = {0}, square[3] = {0}, product[3] = {0}, worst = 0;
  for (int i = 0; i < n; i += QK_WIDE) {
    wide_site s = {};
    for (int l = 0; l < QK_WIDE; l++) s.global[l] = (uint32_t)(i + l);
    const quaternion h = on_sphere(p, s, 1, splat(0.6));
    const wide norm = norm2(h);
    for (int l = 0; l < QK_WIDE; l++) {
      worst = std::max(worst, fabs(norm[l] - 1));
      cr_assert_eq(h.q[0][l], 1 - 0.6);
      for (int k = 0; k < 3; k++) {
        const double x = h.q[1 + k][l] / sqrt(0.84), y = h.q[1 + (k + 1) % 3][l] / sqrt(0.84);
        sum[k] += x / n;
        square[k] += x * x / n;
        product[k] += x * y / n;
      }
    }
  }
  cr_expect_lt(worst, 1e-15);
  for (int k = 0; k < 3; k++) { /* variances 1/3, 4/45, 1/15 */
    cr_expect_lt(fabs(sum[k]), 4 * sqrt(1.0 / 3 / n), "%d: %g", k, sum[k]);
    cr_expect_lt(fabs(square[k] - 1.0 / 3), 4 * sqrt(4.0 / 45 / n), "%d: %g", k, square[k]);
    cr_expect_lt(fabs(product[k]), 4 * sqrt(1.0 / 15 / n), "%d: %g", k, product[k]);
  }
}

/* Whatever the colouring: each local link once, aligned groups of one parity. */
Test(exact, colours_number_every_link_once) {
  const int dims[][4] = {{4, 6, 2, 8}, {8, 4, 4, 12}, {6, 6, 10, 4}, {12, 4, 8, 4}};
  for (const auto &l : dims)
    for (int rectangles = 0; rectangles < 2; rectangles++)
      for (int mu = 0; mu < 4; mu++) {
        qk_link_update_args_t a = {};
        a.u.halo = 2;
        a.mu = mu;
        a.c1 = rectangles ? -0.3 : 0;
        int volume = 1;
        for (int nu = 0; nu < 4; nu++) {
          a.lat.l[nu] = l[nu];
          a.lat.split[nu] = nu % 2; /* one of several ranks: its extents need be even only */
          a.lat.offset[nu] = nu % 2 ? l[nu] : 0;
          a.lat.global[nu] = nu % 2 ? 4 * l[nu] : l[nu];
          a.u.e[nu] = l[nu] + 2 * a.u.halo * a.lat.split[nu];
          volume *= a.u.e[nu];
        }
        std::vector<int> seen((size_t)volume);
        for (a.colour = 0; a.colour < (rectangles ? 4 : 2); a.colour++) {
          const update_plan p = plan_update(a);
          cr_assert_eq(p.nwork % QK_WIDE, 0);
          for (int w = 0; w < p.nwork; w += QK_WIDE) {
            wide_site s = {};
            for (int lane = 0; lane < QK_WIDE; lane++) place(p, w + lane, lane, s);
            for (int lane = 0; lane < QK_WIDE; lane++) {
              if (!s.valid[lane]) continue;
              int n = s.n[lane], sum = 0, colour = 0;
              seen[(size_t)n]++;
              for (int nu = 0; nu < 4; nu++) {
                const int x = n % a.u.e[nu] - 2 * a.lat.split[nu] + a.lat.offset[nu];
                cr_assert(x >= a.lat.offset[nu] && x < a.lat.offset[nu] + l[nu]);
                n /= a.u.e[nu];
                sum += x;
                colour += rectangles && nu == mu ? 2 * x : x;
              }
              cr_assert_eq(sum % 2, s.parity);
              cr_assert_eq(colour % (rectangles ? 4 : 2), a.colour);
            }
          }
        }
        int once = 0;
        for (int times : seen) {
          cr_assert_leq(times, 1);
          once += times;
        }
        cr_assert_eq(once, l[0] * l[1] * l[2] * l[3]);
      }
}
