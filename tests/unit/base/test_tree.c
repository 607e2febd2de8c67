/* The tree by itself: order, balance and links after any adds and removals. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/base/list.h"
#include "daemon/base/tree.h"

enum { N = 2000 };

typedef struct number {
  qk_node_t node;
  int value;
} number_t;

static int value_of(const qk_node_t *node) {
  return QK_HOLDER(node, const number_t, node)->value;
}

static int by_value(const qk_node_t *a, const qk_node_t *b) {
  return value_of(a) - value_of(b);
}

/* The height of what is below node, whose values rise from above *last. */
static int check(const qk_node_t *node, const qk_node_t *up, int *last, int *count) {
  if (!node) return 0;
  cr_assert_eq(node->up, up);
  const int a = check(node->side[0], node, last, count);
  cr_assert_gt(value_of(node), *last);
  *last = value_of(node);
  ++*count;
  const int b = check(node->side[1], node, last, count);
  cr_assert(abs(a - b) <= 1, "balanced: %d and %d", a, b);
  cr_assert_eq(node->height, 1 + (a > b ? a : b));
  return node->height;
}

static void check_tree(const qk_tree_t *tree, int wanted) {
  int last = -1, count = 0;
  const int height = check(tree->root, NULL, &last, &count);
  cr_assert_eq(count, wanted);
  cr_assert_leq(height, 1.4405 * log2(count + 2));
  cr_assert(!tree->root == !qk_tree_first(tree));
}

static void fill(qk_tree_t *tree, number_t number[N], int begin, int step) {
  for (int i = 0; i < N; i++) {
    number[i] = (number_t){.value = begin + step * i};
    cr_assert_null(qk_tree_add(tree, &number[i].node, by_value));
  }
}

Test(tree, is_as_low_where_numbers_rise_or_fall) {
  for (int step = -1; step <= 1; step += 2) {
    qk_tree_t tree = {0};
    static number_t number[N];
    fill(&tree, number, step < 0 ? N : 0, step);
    check_tree(&tree, N);
    cr_assert_eq(value_of(qk_tree_first(&tree)), step < 0 ? 1 : 0);
    for (int left = N; left > 0; left--) {
      check_tree(&tree, left);
      qk_tree_remove(&tree, qk_tree_first(&tree));
    }
    cr_assert_null(qk_tree_first(&tree));
  }
}

Test(tree, one_of_the_same_rank_stays_out) {
  qk_tree_t tree = {0};
  number_t a = {.value = 1}, b = {.value = 1}, c = {.value = 0};
  cr_assert_null(qk_tree_add(&tree, &a.node, by_value));
  cr_assert_eq(qk_tree_add(&tree, &b.node, by_value), &a.node);
  cr_assert_eq(b.node.height, 0);
  cr_assert_null(qk_tree_add(&tree, &c.node, by_value));
  qk_tree_replace(&tree, &a.node, &b.node);
  cr_assert_eq(a.node.height, 0);
  check_tree(&tree, 2);
  qk_tree_remove(&tree, &c.node);
  cr_assert_eq(qk_tree_first(&tree), &b.node);
  qk_tree_remove(&tree, &b.node);
  check_tree(&tree, 0);
}

Test(tree, holds_what_was_put_in_and_not_taken_out) {
  qk_tree_t tree = {0};
  static number_t number[N];
  int count = 0;
  unsigned state = 1;
  for (int i = 0; i < N; i++) number[i].value = i;
  for (int round = 0; round < 20000; round++) {
    state = state * 1103515245u + 12345u;
    number_t *x = &number[(state >> 8) % N];
    if (x->node.height == 0) {
      cr_assert_null(qk_tree_add(&tree, &x->node, by_value));
      count++;
    } else {
      qk_tree_remove(&tree, &x->node);
      cr_assert_eq(x->node.height, 0);
      count--;
    }
    if (round % 50 == 0) check_tree(&tree, count);
  }
  check_tree(&tree, count);
}
