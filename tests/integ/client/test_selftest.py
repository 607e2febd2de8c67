"""quarkctl selftest, on a machine that works and on some that do not: test_selftest.py QUARKD QUARKCTL QUARK_ENGINE SHIM"""
import errno
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import engine_driver
import front_driver
import tap
from disk import OPEN, Disk, preloaded

FAKE = os.path.join(os.path.dirname(os.path.abspath(front_driver.__file__)), 'fake_engine.py')
UNAVAILABLE, USAGE, LIMIT = 69, 64, 60


class Selftest:
    def __init__(self, quarkd, quarkctl, engine, shim):
        self.quarkd, self.quarkctl, self.engine, self.shim = map(os.path.abspath, (quarkd, quarkctl, engine, shim))

    def run(self, *options, ranks=False, env=None, text=False, quarkd=None, engine=None, **more):
        """(exit code, lines by layer, stderr); text: (exit code, stdout, stderr). Files that it leaves are in a folder that goes with the test."""
        with tempfile.TemporaryDirectory() as folder:
            arguments = [self.quarkctl, 'selftest', '--quarkd=' + (quarkd or self.quarkd), '--engine=' + (engine or self.engine), *options]
            arguments += ([] if ranks else ['--no-ranks']) + ([] if text else ['--json'])
            root = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1', 'OMPI_MCA_rmaps_base_oversubscribe': '1'}
            begun = time.monotonic()
            done = subprocess.run(arguments, env={**os.environ, **root, 'TMPDIR': folder, **(env or {})}, capture_output=True, text=True,
                                  timeout=2 * LIMIT, check=False, **more)
            self.seconds, self.left = time.monotonic() - begun, os.listdir(folder)
        if text or done.returncode == USAGE:
            return done.returncode, done.stdout, done.stderr
        report, lines = json.loads(done.stdout), {}
        for check in report['checks']:
            assert (check['verdict'] == 'ok') == ('advice' not in check), check
            lines.setdefault(check['layer'], []).append(check)
        worst = max((c['verdict'] for c in report['checks']), key=['ok', 'warning', 'FAILED'].index)
        assert report['verdict'] == worst and done.returncode == (UNAVAILABLE if worst == 'FAILED' else 0), (done, worst)
        return done.returncode, lines, done.stderr


def verdicts(lines, layer):
    return [check['verdict'] for check in lines[layer]]


@tap.test
def a_machine_that_works_is_told_so_in_a_minute(case):
    code, lines, err = case.run(ranks=True)
    assert code == 0 and case.seconds < LIMIT, (code, case.seconds, lines)
    assert list(lines) == ['memory', 'disk', 'network', 'keys', 'programs', 'device', 'kernels', 'ranks'], list(lines)
    assert verdicts(lines, 'kernels') == ['ok'] and verdicts(lines, 'programs') == ['ok'], lines
    values = lines['kernels'][0]['values']
    assert values['residual'] < 1e-9 and values['gamma5_asymmetry'] < 1e-7, values
    assert 'FAILED' not in verdicts(lines, 'ranks') and case.left == [], (lines, case.left)
    assert all(check['values']['bytes_per_second'] > 0 for check in lines['network']), lines


@tap.test
def its_lines_are_for_people(case):
    code, out, err = case.run('--only=memory,disk,network,keys', text=True)
    assert code == 0 and out.splitlines()[-1].endswith(' s)'), out
    assert all(line.split()[0] in ('ok', 'warning', '->') for line in out.splitlines()[:-1]), out


@tap.test
def programs_that_are_not_there_are_named(case):
    for options, word in (({'engine': '/no/such/engine'}, '--engine'), ({'quarkd': '/no/such/quarkd'}, '--help')):
        code, lines, err = case.run(**options)
        check = lines['device'][0]
        assert code == UNAVAILABLE and check['verdict'] == 'FAILED' and '/no/such' in check['text'] and word in check['advice'], check
        assert 'kernels' not in lines and 'ranks' not in lines and 'FAILED' not in verdicts(lines, 'memory'), lines
        assert 'quarkd.log' in err and len(case.left) == 1, (err, case.left)


@tap.test
def an_engine_that_dies_is_told_with_its_reason(case):
    code, lines, err = case.run('--only=engine', engine='/bin/false')
    assert code == UNAVAILABLE and verdicts(lines, 'device') == ['FAILED'] and 'exit code 1' in lines['device'][0]['text'], lines


@tap.test
def wrong_numbers_are_found(case):
    with tempfile.TemporaryDirectory() as folder:
        code, lines, err = case.run('--only=engine', engine=front_driver.program(FAKE, folder), env={'QK_PROTO_PY': engine_driver.GENERATED.name})
    check = lines['kernels'][0]
    assert code == UNAVAILABLE and check['verdict'] == 'FAILED' and 'do not compute' in check['advice'], lines


@tap.test
def a_state_folder_that_takes_no_files_fails(case):
    for folder, word in (('/proc', '/proc: a file cannot be made'), ('/no/such', 'No such file')):
        code, lines, err = case.run('--only=disk,keys', '--state=' + folder)
        assert code == UNAVAILABLE and verdicts(lines, 'disk') == ['FAILED'] and word in lines['disk'][0]['text'], lines
        assert list(lines) == ['disk', 'keys'] and case.left == [], (lines, case.left)


@tap.test
def a_disk_that_is_read_only_full_or_slow_is_told(case):
    with tempfile.TemporaryDirectory() as folder:
        disk = Disk(preloaded(case.shim, case.quarkctl), folder)

        def met():
            code, lines, err = case.run('--only=disk', '--state=' + folder, env=disk.env)
            return code, lines['disk'][0]

        disk.set(4, 1)  # as if calls had been met: fails() asks for that
        disk.fails(errno.EROFS, OPEN)
        code, check = met()
        assert code == UNAVAILABLE and check['verdict'] == 'FAILED' and 'Read-only file system' in check['text'], check
        disk.works()
        disk.has_room(5 << 30)
        code, check = met()
        assert code == 0 and check['verdict'] == 'warning' and '5.0 GiB free' in check['text'], check
        disk.works()
        disk.stalls(80)
        code, check = met()
        assert code == 0 and check['verdict'] == 'warning' and check['values']['sync_seconds'] >= 0.08, check


@tap.test
def a_small_shared_memory_is_told(case):
    disk = Disk(preloaded(case.shim, case.quarkctl), '/dev/shm')
    disk.has_room(64 << 20)
    code, lines, err = case.run('--only=memory', env=disk.env)
    check = next(c for c in lines['memory'] if '/dev/shm' in c['text'])
    assert code == 0 and check['verdict'] == 'warning' and '0.06' in check['text'] and '--shm-size' in check['advice'], check
    disk.works()
    disk.set(4, 1)
    disk.fails(errno.EACCES, OPEN)
    code, lines, err = case.run('--only=memory', env=disk.env)
    check = next(c for c in lines['memory'] if '/dev/shm' in c['text'])
    assert code == UNAVAILABLE and check['verdict'] == 'FAILED' and 'Permission denied' in check['text'], check


@tap.test
def few_descriptors_are_told(case):
    code, lines, err = case.run('--only=memory', preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000)))
    check = next(c for c in lines['memory'] if 'descriptors' in c['text'])
    assert code == 0 and check['verdict'] == 'warning' and '1000' in check['text'], check


@tap.test
def a_network_without_a_loopback_fails(case):
    if subprocess.run(['unshare', '-rn', 'true'], capture_output=True, check=False).returncode != 0:
        raise tap.Skip('no network namespace can be made here')
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(['unshare', '-rn', case.quarkctl, 'selftest', '--no-ranks', '--quarkd=' + case.quarkd, '--engine=' + case.engine],
                              env={**os.environ, 'TMPDIR': folder}, capture_output=True, text=True, timeout=2 * LIMIT, check=False)
    assert done.returncode == UNAVAILABLE, done
    assert 'not looked at' in done.stdout, done.stdout
    assert 'FAILED   network   TCP over the loopback interface' in done.stdout and 'ok       network   local socket' in done.stdout, done.stdout


@tap.test
def a_wrong_option_is_a_usage_error(case):
    for wrong in '--lattice=8', 'rest', '--only=cpu', '--only=', '--only=disk,,keys':
        assert case.run(wrong)[0] == USAGE, wrong


tap.run(Selftest(*sys.argv[1:]))
