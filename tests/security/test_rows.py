#!/usr/bin/env python3
"""A state folder that is not what this quarkd has left there: test_rows.py QUARKD"""
import contextlib
import os
import random
import re
import shutil
import sqlite3
import sys
import tempfile

import tap

try:
    import numpy as np
    from front_case import LATER, Case, State, fake, field, kill, once_more
    from front_driver import STATUS, Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


# ---- rows

LARGE = bool(os.environ.get('QK_LARGE'))
VALUES = (None, -1, 2**63 - 1, 'text', b'\x00\xff' * 8)
MORE = (0, 1, 2**62, float('inf'), 2**31, 2**53, -2**63, 0.5, -1e300, '', 'x' * 5000, '12 12 12 1000000000 00000000000000ff', b'', b'\n\x00')
NOTES = {'lattice': '0 0 0 0 0', 'front': '99999999999999999999', 'default': 'x', 'runtime': '/etc', 'engine 0': '1 1 1 1 ipc:///etc/passwd'}


def columns(db, table):
    return [row[1] for row in db.execute('PRAGMA table_info(%s)' % table)]


class Journal:
    """A state folder with a client that is left alone, and enough requests that each column can be damaged in a request of its own. The
    journal takes everything for a value."""

    def __init__(self, case, state):
        self.case, self.state, self.path = case, state, os.path.join(state.dir, 'journal.db')
        with state.daemon('--max-setups', '3') as d, Client(d) as control, Client(d, user='other') as victim:
            self.control, self.victims = control.client_id, [victim.client_id]
            self.fields = [field() for _ in range(2)]
            control.upload(control.submit(2), self.fields)
            control.results(2)
            control.submit(2, source=qk.SOURCE_Z2)
            control.results(2)
            d.log('is on the disk', 2)
            for _ in range(10):
                victim.submit(1, source=qk.SOURCE_Z2)
                victim.expect('result')
            for _ in range(20):
                victim.upload(victim.submit(1), [field()])
                victim.expect('result')
            for _ in range(3):
                with Client(d) as c:
                    c.submit(1, source=qk.SOURCE_Z2)
                    c.expect('result')
                    self.victims.append(c.client_id)
            victim.send(load=qk.Load(name='second', mass=0.2))
            d.status_when(lambda s: len(s.setups) == 2 and s.setups[1].state == qk.STATE_READY)
            d.log('is on the disk', 22)
            kill(d)
        with contextlib.closing(state.journal()) as db, db:
            db.execute('PRAGMA journal_mode=DELETE')
        with contextlib.closing(state.journal()) as db, db:
            db.execute('PRAGMA writable_schema=ON')
            db.execute("UPDATE sqlite_master SET sql=replace(sql, ' NOT NULL', '')")
            jobs = [id for id, client in db.execute('SELECT id, client FROM job ORDER BY id') if client == victim.client_id]
            self.generated, self.uploaded = jobs[:10], jobs[10:]
        self.names = state.spool()
        self.saved = tempfile.mkdtemp(prefix='qk-saved-')
        shutil.copytree(state.dir, self.saved, dirs_exist_ok=True)
        self.memory = {path: open(path, 'rb').read() for path in state.memory()}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.saved)

    def restore(self):
        """All is as it was, but for what was set aside before."""
        for name in os.listdir(self.state.dir):
            path = os.path.join(self.state.dir, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        shutil.copytree(self.saved, self.state.dir, dirs_exist_ok=True)
        for path in self.state.memory():
            os.unlink(path)
        for path, data in self.memory.items():
            with open(path, 'wb') as f:
                f.write(data)

    def set(self, table, column, value, where, key):
        """What SQLite itself does not take for that column is another test's."""
        with contextlib.closing(self.state.journal()) as db, contextlib.suppress(sqlite3.Error), db:
            db.execute('UPDATE %s SET %s=? WHERE %s=?' % (table, column, where), (value, key))

    def note(self, key, value):
        with contextlib.closing(self.state.journal()) as db, db:
            db.execute('INSERT OR REPLACE INTO note VALUES(?,?)', (key, value))

    def damage_all(self, value):
        """Each column of each table in a row of its own, which is the control's in no case."""
        with contextlib.closing(self.state.journal()) as db:
            jobs, rhs, sessions = columns(db, 'job'), columns(db, 'rhs'), columns(db, 'session')
        for column, job in zip(rhs, self.uploaded):
            self.set('rhs', column, value, 'job', job)
        for column, job in zip(jobs, self.generated):
            self.set('job', column, value, 'id', job)
        for column, client in zip(sessions, self.victims[1:]):
            self.set('session', column, value, 'client', client)

    def starts(self, *said, control=True):
        """quarkd starts, once as it is and once with what it has made of that, and what the control had is there. Nothing is deleted."""
        for n in (1, 2):
            files = self.files()
            with self.state.daemon('--max-setups', '3', env=LATER) as d:
                if control:
                    self.check(d)
                lines = list(d.lines)
                status = d.status()
                kill(d)
            assert not any('SELECT' in line or 'INSERT' in line for line in lines), lines
            if n == 1:
                for pattern in said:
                    assert any(re.search(pattern, line) for line in lines), (pattern, lines)
                assert status.set_aside if said else True
                assert not files - self.files(), files - self.files()
            else:
                assert not [line for line in lines if 'set aside: ' in line], lines

    def check(self, daemon):
        with Client(daemon, self.control) as c:
            assert c.welcome.resumed
            once_more(c, 2, 1)
            found = {}
            while len(found) < 2:
                r = c.expect('result')
                if r.request == 1:
                    found[r.rhs] = r
            for i, b in enumerate(self.fields):
                assert found[i].status == 0 and np.array_equal(c.fetch(found[i]), 2 * b), found

    def files(self):
        """Of the spool, wherever they are."""
        return {(name, os.stat(os.path.join(folder, name)).st_size) for folder, _, names in os.walk(self.state.dir) for name in names
                if os.path.basename(folder) == 'spool'}


@tap.test
def rows_that_do_not_fit_are_set_aside(case):
    """Each column of each table has each value; then notes and setups, of which there are few."""
    with State(case) as state, Journal(case, state) as journal:
        for value in VALUES + MORE * LARGE:
            journal.restore()
            journal.damage_all(value)
            journal.starts()
        journal.restore()
        for key, value in (NOTES | {'version': 'three'}).items():
            journal.note(key, value)
        journal.starts(*('set aside: note ' + key for key in NOTES))
        journal.restore()
        journal.note('operator', 'text')  # what it was accepted for nobody knows
        journal.starts('set aside: note operator', 'set aside: request in row 1: .*its operator is not known', control=False)
        assert not set(journal.names) - set(os.listdir(os.path.join(state.dir, 'aside-1', 'spool')))


@tap.test
def rows_at_random_end_no_start(case):
    seed = int(os.environ.get('QK_SEED') or (int.from_bytes(os.urandom(4), 'little') if LARGE else 22))
    print('# seed %d' % seed)
    rng = random.Random(seed)
    with State(case) as state, Journal(case, state) as journal:
        with contextlib.closing(state.journal()) as db:
            version = db.execute("SELECT value FROM note WHERE key='version'").fetchone()[0]
        for _ in range(200 if LARGE else 2):
            journal.restore()
            for _ in range(rng.randrange(1, 60)):
                table = rng.choice(('job', 'job', 'rhs', 'rhs', 'session', 'setup', 'note'))
                with contextlib.closing(state.journal()) as db:
                    column = rng.choice(columns(db, table))
                    key = rng.choice(db.execute('SELECT rowid FROM job WHERE id > 2 ORDER BY id').fetchall())[0]
                value = rng.choice(VALUES + MORE + (rng.getrandbits(62), rng.random(), rng.randbytes(rng.randrange(200))))
                journal.set(table, column, value, 'job' if table == 'rhs' else 'rowid', key if table in ('job', 'rhs') else rng.randrange(1, 8))
            journal.note('version', version)  # that of a later quarkd ends a start, as it should
            journal.starts(control=False)


@tap.test
def what_is_set_aside_is_named_and_kept(case):
    """In the log, in the status and in the folder: the row as it was, with why, and its file of the spool."""
    with State(case) as state, Journal(case, state) as journal:
        for column, value, why in (('upload_next', 10**12, 'upload_next = 1000000000000 is outside 0 .. 49152'),
                                   ('lattice', '1000 1000 1000 1000 0000000000000007', 'lattice = .*: outside 1 .. 2147483647 sites')):
            journal.restore()
            id = journal.uploaded[3]
            journal.set('job', column, value, 'id', id)
            journal.starts('set aside: request in row %d: %s' % (id, why), 'set aside: spool/%d-0: no request' % id, 'quarkd has moved 2 things of the state folder to .*/aside-1, where why.txt says why')
            folder = os.path.join(state.dir, 'aside-1')
            with open(os.path.join(folder, 'why.txt'), encoding='utf-8') as f:
                assert re.search('request in row %d: ' % id + why, f.read())
            assert sorted(os.listdir(folder)) == ['journal.db', 'spool', 'why.txt'] and os.listdir(os.path.join(folder, 'spool')) == ['%d-0' % id]
            with contextlib.closing(sqlite3.connect(os.path.join(folder, 'journal.db'))) as db:
                assert db.execute('SELECT %s FROM job WHERE id=?' % column, (id,)).fetchone() == (value,)
                assert db.execute('SELECT count(*) FROM rhs WHERE job=?', (id,)).fetchone() == (1,)
            with contextlib.closing(state.journal()) as db:
                assert db.execute('SELECT count(*) FROM job WHERE id=?', (id,)).fetchone() == (0,)
            with state.daemon(env=LATER) as d:
                assert d.status().set_aside == folder + ', see why.txt there'


# ---- the file


def plain(state):
    """The journal in one file; its path."""
    with contextlib.closing(state.journal()) as db, db:
        db.execute('PRAGMA journal_mode=DELETE')
    return os.path.join(state.dir, 'journal.db')


def leaf_pages(path):
    """{table: [pages, in the order of its rows, behind the first]} of a database with pages of 4096 bytes."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        roots = dict(db.execute("SELECT name, rootpage FROM sqlite_master WHERE type='table'"))
    with open(path, 'rb') as f:
        data = f.read()

    def leaves(page):
        at = (page - 1) * 4096
        if data[at] not in (2, 5):
            return [page]
        count = int.from_bytes(data[at + 3:at + 5], 'big')
        cells = [int.from_bytes(data[at + 12 + 2 * i:at + 14 + 2 * i], 'big') for i in range(count)]
        children = [int.from_bytes(data[at + c:at + c + 4], 'big') for c in cells] + [int.from_bytes(data[at + 8:at + 12], 'big')]
        return [leaf for child in children for leaf in leaves(child)]
    return {name: leaves(root) for name, root in roots.items()}


def overwrite(path, page):
    with open(path, 'r+b') as f:
        f.seek((page - 1) * 4096)
        f.write(b'\xa5' * 4096)


def tells(daemon):
    """What its log says of the damage, a line each; one sentence behind them says where that is, and how much."""
    daemon.log('listening on')
    lines = [line.strip() for line in daemon.lines if 'quarkd journal: ' in line]
    told = [line for line in lines if ' warn ' in line]
    summary, = [line for line in lines if ' error ' in line and 'why.txt' in line]
    n = sum('set aside: ' in line for line in told)
    assert 'quarkd has moved %d thing%s of the state folder to ' % (n, '' if n == 1 else 's') in summary, (told, summary)
    with open(os.path.join(re.search(r'to (\S+/aside-\d+)', summary)[1], 'why.txt'), encoding='utf-8') as f:
        assert len(f.read().splitlines()) == len(told), told
    return told


@tap.test
def a_damaged_file_is_recovered(case):
    """A page in the middle of the requests, one of the right-hand sides, the end cut off, the beginning, no database at all: quarkd starts
    with what can be read, keeps the file as it was, and says so. What was lost can be submitted again."""
    count = 120
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            b = field()
            c.upload(c.submit(1), [b])
            c.expect('result')
            d.log('is on the disk')
            for i in range(count):
                c.submit(1, source=qk.SOURCE_Z2, column=[qk.Column(seed=i + 1)])
                c.expect('result')
            kill(d)
        path = plain(state)
        pages = leaf_pages(path)
        with open(path, 'rb') as f:
            whole = f.read()
        jobs, rhs = pages['job'], pages['rhs']
        assert len(jobs) > 2 and len(rhs) > 2, pages
        for damage, back in ((lambda: overwrite(path, jobs[len(jobs) // 2]), count / 2), (lambda: overwrite(path, rhs[len(rhs) // 2]), count),
                             (lambda: os.truncate(path, len(whole) // 4096 // 2 * 4096 + 100), 0), (lambda: overwrite(path, 1), 0),
                             (lambda: open(path, 'wb').write(b'this is no database' * 1000), 0)):
            with open(path, 'wb') as f:
                f.write(whole)
            damage()
            with open(path, 'rb') as f:
                damaged = f.read()
            for wal in ('-wal', '-shm'):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path + wal)
            with state.daemon(env=LATER) as d, Client(d, c.client_id) as again:
                told, *others = tells(d)
                assert all('spool/1-0: no request' in line for line in others), others
                m = re.search(r'set aside: journal.db, as it is damaged \((.*)\): quarkd continues with what it could read: 1 client, (\d+) requests, '
                              r'\d+ right-hand sides$', told)
                known = m is not None
                assert known or 'no request could be read from it' in told, told
                assert not m or (int(m[2]) >= back and not re.search('[?*]', m[1])), told
                assert back == 0 or known, told
                folder = d.status().set_aside.split(',')[0]
                with open(os.path.join(folder, 'journal.db'), 'rb') as f:
                    assert f.read() == damaged
                assert again.welcome.resumed == known
                if again.welcome.resumed:
                    accepted = once_more(again, 1, 1)
                    if accepted.upload_next == 0:
                        again.upload(accepted, [b])
                    r = again.expect('result')
                    while r.request > 1:
                        r = again.expect('result')
                else:
                    again.upload(again.submit(1), [b])
                    r = again.expect('result')
                assert r.status == 0 and np.array_equal(again.fetch(r), 2 * b)
                kill(d)
            with state.daemon(env=LATER) as d:
                assert not [line for line in d.lines if 'set aside: ' in line]
                kill(d)
            spooled = {name for _, _, names in os.walk(state.dir) for name in names}
            assert '1-0' in spooled
            for name in os.listdir(state.dir):
                if name.startswith('aside-'):
                    shutil.rmtree(os.path.join(state.dir, name))


@tap.test
def a_damaged_file_of_an_earlier_version_is_recovered(case):
    """What it has is in tables of this version then."""
    count = 200
    for version, changes in (('3', ()), ('2', ('ALTER TABLE job DROP COLUMN lattice',)),
                             ('1', ('ALTER TABLE job DROP COLUMN lattice', 'ALTER TABLE job DROP COLUMN setup'))):
        with State(case) as state:
            with state.daemon() as d, Client(d) as c:
                c.submit(count, source=qk.SOURCE_Z2)
                c.results(count)
                kill(d)
            path = plain(state)
            with contextlib.closing(state.journal()) as db, db:
                for change in ('ALTER TABLE rhs DROP COLUMN wall', 'ALTER TABLE job DROP COLUMN token', 'ALTER TABLE job DROP COLUMN arrived', 'ALTER TABLE rhs DROP COLUMN hq_residual',
                               'ALTER TABLE rhs DROP COLUMN digest', *changes):
                    db.execute(change)
                db.execute("UPDATE note SET value=? WHERE key='version'", (version,))
            pages = leaf_pages(path)['rhs']
            overwrite(path, pages[len(pages) // 2])
            with state.daemon(env=LATER) as d, Client(d, c.client_id) as again:
                assert d.log('set aside: journal.db, .*could read: 1 client, 1 request, \d+ right-hand sides') and again.welcome.resumed
                once_more(again, count, 1, source=qk.SOURCE_Z2)
                assert len(again.results(count)) == count
                kill(d)
            with contextlib.closing(state.journal()) as db:
                assert db.execute("SELECT value FROM note WHERE key='version'").fetchone() == ('9',)


@tap.test
def a_recovery_that_was_interrupted_goes_on(case):
    """The old file was out of the way, and the new one not yet in its place."""
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            c.submit(1, source=qk.SOURCE_Z2)
            c.expect('result')
            kill(d)
        path = plain(state)
        os.rename(path, path + '.ready')
        with state.daemon(env=LATER) as d, Client(d, c.client_id) as again:
            assert again.welcome.resumed and once_more(again, 1, 1, source=qk.SOURCE_Z2)


# ---- solutions


@tap.test
def a_solution_that_was_damaged_in_memory_is_made_again(case):
    """A bit of one of two, of a field that is read at once and of one that is read by a thread; that is told, and it counts an attempt more."""
    for dims, sites in ((None, 256), ('8x8x8x16', 8192)):
        with State(case) as state:
            fields = [field(sites) for _ in range(2)]
            with state.daemon(dims=dims) as d, Client(d) as c:
                c.upload(c.submit(2), fields)
                c.results(2)
                d.log('is on the disk', 2)
                settled(d, os.path.join(state.dir, 'journal.db-wal'))  # the thread, too, is done
                kill(d)
            with contextlib.closing(state.journal()) as db:
                rows = db.execute('SELECT solution, digest FROM rhs ORDER BY number').fetchall()
            assert rows[1][1] is not None, rows
            with open('/dev/shm' + rows[1][0], 'r+b') as f:
                f.seek(sites * 24 * 8 // 2)
                f.write(b'\x55')
            with state.daemon(env=LATER, dims=dims) as d, Client(d, c.client_id) as c2:
                once_more(c2, 2, 1)
                assert d.log('request 1, rhs 1: its solution in shared memory is damaged')
                results = {}
                while len(results) < 2:
                    r = c2.expect('result')
                    results[r.rhs] = r
                assert [results[i].attempt for i in range(2)] == [0, 1], results
                for i, b in enumerate(fields):
                    assert np.array_equal(c2.fetch(results[i]), 2 * b)


# ---- its write-ahead log


def flip(path):
    """A bit of the first page."""
    with open(path, 'r+b') as f:
        f.seek(200)
        byte = f.read(1)
        f.seek(-1, 1)
        f.write(bytes([byte[0] ^ 4]))


def settled(daemon, wal):
    """What was written is in the file itself."""
    daemon.status_when(lambda s: os.path.getsize(wal) == 0)


@tap.test
def a_log_without_its_file_is_not_deleted(case):
    """The file was removed, or emptied, and its write-ahead log was not, which SQLite by itself deletes then: quarkd makes the file again
    where the log has all of it, and sets it aside where it has not."""
    for damage in (os.unlink, lambda path: os.truncate(path, 0)):
        with State(case) as state:
            path = os.path.join(state.dir, 'journal.db')
            with state.daemon() as d, Client(d) as c:
                c.submit(1, source=qk.SOURCE_Z2)
                c.expect('result')
                settled(d, path + '-wal')
                c.submit(1, source=qk.SOURCE_Z2)
                c.expect('result')
                kill(d)
            with open(path + '-wal', 'rb') as f:
                some = f.read()
            with contextlib.closing(state.journal()) as db:
                db.execute('PRAGMA wal_autocheckpoint=0')
                db.execute('VACUUM')  # every page is in the log then
                with open(path + '-wal', 'rb') as f:
                    whole = f.read()
            for log in (whole, some):
                damage(path) if os.path.exists(path) else None
                with open(path + '-wal', 'wb') as f:
                    f.write(log)
                with state.daemon(env=LATER) as d:
                    if log == whole:
                        assert d.log('journal.db is (gone|empty): quarkd has made it again from its') and d.log('2 requests are back with 0 right-')
                        assert not d.status().set_aside
                    else:
                        told, = tells(d)
                        assert re.search(r'set aside: journal.db, as it is damaged \(it is (gone|empty), but for its write-ahead log\): ', told), told
                        with open(os.path.join(d.status().set_aside.split(',')[0], 'journal.db-wal'), 'rb') as f:
                            assert f.read() == some
                    kill(d)
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(path + '-shm')


@tap.test
def a_lost_wal_is_noticed(case):
    """One request is in the file, the next in its log alone, which is damaged, or lost, or all is: the log and the status say so, what the
    file has goes on, and no upload is swept."""
    for damage in ('flip', 'log', 'all'):
        with State(case) as state:
            wal = os.path.join(state.dir, 'journal.db-wal')
            with state.daemon() as d, Client(d) as c:
                c.submit(1, source=qk.SOURCE_Z2)
                c.expect('result')
                settled(d, wal)
                c.upload(c.submit(1, max_iter=fake.HOLD), [field()])
                d.log('is on the disk')
                kill(d)
            assert state.spool() == ['2-0'] and os.path.getsize(wal) > 0
            if damage == 'flip':
                flip(wal)
            else:
                os.unlink(wal)
            if damage == 'all':
                os.unlink(os.path.join(state.dir, 'journal.db'))
            with state.daemon(env=LATER) as d, Client(d, c.client_id) as c2:
                first, *others = tells(d)
                said = {'flip': r'journal.db lacks its last \d+ transactions, as its write-ahead log \(journal.db-wal\) is damaged, or the file is an older one: '
                                r'requests and results since then are lost',
                        'log': r'journal.db lacks its last \d+ transactions, as its write-ahead log \(journal.db-wal\) is gone, or',
                        'all': 'journal.db is gone: its requests and results are lost'}[damage]
                assert re.search(said, first) and 'set aside' not in first, first
                assert len(others) == 1 + (damage == 'flip') and 'spool/2-0: no request' in others[-1], others
                folder = d.status().set_aside.split(',')[0]
                assert os.listdir(os.path.join(folder, 'spool')) == ['2-0'] and state.spool() == []
                assert os.path.exists(os.path.join(folder, 'journal.db-wal.damaged')) == (damage == 'flip')
                assert c2.welcome.resumed == (damage != 'all')
                if c2.welcome.resumed:
                    once_more(c2, 1, 1, source=qk.SOURCE_Z2)
                kill(d)
            with state.daemon(env=LATER) as d:
                assert not [line for line in d.lines if 'set aside: ' in line]


@tap.test
def a_log_that_is_lost_at_a_quiet_time_costs_nothing(case):
    with State(case) as state:
        wal = os.path.join(state.dir, 'journal.db-wal')
        with state.daemon() as d, Client(d) as c:
            for _ in range(20):
                c.submit(1, source=qk.SOURCE_Z2)
                c.expect('result')
            settled(d, wal)
            d.process.kill()
            d.process.wait()
        os.unlink(wal)
        with state.daemon(env=LATER) as d:
            assert d.log('20 requests are back') and not [line for line in d.lines if 'set aside: ' in line]


# ---- numbers of requests


@tap.test
def the_greatest_request_number_is_executed_once(case):
    """Solved, acknowledged and forgotten; numbers below it are used up as well, on either side of 2^63."""
    last = 2**64 - 1
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            for n in (1, 2**63 - 1, 2**63, last):
                c.submit(1, request=n, source=qk.SOURCE_Z2)
                assert c.expect('result').status == 0
                c.ack(n)
                d.status_when(lambda s: s.counters.requests == 0)
            kill(d)
        with state.daemon(env=LATER) as d, Client(d, c.client_id) as c2:
            assert c2.welcome.resumed
            for n in (last, 2**63, 2**63 - 1, 1):
                refused = c2.submit(1, request=n, source=qk.SOURCE_Z2, expect='rejected')
                assert refused.status == STATUS['EXPIRED'], (n, refused)
            assert d.status().counters.accepted == 0


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]), beside=4)
