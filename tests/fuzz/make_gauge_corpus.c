/*
 * make_gauge_corpus.c: the corpora of the gauge fuzzers: one small good file of each kind, and
 * files that are odd in ways that mutation does not find soon.
 *
 * usage: make_gauge_corpus FOLDER   makes FOLDER/{lime,nersc,milc,openqcd}/... and prints the names
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/gauge_load.h"
#include "tests/support/gauge_make.h"

static const int dims[4] = {2, 2, 2, 2};
static const char *root;

static void save(const char *folder, const char *name, const void *data, size_t n) {
  char path[4096];
  mkdir(root, 0777);
  snprintf(path, sizeof path, "%s/%s", root, folder);
  mkdir(path, 0777);
  snprintf(path, sizeof path, "%s/%s/%s", root, folder, name);
  gauge_save(path, data, n);
  printf("%s\n", path);
}

static void good_files(const double *links) {
  static const char *const folder[] = {"lime", "lime",    "lime",   "nersc",
                                       "milc", "openqcd", "openqcd"};
  double plaquette, trace;
  gauge_sums(dims, links, &plaquette, &trace);
  for (int i = 0; i < gauge_makes_count; i++) {
    char name[64];
    gauge_bytes_t b = gauge_make(&gauge_makes[i], dims, links, plaquette, trace);
    snprintf(name, sizeof name, "good-%02d", i);
    save(folder[gauge_makes[i].kind], name, b.p, b.n);
    free(b.p);
  }
}

static void odd_lime(void) {
  static const char *const text[][2] = {
      {"ildg-format", "\n<?xml?><a b=\"unbalanced><precision>64</precision><lx>2</lx><ly>2</ly>"
                      "<lz>2</lz><lt>2</lt>"},
      {"ildg-format", "<field>su3gauge</field><precision>32</precision><lx x=\"1\"> 2 </lx>"},
      {"scidac-private-file-xml", "<dims>2 2 2 2 </dims><volfmt>0</volfmt>"},
      {"scidac-private-record-xml",
       "<precision>F</precision><colors>3</colors><datacount>4</datacount>"},
      {"scidac-checksum", "<suma>0</suma><sumb>0</sumb>"},
      {"scidac-checksum", "<suma>0x1c231a18</suma><sumb>0x0</sumb>"},
      {"scidac-record-xml", "<usqcdInfo><plaq>0.5</plaq></usqcdInfo>"},
      {"xlf-info", "plaquette = 5.710770e-01\n trajectory nr = 200\n"},
  };
  uint8_t zeros[16 * 576] = {0};
  for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
    char name[64];
    gauge_bytes_t b = {0};
    gauge_put_record(&b, text[i][0], text[i][1], strlen(text[i][1]));
    gauge_put_record(&b, "ildg-binary-data", zeros, sizeof zeros);
    snprintf(name, sizeof name, "text-%02d", (int)i);
    save("lime", name, b.p, b.n);
    free(b.p);
  }
}

static void odd_nersc(void) {
  static const char header[] =
      "BEGIN_HEADER\r\n DATATYPE=4D_SU3_GAUGE_3X3\r\nDIMENSION_1=2\nDIMENSION_2 =2\nDIMENSION_3= "
      "2\n"
      "DIMENSION_4 = 2 \nCHECKSUM = 0x0\nPLAQUETTE = -1.e-3\nFLOATING_POINT = IEEE64\nBOUNDARY_1 = "
      "PERIODIC\nEND_HEADER \n";
  uint8_t zeros[16 * 576] = {0};
  gauge_bytes_t b = {0};
  gauge_put(&b, header, strlen(header));
  gauge_put(&b, zeros, sizeof zeros);
  save("nersc", "blanks", b.p, b.n);
  free(b.p);
}

int main(int argc, char **argv) {
  if (argc != 2) return 64;
  root = argv[1];
  double *links = gauge_random(dims, 0.4, 1);
  good_files(links);
  odd_lime();
  odd_nersc();
  free(links);
  return 0;
}
