"""Part of test_front_service.py: how a daemon begins and ends."""
import contextlib
import os
import signal
import subprocess
import tempfile

import tap

try:
    from front_case import fake, field
    from front_driver import STATUS, Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


@tap.test
def exit_codes_tell_what_was_wrong(case):
    assert case.run().returncode == 64
    assert case.run('--nonsense').returncode == 64
    assert case.run('--gauge', 'x', '--mass', 'heavy').returncode == 64
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
        f.write('colour = red\n')
        f.flush()
        r = case.run('--config', f.name)
        assert r.returncode == 78 and f.name + ':1' in r.stderr, r.stderr
    fine = ['--gauge', 'x', '--mass', '0.1', '--listen', 'tcp://127.0.0.1:0']
    assert case.run(*fine, '--engine', '/nonexistent').returncode == 69
    r = case.run(*fine, '--engine', '/bin/false')
    assert r.returncode == 69 and 'did not start' in r.stderr
    assert case.run(*fine[:-1], 'pigeon://roof', '--engine', '/bin/false').returncode == 78
    with case.daemon() as d:
        assert case.run(*fine[:-1], d.endpoint, '--engine', '/bin/false').returncode == 69  # in use
    with case.daemon(env={'FAKE_LOAD': 'refuse'}, wait=None) as d:
        assert d.wait() == 65 and any('checksum of a fake file' in line for line in d.lines)


@tap.test
def clients_are_told_why_the_setup_was_refused(case):
    with tempfile.TemporaryDirectory() as folder:
        go = os.path.join(folder, 'go')
        os.mkfifo(go)
        with case.daemon(env={'FAKE_LOAD': 'refuse', 'FAKE_GO': go}, wait='engine started') as d, Client(d) as c:
            with open(go, 'w', encoding='utf-8'):  # the engine waits for this
                pass
            assert 'checksum of a fake file' in c.error('BAD_CHECKSUM').text
            assert d.wait() == 65


@tap.test
def a_drain_waits_for_the_checkpoint_and_a_second_signal_does_not(case):
    with tempfile.TemporaryDirectory() as folder:
        go = os.path.join(folder, 'go')
        os.mkfifo(go)
        for patient in (True, False):
            with case.daemon('--solver', 'mg', env={'FAKE_LOAD': 'save', 'FAKE_GO': go}) as d:
                assert d.status().setup.multigrid.checkpoint_writing
                d.process.terminate()
                assert d.log('draining')
                with contextlib.suppress(subprocess.TimeoutExpired):
                    d.process.wait(1)
                    assert False, 'left without the checkpoint'
                if patient:
                    with open(go, 'w', encoding='utf-8'):  # the engine waits for this
                        pass
                else:
                    d.process.send_signal(signal.SIGINT)
                assert d.wait() == 0


@tap.test
def configuration_files_set_what_flags_set(case):
    with tempfile.TemporaryDirectory() as folder:
        conf, where, pid = (os.path.join(folder, n) for n in ('quarkd.conf', 'endpoint', 'pid'))
        with open(conf, 'w', encoding='utf-8') as f:
            f.write('csw = 1.25\nslots = 3\nendpoint-file = %s\npidfile = %s\n' % (where, pid))
        with case.daemon('--config', conf) as d:
            s = d.status()
            assert s.setup.csw == 1.25 and s.engine.slots == 3
            assert open(where, encoding='utf-8').readline() == d.endpoint + '\n'
            assert int(open(pid, encoding='utf-8').read()) == d.process.pid
            assert d.terminate() == 0
        assert os.listdir(folder) == ['quarkd.conf']


@tap.test
def parameters_of_the_action_come_by_set_and_by_file(case):
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
        f.write('csw = 1.25\naction = wilson-clover\n')
        f.flush()
        with case.daemon('--config', f.name) as d:
            s = d.status().setup
            assert (s.action, s.csw) == ('wilson-clover', 1.25), s
        with case.daemon('--config', f.name, '--set', 'csw=1.50') as d:
            s = d.status().setup
            assert [(p.key, p.value) for p in s.parameter] == [('mass', '0.1'), ('csw', '1.5')], s
        fine = ('--config', f.name, '--gauge', 'x', '--listen', 'tcp://127.0.0.1:0', '--engine', '/bin/false')
        for args, code, cause in ((('--mass', '1', '--set', 'mu=0.1'), 64, 'command line: mu: wilson-clover has no such parameter: it has'),
                                  (('--mass', '1', '--set', 'mass=1'), 64, 'command line: mass is given twice'),
                                  (('--set', 'mass=-5'), 64, 'command line: mass = -5: must be a number above -4')):
            r = case.run(*fine, *args)
            assert r.returncode == code and cause in r.stderr, r.stderr
        f.write('set = csw=1\n')
        f.flush()
        r = case.run(*fine, '--mass', '1')
        assert r.returncode == 78 and 'csw is given twice' in r.stderr and f.name in r.stderr, r.stderr


@tap.test
def sigterm_finishes_what_was_accepted(case):
    with case.daemon('--slots', '1') as d, Client(d) as c:
        fields = [field(), field()]
        accepted = c.submit(2)
        c.upload(accepted, fields[:1])
        c.expect('result')
        d.process.send_signal(signal.SIGTERM)
        d.status_when(lambda s: s.state == qk.STATE_DRAINING)
        r = c.submit(1, expect='rejected')
        assert r.status == STATUS['SHUTTING_DOWN']
        c.upload(accepted, fields, begin=accepted.field_bytes)
        c.expect('result')
        for rhs in (0, 1):
            c.send(grant=qk.Grant(request=1, rhs=rhs, until=accepted.field_bytes))
            assert c.chunk()['payload'] == (2 * fields[rhs]).tobytes()
        c.ack(1)
        c.error('SHUTTING_DOWN')
        assert d.wait() == 0


@tap.test
def a_second_signal_stops_at_once(case):
    with case.daemon() as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        d.process.send_signal(signal.SIGTERM)
        d.status_when(lambda s: s.state == qk.STATE_DRAINING)
        d.process.send_signal(signal.SIGINT)
        c.error('SHUTTING_DOWN')
        assert d.wait() == 75


@tap.test
def the_drain_has_a_limit(case):
    with case.daemon('--drain-timeout', '0.3') as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        d.status_when(lambda s: s.counters.running == 1)
        assert d.terminate() == 75


@tap.test
def clients_can_shut_it_down(case):
    for now in (False, True):
        with case.daemon() as d, Client(d, hello=False) as c:
            c.send(shutdown=qk.Shutdown(now=now))
            assert c.expect('shutdown').now == now
            assert d.wait() == 0


@tap.test
def an_engine_that_does_not_stop_is_killed(case):
    with case.daemon(env={'FAKE_LOAD': 'mute'}, wait='engine started') as d:
        pid = d.status_when(lambda s: s.state == qk.STATE_LOADING).engine.pid
        assert d.terminate() == 0
        try:
            os.kill(pid, 0)
            raise AssertionError('the engine lives on')
        except ProcessLookupError:
            pass
