#include "proto/action/actions.h"

#include <string.h>

#include "proto/action/links_text.h"
#include "proto/action/operator_text.h"

#define MASS                                                                                       \
  {                                                                                                \
    .key = "mass", .type = QK_PARAM_REAL, .least = -4, .above = true, .most = 1e6, .unit = "1/a",  \
    .help = "bare quark mass m"                                                                    \
  }

#define HOP                                                                                        \
  {                                                                                                \
    .key = "hop", .type = QK_PARAM_REALS, .least = 0, .above = true, .most = 1e3, .count = 4,      \
    .otherwise = "1,1,1,1", .help = "weights of the hops in x, y, z, t; T is m plus their sum"     \
  }

#define LINKS                                                                                      \
  {                                                                                                \
    .key = "links", .type = QK_PARAM_WORD, .least = 1, .most = QK_PARAM_WORD_MAX,                  \
    .otherwise = "thin",                                                                           \
    .help = "links of the operator: thin, ape:ALPHA,STEPS[:xyz], stout:RHO,STEPS[:xyz], "          \
            "hyp:A1,A2,A3,STEPS, hex:A1,A2,A3,STEPS; A/B: hops of A and clover term of B; "        \
            "slinc:RHO,STEPS is stout:RHO,STEPS/thin",                                             \
    .fits = qk_links_fit                                                                           \
  }

#define CSW                                                                                        \
  {                                                                                                \
    .key = "csw", .type = QK_PARAM_REAL, .least = -1e3, .most = 1e3,                               \
    .help = "clover coefficient c_sw"                                                              \
  }

#define CSW_OR_NONE                                                                                \
  {                                                                                                \
    .key = "csw", .type = QK_PARAM_REAL, .least = -1e3, .most = 1e3, .otherwise = "0",             \
    .help = "clover coefficient c_sw"                                                              \
  }

#define TWIST(text)                                                                                \
  { .key = "mu", .type = QK_PARAM_REAL, .least = -1e3, .most = 1e3, .unit = "1/a", .help = text }

#define OPEN                                                                                       \
  {                                                                                                \
    .key = "open", .type = QK_PARAM_REAL, .least = 0, .most = 1e3, .otherwise = "0",               \
    .help = "coefficient c_F of an open boundary in t; fields are 0 on the first and the last "    \
            "time slice; 0: the boundary is not open"                                              \
  }

/* Of a clover term (FIELD_CLOVER). */
static bool clover_fits(const char *word, char why[QK_WHY]) {
  static const char DIGEST[] = "digest:";
  const size_t n = sizeof DIGEST - 1;
  if (strncmp(word, DIGEST, n) == 0 && strlen(word + n) == 16 &&
      !word[n + strspn(word + n, "0123456789abcdef")])
    return true;
  return qk_refuse(why, "clover = %.40s: must be digest: and 16 hexadecimal digits in lower case",
                   word);
}

static const qk_param_t foreign_clover[] = {
    {.key = "clover",
     .type = QK_PARAM_WORD,
     .least = 1,
     .most = QK_PARAM_WORD_MAX,
     .help = "the local term T: digest:HEX16 of a clover term that the user has sent",
     .fits = clover_fits},
    {.key = "kappa",
     .type = QK_PARAM_REAL,
     .least = 0,
     .most = 1e6,
     .otherwise = "0",
     .help = "kappa of the normalisation kappa, as T tells no mass; 0: there is none"},
    {.key = "hop",
     .type = QK_PARAM_REALS,
     .least = 0,
     .above = true,
     .most = 1e3,
     .count = 4,
     .otherwise = "1,1,1,1",
     .help = "weights of the hops in x, y, z, t"},
    LINKS,
    {.key = 0},
};

static const qk_param_t wilson[] = {MASS, HOP, LINKS, OPEN, {.key = 0}};

static const qk_param_t wilson_clover[] = {
    MASS,
    CSW,
    HOP,
    {.key = "clover-plane",
     .type = QK_PARAM_REALS,
     .least = -1e3,
     .most = 1e3,
     .count = 6,
     .otherwise = "1,1,1,1,1,1",
     .help = "factors of csw in the planes xy, xz, yz, xt, yt, zt"},
    LINKS,
    OPEN,
    {.key = 0},
};

static const qk_param_t exp_clover[] = {MASS, CSW, LINKS, OPEN, {.key = 0}};

static const qk_param_t anisotropic_clover[] = {
    MASS,
    {.key = "xi0",
     .type = QK_PARAM_REAL,
     .least = 0.1,
     .most = 100,
     .help = "bare anisotropy xi_0 of the gauge action"},
    {.key = "nu",
     .type = QK_PARAM_REAL,
     .least = 0,
     .above = true,
     .most = 100,
     .otherwise = "1",
     .help = "bare anisotropy nu of the quarks: hops in space have the weight nu / xi_0"},
    {.key = "c-r",
     .type = QK_PARAM_REAL,
     .least = -1e3,
     .most = 1e3,
     .help = "clover coefficient c_R of the planes of space; it enters over xi_0"},
    {.key = "c-t",
     .type = QK_PARAM_REAL,
     .least = -1e3,
     .most = 1e3,
     .help = "clover coefficient c_T of the planes with t"},
    LINKS,
    {.key = 0},
};

static const qk_param_t twisted_clover[] = {
    MASS,        TWIST("twisted mass mu of flavour +1; that of -1 is its negative"),
    CSW_OR_NONE, LINKS,
    {.key = 0},
};

static const qk_param_t doublet[] = {
    MASS,
    TWIST("twisted mass mubar of the upper flavour; that of the lower is its negative"),
    {.key = "epsilon",
     .type = QK_PARAM_REAL,
     .least = -1e3,
     .most = 1e3,
     .unit = "1/a",
     .help = "mass splitting epsilonbar: the quarks have the masses mubar -+ epsilonbar, but for "
             "renormalisation"},
    CSW_OR_NONE,
    LINKS,
    {.key = 0},
};

#define SLICES(name, value, text)                                                                  \
  {                                                                                                \
    .key = name, .type = QK_PARAM_REALS, .least = -1e3, .most = 1e3, .otherwise = value,           \
    .help = text                                                                                   \
  }

static const qk_param_t moebius[] = {
    {.key = "mass",
     .type = QK_PARAM_REAL,
     .least = -1e3,
     .most = 1e3,
     .unit = "1/a",
     .help = "quark mass m, which joins the outer slices"},
    {.key = "M5",
     .type = QK_PARAM_REAL,
     .least = 0,
     .above = true,
     .most = 10,
     .unit = "1/a",
     .help = "height of the domain wall: D is D_W(-M5)"},
    {.key = "Ls",
     .type = QK_PARAM_INTEGER,
     .least = 2,
     .most = 64,
     .help = "extent of the fifth dimension"},
    SLICES("b", "1", "b_s, one for all slices or one for each; b = 1 and c = 0 are Shamir's"),
    SLICES("c", "0", "c_s likewise"),
    SLICES("b-im", "0", "imaginary part of b_s likewise (zMoebius)"),
    SLICES("c-im", "0", "imaginary part of c_s likewise"),
    {.key = "xi0",
     .type = QK_PARAM_REAL,
     .least = 0.1,
     .most = 100,
     .otherwise = "1",
     .help = "bare anisotropy xi_0 of the gauge action"},
    {.key = "nu",
     .type = QK_PARAM_REAL,
     .least = 0,
     .above = true,
     .most = 100,
     .otherwise = "1",
     .help = "bare anisotropy nu of the quarks: hops in space have the weight nu / xi_0"},
    LINKS,
    {.key = 0},
};

#define STAGGERED_MASS                                                                             \
  {                                                                                                \
    .key = "mass", .type = QK_PARAM_REAL, .least = 1e-10, .most = 1e6, .unit = "1/a",              \
    .help = "quark mass m, of the normalisation m + D/2"                                           \
  }

static const qk_param_t staggered[] = {STAGGERED_MASS, LINKS, {.key = 0}};

static const qk_param_t asqtad[] = {
    STAGGERED_MASS,
    {.key = "u0",
     .type = QK_PARAM_REAL,
     .least = 0.2,
     .most = 10,
     .help = "tadpole factor u_0; 1: none"},
    {.key = 0},
};

static const qk_param_t hisq[] = {
    STAGGERED_MASS,
    {.key = "epsilon",
     .type = QK_PARAM_REAL,
     .least = -10,
     .most = 10,
     .otherwise = "0",
     .help = "correction epsilon of the Naik term, for heavy quarks"},
    {.key = 0},
};

static bool sign_fits(const char *word, char why[QK_WHY]) {
  if (strcmp(word, "chebyshev") == 0 || strcmp(word, "zolotarev") == 0) return true;
  return qk_refuse(why, "sign = %.40s: must be chebyshev or zolotarev", word);
}

static const qk_param_t overlap[] = {
    {.key = "mass",
     .type = QK_PARAM_REAL,
     .least = -1,
     .above = true,
     .most = 1,
     .below = true,
     .help = "quark mass m of D(m)"},
    {.key = "M",
     .type = QK_PARAM_REAL,
     .least = 0,
     .above = true,
     .most = 2,
     .below = true,
     .unit = "1/a",
     .help = "negative mass of the kernel: H is gamma_5 D_W(-M)"},
    {.key = "modes",
     .type = QK_PARAM_INTEGER,
     .least = 0,
     .most = 4000,
     .otherwise = "16",
     .help = "lowest eigenvectors of H on which the sign function is exact"},
    {.key = "sign-tol",
     .type = QK_PARAM_REAL,
     .least = 1e-11,
     .most = 1e-2,
     .otherwise = "1e-10",
     .help = "largest error of the sign function"},
    {.key = "sign",
     .type = QK_PARAM_WORD,
     .least = 1,
     .most = QK_PARAM_WORD_MAX,
     .otherwise = "chebyshev",
     .help = "what makes it beside the eigenvectors: chebyshev, a polynomial; zolotarev, partial "
             "fractions by multi-shift CG, one right-hand side at a time",
     .fits = sign_fits},
    LINKS,
    {.key = 0},
};

const qk_action_row_t qk_action_rows[] = {
    [QK_ACTION_WILSON] = {.name = "wilson",
                          .help = "plain Wilson fermions: 4 + m - 1/2 hop",
                          .reference = "K. G. Wilson, New Phenomena in Subnuclear Physics (1977)",
                          .param = wilson,
                          .has_kappa = true},
    [QK_ACTION_WILSON_CLOVER] =
        {.name = "wilson-clover",
         .help = "Wilson fermions with the clover term: 4 + m + csw clover - 1/2 hop",
         .reference = "B. Sheikholeslami, R. Wohlert, Nucl. Phys. B 259 (1985) 572",
         .param = wilson_clover,
         .has_kappa = true},
    {.name = "anisotropic-clover",
     .help = "clover fermions on anisotropic lattices: 1 + 3 nu / xi0 + m + clover - 1/2 hop",
     .reference = "R. G. Edwards, B. Joo, H.-W. Lin, Phys. Rev. D 78 (2008) 054501",
     .param = anisotropic_clover,
     .has_kappa = true},
    {.name = "twisted-clover",
     .help = "twisted mass fermions, with the clover term if csw is not 0: 4 + m + csw clover + "
             "i mu gamma_5 tau_3 - 1/2 hop",
     .reference = "R. Frezzotti, P. A. Grassi, S. Sint, P. Weisz, JHEP 08 (2001) 058",
     .param = twisted_clover,
     .has_kappa = true,
     .has_flavours = true},
    {.name = "exp-clover",
     .help = "exponential clover fermions: (4 + m) exp[csw clover / (4 + m)] - 1/2 hop",
     .reference = "A. Francis et al., Comput. Phys. Commun. 255 (2020) 107355, arXiv:1911.04533",
     .param = exp_clover,
     .has_kappa = true},
    {.name = "doublet",
     .help = "non-degenerate doublet of twisted mass fermions: 4 + m + csw clover + "
             "i mu gamma_5 tau_3 - epsilon tau_1 - 1/2 hop",
     .reference = "R. Frezzotti, G. C. Rossi, Nucl. Phys. B (Proc. Suppl.) 128 (2004) 193, "
                  "hep-lat/0311008",
     .param = doublet,
     .has_kappa = true,
     .vectors = 2},
    {.name = "foreign-clover",
     .help = "Wilson fermions with a local term T that another program has made: T - 1/2 hop",
     .reference = "B. Sheikholeslami, R. Wohlert, Nucl. Phys. B 259 (1985) 572",
     .param = foreign_clover,
     .has_term = true},
    {.name = "moebius",
     .help = "domain wall fermions of Shamir and Moebius: (b D + 1) + (c D - 1) Delta, "
             "D = D_W(-M5)",
     .reference = "R. C. Brower, H. Neff, K. Orginos, Comput. Phys. Commun. 220 (2017) 1, "
                  "arXiv:1206.5214",
     .param = moebius,
     .has_slices = true},
    {.name = "staggered",
     .help = "naive staggered fermions, also of smeared links: m + D/2",
     .reference = "J. Kogut, L. Susskind, Phys. Rev. D 11 (1975) 395",
     .param = staggered,
     .has_masses = true,
     .colour = true},
    {.name = "asqtad",
     .help = "improved staggered fermions: m + D/2 over fat and long links",
     .reference = "K. Orginos, D. Toussaint, R. L. Sugar, Phys. Rev. D 60 (1999) 054503, "
                  "hep-lat/9903032",
     .param = asqtad,
     .has_masses = true,
     .colour = true},
    {.name = "hisq",
     .help = "highly improved staggered fermions: m + D/2 over fat and long links of fat7 links "
             "that are projected to U(3)",
     .reference = "E. Follana et al., Phys. Rev. D 75 (2007) 054502, hep-lat/0610092",
     .param = hisq,
     .has_masses = true,
     .colour = true},
    {.name = "overlap",
     .help = "overlap fermions: 1/2 [(1 + m) + (1 - m) gamma_5 sgn(gamma_5 D)], D = D_W(-M)",
     .reference = "H. Neuberger, Phys. Lett. B 417 (1998) 141, hep-lat/9707022",
     .param = overlap,
     .is_dense = true,
     .has_masses = true,
     .least_of_masses = 1e-6},
    {.name = 0},
};
