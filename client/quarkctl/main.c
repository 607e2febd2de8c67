#include <stdio.h>
#include <string.h>

#include "client/cli/ctl.h"

static const struct {
  const char *name, *help;
  ctl_command_fn *run;
} commands[] = {
    {"status", "wait until the daemon is ready and print its state", ctl_status},
    {"top", "show continuously what the daemon does", ctl_top},
    {"propagator", "solve for the columns of a propagator, or for noise sources", ctl_propagator},
    {"sequential", "solve for a sequential propagator", ctl_sequential},
    {"solve", "solve for the right-hand sides in a file", ctl_solve},
    {"apply", "apply M, a part of it or its adjoint to the fields in a file", ctl_apply},
    {"fetch", "get the solutions of a command that was run with --detach", ctl_fetch},
    {"correlator", "compute hadron correlators, in the daemon or from a propagator file",
     ctl_correlator},
    {"workflow", "compute correlators of many configurations, quarks and sources; resumable",
     ctl_workflow},
    {"bench", "put a load on the daemon and measure", ctl_bench},
    {"eigen", "compute eigenvectors, which the daemon keeps", ctl_eigen},
    {"perambulator", "solve for eigenvectors of time slices, projected onto such",
     ctl_perambulator},
    {"load", "load a further setup", ctl_load},
    {"actions", "list the fermion actions and their parameters", ctl_actions},
    {"drop", "end a setup", ctl_drop},
    {"default", "choose the setup for requests that name none", ctl_default},
    {"cancel", "cancel requests of another process", ctl_cancel},
    {"shutdown", "end the daemon", ctl_shutdown},
    {"selftest", "look whether quarkd works on this machine", ctl_selftest},
    {"keygen", "make a pair of keys", ctl_keygen},
};
enum { NCOMMAND = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *to) {
  fputs("Usage: quarkctl COMMAND [OPTION...]\n\nCommands:\n", to);
  for (int i = 0; i < NCOMMAND; i++)
    fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].help);
  fputs("\nOptions of every command:\n"
        "  --endpoint=ENDPOINT   default: QUARKD_ENDPOINT, or tcp://127.0.0.1:5555\n"
        "  --server-key=KEY      public key of a daemon with keys, or its file: default "
        "QUARKD_SERVER_KEY\n"
        "  --key=FILE            your own secret key: default QUARKD_KEY\n"
        "  --setup=NAME          setup of the daemon: default its default setup\n"
        "  --timeout=SECONDS     how long to wait for a daemon that is absent, loading or full\n"
        "  --json                print one JSON object on stdout\n"
        "  --help                print help, also of each command\n",
        to);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    print_usage(stderr);
    return EXIT_USAGE;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
    print_usage(stdout);
    return 0;
  }
  if (strcmp(argv[1], "--version") == 0) {
    printf("quarkctl %s\n", quark_version());
    return 0;
  }
  for (int i = 0; i < NCOMMAND; i++)
    if (strcmp(argv[1], commands[i].name) == 0) {
      char name[32];
      snprintf(name, sizeof name, "quarkctl %s", commands[i].name);
      argv[1] = name;
      return commands[i].run(argc - 1, argv + 1);
    }
  ctl_complain("\"%s\" is not a command; see quarkctl --help", argv[1]);
  return EXIT_USAGE;
}
