/*
 * qmp.h: what of QMP a libquda asks for; as in QMP a static library, whose functions the program
 * does not export by itself.
 */
#ifndef QUDA_CALLERS_QMP_H
#define QUDA_CALLERS_QMP_H

int QMP_declare_logical_topology(const int dims[], int n);
int QMP_logical_topology_is_declared(void);
const int *QMP_get_logical_dimensions(void);
int QMP_get_node_number_from(const int *coord);

#endif
