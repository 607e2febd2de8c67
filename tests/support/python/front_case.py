"""What the tests of quarkd with the engine that only pretends have in common."""
import contextlib
import glob
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import tempfile

import engine_driver

os.environ['QK_PROTO_PY'] = engine_driver.GENERATED.name

import numpy as np
from front_driver import TIMEOUT, Daemon, checksum, program
import fake_engine as fake  # noqa: F401

FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'fake_engine.py')
rng = np.random.default_rng(7)


class Case:
    def __init__(self, binary):
        self.binary = binary

    def daemon(self, *options, **more):
        return Daemon(self.binary, *options, **{'engine': FAKE, **more})

    def lasting_engine(self, folder):
        """The same program for all fronts."""
        return program(FAKE, folder)

    def run(self, *options):
        return subprocess.run([self.binary, *options], capture_output=True, text=True, timeout=60)


def field(sites=256):
    """One right-hand side in double precision."""
    return rng.standard_normal(sites * 24).view(complex)


def check_solves(client, n=2):
    fields = [field() for _ in range(n)]
    for (result, x), b in zip(client.solve(fields), fields):
        assert result.status == 0 and np.array_equal(x, 2 * b), result


def descriptors(daemon):
    """How many it has."""
    return len(os.listdir('/proc/%d/fd' % daemon.process.pid))


# ---- fronts that follow each other

LATER = {'FAKE_BEFORE': '1'}  # the engines of a second front are not the first


def memory_of(state):
    """The objects in shared memory of fronts with that state folder."""
    return glob.glob('/dev/shm/quarkd-s%016x-*' % checksum(os.path.realpath(state).encode()))


class State:
    """A state folder."""

    def __init__(self, case):
        self.case, self.dir = case, tempfile.mkdtemp(prefix='qk-state-')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end_the_machine()
        shutil.rmtree(self.dir)

    def daemon(self, *options, **more):
        return self.case.daemon('--state', self.dir, *options, **more)

    @contextlib.contextmanager
    def fronts(self, **env):
        """Makes fronts whose private folder outlives them (below .run), as their engines do (.engines()); none may be left in the end."""
        with tempfile.TemporaryDirectory(prefix='qk-run-') as run, tempfile.TemporaryDirectory() as folder:
            env = {'XDG_RUNTIME_DIR': run, 'FAKE_ADOPT': 'yes', **env}
            engine = self.case.lasting_engine(folder)

            def front(*options, **more):
                return self.daemon(*options, **{'engine': engine, **more, 'env': {**env, **more.get('env', {})}})
            front.run, front.engines = run, lambda: engines_in(run)
            try:
                yield front
                left = front.engines(), os.listdir(run)
            finally:
                for pid in front.engines():
                    os.kill(pid, signal.SIGKILL)
            assert left == ([], []), left

    def end_the_machine(self):
        """What is in memory is gone. Fronts of other folders have names of their own."""
        for path in self.memory() + glob.glob('/dev/shm/quarkd-dir-%016x' % checksum(os.path.realpath(self.dir).encode())):
            os.unlink(path)

    def lose(self, request, rhs):
        """The solutions of these right-hand sides; requests of one client, none of which was forgotten."""
        with contextlib.closing(self.journal()) as db:
            names = dict(db.execute('SELECT number, solution FROM rhs WHERE job = ?', (request,)))
        for i in rhs:
            os.unlink('/dev/shm' + names[i])

    def memory(self):
        return memory_of(self.dir)

    def spool(self):
        return sorted(os.listdir(os.path.join(self.dir, 'spool')))

    def journal(self):
        return sqlite3.connect(os.path.join(self.dir, 'journal.db'))

    def rows(self, table):
        with contextlib.closing(self.journal()) as db:
            return db.execute('SELECT count(*) FROM ' + table).fetchone()[0]

    def is_empty(self):
        left = self.rows('job'), self.rows('rhs'), self.spool(), self.memory()
        assert left == (0, 0, [], []), left


@contextlib.contextmanager
def held(state, *options, **more):
    """A daemon whose engine solves WHEN_TOLD when go() is called."""
    with tempfile.TemporaryDirectory(prefix='qk-go-') as folder:
        fifo = os.path.join(folder, 'go')
        os.mkfifo(fifo)

        def go():
            with open(fifo, 'w', encoding='utf-8'):
                pass
        with state.daemon(*options, **{**more, 'env': {'FAKE_GO': fifo, **more.get('env', {})}}) as d:
            yield d, go


def engines_in(run):
    """Engines, and what starts ranks, whose sockets are below the folder run."""
    found = []
    for path in glob.glob('/proc/[0-9]*/cmdline'):
        with contextlib.suppress(OSError), open(path, 'rb') as f:
            words = f.read().decode(errors='replace').split('\0')
            if any(w.startswith('ipc://%s/' % run) for w in words) and '--front' in words:
                found.append(int(path.split('/')[2]))
    return sorted(found)


def gone(pid):
    """Waits until the process has ended."""
    with contextlib.suppress(ProcessLookupError):
        fd = os.pidfd_open(pid)
        ended = select.select([fd], [], [], TIMEOUT)[0]
        os.close(fd)
        assert ended, 'process %d lives on' % pid


def kill(daemon):
    """As the kernel does it. The answer to a status says that the journal has what clients were told."""
    daemon.status()
    daemon.process.kill()
    daemon.process.wait()


def once_more(client, nrhs, request, **more):
    """The request is there, and tells its results (again) after ACCEPTED."""
    client.submit(nrhs, request=request, expect=None, **more)
    accepted = client.expect('accepted', skip=('progress', 'credit', 'result'))
    assert accepted.repeated_submit
    return accepted
