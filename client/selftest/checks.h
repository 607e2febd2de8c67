/*
 * checks.h: what `quarkctl selftest` has found: a line for each thing it looked at.
 *
 * Layer    programs, device, kernels, ranks, memory, disk, network, keys.
 * Verdict  ok; warning: it works, but slowly or not for all uses; FAILED: quarkd does not work here
 *          until that is put right. Advice says what to do, of all but ok.
 */
#ifndef QUARKCTL_CHECKS_H
#define QUARKCTL_CHECKS_H

#include <jansson.h>
#include <stdbool.h>

typedef enum ctl_verdict { CTL_OK, CTL_WARNING, CTL_FAILED } ctl_verdict_t;

const char *ctl_verdict_word(ctl_verdict_t verdict);

typedef struct ctl_checks {
  bool json; /* lines are kept for the end; else each is printed as it comes */
  json_t *list;
  ctl_verdict_t worst;
  bool no_loopback; /* quarkd cannot be asked */
  bool log_tells;   /* the log of quarkd may say why something failed */
} ctl_checks_t;

/* Adds a line. values: numbers, which are taken; or NULL. advice: or NULL. The text is
 * printf-formatted. */
__attribute__((format(printf, 6, 7))) void ctl_checks_add(ctl_checks_t *checks, const char *layer,
                                                          ctl_verdict_t verdict, json_t *values,
                                                          const char *advice, const char *fmt, ...);

/* ---- what is looked at ---- */

/* What the command was told. */
typedef struct ctl_selftest {
  const char *quarkd, *engine; /* programs; NULL: those that are installed */
  const char *state;           /* folder on the disk that is to hold state */
  const char *folder;          /* for files of the test, in the end with quarkd's log */
  const char *only;            /* layers by comma, as --help has them; NULL: all */
  bool no_ranks;
} ctl_selftest_options_t;

/* machine.c */
void ctl_check_memory(const ctl_selftest_options_t *test, ctl_checks_t *checks);
void ctl_check_disk(const ctl_selftest_options_t *test, ctl_checks_t *checks);
/* network.c */
void ctl_check_network(const ctl_selftest_options_t *test, ctl_checks_t *checks);
void ctl_check_keys(const ctl_selftest_options_t *test, ctl_checks_t *checks);
/* engine.c: programs, device, kernels, ranks */
void ctl_check_engine(const ctl_selftest_options_t *test, ctl_checks_t *checks);

#endif
