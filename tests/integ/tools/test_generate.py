"""quark-gauge generate as a user sees it: test_generate.py QUARK_GAUGE

What it writes is read by the numpy oracle. However a chain is interrupted, what it leaves in the end is byte by byte what
an uninterrupted one leaves.
"""
import fcntl
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile

import tap
try:
    import ref_dirac as ref
    import stats
except ImportError as missing:
    tap.skip_all('numpy and scipy are needed: %s' % missing)

USAGE, DATA_ERROR, AGAIN = 64, 65, 75
SMALL_PIPE = 4096


class Chain:
    """A folder, and quark-gauge generate with a pattern in it."""

    def __init__(self, exe, *options, beta='5.8', dims='4x4x4x4', sweeps=6, every=2, pattern='cfg.%03d.lime'):
        self.folder = tempfile.mkdtemp(prefix='qk-generate-')
        self.command = [exe, 'generate', '--beta=' + beta, '--sweeps=%d' % sweeps, '--every=%d' % every,
                        '--out=' + self.path(pattern), '--seed=11', *options]
        if dims:
            self.command.append('--dims=' + dims)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *options, **environment):
        return subprocess.run([*self.command, *options], capture_output=True, text=True, timeout=120,
                              env={**os.environ, **environment})

    def report(self, *options, **environment):
        done = self.run('--json', *options, **environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def files(self):
        found = {}
        for name in os.listdir(self.folder):
            with open(self.path(name), 'rb') as f:
                found[name] = f.read()
        return found

    def configurations(self):
        return {name: raw for name, raw in self.files().items() if '.state' not in name}

    def stop_at(self, sweep, number):
        """Runs with a narrow pipe that holds the program back, sends the signal when it says so many sweeps; the rest of
        stdout, and the exit code."""
        process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, SMALL_PIPE)
        for line in iter(process.stdout.readline, b''):
            if line.split()[:1] == [b'%d' % sweep]:
                break
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
        return out.decode(), err.decode(), process.returncode


def same_links(chain, other):
    """The configurations, as bytes."""
    return chain.configurations() == other.configurations()


@tap.test
def configurations_are_good_and_have_the_plaquette_that_is_told(exe):
    with Chain(exe, '--start=hot') as chain:
        told = chain.report()
        assert told['sweep'] == told['sweeps'] == 6 and not told['interrupted'] and told['seed'] == 11
        assert told['dims'] == [4, 4, 4, 4] and told['grid'] == [1, 1, 1, 1] and told['or_per_hb'] == 4
        assert told['configurations'] == [chain.path('cfg.%03d.lime' % n) for n in (2, 4, 6)]
        for name, sweep in zip(told['configurations'], (2, 4, 6)):
            links, _ = ref.load_lime(name)
            assert max(ref.su3_deviation(links)) < 1e-13
            assert abs(ref.plaquette(links) - told['plaquettes'][sweep - 1]) < 1e-13
        assert sorted(os.listdir(chain.folder)) == ['cfg.002.lime', 'cfg.004.lime', 'cfg.006.lime', 'cfg.state']
        info = subprocess.run([exe, 'info', '--json', chain.path('cfg.006.lime')], capture_output=True, check=True)
        info = json.loads(info.stdout)
        assert info['digest'] == told['digest'] and info['checksum'] == 'ok'


@tap.test
def the_table_says_what_the_report_says(exe):
    with Chain(exe) as chain, Chain(exe) as other:
        done, told = chain.run(), other.report()
        assert done.returncode == 0 and done.stderr == ''
        rows = [line.split() for line in done.stdout.splitlines() if line[:1] == ' ']
        assert [int(row[0]) for row in rows] == [1, 2, 3, 4, 5, 6]
        assert all(abs(float(row[1]) - p) < 1e-14 for row, p in zip(rows, told['plaquettes']))
        assert '# cfg.004.lime' in done.stdout.splitlines() and told['digest'] in done.stdout
    with Chain(exe, '--quiet') as chain:
        assert not any(line[:1] in ' #' for line in chain.run().stdout.splitlines())


@tap.test
def links_depend_on_the_options_alone(exe):
    with Chain(exe) as chain:
        digest = chain.report(OMP_NUM_THREADS='1')['digest']
        assert chain.report('--force', OMP_NUM_THREADS='3')['digest'] == digest
        assert chain.report('--force', '--backend=cpu', '--action=wilson')['digest'] == digest
        others = [chain.report('--force', option)['digest'] for option in (
            '--seed=12', '--or-per-hb=3', '--beta=5.9', '--start=hot', '--action=iwasaki', '--c1=-0.1', '--sweeps=7')]
        assert len({digest, *others}) == 8
        assert chain.report('--force', '--c1=-0.331')['digest'] == others[4]


@tap.test
def mean_and_error_are_those_of_an_independent_analysis(exe):
    with Chain(exe, '--or-per-hb=0', '--thermalise=100', sweeps=600, every=600) as chain:
        told = chain.report()
        mean, error, tau, tau_error = stats.gamma_method(told['plaquettes'][100:])
        assert told['thermalise'] == 100 and abs(told['plaquette'] - mean) < 1e-13
        assert abs(told['error'] - error) < 1e-9 * error
        assert abs(told['tau_int'] - tau) < 0.1 * tau and told['tau_int'] > 0.6
        assert 0 < told['tau_int_error'] < told['tau_int'] and tau_error > 0


@tap.test
def a_signal_saves_the_chain_and_resume_goes_on_bit_by_bit(exe):
    for number in (signal.SIGTERM, signal.SIGINT):
        with Chain(exe, sweeps=400, every=150) as chain, Chain(exe, sweeps=400, every=150) as whole:
            want = whole.report()
            out, err, code = chain.stop_at(170, number)
            assert code == AGAIN and '--resume' in err and 'plaquette' in out, (code, err)
            assert any(name.startswith('cfg.state-') for name in os.listdir(chain.folder))
            told = chain.report('--resume')
            assert {k: told[k] for k in told if k not in ('sweeps_per_second', 'configurations')} == {
                k: want[k] for k in want if k not in ('sweeps_per_second', 'configurations')}
            assert same_links(chain, whole)
            assert sorted(os.listdir(chain.folder)) == sorted(os.listdir(whole.folder))


@tap.test
def after_kill_9_a_chain_goes_on_from_its_last_configuration(exe):
    with Chain(exe, sweeps=400, every=150) as chain, Chain(exe, sweeps=400, every=150) as whole:
        want = whole.report()
        assert chain.stop_at(200, signal.SIGKILL)[2] == -signal.SIGKILL
        assert sorted(chain.configurations())[0] == 'cfg.150.lime'
        assert chain.report('--resume')['plaquettes'] == want['plaquettes'] and same_links(chain, whole)


@tap.test
def resume_begins_where_there_is_nothing_and_ends_where_all_is_done(exe):
    with Chain(exe) as chain:
        done = chain.run('--resume', '--quiet')
        assert done.returncode == 0 and 'cfg.state' in done.stderr and 'beginning' in done.stderr
        before = chain.files()
        again = chain.report('--resume')
        assert chain.files() == before and again['sweep'] == 6 and again['digest'] in done.stdout


@tap.test
def a_finished_chain_can_be_made_longer(exe):
    with Chain(exe) as chain, Chain(exe, sweeps=10) as whole:
        chain.report('--sweeps=3')
        assert 'cfg.state-3.lime' in os.listdir(chain.folder)
        assert chain.report('--resume', '--sweeps=10')['plaquettes'] == whole.report()['plaquettes']
        assert same_links(chain, whole) and sorted(chain.files()) == sorted(whole.files())
        done = chain.run('--resume', '--sweeps=9')
        assert done.returncode == USAGE and '--sweeps=9' in done.stderr and '10 sweeps' in done.stderr


@tap.test
def outputs_of_32_bits_and_nersc_go_on_bit_by_bit_too(exe):
    for options in (['--bits=32'], ['--format=nersc', '--bits=32'], ['--format=nersc']):
        with Chain(exe, *options) as chain, Chain(exe, *options) as whole:
            want = whole.report()
            chain.report('--sweeps=4')
            assert ('cfg.state-4.lime' in os.listdir(chain.folder)) == ('--bits=32' in options)
            assert chain.report('--resume')['digest'] == want['digest']
            assert same_links(chain, whole) and sorted(chain.files()) == sorted(whole.files())
            links, _ = ref.load_any(chain.path('cfg.006.lime'))
            assert max(ref.su3_deviation(links)) < (1e-6 if '--bits=32' in options else 1e-13)


@tap.test
def a_disk_that_is_full_at_any_write_costs_nothing_that_was_there(exe):
    with Chain(exe, '--bits=32', sweeps=4) as whole:
        want = whole.report()
        good, failures = whole.configurations(), 0
        for n in range(1, 100):
            with Chain(exe, '--bits=32', sweeps=4) as chain:
                done = chain.run('--quiet', QK_FAULTS='write:%d' % n)
                if done.returncode == 0:
                    break
                failures += 1
                assert done.returncode == DATA_ERROR and 'No space left' in done.stderr, done
                left = chain.files()
                assert not any('.tmp' in name for name in left), left.keys()
                assert all(good[name] == raw for name, raw in chain.configurations().items())
                assert ('--resume' in done.stderr) == ('cfg.state' in left), done.stderr
                if 'cfg.state' not in left:
                    chain.run('--force', '--quiet')
                told = chain.report('--resume')
                assert told['plaquettes'] == want['plaquettes'] and chain.configurations() == good
        assert failures > 40, failures


@tap.test
def memory_that_fails_is_told(exe):
    for point, last in (('alloc', 10), ('device-alloc', 1)):
        for n in range(1, 100):
            with Chain(exe, sweeps=2) as chain:
                done = chain.run('--quiet', QK_FAULTS='%s:%d' % (point, n))
                if done.returncode == 0:
                    assert n > last, (point, n)
                    break
                assert done.returncode == AGAIN and (' memory' in done.stderr or 'alloc' in done.stderr), (point, n, done)
                assert not any('.tmp' in name for name in chain.files())


@tap.test
def a_device_that_fails_ends_with_70(exe):
    with Chain(exe) as chain:
        done = chain.run('--quiet', QK_FAULTS='device-call:20')
        assert done.returncode == 70 and 'device fault' in done.stderr, done


@tap.test
def damaged_states_and_configurations_are_refused(exe):
    with Chain(exe) as chain, Chain(exe, '--seed=12') as other:
        chain.report('--sweeps=4')
        other.report('--sweeps=4')
        before = chain.files()
        state, links = before['cfg.state'], before['cfg.004.lime']
        half = bytearray(links)
        half[len(links) // 2] ^= 1
        for name, content, word in (
                ('cfg.state', state[:len(state) // 2], 'damaged'), ('cfg.state', b'', 'damaged'),
                ('cfg.state', state.replace(b'"sweep": 4', b'"sweep": 2'), 'checksum'),
                ('cfg.state', links, 'damaged'),
                ('cfg.004.lime', bytes(half), 'checksum'), ('cfg.004.lime', links[:5000], 'ends'),
                ('cfg.004.lime', other.files()['cfg.004.lime'], 'digest'), ('cfg.004.lime', b'', 'not a gauge file')):
            with open(chain.path(name), 'wb') as f:
                f.write(content)
            done = chain.run('--resume', '--quiet')
            assert done.returncode == DATA_ERROR and word in done.stderr and name in done.stderr, (word, done)
            assert chain.files() == {**before, name: content}
            with open(chain.path(name), 'wb') as f:
                f.write(before[name])
        os.unlink(chain.path('cfg.004.lime'))
        assert 'No such file' in chain.run('--resume').stderr


@tap.test
def another_value_of_a_parameter_is_refused_by_name(exe):
    with Chain(exe) as chain:
        chain.report('--sweeps=4')
        before = chain.files()
        for option, name, now, was in (('--beta=5.9', 'beta', '5.9', '5.8'), ('--seed=12', 'seed', '12', '11'),
                                       ('--action=dbw2', 'c1', '-1.4088', '0.0'), ('--start=hot', 'start', 'hot', 'cold'),
                                       ('--dims=4x4x4x8', 'dims', '[4,4,4,8]', '[4,4,4,4]'), ('--every=3', 'every', '3', '2'),
                                       ('--or-per-hb=5', 'or-per-hb', '5', '4'), ('--bits=32', 'bits', '32', '64')):
            done = chain.run('--resume', option)
            assert done.returncode == USAGE, done
            assert name in done.stderr and now in done.stderr and was in done.stderr, done.stderr
        assert chain.files() == before


@tap.test
def what_is_there_is_not_replaced_unasked(exe):
    with Chain(exe) as chain:
        chain.report('--sweeps=4')
        before = chain.files()
        done = chain.run()
        assert done.returncode == DATA_ERROR and 'cfg.state' in done.stderr and '--resume' in done.stderr
        os.unlink(chain.path('cfg.state'))
        for options in ([], ['--resume']):
            done = chain.run(*options)
            assert done.returncode == DATA_ERROR and 'cfg.002.lime' in done.stderr and '--force' in done.stderr, done
        before.pop('cfg.state')
        assert chain.files() == before
        assert chain.run('--force', '--seed=12').returncode == 0
        assert chain.files()['cfg.002.lime'] != before['cfg.002.lime']


@tap.test
def a_file_beyond_the_next_one_is_not_the_chains(exe):
    with Chain(exe) as chain:
        chain.report('--sweeps=2')
        shutil.copy(chain.path('cfg.002.lime'), chain.path('cfg.004.lime'))
        shutil.copy(chain.path('cfg.002.lime'), chain.path('cfg.006.lime'))
        done = chain.run('--resume')
        assert done.returncode == DATA_ERROR and 'cfg.006.lime' in done.stderr
        os.unlink(chain.path('cfg.006.lime'))
        assert chain.run('--resume').returncode == 0


@tap.test
def force_leaves_nothing_of_the_chain_before(exe):
    with Chain(exe) as chain:
        chain.report('--sweeps=3')
        chain.report('--force', '--sweeps=4')
        assert sorted(os.listdir(chain.folder)) == ['cfg.002.lime', 'cfg.004.lime', 'cfg.state']


@tap.test
def a_chain_starts_from_any_configuration(exe):
    with Chain(exe) as first, Chain(exe, '--start=' + first.path('cfg.006.lime'), dims=None) as chain:
        first.report()
        told = chain.report()
        assert told['dims'] == [4, 4, 4, 4] and abs(told['plaquettes'][0] - first.report('--resume')['plaquettes'][-1]) < 0.1
        assert chain.run('--resume').returncode == 0
    with Chain(exe, '--start=builtin:weak:4x4x6x4:1', dims=None) as chain:
        assert chain.report()['dims'] == [4, 4, 6, 4]
    for start, word in (('/nonexistent', 'No such file'), ('builtin:weak:4x4x4x6:1', '4x4x4x6')):
        with Chain(exe, '--start=' + start) as chain:
            done = chain.run()
            assert done.returncode == DATA_ERROR and word in done.stderr and not chain.files(), done


@tap.test
def bad_options_are_refused_with_their_limit(exe):
    bad = (('--beta=-1', 'beta'), ('--beta=0', 'beta'), ('--beta=nan', 'beta'), ('--beta=6x', 'beta'), ('--beta=1e9', 'beta'),
           ('--dims=4x4x4x5', 'even'), ('--dims=4x4x4', 'dims'), ('--dims=0x4x4x4', 'extent'), ('--or-per-hb=-1', 'or'),
           ('--sweeps=0', 'sweeps'), ('--sweeps=-5', 'sweeps'), ('--sweeps=2000000', '1000000'), ('--every=0', 'every'),
           ('--thermalise=6', 'thermalise'), ('--thermalise=-1', 'thermalise'), ('--seed=-1', 'seed'),
           ('--seed=9223372036854775808', 'seed'), ('--action=symanzik', 'luescher-weisz'), ('--c1=1', 'c1'),
           ('--bits=16', 'bits'), ('--format=milc', 'format'), ('--out=cfg.lime', '%d'), ('--out=%d%d.lime', '%d'),
           ('--out=%s.lime', '%d'), ('--out=%d', 'format'), ('--out=a%d/cfg.lime', 'folder'), ('--grid=0x1x1x1', 'grid'),
           ('--grid=2x1x1', 'grid'), ('--backend=tpu', 'backend'), ('extra', 'extra'))
    for option, word in bad:
        with Chain(exe) as chain:
            done = chain.run(option)
            assert done.returncode == USAGE and word in done.stderr and not done.stdout, (option, done)
            assert not chain.files()
    with Chain(exe, '--action=wilson') as chain:
        assert chain.run('--c1=-0.1').returncode == USAGE
    with Chain(exe, '--action=iwasaki', dims='4x4x4x6') as chain:
        done = chain.run()
        assert done.returncode == USAGE and '4' in done.stderr, done
    for left_out in ('--beta', '--sweeps', '--out', '--dims'):
        with Chain(exe) as chain:
            chain.command = [c for c in chain.command if not c.startswith(left_out)]
            done = chain.run()
            assert done.returncode == USAGE and left_out in done.stderr, done


@tap.test
def folders_that_cannot_be_written_to_are_told_at_once(exe):
    with Chain(exe, pattern='none/cfg.%d.lime') as chain:
        done = chain.run('--json')
        assert done.returncode == DATA_ERROR and 'none/' in done.stderr and 'No such file' in done.stderr
        assert json.loads(done.stdout)['status'] == 'IO_ERROR'
    with Chain(exe, '--grid=2x1x1x1') as chain:
        assert chain.run().returncode == DATA_ERROR
    if os.geteuid() != 0:
        with Chain(exe) as chain:
            os.chmod(chain.folder, 0o500)
            done = chain.run()
            os.chmod(chain.folder, 0o700)
            assert done.returncode == DATA_ERROR and 'Permission denied' in done.stderr


@tap.test
def a_terminal_sees_a_bar(exe):
    with Chain(exe) as chain:
        master, slave = pty.openpty()
        done = subprocess.run(chain.command, stdout=subprocess.PIPE, stderr=slave, timeout=120)
        os.close(slave)
        shown = os.read(master, 65536).decode()
        os.close(master)
        assert done.returncode == 0 and '6 of 6' in shown and 'sweeps/s' in shown and '[####' in shown, shown


tap.run(sys.argv[1])
