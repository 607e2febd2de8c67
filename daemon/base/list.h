/*
 * list.h: intrusive doubly linked lists. The head is a link too; a link that is in no list points
 * at itself. Nothing is allocated.
 */
#ifndef QK_BASE_LIST_H
#define QK_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct qk_link {
  struct qk_link *prev, *next;
} qk_link_t;

/* The struct of `type` that holds `link` as its `member`. */
#define QK_HOLDER(link, type, member) ((type *)((char *)(link)-offsetof(type, member)))

static inline void qk_link_init(qk_link_t *link) {
  link->prev = link->next = link;
}

static inline bool qk_link_alone(const qk_link_t *link) {
  return link->next == link;
}

/* Out of whatever list it is in; no effect on a link that is alone. */
static inline void qk_link_remove(qk_link_t *link) {
  link->prev->next = link->next;
  link->next->prev = link->prev;
  qk_link_init(link);
}

/* To the end of the list; out of the one it was in. */
static inline void qk_list_append(qk_link_t *head, qk_link_t *link) {
  qk_link_remove(link);
  link->prev = head->prev;
  link->next = head;
  head->prev->next = link;
  head->prev = link;
}

#endif
