/* engine.c: a quarkd of our own with an engine, and what it computes (checks.h). */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/solving.h"
#include "client/selftest/checks.h"
#include "client/selftest/reference.h"
#include "client/workflow/owndaemon.h"

enum { COLUMNS = 8, SOURCES = 2, RHS = SOURCES * COLUMNS, FIELD = CTL_REFERENCE_FIELD };
enum { READY_SECONDS = 25, OPTIONS = 9, LINE = 512, REASON = 400 };
static const double MASS = 0.1, CSW = 1.2, TOLERANCE = 1e-10;
/* Between the residual that was asked for and what rounding and M^-1 make of it. */
static const double MOST_RESIDUAL = 1e-9, MOST_ASYMMETRY = 1e-7, MOST_PLAQUETTE = 1e-12;

static const int32_t site[SOURCES][4] = {{1, 2, 3, 0}, {6, 5, 0, 7}};

/* 3 spin + colour of a column: all spins and colours are among them. */
static int component(int column) {
  return column % COLUMNS * 5 % CTL_REFERENCE_SITE;
}

typedef struct engine {
  const ctl_selftest_options_t *test;
  ctl_checks_t *checks;
  ctl_reference_t *reference;
  double complex *x; /* RHS solutions */
  ctl_daemon_t daemon;
  quark_connection_t *conn;
  quark_report_t report;
} engine_t;

/* The first error in the log, or its last line, without the time. */
static void reason(const engine_t *e, char out[REASON]) {
  static const char mark[] = " error ";
  char path[QK_PATH_MAX], line[LINE];
  snprintf(path, sizeof path, "%s/quarkd.log", e->test->folder);
  FILE *f = fopen(path, "re");
  strcpy(out, "it left no log");
  while (f && fgets(line, sizeof line, f)) {
    const char *found = strstr(line, mark);
    line[strcspn(line, "\n")] = '\0';
    snprintf(out, REASON, "%.*s", REASON - 1, found ? found + sizeof mark - 1 : line);
    if (found) break;
  }
  if (f) fclose(f);
}

static int gpus(void) {
  int n = 0;
  DIR *dir = opendir("/dev");
  for (struct dirent *d; dir && (d = readdir(dir));)
    n += strncmp(d->d_name, "nvidia", 6) == 0 && d->d_name[6] >= '0' && d->d_name[6] <= '9';
  if (dir) closedir(dir);
  return n;
}

/* ---- the daemon ---- */

static void stop(engine_t *e) {
  quark_close(e->conn);
  e->conn = NULL;
  ctl_daemon_stop(&e->daemon);
}

/* Starts quarkd and waits until its engine is ready. */
static bool start(engine_t *e, const char *more) {
  char gauge[QK_PATH_MAX + 16], engine[QK_PATH_MAX + 16], mass[32], csw[32], log[QK_PATH_MAX];
  char *option[OPTIONS] = {gauge, mass, csw};
  int n = 3;
  ctl_common_t common;
  snprintf(log, sizeof log, "%s/quarkd.log", e->test->folder);
  unlink(log);
  snprintf(gauge, sizeof gauge, "--gauge=%s/links.lime", e->test->folder);
  snprintf(mass, sizeof mass, "--mass=%.17g", MASS);
  snprintf(csw, sizeof csw, "--csw=%.17g", CSW);
  if (e->test->engine) {
    snprintf(engine, sizeof engine, "--engine=%s", e->test->engine);
    option[n++] = engine;
  }
  char copy[LINE], *save = NULL;
  snprintf(copy, sizeof copy, "%s", more);
  for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) option[n++] = w;
  if (ctl_daemon_start(e->test->quarkd, n, option, e->test->folder, &e->daemon) != 0) return false;
  ctl_common_init(&common);
  common.endpoint = e->daemon.endpoint;
  common.server_key = common.key = NULL;
  common.setup = NULL;
  common.timeout = READY_SECONDS;
  return ctl_connect(&common, NULL, false, &e->conn) == 0 &&
         ctl_report(&common, e->conn, false, &e->report) == 0;
}

/* ---- solutions ---- */

static bool solve(engine_t *e, quark_error_t *err) {
  quark_params_t p;
  quark_column_t column[RHS];
  uint64_t request, bytes;
  quark_params_init(&p);
  memset(column, 0, sizeof column);
  for (int i = 0; i < RHS; i++) {
    const int32_t *at = site[i / COLUMNS];
    column[i] = (quark_column_t){.x = at[0], .y = at[1], .z = at[2], .t = at[3]};
    column[i].spin = component(i) / 3;
    column[i].colour = component(i) % 3;
  }
  p.nrhs = RHS;
  p.source = QUARK_POINT;
  p.column = column;
  p.tol = TOLERANCE;
  if (quark_submit(e->conn, &p, &request, &bytes, err) != QUARK_OK) return false;
  for (uint32_t i = 0; i < RHS; i++) {
    quark_result_t result;
    if (quark_wait(e->conn, request, i, 1000 * READY_SECONDS, &result, err) != QUARK_OK)
      return false;
    if (result.status != QUARK_OK) {
      err->code = result.status;
      ctl_result_text(&result, err->text);
      return false;
    }
    if (quark_download(e->conn, request, i, e->x + (size_t)i * FIELD, FIELD * sizeof *e->x, err) !=
        QUARK_OK)
      return false;
  }
  return quark_release(e->conn, request, err) == QUARK_OK;
}

static int index_of(int source, int column) {
  const int32_t *x = site[source];
  const int l = CTL_REFERENCE_EXTENT;
  return (x[0] + l * (x[1] + l * (x[2] + l * x[3]))) * CTL_REFERENCE_SITE + component(column);
}

/* The largest |b - M x| of all, by the reference. */
static double worst_residual(const engine_t *e) {
  double complex *mx = malloc(FIELD * sizeof *mx);
  double worst = 0;
  for (int i = 0; mx && i < RHS; i++) {
    double norm = 0;
    ctl_reference_apply(e->reference, MASS, CSW, e->x + (size_t)i * FIELD, mx);
    mx[index_of(i / COLUMNS, i)] -= 1;
    for (int k = 0; k < FIELD; k++) norm += creal(mx[k] * conj(mx[k]));
    worst = fmax(worst, isnan(norm) ? INFINITY : sqrt(norm));
  }
  free(mx);
  return mx ? worst : INFINITY;
}

/* S(y, x) = gamma_5 S(x, y)^+ gamma_5: the largest difference over the largest number. */
static double asymmetry(const engine_t *e) {
  double off = 0, most = 0;
  for (int i = 0; i < COLUMNS; i++)
    for (int k = 0; k < COLUMNS; k++) {
      const double complex yx = e->x[(size_t)i * FIELD + (size_t)index_of(1, k)];
      const double complex xy = e->x[(size_t)(COLUMNS + k) * FIELD + (size_t)index_of(0, i)];
      const int sign = (component(i) < 6) == (component(k) < 6) ? 1 : -1;
      off = fmax(off, cabs(yx - sign * conj(xy)));
      most = fmax(most, cabs(yx));
    }
  return off / most;
}

static void judge(engine_t *e, const char *layer) {
  static const char advice[] = "do not compute on this machine: reset the device or reboot, run "
                               "its diagnostics (dcgmi diag -r 3), or use another --backend";
  quark_error_t err;
  const double begun = ctl_seconds();
  if (!solve(e, &err)) {
    const bool late = err.code == QUARK_TIMEOUT;
    ctl_checks_add(e->checks, layer, late ? CTL_WARNING : CTL_FAILED, NULL,
                   late ? "try again when the machine is less busy" : advice,
                   "%d right-hand sides: %.300s", RHS, err.text);
    return;
  }
  const double seconds = ctl_seconds() - begun, residual = worst_residual(e), off = asymmetry(e);
  const double plaquette = fabs(e->report.setup.plaquette - ctl_reference_plaquette(e->reference));
  const bool good =
      residual <= MOST_RESIDUAL && off <= MOST_ASYMMETRY && plaquette <= MOST_PLAQUETTE;
  ctl_checks_add(e->checks, layer, good ? CTL_OK : CTL_FAILED,
                 json_pack("{s:o, s:o, s:o, s:f}", "residual", ctl_number(residual),
                           "gamma5_asymmetry", ctl_number(off), "plaquette_difference",
                           ctl_number(plaquette), "seconds", seconds),
                 good ? NULL : advice,
                 "%d right-hand sides by %s in %.2f s; by the reference: residual %.1e (at most "
                 "%.0e), gamma5-hermiticity to %.0e (%.0e), plaquette to %.0e (%.0e)",
                 RHS, e->report.setup.solver, seconds, residual, MOST_RESIDUAL, off, MOST_ASYMMETRY,
                 plaquette, MOST_PLAQUETTE);
}

/* ---- the layers ---- */

static void check_programs(const engine_t *e) {
  const bool same = strcmp(e->report.version, quark_version()) == 0;
  ctl_checks_add(e->checks, "programs", same ? CTL_OK : CTL_WARNING, NULL,
                 same ? NULL : "install quarkctl, quarkd and quark-engine of one version",
                 same ? "quarkctl, quarkd and quark-engine are of version %s%s%s"
                      : "quarkd is of version %s, %s%s",
                 e->report.version, same ? "" : "quarkctl of ", same ? "" : quark_version());
}

static void check_device(const engine_t *e) {
  const quark_report_t *r = &e->report;
  const double left = (double)r->engine.memory.free;
  const bool unused = strcmp(r->engine.backend, "cpu") == 0 && gpus() > 0;
  const bool full = !unused && left < (double)(1 << 30);
  ctl_checks_add(e->checks, "device", unused || full ? CTL_WARNING : CTL_OK,
                 json_pack("{s:s, s:s, s:f}", "backend", r->engine.backend, "device",
                           r->engine.device, "free", left),
                 unused
                     ? "the engine has no kernels for it, or no driver: quarkd's log says which; "
                       "build with -Dcuda=enabled and -Dgpu_archs"
                 : full ? "see what else uses its memory (nvidia-smi)"
                        : NULL,
                 "%s, %s: %.1f GB free%s", r->engine.backend, r->engine.device, left / 1e9,
                 unused ? "; there is a GPU that the engine does not use" : "");
}

static void no_engine(engine_t *e) {
  const char *advice = "see quarkd's log; quarkctl selftest --help names programs of other places";
  char why[REASON];
  reason(e, why);
  if (strstr(why, "engine = ") || strstr(why, "use --engine"))
    advice = "install quark-engine beside quarkd, or name it with --engine";
  else if (strcmp(why, "it left no log") == 0)
    advice = "install quarkd beside quarkctl, or name it with --quarkd";
  ctl_checks_add(e->checks, "device", CTL_FAILED, NULL, advice,
                 "quarkd or its engine does not start: %s", why);
}

static void check_one(engine_t *e) {
  if (start(e, "")) {
    check_programs(e);
    check_device(e);
    judge(e, "kernels");
  } else
    no_engine(e);
  stop(e);
}

/* On the GPUs if there are two of them. */
static void check_ranks(engine_t *e) {
  char why[REASON];
  if (ctl_interrupted()) return;
  if (start(e, gpus() >= 2 ? "--ranks=2" : "--ranks=2 --backend=cpu")) {
    judge(e, "ranks");
    stop(e);
    return;
  }
  reason(e, why);
  stop(e);
  if (strstr(why, "no MPI")) {
    ctl_checks_add(e->checks, "ranks", CTL_OK, NULL, NULL, "this build has no MPI: one rank");
    return;
  }
  const bool root = geteuid() == 0 && !getenv("OMPI_ALLOW_RUN_AS_ROOT");
  ctl_checks_add(e->checks, "ranks", CTL_WARNING, NULL,
                 root ? "needed for --ranks only: run this as the user of quarkd; as root Open MPI "
                        "wants OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
                      : "needed for --ranks only: see whether mpirun starts two processes here "
                        "(quarkd --mpirun has its command)",
                 "an engine of two ranks does not start: %s", why);
}

void ctl_check_engine(const ctl_selftest_options_t *test, ctl_checks_t *checks) {
  char path[QK_PATH_MAX];
  if (checks->no_loopback) {
    ctl_checks_add(checks, "device", CTL_WARNING, NULL, "put the network right, then try again",
                   "not looked at: quarkd is asked over the loopback interface");
    return;
  }
  qk_err_t err = {0};
  engine_t e = {.test = test, .checks = checks, .reference = ctl_reference_create(1)};
  e.x = malloc((size_t)RHS * FIELD * sizeof *e.x);
  snprintf(path, sizeof path, "%s/links.lime", test->folder);
  if (!e.reference || !e.x)
    qk_fail(&err, QK_NO_MEMORY, "no memory for %d fields", RHS);
  else
    ctl_reference_write(e.reference, path, &err);
  if (err.code) {
    ctl_checks_add(checks, "device", CTL_FAILED, NULL, "free memory or disk space, then try again",
                   "%s", err.text);
  } else {
    const ctl_verdict_t before = checks->worst;
    checks->worst = CTL_OK;
    check_one(&e);
    if (checks->worst != CTL_FAILED && !test->no_ranks) check_ranks(&e);
    checks->log_tells = checks->worst == CTL_FAILED;
    if (before > checks->worst) checks->worst = before;
  }
  free(e.x);
  ctl_reference_destroy(e.reference);
}
