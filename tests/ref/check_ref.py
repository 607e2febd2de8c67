"""Checks of ref_dirac.py that need no outside data: run it, every line must say ok."""
import os
import sys
import numpy as np
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ref_dirac import *

rng = np.random.default_rng(1)
bad = 0


def report(name, err, tol):
    global bad
    bad += not err <= tol
    print('%-66s %.2e  %s' % (name, err, 'ok' if err <= tol else 'FAIL'))


def random_su3(*shape):
    z = rng.normal(size=shape + (3, 3)) + 1j * rng.normal(size=shape + (3, 3))
    return reunitarise(z)


g = GAMMA
report('gamma algebra', max(np.abs(g[a] @ g[b] + g[b] @ g[a] - 2 * (a == b) * np.eye(4)).max()
                            for a in range(4) for b in range(4)), 0)
report('gamma5 = diag(1,1,-1,-1)', np.abs(GAMMA5 - np.diag([1, 1, -1, -1])).max(), 0)

lat = (6, 4, 4, 8)                                                   # t,z,y,x, all different roles
u = random_su3(4, *lat)
u = reunitarise(0.6 * np.eye(3) + 0.4 * u)                           # not too rough
rand = lambda op: rng.normal(size=op.shape) + 1j * rng.normal(size=op.shape)
for bc in (PERIODIC, ANTIPERIODIC):
    op = WilsonClover(u, -0.2, 1.3, bc)
    a, b = rand(op), rand(op)
    report('gamma5 hermiticity, bc %s' % (bc,), abs(np.vdot(a, op.apply(b)) - np.vdot(op.apply_dagger(a), b)) / abs(np.vdot(a, b)), 1e-11)
c = clover_term(u, 1.3)
report('clover term hermitian', np.abs(c - dag(c)).max(), 1e-14)
report('clover term traceless in spin within a chirality',
       np.abs(np.einsum('...iaib->...ab', c.reshape(lat + (2, 2, 3, 2, 3)))).max(), 1e-14)

# gauge covariance
w = random_su3(*lat)
ug = gauge_rotate(u, w)
op2 = WilsonClover(ug, -0.2, 1.3, ANTIPERIODIC)
rot = lambda p: np.einsum('tzyxab,tzyxsb->tzyxsa', w, p)
report('gauge covariance', np.abs(op2.apply(rot(a)) - rot(op.apply(a))).max(), 1e-12)
report('plaquette gauge invariance', abs(plaquette(ug) - plaquette(u)), 1e-14)

# free field: plane waves
one = np.broadcast_to(np.eye(3, dtype=complex), (4,) + lat + (3, 3)).copy()
fr = WilsonClover(one, 0.1, 1.7, ANTIPERIODIC)
L = np.array([lat[3], lat[2], lat[1], lat[0]])
n = np.array([2, 1, 3, 1])
p = 2 * np.pi * (n + np.array([0, 0, 0, 0.5])) / L
t, z, y, x = np.indices(lat)
wave = np.exp(1j * (p[0] * x + p[1] * y + p[2] * z + p[3] * t))
chi = rng.normal(size=(4, 3)) + 1j * rng.normal(size=(4, 3))
mp = (0.1 + (1 - np.cos(p)).sum()) * np.eye(4) + 1j * np.einsum('m,mab->ab', np.sin(p), g)
report('free dispersion: M e^{ipx} = (m + sum(1-cos p) + i g.sin p) e^{ipx}',
       np.abs(fr.apply(wave[..., None, None] * chi) - wave[..., None, None] * (mp @ chi)).max(), 1e-12)
report('free clover term vanishes', np.abs(clover_term(one, 1.7)).max(), 0)

# a constant abelian field: F known in closed form, sign of the clover term
nx = lat[3]
theta = 2 * np.pi / nx
ab = one.copy()
lam = np.diag([1.0, -1.0, 0.0])
# U_y(x) = exp(i theta x lam); plaquette xy = U_x(n)U_y(n+x)U_x^+U_y^+ = exp(i theta lam)
ph = np.exp(1j * theta * np.arange(nx))
for k, q in enumerate((1, -1, 0)):
    ab[1, ..., k, k] = (ph ** q)[None, None, None, :]
f = field_strength(ab)
report('constant field: Fhat_xy = i sin(theta) lambda',
       np.abs(f[0, 1] - 1j * np.sin(theta) * lam).max(), 1e-12)
cl = clover_term(ab, 1.0)[0, 0, 0, 0].reshape(2, 2, 3, 2, 3)
want = -0.5 * (g[0] @ g[1]) * 1j * np.sin(theta)
report('clover = -csw/2 g_x g_y Fhat_xy', max(abs(cl[s // 2, s % 2, 0, s % 2, 0] - want[s, s]) for s in range(4)), 1e-12)

# dense check on 2^4: M as an explicit matrix against an independent construction with kron
lat2 = (2, 2, 2, 4)
u2 = random_su3(4, *lat2)
op = WilsonClover(u2, 0.3, 0.0, ANTIPERIODIC)
V = int(np.prod(lat2))
idx = np.arange(V).reshape(lat2)
D = np.zeros((V, 12, V, 12), complex)
for s in np.ndindex(*lat2):
    i = idx[s]
    D[i, :, i, :] += (4 + 0.3) * np.eye(12)
    for mu in range(4):
        s2 = list(s)
        s2[AXIS[mu]] = (s[AXIS[mu]] + 1) % lat2[AXIS[mu]]
        j = idx[tuple(s2)]
        sg = -1 if (mu == 3 and s[0] == lat2[0] - 1) else 1
        D[i, :, j, :] -= 0.5 * sg * np.kron(np.eye(4) - g[mu], u2[mu][s])
        D[j, :, i, :] -= 0.5 * sg * np.kron(np.eye(4) + g[mu], u2[mu][s].conj().T)
D = D.reshape(12 * V, 12 * V)
v = rng.normal(size=12 * V) + 1j * rng.normal(size=12 * V)
report('hopping term against explicit matrix', np.abs(D @ v - op.matvec(v)).max(), 1e-12)
xs, res, cnt = solve(op, v, 1e-12)
report('solve against numpy.linalg.solve', np.abs(xs.ravel() - np.linalg.solve(D, v)).max(), 1e-10)

# staggered: D is anti-hermitian, squares to the momenta on unit links, and is covariant
fat, naik = (rng.normal(size=(4,) + lat + (3, 3)) + 1j * rng.normal(size=(4,) + lat + (3, 3)) for _ in range(2))
st = Staggered(fat, (0.8 + 0.6j, 1, 1j, -1), 0.3, naik)
a, b = rand(st), rand(st)
report('staggered: (a, M b) = (M^+ a, b)', abs(np.vdot(a, st.apply(b)) - np.vdot(st.apply_dagger(a), b)) / abs(np.vdot(a, b)), 1e-11)
t, z, y, x = np.indices(lat)
for n, factors in (((1, 0, 1, 2), (1, 0)), ((2, 1, 0, 5), (9 / 8, -1 / 24))):
    one = np.broadcast_to(np.eye(3, dtype=complex), (4,) + lat + (3, 3))
    st = Staggered(factors[0] * one, ANTIPERIODIC, 0.3, factors[1] * one)
    p = [2 * np.pi * (k + (mu == 3) / 2) / lat[AXIS[mu]] for mu, k in enumerate(n)]
    wave = np.exp(1j * (p[0] * x + p[1] * y + p[2] * z + p[3] * t))[..., None] * np.array([1, 2j, 3])
    want = -4 * sum((factors[0] * np.sin(k) + factors[1] * np.sin(3 * k)) ** 2 for k in p) * wave
    report('staggered: D^2 of a wave on unit links', np.abs(st.d(st.d(wave)) - want).max(), 1e-12)
w = random_su3(*lat)
st, rotated = (Staggered(v, ANTIPERIODIC, 0.3) for v in (u, gauge_rotate(u, w)))
b = rand(st)
report('staggered: gauge covariance', np.abs(rotated.apply((w @ b[..., None])[..., 0]) - (w @ st.apply(b)[..., None])[..., 0]).max(), 1e-12)
sys.exit(bad)
