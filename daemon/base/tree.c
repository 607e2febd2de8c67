#include "daemon/base/tree.h"

#include <stddef.h>

static int height(const qk_node_t *node) {
  return node ? node->height : 0;
}

static void measure(qk_node_t *node) {
  const int a = height(node->side[0]), b = height(node->side[1]);
  node->height = 1 + (a > b ? a : b);
}

/* Below `up` (NULL: at the root) stands `to` (NULL: nothing) where `from` stood. */
static void hang(qk_tree_t *tree, qk_node_t *up, const qk_node_t *from, qk_node_t *to) {
  if (!up)
    tree->root = to;
  else
    up->side[up->side[1] == from] = to;
  if (to) to->up = up;
}

/* The node's child on that side takes its place, and the node stands below it on the other. */
static qk_node_t *rotate(qk_tree_t *tree, qk_node_t *node, int side) {
  qk_node_t *child = node->side[side], *between = child->side[!side];
  hang(tree, node->up, node, child);
  node->side[side] = between;
  if (between) between->up = node;
  child->side[!side] = node;
  node->up = child;
  measure(node);
  measure(child);
  return child;
}

/* From the lowest node below which something has changed up to the root. */
static void balance(qk_tree_t *tree, qk_node_t *node) {
  for (; node; node = node->up) {
    const int lean = height(node->side[1]) - height(node->side[0]), side = lean > 0;
    measure(node);
    if (lean >= -1 && lean <= 1) continue;
    qk_node_t *child = node->side[side];
    if (height(child->side[!side]) > height(child->side[side])) rotate(tree, child, !side);
    node = rotate(tree, node, side);
  }
}

qk_node_t *qk_tree_add(qk_tree_t *tree, qk_node_t *node, qk_tree_order_fn *order) {
  qk_node_t **place = &tree->root, *up = NULL;
  while (*place) {
    up = *place;
    const int before = order(node, up);
    if (before == 0) return up;
    place = &up->side[before > 0];
  }
  *node = (qk_node_t){.up = up, .height = 1};
  *place = node;
  balance(tree, up);
  return NULL;
}

void qk_tree_replace(qk_tree_t *tree, qk_node_t *node, qk_node_t *other) {
  *other = *node;
  hang(tree, node->up, node, other);
  for (int k = 0; k < 2; k++)
    if (other->side[k]) other->side[k]->up = other;
  *node = (qk_node_t){0};
}

void qk_tree_remove(qk_tree_t *tree, qk_node_t *node) {
  qk_node_t *lowest = node->up;
  if (node->side[0] && node->side[1]) {
    qk_node_t *next = node->side[1];
    while (next->side[0]) next = next->side[0];
    lowest = next->up == node ? next : next->up;
    hang(tree, next->up, next, next->side[1]);
    qk_tree_replace(tree, node, next);
  } else {
    hang(tree, lowest, node, node->side[0] ? node->side[0] : node->side[1]);
    *node = (qk_node_t){0};
  }
  balance(tree, lowest);
}

qk_node_t *qk_tree_first(const qk_tree_t *tree) {
  qk_node_t *node = tree->root;
  while (node && node->side[0]) node = node->side[0];
  return node;
}
