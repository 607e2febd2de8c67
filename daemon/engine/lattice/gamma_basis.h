/*
 * gamma_basis.h: gamma bases of spinors in wire order. Fields on the device are in the
 * DeGrand-Rossi basis.
 *
 * In blocks of 2x2, with Pauli matrices s1, s2, s3 (gx, gy, gz, gt hermitian,
 * gmu gnu + gnu gmu = 2 delta_mu,nu):
 *
 *   DeGrand-Rossi  gx = ((0, i s1), (-i s1, 0))   gy = ((0, -i s2), (i s2, 0))
 *                  gz = ((0, i s3), (-i s3, 0))   gt = ((0, 1), (1, 0))
 *   UKQCD          gk = ((0, i sk), (-i sk, 0))   gt = ((1, 0), (0, -1))
 *   Dirac-Pauli    gk = ((0, -i sk), (i sk, 0))   gt = ((1, 0), (0, -1))
 *   openQCD        gk = ((0, -i sk), (i sk, 0))   gt = ((0, -1), (-1, 0))
 *
 * In DeGrand-Rossi gx gy gz gt is diag(1, 1, -1, -1). openQCD defines gamma_5 = gt gx gy gz, with
 * time first; it has the same form, and so the opposite sign.
 *
 * A spinor in basis X becomes psi_DR = T psi_X with T unitary and g_DR = T g_X T^+. T is fixed up
 * to a phase by this; the phase is that of the references below.
 *
 * References: QDP++ manual, appendix on gamma matrices (DeGrand-Rossi); Chroma
 * lib/util/ferm/diractodr.cc (Dirac-Pauli); QUDA include/enum_quda.h (UKQCD); openQCD
 * doc/dirac.pdf, section 2 (openQCD).
 *
 * Pure functions.
 */
#ifndef QK_ENGINE_GAMMA_BASIS_H
#define QK_ENGINE_GAMMA_BASIS_H

/* Numbers as in quark.proto. */
typedef enum qk_gamma_basis {
  QK_BASIS_DEGRAND_ROSSI,
  QK_BASIS_UKQCD,
  QK_BASIS_DIRAC_PAULI,
  QK_BASIS_OPENQCD,
  QK_BASIS_COUNT
} qk_gamma_basis_t;

/* "degrand-rossi", ... */
const char *qk_gamma_basis_name(qk_gamma_basis_t basis);

/* T: from the basis to DeGrand-Rossi, for rhs_import. Complex 4x4, row by row. */
void qk_gamma_basis_import(qk_gamma_basis_t basis, double matrix[4][4][2]);
/* T^+: from DeGrand-Rossi to the basis, for rhs_export. */
void qk_gamma_basis_export(qk_gamma_basis_t basis, double matrix[4][4][2]);

#endif
