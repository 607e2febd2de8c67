/* main.c: the program quark-gauge. */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/base/version.h"
#include "daemon/engine/tool/tool.h"

static const struct {
  const char *name, *arguments, *help;
  qk_tool_command_fn *run;
} commands[] = {
    {"info", "FILE", "verify a configuration and say what it is", qk_tool_info},
    {"convert", "IN OUT", "verify a configuration and write it in another format", qk_tool_convert},
    {"smear", "--links=KIND:... IN OUT", "smear the links of a configuration", qk_tool_smear},
    {"fix", "--gauge=KIND IN OUT", "bring a configuration to Landau or Coulomb gauge", qk_tool_fix},
    {"generate", "--beta=B --out=PATTERN ...", "make configurations of the quenched theory",
     qk_tool_generate},
};
enum { NCOMMAND = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *to) {
  fputs("Usage: quark-gauge COMMAND [OPTION...]\n\nCommands:\n", to);
  for (int i = 0; i < NCOMMAND; i++) {
    char call[48];
    snprintf(call, sizeof call, "%s %s", commands[i].name, commands[i].arguments);
    fprintf(to, "  %-36s %s\n", call, commands[i].help);
  }
  fputs("\nEach command has --help, and --json for one JSON object on stdout.\n", to);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    print_usage(stderr);
    return EX_USAGE;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
    print_usage(stdout);
    return EX_OK;
  }
  if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
    printf("quark-gauge %s\n", qk_version());
    return EX_OK;
  }
  for (int i = 0; i < NCOMMAND; i++)
    if (strcmp(argv[1], commands[i].name) == 0) {
      char name[32];
      snprintf(name, sizeof name, "quark-gauge %s", commands[i].name);
      argv[1] = name;
      return commands[i].run(argc - 1, argv + 1);
    }
  fprintf(stderr, "quark-gauge: \"%s\" is no command; see quark-gauge --help\n", argv[1]);
  return EX_USAGE;
}
