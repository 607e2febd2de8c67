#!/usr/bin/env python3
"""Setups side by side, with the real engine and quarkctl: test_setups_cli.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE

Solutions are judged by the numpy oracle.
"""
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

from cli_case import AGAIN, CSW, DATA, DIMS, KAPPA, USAGE, Case, h5py, np, random_sources, read_field, ref, tap, write_sources
from daemon import LIMIT, Daemon

HEAVY = 0.11  # kappa


class Setups(Case):
    """A folder with two configurations, and bad ones."""

    def __init__(self, *programs):
        super().__init__(*programs)
        self.folder = tempfile.TemporaryDirectory(prefix='qk-setups-')
        self.links = {}
        for name, seed in (('one', 1), ('two', 2)):
            path = self.file(name + '.lime')
            subprocess.run([self.quark_gauge, 'convert', 'builtin:weak:4x4x4x8:%d' % seed, path], check=True, stdout=subprocess.DEVNULL)
            self.links[name], _ = ref.load_any(path)
        self.b = random_sources(2)
        write_sources(self.file('sources.h5'), self.b)

    def file(self, name):
        return os.path.join(self.folder.name, name)

    def daemon(self, *args):
        return Daemon(self.quarkd, self.quarkctl, '--gauge=' + self.file('one.lime'), '--kappa=%r' % KAPPA, '--csw=%r' % CSW,
                      '--engine=' + self.engine, *args)

    def solves(self, d, out, *args, name='one', kappa=KAPPA):
        """quarkctl solves, and the oracle agrees that it was this operator."""
        done = d.ctl('solve', '--in', self.file('sources.h5'), '--out', d.path(out), '--tol=1e-9', *args)
        assert done.code == 0, done
        op = ref.WilsonClover(self.links[name], 1 / (2 * kappa) - 4, CSW)
        for x, b in zip(read_field(d.path(out)), self.b):
            assert np.linalg.norm(b - op.apply(x)) < 1.01e-9 * np.linalg.norm(b)


def unit_links(path, plaquette=3.0, damage=False, opened=False, dims=tuple(reversed(DIMS))):
    """A file of openQCD: T X Y Z, plaquette, eight links of each odd site (+t, -t, +x, ...), t slowest; all are 1, but for those
    beyond the last time slice where it is open."""
    links = np.zeros((int(np.prod(dims)) // 2 * 8, 3, 3, 2))
    links[:, range(3), range(3), 0] = 1
    if damage:
        links[1000, 1, 1, 0] = 1.5
    if opened:
        site = links.reshape(dims[0], -1, 8, 3, 3, 2)
        site[-1, :, 0] = site[0, :, 1] = 0
    with open(path, 'wb') as f:
        f.write(struct.pack('<4id', *dims, plaquette))
        f.write(links.astype('<f8').tobytes())
    return path


def bad_files(case):
    """(name of the fault, file, more options)"""
    with open(case.file('two.lime'), 'rb') as f:
        good = f.read()
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    for name, data in (('flipped', flipped), ('cut', good[:len(good) // 2]), ('random', os.urandom(5000))):
        with open(case.file(name), 'wb') as f:
            f.write(data)
    return [('BAD_CHECKSUM', 'flipped', ()), ('TRUNCATED', 'cut', ()), ('BAD_FORMAT', 'random', ()),
            ('BAD_GEOMETRY', 'two.lime', ('--dims=4x4x4x16',)),
            ('BAD_PLAQUETTE', unit_links(case.file('plaquette'), plaquette=2.9), ()),
            ('NOT_UNITARY', unit_links(case.file('unitarity'), damage=True), ()),
            ('NOT_UNITARY', unit_links(case.file('open'), opened=True), ())]


@tap.test
def a_second_mass_is_solved_beside_the_first(case):
    with case.daemon() as d:
        done = d.ctl('load', 'heavy', '--kappa', HEAVY, '--json')
        assert done.code == 0 and done.json['state'] == 'ready' and done.json['kappa'] == HEAVY and not done.json['default'], done
        failed = []

        def solve(*args, **more):
            try:
                for _ in range(3):
                    case.solves(d, *args, **more)
            except AssertionError as e:
                failed.append(e)
        threads = [threading.Thread(target=solve, args=('light.h5',)),
                   threading.Thread(target=solve, args=('heavy.h5', '--setup=heavy'), kwargs={'kappa': HEAVY})]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not failed, failed
        status = d.ctl('status', '--setup', 'heavy', '--json').json
        assert status['setup']['name'] == 'heavy' and status['setup']['kappa'] == HEAVY
        assert [(s['name'], s['default'], s['slots'] > 0) for s in status['setups']] == [('main', True, True), ('heavy', False, True)]
        text = d.ctl('status').out
        assert '* main' in text and '  heavy' in text, text
        wrong = d.ctl('solve', '--in', case.file('sources.h5'), '--out', d.path('x.h5'), '--setup=nobody')
        assert wrong.code == DATA and 'there are main, heavy' in wrong.err, wrong
        assert d.ctl('drop', 'heavy').code == 0
        assert [s['name'] for s in d.ctl('status', '--json').json['setups']] == ['main']


@tap.test
def another_mass_starts_from_null_vectors(case):
    with case.daemon('--solver=mg') as d:
        done = d.ctl('load', 'heavy', '--kappa', HEAVY, '--from', 'main')
        assert done.code == 0 and 'heavy: ready\nevolved from main (wilson-clover;' in done.out, done
        case.solves(d, 'heavy.h5', '--setup=heavy', kappa=HEAVY)
        assert 'evolved from main (' in d.ctl('status').out and 'evolved from main (' in d.ctl('status', '--setup=heavy').out
        found = d.ctl('status', '--setup=heavy', '--json').json
        assert found['setup']['multigrid']['origin'].startswith('evolved from main (') and found['setup']['multigrid']['origin_trouble'] == ''
        assert [s['origin'] != '' for s in found['setups']] == [False, True], found['setups']
        done = d.ctl('load', 'x', '--from', 'nobody')
        assert done.code == DATA and 'there is no setup of this name' in done.err, done


@tap.test
def an_action_and_its_parameters_are_data(case):
    """They are given by name, checked by the daemon, and told as they were given."""
    with case.daemon() as d:
        mass = 1 / (2 * HEAVY) - 4
        done = d.ctl('load', 'heavy', '--action=wilson-clover', '--set', 'mass=%r' % mass, '--set=csw=%r' % CSW, '--json')
        want = {'mass': '%r' % mass, 'csw': '%r' % CSW}
        assert done.code == 0 and done.json['action'] == 'wilson-clover' and done.json['parameters'] == want, done
        case.solves(d, 'heavy.h5', '--setup=heavy', kappa=HEAVY)
        done = d.ctl('load', 'plain', '--action=wilson', '--set=kappa=0.11', '--json')
        assert done.code == 0 and done.json['parameters'] == {'kappa': '0.11'} and done.json['csw'] == 0, done
        assert (done.json['site_reals'], done.json['columns']) == (24, 12), done
        done = d.ctl('load', 'light', '--set=kappa=0.115', '--json')  # the daemon's action and csw
        assert done.code == 0 and done.json['parameters'] == {'kappa': '0.115', 'csw': '%r' % CSW}, done
        setup = d.ctl('status', '--setup=plain', '--json').json['setup']
        assert (setup['action'], setup['parameters'], setup['kappa']) == ('wilson', {'kappa': '0.11'}, 0.11), setup
        text = d.ctl('status', '--setup=plain').out
        assert 'operator    wilson   kappa 0.11   (mass 0.5454545455)   boundary 1 1 1 -1\n' in text, text
        assert ' wilson kappa=0.11 ' in text and ' wilson-clover kappa=0.115 csw=%r ' % CSW in text, text
        assert 'wilson-clover mass=%r csw=%r' % (mass, CSW) in d.ctl('top', '--once').out
        out = d.path('plain.h5')
        assert d.ctl('propagator', '--setup=plain', '--source=point:0,0,0,0', '--tol=1e-6', '--out', out).code == 0
        with h5py.File(out, 'r') as f:
            assert (f.attrs['action'], f.attrs['site_reals']) == ('wilson;mass=%r' % (0.5 / 0.11 - 4), 24), dict(f.attrs)
        for args, words in ((('--action=wilsn',), 'must be one of wilson, wilson-clover'), (('--action=wilson',), 'needs mass (or kappa)'),
                            (('--action=wilson-clover', '--mass=1'), 'needs csw'), (('--action=wilson', '--mass=1', '--set=csw=1'), 'it has mass'),
                            (('--action=wilson', '--set=mass=-4'), 'above -4'), (('--set=maas=1',), 'it has mass'),
                            (('--set=kappa=0.1', '--set=mass=1'), 'both given'), (('--set=csw=2000',), 'from -1000 to 1000'),
                            (('--action=wilson', '--csw=1', '--mass=1'), 'wilson has no such parameter')):
            done = d.ctl('load', 'bad', *args)
            assert done.code == DATA and words in done.err, (args, done)
        assert [s['name'] for s in d.ctl('status', '--json').json['setups']] == ['main', 'heavy', 'plain', 'light']


@tap.test
def bad_gauge_files_are_refused_while_the_old_setup_serves(case):
    with case.daemon() as d:
        pid = d.ctl('status', '--json').json['engine']['pid']
        stop, failed, rounds = threading.Event(), [], [0]

        def stream():
            while not stop.is_set():
                try:
                    case.solves(d, 'stream.h5')
                    rounds[0] += 1
                except AssertionError as e:
                    failed.append(e)
                    return
        thread = threading.Thread(target=stream)
        thread.start()
        try:
            for fault, file, more in bad_files(case):
                done = d.ctl('load', 'next', '--gauge', file, *more)
                assert done.code == DATA and '(%s)' % fault in done.err and done.out == '', (fault, done)
                (bad,) = [s for s in d.ctl('status', '--json').json['setups'] if s['name'] == 'next']
                assert bad['state'] == 'failed' and bad['error'] == fault and bad['text'] in done.err, bad
            done = d.ctl('propagator', '--setup=next', '--source=point:0,0,0,0', '--out', d.path('none.h5'))
            assert done.code == DATA and 'setup next could not be loaded: ' + bad['text'] in done.err, (bad, done)
            for file in ('missing', '../one.lime', '/etc/passwd'):
                done = d.ctl('load', 'next', '--gauge', file)
                assert done.code == DATA and 'there is no such file below' in done.err, done
        finally:
            stop.set()
            thread.join()
        assert not failed and rounds[0] > 0, failed
        status = d.ctl('status', '--json').json
        assert status['engine']['pid'] == pid and status['engine']['restarts'] == 0, status
        case.solves(d, 'x.h5')


@tap.test
def a_new_configuration_takes_over_without_a_gap(case):
    """load --default, drop: whoever names no setup is served all the time, first by the old one, then by the new."""
    with case.daemon() as d:
        before = d.ctl('status', '--json').json['setup']
        done = d.ctl('load', 'next', '--gauge', 'two.lime', '--default')
        assert done.code == 0 and done.out == 'next: ready, the default\n', done
        case.solves(d, 'two.h5', name='two')
        case.solves(d, 'one.h5', '--setup=main')
        done = d.ctl('drop', 'next')
        assert done.code == DATA and 'is the default' in done.err, done
        assert d.ctl('drop', 'main', '--json').json == {'dropped': 'main', 'now': False}
        after = d.ctl('status', '--json').json
        assert after['setup']['digest'] != before['digest'] and len(after['setups']) == 1, after
        case.solves(d, 'two.h5', name='two')
        assert d.ctl('load', 'main').code == 0
        assert d.ctl('default', 'main').code == 0
        case.solves(d, 'one.h5')


@tap.test
def one_engine_is_killed_and_the_other_goes_on(case):
    with case.daemon() as d:
        assert d.ctl('load', 'heavy', '--kappa', HEAVY).code == 0

        def pids():
            return [d.ctl('status', '--any', '--json', '--setup', name).json['engine']['pid'] for name in ('main', 'heavy')]
        main, heavy = pids()
        os.kill(heavy, signal.SIGKILL)
        case.solves(d, 'light.h5')
        case.solves(d, 'heavy.h5', '--setup=heavy', kappa=HEAVY)  # waits until it is back
        again = pids()
        assert again[0] == main and again[1] != heavy, again
        os.kill(main, signal.SIGKILL)
        case.solves(d, 'heavy.h5', '--setup=heavy', kappa=HEAVY)
        case.solves(d, 'light.h5')
        assert pids()[1] == again[1]


@tap.test
def both_masses_outlive_a_killed_front(case):
    state = case.file('state')
    with case.daemon('--state=' + state) as d:
        assert d.ctl('load', 'heavy', '--kappa', HEAVY).code == 0
        engines = [s['name'] for s in d.ctl('status', '--json').json['setups']]
        assert engines == ['main', 'heavy']
        d.process.kill()
        d.process.wait()
        d.expected = -signal.SIGKILL
    with case.daemon('--state=' + state) as d:
        case.solves(d, 'light.h5')
        case.solves(d, 'heavy.h5', '--setup=heavy', kappa=HEAVY)
        assert d.ctl('drop', 'heavy').code == 0
    with case.daemon('--state=' + state) as d:
        assert len(d.ctl('status', '--json').json['setups']) == 1
    shutil.rmtree(state)


def wrong_sum(case, name, byte, bit):
    """The second configuration with a bit of a link flipped, and the checksum of before."""
    with open(case.file('two.lime'), 'rb') as f:
        data = bytearray(f.read())
    data[data.index(b'ildg-binary-data') + 128 + byte] ^= bit
    with open(case.file(name), 'wb') as f:
        f.write(data)
    return case.file(name)


@tap.test
def a_checksum_is_ignored_where_that_is_asked_for(case):
    """And nothing else is; it is said, and the journal keeps it."""
    wrong_sum(case, 'old.lime', 7, 1)
    wrong_sum(case, 'broken.lime', 1, 0x40)
    state = case.file('state')
    with case.daemon('--state=' + state) as d:
        done = d.ctl('load', 'old', '--gauge=old.lime', '--json')
        assert done.code == DATA and done.json['error'] == 'BAD_CHECKSUM' and done.json['checksum_ignored'] is False, done
        done = d.ctl('load', 'old', '--gauge=old.lime', '--ignore-checksum', '--json')
        assert done.code == 0 and done.json['state'] == 'ready' and done.json['checksum_ignored'] is True, done
        done = d.ctl('load', 'old', '--gauge=old.lime')
        assert done.code == DATA and 'with other parameters' in done.err, done
        assert d.ctl('load', 'old', '--gauge=old.lime', '--ignore-checksum').code == 0
        done = d.ctl('load', 'broken', '--gauge=broken.lime', '--ignore-checksum', '--json')
        assert done.code == DATA and done.json['error'] == 'NOT_UNITARY', done
        case.solves(d, 'old.h5', '--setup=old', name='two')
        d.expected = -signal.SIGKILL
        d.process.kill()
    with case.daemon('--state=' + state) as d:
        d.ctl('status')
        report = d.ctl('status', '--setup=old', '--json').json
        assert report['setup']['checksum_ignored'] is True, report['setup']
        assert {s['name']: s['checksum_ignored'] for s in report['setups']} == {'main': False, 'old': True}, report['setups']
        assert 'checksum    that of the gauge file is ignored' in d.ctl('status', '--setup=old').out
        assert 'is ignored' not in d.ctl('status', '--setup=main').out.split('setups')[0]
    shutil.rmtree(state)


@tap.test
def the_daemon_itself_may_ignore_a_checksum(case):
    old = wrong_sum(case, 'old.lime', 7, 1)
    with case.daemon('--gauge=' + old, '--ignore-checksum=yes') as d:
        assert d.ctl('status', '--json').json['setup']['checksum_ignored'] is True
        done = d.ctl('load', 'heavy', '--kappa', HEAVY, '--json')
        assert done.code == 0 and done.json['checksum_ignored'] is True, done
        done = d.ctl('load', 'again', '--gauge', old, '--json')  # not meant for files of others
        assert done.code == DATA and done.json['error'] == 'BAD_CHECKSUM' and done.json['checksum_ignored'] is False, done
    done = subprocess.run([case.quarkd, '--gauge=' + old, '--kappa=0.12', '--backend=cpu', '--listen=tcp://127.0.0.1:0', '--engine=' + case.engine],
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == DATA and 'checksum mismatch' in done.stderr, done


@tap.test
def load_says_what_is_wrong(case):
    with case.daemon('--max-setups=1') as d:
        for args, code, word in ((('load',), USAGE, 'name'), (('load', 'a', 'b'), USAGE, '"b"'), (('load', 'a', '--dims=4x4'), USAGE, 'XxYxZxT'),
                                 (('load', 'a', '--kappa=x'), USAGE, '--kappa=x'), (('drop',), USAGE, 'name'),
                                 (('load', 'a b'), DATA, 'letters'), (('load', 'a', '--kappa=0.1', '--mass=1'), DATA, 'both'),
                                 (('load', 'a', '--boundary=2,1,1,1'), DATA, 'four of'), (('load', 'a', '--solver=magic'), DATA, 'one of'),
                                 (('load', 'a'), AGAIN, '1 setups of 1 (max-setups)'), (('drop', 'a'), DATA, 'there are main'),
                                 (('default', 'a'), DATA, 'there are main')):
            done = d.ctl(*args)
            assert done.code == code and word in done.err and done.out == '', (args, done)


@tap.test
def load_can_be_left_alone(case):
    name = 'heavier-than-the-first'
    with case.daemon() as d:
        done = d.ctl('load', name, '--kappa', HEAVY, '--no-wait')
        assert done.code == 0 and done.out.startswith(name + ': '), done
        case.solves(d, 'heavy.h5', '--setup=' + name, kappa=HEAVY)  # waits until it is there
        lines = d.ctl('status').out.splitlines()
        lines = lines[lines.index('setups') + 1:][:3]
        assert [line.index(word) for line, word in zip(lines, ('state', 'ready', 'ready'))] == [len('  ' + name + ' ')] * 3, lines
        end = time.monotonic() + LIMIT
        assert d.ctl('drop', name, '--now', '--no-wait').code == 0
        while len(d.ctl('status', '--json').json['setups']) > 1:
            assert time.monotonic() < end


if __name__ == '__main__':
    tap.run(Setups(*sys.argv[1:6]))
