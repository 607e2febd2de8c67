#!/usr/bin/env python3
"""What signals and the end of the walltime make of quarkd, with the engine that only pretends: test_front_signals.py QUARKD"""
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import tap

try:
    from front_case import Case, check_solves, fake
    from front_driver import STATUS, Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

MOST = 1024  # right-hand sides of a request


class Settings:
    """A configuration file that changes while quarkd runs."""

    def __init__(self):
        self.file = tempfile.NamedTemporaryFile('w', suffix='.conf')
        self.option = ('--config', self.file.name)

    def write(self, **settings):
        self.file.seek(0)
        self.file.truncate()
        self.file.write(''.join('%s = %s\n' % (k.replace('_', '-'), v) for k, v in settings.items()))
        self.file.flush()

    def close(self):
        self.file.close()


@contextlib.contextmanager
def configured(case, *options, **settings):
    with contextlib.closing(Settings()) as s:
        s.write(**settings)
        with case.daemon(*s.option, *options) as d:
            yield d, s


def hang_up(d, until, count=1):
    d.process.send_signal(signal.SIGHUP)
    return d.log(until, count)


@tap.test
def sighup_takes_over_what_can_change(case):
    with configured(case, lease=60, user_rhs=0, max_memory='64M') as (d, s), Client(d) as old:
        assert old.welcome.lease_ms == 60000 and d.status().memory_limit == 64 << 20
        s.write(lease=30, user_rhs=2, max_memory='1M', keep_memory='100K')
        hang_up(d, r'keep-memory: 102400 instead of 0')
        for line in ('lease: 30 instead of 60', 'user-rhs: 2 instead of 0', 'max-memory: 1048576 instead of 67108864'):
            assert d.log('info quarkd settings: ' + line), line
        assert d.status().memory_limit == 1 << 20
        rejected = old.submit(3, source=qk.SOURCE_POINT, expect='rejected')  # of a session that was there before
        assert rejected.status == STATUS['TOO_LARGE'] and 'user-rhs' in rejected.text, rejected
        column = [qk.Column(seed=1)]
        for n in range(4):  # of 48 KiB each
            old.submit(1, source=qk.SOURCE_Z2, column=column, sink=qk.SINK_KEEP, expect=None)
        names = [old.receive()[0] for _ in range(4 + 2)]
        assert names.count('accepted') == names.count('result') == 2 and names.count('rejected') == 2, names
        with Client(d) as new:
            assert new.welcome.lease_ms == 30000
            check_solves(new)


@tap.test
def sighup_changes_what_is_logged(case):
    with configured(case) as (d, s), Client(d) as c:
        check_solves(c)
        assert not any(' debug ' in line for line in d.lines)
        s.write(log_level='debug')
        hang_up(d, 'log-level: debug instead of info')
        check_solves(c)
        assert d.log(' debug quarkd dispatch: job .*: rhs 1: OK')
        s.write(log_level='warn', slots=3)
        hang_up(d, 'slots: "3" instead of "0" needs a restart')
        d.log('log-level: warn instead of debug')
        logged = len(d.lines)
        check_solves(c)
        assert len(d.lines) == logged, d.lines[logged:]


@tap.test
def what_needs_a_restart_is_told_once_each_and_stays(case):
    with configured(case, slots=8, csw=0) as (d, s), Client(d) as c:
        s.write(slots=4, csw=1.5, drain_timeout=7)
        hang_up(d, 'drain-timeout: 7 instead of 600')
        warned = [line for line in d.lines if 'needs a restart' in line]
        assert len(warned) == 2 and all(' warn ' in line for line in warned), warned
        assert any('slots: "4" instead of "8"' in line for line in warned) and any('csw: "1.5" instead of "0"' in line for line in warned)
        status = d.status()
        assert status.engine.slots == 8 and status.setup.csw == 0
        check_solves(c)


@tap.test
def a_file_with_an_error_changes_nothing(case):
    with configured(case, lease=60) as (d, s), Client(d) as c:
        for i, (bad, cause) in enumerate((({'lease': 30, 'fetch-time': -1}, r'\.conf:2: fetch-time = -1: must be'),
                                          ({'lease': 30, 'nonsense': 1}, r'\.conf:2: unknown key "nonsense"'),
                                          ({'lease': 30, 'kappa': 0.1}, 'kappa and mass are both given')), 1):
            s.write(**bad)
            assert hang_up(d, 'error quarkd settings: no setting is changed: .*' + cause)
            with Client(d) as other:
                assert other.welcome.lease_ms == 60000
        os.unlink(s.file.name)
        assert hang_up(d, 'no setting is changed: .*No such file')
        with open(s.file.name, 'w', encoding='utf-8') as f:
            f.write('lease = 20\n')
        hang_up(d, 'lease: 20 instead of 60')
        check_solves(c)


@tap.test
def the_command_line_still_wins(case):
    with configured(case, '--lease', '40', lease=60) as (d, s):
        s.write(lease=30)
        hang_up(d, 'nothing has changed')
        with Client(d) as c:
            assert c.welcome.lease_ms == 40000


@tap.test
def a_session_keeps_the_lease_it_was_promised(case):
    with configured(case, lease=60) as (d, s), Client(d) as silent:
        s.write(lease=0.1)
        hang_up(d, 'lease: 0.1 instead of 60')
        short = Client(d)
        assert d.log('lease expired')
        silent.ping()
        check_solves(silent)
        short.close()


@tap.test
def sigusr1_drains_and_a_second_one_does_nothing_more(case):
    with case.daemon() as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        d.status_when(lambda s: s.counters.running == 1)
        d.process.send_signal(signal.SIGUSR1)
        d.log('draining')
        assert c.submit(1, source=qk.SOURCE_POINT, expect='rejected').status == STATUS['SHUTTING_DOWN']
        d.process.send_signal(signal.SIGUSR1)
        d.log('User defined signal 1', 2)
        c.ping()  # it is still there
        c.send(cancel=qk.Cancel(request=1))
        c.results(1)
        c.ack(1)
        assert d.wait() == 0


@tap.test
def sigterm_after_sigusr1_stops_at_once(case):
    with case.daemon() as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        d.status_when(lambda s: s.counters.running == 1)
        d.process.send_signal(signal.SIGUSR1)
        d.log('draining')
        d.process.terminate()
        assert d.wait() == 75


def echo(case, first, then):
    """Sends both signals to a daemon that has work, and another interrupt, which is no echo: whether the second was one of the first."""
    with case.daemon() as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        d.status_when(lambda s: s.counters.running == 1)
        d.process.send_signal(first)
        d.log('draining')
        d.process.send_signal(then)
        one = d.log('both count as one')
        if one:
            c.ping()  # it is still there
            d.process.send_signal(signal.SIGINT)
        assert d.wait() == 75
        return bool(one)


@tap.test
def two_sigterms_of_one_scancel_are_one(case):
    """Slurm signals every process of the job, and the script that is one of them hands on what it got."""
    for first in (signal.SIGTERM, signal.SIGINT):
        # on a machine that stands still for seconds they are two
        assert any(echo(case, first, signal.SIGTERM) for _ in range(5)), first
    with case.daemon() as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        d.status_when(lambda s: s.counters.running == 1)
        while d.process.poll() is None:  # not for ever: those that go on coming stop it
            d.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                d.process.wait(0.2)
        assert d.wait() == 75


def flood(d, seconds):
    """Signals that change nothing in a daemon that leaves, as fast as can be."""
    end = time.monotonic() + seconds
    while d.process.poll() is None and time.monotonic() < end:
        d.process.send_signal(signal.SIGHUP)
        d.process.send_signal(signal.SIGUSR1)


@tap.test
def signals_while_it_leaves_change_nothing(case):
    for _ in range(5):
        with case.daemon() as d:
            d.process.terminate()
            d.log('all work is finished')
            flood(d, 30)
            assert d.wait() == 0


@tap.test
def none_is_lost_in_a_flood_of_others(case):
    for _ in range(5):
        with case.daemon() as d:
            d.process.terminate()
            flood(d, 1)
            assert d.wait() == 0


@tap.test
def engines_begin_with_no_signal_blocked(case):
    with case.daemon() as d:
        with open('/proc/%d/status' % d.status_when(lambda s: s.engine.pid).engine.pid, encoding='ascii') as f:
            assert re.search(r'^SigBlk:\t0+$', f.read(), re.M)


# ---- walltime ---------------------------------------------------------------------------------------

@tap.test
def it_drains_by_itself_before_the_walltime_ends(case):
    with case.daemon('--walltime', '6', '--drain-timeout', '3') as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        assert 0 < d.status().walltime_left <= 6
        assert d.log('of the walltime are left') and d.log('draining')
        assert c.submit(1, source=qk.SOURCE_POINT, expect='rejected').status == STATUS['SHUTTING_DOWN']
        assert d.wait() == 75  # what was accepted is not finished


@tap.test
def an_idle_daemon_leaves_with_success(case):
    with case.daemon('--walltime', '6', '--drain-timeout', '3') as d:
        assert d.log('all work is finished') and d.wait() == 0


@tap.test
def an_end_that_moves_is_read_anew(case):
    """Before it drains because of it, and on SIGHUP; what is no time changes nothing."""
    def write(text):
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'end')
        write('%d\n' % (time.time() + 10))  # a slow machine needs some of them to start
        with case.daemon('--walltime-file', path, '--drain-timeout', '2') as d:
            assert 0 < d.status().walltime_left <= 10
            write('%d\n' % (time.time() + 1000))
            assert d.log(r'the walltime ends in 9\d\d s instead of [12] s')
            assert 900 < d.status().walltime_left <= 1000
            write('%.3f' % (time.time() + 5000))
            hang_up(d, 'read again: nothing has changed')
            assert 4900 < d.status().walltime_left <= 5000
            write('tomorrow')
            hang_up(d, 'walltime-file = .*: "tomorrow": must be seconds since 1970')
            assert 4900 < d.status().walltime_left <= 5000
            write('%d' % (time.time() + 1))
            d.process.send_signal(signal.SIGHUP)
            assert d.log('of the walltime are left') and d.log('all work is finished') and d.wait() == 0
        end = case.run('--gauge', 'fake', '--mass', '0.1', '--walltime-file', os.path.join(folder, 'nothing'))
        assert end.returncode == 69 and 'nothing: No such file' in end.stderr, end


def needed(rejected):
    """The seconds that a rejection tells of."""
    assert rejected.status == STATUS['SHUTTING_DOWN'], rejected
    m = re.fullmatch(r'about (\d+) s are needed with the waiting work, and (\d+) s of the walltime are left: .*', rejected.text)
    assert m and 0 < int(m[2]) <= 30, rejected
    return int(m[1])


@tap.test
def before_anything_is_measured_all_is_taken(case):
    with case.daemon('--walltime', '30', '--drain-timeout', '1') as d, Client(d) as c:
        c.submit(MOST, source=qk.SOURCE_POINT, sink=qk.SINK_NONE)
        assert all(r.status == 0 for r in c.results(MOST))


@tap.test
def what_cannot_be_done_in_time_is_refused_before_its_upload(case):
    many = dict(source=qk.SOURCE_POINT, sink=qk.SINK_NONE)
    with case.daemon('--walltime', '30', '--drain-timeout', '1', '--slots', '4') as d, Client(d) as c:
        c.submit(1, max_iter=fake.HOLD, **many)
        begin = d.status().uptime
        d.status_when(lambda s: s.uptime > begin + 0.5)  # half a second for the pretender's six applications
        c.send(cancel=qk.Cancel(request=1))
        c.results(1)
        check_solves(c, 1)  # six applications for eight digits
        alone = needed(c.submit(MOST, expect='rejected', **many))
        assert alone > 30
        assert needed(c.submit(MOST, expect='rejected', tol=1e-4, request=50, **many)) < 0.6 * alone
        waiting = c.submit(MOST // 8, max_iter=fake.HOLD, **many).request
        assert needed(c.submit(MOST, expect='rejected', **many)) > 1.1 * alone
        c.send(cancel=qk.Cancel(request=waiting))
        c.results(MOST // 8)
        check_solves(c)  # what fits is taken


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
