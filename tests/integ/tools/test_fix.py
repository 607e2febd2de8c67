"""quark-gauge fix as a user sees it: test_fix.py QUARK_GAUGE

Links and transformations that it writes are judged by the numpy oracle.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile

import tap
try:
    import numpy as np
    import fix_ref
    import ref_dirac as ref
    import scidac
except ImportError as missing:
    tap.skip_all('numpy and scipy are needed: %s' % missing)

WEAK = 'builtin:weak:4x4x6x8:7'
KEYS = {'in', 'out', 'gauge', 'format', 'bits', 'transform', 'backend', 'grid', 'converged', 'interrupted', 'iterations',
        'functional', 'theta', 'tol', 'overrelax', 'plaquette_before', 'plaquette'}
USAGE, DATA_ERROR, AGAIN = 64, 65, 75


def call(exe, *args):
    return subprocess.run([exe, *args], capture_output=True, text=True, timeout=240)


def fix(exe, *args):
    done = call(exe, 'fix', '--json', *args)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rough(exe, folder, beta='6'):
    """A thermal configuration, far from any gauge."""
    done = call(exe, 'generate', '--dims=4x4x4x8', '--beta=' + beta, '--sweeps=5', '--quiet', '--out=' + folder + '/%d.lime',
                '--start=hot')
    assert done.returncode == 0, done.stderr
    return os.path.join(folder, '5.lime')


@tap.test
def fixed_links_are_fixed_by_the_oracle(exe):
    with tempfile.TemporaryDirectory() as folder:
        config = rough(exe, folder)
        out, turn = os.path.join(folder, 'out.lime'), os.path.join(folder, 'g.lime')
        links, _ = ref.load_lime(config)
        for gauge in fix_ref.DIRECTIONS:
            for more in [], ['--random-start=4'], ['--overrelax=1.3', '--check-every=7'], ['--overrelax=1.95']:
                told = fix(exe, '--gauge=' + gauge, '--transform=' + turn, *more, config, out)
                found, _ = ref.load_lime(out)
                assert set(told) == KEYS and told['converged'] and not told['interrupted']
                assert told['gauge'] == gauge and told['transform'] == turn and told['iterations'] > 0
                if '--overrelax=1.95' in more:
                    assert told['iterations'] <= 500, told  # with always the same order of the subgroups 900 to 3600
                assert fix_ref.theta(found, gauge) <= 1.001e-12 and told['theta'] <= 1e-12
                assert abs(told['functional'] - fix_ref.functional(found, gauge)) < 1e-13
                assert told['functional'] > fix_ref.functional(links, gauge) + 0.3
                assert abs(told['plaquette'] - ref.plaquette(links)) < 1e-13
                assert all(abs(p - q) < 1e-13 for p, q in zip(ref.plaquettes(found).values(), ref.plaquettes(links).values()))
                field, = scidac.File(turn).fields
                assert field.private.findtext('datatype') == 'QDP_D3_ColorMatrix' and scidac.File(turn).dims == [4, 4, 4, 8]
                g = field.numbers.reshape(links.shape[1:]).astype(complex)
                assert max(ref.su3_deviation(g)) < 1e-13
                assert np.abs(ref.gauge_rotate(links, g) - found).max() < 1e-13


@tap.test
def rotated_copies_of_smooth_links_come_to_the_same_functional(exe):
    with tempfile.TemporaryDirectory() as folder:
        for gauge in fix_ref.DIRECTIONS:
            told = [fix(exe, '--gauge=' + gauge, '--tol=1e-20', *start, WEAK, os.path.join(folder, 'out.nersc'))
                    for start in ([], *(['--random-start=%d' % seed] for seed in range(6)))]
            values = [t['functional'] for t in told]
            assert max(values) - values[0] < 1e-12, values
            assert sum(values[0] - v < 1e-9 for v in values) >= 2, values


@tap.test
def bits_and_format_are_those_of_convert(exe):
    with tempfile.TemporaryDirectory() as folder:
        for name, bits, load in (('a.lime', 64, ref.load_lime), ('b.ildg', 32, ref.load_lime), ('c.nersc', 64, ref.load_nersc),
                                 ('d.nersc', 32, ref.load_nersc)):
            path = os.path.join(folder, name)
            told = fix(exe, '--gauge=coulomb', '--bits=%d' % bits, WEAK, path)
            found, _ = load(path)
            assert told['bits'] == bits and told['format'] == ('nersc' if 'nersc' in name else 'ildg') and told['transform'] is None
            assert fix_ref.theta(found, 'coulomb') < (1.001e-12 if bits == 64 else 1e-11)
        # 32 bit links, which are unitary to 1e-7, are fixed all the same
        told = fix(exe, '--gauge=landau', '--bits=64', '--tol=1e-20', os.path.join(folder, 'b.ildg'), os.path.join(folder, 'e.lime'))
        found, _ = ref.load_lime(os.path.join(folder, 'e.lime'))
        assert fix_ref.theta(found, 'landau') < 1.001e-20 and abs(told['plaquette'] - told['plaquette_before']) < 1e-13


@tap.test
def links_of_32_bits_in_a_file_of_64_are_told_of(exe):
    with tempfile.TemporaryDirectory() as folder:
        few, many = os.path.join(folder, 'few.lime'), os.path.join(folder, 'many.lime')
        assert call(exe, 'convert', '--bits=32', WEAK, few).stderr == ''
        for command in (['convert'], ['fix', '--gauge=coulomb'], ['smear', '--links=ape:0.5,2']):
            done = call(exe, *command, '--bits=64', few, many)
            assert done.returncode == 0 and 'many.lime: its links are SU(3) to' in done.stderr and '--bits=32' in done.stderr, done
            assert call(exe, 'info', many).returncode == DATA_ERROR
            assert call(exe, *command, few, many).stderr == ''
            assert call(exe, 'info', many).returncode == 0


@tap.test
def fixed_links_are_left_as_they_are(exe):
    with tempfile.TemporaryDirectory() as folder:
        one, two = os.path.join(folder, '1.lime'), os.path.join(folder, '2.lime')
        fix(exe, '--gauge=landau', WEAK, one)
        assert fix(exe, '--gauge=landau', one, two)['iterations'] == 0
        with open(one, 'rb') as a, open(two, 'rb') as b:
            assert a.read() == b.read()


@tap.test
def a_table_shows_how_theta_falls(exe):
    with tempfile.TemporaryDirectory() as folder:
        done = call(exe, 'fix', '--gauge=coulomb', '--check-every=10', WEAK, folder + '/a.lime')
        assert done.returncode == 0 and done.stderr == '', done
        rows = [line.split() for line in done.stdout.splitlines() if line[:11].strip().isdigit()]
        assert [int(r[0]) for r in rows] == list(range(0, 10 * len(rows), 10)) and len(rows) > 3
        assert float(rows[0][2]) > 1e-2 and float(rows[-1][2]) <= 1e-12 < float(rows[-2][2])
        quiet = call(exe, 'fix', '--gauge=coulomb', '--quiet', WEAK, folder + '/a.lime')
        assert len(quiet.stdout.splitlines()) == 2 and 'theta' in quiet.stdout and 'plaquette' in quiet.stdout


@tap.test
def what_has_not_converged_is_written_on_demand_only(exe):
    with tempfile.TemporaryDirectory() as folder:
        out = folder + '/a.lime'
        few = ['fix', '--gauge=landau', '--max-iter=5', '--transform=' + folder + '/g.lime', WEAK, out]
        done = call(exe, *few)
        assert done.returncode == DATA_ERROR and '5 iterations' in done.stderr and '--tol' in done.stderr, done
        assert not os.listdir(folder)
        done = call(exe, *few, '--json')
        assert done.returncode == DATA_ERROR and json.loads(done.stdout)['status'] == 'NOT_CONVERGED'
        assert not os.listdir(folder)
        done = call(exe, *few, '--json', '--partial')
        told = json.loads(done.stdout)
        assert done.returncode == DATA_ERROR and 'written as it is' in done.stderr
        assert not told['converged'] and told['iterations'] == 5
        found, _ = ref.load_lime(out)
        assert abs(fix_ref.theta(found, 'landau') / told['theta'] - 1) < 1e-9 and told['theta'] > 1e-12


@tap.test
def a_signal_ends_the_iteration(exe):
    with tempfile.TemporaryDirectory() as folder:
        for number, more in ((signal.SIGINT, []), (signal.SIGTERM, ['--partial'])):
            process = subprocess.Popen([exe, 'fix', '--gauge=landau', '--tol=1e-26', '--overrelax=1', '--max-iter=1000000000',
                                        '--check-every=1', *more, 'builtin:weak:16x16x8x8:1', folder + '/a.lime'],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for line in process.stdout:
                if line.split()[:1] == ['3']:
                    break
            process.send_signal(number)
            out, err = process.communicate(timeout=120)
            assert process.returncode == AGAIN and 'interrupted after' in err, (process.returncode, err)
            assert os.listdir(folder) == (['a.lime'] if more else []) and ('plaquette' in out) == bool(more)


@tap.test
def wrong_usage_and_files_that_fail_are_told(exe):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'out.lime')
        good = '--gauge=landau'
        for args in ([WEAK, out], ['--gauge=axial', WEAK, out], [good, WEAK], [good, '--tol=0', WEAK, out],
                     [good, '--tol=nan', WEAK, out], [good, '--overrelax=2', WEAK, out], [good, '--overrelax=0.5', WEAK, out],
                     [good, '--check-every=0', WEAK, out], [good, '--max-iter=-1', WEAK, out], [good, WEAK, folder + '/out'],
                     [good, '--random-start=x', WEAK, out], [good, '--transform=' + out, WEAK, out], [good, WEAK, out, 'x']):
            done = call(exe, 'fix', *args)
            assert done.returncode == USAGE and done.stderr and not done.stdout, (args, done)
        assert call(exe, 'fix', good, out, folder + '/other.lime').returncode == DATA_ERROR
        other = os.path.join(folder, '.', 'out.lime')  # the same file by another name
        for args, said in (([WEAK, '/nonexistent/x.lime'], 'No such file'), (['--transform=/nonexistent/g', WEAK, out], 'No such file'),
                           (['--format=ildg', WEAK, '/dev/null'], 'not a regular file'), ([WEAK, folder], 'not a regular file'),
                           (['--transform=', WEAK, out], 'empty'), (['--transform=/dev/null', WEAK, out], 'not a regular file'),
                           (['--transform=' + other, WEAK, out], 'is OUT, too'), (['--transform=' + other, out, WEAK], 'is IN, too'),
                           ([out, other], 'is IN, too')):
            done = call(exe, 'fix', good, *(['--format=ildg'] if args[-1] in (folder, WEAK) else []), *args)
            assert done.returncode == USAGE and said in done.stderr, (args, done)
        assert not os.listdir(folder)
        # a transformation is no configuration
        fix(exe, good, '--transform=' + folder + '/g.lime', WEAK, out)
        assert call(exe, 'info', folder + '/g.lime').returncode == DATA_ERROR


@tap.test
def what_cannot_be_written_or_read_back_gets_no_name(exe):
    transform = ['write:%d' % n for n in (1, 2, 5, 6, 7, 8)] + ['read:1', 'read:5']
    for point in [*transform, 'read:12']:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([exe, 'fix', '--gauge=landau', '--transform=' + folder + '/g.lime', WEAK, folder + '/u.lime'],
                                  capture_output=True, text=True, timeout=240, env={**os.environ, 'QK_FAULTS': point})
            assert done.returncode == DATA_ERROR and done.stderr, (point, done)
            assert os.listdir(folder) == ([] if point in transform else ['g.lime']), (point, os.listdir(folder))


tap.run(sys.argv[1])
