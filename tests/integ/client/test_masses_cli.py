"""Several masses by quarkctl, judged by the oracle: test_masses_cli.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import itertools
import os
import sys

from cli_case import DIMS, USAGE, StaggeredCase, h5py, np, tap

MASSES = '0.3', '0.05', '1.5'
ORIGIN = 1, 2, 3, 5
MESONS = {'pion': [15], 'a4': [7], 'a0': [0], 'rho': [1, 2, 4], 'rho_t': [9, 10, 12], 'a1': [14, 13, 11], 'b1': [3, 5, 6]}


def contents(path):
    with h5py.File(path, 'r') as f:
        return f['field'][...], dict(f.attrs)


def text(value):
    return value.decode() if isinstance(value, bytes) else value


@tap.test
def a_propagator_has_a_file_for_each_mass(case):
    with case.daemon() as d:
        done = d.ctl('propagator', '--source=point:1,2,3,5', '--masses=' + ','.join(MASSES), '--out', d.path('p.h5'), '--tol=1e-11')
        assert done.code == 0 and done.out.count('3 of 3 converged') == 3, done
        assert not os.path.exists(d.path('p.h5'))
        for mass in MASSES:
            x, attributes = contents(d.path('p_m%s.h5' % mass))
            assert float(attributes['mass']) == float(mass), attributes
            assert text(attributes['action']) == 'staggered;mass=' + mass, attributes
            for colour in range(3):
                b = np.zeros(tuple(reversed(DIMS)) + (3,), complex)
                b[5, 3, 2, 1, colour] = 1
                assert case.off(x[colour], b, float(mass)) < 1.01e-11, (mass, colour)
            pion = d.ctl('correlator', d.path('p_m%s.h5' % mass), '--json')
            norms = (np.abs(x) ** 2).sum((0, 2, 3, 4, 5))
            assert np.allclose(pion.json['channels']['pion']['C'], np.roll(norms, -5), rtol=1e-12), pion


@tap.test
def right_hand_sides_of_a_file_are_solved_for_each_mass(case):
    with case.daemon('--slots=2') as d:
        rng = np.random.default_rng(3)
        b = rng.normal(size=(5,) + tuple(reversed(DIMS)) + (3, 2)) @ np.array([1, 1j])
        with h5py.File(d.path('b.h5'), 'w') as f:
            f['field'] = b
            f.attrs['site_reals'] = 6
        done = d.ctl('solve', '--in', d.path('b.h5'), '--masses=' + ','.join(MASSES), '--out', d.path('x.h5'), '--tol=1e-10')
        assert done.code == 0, done
        for mass in MASSES:
            for x, source in zip(contents(d.path('x_m%s.h5' % mass))[0], b):
                assert case.off(x, source, float(mass)) < 1.01e-10, mass


def distances():
    """x, y, z, t of each site from the source, in the order of a field."""
    t, z, y, x = np.indices(tuple(reversed(DIMS)))
    return x - ORIGIN[0], y - ORIGIN[1], z - ORIGIN[2], t - ORIGIN[3]


def slices(f, p):
    """Sums over space with the phase of p, from the time of the source on."""
    angle = 2 * np.pi * sum(k * d / n for k, d, n in zip(p, distances(), DIMS))
    return np.roll((np.exp(-1j * angle) * f).sum((1, 2, 3)), -ORIGIN[3])


def meson(x, name, p):
    """The mean over polarisations of <O O^+> of columns x."""
    norm, found = (np.abs(x) ** 2).sum((0, -1)), []
    for n in MESONS[name]:
        bits = [n >> mu & 1 for mu in range(4)]
        phi = (-1.0) ** sum(d * (1 + sum(bits) - b) for d, b in zip(distances(), bits))
        found.append(-(-1) ** sum(bits[:3]) * slices(phi * norm, p))
    return sum(found) / len(found)


def corner(x, p):
    """Determinants on the corners of cubes, by all orders of the colours."""
    det = 0
    for order in itertools.permutations(range(3)):
        det = det + np.linalg.det(np.eye(3)[list(order)]) * x[0][..., order[0]] * x[1][..., order[1]] * x[2][..., order[2]]
    d = distances()
    corners = np.logical_and.reduce([c % 2 == 0 for c in d[:3]])
    return slices(np.where(d[3] < 0, -1, 1) * np.where(d[3] % 2, (-1) ** sum(ORIGIN[:3]), 1) * corners * det, p)


@tap.test
def all_hadrons_have_a_file_for_each_mass(case):
    """The same numbers as of the propagators by numpy; and the same file as a daemon of that mass makes."""
    momenta = (0, 0, 0), (1, 0, -1)
    source = '--source=point:' + ','.join(map(str, ORIGIN))
    how = source, '--channels=' + ','.join([*MESONS, 'nucleon_corner']), '--momenta=0,0,0;1,0,-1', '--tol=1e-12'
    with case.daemon() as d:
        done = d.ctl('correlator', *how, '--masses=' + ','.join(MASSES), '--out', d.path('c.h5'))
        assert done.code == 0 and all('mass=%s/' % mass in done.out for mass in MASSES), done
        assert not os.path.exists(d.path('c.h5'))
        assert d.ctl('propagator', source, '--masses=' + ','.join(MASSES), '--out', d.path('p.h5'), '--tol=1e-12').code == 0
        for mass in MASSES:
            x, _ = contents(d.path('p_m%s.h5' % mass))
            shown = d.ctl('correlator', d.path('c_m%s.h5' % mass), '--json').json['pieces']
            assert len(shown) == 1 and shown[0]['mass'] == float(mass) and shown[0]['action'] == 'staggered;mass=' + mass, shown
            assert shown[0]['residual'] <= 1e-12 and shown[0]['quark'] == 'mass=' + mass, shown
            assert shown[0]['site_reals'] == 6 and all(c['smooth'] == (c['channel'] != 'pion') for c in shown[0]['correlators'])
            assert len(shown[0]['correlators']) == len(momenta) * (len(MESONS) + 1)
            for c in shown[0]['correlators']:
                want = corner(x, c['p']) if c['channel'] == 'nucleon_corner' else meson(x, c['channel'], c['p'])
                got = np.array(c['re']) + 1j * np.array(c['im'])
                assert np.abs(got - want).max() < 1e-9 * np.abs(want).max(), (mass, c, want)
    with case.daemon(mass='0.05') as d, case.daemon() as several:
        assert d.ctl('correlator', *how, '--out', d.path('c.h5')).code == 0
        assert several.ctl('correlator', *how, '--masses=0.05', '--out', several.path('c.h5')).code == 0
        one, other = (e.ctl('correlator', e.path(name), '--json').json['pieces'][0] for e, name in ((d, 'c.h5'), (several, 'c_m0.05.h5')))
        for key in 'config', 'quark', 'label', 'action', 'mass', 'kappa', 'digest':
            assert one[key] == other[key], key
        for a, b in zip(one['correlators'], other['correlators']):
            assert np.allclose(a['re'], b['re'], rtol=0, atol=1e-9 * np.abs(b['re']).max()), (a, b)


@tap.test
def what_cannot_be_is_refused(case):
    with case.daemon() as d:
        p = 'propagator', '--source=point:0,0,0,0', '--out', d.path('p.h5')
        for more in (('--masses=0.1,0.1',), ('--masses=0.1,',), ('--masses=',), ('--masses=x',), ('--masses=' + ','.join(str(0.1 * (k + 1)) for k in range(17)),),
                     ('--masses=0.1', '--detach'), ('--masses=0.1', '--tol-abs=1e-8')):
            assert d.ctl(*p, *more).code == USAGE, more
        done = d.ctl(*p, '--masses=0.1,-2')
        assert done.code != 0 and 'masses[1] = -2' in done.err, done
        c = 'correlator', '--source=point:0,0,0,0', '--out', d.path('c.h5'), '--masses=0.1'
        for more in ('--png=' + d.path('c.png'),), ('--ama=2:1e-4', '--exact=1:1e-8'):
            assert d.ctl(*c, *more).code == USAGE, more
        assert d.ctl('correlator', '--masses=0.1', d.path('c.h5')).code == USAGE
    with case.daemon(action='wilson') as d:
        done = d.ctl('correlator', '--source=point:0,0,0,0', '--out', d.path('c.h5'), '--masses=0.1')
        assert done.code != 0 and 'masses' in done.err and not os.path.exists(d.path('c_m0.1.h5')), done


tap.run(StaggeredCase(*sys.argv[1:]))
