#!/usr/bin/env python3
"""quarkd killed between any two system calls on its state folder: test_kills.py QUARKD SHIM

QK_KILLS is how many kills. Those of a short session begin at its first call, or are spread over all its calls where there are fewer; the others
are at random, with QK_SEED, and 25 at least."""
import bisect
import contextlib
import os
import shutil
import sqlite3
import sys
import tempfile

import tap

try:
    import numpy as np
    from disk import CALLS
    from disk_case import DiskCase
    from front_case import LATER, fake, field, kill, once_more
    from front_driver import STATUS, Client, qk
    from lives import Dead, Lives, check_end
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

KILLS = int(os.environ.get('QK_KILLS', '8'))
SESSION = 100  # calls of the short session, about
SEED = int(os.environ.get('QK_SEED', '1'))
HOUR = 3600 * 1000


class Story:
    """One client: what it does, what it was told. A request is an upload of two, detached; its numbers go up."""

    def __init__(self, client_id):
        self.client_id = client_id
        self.fields = {}
        self.accepted, self.arrived, self.ended, self.acked, self.rejected = set(), {}, {}, set(), set()

    def hear(self, d, c):
        """The next message; notes what it promises."""
        while not c.control.poll(50):
            if d.process.poll() is not None:
                raise Dead
        name, body = c.receive_new()
        if name in ('accepted', 'attached'):
            body = body.accepted if name == 'attached' else body
            self.accepted.add(body.request)
            self.arrived[body.request] = max(self.arrived.get(body.request, 0), body.upload_next)
        elif name == 'credit':
            self.arrived[body.request] = max(self.arrived.get(body.request, 0), body.next)
        elif name == 'result':
            # what was acknowledged may have gone before that was recorded
            gone = body.status == STATUS['EXPIRED'] and body.rhs == 0 and body.request in self.acked
            assert body.status == 0 or gone, body
            self.ended.setdefault(body.request, set()).add(body.rhs)
        elif name == 'rejected':
            self.rejected.add(body.request)
        return name, body

    def until(self, d, c, done):
        while not done():
            self.hear(d, c)

    def work(self, d, c, request):
        """The request from beginning to end."""
        fields = self.fields.setdefault(request, [field(), field()])
        c.submit(2, request=request, detach_ms=HOUR, expect=None)
        self.until(d, c, lambda: request in self.accepted)
        accepted = qk.Accepted(request=request, field_bytes=fields[0].nbytes, upload_until=2 * fields[0].nbytes)
        c.upload(accepted, fields)
        self.until(d, c, lambda: len(self.ended.get(request, ())) == 2)
        c.ack(request, 0)
        self.acked.add(request)

    def go_on(self, d, c):
        """After the restart: all that was told is there; it ends well."""
        for request in sorted(self.accepted):
            told, ended = self.arrived[request], set(self.ended.get(request, ()))
            c.send(attach=qk.Attach(request=request))
            name, body = self.hear(d, c)
            while name in ('credit', 'progress', 'result'):
                name, body = self.hear(d, c)
            assert name == 'attached', (request, name, body)
            fields = self.fields[request]
            at = body.upload_next
            assert at >= told, 'request %d: %d bytes were told to be there, and %d are' % (request, told, at)
            c.upload(body, fields, begin=at)
            results, acked = {}, request in self.acked
            while not (set(results) >= ({1} if acked else {0, 1})):
                name, body = self.hear(d, c)
                if name == 'result' and body.request == request:
                    results[body.rhs] = body
            assert ended - ({0} if acked else set()) <= set(results), (ended, results)
            for rhs, r in results.items():
                assert r.status != 0 or np.array_equal(c.fetch(r), 2 * fields[rhs]), r
            c.ack(request)


def begin(case, disk_calls=None):
    """Runs the story until the call of that number; how many calls there were where none is given."""
    with case.state() as (state, disk):
        story = Story(os.urandom(16))
        try:
            with state.daemon() as d:
                with Client(d, story.client_id) as c:
                    before = disk.get(CALLS)
                    if disk_calls is not None:
                        disk.kills(disk_calls)
                    for request in (1, 2):
                        story.work(d, c, request)
                    if disk_calls is None:
                        c.ping()
                        return disk.get(CALLS) - before
                    d.process.kill()  # fewer calls than before
        except Dead:
            pass
        disk.spares()
        check_end(d)
        with state.daemon(env=LATER) as d, Client(d, story.client_id) as c:
            assert c.welcome.resumed or not story.accepted
            story.go_on(d, c)
            c.send(goodbye=qk.Goodbye())
            return None


@tap.test
def what_was_told_is_there_wherever_the_daemon_is_killed(case):
    calls = begin(case)
    assert calls > 10, calls
    step = max(1, calls // KILLS)
    for n in range(0, calls, step):
        try:
            begin(case, n)
        except AssertionError as e:
            raise AssertionError('killed in place of call %d of %d: %s' % (n + 1, calls, e)) from e


@tap.test
def what_many_were_told_is_there_wherever_the_daemon_is_killed(case):
    """At random, while it starts, too; a new state folder each time that one has seen enough."""
    left, seed, starts = max(25, KILLS - SESSION), SEED, 0
    while left > 0:
        lives = Lives(case, seed)
        try:
            lives.go_through(min(25, left))
        except AssertionError as e:
            raise AssertionError('QK_SEED=%d: %s' % (seed, e)) from e
        left, seed, starts = left - lives.kills, seed + 1, starts + lives.at_start
        print('# %d kills are left; %d were while it started' % (left, starts), flush=True)


# ---- a journal that is being recovered


def overwrite_setups(path):
    """Damages a page that is in the file alone."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(path, folder)
        with contextlib.closing(sqlite3.connect(copy)) as db:
            page, = db.execute("SELECT rootpage FROM sqlite_master WHERE name='setup'").fetchone()
    with open(path, 'r+b') as f:
        f.seek((page - 1) * 4096)
        f.write(b'\xa5' * 4096)


@tap.test
def a_recovery_may_be_killed_anywhere(case):
    """One request is in the damaged file, the next in its write-ahead log: both are there after a second start."""
    with case.state() as (state, disk), tempfile.TemporaryDirectory() as folder:
        path, kept = os.path.join(state.dir, 'journal.db'), os.path.join(folder, 'kept')
        with state.daemon() as d, Client(d) as c:
            c.submit(1, source=qk.SOURCE_Z2)
            c.expect('result')
            d.status_when(lambda _: os.path.getsize(path + '-wal') == 0)
            c.submit(1, source=qk.SOURCE_Z2)
            c.expect('result')
            kill(d)
        assert os.path.getsize(path + '-wal') > 0
        overwrite_setups(path)
        shutil.copytree(state.dir, kept)

        def start(after=None):
            before = disk.get(CALLS)
            shutil.rmtree(state.dir)
            shutil.copytree(kept, state.dir)
            if after is not None:
                disk.kills(after)
            with state.daemon(env=LATER, wait=None) as d:
                if after is None:
                    assert d.log('quarkd continues with what it could read') and d.log('ready: ')
                    kill(d)
                d.process.wait(60)
            disk.spares()
            return disk.get(CALLS) - before

        def sets_aside(n):
            start(n)
            return any(name.startswith('aside-') for name in os.listdir(state.dir))

        calls = start()
        first, steps = bisect.bisect_left(range(calls), True, key=sets_aside), 0
        for n in range(first, calls):
            start(n)
            names = os.listdir(state.dir)
            if steps > 0 and 'journal.db-wal' in names and 'journal.db.ready' not in names:
                break  # it is over: a new one has been begun
            steps += 'journal.db-wal' not in names or 'journal.db.ready' in names
            with state.daemon(env=LATER) as d, Client(d, c.client_id) as again:
                assert again.welcome.resumed, (n, names)
                for request in (1, 2):
                    once_more(again, 1, request, source=qk.SOURCE_Z2)
                kill(d)
            assert 'journal.db.ready' not in os.listdir(state.dir)
            with contextlib.closing(state.journal()) as db:
                assert db.execute('PRAGMA quick_check').fetchone() == ('ok',)
        assert steps > 3, (steps, calls)


# ---- what goes, goes behind its rows


def missing(state):
    """What rows name and is not there."""
    with contextlib.closing(state.journal()) as db:
        rows = db.execute('SELECT job, number, source, solution, spooled FROM rhs').fetchall()
    names = ['/dev/shm' + name for row in rows for name in row[2:4] if name]
    for job, number, _, _, files in rows:
        names += ['%s/spool/%d-%d' % (state.dir, job, number + extra) for bit, extra in ((1, 0), (2, 1 << 16)) if files & bit]
    return [name for name in names if not os.path.exists(name)]


def solved(c, **more):
    """A request of two that have been solved, and fetched by nobody."""
    c.submit(2, source=qk.SOURCE_Z2, detach_ms=HOUR, **more)
    assert [r.status for r in c.results(2)] == [0, 0]
    return c.request


def acknowledge(d, c):
    request = solved(c)
    yield
    c.ack(request, 0)


def release(d, c):
    request = c.keep(2, detach_ms=HOUR)
    c.ack(request, 0, 1)
    yield
    c.send(release=qk.Release(request=request))


def acknowledge_on_disk(d, c):
    """Of one that has left memory."""
    request = solved(c)
    c.send(goodbye=qk.Goodbye())
    with Client(d) as other:
        while other.submit(7, source=qk.SOURCE_Z2, expect=None) is None:
            name, _ = other.receive_new()
            if name == 'accepted':
                break
            other.control.poll(20)
        assert [r.status for r in other.results(7)] == [0] * 7
        other.ack(other.request)
        other.ping()
    with Client(d, c.client_id) as back:
        back.send(attach=qk.Attach(request=request))
        back.expect('attached', skip=('progress', 'credit', 'result'))
        yield
        back.ack(request, 0, 1)
        yield


def give_up(d, c):
    request = solved(c)
    yield
    c.send(cancel=qk.Cancel(request=request))
    c.ack(request)


@tap.test
def rows_name_nothing_that_has_gone(case):
    for act in (acknowledge, release, acknowledge_on_disk, give_up):
        with case.state() as (state, disk):
            with state.daemon('--max-memory', str(8 * 4**4 * 24 * 8), '--spill', '1M') as d, Client(d) as c:
                c.request = 0
                steps = act(d, c)
                next(steps)
                d.status()
                disk.kills(1)  # the first may be the file that goes
                next(steps, None)
                d.process.wait(60)
            disk.spares()
            assert missing(state) == [], (act.__name__, missing(state))


def write_file(state, disk, path, after=None):
    """The solutions of one request into a file; killed after so many calls, or how many there were."""
    fifo = os.path.join(os.path.dirname(state.dir), 'go')
    os.mkfifo(fifo)
    with state.daemon('--file-roots', os.path.dirname(path), env={'FAKE_GO': fifo}) as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.WHEN_TOLD, detach_ms=HOUR, sink=qk.SINK_FILE, sink_file=qk.File(path=path))
        d.status_when(lambda s: s.counters.running == 1)
        before = disk.get(CALLS)
        if after is not None:
            disk.kills(after)
        with open(fifo, 'w', encoding='utf-8'):
            pass
        if after is None:
            assert c.expect('result').status == 0
            return disk.get(CALLS) - before
        d.process.wait(60)
    disk.spares()
    return None


@tap.test
def a_solution_in_a_file_goes_behind_its_row(case):
    with tempfile.TemporaryDirectory() as folder:
        with case.state() as (state, disk):
            calls = write_file(state, disk, folder + '/x')
        for n in range(1, calls, 3):
            with case.state() as (state, disk):
                write_file(state, disk, '%s/x%d' % (folder, n), n)
                assert missing(state) == [], (n, calls, missing(state))


def let_an_output_go(state, disk, folder, after=None):
    """One that has been begun; killed after so many calls, or how many there were."""
    with state.daemon('--file-roots', folder) as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, sink=qk.SINK_FILE, sink_file=qk.File(path=folder + '/x'))
        d.status_when(lambda s: s.counters.running == 1 and os.listdir(folder))
        before = disk.get(CALLS)
        if after is not None:
            disk.kills(after)
        c.send(goodbye=qk.Goodbye())
        if after is None:
            while os.listdir(folder):
                d.status()
            return disk.get(CALLS) - before
        d.process.wait(60)
    disk.spares()
    return None


@tap.test
def an_output_that_nobody_wants_goes_wherever_the_daemon_is_killed(case):
    with tempfile.TemporaryDirectory() as folder:
        with case.state() as (state, disk):
            calls, recorded = let_an_output_go(state, disk, folder), 0
        for n in range(calls):
            with case.state() as (state, disk):
                let_an_output_go(state, disk, folder, n)
                with state.daemon('--file-roots', folder, env=LATER) as d:
                    # killed before it was recorded the client's leave has not happened
                    d.status_when(lambda s: s.counters.running == 1 if s.counters.requests else not os.listdir(folder))
                    recorded += not d.status().counters.requests
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))
        assert recorded > 0, calls


if __name__ == '__main__':
    tap.run(DiskCase(*sys.argv[1:]))
