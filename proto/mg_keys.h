/*
 * mg_keys.h: the settings of multigrid by name. quarkd reads them from its command line and passes
 * them to the engine as text. daemon/engine/multigrid/mg_text.h defines how a value is parsed.
 */
#ifndef QK_PROTO_MG_KEYS_H
#define QK_PROTO_MG_KEYS_H

/* X(name, key, form, help) */
#define QK_MG_KEYS(X)                                                                              \
  X(LEVELS, "mg-levels", "N", "levels of the hierarchy, 2 to 5")                                   \
  X(BLOCKS, "mg-blocks", "XxYxZxT,...", "size of an aggregate, for each level but the last")       \
  X(VECTORS, "mg-vectors", "N,...", "number of null vectors, for each level but the last")         \
  X(TEST_VECTORS, "mg-test-vectors", "N,...", "null vectors that they are condensed from")         \
  X(SETUP_ITERATIONS, "mg-setup-iterations", "N,...", "iterations that relax the null vectors")    \
  X(SETUP_TOL, "mg-setup-tol", "TOL,...", "reduction of the residual that ends the relaxation")    \
  X(SETUP_PASSES, "mg-setup-passes", "N,...",                                                      \
    "refinements of the null vectors by multigrid itself, or none")                                \
  X(SETUP_PRECISION, "mg-setup-precision", "single|half",                                          \
    "precision of the relaxation on level 0")                                                      \
  X(SETUP_VECTORS, "mg-setup-vectors", "N",                                                        \
    "null vectors of level 0 that are made at a time, or none for all")                            \
  X(PROLONGATOR, "mg-prolongator", "single|half,...", "storage of prolongators")                   \
  X(SMOOTHER, "mg-smoother", "NAME,...", "mr, ca-gcr, chebyshev, polynomial (level 0) or schwarz") \
  X(OMEGA, "mg-omega", "W,...", "relaxation factor of mr and schwarz")                             \
  X(SMOOTHER_BLOCKS, "mg-smoother-blocks", "XxYxZxT,...", "size of a block of schwarz")            \
  X(SMOOTHER_PRECISION, "mg-smoother-precision", "single|half",                                    \
    "precision of the smoother on level 0")                                                        \
  X(SMOOTHER_SUMS, "mg-smoother-sums", "single|half",                                              \
    "precision in which a smoother in half adds the neighbours of a site on level 0")              \
  X(PRE, "mg-pre", "N,...", "smoothing steps before the coarse correction, or none")               \
  X(POST, "mg-post", "N,...", "smoothing steps after the coarse correction, or none")              \
  X(ITERATIONS, "mg-iterations", "N,...", "iterations of GCR on each level but the first")         \
  X(TOL, "mg-tol", "TOL,...", "residual that ends GCR early, from level 1 on; or none")            \
  X(STORE, "mg-store", "single|half,...", "storage of coarse matrices, from level 1 on")           \
  X(SMOOTHER_BITS, "mg-smoother-bits", "8,...",                                                    \
    "bits of the matrices that smooth a right-hand side alone, from level 1 on; or none")          \
  X(TWIST, "mg-twist", "F,...", "factor of mu on each level from 1 on, of twisted actions")        \
  X(DEFLATE, "mg-deflate", "N",                                                                    \
    "vectors of the coarsest level that are deflated, or none (doublets: none)")                   \
  X(WHOLE, "mg-whole", "N",                                                                        \
    "with several ranks: up to N sites, each keeps all of the coarsest level; none: a part")       \
  X(GRAPHS, "mg-graphs", "yes|no", "launch a cycle as one graph if the backend supports it")       \
  X(SEED, "mg-seed", "N", "seed of the random vectors that the multigrid setup starts from")

#define X(name, key, form, help) QK_MG_KEY_##name,
typedef enum qk_mg_key { QK_MG_KEYS(X) QK_MG_KEY_COUNT } qk_mg_key_t;
#undef X

#endif
