#include "client/workflow/owndaemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/solving.h"

enum {
  PATH_BYTES = 4096,
  LOOK_MS = 20,
  LISTEN_SECONDS = 60,
  STOP_SECONDS = 20,
  LEAVE_SECONDS = 2,
  OWN_OPTIONS = 4
};

static void pause_ms(long ms) {
  const struct timespec t = {.tv_nsec = ms * 1000000};
  nanosleep(&t, NULL);
}

/* Looks beside this program, and at its place in a build folder. */
static bool find_program(char path[PATH_BYTES]) {
  static const char *const places[] = {"quarkd", "../daemon/front/quarkd"};
  char self[PATH_BYTES - 64];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0) return false;
  self[n] = 0;
  char *slash = strrchr(self, '/');
  if (!slash) return false;
  slash[1] = 0;
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    snprintf(path, PATH_BYTES, "%s%s", self, places[i]);
    if (access(path, X_OK) == 0) return true;
  }
  ctl_complain("quarkd is not in %s or %s../daemon/front: use --quarkd", self, self);
  return false;
}

/* In the child process: becomes quarkd, which writes to the log and ends with its parent. */
static _Noreturn void become(const char *program, char *const *arguments, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nothing = open("/dev/null", O_RDONLY);
  if (getppid() != parent || nothing < 0) _exit(126);
  dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(program, arguments);
  dprintf(log, "%s: %s\n", program, strerror(errno));
  _exit(127);
}

static pid_t spawn(const char *program, int n, char *const *options, const char *endpoint_file,
                   const char *log) {
  char listen[] = "--listen=tcp://127.0.0.1:0", drain[] = "--drain-timeout=0", *file = NULL;
  char **arguments = calloc((size_t)n + OWN_OPTIONS + 1, sizeof *arguments);
  const int to = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  pid_t pid = -1;
  if (to < 0 || !arguments || asprintf(&file, "--endpoint-file=%s", endpoint_file) < 0) {
    ctl_complain("%s: %s", log, strerror(errno));
    goto out;
  }
  arguments[0] = (char *)(uintptr_t)program;
  for (int i = 0; i < n; i++) arguments[1 + i] = options[i];
  arguments[1 + n] = listen;
  arguments[2 + n] = drain;
  arguments[3 + n] = file;
  const pid_t parent = getpid();
  pid = fork();
  if (pid == 0) become(program, arguments, to, parent);
  if (pid < 0) ctl_complain("%s cannot be started: %s", program, strerror(errno));
out:
  if (to >= 0) close(to);
  free(file);
  free(arguments);
  return pid;
}

/* Prints the last line of the log: the daemon's reason. */
static void print_reason(const char *log) {
  char line[512] = "", last[512] = "";
  FILE *f = fopen(log, "re");
  while (f && fgets(line, sizeof line, f)) strcpy(last, line);
  if (f) fclose(f);
  last[strcspn(last, "\n")] = 0;
  ctl_complain("quarkd has ended: %s (its log: %s)", last, log);
}

static bool read_endpoint(const char *file, ctl_daemon_t *daemon) {
  FILE *f = fopen(file, "re");
  if (!f) return false;
  const bool whole =
      fgets(daemon->endpoint, sizeof daemon->endpoint, f) && strchr(daemon->endpoint, '\n') != NULL;
  fclose(f);
  daemon->endpoint[strcspn(daemon->endpoint, "\n")] = 0;
  return whole;
}

/* True if it has ended by itself. Then sets the exit code and prints the reason. */
static bool has_left(ctl_daemon_t *daemon, const char *log, int *code) {
  int status;
  if (waitpid(daemon->pid, &status, WNOHANG) != daemon->pid) return false;
  daemon->pid = 0;
  *code = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_AGAIN ? EXIT_AGAIN : EXIT_DATA;
  print_reason(log);
  return true;
}

static int wait_listening(ctl_daemon_t *daemon, const char *endpoint_file, const char *log) {
  const double until = ctl_seconds() + LISTEN_SECONDS;
  int code;
  while (!read_endpoint(endpoint_file, daemon)) {
    if (has_left(daemon, log, &code)) return code;
    if (ctl_interrupted() || ctl_seconds() > until) {
      ctl_complain("quarkd does not listen (its log: %s)", log);
      return EXIT_AGAIN;
    }
    pause_ms(LOOK_MS);
  }
  return 0;
}

int ctl_daemon_verdict(ctl_daemon_t *daemon, const char *folder, int code) {
  char *log;
  if (daemon->pid <= 0 || asprintf(&log, "%s/quarkd.log", folder) < 0) return code;
  /* A daemon that does not answer any more may be about to end. */
  for (const double until = ctl_seconds() + LEAVE_SECONDS;
       !has_left(daemon, log, &code) && ctl_seconds() < until;)
    pause_ms(LOOK_MS);
  free(log);
  return code;
}

int ctl_daemon_start(const char *program, int n, char *const *options, const char *folder,
                     ctl_daemon_t *daemon) {
  char found[PATH_BYTES], *endpoint_file = NULL, *log = NULL;
  int code = EXIT_AGAIN;
  *daemon = (ctl_daemon_t){.pid = 0};
  if (!program && !find_program(found)) return EXIT_UNAVAILABLE;
  /* The name has our process id: the daemon of a killed process may still remove its own file. */
  if (asprintf(&endpoint_file, "%s/%ld.endpoint", folder, (long)getpid()) < 0) endpoint_file = NULL;
  if (asprintf(&log, "%s/quarkd.log", folder) < 0) log = NULL;
  if (!endpoint_file || !log) {
    ctl_complain("no memory for a name in %s", folder);
    goto out;
  }
  unlink(endpoint_file);
  const pid_t pid = spawn(program ? program : found, n, options, endpoint_file, log);
  if (pid < 0) goto out;
  daemon->pid = pid;
  code = wait_listening(daemon, endpoint_file, log);
  if (code) ctl_daemon_stop(daemon);
out:
  if (endpoint_file) unlink(endpoint_file);
  free(endpoint_file);
  free(log);
  return code;
}

void ctl_daemon_stop(ctl_daemon_t *daemon) {
  if (daemon->pid <= 0) return;
  const double until = ctl_seconds() + STOP_SECONDS;
  kill(daemon->pid, SIGTERM);
  while (waitpid(daemon->pid, NULL, WNOHANG) == 0) {
    if (ctl_seconds() > until) kill(daemon->pid, SIGKILL);
    pause_ms(LOOK_MS);
  }
  daemon->pid = 0;
}
