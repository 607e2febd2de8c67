/* eigen: eigenvectors that the daemon computes and keeps. */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/analysis/smearing.h"
#include "client/cli/operator.h"
#include "client/cli/solving.h"
#include "client/quarkctl/eigen_vectors.h"
#include "proto/limits.h"

typedef struct options {
  ctl_common_t common;
  quark_eigen_params_t eigen;
  const char *name, *out, *values, *from, *vectors_out;
  bool list, drop, progress, f32, kind; /* kind: it was given */
} options_t;

/* What there is to be told: the pairs of the result, or none where it was fetched before. */
typedef struct found {
  quark_report_t report;
  quark_eigen_report_t eigen;
  double *pairs;
  uint32_t slices; /* of the Laplacian; else 0 */
  double seconds;
} found_t;

enum { BLOCK = 8, POLL_MS = 500, PATIENCE = 3 /* seconds, after a cancel */ };
/* How far vectors of a file may be from orthonormal, where nobody says it. */
static const double tol_single = 1e-4, tol_double = 1e-9;

/* ---- options --------------------------------------------------------------------------------- */

static void take_kind(const struct argp_state *state, const char *name, char *text, void *values) {
  options_t *o = values;
  o->kind = true;
  if (!quark_eigen_kind_parse(text, &o->eigen.kind))
    argp_error(state, "--%s=%s: must be normal, gamma5 or laplacian", name, text);
}

static void take_links(const struct argp_state *state, const char *name, char *text, void *values) {
  qk_err_t err = {0};
  if (qk_smearing_parse_links(text, &((options_t *)values)->eigen.links, &err) != QK_OK)
    argp_error(state, "--%s=%s: %s", name, text, err.text);
}

static void take_block(const struct argp_state *state, const char *name, char *text, void *values) {
  uint32_t *b = ((options_t *)values)->eigen.block;
  int end = 0;
  const int n = sscanf(text, "%" SCNu32 "x%" SCNu32 "x%" SCNu32 "x%" SCNu32 "%n", &b[0], &b[1],
                       &b[2], &b[3], &end);
  bool sound = n == 4 && text[end] == '\0' && strspn(text, "0123456789x") == strlen(text);
  for (int mu = 0; mu < 4; mu++) sound = sound && b[mu] >= 1 && b[mu] <= INT16_MAX;
  if (!sound) argp_error(state, "--%s=%s: four extents are needed, as 4x4x4x4", name, text);
}

static void take_dtype(const struct argp_state *state, const char *name, char *text, void *values) {
  ((options_t *)values)->f32 = ctl_either(state, name, text, "f64", "f32");
}

/* Before anything is computed: a file can be made there, and nothing else goes to it. */
static void check_outputs(const struct argp_state *state, const options_t *o) {
  const char *const option[] = {"out", "values", "vectors-out"};
  const char *const path[] = {o->out, o->values, o->vectors_out};
  for (int i = 0; i < 3; i++) {
    char folder[PATH_MAX];
    struct stat st;
    if (!path[i]) continue;
    for (int j = 0; j < i; j++)
      if (path[j] && strcmp(path[i], path[j]) == 0)
        argp_error(state, "--%s, --%s: both are %s", option[j], option[i], path[i]);
    if (stat(path[i], &st) == 0 && S_ISDIR(st.st_mode))
      argp_error(state, "--%s=%s: it is a folder", option[i], path[i]);
    snprintf(folder, sizeof folder, "%s", path[i]);
    if (access(dirname(folder), W_OK) != 0)
      argp_error(state, "--%s=%s: its folder: %s", option[i], path[i], strerror(errno));
  }
}

static void finish(const struct argp_state *state, void *values) {
  const options_t *o = values;
  const bool makes = o->eigen.count > 0 || o->from;
  const quark_eigen_params_t *e = &o->eigen;
  if (o->from && (e->count || e->space || e->order || e->restarts || e->links.links || o->kind))
    argp_error(state, "--from: the vectors are not computed: --count, --kind, --space, --order, "
                      "--restarts and --smear-links say nothing of them");
  if (e->count && o->vectors_out && e->kind != QUARK_EIGEN_LAPLACIAN)
    argp_error(state, "--vectors-out is for --kind=laplacian; --out writes those of other kinds");
  check_outputs(state, o);
  if (!o->list && !o->name) argp_error(state, "the name of the eigenvectors is missing");
  if (o->list && (o->name || o->drop)) argp_error(state, "--list: it takes no name");
  if (o->drop && (makes || o->out || o->values || o->vectors_out))
    argp_error(state, "--drop: nothing else can be asked for");
  if (!o->list && !o->drop && !makes && !o->out && !o->vectors_out && !o->values)
    argp_error(state, "--count or --from is required, or --values, --out or --vectors-out of "
                      "eigenvectors that are there");
  if (!makes && (e->space || e->order || e->restarts || e->links.links || o->kind))
    argp_error(state, "--kind, --space, --order, --restarts and --smear-links are for --count: "
                      "eigenvectors that are there have theirs");
  if (o->values && o->from)
    argp_error(state, "--values: the eigenvalues of vectors that are sent are not known");
  if (e->basis > 0 && (e->kind != QUARK_EIGEN_NORMAL || o->from || !e->count))
    argp_error(state, "--basis is for --count of --kind=normal");
  if (e->basis % 8 || (e->basis > 0 && e->basis >= e->count))
    argp_error(state, "--basis=%" PRIu32 ": must be a multiple of 8, and less than --count",
               e->basis);
  if (e->block[0] && !e->basis) argp_error(state, "--block needs --basis");
  if (o->eigen.links.links && o->eigen.kind != QUARK_EIGEN_LAPLACIAN)
    argp_error(state, "--smear-links is for --kind=laplacian");
}

#define AT(member) offsetof(options_t, member)
static const qk_option_row_t rows[] = {
    {"count", QK_OPTION_UINT32, AT(eigen.count), "N", .min = 1, .max = QK_EIGEN_COUNT_MAX,
     .help = "how many, the lowest; of the Laplacian on each time slice"},
    {"kind", QK_OPTION_TAKEN, .form = "KIND", .take = take_kind,
     .help = "normal: Mhat^+ Mhat on even sites (default); gamma5: gamma_5 M, those of least "
             "modulus; laplacian: minus the Laplacian in space"},
    {"tol", QK_OPTION_REAL, AT(eigen.tol), "TOL", .min = QK_EIGEN_TOL_MIN, .max = QK_EIGEN_TOL_MAX,
     .help = "residual |A v - lambda v| over the largest eigenvalue (1e-8); of --from: the largest "
             "element of |V^+ V - 1| (1e-4 of 32 bit, 1e-9 of 64)"},
    {"from", QK_OPTION_TEXT, AT(from), "FILE",
     .help = "vectors of one's own in place of the Laplacian's: dataset \"vectors\" of an HDF5 "
             "file, [t][n][z][y][x][3] complex, orthonormal on each time slice"},
    {"space", QK_OPTION_UINT32, AT(eigen.space), "N", .max = QK_EIGEN_SPACE_MAX,
     .help = "vectors of the Krylov space; 0: chosen (0)"},
    {"order", QK_OPTION_UINT32, AT(eigen.order), "N", .max = QK_EIGEN_ORDER_MAX,
     .help = "order of the Chebyshev polynomial, even; 0: chosen (0)"},
    {"restarts", QK_OPTION_UINT32, AT(eigen.restarts), "N", .max = QK_EIGEN_RESTARTS_MAX,
     .help = "restarts at most; 0: chosen (0)"},
    {"basis", QK_OPTION_UINT32, AT(eigen.basis), "N", .max = QK_EIGEN_BASIS_MAX,
     .help = "the lowest N, a multiple of 8, are a basis that all are written in, compressed; 0: "
             "they are kept whole (0)"},
    {"block", QK_OPTION_TAKEN, .form = "XxYxZxT", .take = take_block,
     .help =
         "extents of the blocks that the basis is cut into (4x4x4x4, 2 where 4 does not divide)"},
    {"smear-links", QK_OPTION_TAKEN, .form = "SMEARING", .take = take_links,
     .help = "smearing of the links of the Laplacian: ape:ALPHA,STEPS[,4d], stout:RHO,STEPS[,4d] "
             "or hyp:A1,A2,A3[,STEPS]"},
    {"values", QK_OPTION_TEXT, AT(values), "FILE",
     .help = "eigenvalues and residuals as HDF5, of a set that is kept without --count"},
    {"out", QK_OPTION_TEXT, AT(out), "FILE",
     .help = "the vectors, as quarkctl solve writes fields"},
    {"vectors-out", QK_OPTION_TEXT, AT(vectors_out), "FILE",
     .help = "the vectors of the Laplacian as --from takes them, [t][n][z][y][x][3]"},
    {"dtype", QK_OPTION_TAKEN, .form = "f64|f32", .take = take_dtype,
     .help = "precision of --out and --vectors-out (f64)"},
    {"drop", QK_OPTION_FLAG, AT(drop), .help = "drop those of this name"},
    {"list", QK_OPTION_FLAG, AT(list), .help = "list those that the setup has"},
    {"progress", QK_OPTION_FLAG, AT(progress),
     .help = "show progress even if stderr is not a terminal"},
    {"NAME", QK_OPTION_ARGUMENT, .flags = OPTION_ARG_OPTIONAL, .offset = AT(name)},
    {NULL, QK_OPTION_TABLE, AT(common), .table = &ctl_common_table},
    {0},
};
static const qk_option_table_t table = {.row = rows, .group = 1, .finish = finish};

/* ---- output ---------------------------------------------------------------------------------- */

static const char *state_name(quark_eigen_state_t state) {
  static const char *const name[] = {"being made", "kept", "returning"};
  return state <= QUARK_EIGEN_RETURNING ? name[state] : "?";
}

static json_t *basis_json(const quark_eigen_report_t *r) {
  if (r->basis == 0) return json_null();
  return json_pack("{s:I, s:[I, I, I, I]}", "vectors", (json_int_t)r->basis, "block",
                   (json_int_t)r->block[0], (json_int_t)r->block[1], (json_int_t)r->block[2],
                   (json_int_t)r->block[3]);
}

static json_t *zero_json(const quark_eigen_report_t *r) {
  if (r->zero_plus < 0 || r->zero_minus < 0) return json_null();
  return json_pack("{s:i, s:i, s:i}", "plus", r->zero_plus, "minus", r->zero_minus, "index",
                   r->zero_plus - r->zero_minus);
}

static json_t *report_json(const quark_eigen_report_t *r) {
  const char *kind = quark_eigen_kind_name(r->kind);
  return json_pack(
      "{s:s, s:s, s:s, s:I, s:o, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o}", "name",
      r->name, "state", state_name(r->state), "kind", kind ? kind : "?", "count",
      (json_int_t)r->count, "tol", ctl_number(r->tol), "user", r->user, "lowest",
      ctl_number(r->lowest), "highest", ctl_number(r->highest), "residual", ctl_number(r->residual),
      "seconds", ctl_number(r->seconds), "device_bytes", (json_int_t)r->device_bytes, "host_bytes",
      (json_int_t)r->host_bytes, "field", *r->field ? json_string(r->field) : json_null(), "basis",
      basis_json(r), "unwritten", *r->unwritten ? json_string(r->unwritten) : json_null(),
      "zero_modes", zero_json(r));
}

static void print_report(const quark_eigen_report_t *r) {
  printf("%s: %s   %u %s   tol %.3g", r->name, state_name(r->state), r->count,
         quark_eigen_kind_name(r->kind) ? quark_eigen_kind_name(r->kind) : "?", r->tol);
  const double mib = (double)(r->device_bytes + r->host_bytes) / 1048576;
  if (*r->field)
    printf("   sent by a client, off by %.2g   %.2f s   %.1f MiB", r->residual, r->seconds, mib);
  else if (!isnan(r->lowest))
    printf("   %.6g to %.6g, residual %.2g   %.2f s   %.1f MiB", r->lowest, r->highest, r->residual,
           r->seconds, mib);
  if (r->zero_plus >= 0 && r->zero_minus >= 0)
    printf("   zero modes: %d of chirality +1, %d of -1, index %d", r->zero_plus, r->zero_minus,
           r->zero_plus - r->zero_minus);
  if (r->basis > 0)
    printf("   in a basis of %u, blocks %ux%ux%ux%u", r->basis, r->block[0], r->block[1],
           r->block[2], r->block[3]);
  printf("%s%s", *r->user ? "   " : "", r->user);
  if (*r->unwritten) printf("   on no disk, and lost with their engine: %s", r->unwritten);
  printf("\n");
}

static json_t *values_json(const found_t *f) {
  json_t *list = json_array();
  const size_t n = (size_t)f->eigen.count * (f->slices ? f->slices : 1);
  for (size_t i = 0; f->pairs && i < n; i++)
    json_array_append_new(
        list, json_pack("[o, o]", ctl_number(f->pairs[2 * i]), ctl_number(f->pairs[2 * i + 1])));
  return list;
}

static void print_values(const found_t *f) {
  const size_t n = f->eigen.count;
  printf("%s%6s %24s %12s\n", f->slices ? "   t " : "", "n", "eigenvalue", "residual");
  for (size_t i = 0; i < n * (f->slices ? f->slices : 1); i++) {
    if (f->slices) printf("%4zu ", i / n);
    printf("%6zu %24.16g %12.3g\n", i % n, f->pairs[2 * i], f->pairs[2 * i + 1]);
  }
}

static int print(const options_t *o, const found_t *f) {
  if (o->common.json) {
    json_t *object = report_json(&f->eigen);
    json_object_set_new(object, "eigenvalues", values_json(f));
    json_object_set_new(object, "out", o->out ? json_string(o->out) : json_null());
    json_object_set_new(object, "vectors_out",
                        o->vectors_out ? json_string(o->vectors_out) : json_null());
    json_object_set_new(object, "values", o->values ? json_string(o->values) : json_null());
    return ctl_print(object);
  }
  if (f->pairs) print_values(f);
  print_report(&f->eigen);
  if (o->values) printf("written %s\n", o->values);
  if (o->out) printf("written %s\n", o->out);
  if (o->vectors_out) printf("written %s\n", o->vectors_out);
  return 0;
}

/* ---- computing ------------------------------------------------------------------------------- */

static void show(ctl_progress_t *progress, const quark_eigen_progress_t *p) {
  char text[160];
  if (p->count == 0)
    snprintf(text, sizeof text, "waiting");
  else
    snprintf(text, sizeof text, "%u of %u converged, restart %u, %.1f s", p->converged, p->count,
             p->restart, p->seconds);
  ctl_progress_line(progress, text);
}

/* Interrupted it cancels the request. What is computed ends when LAPACK lets it: that is not waited
 * for, as the daemon ends what its client has left. */
static int wait_for(const options_t *o, quark_connection_t *conn, uint64_t request,
                    quark_result_t *result) {
  ctl_progress_t progress;
  quark_error_t err;
  quark_code_t code;
  double give_up = 0;
  ctl_progress_begin(&progress, 1, o->progress);
  while ((code = quark_wait(conn, request, 0, POLL_MS, result, &err)) == QUARK_TIMEOUT) {
    quark_eigen_progress_t p = {0};
    if (quark_eigen_watch(conn, request, &p, NULL) == QUARK_OK) show(&progress, &p);
    if (give_up > 0 && ctl_seconds() > give_up) break;
    if (!ctl_interrupted() || give_up > 0) continue;
    give_up = ctl_seconds() + PATIENCE;
    quark_cancel(conn, request, QUARK_ALL, NULL);
  }
  ctl_progress_end(&progress);
  if (code == QUARK_TIMEOUT) {
    ctl_complain("interrupted: the daemon ends the computation as soon as it can");
    return EXIT_AGAIN;
  }
  return code == QUARK_OK ? 0 : ctl_fail(&err);
}

/* The result of a request of so many bytes. */
static int take_pairs(const options_t *o, quark_connection_t *conn, uint64_t request,
                      uint64_t bytes, found_t *f) {
  quark_error_t err;
  quark_result_t result;
  char text[CTL_RESULT_MAX];
  int code = wait_for(o, conn, request, &result);
  if (code) return code;
  if (result.status != QUARK_OK) {
    ctl_complain("%s: %s", o->name, ctl_result_text(&result, text));
    return ctl_interrupted() ? EXIT_AGAIN : EXIT_DATA;
  }
  f->pairs = malloc(bytes);
  if (!f->pairs) {
    ctl_complain("no memory for %" PRIu64 " eigenvalues", bytes / 16);
    return EXIT_AGAIN;
  }
  if (quark_download(conn, request, 0, f->pairs, bytes, &err) != QUARK_OK) code = ctl_fail(&err);
  quark_release(conn, request, NULL);
  return code;
}

static int make(const options_t *o, const quark_eigen_params_t *eigen, quark_connection_t *conn,
                found_t *f) {
  quark_error_t err;
  uint64_t request, bytes;
  if (quark_eigen(conn, eigen, &request, &bytes, &err) != QUARK_OK) return ctl_fail(&err);
  return take_pairs(o, conn, request, bytes, f);
}

/* Those of a set that is there. */
static int recall(const options_t *o, quark_connection_t *conn, found_t *f) {
  quark_error_t err;
  uint64_t request, bytes;
  if (*f->eigen.field) {
    ctl_complain("--values: eigenvectors %s were sent by a client: their eigenvalues are not known",
                 o->name);
    return EXIT_DATA;
  }
  if (quark_eigen_values(conn, &o->eigen, &request, &bytes, &err) != QUARK_OK)
    return ctl_fail(&err);
  const uint64_t n = (uint64_t)f->eigen.count * (f->slices ? f->slices : 1);
  if (bytes != 2 * n * sizeof(double)) { /* dropped, and made again, since it was looked at */
    quark_release(conn, request, NULL);
    ctl_complain("eigenvectors %s have changed meanwhile: try again", o->name);
    return EXIT_AGAIN;
  }
  return take_pairs(o, conn, request, bytes, f);
}

/* The vectors of a file. */
static int make_from(const options_t *o, quark_connection_t *conn, found_t *f) {
  quark_eigen_params_t eigen = o->eigen;
  char text[32];
  uint64_t field;
  bool single;
  int code = ctl_eigen_send(conn, o->from, &field, &eigen.count, &single);
  if (code) return code;
  snprintf(text, sizeof text, "field:%" PRIu64, field);
  eigen.field = text;
  eigen.kind = QUARK_EIGEN_LAPLACIAN;
  if (eigen.tol == 0) eigen.tol = single ? tol_single : tol_double;
  code = make(o, &eigen, conn, f);
  quark_release(conn, field, NULL);
  free(f->pairs); /* of no eigenvalue */
  f->pairs = NULL;
  return code;
}

/* What the daemon says of those of this name. */
static int look(const options_t *o, quark_connection_t *conn, found_t *f) {
  quark_eigen_report_t list[QUARK_EIGEN_NAMES];
  quark_error_t err;
  uint32_t n;
  if (quark_eigen_list(conn, NULL, list, &n, &err) != QUARK_OK) return ctl_fail(&err);
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(list[i].name, o->name) == 0) f->eigen = list[i];
  if (!*f->eigen.name) {
    ctl_complain("setup %s has no eigenvectors %s", f->report.setup.name, o->name);
    return EXIT_DATA;
  }
  if (f->eigen.kind == QUARK_EIGEN_LAPLACIAN) f->slices = f->report.setup.dims[3];
  return 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void describe_values(const options_t *o, const found_t *f, qk_eigenmeta_t *meta) {
  const quark_report_t *r = &f->report;
  *meta = (qk_eigenmeta_t){.tolerance = f->eigen.tol, .plaquette = r->setup.plaquette};
  for (int mu = 0; mu < 4; mu++) meta->dims[mu] = (int32_t)r->setup.dims[mu];
  snprintf(meta->name, sizeof meta->name, "%s", f->eigen.name);
  snprintf(meta->kind, sizeof meta->kind, "%s", quark_eigen_kind_name(f->eigen.kind));
  snprintf(meta->gauge, sizeof meta->gauge, "%s", r->setup.gauge);
  snprintf(meta->digest, sizeof meta->digest, "%016" PRIx64, r->setup.digest);
  ctl_operator_canonical(r, meta->action);
  memcpy(meta->boundary, r->setup.boundary, sizeof meta->boundary);
  const quark_smearing_t *links = o->eigen.links.links ? &o->eigen.links : &f->eigen.links;
  if (links->links) qk_smearing_print_links(links, meta->links);
}

static int write_values(const options_t *o, const found_t *f) {
  qk_eigenmeta_t meta;
  qk_err_t err = {0};
  describe_values(o, f, &meta);
  return qk_eigenfile_write(o->values, &meta, f->slices, f->eigen.count, f->pairs, &err) == QK_OK
             ? 0
             : ctl_fail_file(&err);
}

static int write_slices(const options_t *o, quark_connection_t *conn, const found_t *f) {
  qk_eigenmeta_t meta;
  if (f->slices == 0) {
    ctl_complain("--vectors-out: eigenvectors %s are not of time slices, but of kind %s: --out "
                 "writes them",
                 o->name, quark_eigen_kind_name(f->eigen.kind));
    return EXIT_DATA;
  }
  describe_values(o, f, &meta);
  return ctl_eigen_fetch(conn, o->vectors_out, &meta, f->eigen.count, o->f32);
}

static void describe(const options_t *o, const quark_report_t *r, qk_h5meta_t *meta) {
  ctl_describe_setup(r, meta);
  snprintf(meta->kind, sizeof meta->kind, "eigenvectors");
  snprintf(meta->basis, sizeof meta->basis, "%s", quark_basis_name(QUARK_DEGRAND_ROSSI));
  snprintf(meta->normalisation, sizeof meta->normalisation, "mass");
  snprintf(meta->source, sizeof meta->source, "%s", o->name);
}

/* Those from `first` on, fetched and written one by one. */
static int write_block(const options_t *o, quark_connection_t *conn, const found_t *f,
                       uint32_t first, uint32_t n, qk_fieldfile_t *file, void *field,
                       size_t bytes) {
  quark_params_t p;
  quark_column_t column[BLOCK] = {0};
  quark_error_t err;
  qk_err_t file_err = {0};
  uint64_t request;
  int code = 0;
  quark_params_init(&p);
  p.nrhs = n;
  p.source = QUARK_VECTOR;
  p.work = QUARK_WORK_SMEAR;
  p.vectors = o->name;
  p.column = column;
  p.dtype = o->f32 ? QUARK_F32 : QUARK_F64;
  for (uint32_t i = 0; i < n; i++) {
    column[i].vector = first + i;
    column[i].t = f->slices ? -1 : 0;
  }
  if (quark_submit(conn, &p, &request, NULL, &err) != QUARK_OK) return ctl_fail(&err);
  for (uint32_t i = 0; i < n && code == 0; i++) {
    quark_result_t result;
    char text[CTL_RESULT_MAX];
    if (quark_wait(conn, request, i, -1, &result, &err) != QUARK_OK) {
      code = ctl_fail(&err);
    } else if (result.status != QUARK_OK) {
      ctl_complain("vector %u: %s", first + i, ctl_result_text(&result, text));
      code = EXIT_DATA;
    } else if (quark_download(conn, request, i, field, bytes, &err) != QUARK_OK) {
      code = ctl_fail(&err);
    } else if (qk_fieldfile_write(file, first + i, field, false, &file_err) != QK_OK) {
      code = ctl_fail_file(&file_err);
    }
    quark_ack(conn, request, (int32_t)i, NULL);
  }
  quark_release(conn, request, NULL);
  return code;
}

static int write_vectors(const options_t *o, quark_connection_t *conn, const found_t *f) {
  const int bits = o->f32 ? 32 : 64;
  const uint32_t n = f->eigen.count;
  qk_fieldfile_t *file = NULL;
  qk_h5meta_t meta;
  qk_err_t err = {0};
  describe(o, &f->report, &meta);
  if (qk_fieldfile_create(o->out, qk_field_format_of(o->out), &meta, bits, n, &file, &err) != QK_OK)
    return ctl_fail_file(&err);
  const size_t bytes = qk_fieldfile_rhs_bytes(file, bits);
  void *field = malloc(bytes);
  int code = field ? 0 : EXIT_AGAIN;
  if (!field) ctl_complain("no memory for a vector");
  for (uint32_t i = 0; i < n && code == 0 && !ctl_interrupted(); i += BLOCK)
    code = write_block(o, conn, f, i, n - i < BLOCK ? n - i : BLOCK, file, field, bytes);
  if (code == 0 && ctl_interrupted()) code = EXIT_AGAIN;
  if (code == 0 && qk_fieldfile_commit(file, &err) != QK_OK) code = ctl_fail_file(&err);
  free(field);
  qk_fieldfile_close(file);
  return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int list(const options_t *o, quark_connection_t *conn) {
  quark_eigen_report_t report[QUARK_EIGEN_NAMES];
  quark_error_t err;
  uint32_t n;
  if (quark_eigen_list(conn, NULL, report, &n, &err) != QUARK_OK) return ctl_fail(&err);
  json_t *all = json_array();
  for (uint32_t i = 0; i < n; i++) {
    json_array_append_new(all, report_json(&report[i]));
    if (!o->common.json) print_report(&report[i]);
  }
  if (o->common.json) return ctl_print(json_pack("{s:o}", "eigenvectors", all));
  json_decref(all);
  return 0;
}

static int drop(const options_t *o, quark_connection_t *conn) {
  quark_error_t err;
  if (quark_eigen_drop(conn, NULL, o->name, &err) != QUARK_OK) return ctl_fail(&err);
  return o->common.json ? ctl_print(json_pack("{s:s}", "dropped", o->name)) : 0;
}

static int run(const options_t *o, quark_connection_t *conn, found_t *f) {
  int code = ctl_report(&o->common, conn, false, &f->report);
  if (code == 0 && o->out) code = ctl_operator_check(&f->report);
  if (code == 0 && o->list) return list(o, conn);
  if (code == 0 && o->drop) return drop(o, conn);
  ctl_catch_signals();
  if (code == 0 && o->from) code = make_from(o, conn, f);
  if (code == 0 && o->eigen.count > 0) code = make(o, &o->eigen, conn, f);
  if (code == 0) code = look(o, conn, f);
  if (code == 0 && o->values && !f->pairs) code = recall(o, conn, f);
  if (code == 0 && o->values) code = write_values(o, f);
  if (code == 0 && o->out) code = write_vectors(o, conn, f);
  if (code == 0 && o->vectors_out) code = write_slices(o, conn, f);
  return code ? code : print(o, f);
}

int ctl_eigen(int argc, char **argv) {
  static const char about[] =
      "Has the daemon compute the lowest eigenvectors of its setup and keep them under a name: for "
      "solves that begin with them, as sources, or for a file.\v"
      "They stay until --drop, or until the setup ends. Exit codes: 65 they did not converge, 69 "
      "no daemon, 75 try again later.";
  options_t o = {0};
  found_t f = {0};
  quark_connection_t *conn;
  quark_eigen_params_init(&o.eigen);
  const double computed = o.eigen.tol;
  o.eigen.count = 0;
  o.eigen.tol = 0;
  ctl_common_init(&o.common);
  qk_options_parse(&table, "NAME", about, argc, argv, &o);
  o.eigen.name = o.name;
  if (!o.from && o.eigen.tol == 0) o.eigen.tol = computed;
  int code = ctl_connect(&o.common, NULL, false, &conn);
  if (code) return code;
  code = run(&o, conn, &f);
  free(f.pairs);
  quark_close(conn);
  return code;
}
