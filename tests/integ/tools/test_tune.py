"""quark-tune as a user sees it, and what quarkd makes of its result: test_tune.py QUARKD QUARKCTL QUARK_TUNE QUARK_ENGINE"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import tap
from daemon import LIMIT, Daemon

USAGE, DATA_ERROR, CONFIG = 64, 65, 78
GAUGE = 'builtin:weak:8x8x8x8:1'
SMALL = 'builtin:weak:4x4x4x8:1'
# What is quick where it works at once.
OPERATOR = ('--kappa=0.12', '--csw=1.3')
QUICK = OPERATOR + ('--slots=2', '--tol=1e-8', '--start=mg-vectors=8', '--start=mg-setup-iterations=5')
TRIAL = re.compile(r' *\d+ s  (\S.*?) +([\d.]+) s per RHS, +([\d.]+) iterations, setup +([\d.]+) s$')


class Case:
    def __init__(self, quarkd, quarkctl, quark_tune, engine):
        self.quarkd, self.quarkctl, self.quark_tune, self.engine = quarkd, quarkctl, quark_tune, os.path.abspath(engine)
        self.folder = tempfile.TemporaryDirectory()
        self.config = os.path.join(self.folder.name, 'tuned.conf')

    def tune(self, *args):
        env = dict(os.environ, OMP_NUM_THREADS='1')
        return subprocess.run([self.quark_tune, '--backend=cpu', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=env, timeout=LIMIT)

    def good(self, *args):
        done = self.tune(*args)
        assert done.returncode == 0, done
        return done

    def settings(self):
        with open(self.config, encoding='utf-8') as f:
            return dict(line.strip().split(' = ') for line in f if not line.startswith('#'))


def trials(done):
    found = [TRIAL.match(line) for line in done.stderr.splitlines()]
    return [(m[1], float(m[2]), float(m[3])) for m in found if m]


@tap.test
def the_table_has_the_best_trial_first(case):
    done = case.good(*QUICK, '--budget=4', '--out=' + case.config, GAUGE)
    head, *rows = done.stdout.splitlines()
    tried = trials(done)
    assert head.split() == 'changed last s per RHS iterations setup s device GB'.split(), head
    assert rows[-1].startswith(case.config + ': written; ') and 'quarkd --config=' + case.config in rows[-1]
    seconds = [float(row[40:].split()[0]) for row in rows[:-1]]
    assert tried[0][0] == 'start' and 1 <= len(rows) - 1 <= len(tried), done
    assert abs(seconds[0] - min(t[1] for t in tried)) <= 0.1 * seconds[0] + 2e-4, (seconds, tried)
    assert all(float(row[40:].split()[1]) < 60 for row in rows[:-1])


@tap.test
def the_daemon_takes_the_result_and_solves(case):
    case.good(*QUICK, '--budget=1', '--out=' + case.config, GAUGE)
    s = case.settings()
    assert s['gauge'] == GAUGE and s['action'] == 'wilson-clover' and float(s['kappa']) == 0.12 and float(s['csw']) == 1.3 and s['boundary'] == '1,1,1,-1'
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
    case.good(*QUICK, '--budget=1', '--out=' + case.config, GAUGE)
    with open(case.config, 'a', encoding='utf-8') as f:
        f.write('mg-vector = 24\n')
    done = subprocess.run([case.quarkd, '--config=' + case.config, '--listen=tcp://127.0.0.1:0'], stderr=subprocess.PIPE, text=True,
                          timeout=LIMIT)
    assert done.returncode == CONFIG and 'mg-vector' in done.stderr, done


@tap.test
def json_holds_every_trial(case):
    done = case.good(*QUICK, '--budget=2', '--json', '--out=' + case.config, GAUGE)
    report = json.loads(done.stdout)
    tried = report['trials']
    assert report['gauge'] == GAUGE and report['kappa'] == 0.12 and report['slots'] == 2 and report['tol'] == 1e-8
    good = [t for t in tried if t['works']]
    assert len(good) == len(trials(done)) and 'start' in [t['changed'] for t in tried]
    for t in good:
        assert t['seconds'] > 0 and t['iterations'] > 1 and t['setup_seconds'] >= 0 and t['device_bytes'] > 1e6, t
    assert float(case.settings()['slots']) == 2


@tap.test
def the_budget_bounds_the_search(case):
    start = time.monotonic()
    done = case.good(*QUICK, '--budget=1', SMALL)
    wall, tried = time.monotonic() - start, trials(done)
    slowest = max(seconds * 2 for _, seconds, _ in tried) if tried else 0
    assert tried and wall < 10 + 10 * slowest, (wall, done)


@tap.test
def what_does_not_fit_is_told(case):
    done = case.tune(*OPERATOR, '--budget=1', 'builtin:weak:2x2x2x2:1')
    assert done.returncode == DATA_ERROR and not done.stdout, done
    done = case.tune(*OPERATOR, '--budget=1', os.path.join(case.folder.name, 'none.lime'))
    assert done.returncode == DATA_ERROR and 'none.lime' in done.stderr, done
    done = case.tune(*QUICK, '--budget=1', '--out=' + os.path.join(case.folder.name, 'none', 'tuned.conf'), SMALL)
    assert done.returncode == DATA_ERROR and 'none/tuned.conf' in done.stderr, done


@tap.test
def bad_options_are_refused_with_their_limit(case):
    bad = (('--kappa=0.13', 'kappa is given twice'), ('--mass=0.1', 'kappa and mass'), ('--boundary-t=0.5', 'boundary-t'),
           ('--tol=1', 'tol'), ('--slots=0', 'slots'), ('--slots=65', '64'), ('--budget=0', 'budget'), ('--solves=0', 'solves'),
           ('--start=mg-vectors', 'KEY=VALUE'), ('--start=mg-vectors=many', 'mg-vectors = many'),
           ('--start=mg-color=red', 'mg-color'), ('--dims=4x4x4', 'dims'), ('--grid=2x1x1', 'grid'), ('--backend=tpu', 'backend'),
           ('extra', 'extra'))
    for option, word in bad:
        done = case.tune(*OPERATOR, SMALL, option)
        assert done.returncode == USAGE and word in done.stderr and not done.stdout, (option, done)
    for args, word in (((SMALL,), 'needs mass (or kappa)'), (OPERATOR, 'GAUGE'), (('--kappa=0', SMALL), 'kappa = 0'),
                       (('--mass=-4', SMALL), 'mass = -4'), (('--mass=1', '--csw=x', SMALL), 'csw = x'),
                       (('--action=wislon', '--mass=1', SMALL), 'must be one of wilson'),
                       (('--action=wilson', '--mass=1', '--set=csw=1', SMALL), 'no such parameter'),
                       (('--mass=1', '--set=csw', SMALL), 'KEY=VALUE')):
        done = case.tune(*args)
        assert done.returncode == USAGE and word in done.stderr, done


tap.run(Case(*sys.argv[1:]))
