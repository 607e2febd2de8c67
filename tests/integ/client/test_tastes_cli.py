"""Staggered mesons of all tastes by quarkctl, judged by the oracle: test_tastes_cli.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import functools
import itertools
import math
import os
import sys
import tempfile

from cli_case import DATA, DIMS, GAUGE, USAGE, Case, np, ref, tap
from daemon import Daemon
from open_gauge import write_openqcd

LATTICE = tuple(reversed(DIMS))
ORIGIN = 1, 2, 3, 5
MASSES = '0.5', '0.1'
AXIS = 3, 2, 1, 0
# name: pairs of spin and taste as gx gy gz gt = 1, 2, 4, 8, by what they are: g5 or g5 gt, with gi g5, gi gj, gi gt, gi, gt, 1
TASTES = {'pion': [(15, 15)], 'a4': [(7, 7)], 'pioni5': [(15, 15 ^ i) for i in (1, 2, 4)], 'pionij': [(7, 3), (7, 5), (7, 6)],
          'pioni0': [(15, 8 | i) for i in (1, 2, 4)], 'pioni': [(7, i) for i in (1, 2, 4)], 'pion0': [(15, 8)], 'pions': [(7, 0)]}


class Tastes(Case):
    matrix = None

    def daemon(self, *args, gauge=GAUGE, action='staggered', mass='0.5', **kwargs):
        return Daemon(self.quarkd, self.quarkctl, '--gauge=' + gauge, '--action=' + action, '--mass=' + mass, '--solver=cg', *args, **kwargs)

    def solve(self, mass, sources):
        """Solutions by the matrix, written out."""
        n = math.prod(LATTICE) * 3
        if self.matrix is None:
            op = ref.ACTIONS['staggered'](self.links, ref.ANTIPERIODIC, mass=0)
            self.matrix = np.array([op.matvec(e) for e in np.eye(n)]).T
        return np.linalg.solve(float(mass) * np.eye(n) + self.matrix, np.reshape(sources, (-1, n)).T).T.reshape(-1, *LATTICE, 3)

    def shifted(self, x, d):
        """[U_j(n) x(n+j) + U_j(n-j)^+ x(n-j)] / 2 for each direction in d, the mean over all orders."""
        def once(x, j):
            u, axis = self.links[j], AXIS[j]
            return (np.einsum('...ab,...b->...a', u, np.roll(x, -1, axis)) + np.roll(np.einsum('...ba,...b->...a', u.conj(), x), 1, axis)) / 2
        orders = list(itertools.permutations(j for j in range(3) if d >> j & 1))
        return sum(functools.reduce(once, order, x) for order in orders) / len(orders)


def gamma(n):
    """gx^n0 gy^n1 gz^n2 gt^n3 of some euclidean gamma matrices."""
    s = np.array([[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]])
    basis = [np.kron(s[1], s[j]) for j in range(3)] + [np.kron(s[0], np.eye(2))]
    return functools.reduce(np.matmul, [basis[mu] for mu in range(4) if n >> mu & 1], np.eye(4, dtype=complex))


@functools.lru_cache(None)
def element(spin, taste, y):
    """tr[W(y)^+ G_spin W(y + d) G_taste^+] / 4 of the bilinear, W(y) = gx^y0 gy^y1 gz^y2 gt^y3."""
    def w(y):
        return functools.reduce(np.matmul, [np.linalg.matrix_power(gamma(1 << mu), y[mu]) for mu in range(4)])
    ahead = tuple(c + ((spin ^ taste) >> mu & 1) for mu, c in enumerate(y))
    value = np.trace(w(y).conj().T @ gamma(spin) @ w(ahead) @ gamma(taste).conj().T) / 4
    assert abs(value.imag) < 1e-12 and abs(abs(value) - 1) < 1e-12
    return round(value.real)


def sign(spin, taste):
    """That of O(x) O^+(x0), with (-1)^(x - x0) of the antiquark, at each site."""
    t, z, y, x = np.indices(LATTICE)
    out = np.empty(LATTICE)
    for s in itertools.product(range(2), repeat=4):
        here = np.logical_and.reduce([(c - o) % 2 == k for c, o, k in zip((x, y, z, t), ORIGIN, s)])
        out[here] = element(spin, taste, s) * element(spin, taste, (0, 0, 0, 0)) * (-1) ** sum(s)
    return out


def shown(d, path):
    return {c['channel']: np.array(c['re']) for c in d.ctl('correlator', path, '--json').json['pieces'][0]['correlators']}


@tap.test
def correlators_are_those_of_the_oracle(case):
    """All pions and some vectors, for two masses at once."""
    point = np.zeros((3,) + LATTICE + (3,), complex)
    for colour in range(3):
        point[(colour,) + ORIGIN[::-1] + (colour,)] = 1
    with case.daemon() as d:
        done = d.ctl('correlator', '--source=point:' + ','.join(map(str, ORIGIN)), '--channels=tastes,gx-gxgy,gygt-gxgzgt', '--tol=1e-12',
                     '--masses=' + ','.join(MASSES), '--out', d.path('c.h5'))
        assert done.code == 0, done
        for mass in MASSES:
            found = shown(d, d.path('c_m%s.h5' % mass))
            shifts = sorted({s ^ t for pairs in TASTES.values() for s, t in pairs} | {2, 7})
            sources = [case.shifted(column, k) for k in shifts for column in point]
            x = case.solve(mass, sources).reshape((len(shifts),) + point.shape)
            plain = x[shifts.index(0)]

            def one(spin, taste):
                k = spin ^ taste
                ends = np.array([case.shifted(column, k) for column in x[shifts.index(k)]])
                return np.roll((sign(spin, taste) * (plain.conj() * ends).sum((0, -1))).sum((1, 2, 3)).real, -ORIGIN[3])
            for name, pairs in TASTES.items():
                want = sum(one(*pair) for pair in pairs) / len(pairs)
                assert np.abs(found[name] - want).max() < 1e-9 * np.abs(want).max(), (mass, name, found[name], want)
            for name, pair in (('gx-gxgy', (1, 3)), ('gygt-gxgzgt', (10, 13))):
                square = round((gamma(pair[0]) @ gamma(pair[0]))[0, 0].real)
                want = square * one(*pair)
                assert np.abs(found[name] - want).max() < 1e-9 * np.abs(want).max(), (mass, name, found[name], want)


@tap.test
def they_do_not_depend_on_the_gauge(case):
    """The links turned at each site: the same, also smeared and with smeared links."""
    rng, found = np.random.default_rng(8), []
    g = np.linalg.qr(rng.normal(size=LATTICE + (3, 3, 2)) @ np.array([1, 1j]))[0]
    g = g / np.linalg.det(g)[..., None, None] ** (1 / 3)
    turned = np.array([g @ case.links[mu] @ np.roll(g.conj().swapaxes(-1, -2), -1, AXIS[mu]) for mu in range(4)])
    how = '--smear=gauss:0.2,3', '--smear-sink=gauss:0.1,2', '--smear-links=ape:0.5,2'
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'links')
        for links in case.links, turned:
            write_openqcd(path, links)
            with case.daemon(gauge=path) as d:
                both = []
                for more in (), how:
                    done = d.ctl('correlator', '--source=point:1,2,3,5', '--channels=tastes', '--tol=1e-12', *more, '--out', d.path('c.h5'))
                    assert done.code == 0 and ('warning: --smear: smearing mixes even and odd sites' in done.err) == bool(more), done
                    both.append(shown(d, d.path('c.h5')))
                found.append(both)
    for one, other in zip(*found):
        for name in TASTES:
            assert np.abs(one[name] - other[name]).max() < 1e-9 * np.abs(one[name]).max(), name
    assert np.abs(found[0][0]['pioni'] - found[0][1]['pioni']).max() > 0.01 * np.abs(found[0][0]['pioni']).max()


@tap.test
def free_tastes_have_one_energy(case):
    """Without gluons all of them are two quarks at rest: E = 2 asinh m, of every other time slice, as partners alternate."""
    m, nt = 0.3, 64
    with case.daemon(gauge='builtin:unit:4x4x4x%d' % nt, mass=str(m)) as d:
        assert d.ctl('correlator', '--source=point:0,0,0,0', '--channels=tastes', '--tol=1e-13', '--out', d.path('c.h5')).code == 0
        found = shown(d, d.path('c.h5'))
        for name, c in found.items():
            t = 12
            energy = np.arccosh((c[t - 2] + c[t + 2]) / (2 * c[t])) / 2
            assert abs(energy - 2 * math.asinh(m)) < 1e-4, (name, energy, 2 * math.asinh(m))


@tap.test
def what_is_not_there_is_refused(case):
    with case.daemon() as d:
        out = '--out=' + d.path('c.h5')
        for source, channels, said in (('wall:0', 'pioni', 'need a point source'), ('wall:0', 'pion,rho', 'average to zero'), ('point:0,0,0,0', 'g5-gx', 'not in t'), ('point:0,0,0,0', 'nucleon', 'colour alone')):
            done = d.ctl('correlator', '--source=' + source, '--channels=' + channels, out)
            assert done.code == DATA and said in done.err, done
        assert d.ctl('correlator', '--source=wall:0', '--channels=pion,gt-gt,nucleon_corner', '--tol=1e-6', out).code == 0
        assert d.ctl('correlator', '--source=point:0,0,0,0', '--channels=taste', out).code == USAGE
    with case.daemon(action='wilson', mass='0.5') as d:
        done = d.ctl('correlator', '--source=point:0,0,0,0', '--channels=tastes', '--out=' + d.path('c.h5'))
        assert done.code == DATA and 'fields with colour alone' in done.err, done


tap.run(Tastes(*sys.argv[1:]))
