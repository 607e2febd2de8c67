#!/usr/bin/env python3
"""quarkctl top, with the engine that only pretends: test_front_top.py QUARKD QUARKCTL"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import tap

try:
    from front_case import Case, check_solves, fake
    from front_driver import TIMEOUT, Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

ENTER, LEAVE = '\x1b[?1049h', '\x1b[?1049l'
CONTROLS = re.compile(r'\x1b\[[?0-9;]*[a-zA-Z]')
CTL = sys.argv[2]


class Screen:
    """quarkctl top in a terminal of its own."""

    def __init__(self, endpoint, *options, rows=40, columns=130):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(CTL, [CTL, 'top', '--endpoint', endpoint, '--interval', '0.1', *options])
        self.before = termios.tcgetattr(self.fd)
        self.resize(rows, columns)
        self.text, self.ended = '', None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.ended is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def read(self):
        """What has come, at least something; False at the end."""
        assert select.select([self.fd], [], [], TIMEOUT)[0], 'nothing on the screen:\n' + self.text[-3000:]
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b''
        self.text += data.decode(errors='replace')
        return bool(data)

    def wait_for(self, condition):
        """The first whole frame from now on that fulfils the condition, as lines."""
        begin, deadline = len(self.text), time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            for frame in re.findall(r'\x1b\[H((?:(?!\x1b\[H).)*?)\x1b\[J', self.text[begin:], re.DOTALL):
                lines = CONTROLS.sub('', frame).split('\r\n')
                if condition('\n'.join(lines)):
                    return lines
            assert self.read(), 'it has ended:\n' + self.text[-3000:]
        raise TimeoutError(self.text[-3000:])

    def stopped(self, options=0):
        """Waits for the process to end or stop; the status of waitpid. Checks that the terminal is as it was."""
        while ENTER in self.text and self.text.count(LEAVE) < self.text.count(ENTER):
            if not self.read():
                break
        _, status = os.waitpid(self.pid, options)
        if not options:
            self.ended = status
        assert self.text.count(ENTER) == self.text.count(LEAVE) >= 1, self.text[-300:]
        assert '\x1b[?25h' in self.text[self.text.rindex('\x1b[?25l'):], 'the cursor is back'
        assert termios.tcgetattr(self.fd) == self.before
        return status


def top(d, *options):
    done = subprocess.run([CTL, 'top', '--endpoint', d.endpoint, *options], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done
    return done.stdout


@tap.test
def one_look_shows_slots_and_users(case):
    with case.daemon() as d, Client(d, user='ann') as a, Client(d, user='\x1b[2Jbob\u2603' + 'x' * 30) as b:
        a.submit(2, source=qk.SOURCE_POINT, max_iter=fake.PROGRESS, tol=1e-3)
        b.submit(20, source=qk.SOURCE_POINT, max_iter=fake.HOLD, tol=1e-6)
        d.status_when(lambda s: sum(x.iterations == 49 for x in s.activity.slot) == 2 and s.counters.running == 16, activity=True)
        for options in ((), ('--once',)):
            text = top(d, *options)
            assert '\x1b' not in text and 'ready' in text and '16 of 16' in text and 'queued 6' in text, text
            row = re.search(r'^ +0 [0-9a-f]{8}/1 +ann +0 +49 +2.00e-02 +1.00e-03 +\d+\.\d   \[(#+)(\.+)\]$', text, re.MULTILINE)
            assert row and len(row[1]) == round(24 * 1.699 / 3), text  # 50 of 1000 in logarithms
            assert re.search(r'^\?\[2Jbob\u2603x+ +6 +14 ', text, re.MULTILINE), text
        o = json.loads(top(d, '--once', '--json'))
        assert o['state'] == 'ready' and len(o['slots']) == 16 and o['slots'][0]['residual'] == 0.02, o
        assert {u['name']: u['running'] for u in o['users']}['ann'] == 2 and o['users_left_out'] == 0, o
        assert o['rates']['since_start'] and o['answers'] and o['counters']['queued'] == 6, o


@tap.test
def a_part_of_the_operator_that_is_applied_has_no_residual(case):
    with case.daemon() as d, Client(d, user='ann') as a:
        a.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD, work=qk.WORK_M)
        d.status_when(lambda s: len(s.activity.slot) == 1, activity=True)
        assert re.search(r'^ +0 [0-9a-f]{8}/1 +ann +0 +- +- +- +\d+\.\d   operator applied$', top(d), re.MULTILINE), top(d)
        slot, = json.loads(top(d, '--once', '--json'))['slots']
        assert (slot['residual'], slot['tol']) == (None, None), slot


@tap.test
def setups_have_a_line_each_where_there_are_several(case):
    with case.daemon('--slots', '4') as d, Client(d, user='ann') as c:
        assert 'SETUP' not in top(d)
        for name, gauge in (('heavy', 'builtin:fake'), ('bad', 'builtin:fake:refuse=104')):
            c.send(load=qk.Load(name=name, gauge=gauge, kappa=0.12))
            c.expect('setup')
        d.status_when(lambda s: {t.name: t.state for t in s.setups} ==
                      {'main': qk.STATE_READY, 'heavy': qk.STATE_READY, 'bad': qk.STATE_FAILED})
        c.submit(7, source=qk.SOURCE_POINT, max_iter=fake.HOLD, setup='heavy')
        d.status_when(lambda s: [t.queued for t in s.setups if t.name == 'heavy'] == [3])
        text = top(d)
        assert re.search(r'^ SETUP +STATE +SOLVER +SLOTS +QUEUED +OPEN +RESTARTS$', text, re.MULTILINE), text
        assert re.search(r'^\*main +ready +\w+ +0 of 4 +0 +0 +0   wilson mass=', text, re.MULTILINE), text
        assert re.search(r'^ heavy +ready +\w+ +4 of 4 +3 +7 +0   wilson kappa=0.12   builtin:fake$', text, re.MULTILINE), text
        assert re.search(r'^ bad +failed .* BAD_CHECKSUM: as builtin:fake:refuse=104 wants$', text, re.MULTILINE), text
        rows = {s['name']: s for s in json.loads(top(d, '--once', '--json'))['setups']}
        assert rows['heavy']['queued'] == 3 and rows['main']['default'] and rows['bad']['error'] == 'BAD_CHECKSUM', rows


@tap.test
def fields_that_quarkctl_does_not_know_are_shown_and_not_solved_for(case):
    """Here as quarkctl status and the solving commands, because only an engine that pretends has such fields."""
    def ctl(*args):
        done = subprocess.run([CTL, *args, '--endpoint', d.endpoint, '--setup=strange'], capture_output=True, text=True, timeout=TIMEOUT)
        return done.returncode, done.stdout, done.stderr
    with case.daemon() as d, Client(d) as c, tempfile.TemporaryDirectory() as folder:
        c.send(load=qk.Load(name='strange', gauge='builtin:fake:site_reals=8:columns=4'))
        c.expect('setup')
        d.status_when(lambda s: {t.name: t.state for t in s.setups} == {'main': qk.STATE_READY, 'strange': qk.STATE_READY})
        report = json.loads(ctl('status', '--json')[1])
        assert (report['setup']['site_reals'], report['setup']['columns']) == (8, 4), report['setup']
        assert [(s['site_reals'], s['columns']) for s in report['setups']] == [(24, 12), (8, 4)], report['setups']
        out = os.path.join(folder, 'x.h5')
        for command in (('propagator', '--source=point:0,0,0,0', '--out', out), ('propagator', '--source=wall:0', '--detach', '--out', out),
                        ('correlator', '--source=point:0,0,0,0', '--out', out), ('bench', '--requests=1')):
            code, printed, said = ctl(*command)
            assert code == 65 and printed == '' and 'setup strange' in said and '8 real numbers at a site' in said, (command, code, said)
        assert os.listdir(folder) == []


@tap.test
def json_is_an_object_for_each_look_with_rates_between(case):
    with case.daemon() as d, Client(d) as c:
        check_solves(c, 2)
        p = subprocess.Popen([CTL, 'top', '--json', '--interval=0.1', '--endpoint', d.endpoint], stdout=subprocess.PIPE, text=True)
        try:
            first = json.loads(p.stdout.readline())
            assert first['rates']['since_start'] and first['counters']['converged'] == 2, first
            check_solves(c, 5)
            solved = received = 0
            while solved < 4.5:
                rates = json.loads(p.stdout.readline())['rates']
                assert not rates['since_start'] and 0.01 < rates['seconds'] < TIMEOUT, rates
                solved += rates['solves'] * rates['seconds']
                received += rates['bytes_in'] * rates['seconds']
            assert abs(solved - 5) < 1e-6 and abs(received - 5 * 256 * 24 * 8) < 1, (solved, received)
        finally:
            p.terminate()
            p.wait()
            p.stdout.close()


@tap.test
def the_screen_follows_the_daemon_and_the_size_of_the_terminal(case):
    with case.daemon() as d, Client(d, user='ann') as c, Screen(d.endpoint) as s:
        s.wait_for(lambda t: '0 of 16' in t)
        c.submit(16, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        s.wait_for(lambda t: '16 of 16' in t and len(re.findall(r'/1 +ann', t)) == 16 and 'USER' in t)
        s.resize(20, 60)
        lines = s.wait_for(lambda t: 'more' in t)
        assert len(lines) <= 20 and max(map(len, lines)) <= 60 and any('USER' in line for line in lines), lines
        s.resize(5, 9)
        lines = s.wait_for(lambda t: t.count('\n') < 5)
        assert max(map(len, lines)) <= 9, lines
        s.resize(60, 200)
        s.wait_for(lambda t: len(re.findall(r'/1 +ann', t)) == 16)
        c.send(cancel=qk.Cancel(request=1))
        s.wait_for(lambda t: '0 of 16' in t)
        os.write(s.fd, b'xq')
        assert s.stopped() == 0


@tap.test
def the_terminal_is_given_back_whatever_ends_it(case):
    with case.daemon() as d:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT, signal.SIGSEGV, signal.SIGPIPE):
            with Screen(d.endpoint) as s:
                s.wait_for(lambda t: 'ready' in t)
                os.kill(s.pid, number)
                assert os.WTERMSIG(s.stopped()) == number
        with Screen(d.endpoint) as s:
            s.wait_for(lambda t: 'ready' in t)
            os.write(s.fd, b'\x03')
            assert os.WTERMSIG(s.stopped()) == signal.SIGINT


@tap.test
def it_can_be_stopped_and_goes_on(case):
    with case.daemon() as d, Screen(d.endpoint) as s:
        s.wait_for(lambda t: 'ready' in t)
        os.write(s.fd, b'\x1a')  # ^Z
        assert os.WIFSTOPPED(s.stopped(os.WUNTRACED))
        os.kill(s.pid, signal.SIGCONT)
        s.wait_for(lambda t: 'ready' in t)
        assert s.text.count(ENTER) == 2
        os.write(s.fd, b'q')
        assert s.stopped() == 0


@tap.test
def a_daemon_that_is_gone_is_waited_for(case):
    with tempfile.TemporaryDirectory() as folder:
        listen = ('--listen', 'ipc://%s/q' % folder)
        with case.daemon(*listen) as d, Client(d) as c, Screen('ipc://%s/q' % folder) as s:
            check_solves(c, 3)
            s.wait_for(lambda t: 'solved 3' in t)
            d.process.kill()
            s.wait_for(lambda t: 'no answer' in t and 'trying again' in t)
            with case.daemon(*listen) as again:
                text = '\n'.join(s.wait_for(lambda t: 'was restarted' in t))
                assert 'process %d, before %d' % (again.process.pid, d.process.pid) in text, text
                assert 'solved 0' in text and 'no answer' not in text, text
                os.write(s.fd, b'q')
                assert s.stopped() == 0


@tap.test
def what_cannot_be_is_said(case):
    def run(*options):
        return subprocess.run([CTL, 'top', *options], capture_output=True, text=True, timeout=60, check=False)
    assert run('--interval=0').returncode == 64 and '--interval=0' in run('--interval=0').stderr
    with tempfile.TemporaryDirectory() as folder:
        for options in ((), ('--once',), ('--json',)):
            done = run('--endpoint', 'ipc://%s/nobody' % folder, '--timeout=0.2', *options)
            assert done.returncode == 69 and done.stdout == '' and 'nobody' in done.stderr, done


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
