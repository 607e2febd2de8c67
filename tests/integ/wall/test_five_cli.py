"""quarkctl --five-d, files of fields of five dimensions: test_five_cli.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE

Solutions are judged by the numpy oracle of domain wall fermions.
"""
import os
import sys

import cli_case
from cli_case import DATA, USAGE, Case, h5py, np, ref, tap, write_sources
from daemon import Daemon

cli_case.GAUGE = GAUGE = 'builtin:weak:4x4x4x4:1'
SHAPE, LS = (4, 4, 4, 4, 4, 3), 4
NUMBERS = dict(mass=0.4, M5=1.4, Ls=LS, b=1.5, c=0.5)
AXES = 'rhs s t z y x spin colour'
POINT = ('propagator', '--source=point:1,2,3,1', '--five-d', '--tol=1e-6')


class Walls(Case):
    def __init__(self, *programs):
        super().__init__(*programs)
        self.op = ref.DomainWall(self.links, ref.ANTIPERIODIC, **NUMBERS)
        self.b = np.random.default_rng(3).normal(size=(2, LS) + SHAPE + (2,)) @ np.array([1, 1j])

    def daemon(self, *args, **more):
        numbers = ['--set=%s=%r' % item for item in {**NUMBERS, **more}.items()]
        return Daemon(self.quarkd, self.quarkctl, '--gauge=' + GAUGE, '--action=moebius', *numbers, '--solver=cg', *args)

    def off(self, x, b):
        return np.linalg.norm(b - self.op.apply5(x.astype(complex))) / np.linalg.norm(b)


def contents(path):
    """(field, columns, attributes)"""
    with h5py.File(path, 'r') as f:
        return f['field'][...], f['columns'][...], dict(f.attrs)


def run(d, *args):
    done = d.ctl(*args)
    assert done.code == 0, done


def refused(d, code, words, *args, out='no.h5'):
    done = d.ctl(*args, *(['--out', d.path(out)] if out else []))
    assert done.code == code and all(w in done.err for w in words), (args, done)
    assert not out or not os.path.exists(d.path(out)), args


@tap.test
def propagators_have_all_slices(case):
    with case.daemon('--slots=24') as d:
        run(d, *POINT, '--out', d.path('p.h5'))
        run(d, 'propagator', '--source=point:1,2,3,1', '--tol=1e-6', '--out', d.path('q.h5'))
        x, columns, about = contents(d.path('p.h5'))
        quark, others, told = contents(d.path('q.h5'))
        assert x.shape == (12, LS) + SHAPE and x.dtype == complex and about.pop('axes') == AXES and 'axes' not in told
        assert about.keys() == told.keys() and all(np.array_equal(about[k], told[k]) for k in about), (about, told)
        assert about['format_version'] == 1 and about['site_reals'] == 24 and (columns['true_residual'] < 1e-6).all()
        for name in 'source', 'site', 'spin', 'colour', 'status':
            assert (columns[name] == others[name]).all(), name
        for k in 0, 7, 11:
            eta = np.zeros(SHAPE, complex)
            eta[1, 3, 2, 1, k // 3, k % 3] = 1
            assert case.off(x[k], case.op.enter(eta)) < 1.01e-6, k
            assert np.linalg.norm(case.op.leave(x[k]) - quark[k]) < 1e-4 * np.linalg.norm(quark[k]), k
        with h5py.File(d.path('p.h5')) as f:
            assert f['field'].chunks == (1, 1) + SHAPE
        refused(d, DATA, ['p.h5: attribute axes = "%s"' % AXES, 'five dimensions', '--five-d'], 'correlator', d.path('p.h5'), out='')
        refused(d, DATA, ['p.h5: attribute axes', 'five dimensions'], 'solve', '--in', d.path('p.h5'))
        refused(d, DATA, ['q.h5: field has 7 dimensions', '[rhs][s][t]'], 'solve', '--five-d', '--in', d.path('q.h5'))


@tap.test
def right_hand_sides_of_a_file_are_solved(case):
    """Of h5py, several and one, and of quarkctl in single precision; with and without --detach."""
    with case.daemon('--slots=2') as d:
        write_sources(d.path('b.h5'), case.b)
        write_sources(d.path('one.h5'), case.b[1], name='b', axes=np.bytes_(AXES))
        for name, b in ('b.h5', case.b), ('one.h5', case.b[1:]):
            run(d, 'solve', '--five-d', '--in', d.path(name), '--out', d.path('x.h5'), '--tol=1e-6')
            x, columns, about = contents(d.path('x.h5'))
            assert x.shape == b.shape and about['axes'] == AXES and about['kind'] == 'solution'
            assert (columns['source'] == b'upload').all() and all(case.off(y, k) < 1.01e-6 for y, k in zip(x, b))
        run(d, 'solve', '--five-d', '--in', d.path('x.h5'), '--out', d.path('y.h5'), '--tol=1e-5', '--dtype=f32', '--basis=degrand-rossi')
        y, _, _ = contents(d.path('y.h5'))
        assert y.dtype == np.complex64 and case.off(y[0], x[0]) < 1.1e-5
        for args in POINT + ('--dtype=f32',), ('solve', '--five-d', '--in', d.path('b.h5'), '--tol=1e-6'):
            run(d, *args, '--out', d.path('direct.h5'))
            run(d, *args, '--out', d.path('later.h5'), '--detach=600')
            refused(d, USAGE, ['SciDAC', '--five-d'], 'fetch', d.path('later.h5.ticket'), '--format=scidac', out='later.lime')
            run(d, 'fetch', d.path('later.h5.ticket'))
            x, columns, about = contents(d.path('direct.h5'))
            y, others, told = contents(d.path('later.h5'))
            assert x.shape == y.shape and x.dtype == y.dtype and np.linalg.norm(x - y) < 1e-4 * np.linalg.norm(x)
            assert all(np.array_equal(about[k], told[k]) for k in about) and (columns['source'] == others['source']).all()


@tap.test
def what_has_no_five_dimensions_is_refused_by_name(case):
    with case.daemon('--slots=2', Ls=6) as d:
        write_sources(d.path('b.h5'), case.b)
        refused(d, DATA, ['b.h5: fields of 4 slices in s', 'has Ls = 6'], 'solve', '--five-d', '--in', d.path('b.h5'))
        write_sources(d.path('doublet.h5'), case.b[:, :2], site_reals=np.int32(48))
        refused(d, DATA, ['site_reals = 48'], 'solve', '--five-d', '--in', d.path('doublet.h5'))
        write_sources(d.path('axes.h5'), case.b, axes=np.bytes_('s rhs'))
        refused(d, DATA, ['axes = "s rhs"'], 'solve', '--five-d', '--in', d.path('axes.h5'))
        for words, args in ((['--five-d is for propagator and solve'], ('sequential', '--source=point:0,0,0,0', '--sink-time=1', '--five-d')),
                            (['--five-d is for propagator and solve'], ('apply', '--work=m', '--in', d.path('b.h5'), '--five-d')),
                            (['--five-d is for propagator and solve'], ('correlator', '--source=point:0,0,0,0', '--five-d')),
                            (['--five-d needs --format=hdf5', 'SciDAC'], POINT + ('--format=usqcd',)),
                            (['--five-d needs --in', '--source=file'], ('solve', '--five-d', '--source=file:/b.raw'))):
            refused(d, USAGE, words, *args)
        refused(d, USAGE, ['--five-d needs --format=hdf5'], *POINT, out='p.lime')
        refused(d, USAGE, ['--five-d needs --out', '--sink=file'], *POINT, '--sink=file:/p.raw', out='')
    with Daemon(case.quarkd, case.quarkctl, '--gauge=' + GAUGE, '--kappa=0.12', '--csw=1') as d:
        refused(d, USAGE, ['--five-d: setup main, wilson-clover: this action has no fifth dimension'], *POINT)
        refused(d, USAGE, ['--five-d: setup main'], *POINT, '--detach')


tap.run(Walls(*sys.argv[1:]))
