/*
 * tree.h: intrusive search trees that stay balanced, whatever the order of insertion (AVL: G. M.
 * Adel'son-Vel'skii and E. M. Landis, Soviet Math. Dokl. 3 (1962) 1259). All calls but
 * qk_tree_replace take O(log n). Nothing is allocated. Trees begin as zeros.
 */
#ifndef QK_BASE_TREE_H
#define QK_BASE_TREE_H

#include <stdbool.h>

typedef struct qk_node {
  struct qk_node *up, *side[2]; /* side[0]: what goes before it */
  int height;                   /* of the tree below it, with itself; 0: it is in none */
} qk_node_t;

typedef struct qk_tree {
  qk_node_t *root;
} qk_tree_t;

/* Less than 0: a goes before b; 0: they rank alike. A total preorder. */
typedef int qk_tree_order_fn(const qk_node_t *a, const qk_node_t *b);

/* Puts the node, which is in no tree, into this one: NULL. Where one is there that ranks alike,
 * returns that and puts nothing in. */
qk_node_t *qk_tree_add(qk_tree_t *tree, qk_node_t *node, qk_tree_order_fn *order);
void qk_tree_remove(qk_tree_t *tree, qk_node_t *node);
/* other, which is in no tree and ranks as node does, takes its place. */
void qk_tree_replace(qk_tree_t *tree, qk_node_t *node, qk_node_t *other);
/* What goes before all others; NULL where there is nothing. */
qk_node_t *qk_tree_first(const qk_tree_t *tree);

#endif
