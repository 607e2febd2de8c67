#include "daemon/front/engines/engine_argv.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/front/engines/engine_encode.h"
#include "proto/frame.h"

void qk_engine_label(const char *setup, int replica, int replicas, char label[QK_ENGINE_LABEL]) {
  char number[24] = "";
  if (replicas > 1) snprintf(number, sizeof number, "%sreplica %d", *setup ? ", " : "", replica);
  label[0] = '\0';
  if (*setup || number[0])
    snprintf(label, QK_ENGINE_LABEL, "%.*s%s: ", QK_SETUP_NAME_MAX, setup, number);
}

bool qk_engine_argv_lasts(const qk_settings_t *s) {
  return s->state && s->engine_grace > 0;
}

/* Splits the mpirun command at blanks into argv; returns how many. */
static int split(char *text, char **argv, int max) {
  int n = 0;
  char *save;
  for (char *p = strtok_r(text, " ", &save); p && n < max; p = strtok_r(NULL, " ", &save))
    argv[n++] = p;
  return n;
}

void qk_engine_argv_make(const qk_settings_t *s, const char *program, const char *endpoint,
                         qk_engine_argv_t *c) {
  char **argv = c->argv;
  int n = 0;
  if (s->ranks > 1) {
    snprintf(c->mpirun, sizeof c->mpirun, "%s", s->mpirun);
    snprintf(c->ranks, sizeof c->ranks, "%lld", (long long)s->ranks);
    n = split(c->mpirun, argv, QK_ARGS_MAX - 9);
    argv[n++] = "-n"; /* as srun and every mpiexec have it */
    argv[n++] = c->ranks;
  }
  argv[n++] = (char *)program;
  argv[n++] = "--log-format";
  argv[n++] = (char *)qk_log_format_name((qk_log_format_t)s->log_format);
  if (qk_engine_argv_lasts(s)) {
    snprintf(c->grace, sizeof c->grace, "%.0f", ceil(1e3 * s->engine_grace));
    argv[n++] = "--grace";
    argv[n++] = c->grace;
  }
  argv[n++] = "--front";
  argv[n++] = (char *)endpoint;
  argv[n] = NULL;
}

static void print_file(FILE *f, const char *path) {
  struct stat st = {0};
  if (stat(path, &st) == 0)
    fprintf(f, "%ju %jd %jd.%09ld\n", (uintmax_t)st.st_ino, (intmax_t)st.st_size,
            (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

uint64_t qk_engine_argv_fingerprint(const qk_settings_t *s, const char *program,
                                    const char *checkpoint, int replica) {
  qk_engine_argv_t command;
  char *text = NULL;
  size_t size = 0, bytes;
  uint64_t fingerprint = 0;
  FILE *f = open_memstream(&text, &size);
  uint8_t *load = qk_engine_encode_load(s, (qk_engine_replica_t){.number = replica}, checkpoint,
                                        NULL, 0, 0, &bytes);
  if (f && load) {
    print_file(f, program);
    print_file(f, s->gauge);
    qk_engine_argv_make(s, program, "", &command);
    for (char **arg = command.argv; *arg; arg++) fprintf(f, "%s\n", *arg);
    fwrite(load, 1, bytes, f);
  }
  free(load);
  if (f && fclose(f) == 0 && load) fingerprint = qk_checksum(text, size);
  free(text);
  return fingerprint;
}
