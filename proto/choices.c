#include "proto/choices.h"

#include <stddef.h>
#include <string.h>

#define WORD(name, word, number) word,
#define NUMBER(name, word, number) number,
#define ONE(name, word, number) +1
#define CHOICE(ROWS)                                                                               \
  {                                                                                                \
    .n = ROWS(ONE, ONE, ONE), .word = (const char *const[]){ROWS(WORD, WORD, WORD)},               \
    .number = (const int[]){ROWS(NUMBER, NUMBER, NUMBER)}, .list = QK_CHOICE_LIST(ROWS)            \
  }

const qk_choice_t qk_choice_solvers = CHOICE(QK_SOLVERS);
const qk_choice_t qk_choice_precisions = CHOICE(QK_PRECISIONS);
const qk_choice_t qk_choice_backends = CHOICE(QK_BACKENDS);
const qk_choice_t qk_choice_link_forms = CHOICE(QK_LINK_FORMS);

int qk_choice_find(const qk_choice_t *choice, const char *word) {
  for (int i = 0; i < choice->n; i++)
    if (strcmp(choice->word[i], word) == 0) return i;
  return -1;
}

int qk_choice_of(const qk_choice_t *choice, int number) {
  for (int i = 0; i < choice->n; i++)
    if (choice->number[i] == number) return i;
  return -1;
}

const char *qk_choice_word(const qk_choice_t *choice, int number) {
  const int i = qk_choice_of(choice, number);
  return i < 0 ? NULL : choice->word[i];
}
