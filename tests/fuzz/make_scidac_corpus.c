/*
 * make_scidac_corpus.c: seeds of fuzz_scidac: both forms in both precisions, and what others write.
 *
 * usage: make_scidac_corpus FOLDER
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/files/scidac.h"
#include "daemon/base/assert.h"
#include "daemon/base/formats/lime.h"
#include "daemon/base/formats/sum.h"

enum { SITES = 2, REALS = SITES * 24 };

static void ours(const char *folder, bool usqcd, int bits) {
  char path[512];
  double x[REALS] = {1, 2, 3};
  qk_h5meta_t meta;
  qk_scidac_out_t *f = NULL;
  qk_h5meta_init(&meta);
  for (int mu = 0; mu < 4; mu++) meta.dims[mu] = mu == 3 ? 2 : 1;
  strcpy(meta.kind, "propagator");
  strcpy(meta.basis, "degrand-rossi");
  strcpy(meta.source, "point:0,0,0,1");
  strcpy(meta.action, "wilson;mass=0.1");
  snprintf(path, sizeof path, "%s/%s%d", folder, usqcd ? "usqcd" : "scidac", bits);
  QK_ASSERT(qk_scidac_create(path, usqcd, &meta, bits, QK_SCIDAC_COLUMNS, &f, NULL) == QK_OK);
  for (int k = 0; k < QK_SCIDAC_COLUMNS; k++) {
    qk_h5column_t c;
    qk_h5column_init(&c);
    c.spin = k / 3;
    c.colour = k % 3;
    strcpy(c.source, "point");
    QK_ASSERT(qk_scidac_write(f, k, x, true, NULL) == QK_OK);
    QK_ASSERT(qk_scidac_set_column(f, k, &c, NULL) == QK_OK);
  }
  QK_ASSERT(qk_scidac_commit(f, NULL) == QK_OK);
  qk_scidac_discard(f);
}

static void put(int fd, const char *type, unsigned flags, const char *text) {
  QK_ASSERT(qk_lime_put(fd, type, flags, (int64_t)strlen(text), text, NULL) == QK_OK);
}

/* A field of zeros with the numbers that are given. */
static void field(int fd, const char *text, int site_bytes, int count) {
  char private[512], sum_text[QK_SCIDAC_SUM_TEXT];
  static const char zeros[SITES * 2304];
  uint32_t sum[2] = {0, 0};
  snprintf(private, sizeof private,
           "<scidacRecord><recordtype>0</recordtype><precision>F</precision><colors>3</colors>"
           "<spins>4</spins><typesize>%d</typesize><datacount>%d</datacount></scidacRecord>",
           site_bytes / count, count);
  put(fd, "scidac-private-record-xml", QK_LIME_BEGIN, private);
  put(fd, "scidac-record-xml", 0, text);
  QK_ASSERT(qk_lime_put(fd, "scidac-binary-data", 0, SITES * site_bytes, zeros, NULL) == QK_OK);
  qk_scidac_sum_add(0, SITES, site_bytes, (const uint8_t *)zeros, sum);
  qk_scidac_sum_print(sum, sum_text);
  put(fd, "scidac-checksum", QK_LIME_END, sum_text);
}

static int begin(const char *folder, const char *name, const char *text) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  QK_ASSERT(fd >= 0);
  put(fd, "scidac-private-file-xml", QK_LIME_BEGIN,
      "<scidacFile><dims>1 1 1 2</dims><volfmt>0</volfmt></scidacFile>");
  put(fd, "scidac-file-xml", QK_LIME_END, text);
  return fd;
}

static void of_others(const char *folder) {
  int fd = begin(folder, "chroma", "<propagator/>");
  field(fd, "<Propagator><PropSource><t_srce>0 0 0 1</t_srce></PropSource></Propagator>", 1152, 12);
  close(fd);
  fd = begin(folder, "pairs",
             "<usqcdPropFile><type>USQCD_DiracFermion_Source_Sink_Pairs</type></usqcdPropFile>");
  for (int k = 0; k < 2; k++) {
    field(fd, "<usqcdSourceInfo></usqcdSourceInfo>", 96, 1);
    field(fd, "<usqcdPropInfo><spin>3</spin><color>2</color></usqcdPropInfo>", 96, 1);
  }
  close(fd);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: make_scidac_corpus FOLDER\n");
    return EXIT_FAILURE;
  }
  mkdir(argv[1], 0777);
  for (int i = 0; i < 4; i++) ours(argv[1], i / 2 != 0, i % 2 ? 64 : 32);
  of_others(argv[1]);
  printf("%s\n", argv[1]);
  return EXIT_SUCCESS;
}
