/*
 * operator.h: fermion actions on the command line, in output and in files.
 *
 * What is said here of an action holds for all that a daemon may know, also for those that this
 * program does not: it sends them as they were given, and the daemon judges.
 */
#ifndef QUARKCTL_OPERATOR_H
#define QUARKCTL_OPERATOR_H

#include "client/cli/ctl.h"
#include "proto/action/operator_text.h"
#include "proto/shape.h"

enum { CTL_PARAMETERS = 64 };

/* --action and --set. All zero: nothing was given. */
typedef struct ctl_operator {
  const char *action; /* NULL: not given */
  uint32_t n;
  quark_parameter_t parameter[CTL_PARAMETERS]; /* of the arguments, each key once */
} ctl_operator_t;

/* A table for the options of a command: its values are a ctl_operator_t. A usage error: what no
 * daemon accepts, which is no KEY=VALUE, a key twice, no number for a parameter that is one. */
extern const qk_option_table_t ctl_operator_table;
/* A usage error if --key and --set=key=... are both given. */
void ctl_operator_exclude(const struct argp_state *state, const ctl_operator_t *given,
                          const char *key);

/* As a report has it. For people: "wilson-clover   kappa 0.1345   csw 1.769", in a table
 * "wilson-clover kappa=0.1345 csw=1.769". Of a daemon that does not say the action: kappa and csw.
 */
typedef enum ctl_operator_form { CTL_OPERATOR_LINE, CTL_OPERATOR_CELL } ctl_operator_form_t;
enum { CTL_OPERATOR_TEXT = 3 * QK_OPERATOR_TEXT };
const char *ctl_operator_text(const char *action, const char *parameters, double kappa, double csw,
                              ctl_operator_form_t form, char text[CTL_OPERATOR_TEXT]);
/* {"kappa": "0.1345", ...} in the order in which they were given. */
json_t *ctl_parameters_json(const char *parameters);
/* null if the action has none, which reports say as 0. csw: beside a kappa 0 is a number. */
json_t *ctl_kappa_json(double kappa);
json_t *ctl_csw_json(double kappa, double csw);

/* Of a report, for files: the canonical text; of an action that this program does not know, what
 * the daemon was given; of an old daemon, that of its kappa and csw. */
/* Such a text with another mass. */
void ctl_operator_set_mass(double mass, char text[QK_OPERATOR_TEXT]);
void ctl_operator_canonical(const quark_report_t *report, char text[QK_OPERATOR_TEXT]);
/* Whether two such texts say the same operator, to 12 digits of each number. */
bool ctl_operator_same(const char *a, const char *b);
/* Whether a parameter of the setup has this value, or is the default that is this value. False also
 * if this program does not know the action. */
bool ctl_operator_has(const quark_report_t *report, const char *key, const char *value);
/* Kappa or csw of a report, for files: NaN if the action has none, which reports say as 0. */
double ctl_operator_kappa(const quark_report_t *report);
double ctl_operator_csw(const quark_report_t *report);
/* Of a request, for files: 1 or -1; 0 if the action has none. */
int32_t ctl_operator_flavour(const quark_report_t *report, int32_t flavour);
/* The fields of the setup. */
qk_shape_t ctl_operator_shape(const quark_report_t *report);
/* Slices of fields of five dimensions; 0: the action of the setup has no fifth dimension. */
int32_t ctl_operator_slices(const quark_report_t *report);
/* EXIT_USAGE: with --five-d it has none. */
int ctl_operator_check_five(const quark_report_t *report, bool five);
/* EXIT_DATA: this program does not know the fields of the setup's action: they are neither those of
 * spin and colour nor pairs of them, as a doublet has, nor colour vectors. */
int ctl_operator_check(const quark_report_t *report);
/* EXIT_DATA also for doublets. what: what cannot be done with them, as "contractions". */
int ctl_operator_check_single(const quark_report_t *report, const char *what);
/* And for colour vectors. */
int ctl_operator_check_usual(const quark_report_t *report, const char *what);

#endif
