"""Overlap fermions by definition, without the forms that the engine uses."""
import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh

import ref_dirac as ref


def matrix(op):
    """A Wilson operator as a sparse matrix, which is ten times as fast as its fields."""
    site = np.arange(op.n // 12).reshape(op.shape[:4])
    whole = sp.kron(sp.diags(np.broadcast_to(op.number[..., 0, 0], op.shape[:4]).ravel()), sp.identity(12), format='csr')
    for mu in range(ref.ND):
        for sign, link in ((-1, op.fwd[mu]), (+1, op.bwd[mu])):
            block = np.einsum('st,...ba->...satb', np.eye(4) + sign * ref.GAMMA[mu], link).reshape(-1, 12, 12)
            there = ref.shift(site, mu, -sign).ravel()
            hop = sp.csr_matrix(sp.bsr_matrix((block, there, np.arange(len(there) + 1)), shape=whole.shape))
            hop.eliminate_zeros()
            whole = whole - 0.5 * hop
    return whole.tocsr()


class Overlap:
    """D(m) = 1/2 [(1 + m) + (1 - m) g5 sgn(H)], H = g5 D_W(-M) (Neuberger, hep-lat/9707022). What is asked for is the propagator
    q = (D^-1 - 1) b / (1 - m); residual: b - D (b + (1 - m) q).
    sgn is Neuberger's rational function (hep-lat/9806025), of an x in units of `middle`: x / n sum_s 1 / (x^2 cos^2 t_s + sin^2 t_s),
    t_s = pi (s - 1/2) / 2n, which is 1 but for 2 ((1 - x) / (1 + x))^2n. The engine has a Chebyshev series.
    project: of rough links, as many eigenvectors of H are projected first, and middle and poles follow from what is left (project_lowest)."""

    def __init__(self, u, bc, mass, M, middle=1.8, poles=64, project=0, edge=0.5, **engine):
        self.wilson = ref.WilsonClover(u, -M, 0, bc)
        self.mass, self.middle, self.shape, self.n = mass, middle, self.wilson.shape, self.wilson.n
        self.g5 = np.diag(ref.GAMMA5).real[:, None]
        self.matrix, self.vectors, self.most = None, None, 2000
        if project:
            self.matrix = matrix(self.wilson)
            poles = self.project_lowest(project, 8 - M, edge)
        self.angle = np.pi * (np.arange(poles) + 0.5) / (2 * poles)

    def h(self, psi):
        d = self.wilson.apply(psi) if self.matrix is None else (self.matrix @ psi.ravel()).reshape(self.shape)
        return self.g5 * d / self.middle

    def project_lowest(self, n, norm, edge, degree=50, error=1e-13):
        """The n lowest |h| by Arnoldi's iteration (scipy) on T_degree, which is large for h^2 below edge^2 and small from there to the norm of H;
        then Rayleigh and Ritz with H. Returns the poles that what is left needs."""
        self.middle = 1
        a, b = edge**2, norm**2
        flat = lambda v: self.h(v.reshape(self.shape)).ravel()
        y = lambda v: (2 * flat(flat(v)) - (a + b) * v) / (b - a)

        def filtered(v):
            old, now = v.ravel(), y(v.ravel())
            for _ in range(degree - 1):
                old, now = now, 2 * y(now) - old
            return now
        one_more = n + 1
        start = np.random.default_rng(1).normal(size=self.n) + 0j
        _, v = eigsh(LinearOperator((self.n, self.n), filtered, dtype=complex), one_more, which='LA', ncv=2 * n + 20, v0=start, tol=1e-13)
        hv = np.stack([flat(c) for c in v.T], 1)
        w, c = np.linalg.eigh(v.conj().T @ hv)
        order = np.argsort(abs(w))
        self.values, c = w[order], c[:, order]
        self.off = np.linalg.norm(hv @ c - (v @ c) * self.values, axis=0)  # of each vector
        self.vectors = (v @ c)[:, :n]
        least = 0.99 * abs(self.values[n])
        self.middle = np.sqrt(least * norm)
        self.most = 20000
        return int(np.log(2 / error) / 4 * np.sqrt(norm / least)) + 1

    def inverses(self, b, shifts, tol=1e-14):
        """(H^2 + shift)^-1 b for ascending shifts, by one Krylov space (Jegerlehner, hep-lat/9612014): z is the residual of a shift over that of the first.
        Large shifts are the first to end."""
        shifts = (shifts - shifts[0])[:, None]
        b = b.reshape(1, -1)
        x, p, r = np.zeros((len(shifts), b.size), complex), np.repeat(b, len(shifts), 0), b
        z, z_old = np.ones_like(shifts), np.ones_like(shifts)
        alpha_old, beta, rr, n = 1.0, 0.0, np.vdot(b, b).real, len(shifts)
        for _ in range(self.most):
            v = p[0].reshape(self.shape)
            ap = self.h(self.h(v)).reshape(1, -1) + self.first * p[:1]
            alpha = rr / np.vdot(p[0], ap[0]).real
            now, old = z[:n].copy(), z_old[:n]
            z[:n] = now * old * alpha_old / (alpha * beta * (old - now) + old * alpha_old * (1 + alpha * shifts[:n]))
            z_old[:n] = now
            for k in range(n):
                x[k] += alpha * z[k] / z_old[k] * p[k]
            r = r - alpha * ap
            before, rr = rr, np.vdot(r, r).real
            beta, alpha_old = rr / before, alpha
            while n > 1 and z[n - 1]**2 * rr < (1e-3 * tol)**2 * np.vdot(b, b).real:
                n -= 1
            for k in range(n):
                p[k] *= beta * (z[k] / z_old[k])**2
                p[k] += (z[k] * r)[0]
            if rr < tol**2 * np.vdot(b, b).real:
                return x.reshape((-1,) + self.shape)
        raise ArithmeticError('no convergence')

    def others(self, psi):
        """Without its part in the space of the eigenvectors."""
        return psi - (self.vectors @ (self.vectors.conj().T @ psi.ravel())).reshape(self.shape)

    def sign(self, psi):
        shifts = np.tan(self.angle)**2
        self.first = shifts[0]
        rest = psi if self.vectors is None else self.others(psi)
        x = self.inverses(rest, shifts)
        rest = self.h(np.tensordot(1 / np.cos(self.angle)**2, x, 1)) / len(shifts)
        if self.vectors is None:
            return rest
        c = np.sign(self.values[:len(self.vectors.T)]) * (self.vectors.conj().T @ psi.ravel())
        return self.others(rest) + (self.vectors @ c).reshape(self.shape)

    def apply(self, psi):
        psi = psi.reshape(self.shape)
        return 0.5 * ((1 + self.mass) * psi + (1 - self.mass) * self.g5 * self.sign(psi))

    def residual(self, b, q):
        return b - self.apply(b + (1 - self.mass) * q.reshape(self.shape))
