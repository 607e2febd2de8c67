"""Smearing of links and sources, by definition: smear_ref.py SPEC XxYxZxT LINKS [SOURCE] OUT

SPEC: ape:ALPHA,STEPS[,4d]  stout:RHO,STEPS[,4d]  hyp:A1,A2,A3,STEPS  gauss:ALPHA,STEPS  best
Reads links [t][z][y][x][mu][3][3] and, for gauss, a source [t][z][y][x][spin][colour], complex double, and
writes the smeared links or source in the same order. APE and stout act on U_x, U_y, U_z with staples in
space, with 4d on all links with all staples. best: links may be any matrices A; what is written is the
largest Re tr(V^+ A) over V in SU(3) of each, as complex numbers.

  projection  the V of SU(3) with the largest Re tr(V^+ A): one SU(2) subgroup after the other, each to its
              best, from the nearest unitary matrix divided by the cube root of its determinant, until
              nothing changes (N. Cabibbo, E. Marinari, Phys. Lett. B 119 (1982) 387)
"""
import sys
import os
import numpy as np
import scipy.linalg
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ref_dirac import dag, shift  # noqa: E402


def project(a):
    """Nearest SU(3) matrices to a[..., 3, 3]."""
    w, _, v = np.linalg.svd(a)
    u = w @ v
    u = u * np.exp(-1j * np.angle(np.linalg.det(u)) / 3)[..., None, None]
    for _ in range(3000):
        before = u
        for i, j in ((0, 1), (0, 2), (1, 2)):
            b = a @ dag(u)
            p, q = b[..., i, i] + b[..., j, j].conj(), b[..., i, j] - b[..., j, i].conj()
            n = np.sqrt(np.abs(p)**2 + np.abs(q)**2)
            r = np.zeros_like(u)
            r[..., range(3), range(3)] = 1
            r[..., i, i], r[..., j, j], r[..., i, j], r[..., j, i] = p / n, (p / n).conj(), q / n, -(q / n).conj()
            u = r @ u
        if np.abs(u - before).max() < 1e-15:
            break
    return u


def best_trace(a):
    """Largest Re tr(V^+ A) over SU(3): of singular values and phases, these on a grid refined six times."""
    w, s, v = np.linalg.svd(a)
    theta, centre, width = np.angle(np.linalg.det(w @ v)), np.zeros(2), np.pi
    for _ in range(6):
        f = np.linspace(-width, width, 81)
        p, q = centre[0] + f[:, None], centre[1] + f[None, :]
        value = s[0] * np.cos(p) + s[1] * np.cos(q) + s[2] * np.cos(theta - p - q)
        i, j = np.unravel_index(value.argmax(), value.shape)
        centre, width = np.array([p[i, 0], q[0, j]]), width / 10
    return value.max()


def staples(side, top, mu, nu):
    """Both staples of direction mu in the plane of nu: side = S_nu, top = T_mu."""
    up = side @ shift(top, nu) @ dag(shift(side, mu))
    back = shift(side, nu, -1)
    return up + dag(back) @ shift(top, nu, -1) @ shift(back, mu)


def directions(four):
    return range(4) if four else range(3)


def ape(u, alpha, four):
    d = directions(four)
    out = u.copy()
    for mu in d:
        s = sum(staples(u[nu], u[mu], mu, nu) for nu in d if nu != mu)
        out[mu] = project((1 - alpha) * u[mu] + alpha / (2 * (len(d) - 1)) * s)
    return out


def exponential(c, u):
    """C. Morningstar, M. Peardon, hep-lat/0311018, eqs. 1-3: of the staples c, times u."""
    omega = c @ dag(u)
    q = 0.5j * (dag(omega) - omega)
    q = q - np.trace(q, axis1=-2, axis2=-1)[..., None, None] / 3 * np.eye(3)
    return np.array([scipy.linalg.expm(1j * m) for m in q.reshape(-1, 3, 3)]).reshape(q.shape) @ u


def stout(u, rho, four):
    d = directions(four)
    out = u.copy()
    for mu in d:
        out[mu] = exponential(rho * sum(staples(u[nu], u[mu], mu, nu) for nu in d if nu != mu), u[mu])
    return out


def hyp(u, a1, a2, a3, step=lambda u, alpha, s: project((1 - alpha) * u + alpha * s)):
    """A. Hasenfratz, F. Knechtli, hep-lat/0103029, eqs. 1-3, each link of each level from its definition."""
    level3, level2 = {}, {}
    for mu in range(4):
        for nu in range(4):
            for rho in range(4):
                if len({mu, nu, rho}) == 3:
                    s = sum(staples(u[eta], u[mu], mu, eta) for eta in range(4) if eta not in (mu, nu, rho))
                    level3[mu, nu, rho] = step(u[mu], a3, s / 2)
    for mu in range(4):
        for nu in range(4):
            if mu != nu:
                s = sum(staples(level3[rho, nu, mu], level3[mu, rho, nu], mu, rho)
                        for rho in range(4) if rho not in (mu, nu))
                level2[mu, nu] = step(u[mu], a2, s / 4)
    return np.stack([step(u[mu], a1, sum(staples(level2[nu, mu], level2[mu, nu], mu, nu) for nu in range(4) if nu != mu) / 6)
                     for mu in range(4)])


def hex_links(u, *alpha):
    """S. Capitani, S. Durr, C. Hoelbling, hep-lat/0607006: HYP with exponentials of thin links in place of projections."""
    return hyp(u, *alpha, step=lambda u, a, s: exponential(a * s, u))


def gauss(u, psi, alpha):
    s = np.zeros_like(psi)
    for j in range(3):
        back = dag(shift(u[j], j, -1))
        s += np.einsum('...ab,...sb->...sa', u[j], shift(psi, j))
        s += np.einsum('...ab,...sb->...sa', back, shift(psi, j, -1))
    return (psi + alpha * s) / (1 + 6 * alpha)


def smear_links(u, spec):
    kind, rest = spec.split(':')
    words = rest.split(',')
    four = words[-1] == '4d'
    numbers = [float(w) for w in words[:-1 if four else None]]
    for _ in range(int(numbers[-1])):
        u = hyp(u, *numbers[:3]) if kind == 'hyp' else {'ape': ape, 'stout': stout}[kind](u, numbers[0], four)
    return u


def links_of(u, text):
    """What hop and clover term are made of, by the parameter "links" of an action."""
    def one(text):
        kind, *rest = text.split(':')
        if kind == 'thin':
            return u
        out, numbers = u, [float(w) for w in rest[0].split(',')]
        for _ in range(int(numbers[-1])):
            if kind in ('hyp', 'hex'):
                out = {'hyp': hyp, 'hex': hex_links}[kind](out, *numbers[:3])
            else:
                out = {'ape': ape, 'stout': stout}[kind](out, numbers[0], len(rest) == 1)
        return out
    if text.startswith('slinc:'):
        text = text.replace('slinc', 'stout') + '/thin'
    first, *second = text.split('/')
    hop = one(first)
    return hop, one(second[0]) if second else hop


def smear_source(u, psi, spec):
    alpha, steps = spec.split(':')[1].split(',')
    for _ in range(int(steps)):
        psi = gauss(u, psi, float(alpha))
    return psi


def main(argv):
    spec, dims, links = argv[:3]
    sites = tuple(map(int, dims.split('x')))[::-1]
    u = np.moveaxis(np.fromfile(links, '<c16').reshape(sites + (4, 3, 3)), 4, 0)
    if spec == 'best':
        out = np.array([best_trace(a) for a in np.moveaxis(u, 0, 4).reshape(-1, 3, 3)])
    elif spec.startswith('gauss:'):
        out = smear_source(u, np.fromfile(argv[3], '<c16').reshape(sites + (4, 3)), spec)
    else:
        out = np.moveaxis(smear_links(u, spec), 0, 4)
    np.ascontiguousarray(out).astype('<c16').tofile(argv[-1])


if __name__ == '__main__':
    main(sys.argv[1:])
