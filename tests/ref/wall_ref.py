"""Domain wall fermions beyond the quark: the conserved axial current, and dense matrices of small lattices. op: ref_dirac.DomainWall.

Fields of five dimensions are psi[s, t, z, y, x, spin, colour]; dense matrices act on them flat, a vector in each column.
"""
import numpy as np

from ref_dirac import GAMMA, GAMMA5, shift


def surface(op, eta):
    """P+ eta on slice 0, P- eta on slice Ls-1."""
    e = np.zeros((op.ls,) + op.shape, complex)
    e[0] += op.plus * eta
    e[-1] += (1 - op.plus) * eta
    return e


def has_axial(op):
    """Whether the current is defined: Ls is even, b and c are real and the same on all slices."""
    return op.ls % 2 == 0 and np.ptp(op.b) == 0 == np.ptp(op.c) and not op.b.imag.any() and not op.c.imag.any()


def axial_current(op, psi, eta, mu):
    """Conserved axial current of M psi = enter(eta) at each site, with the pseudoscalar source eta, spins and colours summed over. With
    b, c real and the same on all slices, and phi = M'^-1 B5^-1 e = (B5 psi + c e) / (b + c), B5 = b + c Delta, e = surface(eta):

        A_mu(x) = (b + c) sum_s sgn(s - (Ls-1)/2) Re [ phi_(Ls-1-s)(x)^+    g5 (g_mu - 1)/2 U_mu(x)   phi_s(x+mu)
                                                     + phi_(Ls-1-s)(x+mu)^+ g5 (g_mu + 1)/2 U_mu(x)^+ phi_s(x) ]
        sum_mu w_mu (A_mu(x) - A_mu(x-mu)) = 2 m |q|^2 + 2 |mid|^2 - 2 Re eta^+ q

    Shamir: phi = psi (Furman, Shamir, hep-lat/9405004)."""
    b, c = op.b[0], op.c[0]
    assert has_axial(op)
    phi = (b * psi + c * op.delta(psi) + c * surface(op, eta)) / (b + c)
    link = op.wilson.fwd[mu] / op.wilson.hop[mu]                          # transposed, with the boundary factor
    sign = np.where(np.arange(op.ls) < op.ls // 2, -1, 1)
    a = np.zeros(op.shape[:4])
    for s in range(op.ls):
        other, ahead = phi[op.ls - 1 - s], shift(phi[s], mu) @ link       # U_mu(x) phi_s(x+mu)
        other_ahead = shift(other, mu) @ link
        first = np.sum(other.conj() * (GAMMA5 @ (GAMMA[mu] - np.eye(4)) / 2 @ ahead), (-2, -1))
        second = np.sum(other_ahead.conj() * (GAMMA5 @ (GAMMA[mu] + np.eye(4)) / 2 @ phi[s]), (-2, -1))
        a += sign[s] * (first + second).real
    return (b + c).real * a


def divergence(op, currents):
    """sum_mu w_mu (A_mu(x) - A_mu(x-mu))"""
    return sum(w * (a - shift(a, mu, -1)) for mu, (w, a) in enumerate(zip(op.wilson.hop, currents)))


def size(f):
    """|f|^2 at each site."""
    return np.sum(abs(f) ** 2, (-2, -1))


def ward(op, psi, eta):
    """What the divergence of the axial current is."""
    q = op.leave(psi)
    return 2 * op.mass * size(q) + 2 * size(op.midpoint(psi)) - 2 * np.sum(eta.conj() * q, (-2, -1)).real


def dense_wilson(op):
    """D = D_W(-M5)"""
    n = op.wilson.n
    return np.stack([op.wilson.apply(e).ravel() for e in np.eye(n, dtype=complex)], -1)


def solve(op, eta, tol):
    """psi of M psi = enter(eta), with a dense D, which is faster on small lattices."""
    d = dense_wilson(op)
    adjoint, plain = d.conj().T.copy(), op.d
    op.d = lambda psi, dagger=False: (psi.reshape(op.ls, -1) @ (adjoint if dagger else d).T).reshape(psi.shape)
    try:
        return op.solve5(op.enter(eta), tol)
    finally:
        op.d = plain


def dense_gamma5(op):
    """Its diagonal."""
    return np.broadcast_to(np.diag(GAMMA5).real[:, None], op.shape).ravel()


def dense(op, d):
    """M of the definition, d = dense_wilson(op)."""
    behind, ahead = np.eye(op.ls, k=-1), np.eye(op.ls, k=1)
    behind[0, -1] -= op.mass
    ahead[-1, 0] -= op.mass
    plus, one = np.diag((1 + dense_gamma5(op)) / 2), np.eye(len(d) * op.ls)
    delta = np.kron(behind, plus) + np.kron(ahead, np.eye(len(d)) - plus)
    return np.kron(np.diag(op.b), d) + one + (np.kron(np.diag(op.c), d) - one) @ delta


def scaled(omega, b, c):
    """b_s, c_s with b_s + c_s = omega_s (b + c), b_s - c_s = b - c."""
    omega = np.asarray(omega)
    return ((omega + 1) * b + (omega - 1) * c) / 2, ((omega - 1) * b + (omega + 1) * c) / 2


def overlap_propagator(op, d, omega, b, c):
    """(D_ov^-1 - 1) / (1 - m), what the quark's propagator is at this Ls, exactly; weights scaled(omega, b, c):
    D_ov = [(1 + m) + (1 - m) g5 eps(H)] / 2,  H = g5 (b + c) D / (2 + (b - c) D),
    eps = [prod (1 + omega_s H) - prod (1 - omega_s H)] / [prod (1 + omega_s H) + prod (1 - omega_s H)]"""
    g5, one = dense_gamma5(op)[:, None], np.eye(len(d))
    h = g5 * ((b + c) * d @ np.linalg.inv(2 * one + (b - c) * d))
    w, v = np.linalg.eigh((h + h.conj().T) / 2)
    up, down = (np.prod([1 + sign * o * w for o in omega], axis=0) for sign in (1, -1))
    eps = (v * ((up - down) / (up + down))) @ v.conj().T
    d_ov = ((1 + op.mass) * one + (1 - op.mass) * g5 * eps) / 2
    return (np.linalg.inv(d_ov) - one) / (1 - op.mass)
