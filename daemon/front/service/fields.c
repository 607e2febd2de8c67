#include "daemon/front/service/fields.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/links/clover_term.h"
#include "daemon/base/links/links.h"
#include "daemon/base/links/vectors.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/front/job/bricks.h"
#include "daemon/front/service/queue.h"

static const char FIELD[] = "field:", DIGEST[] = "digest:";

/* ---- which there are ------------------------------------------------------------------------- */

qk_status_t qk_fields_open(qk_service_t *service, qk_err_t *err) {
  qk_link_init(&service->fields);
  return qk_setup_create(service, "fields", service->settings, qk_service_now(service),
                         &service->depot, err);
}

void qk_fields_close(qk_service_t *service) {
  qk_setup_release(service->depot);
  service->depot = NULL;
}

void qk_fields_enter(qk_service_t *service, qk_job_t *job) {
  qk_list_append(&service->fields, &job->field_link);
}

static bool is_of(const qk_job_t *job, const char *user) {
  return strcmp(qk_sched_user_name(job->user), user) == 0;
}

qk_status_t qk_fields_check_user(const qk_service_t *service, const char *user, qk_err_t *err) {
  int n = 0;
  for (const qk_link_t *l = service->fields.next; l != &service->fields; l = l->next)
    n += is_of(QK_HOLDER(l, const qk_job_t, field_link), user);
  if (n < QK_USER_FIELDS_MAX) return QK_OK;
  return qk_fail(err, QK_BUSY, "this user has %d fields, the limit is %d: release one", n,
                 QK_USER_FIELDS_MAX);
}

/* As the log and errors call it; are: of one or of many. */
const char *qk_fields_name(Quark__FieldKind kind, const char **are) {
  const bool clover = kind == QUARK__FIELD_KIND__FIELD_CLOVER;
  if (are) *are = clover ? "is" : "are";
  return clover ? "a clover term" : kind == QUARK__FIELD_KIND__FIELD_VECTORS ? "vectors" : "links";
}

qk_job_t *qk_fields_find(const qk_service_t *service, const char *user, Quark__FieldKind kind,
                         uint64_t digest) {
  for (const qk_link_t *l = service->fields.prev; l != &service->fields; l = l->prev) {
    qk_job_t *job = QK_HOLDER(l, qk_job_t, field_link);
    if (job->field->kind == kind && job->rhs[0].kept && job->rhs[0].digest == digest &&
        is_of(job, user))
      return job;
  }
  return NULL;
}

static qk_setup_t *public_setup(const qk_service_t *service, uint64_t digest) {
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_setup_t *setup = service->setup[m];
    if (!setup || setup->owner[0] || !qk_setup_serves(setup)) continue;
    if (setup->shape.dims[0] > 0 && setup->digest == digest) return setup;
  }
  return NULL;
}

static bool are_equal(const uint32_t *dims, const qk_shape_t *shape) {
  return !dims || memcmp(dims, shape->dims, sizeof shape->dims) == 0;
}

bool qk_fields_are_here(const qk_service_t *service, const char *user,
                        const Quark__FieldOpen *open) {
  const bool links = open->kind == QUARK__FIELD_KIND__FIELD_GAUGE;
  qk_job_t *job = qk_fields_find(service, user, open->kind, open->digest);
  const qk_setup_t *setup = links ? public_setup(service, open->digest) : NULL;
  if (job) job->used_at = qk_service_now(service);
  return (job && are_equal(open->dims, &job->shape) && job->field->count == open->count) ||
         (setup && are_equal(open->dims, &setup->shape));
}

/* ---- the check ------------------------------------------------------------------------------- */

/* A piece takes some milliseconds: between two of them others get the thread. Reals. */
enum { PARTS = 2, PIECE = 4096 * QK_LINKS_SITE };

typedef struct part {
  uv_work_t work;
  qk_field_check_t *check;
  uint64_t next, until; /* sites; of vectors those of all of them, as many as are whole vectors */
  qk_links_sum_t sum;   /* of links; those below of a clover term, and of vectors */
  qk_clover_term_sum_t term;
  qk_vectors_sum_t vectors;
} part_t;

struct qk_field_check {
  qk_rhs_t *rhs; /* NULL: abandoned */
  void *data;    /* a mapping of its own: the field may go meanwhile */
  size_t bytes;
  Quark__FieldKind kind;
  int bits, reals;        /* of a site */
  uint64_t volume, slice; /* sites of the lattice, of vectors of all of them; and of a time slice */
  int left;
  part_t part[PARTS];
};

static void add_site(const qk_field_check_t *c, part_t *p, const uint8_t *raw, uint64_t n) {
  double site[QK_LINKS_SITE];
  switch (c->kind) {
  case QUARK__FIELD_KIND__FIELD_CLOVER:
    qk_clover_term_widen(raw, c->bits, site);
    qk_clover_term_add(site, n, &p->term);
    return;
  case QUARK__FIELD_KIND__FIELD_VECTORS:
    qk_vectors_widen(raw, c->bits, site);
    qk_vectors_add(site, n, &p->vectors);
    if ((n + 1) % c->slice == 0) qk_vectors_end(n / c->slice, &p->vectors);
    return;
  default:
    qk_links_widen(raw, c->bits, c->reals / 4, site);
    qk_links_add(site, n, n >= c->volume - c->slice, &p->sum);
  }
}

static void run(uv_work_t *work) {
  part_t *p = work->data;
  const qk_field_check_t *c = p->check;
  const size_t site_bytes = (size_t)c->reals * (size_t)c->bits / 8;
  const uint64_t piece = PIECE / (uint64_t)c->reals;
  const uint64_t end = p->until - p->next < piece ? p->until : p->next + piece;
  for (uint64_t n = p->next; n < end; n++)
    add_site(c, p, (const uint8_t *)c->data + n * site_bytes, n);
  p->next = end;
}

static void find_site(const qk_job_t *job, uint64_t at, uint32_t x[4]) {
  const uint32_t *dims = job->shape.dims;
  for (int mu = 0; mu < 4; mu++, at /= dims[mu - 1]) x[mu] = (uint32_t)(at % dims[mu]);
}

/* " (part 3)", where it goes in parts. */
static const char *name_part(const qk_job_t *job, const uint32_t x[4], char text[32]) {
  uint32_t part = 0;
  text[0] = '\0';
  if (!job->bricks) return text;
  for (int mu = 3; mu >= 0; mu--) {
    const uint32_t parts = job->bricks->grid[mu];
    part = part * parts + x[mu] / (job->shape.dims[mu] / parts);
  }
  snprintf(text, 32, " (part %u)", part);
  return text;
}

static qk_status_t judge_digest(const qk_job_t *job, uint64_t digest, char *text, size_t size) {
  static const char *const said[] = {
      [QUARK__FIELD_KIND__FIELD_GAUGE] = "the links have",
      [QUARK__FIELD_KIND__FIELD_CLOVER] = "the clover term has",
      [QUARK__FIELD_KIND__FIELD_VECTORS] = "the vectors have",
  };
  if (!job->field->has_digest || job->field->digest == digest) return QK_OK;
  snprintf(text, size, "%s the digest %016" PRIx64 ", FIELD_OPEN says %016" PRIx64,
           said[job->field->kind], digest, job->field->digest);
  return QK_BAD_CHECKSUM;
}

static qk_status_t judge_term(const qk_job_t *job, const qk_clover_term_sum_t *sum, char *text,
                              size_t size) {
  uint32_t x[4];
  char part[32];
  if (sum->bad == 0) return judge_digest(job, sum->digest, text, size);
  find_site(job, sum->site, x);
  snprintf(
      text, size,
      "the clover term at x y z t = %u %u %u %u%s is not finite: number %d of 72; %llu numbers "
      "are NaN or Inf",
      x[0], x[1], x[2], x[3], name_part(job, x, part), sum->number, (unsigned long long)sum->bad);
  return QK_BAD_ARGUMENT;
}

static qk_status_t judge_vectors(const qk_job_t *job, const qk_vectors_sum_t *sum, char *text,
                                 size_t size) {
  const uint64_t volume = qk_shape_sites(&job->shape), slice = volume / job->shape.dims[3];
  const uint32_t count = job->field->count;
  uint64_t vector = sum->worst;
  if (sum->bad > 0) {
    uint32_t x[4];
    char part[32];
    vector = sum->site / slice;
    find_site(job, vector / count * slice + sum->site % slice, x);
    snprintf(text, size,
             "vector %u of time slice %u at x y z = %u %u %u%s is not finite: number %d of 6; "
             "%llu are NaN or Inf",
             (unsigned)(vector % count), x[3], x[0], x[1], x[2], name_part(job, x, part),
             sum->number, (unsigned long long)sum->bad);
    return QK_BAD_ARGUMENT;
  }
  if (!(sum->deviation <= QK_VECTORS_NORM_LIMIT)) {
    snprintf(text, size,
             "vector %u of time slice %u is not normalised: its norm squared is off by %.3g, the "
             "limit is %g",
             (unsigned)(vector % count), (unsigned)(vector / count), sum->deviation,
             QK_VECTORS_NORM_LIMIT);
    return QK_BAD_ARGUMENT;
  }
  return judge_digest(job, sum->digest, text, size);
}

/* The first thing that is wrong; QK_OK: nothing. text: of an outcome. */
static qk_status_t judge_links(const qk_job_t *job, const qk_links_sum_t *sum, char *text,
                               size_t size) {
  const int bits = job->dtype == QUARK__DTYPE__DTYPE_F32 ? 32 : 64;
  const double limit = qk_links_limit(bits);
  uint32_t x[4];
  char part[32];
  find_site(job, sum->site, x);
  if (!(sum->worst <= limit)) {
    snprintf(
        text, size,
        "link U_%c at x y z t = %u %u %u %u%s is not SU(3): off by %.3g, the limit for %d bits "
        "is %g",
        "xyzt"[sum->mu], x[0], x[1], x[2], x[3], name_part(job, x, part), sum -> worst, bits,
        limit);
    return QK_NOT_UNITARY;
  }
  if (qk_links_are_torn(sum)) {
    snprintf(text, size,
             "%.0f of the links from the last time slice to the first are zero, and %.0f are not",
             sum->zeros, sum->closing);
    return QK_NOT_UNITARY;
  }
  return judge_digest(job, sum->digest, text, size);
}

/* The outcome of the sums over all sites, and the digest. */
static uint64_t judge(const qk_job_t *job, const part_t *all, qk_outcome_t *o) {
  switch (job->field->kind) {
  case QUARK__FIELD_KIND__FIELD_CLOVER:
    o->status = judge_term(job, &all->term, o->text, sizeof o->text);
    return all->term.digest;
  case QUARK__FIELD_KIND__FIELD_VECTORS:
    o->status = judge_vectors(job, &all->vectors, o->text, sizeof o->text);
    o->true_residual = all->vectors.deviation;
    return all->vectors.digest;
  default:
    o->status = judge_links(job, &all->sum, o->text, sizeof o->text);
    o->true_residual = all->sum.unitarity;
    return all->sum.digest;
  }
}

/* all: the sums over all sites. */
static void finish(qk_rhs_t *rhs, const part_t *all) {
  qk_job_t *job = rhs->job;
  qk_service_t *service = job->setup->service;
  const char *are, *name = qk_fields_name(job->field->kind, &are);
  qk_outcome_t outcome = {.status = QK_OK};
  const uint64_t digest = judge(job, all, &outcome);
  outcome.written = outcome.status == QK_OK;
  if (outcome.written) {
    rhs->digest = digest;
    rhs->digested = true;
    qk_rhs_keep_field(rhs);
  }
  qk_log(QK_LOG_INFO, "fields", job->name, "%s %s %s%s, digest %016" PRIx64, name, are,
         outcome.written ? "here" : "refused: ", outcome.text, digest);
  qk_rhs_end(rhs, &outcome, qk_service_now(service));
  qk_queue_ended(service, rhs);
}

static void after(uv_work_t *work, int cancelled) {
  const part_t *p = work->data;
  qk_field_check_t *c = p->check;
  (void)cancelled;
  if (c->rhs && p->next < p->until) {
    uv_queue_work(work->loop, work, run, after);
    return;
  }
  if (--c->left > 0) return;
  munmap(c->data, c->bytes);
  for (int i = 1; i < PARTS; i++) {
    qk_links_join(&c->part[0].sum, &c->part[i].sum);
    qk_clover_term_join(&c->part[0].term, &c->part[i].term);
    qk_vectors_join(&c->part[0].vectors, &c->part[i].vectors);
  }
  if (c->rhs) {
    c->rhs->job->checking = NULL;
    finish(c->rhs, &c->part[0]);
  }
  qk_free(c);
}

static bool map(qk_field_check_t *c, const qk_shm_t *field) {
  const int fd = qk_shm_open(field, O_RDONLY);
  c->bytes = field->bytes;
  c->data = fd < 0 ? MAP_FAILED : mmap(NULL, c->bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (fd >= 0) close(fd);
  return c->data != MAP_FAILED;
}

void qk_fields_check(qk_service_t *service, qk_rhs_t *rhs) {
  qk_job_t *job = rhs->job;
  if (rhs->state != QK_RHS_QUEUED || job->checking) return;
  uint64_t unit = 1; /* that is not divided */
  qk_field_check_t *c = qk_calloc(1, sizeof *c);
  if (!c || !map(c, rhs->source)) {
    qk_free(c);
    qk_queue_end(service, rhs, QK_NO_MEMORY, "no memory to check the field");
    return;
  }
  c->rhs = rhs;
  c->bits = job->dtype == QUARK__DTYPE__DTYPE_F32 ? 32 : 64;
  c->kind = job->field->kind;
  c->volume = qk_shape_sites(&job->shape);
  c->slice = c->volume / job->shape.dims[3];
  c->reals = (int)qk_job_field_site_reals(job->field);
  if (c->kind == QUARK__FIELD_KIND__FIELD_VECTORS) {
    c->volume *= job->field->count;
    c->reals = QK_VECTORS_SITE;
    unit = c->slice;
  }
  c->left = PARTS;
  job->checking = c;
  for (int i = 0; i < PARTS; i++) {
    part_t *p = &c->part[i];
    *p = (part_t){.check = c,
                  .next = c->volume / unit * (uint64_t)i / PARTS * unit,
                  .until = c->volume / unit * (uint64_t)(i + 1) / PARTS * unit};
    p->work.data = p;
    uv_queue_work(&service->loop->uv, &p->work, run, after);
  }
}

void qk_fields_abandon(qk_job_t *job) {
  if (job->checking) job->checking->rhs = NULL;
  job->checking = NULL;
}

/* ---- what setups are made of ----------------------------------------------------------------- */

bool qk_fields_is_reference(const char *gauge) {
  return gauge &&
         (strncmp(gauge, FIELD, strlen(FIELD)) == 0 || strncmp(gauge, DIGEST, strlen(DIGEST)) == 0);
}

/* Of "digest:" and 16 hexadecimal digits. */
static bool read_digest(const char *gauge, uint64_t *digest) {
  const char *text = gauge + strlen(DIGEST);
  if (strlen(text) != 16 || text[strspn(text, "0123456789abcdef")]) return false;
  *digest = strtoull(text, NULL, 16);
  return true;
}

/* Of "field:REQUEST", the value of a key. */
static qk_status_t digest_of_request(const qk_session_t *session, const char *key,
                                     Quark__FieldKind kind, const char *value, uint64_t *digest,
                                     qk_err_t *err) {
  const char *text = value + strlen(FIELD);
  const size_t n = strlen(text);
  if (n < 1 || n > 20 || text[strspn(text, "0123456789")])
    return qk_fail(err, QK_BAD_ARGUMENT, "%s = field:REQUEST: REQUEST must be a number", key);
  const qk_job_t *job = session ? qk_session_job(session, strtoull(text, NULL, 10)) : NULL;
  if (!job || !job->field)
    return qk_fail(err, QK_NOT_FOUND,
                   "%s = %.30s: this client has no field of this number: released, expired or "
                   "never accepted",
                   key, value);
  if (job->field->kind != kind)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s = %.30s: the field is of %s, not of %s", key, value,
                   qk_fields_name(job->field->kind, NULL), qk_fields_name(kind, NULL));
  const qk_rhs_t *rhs = &job->rhs[0];
  if (rhs->state < QK_RHS_ENDED)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "%s = %.30s: the field is not complete yet: wait for its RESULT", key, value);
  if (rhs->outcome.status != QK_OK)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s = %.30s: the field was refused: %.160s", key, value,
                   rhs->outcome.text);
  *digest = rhs->digested ? rhs->digest : job->field->digest;
  return QK_OK;
}

/* Of "field:REQUEST" or "digest:HEX16". */
static qk_status_t find_digest(const qk_session_t *session, const char *key, Quark__FieldKind kind,
                               const char *value, uint64_t *digest, qk_err_t *err) {
  if (strncmp(value, FIELD, strlen(FIELD)) == 0)
    return digest_of_request(session, key, kind, value, digest, err);
  if (read_digest(value, digest)) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "%s = digest:HEX16: 16 hexadecimal digits in lower case are needed", key);
}

qk_status_t qk_fields_resolve(const qk_service_t *service, const qk_session_t *session,
                              const char *user, const char *gauge, qk_links_t *links,
                              qk_err_t *err) {
  uint64_t digest = 0;
  *links = (qk_links_t){NULL};
  const qk_status_t status =
      find_digest(session, "gauge", QUARK__FIELD_KIND__FIELD_GAUGE, gauge, &digest, err);
  if (status != QK_OK) return status;
  const qk_setup_t *setup = public_setup(service, digest);
  links->digest = digest;
  links->field =
      user ? qk_fields_find(service, user, QUARK__FIELD_KIND__FIELD_GAUGE, digest) : NULL;
  if (links->field) {
    snprintf(links->text, sizeof links->text, "%s%016" PRIx64, DIGEST, digest);
    links->gauge = links->text;
  } else if (setup) {
    links->like = setup;
    links->gauge = setup->settings.gauge;
  } else {
    return qk_fail(err, QK_NOT_FOUND,
                   "gauge: no links with the digest %016" PRIx64 " are here: send them", digest);
  }
  return QK_OK;
}

qk_status_t qk_fields_name_digest(const qk_session_t *session, const char *key,
                                  Quark__FieldKind kind, const char *value,
                                  char text[QK_FIELD_TEXT], qk_err_t *err) {
  uint64_t digest = 0;
  const qk_status_t status = find_digest(session, key, kind, value, &digest, err);
  if (status == QK_OK) snprintf(text, QK_FIELD_TEXT, "%s%016" PRIx64, DIGEST, digest);
  return status;
}

qk_job_t *qk_fields_named(const qk_service_t *service, const char *user, Quark__FieldKind kind,
                          const char *text) {
  uint64_t digest;
  return read_digest(text, &digest) ? qk_fields_find(service, user, kind, digest) : NULL;
}

/* The links may be those of a public setup. */
static qk_status_t check_lattice(const qk_links_t *links, qk_err_t *err) {
  const uint32_t *t = links->term->shape.dims,
                 *d = links->field ? links->field->shape.dims : links->like->shape.dims;
  if (are_equal(d, &links->term->shape)) return QK_OK;
  return qk_fail(err, QK_BAD_GEOMETRY,
                 "clover: the term is of %ux%ux%ux%u, and the links are of %ux%ux%ux%u", t[0], t[1],
                 t[2], t[3], d[0], d[1], d[2], d[3]);
}

static qk_status_t find_term(const qk_service_t *service, const qk_session_t *session,
                             const char *user, const char *value, qk_links_t *links,
                             qk_err_t *err) {
  uint64_t digest = 0;
  if (!links->field && !links->like)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "clover = %.30s: a setup of a clover term of one's own needs gauge = "
                   "field:REQUEST or digest:HEX16, those of a public setup's links too",
                   value);
  const qk_status_t status =
      find_digest(session, "clover", QUARK__FIELD_KIND__FIELD_CLOVER, value, &digest, err);
  if (status != QK_OK) return status;
  links->term = qk_fields_find(service, user, QUARK__FIELD_KIND__FIELD_CLOVER, digest);
  if (!links->term)
    return qk_fail(err, QK_NOT_FOUND,
                   "clover: no clover term with the digest %016" PRIx64 " is here: send it",
                   digest);
  snprintf(links->term_text, sizeof links->term_text, "%s%016" PRIx64, DIGEST, digest);
  return check_lattice(links, err);
}

qk_status_t qk_fields_resolve_term(const qk_service_t *service, const qk_session_t *session,
                                   const char *user, Quark__Load *whole, qk_links_t *links,
                                   qk_err_t *err) {
  if (whole->n_parameter > QK_VALUES_PARAMS) return QK_OK; /* refused where they are read */
  for (size_t i = 0; i < whole->n_parameter; i++) {
    links->parameter[i] = whole->parameter[i];
    if (strcmp(whole->parameter[i]->key, "clover") != 0 || links->term) continue;
    const qk_status_t status =
        find_term(service, session, user, whole->parameter[i]->value, links, err);
    if (status != QK_OK) return status;
    links->setting = *whole->parameter[i];
    links->setting.value = links->term_text;
    links->parameter[i] = &links->setting;
  }
  whole->parameter = links->parameter;
  return QK_OK;
}

/* As the engine reads it (gauge_memory.c). */
static void name_memory(qk_setup_t *setup, const qk_job_t *field) {
  const uint32_t *d = field->shape.dims;
  int n = snprintf(setup->memory, sizeof setup->memory, "memory:%s:%s:%u:%ux%ux%ux%u",
                   field->rhs[0].solution->name,
                   field->dtype == QUARK__DTYPE__DTYPE_F32 ? "f32" : "f64", field->field->reals,
                   d[0], d[1], d[2], d[3]);
  if (field->field->has_plaquette && n > 0 && (size_t)n < sizeof setup->memory)
    snprintf(setup->memory + n, sizeof setup->memory - (size_t)n, ":%.17g",
             field->field->plaquette);
}

static void bind_links(qk_setup_t *setup, qk_job_t *field) {
  qk_job_hold(field);
  setup->links = field;
  name_memory(setup, field);
}

/* As the engine reads it (clover_memory.c). */
static void bind_term(qk_setup_t *setup, qk_job_t *field) {
  const uint32_t *d = field->shape.dims;
  qk_job_hold(field);
  setup->term = field;
  snprintf(setup->term_memory, sizeof setup->term_memory, "memory:%s:%s:%ux%ux%ux%u",
           field->rhs[0].solution->name, field->dtype == QUARK__DTYPE__DTYPE_F32 ? "f32" : "f64",
           d[0], d[1], d[2], d[3]);
}

void qk_fields_bind(qk_setup_t *setup, const qk_links_t *links) {
  if (links->field) bind_links(setup, links->field);
  if (links->term) bind_term(setup, links->term);
}

void qk_fields_release(qk_job_t *field) {
  field->keep = 0;
  if (field->rhs[0].state == QK_RHS_ENDED) qk_rhs_ack(&field->rhs[0]);
}

void qk_fields_let_go(qk_setup_t *setup) {
  qk_job_t *const field[] = {setup->links, setup->term};
  setup->links = setup->term = NULL;
  for (size_t i = 0; i < sizeof field / sizeof *field; i++)
    if (field[i]) qk_job_let_go(field[i], qk_service_now(setup->service));
}

/* What `value` names; NULL: it is not here. */
static qk_job_t *find_again(const qk_setup_t *setup, Quark__FieldKind kind, const char *value) {
  return qk_fields_named(setup->service, setup->owner, kind, value);
}

bool qk_fields_bind_again(qk_setup_t *setup) {
  const char *gauge = setup->settings.gauge, *term = qk_value_word(&setup->settings.op, "clover");
  if (!setup->links && strncmp(gauge, DIGEST, strlen(DIGEST)) == 0) {
    qk_job_t *field = find_again(setup, QUARK__FIELD_KIND__FIELD_GAUGE, gauge);
    if (!field) return false;
    bind_links(setup, field);
  }
  if (setup->term || !term || !setup->owner[0]) return true;
  qk_job_t *field = find_again(setup, QUARK__FIELD_KIND__FIELD_CLOVER, term);
  if (field) bind_term(setup, field);
  return field != NULL;
}
