/*
 * make_proto_corpus.c: the corpora of the protocol fuzzers: one message of each kind, with every
 * field; legal requests, which get past the first checks.
 *
 * usage: make_proto_corpus FOLDER   makes FOLDER/{control,frame,operator}/... and prints the names
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/control.h"
#include "proto/frame.h"

static const char *root;

static void save(const char *folder, const char *name, const void *data, size_t n) {
  char path[4096];
  mkdir(root, 0777);
  snprintf(path, sizeof path, "%s/%s", root, folder);
  mkdir(path, 0777);
  snprintf(path, sizeof path, "%s/%s/%s", root, folder, name);
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) {
    perror(path);
    exit(1);
  }
  printf("%s\n", path);
}

/* Every field of a message has a value, down to the deepest. */
static void *full(const ProtobufCMessageDescriptor *d);

static void set_value(const ProtobufCFieldDescriptor *f, void *at) {
  static uint8_t bytes[32] = {1, 2, 3};
  switch (f->type) {
  case PROTOBUF_C_TYPE_STRING:
    *(char **)at = "text";
    break;
  case PROTOBUF_C_TYPE_BYTES:
    *(ProtobufCBinaryData *)at = (ProtobufCBinaryData){16, bytes};
    break;
  case PROTOBUF_C_TYPE_MESSAGE:
    *(void **)at = full(f->descriptor);
    break;
  case PROTOBUF_C_TYPE_DOUBLE:
    *(double *)at = 1e-8;
    break;
  case PROTOBUF_C_TYPE_UINT64:
  case PROTOBUF_C_TYPE_FIXED64:
    *(uint64_t *)at = 2;
    break;
  case PROTOBUF_C_TYPE_BOOL:
    *(protobuf_c_boolean *)at = 1;
    break;
  default:
    *(int32_t *)at = 1;
    break; /* 32 bits, and enums: 1 is legal in all of ours */
  }
}

static size_t value_bytes(const ProtobufCFieldDescriptor *f) {
  switch (f->type) {
  case PROTOBUF_C_TYPE_MESSAGE:
  case PROTOBUF_C_TYPE_STRING:
    return sizeof(void *);
  case PROTOBUF_C_TYPE_BYTES:
    return sizeof(ProtobufCBinaryData);
  case PROTOBUF_C_TYPE_DOUBLE:
  case PROTOBUF_C_TYPE_UINT64:
  case PROTOBUF_C_TYPE_FIXED64:
    return 8;
  default:
    return 4;
  }
}

static void *full(const ProtobufCMessageDescriptor *d) {
  char *m = calloc(1, d->sizeof_message);
  if (!m) exit(1);
  protobuf_c_message_init(d, m);
  for (unsigned i = 0; i < d->n_fields; i++) {
    const ProtobufCFieldDescriptor *f = &d->fields[i];
    if (f->label == PROTOBUF_C_LABEL_REPEATED) {
      size_t n = 2;
      char *list = calloc(n, value_bytes(f));
      if (!list) exit(1);
      for (size_t k = 0; k < n; k++) set_value(f, list + k * value_bytes(f));
      *(char **)(m + f->offset) = list;
      *(size_t *)(m + f->quantifier_offset) = n;
    } else {
      if (f->label == PROTOBUF_C_LABEL_OPTIONAL && f->quantifier_offset)
        *(protobuf_c_boolean *)(m + f->quantifier_offset) = 1;
      set_value(f, m + f->offset);
    }
  }
  return m;
}

/* One message for each body of an envelope; the process ends soon, so nothing is freed. */
static void save_bodies(const char *prefix, const ProtobufCMessageDescriptor *d) {
  for (unsigned i = 0; i < d->n_fields; i++) {
    const ProtobufCFieldDescriptor *f = &d->fields[i];
    size_t bytes;
    char name[96], *m = calloc(1, d->sizeof_message);
    if (!m) exit(1);
    protobuf_c_message_init(d, m);
    *(uint32_t *)(m + f->quantifier_offset) = f->id;
    *(void **)(m + f->offset) = full(f->descriptor);
    uint8_t *data = qk_control_pack((ProtobufCMessage *)m, &bytes);
    if (!data) exit(1);
    snprintf(name, sizeof name, "%s-%s", prefix, f->name);
    save("control", name, data, bytes);
    free(data);
  }
}

static void save_client(const char *name, const Quark__ClientMessage *m) {
  size_t bytes;
  uint8_t *data = qk_control_pack(&m->base, &bytes);
  if (!data) exit(1);
  save("control", name, data, bytes);
  free(data);
}

static Quark__Smearing smearing(double param[3]) {
  Quark__Smearing smear = QUARK__SMEARING__INIT;
  smear.alpha = 0.5;
  smear.steps = 7;
  smear.has_links = smear.has_link_steps = 1;
  smear.links = QUARK__LINK_SMEAR__LINK_SMEAR_HYP;
  smear.link_param = param;
  smear.n_link_param = 3;
  smear.link_steps = 2;
  return smear;
}

/* Of what is in m, a SUBMIT of that column: parts of the operator, systems on one parity. */
static void save_works(Quark__ClientMessage *m, Quark__Column *column) {
  const Quark__Submit plain = *m->submit;
  const int32_t flavour = column->flavour;
  Quark__Submit *s = m->submit;
  column->flavour = 1; /* as of actions that are no doublets */
  s->has_work = s->has_dagger = s->has_parity = 1;
  s->work = QUARK__WORK__WORK_DIAG_INVERSE_HOP;
  s->dagger = 1;
  s->parity = QUARK__PARITY__PARITY_ODD;
  save_client("legal-submit-work", m);
  s->work = QUARK__WORK__WORK_SOLVE;
  s->has_schur = 1;
  s->schur = QUARK__SCHUR__SCHUR_SYMMETRIC;
  save_client("legal-submit-schur", m);
  *s = plain;
  column->flavour = flavour;
}

static void save_projected(const Quark__ClientMessage *m) {
  Quark__Column point = QUARK__COLUMN__INIT, *points[] = {&point};
  Quark__Submit *s = m->submit;
  s->source = QUARK__SOURCE_KIND__SOURCE_POINT;
  s->sink = QUARK__SINK__SINK_PROJECT;
  s->source_file = s->sink_file = NULL;
  s->nrhs = 1;
  s->n_column = 1;
  s->column = points;
  s->project = "low";
  s->has_project_count = 1;
  s->project_count = 4;
  s->flavour = 1;
  save_client("legal-submit-projected", m);
}

static void save_submits(Quark__Smearing *smear) {
  Quark__Column column = QUARK__COLUMN__INIT, *columns[2] = {&column, &column};
  column.has_t = column.has_px = column.has_request = column.has_rhs = column.has_gamma = 1;
  column.t = 3;
  column.px = -1;
  column.request = 2;
  column.rhs = 5;
  column.gamma = 15;
  Quark__Submit submit = QUARK__SUBMIT__INIT;
  submit.request = 3;
  submit.nrhs = 2;
  submit.dtype = QUARK__DTYPE__DTYPE_F64;
  submit.tol = 1e-8;
  submit.source = QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL;
  submit.sink = QUARK__SINK__SINK_KEEP;
  submit.column = columns;
  submit.n_column = 2;
  submit.smear = smear;
  submit.has_keep_ms = 1;
  submit.keep_ms = 1000;
  submit.has_flavour = 1;
  submit.flavour = -1;
  submit.has_tol_hq = submit.has_tol_abs = submit.has_single_rhs = 1;
  submit.tol_hq = 1e-5;
  submit.tol_abs = 1e-3;
  submit.single_rhs = 0;
  submit.has_five_d = submit.five_d = 1;
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  m.body_case = QUARK__CLIENT_MESSAGE__BODY_SUBMIT;
  m.submit = &submit;
  save_client("legal-submit", &m);
  Quark__Column doublet = QUARK__COLUMN__INIT;
  doublet.has_t = doublet.has_flavour = 1;
  doublet.t = 3;
  doublet.flavour = -1;
  columns[0] = columns[1] = &doublet;
  submit.source = QUARK__SOURCE_KIND__SOURCE_WALL;
  submit.flavour = 1;
  save_client("legal-submit-doublet", &m);
  save_works(&m, &doublet);
  submit.flavour = -1;
  Quark__File from = QUARK__FILE__INIT, to = QUARK__FILE__INIT;
  from.path = "/data/b.raw";
  to.path = "/data/x.raw";
  from.has_offset = from.has_size = 1;
  from.offset = 64;
  from.size = 1 << 20;
  submit.source = QUARK__SOURCE_KIND__SOURCE_FILE;
  submit.sink = QUARK__SINK__SINK_FILE;
  submit.n_column = 0;
  submit.keep_ms = 0;
  submit.source_file = &from;
  submit.sink_file = &to;
  save_client("legal-submit-files", &m);
  save_projected(&m);
}

static void save_field(void) {
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  Quark__FieldOpen open = QUARK__FIELD_OPEN__INIT;
  uint32_t dims[4] = {4, 4, 6, 8};
  open.request = 5;
  open.kind = QUARK__FIELD_KIND__FIELD_GAUGE;
  open.dims = dims;
  open.n_dims = 4;
  open.dtype = QUARK__DTYPE__DTYPE_F32;
  open.has_reals = open.has_digest = open.has_plaquette = open.has_keep_ms = true;
  open.reals = 12;
  open.digest = 0x0123456789abcdef;
  open.plaquette = 0.5937;
  open.keep_ms = 60000;
  m.body_case = QUARK__CLIENT_MESSAGE__BODY_FIELD_OPEN;
  m.field_open = &open;
  save_client("legal-field", &m);
  uint32_t grid[4] = {2, 1, 3, 4};
  open.n_grid = 4;
  open.grid = grid;
  open.has_part = true;
  open.part = 23;
  save_client("legal-field-in-parts", &m);
  grid[3] = 3;
  save_client("wrong-grid", &m);
  grid[3] = 4;
  open.kind = QUARK__FIELD_KIND__FIELD_VECTORS;
  open.has_reals = open.has_plaquette = false;
  open.has_count = true;
  open.count = 48;
  save_client("legal-vectors", &m);
  open.count = 4097;
  save_client("wrong-count", &m);
  dims[0] = dims[1] = dims[2] = 2; /* more vectors than are counted */
  dims[3] = 1u << 27;
  open.count = 24;
  grid[0] = grid[1] = grid[2] = 1;
  save_client("many-vectors", &m);
}

static void save_join(void) {
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  Quark__Join join = QUARK__JOIN__INIT;
  uint8_t id[16] = "0123456789abcde", token[16] = "fedcba987654321";
  join.request = 7;
  join.owner = (ProtobufCBinaryData){sizeof id, id};
  join.owner_request = 5;
  join.token = (ProtobufCBinaryData){sizeof token, token};
  join.part = 3;
  m.body_case = QUARK__CLIENT_MESSAGE__BODY_JOIN;
  m.join = &join;
  save_client("legal-join", &m);
}

static void save_contract(Quark__Smearing *smear) {
  int32_t momentum[6] = {0, 0, 0, 1, -1, 2}, origin[4] = {1, 2, 3, 4};
  Quark__Channel meson = QUARK__CHANNEL__INIT, delta = QUARK__CHANNEL__INIT;
  Quark__Channel *channel[2] = {&meson, &delta};
  delta.kind = QUARK__CHANNEL_KIND__CHANNEL_DELTA;
  Quark__Contraction contraction = QUARK__CONTRACTION__INIT;
  contraction.request_a = 1;
  contraction.has_request_b = contraction.has_first_b = 1;
  contraction.request_b = 2;
  contraction.first_b = 12;
  contraction.channel = channel;
  contraction.n_channel = 2;
  contraction.momentum = momentum;
  contraction.n_momentum = 6;
  contraction.origin = origin;
  contraction.n_origin = 4;
  contraction.sink = smear;
  Quark__Contract contract = QUARK__CONTRACT__INIT;
  contract.request = 4;
  contract.contraction = &contraction;
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  m.body_case = QUARK__CLIENT_MESSAGE__BODY_CONTRACT;
  m.contract = &contract;
  save_client("legal-contract", &m);
}

static void save_eigen(void) {
  double rho = 0.1;
  Quark__Smearing links = QUARK__SMEARING__INIT;
  Quark__EigenProblem problem = QUARK__EIGEN_PROBLEM__INIT;
  Quark__Eigen eigen = QUARK__EIGEN__INIT;
  Quark__EigenDrop drop = QUARK__EIGEN_DROP__INIT;
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  links.has_links = true;
  links.links = QUARK__LINK_SMEAR__LINK_SMEAR_STOUT;
  links.link_param = &rho;
  links.n_link_param = 1;
  problem.name = drop.name = "low";
  problem.kind = QUARK__EIGEN_KIND__EIGEN_LAPLACIAN;
  problem.count = 100;
  problem.tol = 1e-8;
  problem.has_space = problem.has_order = problem.has_restarts = true;
  problem.space = 256;
  problem.order = 40;
  problem.restarts = 30;
  problem.links = &links;
  eigen.request = 5;
  eigen.setup = drop.setup = "light";
  eigen.problem = &problem;
  m.body_case = QUARK__CLIENT_MESSAGE__BODY_EIGEN;
  m.eigen = &eigen;
  save_client("legal-eigen", &m);
  problem.links = NULL;
  problem.has_space = problem.has_order = problem.has_restarts = false;
  problem.field = "field:18446744073709551615";
  save_client("legal-eigen-of-field", &m);
  problem.field = NULL;
  eigen.has_kept = eigen.kept = true;
  save_client("legal-eigen-kept", &m);
  eigen.has_kept = eigen.kept = false;
  problem.field = "digest:0123456789abcde";
  save_client("wrong-digest", &m);
  m.body_case = QUARK__CLIENT_MESSAGE__BODY_EIGEN_DROP;
  m.eigen_drop = &drop;
  save_client("legal-eigen-drop", &m);
}

static void save_load(void) {
  uint32_t dims[4] = {4, 4, 4, 8};
  Quark__Load load = QUARK__LOAD__INIT;
  load.name = "heavy";
  load.gauge = "cfg.lime";
  load.dims = dims;
  load.n_dims = 4;
  load.has_kappa = load.has_csw = load.has_slots = 1;
  load.kappa = 0.12;
  load.csw = 1.5;
  load.slots = 8;
  load.boundary = "1,1,1,0.5pi";
  load.solver = "mg";
  load.precision = "half";
  load.has_ignore_checksum = load.ignore_checksum = 1;
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  m.body_case = QUARK__CLIENT_MESSAGE__BODY_LOAD;
  m.load = &load;
  save_client("legal-load", &m);
  load.fix_gauge = "coulomb:1e-14";
  save_client("legal-load-fixed", &m);
  load.fix_gauge = NULL;
  load.evolve_from = "light";
  save_client("legal-load-from", &m);
  load.evolve_from = NULL;
  load.has_deflate = true;
  load.deflate = QK_DEFLATE_MAX;
  save_client("legal-load-deflate", &m);
  load.deflate_from = "low";
  save_client("legal-load-deflate-from", &m);
  load.deflate_from = NULL;
  load.has_deflate = false;
  Quark__Setting mass = QUARK__SETTING__INIT, csw = QUARK__SETTING__INIT,
                 *parameter[] = {&mass, &csw};
  mass.key = "mass";
  mass.value = "-0.25";
  csw.key = "csw";
  csw.value = "1.5";
  load.has_kappa = load.has_csw = 0;
  load.action = "wilson-clover";
  load.parameter = parameter;
  load.n_parameter = 2;
  save_client("legal-load-action", &m);
  size_t bytes;
  uint8_t *data = qk_control_pack(&m.base, &bytes), *mass_text;
  if (!data || !(mass_text = memmem(data, bytes, "-0.25", 5))) exit(1);
  mass_text[3] = 0; /* a NUL inside the value */
  save("control", "load-nul", data, bytes);
  free(data);
}

static void save_frame(const char *name, qk_frame_t frame, size_t bytes) {
  static uint8_t message[QK_FRAME_HEADER + 4096];
  qk_frame_fault_t fault;
  for (size_t i = 0; i < bytes; i++) message[QK_FRAME_HEADER + i] = (uint8_t)i;
  if (frame.kind != QK_FRAME_UPLOAD_ZERO) frame.chunk_bytes = (uint32_t)bytes;
  if (frame.kind >= QK_FRAME_UPLOAD && bytes == frame.field_bytes)
    frame.field_checksum = qk_checksum(message + QK_FRAME_HEADER, bytes);
  if (qk_frame_encode(&frame, message + QK_FRAME_HEADER, message, &fault) != QK_OK) exit(1);
  save("frame", name, message, QK_FRAME_HEADER + bytes);
}

/* The first byte of each says how it is read (fuzz_proto_operator.c). */
static void save_operators(void) {
  static const char *const text[] = {
      "0wilson;mass=-0.25",
      "0wilson-clover;mass=-0.28252788104089221;csw=1.769",
      "0wilson-clover;mass=1e-320;csw=-1.7976931348623157e+02",
      "0wilson;mass=0.5;links=hyp:0.75,0.6,0.3,1/stout:0.11,1:xyz",
      "1twisted-clover\nmass=-0.3\nmu=0.01\nlinks=slinc:0.1,1",
      "1wilson\nkappa=0.1345",
      "1wilson-clover\ncsw=1.0e0\nmass=+.5",
      "2kappa=0.125\ncsw=0",
      "2mass=-3.9999999999999996\ncsw=-1000",
      "2mass=0.1\nmass=0.1",
      "1-1,0.5pi,1,-0.25pi",
      "1antiperiodic",
  };
  for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
    char name[16];
    snprintf(name, sizeof name, "text-%zu", i);
    save("operator", name, text[i], strlen(text[i]));
  }
}

int main(int argc, char **argv) {
  if (argc != 2) return 64;
  root = argv[1];
  save_bodies("client", &quark__client_message__descriptor);
  save_bodies("server", &quark__server_message__descriptor);
  save_bodies("front", &quark__engine__front_message__descriptor);
  save_bodies("engine", &quark__engine__engine_message__descriptor);
  double param[3] = {0.75, 0.6, 0.3};
  Quark__Smearing smear = smearing(param);
  save_submits(&smear);
  save_contract(&smear);
  save_field();
  save_join();
  save_eigen();
  save_load();
  save_operators();
  enum { FIELD = 2 * 2 * 2 * 2 * 24 * 4 };
  save_frame("bind", (qk_frame_t){.kind = QK_FRAME_BIND, .field_bytes = 32}, 32);
  save_frame("bound", (qk_frame_t){.kind = QK_FRAME_BOUND}, 0);
  save_frame("whole", (qk_frame_t){.kind = QK_FRAME_UPLOAD, .request = 1, .field_bytes = FIELD},
             FIELD);
  save_frame("first", (qk_frame_t){.kind = QK_FRAME_UPLOAD, .request = 1, .field_bytes = FIELD},
             100);
  save_frame(
      "later",
      (qk_frame_t){
          .kind = QK_FRAME_UPLOAD, .request = 1, .rhs = 2, .field_bytes = FIELD, .offset = 96},
      8);
  save_frame(
      "zeros",
      (qk_frame_t){
          .kind = QK_FRAME_UPLOAD_ZERO, .request = 1, .chunk_bytes = 1000, .field_bytes = FIELD},
      0);
  static const uint8_t none[FIELD];
  save_frame("zeros-whole",
             (qk_frame_t){.kind = QK_FRAME_UPLOAD_ZERO,
                          .request = 1,
                          .chunk_bytes = FIELD,
                          .field_bytes = FIELD,
                          .field_checksum = qk_checksum(none, FIELD)},
             0);
  save_frame(
      "download",
      (qk_frame_t){
          .kind = QK_FRAME_DOWNLOAD, .request = 9, .field_bytes = 1ull << 40, .offset = 1ull << 33},
      64);
  return 0;
}
