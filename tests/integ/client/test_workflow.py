"""quarkctl workflow with real daemons: test_workflow.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile

from cli_case import AGAIN, DATA, ROOT, USAGE, Case, h5py, np, tap
from daemon import LIMIT, Daemon, run_ctl

NT, MOMENTA = 8, [[0, 0, 0], [0, 1, 0]]
TEXT = '''
[workflow]
out = out.h5
gauge = cfg.*.lime
kappa = 0.12, 0.125
csw = 1.3
tolerance = 1e-10
[daemon]
backend = cpu
[source local]
source = point:1,2,3,0
times = 0, 5
[source smeared]
source = point:0,0,0,3
smear = gauss:0.3,2
links = stout:0.1,2
[channels]
names = pion, rho
  nucleon
momenta = 0,0,0 0,1,0
'''
LABELS = ['local.t0', 'local.t5', 'smeared.t3']
PIECES = 2 * 2 * len(LABELS)


class Folder:
    """A folder with two configurations and a workflow."""

    def __init__(self, case, text=TEXT):
        self.case, self.scratch = case, tempfile.TemporaryDirectory()
        for n in (1, 2):
            subprocess.run([case.quark_gauge, 'convert', 'builtin:weak:4x4x4x8:%d' % n, self.path('cfg.%d.lime' % n)],
                           check=True, stdout=subprocess.DEVNULL)
        self.write(text)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.scratch.cleanup()

    def path(self, name):
        return os.path.join(self.scratch.name, name)

    def write(self, text):
        with open(self.path('w.ini'), 'w', encoding='utf-8') as f:
            f.write(text)

    def run(self, *args):
        return run_ctl(self.case.quarkctl, 'workflow', self.path('w.ini'), *args)

    def start(self):
        return subprocess.Popen([self.case.quarkctl, 'workflow', self.path('w.ini'), '--json'], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def pieces(self):
        """{(config, quark, label): ({channel: numbers}, attributes)}"""
        found = {}
        with h5py.File(self.path('out.h5'), 'r') as f:
            for config in f:
                for quark in f[config]:
                    for label, piece in f[config][quark].items():
                        found[config, quark, label] = {k: v[...] for k, v in piece.items()}, dict(piece.attrs)
        return found

    def leftovers(self):
        return sorted(n for n in os.listdir(self.scratch.name) if n not in ('w.ini', 'out.h5', 'cfg.1.lime', 'cfg.2.lime'))


def same(a, b, limit):
    assert a.keys() == b.keys()
    for name in a:
        for channel, c in a[name][0].items():
            assert np.abs(c - b[name][0][channel]).max() <= limit * np.abs(c).max(), (name, channel)


def children(pid):
    with open('/proc/%d/task/%d/children' % (pid, pid), encoding='ascii') as f:
        return [int(word) for word in f.read().split()]


def wait_for_end(fd):
    assert select.select([fd], [], [], LIMIT)[0], 'a process goes on'
    os.close(fd)


# ---- results --------------------------------------------------------------------------------------


@tap.test
def null_vectors_are_handed_on_to_the_next_configuration_and_mass(case):
    text = TEXT.replace('backend = cpu', 'backend = cpu\nsolver = mg')
    with Folder(case, text) as w, Folder(case, text.replace('csw = 1.3', 'csw = 1.3\nevolve = no')) as plain:
        found = []
        for f in w, plain:
            with open(f.path('quarkd.sh'), 'w', encoding='utf-8') as script:
                script.write('#!/bin/sh\necho "$@" >>%s\nexec %s "$@" 2>>%s\n' % (f.path('args'), case.quarkd, f.path('log')))
            os.chmod(f.path('quarkd.sh'), 0o755)
            done = f.run('--json', '--quarkd', f.path('quarkd.sh'))
            assert done.code == 0 and done.json['computed'] == PIECES, done
            with open(f.path('args'), encoding='utf-8') as args, open(f.path('log'), encoding='utf-8') as log:
                found.append((['--mg-from=' in line for line in args], log.read().count('evolved from null-vectors.mg (wilson-clover;')))
            assert not os.path.exists(f.path('out.h5.parts')), os.listdir(f.path('out.h5.parts'))
        assert found == [([False, True, True, True], 3), ([False] * 4, 0)], found
        same(w.pieces(), plain.pieces(), 1e-8)
        w.write(text.replace('tolerance', 'evolve = maybe\ntolerance'))
        done = w.run()
        assert done.code == DATA and 'evolve = maybe: must be yes or no' in done.err, done


@tap.test
def one_file_holds_what_single_commands_give(case):
    with Folder(case) as w:
        done = w.run('--json')
        assert done.code == 0 and done.json['computed'] == done.json['pieces'] == PIECES, done
        assert '%d of %d' % (PIECES, PIECES) in done.err and w.leftovers() == [], (done.err, w.leftovers())
        pieces = w.pieces()
        assert set(pieces) == {('cfg.%d.lime' % n, 'kappa=' + k, label) for n in (1, 2) for k in ('0.12', '0.125')
                               for label in LABELS}
        with Daemon(case.quarkd, case.quarkctl, '--gauge', w.path('cfg.2.lime'), '--kappa=0.125', '--csw=1.3') as d:
            for label, args in (('local.t5', ('--source=point:1,2,3,5',)),
                                ('smeared.t3', ('--source=point:0,0,0,3', '--smear=gauss:0.3,2', '--smear-links=stout:0.1,2'))):
                one = d.ctl('correlator', *args, '--channels=pion,rho,nucleon', '--momenta=0,0,0 0,1,0', '--tol=1e-10',
                            '--out', d.path('c.h5'), '--json')
                assert one.code == 0, one
                numbers, attributes = pieces['cfg.2.lime', 'kappa=0.125', label]
                for entry in one.json['pieces'][0]['correlators']:
                    want = np.array(entry['re']) + 1j * np.array(entry['im'])
                    found = numbers[entry['channel']][MOMENTA.index(entry['p'])]
                    assert np.abs(found - want).max() < 1e-8 * np.abs(want).max(), (label, entry['channel'])
                assert attributes['digest'] == one.json['pieces'][0]['digest']
                assert attributes['name'] == label.split('.')[0] and attributes['csw'] == 1.3


@tap.test
def means_have_jackknife_errors(case):
    with Folder(case) as w:
        none = w.run('--report', '--plot', w.path('p.png'))
        assert none.code == 0 and none.out == '' and 'nothing is finished' in none.err and w.leftovers() == [], none
        done = w.run('--json', '--plot', w.path('p.png'))
        assert done.code == 0, done
        pieces = w.pieces()
        if 'gnuplot' not in done.err:
            with open(w.path('p.png'), 'rb') as f:
                assert f.read(8) == b'\x89PNG\r\n\x1a\n'
        assert len(done.json['ensembles']) == 2 * 2 * 3 * 2
        for e in done.json['ensembles']:
            labels = [label for label in LABELS if label.startswith(e['name'])]
            c = np.array([np.mean([pieces['cfg.%d.lime' % n, e['quark'], label][0][e['channel']][MOMENTA.index(e['p'])].real
                                   for label in labels], axis=0) for n in (1, 2)])
            assert e['n'] == 2 and np.allclose(e['C'], c.mean(axis=0), rtol=1e-12, atol=0)
            assert np.allclose(e['dC'], abs(c[0] - c[1]) / 2, rtol=1e-9, atol=0)
            if e['channel'] == 'nucleon':
                mass, mean = (np.log(a / np.roll(a, -1, axis=-1))[..., :3] for a in (c, c.mean(axis=0)))
                assert np.allclose(e['meff'][:3], mean, rtol=1e-12, atol=0)
                assert np.allclose(e['dmeff'][:3], np.sqrt(((mass - mean)**2).sum(axis=0) / 2), rtol=1e-9, atol=0)
        again = w.run('--report')
        assert again.code == 0 and again.out.count('2 configurations') == 24, again
        assert w.run('--report', '--json').json['ensembles'] == done.json['ensembles']


# ---- resume ---------------------------------------------------------------------------------------


@tap.test
def what_is_finished_is_not_made_again(case):
    with Folder(case, TEXT.replace('0.12, 0.125', '0.12')) as w:
        assert w.run('--json').json['computed'] == PIECES // 2
        with open(w.path('out.h5'), 'rb') as f:
            before = f.read()
        again = w.run('--json', '--quarkd=/no/such/program')  # which is not needed
        assert again.code == 0 and again.json['computed'] == 0, again
        with open(w.path('out.h5'), 'rb') as f:
            assert f.read() == before
        old = w.pieces()
        w.write(TEXT)
        plan = w.run('--dry-run', '--json').json['pieces']
        assert len(plan) == PIECES and sum(p['done'] for p in plan) == PIECES // 2
        assert all(p['done'] == (p['quark'] == 'kappa=0.12') for p in plan)
        assert w.run('--dry-run').out.count('todo') == PIECES // 2
        assert w.run('--json').json['computed'] == PIECES // 2
        new = w.pieces()
        assert len(new) == PIECES and w.leftovers() == []
        same(old, {k: new[k] for k in old}, 0)


@tap.test
def resume_has_no_effect_and_says_so(case):
    with Folder(case) as w:
        plain, resumed = w.run('--dry-run', '--json'), w.run('--dry-run', '--json', '--resume')
        assert resumed.code == 0 and resumed.out == plain.out, resumed
        assert '--resume has no effect' in resumed.err and '--resume' not in plain.err, resumed
        assert '--resume' not in w.run('--help').out


@tap.test
def a_killed_run_goes_on_where_it_ended(case):
    with Folder(case) as w:
        whole = w.run('--json')
        assert whole.code == 0, whole
        want = w.pieces()
        os.unlink(w.path('out.h5'))
        process = w.start()
        for n in range(1, 5):  # in the second of four daemons
            assert process.stderr.readline().startswith('%d of %d' % (n, PIECES))
        daemon, = children(process.pid)
        ends = os.pidfd_open(daemon)
        process.kill()
        process.communicate(timeout=LIMIT)
        wait_for_end(ends)  # its daemon ends with it
        assert not os.path.exists(w.path('out.h5'))
        report = w.run('--report', '--json').json
        assert 4 <= report['pieces'] < PIECES, report
        done = w.run('--json')
        assert done.code == 0 and done.json['computed'] == PIECES - report['pieces'], done
        same(want, w.pieces(), 1e-8)
        assert w.leftovers() == []


@tap.test
def an_interrupted_run_says_how_to_go_on(case):
    for number in (signal.SIGINT, signal.SIGTERM):
        with Folder(case) as w:
            process = w.start()
            assert process.stderr.readline().startswith('1 of')
            daemon, = children(process.pid)
            ends = os.pidfd_open(daemon)
            process.send_signal(number)
            out, err = process.communicate(timeout=LIMIT)
            wait_for_end(ends)
            assert process.returncode == AGAIN and out == '' and 'the same command continues from here' in err, (out, err)
            done = w.run('--json')
            assert done.code == 0 and 0 < done.json['computed'] < PIECES and len(w.pieces()) == PIECES, done


@tap.test
def a_lost_engine_costs_no_piece(case):
    with Folder(case) as w:
        process = w.start()
        assert process.stderr.readline().startswith('1 of')
        daemon, = children(process.pid)
        engine, = children(daemon)
        os.kill(engine, signal.SIGKILL)
        out, err = process.communicate(timeout=LIMIT)
        assert process.returncode == 0 and '"computed": %d' % PIECES in out and len(w.pieces()) == PIECES, err


@tap.test
def other_parameters_than_those_of_finished_pieces_are_refused(case):
    small = TEXT.replace('0.12, 0.125', '0.12').replace('cfg.*', 'cfg.1')
    with Folder(case, small) as w:
        assert w.run().code == 0
        before = w.pieces()
        for field, old, new, words in (
                ('csw', 'csw = 1.3', 'csw = 1.25', ('1.3', '1.25')),
                ('tolerance', '1e-10', '1e-9', ('1e-10', '1e-09')),
                ('boundary', '[daemon]', 'boundary = periodic\n[daemon]', ('(-1, 0)', '(1, 0)')),
                ('source', 'point:1,2,3,0', 'point:1,2,2,0', ('point:1,2,3,0', 'point:1,2,2,0')),
                ('smear', 'gauss:0.3,2', 'gauss:0.3,3', ('gauss:0.3,2', 'gauss:0.3,3')),
                ('links', 'stout:0.1,2', 'ape:0.1,2', ('stout:0.1,2', 'ape:0.1,2')),
                ('sink', '[channels]', '[channels]\nsink = gauss:0.1,1', ('none', 'gauss:0.1,1')),
                ('channels', 'pion, rho', 'pion, a0', ('pion rho nucleon', 'pion a0 nucleon')),
                ('momenta', '0,1,0', '0,0,1', ('0,0,0 0,1,0', '0,0,0 0,0,1'))):
            w.write(small.replace(old, new))
            done = w.run()
            assert done.code == DATA and done.out == '', (field, done)
            assert ' %s = ' % field in done.err and all(word in done.err for word in words), (field, done)
        subprocess.run([case.quark_gauge, 'convert', 'builtin:weak:4x4x4x8:9', w.path('cfg.1.lime')], check=True,
                       stdout=subprocess.DEVNULL)
        w.write(small.replace('times = 0, 5', 'times = 0, 5, 6'))
        done = w.run()
        assert done.code == DATA and 'digest' in done.err, done
        same(before, w.pieces(), 0)


@tap.test
def damaged_pieces_are_made_again_and_a_damaged_file_is_refused(case):
    with Folder(case) as w:
        process = w.start()
        for _ in range(2):
            process.stderr.readline()
        process.kill()
        process.communicate(timeout=LIMIT)
        parts = w.path('out.h5.parts')
        names = sorted(n for n in os.listdir(parts) if n.endswith('.h5'))
        with open(os.path.join(parts, names[0]), 'r+b') as f:
            f.truncate(1000)
        with open(os.path.join(parts, 'left.h5.99.part'), 'wb') as f:
            f.write(b'unfinished')
        done = w.run('--json')
        assert done.code == 0 and names[0] in done.err and len(w.pieces()) == PIECES and w.leftovers() == [], done
        with open(w.path('out.h5'), 'r+b') as f:
            f.truncate(5000)
        with open(w.path('out.h5'), 'rb') as f:
            damaged = f.read()
        done = w.run()
        assert done.code == DATA and 'out.h5' in done.err, done
        with open(w.path('out.h5'), 'rb') as f:
            assert f.read() == damaged


@tap.test
def a_full_disk_costs_the_piece_that_did_not_fit(case):
    small = TEXT.replace('0.12, 0.125', '0.12').replace('cfg.*', 'cfg.1').replace('rho', 'pairs').replace('0, 5', '0')
    with Folder(case, small) as w:
        def limit():  # a field of the daemon has 96 KiB
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (120000, 120000))
        done = subprocess.run([case.quarkctl, 'workflow', w.path('w.ini')], preexec_fn=limit, capture_output=True, text=True,
                              timeout=LIMIT)
        assert done.returncode == DATA and 'out.h5.parts' in done.stderr and '0 of 2 pieces' in done.stderr, done
        assert not [n for n in os.listdir(w.path('out.h5.parts')) if n.endswith(('.h5', '.part'))]
        done = w.run('--json')
        assert done.code == 0 and done.json['computed'] == 2 and w.leftovers() == [], done


@tap.test
def one_at_a_time_works_on_a_file(case):
    with Folder(case) as w:
        process = w.start()
        process.stderr.readline()
        done = w.run()
        assert done.code == AGAIN and 'another quarkctl' in done.err, done
        assert w.run('--report').code == 0
        _, err = process.communicate(timeout=LIMIT)
        assert process.returncode == 0, err


# ---- a running daemon -----------------------------------------------------------------------------


@tap.test
def an_endpoint_takes_the_place_of_own_daemons(case):
    with case.daemon() as d, Folder(case) as w:
        assert d.ctl('status').code == 0
        text = TEXT.replace('gauge = cfg.*.lime', 'endpoint = ' + d.endpoint).replace('[daemon]\nbackend = cpu\n', '')
        w.write(text.replace('0.12, 0.125', '0.12'))
        done = w.run('--json')
        assert done.code == 0 and done.json['computed'] == len(LABELS), done
        assert set(w.pieces()) == {('builtin:weak:4x4x4x8:1', 'kappa=0.12', label) for label in LABELS}
        counters = d.ctl('status', '--json').json['counters']
        assert counters['kept'] == 0 and counters['contracted'] == len(LABELS), counters
        for old, new, words in (('0.12, 0.125', '0.11', ('kappa', '0.11', '0.12')),
                                ('csw = 1.3', 'csw = 1', ('csw', '1.3')),
                                ('csw = 1.3', 'action = wilson', ('action = wilson,', 'has wilson-clover')),
                                ('kappa = 0.12, 0.125', 'mass = 0.5', ('mass = 0.5', '0.1666')),
                                ('csw = 1.3', 'boundary = periodic', ('boundary', 'periodic'))):
            w.write(text.replace(old, new).replace('0.12, 0.125', '0.12'))
            done = w.run()
            assert done.code == DATA and all(word in done.err for word in words), done


# ---- what does not go well ------------------------------------------------------------------------


@tap.test
def a_bad_file_is_told_by_line_and_key(case):
    with Folder(case) as w:
        for old, new, words in (
                ('csw = 1.3', 'csv = 1.3', (':6', 'csv', '[workflow] has out, gauge', 'of wilson-clover kappa, mass, csw')),
                ('csw = 1.3', 'csw = 1.3\naction = wilsn', ('wilsn', 'must be one of wilson, wilson-clover')),
                ('csw = 1.3', 'csw = 1.3\naction = wilson', (':6', 'csw', 'of wilson kappa, mass')),
                ('csw = 1.3', 'action = wilson-clover', ('needs csw',)), ('csw = 1.3', 'mass = 0.1', (':6', 'kappa and mass')),
                ('kappa = 0.12, 0.125', 'mass = 0.1, -4', ('mass = -4', 'above -4')), ('csw = 1.3', 'csw = 1001', (':6', '1000')),
                ('backend = cpu', 'action = wilson', ('action', '[daemon]')), ('csw = 1.3', 'csw = much', (':6', 'csw', 'much')),
                ('csw = 1.3', 'csw = 1.3\ncsw = 1.4', (':7', 'twice')), ('out = out.h5\n', '', ('out',)),
                ('cfg.*.lime', 'none.*', ('none.*',)), ('gauge = cfg.*.lime\n', '', ('gauge', 'endpoint')),
                ('0.12, 0.125', '0.12 0.12', ('0.12', 'twice')), ('0.12, 0.125', '-1', ('-1',)),
                ('csw = 1.3', 'boundary = 1,1,1', ('boundary', '1,1,1')), ('[daemon]', '[deamon]', ('deamon',)),
                ('backend = cpu', 'listen = tcp://*:1', ('listen',)), ('point:1,2,3,0', 'point:1,2,3', ('point:1,2,3',)),
                ('point:1,2,3,0', 'z4:1', ('z4:1',)), ('times = 0, 5', 'times = 0, x', ('times', 'x')),
                ('times = 0, 5', 'times = 5 5', ('times', 'twice')), ('gauss:0.3,2', 'gauss:0.3', ('gauss:0.3',)),
                ('stout:0.1,2', 'stout:9,2', ('stout:9,2',)), ('source smeared', 'source a/b', ('a/b',)),
                ('pion, rho', 'pion, rh0', ('rh0',)), ('0,0,0 0,1,0', '0,0,0 ; 0,1,0', (':20', ';')),
                ('csw = 1.3', 'nonsense', (':6', 'key = value')), ('csw = 1.3', 'csw = 1.' + 200 * '3', (':6', '190'))):
            assert old in TEXT, old
            w.write(TEXT.replace(old, new))
            done = w.run()
            assert done.code == DATA and all(word in done.err for word in words), (new, done)
            assert w.leftovers() == []
        assert run_ctl(case.quarkctl, 'workflow', '/no/such/file').code == DATA
        done = run_ctl(case.quarkctl, 'workflow')
        assert done.code == USAGE and 'is required' in done.err, done
        done = w.run('--endpoint=tcp://127.0.0.1:1')
        assert done.code == USAGE and 'endpoint = tcp://127.0.0.1:1' in done.err, done


@tap.test
def an_action_may_be_named(case):
    with Folder(case, TEXT.replace('kappa = 0.12, 0.125\ncsw = 1.3', 'action = wilson\nmass = 0.2').replace('cfg.*', 'cfg.1')) as w:
        done = w.run('--json')
        assert done.code == 0 and done.json['computed'] == len(LABELS), done
        attributes = [a for _, a in w.pieces().values()]
        assert {(a['quark'], a['action'], a['site_reals'], a['csw']) for a in attributes} == {('kappa=0.119047619', 'wilson;mass=0.2', 24, 0)}

        def change(action):
            with h5py.File(w.path('out.h5'), 'r+') as f:
                for source in f['cfg.1.lime/kappa=0.119047619'].values():
                    del source.attrs['action']
                    if action:
                        source.attrs['action'] = action
        change('wilson;mass=0.2;hop=1,1,1,0.5')
        done = w.run()
        assert done.code == DATA and ' action = wilson;mass=0.2;hop=1,1,1,0.5, but ' in done.err, done
        change('wilson;mass=0.20000000000000001')
        assert w.run('--json').json['computed'] == 0
        change(None)  # as files were before
        assert w.run('--json').json['computed'] == 0


@tap.test
def the_command_line_replaces_the_operator_of_the_file(case):
    with Folder(case) as w:
        def quarks(*args):
            done = w.run('--dry-run', '--json', *args)
            assert done.code == 0, done
            return {p['quark'] for p in done.json['pieces']}
        assert quarks() == {'kappa=0.12', 'kappa=0.125'}
        assert quarks('--set=kappa=0.11') == {'kappa=0.11'} and quarks('--set=mass=0') == {'kappa=0.125'}
        assert quarks('--set=csw=1', '--action=wilson-clover') == quarks()
        for args, words in ((('--action=wilson',), (':6', 'csw')), (('--set=csv=1',), ('--set', 'csv')),
                            (('--set=kappa=1', '--set=mass=1'), ('kappa and mass',)), (('--set=csw=2000',), ('--set', '1000'))):
            done = w.run('--dry-run', *args)
            assert done.code == DATA and all(word in done.err for word in words), (args, done)


@tap.test
def the_example_is_a_workflow(case):
    with Folder(case) as w, open(os.path.join(ROOT, 'client', 'workflow.ini'), encoding='utf-8') as f:
        w.write(f.read().replace('cfg.0[2-7]*.lime', 'cfg.*.lime'))
        done = w.run('--dry-run', '--json')
        assert done.code == 0 and len(done.json['pieces']) == 2 * 3 * 2, done


@tap.test
def a_daemon_that_cannot_work_ends_the_run_and_leaves_what_was_finished(case):
    with Folder(case) as w:
        assert w.run().code == 0
        before = w.pieces()
        with open(w.path('cfg.3.lime'), 'wb') as to, open(w.path('cfg.2.lime'), 'rb') as whole:
            to.write(whole.read()[:50000])
        done = w.run()
        assert done.code == DATA and '12 of 18 pieces' in done.err and 'quarkd.log' in done.err, done
        same(before, w.pieces(), 0)
        done = w.run('--quarkd=/no/such/program')
        assert done.code != 0 and '/no/such/program' in done.err, done
        w.write(TEXT.replace('backend = cpu', 'backend = abacus'))
        done = w.run()
        assert done.code == DATA and 'abacus' in done.err, done


tap.run(Case(*sys.argv[1:]))
