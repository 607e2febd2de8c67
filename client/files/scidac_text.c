#include "client/files/scidac_text.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <time.h>

static const char xml[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

static void print_value(FILE *out, const char *tag, const char *value) {
  fprintf(out, "<%s>", tag);
  for (const char *p = value; *p; p++)
    fputc(*p < ' ' || *p > '~' || strchr("<>&", *p) ? '?' : *p, out);
  fprintf(out, "</%s>\n", tag);
}

static void print_real(FILE *out, const char *tag, double x) {
  if (!isnan(x)) fprintf(out, "<%s>%.17g</%s>\n", tag, x, tag);
}

void qk_scidac_print_lattice(FILE *out, const int32_t dims[4]) {
  fprintf(out,
          "%s<scidacFile><version>1.1</version><spacetime>4</spacetime><dims>%d %d %d %d "
          "</dims><volfmt>0</volfmt></scidacFile>",
          xml, dims[0], dims[1], dims[2], dims[3]);
}

void qk_scidac_print_type(FILE *out, const qk_scidac_type_t *type) {
  char date[64];
  const time_t now = time(NULL);
  struct tm tm;
  gmtime_r(&now, &tm);
  strftime(date, sizeof date, "%a %b %d %H:%M:%S %Y UTC", &tm);
  fprintf(out,
          "%s<scidacRecord><version>1.1</version><date>%s</date><recordtype>0</recordtype>"
          "<datatype>%s</datatype><precision>%c</precision>",
          xml, date, type->name, type->precision);
  if (type->spins) fprintf(out, "<colors>3</colors><spins>%d</spins>", type->spins);
  fprintf(out, "<typesize>%d</typesize><datacount>1</datacount></scidacRecord>", type->site_bytes);
}

void qk_scidac_print_file(FILE *out) {
  fprintf(out, "%s<propagator>\n<id>0</id>\n</propagator>\n", xml);
}

/* ---- <quarkd> ---- */

static void print_member(FILE *out, const qk_h5attr_t *m, const qk_h5meta_t *meta) {
  const char *at = (const char *)meta + m->offset;
  const double *real = (const double *)at;
  const int32_t *integer = (const int32_t *)at;
  if (m->kind == QK_H5_TEXT) {
    if (*at) print_value(out, m->name, at);
    return;
  }
  for (int i = 0; m->kind == QK_H5_REAL && i < m->count; i++)
    if (!isfinite(real[i])) return;
  fprintf(out, "<%s>", m->name);
  for (int i = 0; i < m->count; i++) {
    if (i) fputc(' ', out);
    if (m->kind == QK_H5_REAL)
      fprintf(out, "%.17g", real[i]);
    else
      fprintf(out, "%d", integer[i]);
  }
  fprintf(out, "</%s>\n", m->name);
}

static void print_tag(FILE *out, const qk_scidac_story_t *s) {
  int n;
  const qk_h5attr_t *member = qk_h5meta_members(&n);
  fprintf(out, "<quarkd>\n<tag_version>1</tag_version>\n");
  for (int i = 0; i < n; i++) print_member(out, &member[i], s->meta);
  for (int i = 0; i < s->columns; i++) {
    const qk_h5column_t *c = &s->column[i];
    fprintf(out, "<column%d>%s %.17g %lld %.17g %s %d %d %d %d %d %d %llu %d %d %d %d %d %d", i,
            qk_status_name(c->status), c->true_residual, (long long)c->iterations, c->seconds,
            *c->source ? c->source : "-", c->site[0], c->site[1], c->site[2], c->site[3], c->spin,
            c->colour, (unsigned long long)c->seed, c->momentum[0], c->momentum[1], c->momentum[2],
            c->every, c->gamma, c->flavour);
    fprintf(out, "</column%d>\n", i);
  }
  fprintf(out, "</quarkd>\n");
}

/* ---- the form of Chroma ---- */

static void print_upper(FILE *out, const char *text, const char *stops) {
  for (const char *p = text; *p && !strchr(stops, *p); p++)
    fputc(isalnum((unsigned char)*p) ? toupper((unsigned char)*p) : '_', out);
}

/* As integers, which is how Chroma has them; other phases are in <quarkd> only. */
static void print_boundary(FILE *out, const double *phase) {
  for (int i = 0; i < 8; i++)
    if (i % 2 ? phase[i] != 0 : phase[i] != 1 && phase[i] != -1 && phase[i] != 0) return;
  fprintf(out, "<FermionBC><FermBC>SIMPLE_FERMBC</FermBC><boundary>%d %d %d %d</boundary>",
          (int)phase[0], (int)phase[2], (int)phase[4], (int)phase[6]);
  fprintf(out, "</FermionBC>\n");
}

/* Chroma's WILSON and CLOVER; others by our names, which it does not know. */
static void print_forward(FILE *out, const qk_h5meta_t *meta) {
  static const char family[] = "wilson-";
  const char *name = *meta->action ? meta->action : "unknown";
  if (strncmp(name, family, sizeof family - 1) == 0) name += sizeof family - 1;
  fprintf(out, "<ForwardProp>\n<version>9</version>\n<quarkSpinType>FULL</quarkSpinType>\n"
               "<obsvP>false</obsvP>\n<FermionAction>\n<FermAct>");
  print_upper(out, name, ";");
  fprintf(out, "</FermAct>\n");
  print_real(out, "Mass", meta->mass);
  print_real(out, "clovCoeff", meta->csw);
  print_boundary(out, meta->boundary);
  fprintf(out, "</FermionAction>\n<InvertParam>\n<invType>QUARKD</invType>\n");
  print_real(out, "RsdTarget", meta->tolerance);
  fprintf(out, "</InvertParam>\n</ForwardProp>\n");
}

static void print_source(FILE *out, const qk_scidac_story_t *s) {
  const qk_h5column_t *c = &s->column[0];
  const bool shell = *s->meta->smear != '\0' && strcmp(c->source, "point") == 0;
  fprintf(out, "<PropSource>\n<version>6</version>\n<Source>\n<version>1</version>\n<SourceType>");
  print_upper(out, *s->meta->sequential ? "sequential" : shell ? "shell" : c->source, "");
  fprintf(out, "_SOURCE</SourceType>\n<j_decay>3</j_decay>\n");
  if (c->site[3] >= 0 && c->site[0] >= 0)
    fprintf(out, "<t_srce>%d %d %d %d</t_srce>\n", c->site[0], c->site[1], c->site[2], c->site[3]);
  else if (c->site[3] >= 0)
    fprintf(out, "<t_source>%d</t_source>\n", c->site[3]);
  fprintf(out, "</Source>\n<j_decay>3</j_decay>\n</PropSource>\n");
}

void qk_scidac_print_record(FILE *out, const qk_scidac_story_t *s) {
  fprintf(out, "%s<Propagator>\n<version>1</version>\n", xml);
  print_forward(out, s->meta);
  print_source(out, s);
  fprintf(out, "<Config_info>\n");
  print_value(out, "gauge", s->meta->gauge);
  print_value(out, "digest", s->meta->digest);
  print_real(out, "w_plaq", s->meta->plaquette);
  fprintf(out, "</Config_info>\n");
  print_tag(out, s);
  fprintf(out, "</Propagator>\n");
}

/* ---- the form of MILC ---- */

void qk_scidac_print_usqcd_file(FILE *out, const qk_scidac_story_t *s) {
  fprintf(out,
          "%s<usqcdPropFile><version>1.0</version>"
          "<type>USQCD_DiracFermion_ScalarSource_TwelveSink</type><info>\n",
          xml);
  print_tag(out, s);
  fprintf(out, "</info></usqcdPropFile>");
}

void qk_scidac_print_usqcd_source(FILE *out, const qk_scidac_story_t *s) {
  fprintf(out, "%s<usqcdSourceInfo><version>1.0</version>\n", xml);
  print_value(out, "info", s->meta->source);
  fprintf(out, "</usqcdSourceInfo>");
}

void qk_scidac_print_usqcd_column(FILE *out, int column) {
  fprintf(out,
          "%s<usqcdPropInfo><version>1.0</version><spin>%d</spin><color>%d</color>"
          "<info></info></usqcdPropInfo>",
          xml, column / 3, column % 3);
}
