#include "daemon/engine/tune/book.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---------------------------------------------------------------------------------- */

void qk_tune_book_fini(qk_tune_book_t *book) {
  free(book->of);
  free(book->record);
  *book = (qk_tune_book_t){0};
}

/* Room for one more of n. */
static bool grow(void **array, int n, int *room, size_t bytes) {
  if (n < *room) return true;
  const int wanted = *room ? 2 * *room : 16;
  void *larger = realloc(*array, (size_t)wanted * bytes);
  if (!larger) return false;
  *array = larger;
  *room = wanted;
  return true;
}

bool qk_tune_case_is(const qk_tune_case_t *a, const qk_tune_case_t *b) {
  return a->links == b->links && memcmp(a->dims, b->dims, sizeof a->dims) == 0 &&
         memcmp(a->grid, b->grid, sizeof a->grid) == 0 && strcmp(a->op, b->op) == 0 &&
         a->boundary_t == b->boundary_t && a->tol == b->tol && a->slots == b->slots &&
         a->threads == b->threads && strcmp(a->backend, b->backend) == 0 &&
         strcmp(a->device, b->device) == 0 && strcmp(a->precision, b->precision) == 0 &&
         strcmp(a->version, b->version) == 0;
}

int qk_tune_book_case(qk_tune_book_t *book, const qk_tune_case_t *of) {
  for (int i = 0; i < book->ncase; i++)
    if (qk_tune_case_is(&book->of[i], of)) return i;
  if (!grow((void **)&book->of, book->ncase, &book->case_room, sizeof *book->of)) return -1;
  book->of[book->ncase] = *of;
  return book->ncase++;
}

bool qk_tune_book_add(qk_tune_book_t *book, const qk_tune_record_t *record) {
  if (!grow((void **)&book->record, book->nrecord, &book->record_room, sizeof *book->record))
    return false;
  book->record[book->nrecord++] = *record;
  return true;
}

const qk_tune_record_t *qk_tune_book_find(const qk_tune_book_t *book, int of,
                                          const char *settings) {
  for (int i = book->nrecord - 1; i >= 0; i--)
    if (book->record[i].of == of && strcmp(book->record[i].settings, settings) == 0)
      return &book->record[i];
  return NULL;
}

const qk_tune_record_t *qk_tune_book_best(const qk_tune_book_t *book, int of, double solves) {
  const qk_tune_record_t *best = NULL;
  double least = INFINITY;
  for (int i = 0; i < book->nrecord; i++) {
    const qk_tune_record_t *r = &book->record[i];
    const double cost = qk_tune_cost(r->seconds, r->setup_seconds, solves);
    if (r->of != of || r->outcome != QK_TUNE_GOOD || !(cost < least)) continue;
    least = cost;
    best = r;
  }
  return best;
}

/* ---- distance -------------------------------------------------------------------------------- */

/* NaN: it has none, or is no operator of ours. */
static double kappa_of(const qk_tune_case_t *c) {
  qk_values_t values;
  char why[QK_WHY];
  return qk_values_parse(&values, c->op, why) && qk_values_kappa(&values) > 0
             ? qk_values_kappa(&values)
             : NAN;
}

static bool same_action(const char *a, const char *b) {
  const size_t n = strcspn(a, ";");
  return n == strcspn(b, ";") && strncmp(a, b, n) == 0;
}

double qk_tune_case_distance(const qk_tune_case_t *a, const qk_tune_case_t *b) {
  double d = 0;
  if (qk_tune_case_is(a, b)) return 0;
  if (strcmp(a->backend, b->backend) != 0) d += 100;
  if (!same_action(a->op, b->op)) d += 50;
  if (strcmp(a->device, b->device) != 0) d += 10;
  if (memcmp(a->grid, b->grid, sizeof a->grid) != 0) d += 5;
  for (int mu = 0; mu < 4; mu++) d += 4 * fabs(log((double)a->dims[mu] / b->dims[mu]));
  const double far = 20 * fabs(log(kappa_of(a) / kappa_of(b)));
  d += isfinite(far) ? far : 1;
  d += 0.5 * fabs(log((double)a->slots / b->slots));
  return d + 0.01; /* something does differ */
}
