"""A state folder whose quarkd is killed again and again, and its clients: what they were told has to be true afterwards."""
import contextlib
import os
import shutil
import signal
import sqlite3
import tempfile

import numpy as np
import zmq
from front_case import engines_in, fake
from front_driver import STATUS, TIMEOUT, UPLOAD, Client, checksum, frame, qk

HOUR = 3600 * 1000
FIELD = 4**4 * 24 * 8
ENDED = 3  # in the journal
PEOPLE = 3
OPEN = 6  # requests of a person, before it only ends some


class Dead(Exception):
    """quarkd has been killed."""


class MortalClient(Client):
    """Waits no longer than quarkd lives."""

    def wait(self, socket):
        poller = zmq.Poller()
        poller.register(socket, zmq.POLLIN)
        poller.register(self.daemon.end, zmq.POLLIN)
        ready = dict(poller.poll(int(1e3 * TIMEOUT)))
        if socket not in ready:
            if self.daemon.end in ready:
                raise Dead
            super().wait(socket)


class Request:
    """What a client wants, what it was told of it, and how to tell its own results from another's."""

    def __init__(self, number, nrhs, **body):
        self.number, self.nrhs, self.body = number, nrhs, dict(body)
        self.fields = self.path = None
        self.is_accepted = self.is_cancelled = False
        self.arrived = self.sent = 0        # of its upload, as far as it was told, and as it has gone out
        self.ended, self.acked = {}, set()  # RESULT by right-hand side; those that it needs no more

    def is_kept(self):
        """It stays when all is acknowledged, where there is something to keep."""
        return self.body.get('sink') == qk.SINK_KEEP and (len(self.ended) < self.nrhs or any(e.status == 0 for e in self.ended.values()))

    def is_held(self):
        return self.body.get('max_iter') == fake.HOLD

    def is_detached(self):
        return self.body.get('detach_ms', 0) > 0

    def seed(self, rhs):
        return self.number * 100 + rhs

    def send(self, client):
        columns = {} if self.fields is not None else {'column': [qk.Column(seed=self.seed(i)) for i in range(self.nrhs)]}
        client.submit(self.nrhs, request=self.number, expect=None, **self.body, **columns)

    def check(self, rhs, x):
        if self.fields is not None:
            assert np.array_equal(x, 2 * self.fields[rhs]), 'request %d, rhs %d: a solution of another source' % (self.number, rhs)
        else:
            assert x[0] == self.seed(rhs) and not np.any(x[9:]), 'request %d, rhs %d: a solution of another source: %s' % (self.number, rhs, x[:4])

    def check_result(self, result):
        """What the status may be, after all that the client did; and a file is complete when its end is told."""
        allowed = {STATUS['CANCELLED']} if self.is_held() else {0}
        if self.is_cancelled:
            allowed.add(STATUS['CANCELLED'])
        if result.rhs in self.acked:
            allowed.add(STATUS['EXPIRED'])  # it may have gone before that was recorded
        assert result.status in allowed, result
        before = self.ended.get(result.rhs)
        assert before is None or result.status == before.status or result.rhs in self.acked, (before, result)
        if self.path and result.status == 0:
            data = np.fromfile(self.path, np.complex128).reshape(self.nrhs, -1)
            self.check(result.rhs, data[result.rhs])


class Contraction(Request):
    """Of a kept request with itself."""

    def __init__(self, number, kept):
        super().__init__(number, 1)
        self.kept = kept

    def send(self, client):
        client.contract(self.kept.number, request=self.number, expect=None)

    def check(self, rhs, x):
        assert np.array_equal(x, np.arange(4) + 1000 * sum(self.kept.seed(i) for i in range(12))), x


class Person:
    """A client id, and what whoever has it does. Numbers of requests tell the clients apart."""

    def __init__(self, number, rng, files):
        self.number, self.rng, self.files = number, rng, files
        self.client_id, self.user = rng.bytes(16), 'user%d' % (number % 2)
        self.count = 0
        self.requests, self.gone = {}, set()  # gone: it has let go of them; they may be there, or not
        self.pried = set()  # others' requests that it has asked for
        self.did = []       # for who reads of a failure
        self.c = None

    # ---- what it hears

    def hear(self):
        name, body = self.c.receive()
        if name in ('pong', 'welcome'):
            return name, body
        if name == 'error' and body.request in self.pried:
            assert body.status == STATUS['NOT_FOUND'] and not body.fatal, body
            return name, body
        body = body.accepted if name == 'attached' else body
        number = body.request
        assert number >> 32 == self.number, 'client %d hears of a request of client %d: %s' % (self.number, number >> 32, body)
        if number in self.gone:
            return name, body
        assert name in ('accepted', 'attached', 'credit', 'progress', 'result', 'rejected'), (name, body)
        r = self.requests[number]
        if name in ('accepted', 'attached'):
            assert body.upload_next >= r.arrived, '%d bytes were told to be there, and %d are' % (r.arrived, body.upload_next)
            r.is_accepted, r.arrived, r.sent = True, body.upload_next, body.upload_next
        elif name == 'credit':
            r.arrived = max(r.arrived, body.next)
        elif name == 'result':
            r.check_result(body)
            if body.rhs not in r.acked:
                r.ended[body.rhs] = body
        return name, body

    def hear_of(self, number, *names):
        while True:
            name, body = self.hear()
            if name in names and body.request == number:
                return name, body

    def hear_all(self):
        """What has come before the answer."""
        self.c.send(ping=qk.Ping())
        while self.hear()[0] != 'pong':
            pass

    # ---- what it does

    def come(self, daemon):
        """All that it was told is there."""
        self.did.append('come')
        self.c = MortalClient(daemon, self.client_id, self.user)
        mine = sorted(self.requests.items())
        assert self.c.welcome.resumed or not any(r.is_accepted for _, r in mine), 'the session is gone'
        for number, r in mine:
            if not r.is_accepted:
                self.ask(r)
                continue
            told = {rhs for rhs in r.ended if rhs not in r.acked}
            self.c.send(attach=qk.Attach(request=number))
            name, body = self.hear_of(number, 'attached', 'error')
            assert name == 'attached', (name, body)
            r.ended = {rhs: e for rhs, e in r.ended.items() if rhs in r.acked}
            while not told <= set(r.ended):
                self.hear()
        for number in self.gone:
            self.c.send(release=qk.Release(request=number))

    def begin(self, r):
        self.requests[r.number] = r
        self.ask(r)

    def ask(self, r):
        r.send(self.c)
        name, body = self.hear_of(r.number, 'accepted', 'rejected')
        if name == 'rejected':
            assert body.status == STATUS['BUSY'], body
            self.let_go(r)

    def let_go(self, r):
        self.gone.add(r.number)
        del self.requests[r.number]

    def next_number(self):
        self.count += 1
        return (self.number << 32) + self.count

    def some_detachment(self):
        return {'detach_ms': HOUR} if self.rng.random() < 0.5 else {}

    def submit_upload(self):
        n = int(self.rng.integers(1, 4))
        r = Request(self.next_number(), n, source=qk.SOURCE_UPLOAD, **self.some_detachment())
        r.fields = self.rng.standard_normal((n, FIELD // 8)).view(complex)
        self.begin(r)
        if r.number in self.requests:
            self.upload(r, whole=self.rng.random() < 0.7)

    def submit_generated(self):
        self.begin(Request(self.next_number(), int(self.rng.integers(1, 4)), source=qk.SOURCE_Z2, **self.some_detachment()))

    def submit_held(self):
        """Its right-hand sides are in slots until they are cancelled."""
        self.begin(Request(self.next_number(), 1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, **self.some_detachment()))

    def submit_kept(self):
        self.begin(Request(self.next_number(), 12, source=qk.SOURCE_Z2, sink=qk.SINK_KEEP, **self.some_detachment()))

    def submit_to_file(self):
        number = self.next_number()
        path = os.path.join(self.files, str(number))
        r = Request(number, int(self.rng.integers(1, 4)), source=qk.SOURCE_Z2, sink=qk.SINK_FILE, sink_file=qk.File(path=path), **self.some_detachment())
        r.path = path
        self.begin(r)

    def contract(self):
        for kept in list(self.requests.values()):
            if kept.is_kept() and len(kept.ended) == 12 and all(e.status == 0 for e in kept.ended.values()):
                self.begin(Contraction(self.next_number(), kept))
                break

    def upload(self, r, whole=True):
        """Goes on behind what was sent, in chunks of any size."""
        data, at = r.fields.tobytes(), r.sent
        size = int(self.rng.integers(2000, FIELD + 1))
        until = len(data) if whole else int(self.rng.integers(at, len(data) + 1))
        while at < until:
            rhs, offset = divmod(at, FIELD)
            piece = data[at:min(at + size, (rhs + 1) * FIELD, until)]
            at += len(piece)
            total = checksum(data[rhs * FIELD:at]) if at == (rhs + 1) * FIELD else 0
            self.c.data.send(frame(UPLOAD, r.number, rhs, piece, FIELD, offset, total))
        r.sent = at

    def go_on(self):
        """With what it has not uploaded."""
        for r in self.requests.values():
            if r.fields is not None and not r.is_cancelled:
                self.upload(r)

    def fetch(self):
        for r in list(self.requests.values()):
            for rhs, e in list(r.ended.items()):
                if e.bytes and rhs not in r.acked and self.rng.random() < 0.5:
                    r.check(rhs, self.c.fetch(e, **{'from': 0}))

    def acknowledge(self):
        for r in list(self.requests.values()):
            some = [rhs for rhs in r.ended if rhs not in r.acked and self.rng.random() < 0.6]
            if some:
                r.acked.update(some)
                self.c.ack(r.number, *some)
            if len(r.acked) == r.nrhs and not r.is_kept():
                self.let_go(r)

    def cancel(self):
        for r in list(self.requests.values()):
            if r.is_held() or self.rng.random() < 0.1:
                r.is_cancelled = True
                self.c.send(cancel=qk.Cancel(request=r.number))

    def release(self):
        held = [r for r in self.requests.values() if r.is_kept() or self.rng.random() < 0.1]
        if held:
            r = held[int(self.rng.integers(len(held)))]
            self.c.send(release=qk.Release(request=r.number))
            self.let_go(r)

    def leave(self):
        """What is not detached ends with the session, if quarkd still hears that."""
        self.c.send(goodbye=qk.Goodbye())
        for r in list(self.requests.values()):
            if not r.is_detached():
                self.let_go(r)
        self.break_off()

    def break_off(self):
        self.c.close()
        self.come(self.c.daemon)

    def pry(self, others):
        """Asks for what is another's, and would hear of it."""
        numbers = [number for other in others if other is not self for number in other.requests]
        self.pried.update(numbers)
        for number in numbers:
            self.c.send(attach=qk.Attach(request=number))
            self.c.send(grant=qk.Grant(request=number, rhs=0, until=FIELD))

    def act(self, others):
        acts = {self.submit_upload: 4, self.submit_generated: 3, self.submit_held: 1, self.submit_kept: 1, self.submit_to_file: 1}
        if len(self.requests) >= OPEN:
            acts = {}
        acts.update({self.contract: 1, self.go_on: 3, self.fetch: 3, self.acknowledge: 4, self.cancel: 1, self.release: 1, self.hear_all: 3,
                     self.leave: 0.3, self.break_off: 0.5, self.pry: 0.5})
        weight = np.array(list(acts.values()), float)
        act = list(acts)[int(self.rng.choice(len(acts), p=weight / weight.sum()))]
        self.did.append('%s %s' % (act.__name__, sorted(number & 0xffffffff for number in self.requests)))
        act(*([others] if act == self.pry else []))

    def cancel_again(self):
        """What is in a slot for ever, and what may have been killed before it heard of that."""
        for r in self.requests.values():
            if r.is_held() or r.is_cancelled:
                r.is_cancelled = True
                self.c.send(cancel=qk.Cancel(request=r.number))

    def finish(self):
        """All ends, is what it should be, and goes."""
        self.go_on()
        for r in sorted(self.requests.values(), key=lambda r: -r.number):
            while len(set(r.ended) | r.acked) < r.nrhs:
                self.hear()
            for rhs, e in r.ended.items():
                if e.bytes and rhs not in r.acked:
                    r.check(rhs, self.c.fetch(e, **{'from': 0}))
            self.c.ack(r.number)
            self.c.send(release=qk.Release(request=r.number))
        self.hear_all()
        self.c.send(goodbye=qk.Goodbye())


# ---- one front after the other


def what_is_recorded(state):
    """{(client id, request): {rhs: (state, status)}} of the journal as a killed quarkd has left it, which is not touched."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ('journal.db', 'journal.db-wal'):
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(os.path.join(state.dir, name), folder)
        with contextlib.closing(sqlite3.connect(os.path.join(folder, 'journal.db'))) as db:
            if not db.execute("SELECT count(*) FROM sqlite_master WHERE name='rhs'").fetchone()[0]:
                return {}
            found = {}
            for job, client, contraction, message in db.execute('SELECT id, client, contraction, message FROM job WHERE forgotten=0').fetchall():
                request = (qk.Contract if contraction else qk.Submit).FromString(message).request
                found[client, request] = {rhs: how for rhs, *how in db.execute('SELECT number, state, status FROM rhs WHERE job=?', (job,))}
            return found


def check_journal(state, people):
    """What was told is recorded."""
    recorded = what_is_recorded(state)
    for person in people:
        for r in person.requests.values():
            if not r.is_accepted:
                continue
            rows = recorded.get((person.client_id, r.number))
            assert rows is not None, 'request %d was accepted, and is not in the journal: %s' % (r.number, person.did)
            for rhs, e in r.ended.items():
                if rhs not in r.acked:
                    assert rows[rhs] == [ENDED, e.status], 'request %d: %s was told, and %s is in the journal' % (r.number, e, rows[rhs])


def check_end(d):
    """It was killed, and had nothing to complain of before."""
    d.process.wait(TIMEOUT)
    d.reader.join()
    bad = [line for line in d.lines if 'Sanitizer' in line or 'runtime error' in line]
    assert d.process.returncode == -signal.SIGKILL and not bad, (d.process.returncode, ''.join(d.lines[-60:]))


class Lives:
    """Of one state folder; daemons with one engine, which goes on with the next of them."""

    def __init__(self, case, seed):
        self.case, self.rng = case, np.random.default_rng(seed)
        self.kills = self.at_start = 0

    @contextlib.contextmanager
    def folders(self):
        """In memory, where nothing waits for a disk."""
        self.top = tempfile.mkdtemp(prefix='qk-lives-', dir='/dev/shm')
        self.files, self.run = os.path.join(self.top, 'files'), os.path.join(self.top, 'run')
        usual, tempfile.tempdir = tempfile.tempdir, self.top
        try:
            os.mkdir(self.files)
            os.mkdir(self.run, 0o700)
            self.engine = self.case.lasting_engine(self.top)
            with self.case.state() as (self.state, self.disk):
                yield
        finally:
            for pid in engines_in(self.run):
                os.kill(pid, signal.SIGKILL)
            tempfile.tempdir = usual
            shutil.rmtree(self.top)

    @contextlib.contextmanager
    def daemon(self):
        env = {'XDG_RUNTIME_DIR': self.run, 'FAKE_ADOPT': 'yes'}
        with self.state.daemon('--file-roots', self.files, '--slots', '4', *self.options, engine=self.engine, env=env, wait=None) as d:
            d.end = os.pidfd_open(d.process.pid)
            try:
                yield d
            finally:
                os.close(d.end)

    def all_come(self, d):
        for i in self.rng.permutation(PEOPLE):
            self.people[i].come(d)

    def one(self, calls):
        """From its start to its death in place of that call."""
        self.disk.kills(calls)
        with self.daemon() as d:
            with contextlib.suppress(Dead):
                if not d.endpoint or not d.log('ready: '):
                    self.at_start += 1
                    raise Dead
                self.all_come(d)
                for _ in range(300):
                    self.people[int(self.rng.integers(PEOPLE))].act(self.people)
                d.process.kill()
            check_end(d)
        self.disk.spares()
        self.kills += 1
        check_journal(self.state, self.people)

    def last(self):
        """Nobody is killed; nothing is left in the end."""
        with self.daemon() as d:
            assert d.log('ready: '), d.said()
            self.all_come(d)
            for person in self.people:
                person.cancel_again()
            for person in self.people:
                person.finish()
            d.status_when(lambda s: s.counters.requests == 0)
            assert d.terminate() == 0, d.said()
        self.state.is_empty()
        assert not [name for name in os.listdir(self.files) if name.startswith('.')], os.listdir(self.files)

    def go_through(self, kills):
        with self.folders():
            self.people = [Person(i + 1, self.rng, self.files) for i in range(PEOPLE)]
            self.options = ['--max-memory', str(60 * FIELD), '--spill', '8M'] if self.rng.random() < 0.5 else []
            for _ in range(kills):
                calls = int(self.rng.integers(40 if self.rng.random() < 0.3 else 200))
                try:
                    self.one(calls)
                except Exception as e:
                    raise AssertionError('kill %d, in place of call %d: %s' % (self.kills + 1, calls + 1, e)) from e
            self.last()
