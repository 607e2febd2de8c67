"""Several masses by quarkctl, judged by the oracle: test_masses_cli.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import os
import sys

from cli_case import DIMS, GAUGE, USAGE, Case, h5py, np, ref, tap
from daemon import Daemon

MASSES = '0.3', '0.05', '1.5'


class Masses(Case):
    def daemon(self, *args, action='staggered', **kwargs):
        return Daemon(self.quarkd, self.quarkctl, '--gauge=' + GAUGE, '--action=' + action, '--mass=0.7', '--solver=cg', *args, **kwargs)

    def off(self, x, b, mass):
        op = ref.ACTIONS['staggered'](self.links, ref.ANTIPERIODIC, mass=mass)
        return np.linalg.norm(b - op.apply(x)) / np.linalg.norm(b)


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


@tap.test
def what_cannot_be_is_refused(case):
    with case.daemon() as d:
        p = 'propagator', '--source=point:0,0,0,0', '--out', d.path('p.h5')
        for more in (('--masses=0.1,0.1',), ('--masses=0.1,',), ('--masses=',), ('--masses=x',), ('--masses=' + ','.join(str(0.1 * (k + 1)) for k in range(17)),),
                     ('--masses=0.1', '--detach'), ('--masses=0.1', '--tol-abs=1e-8')):
            assert d.ctl(*p, *more).code == USAGE, more
        done = d.ctl(*p, '--masses=0.1,-2')
        assert done.code != 0 and 'masses[1] = -2' in done.err, done
        assert d.ctl('correlator', '--source=point:0,0,0,0', '--out', d.path('c.h5'), '--masses=0.1').code == USAGE


tap.run(Masses(*sys.argv[1:]))
