#include "daemon/front/settings/settings.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/front/host/http.h"
#include "daemon/front/settings/names.h"
#include "proto/action/operator_text.h"
#include "proto/choices.h"
#include "proto/eigen_check.h"

#define AT(member) offsetof(qk_settings_t, member)

enum { EXIT_USAGE = 64, EXIT_CONFIG = 78, WALLTIME_MAX = 365 * 86400 };

static const qk_config_row_t ROWS[] = {
    {"", QK_CONFIG_GROUP, 0, NULL, 0, 0, NULL, "Lattice and operator"},
    {"gauge", QK_CONFIG_STRING, AT(gauge), NULL, 0, 0, "FILE",
     "gauge configuration, or builtin:weak:XxYxZxT:seed"},
    {"dims", QK_CONFIG_STRING, AT(dims_text), NULL, 0, 0, "XxYxZxT",
     "lattice extents, for files that do not state them"},
    {"ignore-checksum", QK_CONFIG_BOOL, AT(ignore_checksum), "no", 0, 0, "no|yes",
     "yes: accept a gauge file although its links do not match its checksum; plaquette and "
     "unitarity are verified all the same"},
    {"action", QK_CONFIG_STRING, AT(action), NULL, 1, QK_PARAM_NAME_MAX, "NAME",
     "fermion action, one of those that \"quarkctl actions\" lists; without it wilson-clover, or "
     "wilson if csw is 0"},
    {"set", QK_CONFIG_LIST, AT(parameter.set), NULL, 0, 0, "KEY=VALUE",
     "parameter of the action, as \"quarkctl actions NAME\" lists them; in a file each of them is "
     "also a key of its own, as in csw = 1.1"},
    {"kappa", QK_CONFIG_DOUBLE, AT(parameter.kappa), NULL, 0, 0, "K",
     "hopping parameter 1/(2(4+m)); give either this or --mass"},
    {"mass", QK_CONFIG_DOUBLE, AT(parameter.mass), NULL, 0, 0, "M", "bare quark mass m, above -4"},
    {"csw", QK_CONFIG_DOUBLE, AT(parameter.csw), NULL, 0, 0, "C",
     "clover coefficient; 0, or none, is the plain Wilson operator"},
    {"fix-gauge", QK_CONFIG_STRING, AT(fix_text), "none", 0, 0, "GAUGE[:THETA]",
     "bring the links to the gauge landau or coulomb when they are read, for wall sources: until "
     "theta is at most THETA (1e-12); see quark-gauge fix; none: as they are"},
    {"boundary", QK_CONFIG_STRING, AT(boundary_text), "1,1,1,-1", 0, 0, "X,Y,Z,T",
     "boundary factor of each direction: 1, -1, or a phase such as 0.5pi; or periodic, "
     "antiperiodic"},
    {"", QK_CONFIG_GROUP, 0, NULL, 0, 0, NULL, "Solver"},
    {"solver", QK_CONFIG_CHOICE, AT(solver), "auto", 0, 0, QK_CHOICE_FORM(QK_SOLVERS),
     "mg: GCR preconditioned by multigrid; the others: a Krylov method alone; auto: mg if the "
     "lattice and the action allow it, else bicgstab, but cg of twisted mass, domain wall, overlap "
     "and staggered fermions"},
    {"precision", QK_CONFIG_CHOICE, AT(precision), "single", 0, 0, QK_CHOICE_FORM(QK_PRECISIONS),
     "precision of the inner iteration"},
    {"slots", QK_CONFIG_INT, AT(slots), "0", 0, QK_SLOTS_MAX, "N",
     "right-hand sides that are solved together; 0: as many as fit into memory, at most 16"},
    {"single-rhs-solver", QK_CONFIG_BOOL, AT(single_rhs), "yes", 0, 0, "no|yes",
     "use a single-RHS solver when the engine is idle (lower latency); no: results never depend on "
     "load, to the last bit"},
    {"lone-solver", QK_CONFIG_OLD_NAME, 0, NULL, 0, 0, "single-rhs-solver", NULL},
    {"staging", QK_CONFIG_INT, AT(staging), "8", 0, QK_STAGING_MAX, "N",
     "sources to prefetch, and twice as many solutions to write back, during solves; at most half "
     "the number of slots, and less if memory is short"},
    {"deflate", QK_CONFIG_STRING, AT(deflate_text), "0", 0, 0, "N|NAME",
     "lowest eigenvectors of Mhat^+ Mhat that each solve of cg, bicgstab or gcr begins with: how "
     "many are made when a setup is loaded, 4096 at most, and kept in the state folder for the "
     "next start; or, if not digits alone, the name of some that a setup of this operator keeps "
     "there (quarkctl eigen), of overlap fermions those that its sign function projects; "
     "0: none"},
    {"batching", QK_CONFIG_CHOICE, AT(batching), "continuous", 0, 0, "continuous|fixed",
     "continuous: fill a free slot at once; fixed: fill slots only when all are free (for "
     "comparison)"},
    {"link-reals", QK_CONFIG_CHOICE, AT(link_form), "auto", 0, 0, QK_CHOICE_FORM(QK_LINK_FORMS),
     "real numbers stored per link in the inner iteration; 18: in double, too, where 12 would be "
     "enough"},
    {"", QK_CONFIG_GROUP, 0, NULL, 0, 0, NULL, "Multigrid"},
#define X(name, key, form, help)                                                                   \
  {key, QK_CONFIG_STRING, AT(mg[QK_MG_KEY_##name]), NULL, 0, 0, form, help},
    QK_MG_KEYS(X)
#undef X
        {"mg-checkpoint", QK_CONFIG_STRING, AT(mg_checkpoint), "auto", 0, 0, "PATH",
         "file, or folder of files, that keeps the multigrid setup for a restart; auto: a file in "
         "the state folder (--state, or one of its own); off: none"},
    {"mg-from", QK_CONFIG_STRING, AT(mg_from), NULL, 0, 0, "PATH",
     "checkpoint of another mass or configuration, whose null vectors are the start where "
     "mg-checkpoint has none"},
    {"", QK_CONFIG_GROUP, 0, NULL, 0, 0, NULL, "Engine"},
    {"backend", QK_CONFIG_CHOICE, AT(backend), "auto", 0, 0, QK_CHOICE_FORM(QK_BACKENDS),
     "device to run on"},
    {"ranks", QK_CONFIG_INT, AT(ranks), "1", 1, 65536, "N",
     "processes of the engine; more than one are started by mpirun"},
    {"replicas", QK_CONFIG_INT, AT(replicas), "1", 1, QK_REPLICAS_MAX, "N",
     "engines of each setup but private ones, on devices of their own; they share its queue"},
    {"devices", QK_CONFIG_STRING, AT(devices_text), NULL, 0, 0, "N[,N...]",
     "numbers of the GPUs that engines use: of each replica as many as it has ranks, one after the "
     "other; a number that is there twice is shared; default: as they are numbered"},
    {"numa", QK_CONFIG_CHOICE, AT(numa), "auto", 0, 0, "auto|on|off",
     "bind the threads of an engine, and so its memory, to the NUMA node of its device, or to its "
     "share of the cores of a CPU; auto: where a setup has several replicas"},
    {"grid", QK_CONFIG_STRING, AT(grid_text), NULL, 0, 0, "XxYxZxT",
     "process grid; default: the one with the least surface, with multigrid among those that "
     "carry its aggregates"},
    {"mpirun", QK_CONFIG_STRING, AT(mpirun), "mpirun", 0, 0, "COMMAND",
     "command that starts several ranks, with its options; in a Slurm job \"srun --overlap "
     "--mpi=pmix\", because each setup is a job step of its own"},
    {"engine", QK_CONFIG_STRING, AT(engine), NULL, 0, 0, "PATH",
     "quark-engine program; default: the one installed with this program"},
    {"start-timeout", QK_CONFIG_DOUBLE | QK_CONFIG_LIVE, AT(start_timeout), "180", 1, 86400,
     "SECONDS", "how long mpirun may take to start an engine"},
    {"engine-timeout", QK_CONFIG_DOUBLE | QK_CONFIG_LIVE, AT(engine_timeout), "120", 1, 86400,
     "SECONDS", "restart an engine that sends nothing for this time"},
    {"engine-grace", QK_CONFIG_DOUBLE, AT(engine_grace), "30", 0, 86400, "SECONDS",
     "with --state: how long an engine waits for a new quarkd after its own was killed; the new "
     "one uses the engine without loading again; 0: the engine ends with quarkd"},
    {"", QK_CONFIG_GROUP, 0, NULL, 0, 0, NULL, "Setups"},
    {"setup-name", QK_CONFIG_STRING, AT(setup_name), "main", 1, QK_SETUP_NAME_MAX, "NAME",
     "name of the setup that quarkd starts with"},
    {"max-setups", QK_CONFIG_INT | QK_CONFIG_LIVE, AT(max_setups), "4", 1, QK_SETUPS_MAX, "N",
     "limit of loaded setups, each in an engine of its own with its own memory; at the limit, or "
     "if memory is short, the setup that has been idle longest is dropped"},
    {"gauge-roots", QK_CONFIG_STRING, AT(gauge_roots), NULL, 0, 0, "DIR[:DIR...]",
     "folders below which clients may name gauge files to load; default: the folder of --gauge"},
    {"", QK_CONFIG_GROUP, 0, NULL, 0, 0, NULL, "Service"},
    {"listen", QK_CONFIG_STRING, AT(listen), "tcp://127.0.0.1:5555", 0, 0, "ENDPOINT",
     "control endpoint; port 0: a free port"},
    {"listen-data", QK_CONFIG_STRING, AT(listen_data), NULL, 0, 0, "ENDPOINT",
     "data endpoint; default: the port after that of --listen, or a free port if that is 0"},
    {"data-threads", QK_CONFIG_INT, AT(data_threads), "0", 0, QK_DATA_THREADS_MAX, "N",
     "threads that carry fields between clients and shared memory, each with a data endpoint of "
     "its own; 0: half of the processors, 8 at most"},
    {"curve-key", QK_CONFIG_STRING, AT(curve_key), NULL, 0, 0, "FILE",
     "secret key of the daemon (quarkctl keygen): tcp is encrypted, and only the clients in "
     "--curve-clients may connect"},
    {"curve-clients", QK_CONFIG_STRING, AT(curve_clients), NULL, 0, 0, "DIR",
     "folder with a file for each authorised client: key, user, role"},
    {"local", QK_CONFIG_BOOL, AT(local), "yes", 0, 0, "no|yes",
     "yes: clients on this machine that run as the same user may pass fields in shared memory"},
    {"http", QK_CONFIG_STRING, AT(http), NULL, 0, 0, "HOST:PORT",
     "address of the HTTP server: status page, /metrics, /healthz and /readyz; port 0: a free "
     "port; default: no HTTP server"},
    {"http-names", QK_CONFIG_STRING, AT(http_names), NULL, 0, 0, "NAME[,NAME...]",
     "further host names that HTTP requests may use; localhost, the name of this machine and "
     "numeric addresses are always accepted"},
    {"endpoint-file", QK_CONFIG_STRING, AT(endpoint_file), NULL, 0, 0, "FILE",
     "file to which quarkd writes its control endpoint once it is open; * in --listen becomes "
     "the name of this machine"},
    {"pidfile", QK_CONFIG_STRING, AT(pidfile), NULL, 0, 0, "FILE", "file for the process id"},
    {"state", QK_CONFIG_STRING, AT(state), NULL, 0, 0, "DIR",
     "folder that keeps accepted requests and their results across restarts; default: none, they "
     "are lost when the daemon ends"},
    {"journal", QK_CONFIG_STRING, AT(journal), NULL, 0, 0, "DIR",
     "folder for the journal of the state folder, on another device for example; default: the "
     "state folder"},
    {"spool", QK_CONFIG_CHOICE, AT(spool), "waiting", 0, 0, "waiting|all",
     "which uploads are written to the state folder; waiting: those that are not yet "
     "acknowledged when their turn comes, while others are solved; all: each before it is solved"},
    {"file-roots", QK_CONFIG_STRING, AT(file_roots), NULL, 0, 0, "DIR[:DIR...]",
     "folders below which the daemon may read right-hand sides from files and write solutions to "
     "files for its clients; default: none"},
    {"max-memory", QK_CONFIG_SIZE | QK_CONFIG_LIVE, AT(max_memory), "0", 0, 1ll << 50, "BYTES",
     "memory for uploads and results together; 0: half of the free space in /dev/shm, or half of "
     "what container, cgroup or Slurm leave free if that is less; without such a limit at most a "
     "quarter of the machine's free memory"},
    {"max-sessions", QK_CONFIG_INT | QK_CONFIG_LIVE, AT(max_sessions), "4096", 1, QK_SESSIONS_MAX,
     "N",
     "limit of client sessions (26 KiB of memory each, and their requests); one user may have a "
     "quarter of them, at least 256; at the limit sessions without requests are ended"},
    {"lease", QK_CONFIG_DOUBLE | QK_CONFIG_LIVE, AT(lease), "60", 0.1, 86400, "SECONDS",
     "end the session and the requests of a client that sends nothing for this time"},
    {"fetch-time", QK_CONFIG_DOUBLE | QK_CONFIG_LIVE, AT(fetch_time), "3600", 0.1, 31536000,
     "SECONDS", "how long a solution is held for its client to fetch it"},
    {"keep", QK_CONFIG_OLD_NAME, 0, NULL, 0, 0, "fetch-time", NULL},
    {"keep-time", QK_CONFIG_DOUBLE | QK_CONFIG_LIVE, AT(keep_time), "3600", 0.1, 31536000,
     "SECONDS",
     "how long kept solutions are retained after their last use; a client may ask for less"},
    {"detach-time", QK_CONFIG_DOUBLE | QK_CONFIG_LIVE, AT(detach_time), "604800", 0, 31536000,
     "SECONDS",
     "longest time for which results of a detached request are held after its client has left; a "
     "client may ask for less"},
    {"keep-memory", QK_CONFIG_SIZE | QK_CONFIG_LIVE, AT(keep_memory), "0", 0, 1ll << 50, "BYTES",
     "memory for the kept solutions of one user; 0: three quarters of --max-memory"},
    {"user-memory", QK_CONFIG_SIZE | QK_CONFIG_LIVE, AT(user_memory), "0", 0, 1ll << 50, "BYTES",
     "memory for uploads and results of one user; 0: no limit but --max-memory"},
    {"eigen-memory", QK_CONFIG_SIZE | QK_CONFIG_LIVE, AT(eigen_memory), "0", 0, 1ll << 50, "BYTES",
     "host memory of engines for the eigenvectors that setups keep under names, and for the "
     "matrices of their computation, together; 0: half of what is free when quarkd starts"},
    {"spill", QK_CONFIG_SIZE | QK_CONFIG_LIVE, AT(spill), "0", 0, 1ll << 50, "BYTES",
     "disk space in the state folder for solutions evicted from memory, when others need the room "
     "and their clients are away or slow; 0: never evict"},
    {"user-rhs", QK_CONFIG_INT | QK_CONFIG_LIVE, AT(user_rhs), "0", 0, 1 << 30, "N",
     "limit of right-hand sides of one user that wait or run; 0: no limit"},
    {"user-setups", QK_CONFIG_INT | QK_CONFIG_LIVE, AT(user_setups), "2", 0, QK_SETUPS_MAX, "N",
     "setups of their own links that one user may have loaded at a time; 0: none"},
    {"drain-timeout", QK_CONFIG_DOUBLE | QK_CONFIG_LIVE, AT(drain_timeout), "600", 0, 31536000,
     "SECONDS", "how long quarkd may take to finish accepted work before it ends"},
    {"walltime", QK_CONFIG_STRING, AT(walltime_text), "0", 0, 0, "TIME",
     "time from the start until a batch system kills quarkd: seconds, or [[D-]HH:]MM:SS; quarkd "
     "drains --drain-timeout earlier and rejects work that cannot end in time; 0: no limit"},
    {"walltime-file", QK_CONFIG_STRING, AT(walltime_file), NULL, 0, 0, "FILE",
     "file with the time at which a batch system kills quarkd, in seconds since 1970; replaces "
     "--walltime; read again on SIGHUP and before quarkd drains because of it"},
    {"log-level", QK_CONFIG_CHOICE | QK_CONFIG_LIVE, AT(log_level), "info", 0, 0,
     "error|warn|info|debug", "least important message that is logged"},
    {"log-format", QK_CONFIG_CHOICE, AT(log_format), "text", 0, 0, "text|json",
     "format of the log; json: one object per line"},
};

const char *qk_settings_solver(const qk_settings_t *s) {
  return qk_choice_solvers.word[s->solver];
}
const char *qk_settings_precision(const qk_settings_t *s) {
  return qk_choice_precisions.word[s->precision];
}
const char *qk_settings_backend(const qk_settings_t *s) {
  return qk_choice_backends.word[s->backend];
}

int qk_settings_link_reals(const qk_settings_t *s) {
  return qk_choice_link_forms.number[s->link_form];
}

qk_status_t qk_settings_walltime(const char *text, double *seconds, qk_err_t *err) {
  const bool days = strchr(text, '-') != NULL;
  const char *p = text;
  double total = 0;
  int n = 0;
  for (bool more = true; more && n < 4; n++) {
    const int base = days && n == 1 ? 24 : 60;
    char *end;
    const long v = isdigit((unsigned char)*p) ? strtol(p, &end, 10) : -1;
    if (v < 0 || (n > 0 && v >= base)) break;
    total = total * base + (double)v;
    more = *end == (days && n == 0 ? '-' : ':');
    p = more ? end + 1 : end;
    if (!more && *end == '\0' && days == (n == 3) && total <= WALLTIME_MAX) {
      *seconds = total;
      return QK_OK;
    }
  }
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "walltime = %.40s: must be seconds or [[D-]HH:]MM:SS, at most 365 days", text);
}

static qk_status_t parse_extents(const char *key, const char *text, int out[4], qk_err_t *err) {
  int v[4], end = -1;
  int n = sscanf(text, "%6dx%6dx%6dx%6d%n", &v[0], &v[1], &v[2], &v[3], &end);
  if (n != 4 || end < 0 || text[end] != '\0')
    return qk_fail(err, QK_BAD_ARGUMENT, "%s = %s: must be XxYxZxT", key, text);
  for (int mu = 0; mu < 4; mu++)
    if (v[mu] < 1)
      return qk_fail(err, QK_BAD_ARGUMENT, "%s = %s: extents must be at least 1", key, text);
  memcpy(out, v, sizeof v);
  return QK_OK;
}

static qk_status_t check_curve(const qk_settings_t *s, qk_err_t *err) {
  if (!s->curve_key != !s->curve_clients)
    return qk_fail(err, QK_BAD_ARGUMENT, "curve-key and curve-clients are needed together");
  if (s->curve_key && (strncmp(s->listen, "ipc://", 6) == 0 ||
                       (s->listen_data && strncmp(s->listen_data, "ipc://", 6) == 0)))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "curve-key is for tcp endpoints: ipc:// is guarded by the mode of its file");
  return QK_OK;
}

/* Names in Host of HTTP. */
static qk_status_t check_names(const char *names, qk_err_t *err) {
  static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  for (const char *p = names; p;) {
    const size_t n = strspn(p, LETTERS);
    if (n == 0 || n > QK_HTTP_NAME_MAX || (p[n] != ',' && p[n] != '\0'))
      return qk_fail(err, QK_BAD_ARGUMENT,
                     "http-names = %.64s: must be names of 1 to %d letters, digits, '-' and '.', "
                     "without ports, separated by commas",
                     names, QK_HTTP_NAME_MAX);
    p = p[n] == ',' ? p + n + 1 : NULL;
  }
  return QK_OK;
}

static qk_status_t check_walltime(qk_settings_t *s, qk_err_t *err) {
  qk_status_t status = qk_settings_walltime(s->walltime_text, &s->walltime, err);
  if (status == QK_OK && s->walltime > 0 && s->walltime <= s->drain_timeout)
    return qk_fail(
        err, QK_BAD_ARGUMENT,
        "walltime = %s is not longer than drain-timeout = %.0f s: nothing would be served",
        s->walltime_text, s->drain_timeout);
  return status;
}

qk_status_t qk_settings_read_devices(qk_settings_t *s, qk_err_t *err) {
  const int64_t needed = s->replicas * s->ranks;
  s->ndevices = 0;
  if (!s->devices_text) return QK_OK;
  for (const char *p = s->devices_text;;) {
    const size_t digits = strspn(p, "0123456789");
    if (digits == 0 || digits > 4 || (p[digits] != ',' && p[digits] != '\0'))
      return qk_fail(err, QK_BAD_ARGUMENT,
                     "devices = %.64s: must be numbers of devices, separated by commas",
                     s->devices_text);
    if (s->ndevices == QK_DEVICES_MAX)
      return qk_fail(err, QK_BAD_ARGUMENT, "devices = %.64s: more than %d", s->devices_text,
                     QK_DEVICES_MAX);
    s->device[s->ndevices++] = (uint32_t)atoi(p);
    if (p[digits] == '\0') break;
    p += digits + 1;
  }
  if (s->ndevices >= needed) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "devices = %.64s: %lld replicas of %lld ranks need %lld; one that is to be shared "
                 "is listed several times",
                 s->devices_text, (long long)s->replicas, (long long)s->ranks, (long long)needed);
}

/* Digits alone are a number. */
static qk_status_t read_deflate(qk_settings_t *s, qk_err_t *err) {
  const char *text = s->deflate_text;
  const size_t digits = strspn(text, "0123456789");
  char quoted[QK_EIGEN_NAME_MAX + 1], why[QK_WHY];
  s->deflate_from = NULL;
  s->deflate = 0;
  if (digits > 0 && digits < 10 && text[digits] == '\0') {
    s->deflate = atoi(text);
  } else if (text[digits] && qk_eigen_check_name("deflate", text, why) == QK_OK) {
    s->deflate_from = text;
  } else {
    qk_err_quote(text, quoted, sizeof quoted);
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "deflate = \"%s\": must be 0 to %d, or a name of eigenvectors", quoted,
                   QK_DEFLATE_MAX);
  }
  return qk_settings_check_deflate(s, "deflate", err);
}

qk_status_t qk_settings_check_deflate(const qk_settings_t *s, const char *field, qk_err_t *err) {
  const bool mg = strcmp(qk_settings_solver(s), "mg") == 0;
  if (s->deflate > QK_DEFLATE_MAX)
    return qk_fail(err, QK_TOO_LARGE, "deflate = %lld is over the limit of %d",
                   (long long)s->deflate, QK_DEFLATE_MAX);
  if (s->deflate_from && mg)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "%s = %s: solves by multigrid (solver = mg) begin with no eigenvectors; cg, "
                   "bicgstab and gcr do",
                   field, s->deflate_from);
  if (s->deflate_from && !s->state)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "%s = %s: eigenvectors of a name are read from the state folder, and quarkd has "
                   "none (--state)",
                   field, s->deflate_from);
  if (s->deflate == 0 || !mg) return QK_OK;
  return qk_fail(
      err, QK_BAD_ARGUMENT,
      "deflate = %lld: solves by multigrid (solver = mg) begin with no eigenvectors; cg, "
      "bicgstab and gcr do",
      (long long)s->deflate);
}

static qk_status_t check(qk_settings_t *s, qk_err_t *err) {
  char why[QK_WHY];
  if (!s->gauge || !*s->gauge) return qk_fail(err, QK_BAD_ARGUMENT, "gauge is needed");
  if (s->spill > 0 && !s->state) return qk_fail(err, QK_BAD_ARGUMENT, "spill needs state");
  if (s->journal && !s->state) return qk_fail(err, QK_BAD_ARGUMENT, "journal needs state");
  qk_status_t status = qk_parameters_read(&s->parameter, s->action, s->config, &s->op, err);
  if (status == QK_OK) status = qk_names_check("setup-name", s->setup_name, err);
  if (status == QK_OK) status = read_deflate(s, err);
  if (status == QK_OK) status = qk_settings_read_devices(s, err);
  if (status == QK_OK) status = check_curve(s, err);
  if (status == QK_OK && !qk_boundary_parse(s->boundary_text, s->boundary, why))
    status = qk_fail(err, QK_BAD_ARGUMENT, "%s", why);
  if (status == QK_OK && !qk_fix_read(s->fix_text, &s->fix, why))
    status = qk_fail(err, QK_BAD_ARGUMENT, "%s", why);
  if (status == QK_OK) status = check_names(s->http_names, err);
  if (status == QK_OK) status = check_walltime(s, err);
  if (status == QK_OK && s->dims_text) status = parse_extents("dims", s->dims_text, s->dims, err);
  if (status == QK_OK && s->grid_text) status = parse_extents("grid", s->grid_text, s->grid, err);
  if (status == QK_OK && s->grid_text) {
    int64_t product = 1;
    for (int mu = 0; mu < 4 && product <= s->ranks; mu++) product *= s->grid[mu];
    if (product != s->ranks)
      status = qk_fail(err, QK_BAD_ARGUMENT, "grid = %s: its product must be ranks = %lld",
                       s->grid_text, (long long)s->ranks);
  }
  return status;
}

/* The table, and the parameters of actions. */
static qk_status_t create_config(qk_settings_t *s, qk_err_t *err) {
  enum { OWN = sizeof ROWS / sizeof ROWS[0] };
  s->rows = qk_calloc(OWN + QK_PARAMETER_KEYS, sizeof *s->rows);
  if (!s->rows) return qk_fail(err, QK_NO_MEMORY, "no memory for the settings");
  memcpy(s->rows, ROWS, sizeof ROWS);
  const int nrows = qk_parameters_rows(s->rows, OWN, AT(parameter));
  return qk_config_create("quarkd", "Serves lattice-QCD Dirac solves on one gauge configuration.",
                          s->rows, nrows, s, &s->config, err);
}

bool qk_settings_parse(qk_settings_t *s, int argc, char **argv, int *exit_code) {
  qk_err_t err = {0};
  *s = (qk_settings_t){0};
  if (create_config(s, &err) != QK_OK) {
    fprintf(stderr, "quarkd: %s\n", err.text);
    *exit_code = EXIT_CONFIG;
    return false;
  }
  if (!qk_config_parse(s->config, argc, argv, exit_code)) return false;
  const qk_status_t status = check(s, &err);
  if (status != QK_OK) {
    fprintf(stderr, "quarkd: %s\nTry 'quarkd --help' for more information.\n", err.text);
    *exit_code = status == QK_BAD_FORMAT ? EXIT_CONFIG : EXIT_USAGE;
    return false;
  }
  return true;
}

qk_status_t qk_settings_reread(qk_settings_t *s, qk_config_change_fn tell, void *arg,
                               qk_err_t *err) {
  qk_settings_t fresh = {0};
  qk_status_t status = qk_config_again(s->config, &fresh, &fresh.config, err);
  if (status == QK_OK) status = check(&fresh, err);
  if (status == QK_OK) qk_config_adopt(s->config, fresh.config, tell, arg);
  qk_settings_fini(&fresh);
  return status;
}

void qk_settings_fini(qk_settings_t *s) {
  qk_config_destroy(s->config);
  qk_free(s->rows);
}
