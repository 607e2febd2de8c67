"""quarkctl --flavour, with a real daemon of twisted mass: test_flavour_cli.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import os
import subprocess
import sys
import tempfile

from cli_case import DATA, GAUGE, KAPPA, CSW, USAGE, Case, h5py, np, random_sources, read_field, ref, tap, write_sources
from daemon import Daemon, run_ctl

MU = 0.3
POINT = '--source=point:1,2,3,5'
TEXT = '''
[workflow]
out = out.h5
gauge = cfg.lime
action = twisted-clover
kappa = 0.12
mu = 0.3
csw = 1.3
tolerance = 1e-11
[daemon]
backend = cpu
[source up]
source = point:1,2,3,5
[source down]
source = point:1,2,3,5
flavour = -1
'''


class Twisted(Case):
    def __init__(self, *programs):
        super().__init__(*programs)
        self.ops = {f: ref.ACTIONS['twisted-clover'](self.links, ref.ANTIPERIODIC, mass=1 / (2 * KAPPA) - 4, mu=MU, csw=CSW, flavour=f)
                    for f in (1, -1)}

    def daemon(self, *args, **kwargs):
        return Daemon(self.quarkd, self.quarkctl, '--gauge=' + GAUGE, '--action=twisted-clover', '--kappa=%r' % KAPPA, '--csw=%r' % CSW,
                      '--set=mu=%r' % MU, *args, **kwargs)

    def off(self, x, b, flavour):
        return np.linalg.norm(b - self.ops[flavour].apply(x)) / np.linalg.norm(b)


def attributes(path):
    with h5py.File(path, 'r') as f:
        return dict(f.attrs)


def piece_of(path):
    """(quark, pion, attributes) of a file of one piece"""
    with h5py.File(path, 'r') as f:
        config, = f
        quark, = f[config]
        label, = f[config][quark]
        piece = f[config][quark][label]
        return quark, piece['pion'][...], dict(piece.attrs)


def pion(columns):
    """Sum |S|^2 by time from the source on."""
    return np.roll((np.abs(columns) ** 2).sum((0, 2, 3, 4, 5, 6)), -5)


@tap.test
def parts_of_the_operator_are_applied_to_files(case):
    """quarkctl apply; and solve --dagger, at once and by a ticket."""
    b = random_sources(2)
    g5 = np.diag(ref.GAMMA5).real[:, None]
    parts = {'m': lambda op, x: op.apply(x), 'hop': lambda op, x: op.hops(x), 'diag': lambda op, x: op.local(x),
             'diag-inverse': lambda op, x: op.local_inverse(x), 'diag-inverse-hop': lambda op, x: op.local_inverse(op.hops(x)),
             'smear': lambda op, x: x}
    power = {'m': 1, 'diag': 1, 'diag-inverse': -1, 'diag-inverse-hop': -1}
    with case.daemon('--slots=4') as d:
        write_sources(d.path('b.h5'), b)
        for i, (name, part) in enumerate(parts.items()):
            f, kappa = (1, -1)[i % 2], i % 3 == 0
            for dagger in False, True:
                out = d.path('%s%d.h5' % (name, dagger))
                done = d.ctl('apply', '--work', name, '--in', d.path('b.h5'), '--out', out, '--flavour=%d' % f, *['--dagger'] * dagger,
                             *['--normalisation=kappa'] * kappa)
                assert done.code == 0 and '2 of 2 done' in done.out, done
                about = attributes(out)
                assert about['kind'] == 'applied' and about['source'].endswith(' of ' + d.path('b.h5')) and about['flavour'] == f, about
                assert ('+' in about['source'].split(' of ')[0]) == (dagger and name != 'smear'), about
                for y, k in zip(read_field(out), b):
                    want = g5 * part(case.ops[-f], g5 * k) if dagger else part(case.ops[f], k)
                    assert np.linalg.norm(y - want * (2 * KAPPA) ** (kappa * power.get(name, 0))) < 1e-13 * np.linalg.norm(want), (name, dagger)
        adjoint = '--dagger', '--flavour=-1', '--tol=1e-11', '--in', d.path('b.h5')
        assert d.ctl('solve', *adjoint, '--out', d.path('x.h5')).code == 0
        assert d.ctl('solve', *adjoint, '--out', d.path('y.h5'), '--detach').code == 0
        assert d.ctl('fetch', d.path('y.h5.ticket')).code == 0
        for out in 'x.h5', 'y.h5':
            assert attributes(d.path(out))['source'] == '(M^+)^-1 of ' + d.path('b.h5')
            assert all(np.linalg.norm(k - case.ops[-1].apply_dagger(y)) < 1.1e-11 * np.linalg.norm(k) for y, k in zip(read_field(d.path(out)), b))
        for wrong in ('--work=overlap',), ():
            done = d.ctl('apply', *wrong, '--in', d.path('b.h5'), '--out', d.path('z.h5'))
            assert done.code == USAGE and '--work' in done.err, done


@tap.test
def files_say_the_flavour_that_was_solved_for(case):
    b = random_sources(2)
    with case.daemon('--slots=12') as d:
        write_sources(d.path('b.h5'), b)
        props = {}
        for f, option in (1, []), (1, ['--flavour', '1']), (1, ['--flavour=+1']), (-1, ['--flavour', '-1']):
            x, s, c = d.path('x.h5'), d.path('s.h5'), d.path('c.h5')
            for path in x, s, c:
                if os.path.exists(path):
                    os.unlink(path)
            assert d.ctl('solve', '--in', d.path('b.h5'), '--out', x, '--tol=1e-11', *option).code == 0
            assert attributes(x)['flavour'] == f
            assert all(case.off(y, k, f) < 1.01e-11 < case.off(y, k, -f) for y, k in zip(read_field(x), b))
            assert d.ctl('propagator', POINT, '--out', s, '--tol=1e-12', *option).code == 0
            props[f] = read_field(s)
            assert attributes(s)['flavour'] == f and attributes(s)['action'].startswith('twisted-clover;')
            done = d.ctl('correlator', POINT, '--out', c, '--tol=1e-12', '--json', *option)
            assert done.code == 0 and done.json['pieces'][0]['flavour'] == f, done
            quark, got, about = piece_of(c)
            assert (quark, about['flavour']) == ('kappa=0.12' + (',flavour=-1' if f < 0 else ''), f)
            want = pion(props[f])
            assert np.abs(got[0] - want).max() < 1e-10 * want.max()
        # one column of either flavour through one of the other
        for first, second, option in (1, -1, ['--first-flavour=+1', '--flavour=-1']), (-1, -1, ['--flavour=-1']):
            out = d.path('seq%d.h5' % first)
            assert d.ctl('sequential', POINT, '--sink-time=all', '--out', out, '--tol=1e-11', *option).code == 0
            source = np.einsum('ij,ctzyxja->ctzyxia', ref.GAMMA5, props[first])
            assert all(case.off(y, k, second) < 1e-9 for y, k in zip(read_field(out), source))
            about = attributes(out)
            assert about['flavour'] == second and about['sequential'].endswith(',flavour=-1') == (first < 0), about


@tap.test
def detached_work_keeps_its_flavour(case):
    with case.daemon('--slots=12') as d:
        out = d.path('s.h5')
        assert d.ctl('propagator', POINT, '--out', out, '--tol=1e-11', '--flavour=-1', '--detach').code == 0
        assert d.ctl('fetch', out + '.ticket').code == 0
        assert attributes(out)['flavour'] == -1
        b = np.zeros(case.ops[1].shape, complex)
        b[5, 3, 2, 1, 0, 0] = 1
        assert case.off(read_field(out)[0], b, -1) < 1.01e-11


@tap.test
def other_flavours_are_refused(case):
    for value in '0', '2', 'up', '+', '':
        done = case.ctl('propagator', POINT, '--out=x.h5', '--flavour=' + value)
        assert done.code == USAGE and '--flavour=%s: must be +1 or -1' % value in done.err, done
    with Case.daemon(case) as d:
        done = d.ctl('propagator', POINT, '--out', d.path('x.h5'), '--flavour=-1')
        assert done.code == DATA and 'flavour = -1: the action wilson-clover of this setup has no flavours' in done.err, done
        assert d.ctl('propagator', POINT, '--out', d.path('x.h5')).code == 0
        assert attributes(d.path('x.h5'))['flavour'] == 0


@tap.test
def a_workflow_has_both_flavours(case):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([case.quark_gauge, 'convert', GAUGE, folder + '/cfg.lime'], check=True, stdout=subprocess.DEVNULL)

        def run(text, *options):
            with open(folder + '/w.ini', 'w', encoding='utf-8') as f:
                f.write(text)
            return run_ctl(case.quarkctl, 'workflow', folder + '/w.ini', *options)
        for text, word in ((TEXT.replace('flavour = -1', 'flavour = 0'), 'flavour = 0: must be +1 or -1'),
                           (TEXT.replace('action = twisted-clover', 'action = wilson-clover').replace('mu = 0.3\n', ''),
                            '[source down] has flavour = -1: the action wilson-clover has no flavours')):
            done = run(text)
            assert done.code == DATA and word in done.err, done
        done = run(TEXT, '--json')
        assert done.code == 0 and done.json['computed'] == done.json['pieces'] == 2, done
        with h5py.File(folder + '/out.h5', 'r') as f:
            up, down = f['cfg.lime/kappa=0.12/up.t5'], f['cfg.lime/kappa=0.12,flavour=-1/down.t5']
            assert (up.attrs['flavour'], down.attrs['flavour']) == (1, -1)
            c = up['pion'][...], down['pion'][...]
        assert not np.array_equal(*c) and abs(c[0][0, 0] - c[1][0, 0]) < 0.1 * abs(c[0][0, 0])
        assert run(TEXT, '--json').json['computed'] == 0


tap.run(Twisted(*sys.argv[1:]))
