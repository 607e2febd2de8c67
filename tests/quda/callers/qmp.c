/* A topology, x fastest. */
#include "qmp.h"

static int grid[4], declared;

int QMP_declare_logical_topology(const int dims[], int n) {
  for (int mu = 0; mu < n; mu++) grid[mu] = dims[mu];
  declared = 1;
  return 0;
}
int QMP_logical_topology_is_declared(void) {
  return declared;
}
const int *QMP_get_logical_dimensions(void) {
  return grid;
}
int QMP_get_node_number_from(const int *c) {
  return ((c[3] * grid[2] + c[2]) * grid[1] + c[1]) * grid[0] + c[0];
}
