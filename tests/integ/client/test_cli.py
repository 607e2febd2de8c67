"""quarkctl as a user sees it, with the real daemon: test_cli.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE SHIM

Solutions are judged by the numpy oracle, files by h5py.
"""
import contextlib
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile

from cli_case import (AGAIN, COLUMN_BYTES, CONFIG, CSW, DATA, DIMS, GAUGE, KAPPA, ROOT, SHAPE, UNAVAILABLE, USAGE,
                      Case, h5py, np, random_sources, read_field, ref, tap, write_sources)
from daemon import LIMIT, Daemon

CLIENT = '00112233445566778899aabbccddeeff'
COMMANDS = ('status', 'load', 'actions', 'drop', 'default', 'top', 'propagator', 'sequential', 'solve', 'apply', 'fetch', 'correlator', 'workflow', 'eigen', 'perambulator', 'cancel', 'shutdown', 'selftest')


# ---- without a daemon -----------------------------------------------------------------------------


@tap.test
def help_and_version_are_no_errors(case):
    assert case.ctl('--help').code == 0 and case.ctl('--version').out.startswith('quarkctl ')
    for command in COMMANDS:
        done = case.ctl(command, '--help')
        assert done.code == 0 and '--json' in done.out, done


@tap.test
def the_man_page_knows_every_option(case):
    with open(os.path.join(ROOT, 'docs', 'man', 'quarkctl.1'), encoding='utf-8') as f:
        known = set(re.findall(r'^\.It .*?Fl -([a-z-]+)', f.read(), re.MULTILINE))
    known |= {'rhs', 'usage', 'sink-momentum'}  # a second one on its line; argp's own
    for command in COMMANDS:
        options = set(re.findall(r'^ +(?:-., )?--([a-z-]+)', case.ctl(command, '--help').out, re.MULTILINE))
        assert 'json' in options and options <= known, (command, options - known)


@tap.test
def actions_are_listed_without_a_daemon(case):
    listed = case.ctl('actions', '--json', endpoint='tcp://127.0.0.1:1')
    assert listed.code == 0 and [a['name'] for a in listed.json['actions']][:2] == ['wilson', 'wilson-clover'], listed
    clover = listed.json['actions'][1]
    assert clover['has_kappa'] is True and [p['key'] for p in clover['parameters']][:2] == ['mass', 'csw'], clover
    mass = clover['parameters'][0]
    assert (mass['type'], mass['least'], mass['least_excluded'], mass['default'], mass['unit']) == ('real', -4, True, None, '1/a'), mass
    text = case.ctl('actions').out
    for action in listed.json['actions']:
        assert action['reference'] in text and all(' %s ' % p['key'] in text for p in action['parameters']), text
    one = case.ctl('actions', 'wilson').out
    assert one in text and 'wilson-clover' not in one and '(-4, 1e+06]' in one and 'or kappa' in one, one
    done = case.ctl('actions', 'overlapp')
    assert done.code == USAGE and '"overlapp"' in done.err and 'wilson, wilson-clover' in done.err and done.out == '', done
    with open(os.path.join(ROOT, 'docs', 'man', 'quarkctl.1'), encoding='utf-8') as f:
        assert case.ctl('actions', '--help-man').out in f.read(), 'the man page has what quarkctl actions --help-man prints'


@tap.test
def wrong_usage_exits_64_and_names_the_option(case):
    for args, word in (((), 'Usage'), (('solve',), '--out'), (('nonsense',), 'nonsense'),
                       (('propagator', '--source=point:0,0,0', '--out=p.h5'), 'point:0,0,0'),
                       (('propagator', '--source=z3:1', '--out=p.h5'), 'z3:1'),
                       (('propagator', '--source=point:0,0,0,0', '--count=3', '--out=p.h5'), '--count'),
                       (('propagator', '--source=wall:1', '--tol=2', '--out=p.h5'), '--tol=2'),
                       (('propagator', '--source=wall:1', '--dtype=f16', '--out=p.h5'), 'f16'),
                       (('propagator', '--source=wall:1', '--basis=chiral', '--out=p.h5'), 'chiral'),
                       (('propagator', '--source=wall:1'), '--out'), (('status', 'extra'), 'Usage'),
                       (('correlator',), 'a file or --source is required'), (('fetch',), 'ticket'), (('correlator', '--channel=rho', 'p.h5'), 'rho'),
                       (('cancel',), '--client'), (('cancel', '--client=12'), '32 hexadecimal digits'),
                       (('load', 'a', '--set=mass'), 'KEY=VALUE'), (('load', 'a', '--set=mass='), '--set=mass=: must be KEY=VALUE'),
                       (('load', 'a', '--set=mass=1', '--set=mass=2'), 'mass is given twice: 1 and 2'),
                       (('load', 'a', '--mass=1', '--set=mass=2'), '--mass and --set=mass=2'),
                       (('load', 'a', '--set=mass=1 '), 'blanks'), (('load', 'a', '--action=a;b'), 'a;b'),
                       (('load', 'a', '--action=wilson', '--set=mass=heavy'), '--set=mass=heavy: must be a number'),
                       (('actions', 'a', 'b'), '"b"'), (('status', '--timeout=-1'), '--timeout=-1')):
        done = case.ctl(*args)
        assert done.code == USAGE and word in done.err and done.out == '', (args, done)


@tap.test
def an_absent_daemon_exits_69(case):
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(('127.0.0.1', 0))
        endpoint = 'tcp://127.0.0.1:%d' % taken.getsockname()[1]
        for command in ('status', 'shutdown'):
            done = case.ctl(command, '--timeout=0.3', endpoint=endpoint)
            assert done.code == UNAVAILABLE and endpoint in done.err, done


@tap.test
def a_malformed_endpoint_exits_78(case):
    done = case.ctl('status', '--endpoint=nowhere')
    assert done.code == CONFIG and 'endpoint "nowhere": neither' in done.err, done


@tap.test
def correlator_of_a_bad_file_exits_65(case):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'bad.h5')
        assert case.ctl('correlator', path).code == DATA
        with open(path, 'wb') as f:
            f.write(b'\x89HDF\r\n\x1a\n' + bytes(1000))
        done = case.ctl('correlator', path, '--json')
        assert done.code == DATA and path in done.err and done.out == '', done
        write_sources(path, random_sources(12))
        done = case.ctl('correlator', path)
        assert done.code == DATA and 'columns' in done.err, done


# ---- the main job -----------------------------------------------------------------------------------


@tap.test
def point_propagator_from_start_to_shutdown(case):
    with case.daemon() as d:
        status = d.ctl('status', '--json')
        start = status.json['setup']['start']
        phases = [p['seconds'] for p in start if not p['beside']]
        assert start[0]['phase'] == 'device' and 0 < sum(phases) <= status.json['setup']['load_seconds'], start
        assert re.search(r'^start +\d+\.\d\d s: device \d', d.ctl('status').out, re.M), d.ctl('status').out
        assert status.code == 0 and status.json['state'] == 'ready' and status.json['ready'] is True
        assert status.json['setup']['dims'] == DIMS and status.json['engine']['backend'] == 'cpu'
        assert abs(status.json['setup']['kappa'] - KAPPA) < 1e-15 and status.json['setup']['csw'] == CSW
        out = d.path('prop.h5')
        done = d.ctl('propagator', '--source=point:1,2,3,5', '--tol=1e-11', '--out', out, '--json')
        assert done.code == 0 and done.err == '' and done.json['out'] == out and done.json['seconds'] > 0, done
        clocks = done.json['clocks']
        assert set(clocks) == {'fetch', 'write', 'sync'} and all(0 < s < done.json['seconds'] for s in clocks.values()), done
        assert len(done.json['rhs']) == 12
        for r in done.json['rhs']:
            assert r['status'] == 'OK' and 0 < r['true_residual'] <= 1e-11 and r['iterations'] > 0 and r['seconds'] > 0
        x = read_field(out)
        assert x.shape == (12,) + SHAPE and x.dtype == np.complex128
        for i, r in enumerate(done.json['rhs']):
            b = ref.point_source(case.op, i // 3, i % 3, (5, 3, 2, 1))
            assert abs(case.residual(x[i], b) - r['true_residual']) < 1e-13, i
        corr = d.ctl('correlator', '--channel', 'pion', out, '--json')
        assert corr.code == 0 and corr.json['T'] == 8 and corr.json['t0'] == 5, corr
        assert corr.json['source'] == 'point:1,2,3,5'
        want = np.roll((abs(x)**2).sum(axis=(0, 2, 3, 4, 5, 6)), -5)
        found = corr.json['channels']['pion']
        assert np.allclose(found['C'], want, rtol=1e-13, atol=0)
        for t in range(8):
            ratio = np.cosh(found['meff'][t] * (t - 4)) / np.cosh(found['meff'][t] * (t - 3))
            assert abs(ratio / (want[t] / want[(t + 1) % 8]) - 1) < 1e-9
        done = d.ctl('shutdown', '--wait', '--json')
        assert done.code == 0 and done.json == {'shutdown': True, 'now': False}, done
        assert d.process.wait(LIMIT) == 0


@tap.test
def files_describe_themselves(case):
    with case.daemon() as d:
        digest = d.ctl('status', '--json').json['setup']['digest']
        out = d.path('prop.h5')
        assert d.ctl('propagator', '--source=point:0,0,0,2', '--tol=1e-6', '--dtype=f32', '--out', out).code == 0
        with h5py.File(out, 'r') as f:
            a = dict(f.attrs)
            assert (a['format'], a['format_version'], a['kind']) == ('quarkd field', 1, 'propagator')
            assert (a['basis'], a['normalisation'], a['source']) == ('degrand-rossi', 'mass', 'point:0,0,0,2')
            assert (a['gauge'], a['digest'], a['tolerance']) == (GAUGE, digest, 1e-6)
            assert list(a['dims']) == DIMS and list(a['boundary']) == [1, 0, 1, 0, 1, 0, -1, 0]
            assert abs(a['kappa'] - KAPPA) < 1e-15 and a['csw'] == CSW and 0 < a['plaquette'] < 1
            assert a['action'] == 'wilson-clover;mass=%r;csw=%r' % (0.5 / KAPPA - 4, CSW) and a['site_reals'] == 24, a['action']
            assert re.match(r'quarkd \d', a['program'])
            assert f['field'].dtype == np.complex64 and f['field'].chunks == (1,) + SHAPE
            columns = f['columns'][...]
            assert [s.decode() for s in columns['status']] == ['OK'] * 12
            assert (columns['true_residual'] <= 1e-6).all() and (columns['iterations'] > 0).all()
            assert list(columns['spin']) == [i // 3 for i in range(12)]
            assert list(columns['colour']) == [i % 3 for i in range(12)]
            assert (columns['site'] == [0, 0, 0, 2]).all() and set(columns['source']) == {b'point'}


@tap.test
def correlator_prints_a_table_and_pictures(case):
    with case.daemon() as d:
        out, png = d.path('prop.h5'), d.path("it's.png")
        assert d.ctl('propagator', '--source=wall:0', '--tol=1e-6', '--out', out).code == 0
        done = d.ctl('correlator', out, '--plot', '--png', png)
        rows = [line.split() for line in done.out.splitlines() if re.match(r'\s+\d+\s+\d\.\d+e', line)]
        assert done.code == 0 and [int(r[0]) for r in rows] == list(range(8)), done
        assert done.out.count('*') + done.out.count('\u25cf') >= 8
        if os.path.exists(png):
            with open(png, 'rb') as f:
                assert f.read(8) == b'\x89PNG\r\n\x1a\n'
            done = d.ctl('correlator', out, '--png=/no/such/folder/c.png', '--json')
            assert done.code == DATA and '/no/such/folder/c.png' in done.err and done.out == '', done
        else:
            assert 'gnuplot is not installed' in done.err


@tap.test
def noise_depends_on_the_seed_only(case):
    args = ('propagator', '--tol=1e-8', '--out')
    with case.daemon('--slots=3') as d:
        for name, source in (('a', 'z2:7:3'), ('b', 'z2:7:3'), ('c', 'z4:7')):
            assert d.ctl(*args, d.path(name), '--source=' + source, '--count=4').code == 0
        a, b = read_field(d.path('a')), read_field(d.path('b'))
        assert a.shape[0] == 4 and np.abs(a - b).max() < 1e-7
        source = np.array([case.op.apply(x) for x in a])
        assert np.abs(np.delete(source, 3, axis=1)).max() < 1e-6
        assert np.allclose(np.abs(source[:, 3].real), np.abs(source[:, 3].real).max(), atol=1e-5)
        assert np.abs(source[0] - source[1]).max() > 0.1
        corr = d.ctl('correlator', d.path('a'), '--json')
        want = np.roll((abs(a)**2).sum(axis=(0, 2, 3, 4, 5, 6)), -3) / 4 / 64
        assert np.allclose(corr.json['channels']['pion']['C'], want, rtol=1e-12)
        done = d.ctl('correlator', d.path('c'))
        assert done.code == DATA and 'time slice' in done.err, done


# ---- right-hand sides from files ------------------------------------------------------------------


@tap.test
def solve_answers_what_h5py_wrote(case):
    b = random_sources(3)
    with case.daemon() as d:
        write_sources(d.path('b.h5'), b, name='anything')
        done = d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('x.h5'), '--tol=1e-12', '--json')
        assert done.code == 0 and [r['status'] for r in done.json['rhs']] == ['OK'] * 3, done
        x = read_field(d.path('x.h5'))
        for i in range(3):
            assert case.residual(x[i], b[i]) < 1.1e-12
        again = d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('k.h5'), '--tol=1e-12', '--normalisation=kappa')
        assert again.code == 0, again
        assert np.allclose(read_field(d.path('k.h5')) * 2 * KAPPA, x, rtol=0, atol=1e-11 * np.abs(x).max())


@tap.test
def fields_go_by_shared_memory_where_the_daemon_allows_it(case):
    b, x = random_sources(2), {}
    for local in ('yes', 'no'):
        with case.daemon('--local=' + local) as d:
            write_sources(d.path('b.h5'), b)
            done = d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('x.h5'), '--tol=1e-12', '--json')
            assert done.code == 0, done
            x[local] = read_field(d.path('x.h5'))
            c = d.ctl('status', '--json').json['counters']
            assert c['bytes_in'] == c['bytes_out'] == b.nbytes
            assert c['bytes_local'] == (2 * b.nbytes if local == 'yes' else 0), c
    assert np.allclose(x['yes'], x['no'], rtol=0, atol=1e-11 * np.abs(x['no']).max())


@tap.test
def solve_keeps_the_precision_of_the_file_unless_told(case):
    with case.daemon() as d:
        write_sources(d.path('b.h5'), random_sources(1, np.complex64))
        for more, dtype, limit in (((), np.complex64, 1e-6), (('--dtype=f64',), np.complex128, 1e-9)):
            assert d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('x.h5'), '--tol=1e-9', *more).code == 0
            x = read_field(d.path('x.h5'))
            assert x.dtype == dtype
            assert case.residual(x[0].astype(complex), random_sources(1, np.complex64)[0].astype(complex)) < limit


@tap.test
def other_bases_are_rotations_of_the_same_solution(case):
    b = random_sources(1)
    with case.daemon() as d:
        write_sources(d.path('b.h5'), b, basis='ukqcd')
        assert d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('x.h5'), '--tol=1e-12').code == 0
        x = read_field(d.path('x.h5'))
        with h5py.File(d.path('x.h5'), 'r') as f:
            assert f.attrs['basis'] == 'ukqcd'
        assert case.residual(x[0], b[0]) > 1e-3, 'the basis should matter'
        done = d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('y.h5'), '--basis=openqcd')
        assert done.code == DATA and 'ukqcd' in done.err, done
        write_sources(d.path('b.h5'), b, basis='mine')
        done = d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('y.h5'))
        assert done.code == DATA and 'mine' in done.err, done


@tap.test
def many_right_hand_sides_keep_their_order(case):
    n = 40
    b = random_sources(1)[0]
    with case.daemon('--slots=3') as d:
        with h5py.File(d.path('b.h5'), 'w') as f:
            f['field'] = np.array([(i + 1) * b for i in range(n)])
        done = d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('x.h5'), '--tol=1e-9', '--json')
        assert done.code == 0 and len(done.json['rhs']) == n
        x = read_field(d.path('x.h5'))
        for i in range(n):
            assert np.allclose(x[i] / (i + 1), x[0], rtol=0, atol=1e-7 * np.abs(x[0]).max()), i
        assert d.ctl('status', '--json').json['memory']['used'] == 0


@tap.test
def little_memory_in_the_daemon_means_smaller_requests(case):
    field = int(np.prod(SHAPE)) * 16
    with case.daemon('--max-memory=%d' % (5 * field)) as d:
        write_sources(d.path('b.h5'), random_sources(7))
        done = d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('x.h5'), '--tol=1e-6')
        assert done.code == 0 and read_field(d.path('x.h5')).shape[0] == 7, done
    with case.daemon('--max-memory=%d' % field) as d:
        write_sources(d.path('b.h5'), random_sources(2))
        done = d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('x.h5'), '--timeout=5')
        assert done.code == DATA and 'TOO_LARGE' in done.err, done
        assert not os.path.exists(d.path('x.h5'))


@tap.test
def files_that_do_not_fit_are_refused_with_both_shapes(case):
    with case.daemon() as d:
        with h5py.File(d.path('b.h5'), 'w') as f:
            f['field'] = np.zeros((1, 6, 4, 4, 4, 4, 3), complex)
        done = d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('x.h5'))
        assert done.code == DATA and '4 x 4 x 4 x 6' in done.err and '4 x 4 x 4 x 8' in done.err, done
        done = d.ctl('propagator', '--source=point:0,0,0,8', '--out', d.path('x.h5'))
        assert done.code == USAGE and 't = 8' in done.err, done
        done = d.ctl('solve', '--in', d.path('none.h5'), '--out', d.path('x.h5'))
        assert done.code == DATA and 'none.h5' in done.err, done
        assert not os.path.exists(d.path('x.h5'))


@tap.test
def the_example_of_the_library_solves(case):
    with case.daemon() as d:
        assert d.ctl('status').code == 0
        done = subprocess.run([case.example, d.endpoint, *map(str, DIMS)], stdout=subprocess.PIPE, text=True, timeout=LIMIT)
        assert done.returncode == 0 and done.stdout.startswith('OK: residual'), done
        write_sources(d.path('b.h5'), np.ones((1,) + SHAPE, complex))
        assert d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('x.h5')).code == 0
        re_part, im_part = re.search(r'of x: (\S+) (\S+) i', done.stdout).groups()
        assert abs(complex(float(re_part), float(im_part)) - read_field(d.path('x.h5')).flat[0]) < 1e-9


# ---- right-hand sides that do not go well ---------------------------------------------------------


@tap.test
def a_missed_tolerance_is_told_and_exits_65(case):
    with case.daemon() as d:
        out = d.path('p.h5')
        done = d.ctl('propagator', '--source=point:0,0,0,0', '--max-iter=2', '--out', out, '--json')
        assert done.code == DATA, done
        for r in done.json['rhs']:
            assert r['status'] == 'NOT_CONVERGED' and r['true_residual'] > 1e-10 and 0 < r['iterations'] <= 10, r
        x = read_field(out)
        b = ref.point_source(case.op, 0, 0)
        assert abs(case.residual(x[0], b) - done.json['rhs'][0]['true_residual']) < 1e-12
        worst = max(r['true_residual'] for r in done.json['rhs'])
        done = d.ctl('propagator', '--source=point:0,0,0,0', '--max-iter=2', '--out', d.path('q.h5'))
        assert '0 of 12 converged, largest residual %.3g, ' % worst in done.out, done
        done = d.ctl('correlator', out)
        assert done.code == DATA and 'NOT_CONVERGED' in done.err, done


@tap.test
def nan_and_zero_leave_their_neighbours_alone(case):
    b = random_sources(4)
    b[1, 3, 2, 1, 0, 2, 1] = np.nan
    b[2] = 0
    with case.daemon() as d:
        write_sources(d.path('b.h5'), b)
        done = d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('x.h5'), '--tol=1e-10', '--json')
        assert done.code == DATA, done
        assert [r['status'] for r in done.json['rhs']] == ['OK', 'NAN_INPUT', 'OK', 'OK'], done
        assert done.json['rhs'][2]['iterations'] == 0
        x = read_field(d.path('x.h5'))
        assert not x[2].any() and max(case.residual(x[i], b[i]) for i in (0, 3)) < 1.1e-10


@tap.test
def a_full_disk_is_told_and_leaves_nothing(case):
    with case.daemon() as d:
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (500000, 500000))
        done = d.ctl('propagator', '--source=wall:0', '--tol=1e-6', '--out', d.path('p.h5'), preexec_fn=limit)
        assert done.code == DATA and 'p.h5' in done.err and 'IO_ERROR' in done.err and done.out == '', done
        assert [n for n in os.listdir(d.folder.name) if n.startswith('p.h5')] == []


# ---- interruptions ----------------------------------------------------------------------------------


class Stuck:
    """A propagator whose engine is stopped while it works on it."""

    def __init__(self, d, *args):
        self.d = d
        self.engine = d.ctl('status', '--json').json['engine']['pid']
        os.kill(self.engine, signal.SIGSTOP)
        self.process = d.start_ctl('propagator', '--source=point:0,0,0,0', '--out', d.path('p.h5'), '--json', '--progress',
                                   *args)
        line = self.process.stderr.readline()  # the first progress: the engine has been given the work
        assert '0 of 12' in line and '12 running' in line, line

    def proceed(self):
        os.kill(self.engine, signal.SIGCONT)

    def finish(self):
        out, err = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, out, err


@tap.test
def a_killed_engine_is_a_delay(case):
    with case.daemon() as d:
        stuck = Stuck(d)
        os.kill(stuck.engine, signal.SIGKILL)
        code, out, err = stuck.finish()
        assert code == 0 and '"ENGINE_LOST"' not in out and os.path.exists(d.path('p.h5')), (code, out, err)
        done = d.ctl('propagator', '--source=point:0,0,0,0', '--out', d.path('q.h5'), '--json')
        assert done.code == 0, done
        status = d.ctl('status', '--json').json
        assert status['engine']['restarts'] == 1 and status['engine']['pid'] != stuck.engine


@tap.test
def a_killed_daemon_is_a_delay(case):
    """With a state folder; the next one comes back at the same endpoint."""
    with tempfile.TemporaryDirectory() as state:
        with case.daemon('--state', state) as d:
            d.expected = -signal.SIGKILL
            stuck = Stuck(d)
            d.process.kill()
            d.process.wait()
            again = case.daemon('--state', state, '--listen=' + d.endpoint, '--listen-data=tcp://127.0.0.1:0')
            with again as d2:
                stuck.proceed()  # its engine is the next daemon's
                code, out, err = stuck.finish()
                assert code == 0 and os.path.exists(d.path('p.h5')), (code, out, err, d2.log)
                done = d2.ctl('propagator', '--source=point:0,0,0,0', '--out', d.path('q.h5'), '--json')
                assert done.code == 0, done
                x, y = read_field(d.path('p.h5')), read_field(d.path('q.h5'))
                assert np.max(np.abs(x - y)) <= 1e-8 * np.max(np.abs(y))


@tap.test
def ctrl_c_leaves_nothing_behind(case):
    with case.daemon() as d:
        stuck = Stuck(d)
        stuck.process.send_signal(signal.SIGINT)
        code, out, err = stuck.finish()
        stuck.proceed()
        assert code == AGAIN and 'interrupted' in err and out == '', (code, out, err)
        assert [n for n in os.listdir(d.folder.name) if n.startswith('p.h5')] == []
        assert d.ctl('propagator', '--source=point:0,0,0,0', '--out', d.path('q.h5')).code == 0
        counters = d.ctl('status', '--json').json['counters']
        assert counters['requests'] == 0 and counters['held'] == 0, counters


@tap.test
def ctrl_c_while_a_column_is_written_leaves_nothing_behind(case):
    """The disk stalls in a column. The request ends, an older file of that name stays, and the same command does all of it again."""
    with case.daemon() as d:
        out, disk = d.path('p.h5'), case.disk(d.folder.name)
        with open(out, 'w', encoding='utf-8') as f:
            f.write('older')
        disk.stalls_writes(COLUMN_BYTES)
        process = d.start_ctl('propagator', '--source=point:0,0,0,0', '--out', out, env=disk.env)
        disk.when_met()
        assert len([n for n in os.listdir(d.folder.name) if n.startswith('p.h5')]) == 2  # with the one that grows
        process.send_signal(signal.SIGINT)
        disk.works()
        printed, err = process.communicate(timeout=LIMIT)
        assert process.returncode == AGAIN and printed == '', (process.returncode, printed, err)
        assert re.search(r'interrupted: \d+ of 12 right-hand sides had ended; nothing is written', err), err
        assert [n for n in os.listdir(d.folder.name) if n.startswith('p.h5')] == ['p.h5']
        with open(out, encoding='utf-8') as f:
            assert f.read() == 'older'
        assert d.ctl('propagator', '--source=point:0,0,0,0', '--out', out).code == 0
        counters = d.ctl('status', '--json').json['counters']
        assert counters['requests'] == counters['held'] == counters['running'] == 0, counters
        b = np.zeros((12,) + SHAPE, complex)
        b[:, 0, 0, 0, 0] = np.eye(12).reshape(12, 4, 3)
        assert max(case.residual(x, source) for x, source in zip(read_field(out), b)) < 1.1e-10


@tap.test
def a_disk_that_takes_no_more_ends_the_command(case):
    """In the middle of the file: the fifth solution is not written. Told once, and nothing is left."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500000, 500000))
    for local in ('yes', 'no'):
        with case.daemon('--local=' + local) as d:
            done = d.ctl('propagator', '--source=point:0,0,0,0', '--out', d.path('p.h5'), preexec_fn=limit)
            assert done.code == DATA and done.out == '' and done.err.count('\n') == 1, done
            assert re.search(r'p\.h5: field\[\d+\] cannot be written.*IO_ERROR', done.err), done
            assert [n for n in os.listdir(d.folder.name) if n.startswith('p.h5')] == []
            counters = d.ctl('status', '--json').json['counters']
            assert counters['requests'] == 0 and counters['held'] == 0, counters


@tap.test
def cancel_ends_the_requests_of_another_process(case):
    with case.daemon('--lease=3') as d:
        assert d.ctl('cancel', '--client', CLIENT).code == DATA
        stuck = Stuck(d, '--client', CLIENT)
        done = d.ctl('cancel', '--client', CLIENT, '--json')
        assert done.code == 0 and done.json == {'cancelled': True}, done
        stuck.proceed()
        code, out, err = stuck.finish()
        assert code == AGAIN and not os.path.exists(d.path('p.h5')), (code, out, err)


def free_pair():
    """A port that is free with the next one, below those that outgoing connections take: they hold theirs for a minute after they end."""
    for port in random.sample(range(20000, 32000, 16), 750):
        with contextlib.suppress(OSError), socket.socket() as a, socket.socket() as b:
            a.bind(('127.0.0.1', port))
            b.bind(('127.0.0.1', port + 1))
            return port
    raise AssertionError('no free ports')


@tap.test
def what_is_waited_for_is_free_for_the_next_daemon(case):
    """Its ports and its state folder."""
    listen = 'tcp://127.0.0.1:%d' % free_pair()
    with tempfile.TemporaryDirectory() as state, contextlib.ExitStack() as stack:
        for _ in range(5):
            d = stack.enter_context(case.daemon('--state', state, listen=listen))
            assert d.ctl('shutdown', '--wait').code == 0, d.log


@tap.test
def a_daemon_that_leaves_is_told_apart_from_an_error(case):
    with case.daemon() as d:
        stuck = Stuck(d)
        assert d.ctl('shutdown', '--now').code == 0
        stuck.proceed()
        code, out, err = stuck.finish()
        assert code == AGAIN and 'SHUTTING_DOWN' in err + out, (code, out, err)
        assert d.process.wait(LIMIT) == 0


@tap.test
def status_waits_for_ready_unless_any(case):
    with tempfile.TemporaryDirectory() as folder:
        engine = os.path.join(folder, 'engine')
        with open(engine, 'w') as f:
            f.write('#!/bin/sh\nexec tail -f /dev/null\n')  # lives, and never says hello
        os.chmod(engine, 0o755)
        with case.daemon('--engine=' + engine) as d:
            done = d.ctl('status', '--timeout=0.5', '--json')
            assert done.code == AGAIN and 'starting' in done.err and done.out == '', done
            done = d.ctl('status', '--any', '--json')
            assert done.code == 0 and done.json['state'] == 'starting' and done.json['ready'] is False, done
            done = d.ctl('propagator', '--source=wall:0', '--out', d.path('p.h5'), '--timeout=0.5')
            assert done.code == AGAIN, done


@tap.test
def status_says_why_a_configuration_was_refused(case):
    with tempfile.TemporaryDirectory() as folder:
        gauge, gate, engine = (os.path.join(folder, name) for name in ('damaged.lime', 'gate', 'engine'))
        subprocess.run([case.quark_gauge, 'convert', GAUGE, gauge], check=True, stdout=subprocess.DEVNULL)
        with open(gauge, 'r+b') as f:
            f.seek(100000)
            f.write(b'damage')
        os.mkfifo(gate)
        with open(engine, 'w') as f:
            f.write('#!/bin/sh\nread go < %s\nexec %s "$@"\n' % (gate, case.engine))
        os.chmod(engine, 0o755)
        with Daemon(case.quarkd, case.quarkctl, '--gauge=' + gauge, '--kappa=0.1', '--engine=' + engine) as d:
            d.expected = DATA
            waiting = d.start_ctl('status')
            while d.ctl('status', '--any', '--json').json['counters']['sessions'] < 2:
                assert waiting.poll() is None
            with open(gate, 'w') as f:
                f.write('go\n')
            out, err = waiting.communicate(timeout=LIMIT)
            assert waiting.returncode == DATA and 'checksum' in err and out == '', (waiting.returncode, err)
            assert d.process.wait(LIMIT) == DATA


tap.run(Case(*sys.argv[1:]))
