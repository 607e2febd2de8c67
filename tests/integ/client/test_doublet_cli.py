"""quarkctl with a doublet, whose right-hand sides have two flavours: test_doublet_cli.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import os
import sys
import tempfile

from cli_case import CSW, DATA, DIMS, GAUGE, KAPPA, SHAPE, USAGE, Case, h5py, np, ref, tap, write_sources
from daemon import Daemon

MU, EPSILON = 0.3, 0.2
SITE, POINT = (1, 2, 3, 5), 'point:1,2,3,5'


class Doublets(Case):
    def __init__(self, *programs):
        super().__init__(*programs)
        self.op = ref.ACTIONS['doublet'](self.links, ref.ANTIPERIODIC, mass=1 / (2 * KAPPA) - 4, mu=MU, epsilon=EPSILON, csw=CSW)

    def start(self, action, *args, **values):
        settings = ['--set=%s=%r' % item for item in values.items()]
        return Daemon(self.quarkd, self.quarkctl, '--gauge=' + GAUGE, '--action=' + action, '--kappa=%r' % KAPPA, '--csw=%r' % CSW, *settings, *args)

    def daemon(self, *args, epsilon=EPSILON):
        return self.start('doublet', *args, mu=MU, epsilon=epsilon)

    def off(self, x, b):
        return np.linalg.norm(b - self.op.apply(x.astype(complex))) / np.linalg.norm(b)


def contents(path):
    """(field, columns, attributes)"""
    with h5py.File(path, 'r') as f:
        return f['field'][...], f['columns'][...], dict(f.attrs)


def propagator(d, source, *options, out='p.h5'):
    path = d.path(out)
    if os.path.exists(path):
        os.unlink(path)
    done = d.ctl('propagator', '--source=' + source, '--out', path, '--tol=1e-11', *options)
    assert done.code == 0, done
    return contents(path)


def components():
    return [(spin, colour) for spin in range(4) for colour in range(3)]


def unit(flavour, where, spin, colour):
    """1 on a site or a time slice, in one component of one flavour (1, -1)."""
    b = np.zeros((2,) + SHAPE, complex)
    b[(0 if flavour > 0 else 1,) + where + (spin, colour)] = 1
    return b


POINT_PLACE = tuple(reversed(SITE))
WALL_PLACE = (2, slice(None), slice(None), slice(None))


@tap.test
def without_a_splitting_a_propagator_is_that_of_both_flavours_of_twisted_clover(case):
    both, alone = {}, {}
    with case.daemon('--slots=24', epsilon=0.0) as d:
        for source in POINT, 'wall:2,p=1:0:0':
            both[source] = propagator(d, source)
        digest = d.ctl('status', '--json').json['setup']['digest']
    with case.start('twisted-clover', '--slots=12', mu=MU) as d:
        for source in both:
            for flavour in 1, -1:
                alone[source, flavour] = propagator(d, source, '--flavour=%d' % flavour)
    for source, (field, columns, about) in both.items():
        assert field.shape == (24, 2) + SHAPE and field.dtype == complex
        for k, flavour in enumerate((1, -1)):
            part = slice(12 * k, 12 * k + 12)
            one, its_columns, its_about = alone[source, flavour]
            assert one.shape == (12,) + SHAPE and 'flavour' not in its_columns.dtype.names
            assert np.abs(field[part, k] - one).max() < 1e-9 * np.abs(one).max()
            assert not field[part, 1 - k].any(), 'nothing mixes them'
            assert (columns['flavour'][part] == flavour).all()
            for name in 'spin', 'colour', 'site', 'momentum', 'source', 'status', 'gamma', 'every', 'seed':
                assert (columns[name][part] == its_columns[name]).all(), name
            assert (its_about['site_reals'], its_about['flavour']) == (24, flavour)
            for name in 'kind', 'basis', 'normalisation', 'kappa', 'mass', 'csw', 'plaquette', 'tolerance', 'source', 'gauge', 'digest':
                assert about[name] == its_about[name], name
            assert (about['dims'] == DIMS).all() and (about['boundary'] == its_about['boundary']).all()
        assert (about['site_reals'], about['flavour'], about['source']) == (48, 0, source)
        assert about['digest'] == digest and about['action'].startswith('doublet;') and ';epsilon=0' in about['action'], about['action']
        assert list(zip(columns['spin'], columns['colour'])) == 2 * components()
        assert (columns['true_residual'] < 1e-11).all()


@tap.test
def columns_are_solutions_of_the_oracle_of_the_flavour_that_they_name(case):
    with case.daemon('--slots=24') as d:
        for source, place in (POINT, POINT_PLACE), ('wall:2', WALL_PLACE):
            for option, flavours in ('', (1, -1)), (',flavour=+1', (1,)), (',flavour=-1', (-1,)):
                field, columns, about = propagator(d, source + option)
                assert about['source'] == source + option and len(field) == len(columns) == 12 * len(flavours)
                wanted = [(f, *c) for f in flavours for c in components()]
                assert list(zip(columns['flavour'], columns['spin'], columns['colour'])) == wanted
                for x, one in zip(field, wanted):
                    assert case.off(x, unit(one[0], place, *one[1:])) < 1.01e-11, (source, one)
        x, _, about = propagator(d, POINT + ',flavour=-1', '--dtype=f32', '--normalisation=kappa', '--basis=ukqcd')
        assert x.dtype == np.complex64 and x.shape == (12, 2) + SHAPE and about['basis'] == 'ukqcd'


@tap.test
def noise_is_in_both_flavours_or_in_the_one_that_is_asked_for(case):
    with case.daemon('--slots=24') as d:
        whole, columns, _ = propagator(d, 'z4:7')
        noise = case.op.apply(whole[0])
        assert columns['flavour'].tolist() == [0] and np.allclose(np.abs(noise), 1, atol=1e-8)
        assert abs(np.vdot(noise[0], noise[1])) < 0.1 * noise[0].size, 'other noise in the other'
        parts, columns, _ = propagator(d, 'z4:7,dilute=flavour')
        assert columns['flavour'].tolist() == [1, -1] and parts.shape[:2] == (2, 2)
        for k, option in enumerate(('+1', '-1')):
            one, columns, _ = propagator(d, 'z4:7,flavour=' + option)
            b = case.op.apply(one[0])
            assert columns['flavour'].tolist() == [int(option)]
            assert np.allclose(b[k], noise[k], atol=1e-8) and np.abs(b[1 - k]).max() < 1e-8
            assert np.linalg.norm(one[0] - parts[k]) < 1e-9 * np.linalg.norm(one)
        field, columns, _ = propagator(d, 'z2:3,count=2,dilute=flavour+spin+colour')
        assert len(field) == 48 and columns['flavour'].tolist() == 2 * (12 * [1] + 12 * [-1])


@tap.test
def right_hand_sides_of_a_file_are_solved_and_written(case):
    b = np.random.default_rng(3).normal(size=(3, 2) + SHAPE + (2,)) @ np.array([1, 1j])
    with case.daemon('--slots=4', '--file-roots=' + tempfile.gettempdir()) as d:
        write_sources(d.path('b.h5'), b)
        write_sources(d.path('one.h5'), b[0], name='b', site_reals=np.int32(48))
        for name, n in ('b.h5', 3), ('one.h5', 1):
            assert d.ctl('solve', '--in', d.path(name), '--out', d.path('x.h5'), '--tol=1e-11').code == 0
            x, columns, about = contents(d.path('x.h5'))
            assert x.shape == (n, 2) + SHAPE and about['site_reals'] == 48 and about['kind'] == 'solution'
            assert (columns['source'] == b'upload').all() and not columns['flavour'].any()
            assert all(case.off(y, k) < 1.01e-11 for y, k in zip(x, b))
        # raw files: one flavour behind the other, right-hand side by right-hand side
        b.tofile(d.path('b.raw'))
        done = d.ctl('solve', '--source=file:%s,nrhs=3' % d.path('b.raw'), '--sink=file:' + d.path('x.raw'), '--tol=1e-11')
        assert done.code == 0, done
        assert all(case.off(y, k) < 1.01e-11 for y, k in zip(np.fromfile(d.path('x.raw'), complex).reshape(b.shape), b))
        # sources in the form of one's own output, in f32, with what was known of their columns
        field, columns, _ = propagator(d, POINT, '--dtype=f32', out='s.h5')
        assert d.ctl('solve', '--in', d.path('s.h5'), '--out', d.path('x.h5'), '--tol=1e-6').code == 0
        x, kept, _ = contents(d.path('x.h5'))
        assert x.dtype == np.complex64 and (kept['flavour'] == columns['flavour']).all()
        assert all(case.off(y, k.astype(complex)) < 2e-6 for y, k in zip(x, field))


@tap.test
def detached_work_is_fetched_as_it_would_have_been_written(case):
    with case.daemon('--slots=24') as d:
        for source in POINT, 'wall:2,flavour=-1', 'z2:7,dilute=flavour':
            want = propagator(d, source)
            out = d.path('later.h5')
            assert d.ctl('propagator', '--source=' + source, '--out', out, '--tol=1e-11', '--detach').code == 0
            assert d.ctl('fetch', out + '.ticket').code == 0
            field, columns, about = contents(out)
            assert field.shape == want[0].shape and np.abs(field - want[0]).max() < 1e-9
            for name in 'flavour', 'spin', 'colour', 'site', 'source', 'seed', 'momentum':
                assert (columns[name] == want[1][name]).all(), name
            assert about.keys() == want[2].keys() and about['site_reals'] == 48


@tap.test
def files_of_one_flavour_and_of_two_are_not_mixed_up(case):
    two = np.ones((1, 2) + SHAPE, complex)
    with case.daemon('--slots=2') as d, Case.daemon(case, '--slots=2') as usual:
        write_sources(d.path('one.h5'), two[:, 0])
        write_sources(d.path('two.h5'), two)
        for daemon, name, text in ((d, 'one.h5', 'fields of 24 real numbers at a site, but those of setup main, doublet, have 48: a file for it has the '
                                    'attribute site_reals = 48 and the 8 dimensions [rhs][flavour][t]'),
                                   (usual, 'two.h5', 'fields of 48 real numbers at a site, but those of setup main, wilson-clover, have 24: a file for it '
                                    'has the 7 dimensions [rhs][t]')):
            done = daemon.ctl('solve', '--in', d.path(name), '--out', d.path('x.h5'))
            assert done.code == DATA and text in done.err and name in done.err, done
            assert not os.path.exists(d.path('x.h5'))
        done = usual.ctl('propagator', '--source=z2:1,flavour=-1', '--out', d.path('x.h5'))
        assert done.code == USAGE and 'wilson-clover: flavour=-1 is for right-hand sides of two flavours (doublets)' in done.err, done
        done = d.ctl('propagator', '--source=' + POINT, '--out', d.path('x.h5'), '--flavour=-1')
        assert done.code == DATA and 'flavour = -1: right-hand sides of the action doublet of this setup have both flavours' in done.err, done


WORKFLOW = '[workflow]\nout = c.h5\n%s\n[source s]\nsource = %s\n'


@tap.test
def what_is_not_defined_for_two_flavours_is_refused_with_what_works(case):
    with case.daemon('--slots=24') as d:
        out = d.path('c.h5')
        d.wait_listening()

        def workflow(head, source=POINT):
            with open(d.path('w.ini'), 'w', encoding='utf-8') as f:
                f.write(WORKFLOW % (head, source))
            return d.ctl('workflow', d.path('w.ini'))
        endpoint = 'endpoint = ' + d.endpoint
        own = 'gauge = %s\naction = doublet\nkappa = 0.12\nmu = 0.3\nepsilon = 0.2' % GAUGE
        for done, what in ((d.ctl('correlator', '--source=' + POINT, '--out', out), 'contractions'),
                           (d.ctl('sequential', '--source=' + POINT, '--sink-time=all', '--out', out), 'sequential sources'),
                           (d.ctl('bench', '--sink=correlator', '--source=point', '--rhs=12', '--requests=1'), 'contractions'),
                           (workflow(endpoint), 'contractions'), (workflow(own), 'contractions')):
            assert done.code == DATA and 'two flavours, for which %s are not defined; quarkctl propagator' % what in done.err, done
            assert not os.path.exists(out)
        for done in d.ctl('correlator', '--source=%s,flavour=-1' % POINT, '--out', out), workflow(endpoint, POINT + ',flavour=-1'):
            assert done.code in (USAGE, DATA) and 'all spins and colours, without a flavour' in done.err, done
        _, columns, _ = propagator(d, POINT)
        done = d.ctl('correlator', d.path('p.h5'))
        assert done.code == DATA and 'not for the two flavours of a doublet' in done.err, done
        # the daemon goes on
        assert d.ctl('bench', '--source=point,upload', '--rhs=1:30', '--requests=4', '--tol=1e-6', '--verify').code == 0


@tap.test
def actions_and_status_say_that_there_are_two(case):
    done = case.ctl('actions', '--json')
    assert {a['name']: a['vectors'] for a in done.json['actions'] if a['vectors'] != 1} == {'doublet': 2}, done
    assert 'right-hand sides of two flavours' in case.ctl('actions', 'doublet').out
    assert 'two flavours' not in case.ctl('actions', 'twisted-clover').out
    with case.daemon('--slots=2') as d:
        setup = d.ctl('status', '--json').json['setup']
        assert (setup['action'], setup['site_reals'], setup['columns']) == ('doublet', 48, 24), setup


tap.run(Doublets(*sys.argv[1:]))
