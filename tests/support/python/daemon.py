"""quarkd and quarkctl for tests: Daemon starts and ends one daemon, ctl runs one command on it."""
import json
import os
import re
import signal
import subprocess
import tempfile
import threading

LIMIT = 120  # seconds that any single step may take


class Outcome:
    """What a command left: code, out, err; json where --json was given and something was printed."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.json = json.loads(done.stdout) if '--json' in done.args and done.stdout else None

    def __repr__(self):
        return 'exit %d\n%s\n%s' % (self.code, self.out, self.err)


def run_ctl(quarkctl, *args, endpoint=None, **kwargs):
    env = dict(os.environ, **({'QUARKD_ENDPOINT': endpoint} if endpoint else {}))
    return Outcome(subprocess.run([quarkctl, *map(str, args)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, timeout=LIMIT, **kwargs))


class Daemon:
    """with Daemon(quarkd, quarkctl, '--gauge', ...) as d: d.ctl('status')

    Its solver is BiCGStab unless an argument says otherwise.
    The daemon listens on a free port; its log is in d.log. Leaving the block ends it by SIGTERM and
    asserts that it leaves with d.expected.
    """
    expected = 0

    def __init__(self, quarkd, quarkctl, *args, listen='tcp://127.0.0.1:0'):
        self.command = [quarkd, '--backend=cpu', '--solver=bicgstab', '--listen=' + listen, *map(str, args)]
        self.quarkctl, self.log, self.endpoint = quarkctl, [], None
        self.listening = threading.Event()

    def __enter__(self):
        env = dict(os.environ, OMP_NUM_THREADS=os.environ.get('OMP_NUM_THREADS', '2'),
                   OMP_WAIT_POLICY='passive')
        self.folder = tempfile.TemporaryDirectory()
        env['XDG_STATE_HOME'] = self.folder.name
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True, env=env)
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()
        return self

    def read_log(self):
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(r'listening on ([^\s,]+)', line)
            if found:
                self.endpoint = found[1]
                self.listening.set()
        self.listening.set()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def wait_listening(self):
        assert self.listening.wait(LIMIT) and self.endpoint, 'quarkd does not listen:\n' + ''.join(self.log)

    def ctl(self, *args, **kwargs):
        self.wait_listening()
        return run_ctl(self.quarkctl, *args, endpoint=self.endpoint, **kwargs)

    def start_ctl(self, *args, env=None):
        """The command as a process that runs beside the test. env: what its environment has besides."""
        self.wait_listening()
        env = dict(os.environ, QUARKD_ENDPOINT=self.endpoint, **(env or {}))
        return subprocess.Popen([self.quarkctl, *map(str, args)], env=env, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def __exit__(self, kind, value, trace):
        ended = self.process.poll() is not None
        if not ended:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.reader.join()
        self.process.stderr.close()
        self.folder.cleanup()
        if kind:
            print(''.join('# quarkd: ' + line for line in self.log[-20:]), end='')
        else:
            assert code == self.expected, 'quarkd left with %d:\n%s' % (code, ''.join(self.log))
