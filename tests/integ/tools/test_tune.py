"""quark-tune as a user sees it, and what quarkd makes of its result: test_tune.py QUARKD QUARKCTL QUARK_TUNE QUARK_ENGINE"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import tap
from daemon import LIMIT, Daemon

BETTER, DEFAULTS, USAGE, DATA_ERROR, CONFIG = 0, 1, 64, 65, 78
SMALL = 'builtin:weak:4x4x4x8:1'
# What is quick where it works at once.
OPERATOR = ('--kappa=0.12', '--csw=1.3')
QUICK = OPERATOR + ('--slots=2', '--tol=1e-8', '--budget=1000', '--trials=4', '--start=mg-vectors=8', '--start=mg-setup-iterations=5')
TRIAL = re.compile(r' *(\d+|known|-) +\d+ s  (\S.*?) +([\d.]+) s per RHS, +([\d.]+) iterations, setup +([\d.]+) s; best +([\d.]+) s$')


class Case:
    def __init__(self, quarkd, quarkctl, quark_tune, engine):
        self.quarkd, self.quarkctl, self.quark_tune, self.engine = quarkd, quarkctl, quark_tune, os.path.abspath(engine)
        self.folder = tempfile.TemporaryDirectory()
        self.config = os.path.join(self.folder.name, 'tuned.conf')
        self.protocol = os.path.join(self.folder.name, 'tuned.jsonl')
        self.done = None

    def tune(self, *args, **more):
        env = dict(os.environ, OMP_NUM_THREADS='1', **more)
        return subprocess.run([self.quark_tune, '--backend=cpu', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=env, timeout=LIMIT)

    def good(self, *args):
        """What is found is better than the defaults, or nothing is: both are results, and the words say which one it is."""
        done = self.tune(*args)
        assert done.returncode in (BETTER, DEFAULTS), done
        assert ('nothing better than the defaults was found' in done.stdout) == (done.returncode == DEFAULTS), done
        return done

    def tuned(self):
        """A run that several tests look at, with its configuration and its protocol."""
        self.done = self.done or self.good(*QUICK, '--out=' + self.config, '--protocol=' + self.protocol, SMALL)
        return self.done

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def settings(self):
        with open(self.config, encoding='utf-8') as f:
            return dict(line.strip().split(' = ') for line in f if not line.startswith('#'))


def trials(done):
    found = [TRIAL.match(line) for line in done.stderr.splitlines()]
    return [(m[2], float(m[3]), float(m[4])) for m in found if m]


def known(done):
    return [line for line in done.stderr.splitlines() if line.startswith('known ')]


def start_and_signal(case, protocol, number):
    """A run without an end that gets the signal after its fifth trial: its exit status, stdout and stderr."""
    args = [case.quark_tune, '--backend=cpu', *QUICK, '--trials=1000', '--protocol=' + protocol, SMALL]
    said = ''
    with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, OMP_NUM_THREADS='1')) as run:
        ended = 0
        for line in run.stderr:
            trial = TRIAL.match(line)
            ended += bool(trial and trial[1].isdigit())
            said += line
            if ended == 5:
                run.send_signal(number)
                break
        out, err = run.communicate(timeout=LIMIT)
        return run.returncode, out, said + err


def lines_of(path):
    with open(path, encoding='utf-8') as f:
        return [json.loads(line) for line in f]


@tap.test
def the_table_has_the_best_trial_first(case):
    done = case.tuned()
    head, *rows = done.stdout.splitlines()
    tried = trials(done)
    assert head.split() == 'changed last s per RHS s alone iterations setup s device GB'.split(), head
    assert rows[-1].startswith(case.config + ': written; ') and 'quarkd --config=' + case.config in rows[-1]
    rows = rows[:next(i for i, row in enumerate(rows) if row.startswith('defaults:'))]
    costs = [float(row[40:].split()[0]) + float(row[40:].split()[3]) / 1000 for row in rows]
    assert tried[0][0] == 'defaults' and 1 <= len(rows) <= len(tried), done
    assert costs == sorted(costs) or all(a < b + 2e-4 for a, b in zip(costs, costs[1:])), rows
    assert all(float(row[40:].split()[2]) < 60 for row in rows)
    turns = [t[0] for t in tried if t[0].startswith('turn ')]
    assert turns[0] == 'turn 1: defaults' and turns[1:2] in ([], ['turn 1: the best']), turns


@tap.test
def the_daemon_takes_the_result_and_solves(case):
    case.tuned()
    s = case.settings()
    assert s['gauge'] == SMALL and s['action'] == 'wilson-clover' and float(s['kappa']) == 0.12 and float(s['csw']) == 1.3 and s['boundary'] == '1,1,1,-1'
    assert s['solver'] == 'mg' and s['slots'] == '2' and {'mg-vectors', 'mg-blocks', 'mg-levels', 'mg-smoother'} <= set(s)
    tuned = ('--solver=mg', '--config=' + case.config, '--engine=' + case.engine, '--mg-checkpoint=off')
    with Daemon(case.quarkd, case.quarkctl, *tuned) as d:
        done = d.ctl('propagator', '--source=point:0,0,0,0', '--tol=1e-9', '--out', d.path('p.h5'), '--json')
        assert done.code == 0, done
        assert all(r['status'] == 'OK' and r['true_residual'] <= 1e-9 and r['iterations'] < 60 for r in done.json['rhs']), done
        setup = d.ctl('status', '--json').json['setup']
        assert setup['solver'] == 'mg' and setup['multigrid']['levels'][0]['vectors'] == int(s['mg-vectors'].split(',')[0]), setup


@tap.test
def a_result_with_a_wrong_key_is_refused(case):
    case.tuned()
    wrong = case.path('wrong.conf')
    shutil.copy(case.config, wrong)
    with open(wrong, 'a', encoding='utf-8') as f:
        f.write('mg-vector = 24\n')
    done = subprocess.run([case.quarkd, '--config=' + wrong, '--listen=tcp://127.0.0.1:0'], stderr=subprocess.PIPE, text=True,
                          timeout=LIMIT)
    assert done.returncode == CONFIG and 'mg-vector' in done.stderr, done


@tap.test
def json_holds_every_trial(case):
    done = case.good(*QUICK, '--json', '--out=' + case.path('json.conf'), SMALL)
    report = json.loads(done.stdout)
    tried = report['trials']
    verdict = report['verdict']
    assert verdict['better'] == (done.returncode == BETTER) and 'the defaults' in verdict['sentence'], verdict
    assert {'mg-levels', 'mg-vectors', 'mg-post'} <= set(verdict['settings']), verdict
    assert verdict['better'] is False or verdict['gain'] > verdict['noise'] >= 0.01, verdict
    assert report['gauge'] == SMALL and report['kappa'] == 0.12 and report['slots'] == 2 and report['tol'] == 1e-8
    good = [t for t in tried if t['works']]
    assert len(good) == len(trials(done)) and {'defaults', 'start'} <= {t['changed'] for t in tried}, done
    for t in good:
        assert t['seconds'] > 0 and t['iterations'] > 1 and t['setup_seconds'] >= 0 and t['device_bytes'] > 1e6, t
        assert 0 < t['residual'] <= 1e-8 and abs(t['cost'] - t['seconds'] - t['setup_seconds'] / 1000) < 1e-12, t
    assert os.path.exists(case.path('json.conf'))


@tap.test
def a_cycle_is_measured_as_on_a_hierarchy_of_its_own(case):
    """The first run changes the cycle of the hierarchy of the defaults, whose smoother has learned something else. The factor of mu, which this
    action has none of, makes the second one build another hierarchy, of the same vectors."""
    found = []
    for factor in ('1', '2'):
        for _ in range(4):  # a trial that a busy machine makes look hopeless is stopped, and tells no iterations
            report = json.loads(case.good('--kappa=0.125', '--csw=1.3', '--slots=2', '--tol=1e-9', '--budget=1000', '--trials=2', '--json',
                                          '--start=mg-post=14', '--start=mg-twist=' + factor, SMALL).stdout)
            start = [t for t in report['trials'] if t['changed'] == 'start'][0]
            if 'iterations' in start:
                found.append((start['iterations'], start['residual']))
                break
    if len(found) < 2:
        raise tap.Skip('this machine is too busy to judge a trial')
    assert found[0] == found[1], found


@tap.test
def a_run_that_was_killed_goes_on_where_it_was(case):
    protocol = case.path('killed.jsonl')
    code, out, _ = start_and_signal(case, protocol, signal.SIGKILL)
    assert code == -signal.SIGKILL and not out
    before = lines_of(protocol)
    assert len(before) >= 5 and all(line['quark-tune'] == 1 and line['lattice'] == [4, 4, 4, 8] for line in before), before
    with open(protocol, 'a', encoding='utf-8') as f:
        f.write('{"quark-tune":1,"time":"2026')  # what a killed process may leave
    done = case.good(*QUICK, '--protocol=' + protocol, SMALL)
    assert 'killed.jsonl: line %d: no JSON object' % (len(before) + 1) in done.stderr and 'skipped' in done.stderr, done
    with open(protocol, encoding='utf-8') as f:
        after = [json.loads(line) for number, line in enumerate(f) if number != len(before)]
    assert after[:len(before)] == before and len(after) > len(before)
    searched = [json.dumps(line['settings']) for line in before if line['result'] == 'good']
    again = [line for line in after[len(before):] if json.dumps(line['settings']) in searched]
    anew = ('defaults', 'the best again', 'turn ')
    assert known(done) and all(line['changed'].startswith(anew) for line in again), ([line['changed'] for line in again], before, done)


@tap.test
def an_interrupted_search_ends_with_its_result(case):
    protocol = case.path('interrupted.jsonl')
    code, out, err = start_and_signal(case, protocol, signal.SIGINT)
    assert code in (BETTER, DEFAULTS) and 'than the defaults' in out, (code, out, err)
    assert 'interrupted: the search ends' in err and 'turn 1: defaults' in err, err
    turns = [line['changed'].startswith('turn ') for line in lines_of(protocol)]
    assert turns == sorted(turns) and turns.count(False) >= 5, turns


@tap.test
def a_trial_without_memory_is_told_and_left_out(case):
    failed = []
    for n in (400, 800, 1200):  # in trials, wherever they are
        protocol = case.path('memory%d.jsonl' % n)
        done = case.tune(*QUICK, '--trials=3', '--protocol=' + protocol, SMALL, QK_FAULTS='device-alloc:%d' % n)
        here = [line for line in lines_of(protocol) if line['result'] == 'failed']
        assert done.returncode in (BETTER, DEFAULTS) and len(here) <= 1, done
        assert all(line['error'] == 'not enough device memory' and 'seconds' not in line for line in here), here
        if [line['changed'] for line in here] == ['defaults']:
            assert done.returncode == BETTER and 'the defaults do not work (not enough device memory)' in done.stdout, done
        failed += here
    assert failed


@tap.test
def what_was_measured_of_something_else_is_not_taken_for_this(case):
    protocol = case.path('shared.jsonl')
    first = case.good(*QUICK, '--trials=2', '--protocol=' + protocol, SMALL)
    assert 'best of' not in first.stderr, first
    other = case.good(*QUICK, '--trials=3', '--tol=1e-7', '--protocol=' + protocol, SMALL)
    lines = lines_of(protocol)
    assert {line['tol'] for line in lines} == {1e-8, 1e-7} and 'best of 4x4x4x8' in other.stderr, other
    assert sum(line['changed'] == 'defaults' for line in lines) == 2, lines


@tap.test
def the_best_of_others_is_tried_first(case):
    protocol = case.protocol
    case.tuned()
    done = case.good('--kappa=0.121', '--csw=1.3', '--slots=2', '--tol=1e-8', '--trials=2', '--from=' + protocol, '--from=' + protocol,
                     'builtin:weak:4x4x4x4:1')
    assert [t[0] for t in trials(done)][1:2] == ['best of 4x4x4x8, ' + lines_of(protocol)[0]['device'][:20]], done
    done = case.tune(*QUICK, '--from=' + case.path('none.jsonl'), SMALL)
    assert done.returncode == DATA_ERROR and 'none.jsonl' in done.stderr and not done.stdout, done
    done = case.tune(*QUICK, '--protocol=' + case.path('none/p.jsonl'), SMALL)
    assert done.returncode == DATA_ERROR and 'none/p.jsonl' in done.stderr and not done.stdout, done


@tap.test
def a_protocol_is_shown_the_fastest_first(case):
    protocol, damaged = case.protocol, case.path('damaged.jsonl')
    case.tuned()
    lines = lines_of(protocol)
    done = case.tune('--show=' + protocol, '--solves=500')
    assert done.returncode == 0 and not done.stderr, done
    what, where, head, *rows = done.stdout.splitlines()
    assert what.startswith('4x4x4x8, wilson-clover;mass=') and where.endswith(': %d trials' % len(lines)), (what, where)
    good = [row for row in rows if not row.strip().startswith(('failed', '>'))]
    costs = sorted(line['seconds'] + line['setup_seconds'] / 500 for line in lines if line['result'] == 'good')
    assert [row.split()[0] for row in good] == ['%.4f' % cost for cost in costs], done.stdout
    assert any(row.endswith('  defaults') for row in rows) and len(rows) == len(lines) and 'unlike the defaults' in head, done.stdout
    shutil.copy(protocol, damaged)
    with open(damaged, 'a', encoding='utf-8') as f:
        f.write('\x1b[31m\n{"quark-tune":2}\n[')
    done = case.tune('--show=' + damaged, '--json')
    report = json.loads(done.stdout)
    assert done.returncode == 0 and report['lines'] == len(lines) and report['damaged'] == 3, done
    assert sorted(t['time'] for t in report['cases'][0]) == sorted(line['time'] for line in lines)
    for number, word in ((1, 'no JSON object'), (2, 'version 2'), (3, 'no end')):
        assert 'line %d: ' % (len(lines) + number) in done.stderr and word in done.stderr, done
    assert '\x1b' not in done.stderr
    with open(damaged, 'w', encoding='utf-8') as f:
        f.write('nothing\n')
    done = case.tune('--show=' + damaged)
    assert done.returncode == DATA_ERROR and 'no trial' in done.stderr and not done.stdout, done


@tap.test
def the_configuration_says_what_was_measured(case):
    done = case.tuned()
    with open(case.config, encoding='utf-8') as f:
        comments = [line[2:].rstrip('\n') for line in f if line.startswith('# ')]
    assert re.match(r'quark-tune \S+, \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, 4x4x4x8 on .* \(cpu\), ranks 1x1x1x1: \d+ trials$', comments[0]), comments
    assert comments[2] in done.stdout.splitlines(), (comments, done)
    assert any(comment.startswith('defaults: ') for comment in comments), comments


@tap.test
def the_budget_bounds_the_search(case):
    tried = trials(case.good(*QUICK, '--budget=1', SMALL))
    assert 2 <= len(tried) <= 12, tried  # the defaults, the start, both in turns, and what a fast machine tries in a second


@tap.test
def what_does_not_fit_is_told(case):
    done = case.tune(*OPERATOR, '--budget=1', 'builtin:weak:2x2x2x2:1')
    assert done.returncode == DATA_ERROR and not done.stdout, done
    done = case.tune(*OPERATOR, '--budget=1', os.path.join(case.folder.name, 'none.lime'))
    assert done.returncode == DATA_ERROR and 'none.lime' in done.stderr, done
    done = case.tune(*QUICK, '--budget=1', '--out=' + os.path.join(case.folder.name, 'none', 'tuned.conf'), SMALL)
    assert done.returncode == DATA_ERROR and 'none/tuned.conf' in done.stderr and not trials(done), done


@tap.test
def bad_options_are_refused_with_their_limit(case):
    bad = (('--kappa=0.13', 'kappa is given twice'), ('--mass=0.1', 'kappa and mass'), ('--boundary-t=0.5', 'boundary-t'),
           ('--tol=1', 'tol'), ('--slots=0', 'slots'), ('--slots=65', '64'), ('--trials=0', '--trials=0: an integer from 1 to 1000000'), ('--budget=0', 'budget'), ('--solves=0', 'solves'),
           ('--start=mg-vectors', 'KEY=VALUE'), ('--start=mg-vectors=many', 'mg-vectors = many'),
           ('--start=mg-color=red', 'mg-color'), ('--show=p.jsonl', '--show=p.jsonl: not with'), ('--dims=4x4x4', 'dims'), ('--grid=2x1x1', 'grid'), ('--backend=tpu', 'backend'),
           ('extra', 'extra'))
    for option, word in bad:
        done = case.tune(*OPERATOR, SMALL, option)
        assert done.returncode == USAGE and word in done.stderr and not done.stdout, (option, done)
    for args, word in (((SMALL,), 'needs mass (or kappa)'), (OPERATOR, 'GAUGE'), (('--kappa=0', SMALL), 'kappa = 0'),
                       (('--mass=-4', SMALL), 'mass = -4'), (('--mass=1', '--csw=x', SMALL), 'csw = x'),
                       (('--action=wislon', '--mass=1', SMALL), 'must be one of wilson'),
                       (('--action=wilson', '--mass=1', '--set=csw=1', SMALL), 'no such parameter'),
                       (('--show=p.jsonl', '--out=a.conf'), 'not with --out'), (('--show=p.jsonl', '--solves=0'), '--solves=0: a number from 1 to 1e+12'),
                       (OPERATOR + ('--from=p.jsonl',) * 33 + (SMALL,), 'more than 32 files'),
                       (('--mass=1', '--set=csw', SMALL), 'KEY=VALUE')):
        done = case.tune(*args)
        assert done.returncode == USAGE and word in done.stderr, done


tap.run(Case(*sys.argv[1:]))
