/*
 * choices.h: the words that settings, options, requests and engine messages choose from: solvers,
 * precisions, backends, reals of a link.
 *
 * A row is the only place where a word stands. Enums, errors and the forms and lists in --help are
 * made of the rows: QK_CHOICE_FORM(QK_SOLVERS) is "auto|mg|...", QK_CHOICE_LIST(QK_SOLVERS) is
 * "auto, mg, ... or gcr". The order of rows is that of help and errors.
 */
#ifndef QK_PROTO_CHOICES_H
#define QK_PROTO_CHOICES_H

#ifdef __cplusplus
extern "C" {
#endif

/* FIRST, NEXT, LAST(NAME, word, number) */
#define QK_SOLVERS(FIRST, NEXT, LAST)                                                              \
  FIRST(AUTO, "auto", 0)                                                                           \
  NEXT(MG, "mg", 1) NEXT(BICGSTAB, "bicgstab", 2) NEXT(CG, "cg", 3) LAST(GCR, "gcr", 4)

/* With the numbers of engine.proto. */
#define QK_PRECISIONS(FIRST, NEXT, LAST)                                                           \
  FIRST(DOUBLE, "double", 0) NEXT(SINGLE, "single", 1) LAST(HALF, "half", 2)

#define QK_BACKENDS(FIRST, NEXT, LAST)                                                             \
  FIRST(AUTO, "auto", 0) NEXT(CUDA, "cuda", 1) LAST(CPU, "cpu", 2)

/* Reals that the inner iteration stores for a link; with the numbers of engine.proto. */
#define QK_LINK_FORMS(FIRST, NEXT, LAST)                                                           \
  FIRST(AUTO, "auto", 0) NEXT(18, "18", 18) NEXT(12, "12", 12) LAST(8, "8", 8)

#define QK_CHOICE_WORD(name, word, number) word
#define QK_CHOICE_BAR(name, word, number) "|" word
#define QK_CHOICE_COMMA(name, word, number) ", " word
#define QK_CHOICE_OR(name, word, number) " or " word
#define QK_CHOICE_FORM(ROWS) ROWS(QK_CHOICE_WORD, QK_CHOICE_BAR, QK_CHOICE_BAR)
#define QK_CHOICE_LIST(ROWS) ROWS(QK_CHOICE_WORD, QK_CHOICE_COMMA, QK_CHOICE_OR)

#define X(name, word, number) QK_SOLVER_##name = number,
typedef enum qk_solver_choice { QK_SOLVERS(X, X, X) } qk_solver_choice_t;
#undef X
#define X(name, word, number) QK_##name = number,
typedef enum qk_prec { QK_PRECISIONS(X, X, X) } qk_prec_t;
#undef X
#define X(name, word, number) QK_BACKEND_##name = number,
typedef enum qk_backend { QK_BACKENDS(X, X, X) } qk_backend_t;
#undef X

/* The rows of one of them. */
typedef struct qk_choice {
  int n;
  const char *const *word;
  const int *number;
  const char *list; /* of the words, for an error: "auto, cuda or cpu" */
} qk_choice_t;

extern const qk_choice_t qk_choice_solvers, qk_choice_precisions, qk_choice_backends,
    qk_choice_link_forms;

/* The row of a word, or of a number; -1: there is none. */
int qk_choice_find(const qk_choice_t *choice, const char *word);
int qk_choice_of(const qk_choice_t *choice, int number);
/* The word of a number; NULL: there is none. */
const char *qk_choice_word(const qk_choice_t *choice, int number);

#ifdef __cplusplus
}
#endif
#endif
