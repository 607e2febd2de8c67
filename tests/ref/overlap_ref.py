"""Overlap fermions by definition, without the forms that the engine uses."""
import numpy as np

import ref_dirac as ref


class Overlap:
    """D(m) = 1/2 [(1 + m) + (1 - m) g5 sgn(H)], H = g5 D_W(-M) (Neuberger, hep-lat/9707022). What is asked for is the propagator
    q = (D^-1 - 1) b / (1 - m); residual: b - D (b + (1 - m) q).
    sgn is Neuberger's rational function (hep-lat/9806025), of an x in units of `middle`: x / n sum_s 1 / (x^2 cos^2 t_s + sin^2 t_s),
    t_s = pi (s - 1/2) / 2n, which is 1 but for 2 ((1 - x) / (1 + x))^2n. The engine has a Chebyshev series, and projects eigenvectors."""

    def __init__(self, u, bc, mass, M, middle=1.8, poles=64, **engine):
        self.wilson = ref.WilsonClover(u, -M, 0, bc)
        self.mass, self.middle, self.shape, self.n = mass, middle, self.wilson.shape, self.wilson.n
        self.angle = np.pi * (np.arange(poles) + 0.5) / (2 * poles)
        self.g5 = np.diag(ref.GAMMA5).real[:, None]

    def h(self, psi):
        return self.g5 * self.wilson.apply(psi) / self.middle

    def inverses(self, b, shifts, tol=1e-14, most=2000):
        """(H^2 + shift)^-1 b for ascending shifts, by one Krylov space (Jegerlehner, hep-lat/9612014): z is the residual of a shift over that of the first."""
        shifts = (shifts - shifts[0])[:, None]
        b = b.reshape(1, -1)
        x, p, r = np.zeros((len(shifts), b.size), complex), np.repeat(b, len(shifts), 0), b
        z, z_old = np.ones_like(shifts), np.ones_like(shifts)
        alpha_old, beta, rr = 1.0, 0.0, np.vdot(b, b).real
        for _ in range(most):
            v = p[0].reshape(self.shape)
            ap = self.h(self.h(v)).reshape(1, -1) + self.first * p[:1]
            alpha = rr / np.vdot(p[0], ap[0]).real
            z, z_old = z * z_old * alpha_old / (alpha * beta * (z_old - z) + z_old * alpha_old * (1 + alpha * shifts)), z
            z = np.maximum(z, 1e-150)  # long converged
            x, r = x + alpha * z / z_old * p, r - alpha * ap
            before, rr = rr, np.vdot(r, r).real
            beta, alpha_old = rr / before, alpha
            p = z * r + beta * (z / z_old)**2 * p
            if rr < tol**2 * np.vdot(b, b).real:
                return x.reshape((-1,) + self.shape)
        raise ArithmeticError('no convergence')

    def sign(self, psi):
        shifts = np.tan(self.angle)**2
        self.first = shifts[0]
        x = self.inverses(psi, shifts)
        return self.h(np.tensordot(1 / np.cos(self.angle)**2, x, 1)) / len(shifts)

    def apply(self, psi):
        psi = psi.reshape(self.shape)
        return 0.5 * ((1 + self.mass) * psi + (1 - self.mass) * self.g5 * self.sign(psi))

    def residual(self, b, q):
        return b - self.apply(b + (1 - self.mass) * q.reshape(self.shape))
