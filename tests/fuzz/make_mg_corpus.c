/*
 * make_mg_corpus.c: headers of multigrid checkpoints, of two to five levels.
 *
 * usage: make_mg_corpus FOLDER   makes FOLDER/... and prints the names
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/engine/checkpoint/mg_header.h"

static void save(const char *folder, const qk_mg_header_t *h) {
  char path[4096];
  uint8_t bytes[QK_MG_HEADER_BYTES];
  qk_mg_header_encode(h, bytes);
  snprintf(path, sizeof path, "%s/levels_%d", folder, h->nlevel);
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(bytes, 1, sizeof bytes, f) != sizeof bytes || fclose(f) != 0) {
    perror(path);
    exit(1);
  }
  printf("%s\n", path);
}

int main(int argc, char **argv) {
  if (argc != 2) return 64;
  mkdir(argv[1], 0777);
  for (int nlevel = 2; nlevel <= QK_MG_LEVELS_MAX; nlevel++) {
    const qk_mg_identity_t id = {.gauge_digest = 0x0123456789abcdef,
                                 .operator_text = "wilson-clover;mass=-0.3;csw=1",
                                 .phase = {{1, 0}, {1, 0}, {1, 0}, {-1, 0}}};
    qk_mg_t mg = {.nlevel = nlevel, .fresh_residual = 0.25, .fresh_convergence = 0.125};
    qk_mg_header_t h;
    for (int mu = 0; mu < 4; mu++) mg.level[0].geom.global[mu] = 64;
    for (int l = 0; l + 1 < nlevel; l++) {
      qk_mg_level_params_t *p = &mg.params.level[l];
      for (int mu = 0; mu < 4; mu++) p->block[mu] = 2;
      p->nvec = 24 + 2 * l;
      p->ntest = l == 0 ? 48 : p->nvec;
      p->setup_iterations = 100;
      p->setup_tol = 1e-3;
      p->prolongator = l == 0 ? QK_HALF : QK_SINGLE;
    }
    if (nlevel > 2) /* evolved ones, with an origin of full length among them */
      memset(mg.origin, 'a', nlevel == 3 ? 40 : QK_MG_ORIGIN - 1);
    qk_mg_header_fill(&h, &mg, &id);
    save(argv[1], &h);
  }
  return 0;
}
