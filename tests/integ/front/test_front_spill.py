#!/usr/bin/env python3
"""Solutions that leave memory for the state folder while nobody fetches them: test_front_spill.py QUARKD"""
import os
import shutil
import sys
import tempfile

import tap

try:
    import numpy as np
    from front_case import Case
    from front_driver import STATUS, Client, checksum, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

HOUR = 3600 * 1000
BYTES = 4**4 * 24 * 8
ROOM = 8 * BYTES  # seven solutions and what belongs to them


class State:
    def __init__(self, case):
        self.case, self.dir = case, os.path.realpath(tempfile.mkdtemp(prefix='qk-state-'))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end_the_machine()
        shutil.rmtree(self.dir)

    def daemon(self, *options, spill='1M', memory=ROOM, **more):
        return self.case.daemon('--state', self.dir, '--max-memory', str(memory), '--spill', spill, *options, **more)

    def end_the_machine(self):
        for name in os.listdir('/dev/shm'):
            if name.startswith(('quarkd-s%016x-' % checksum(self.dir.encode()), 'quarkd-dir-%016x' % checksum(self.dir.encode()))):
                os.unlink('/dev/shm/' + name)

    def spool(self):
        return sorted(os.listdir(os.path.join(self.dir, 'spool')))


def leave(d, nrhs=5):
    """A client that leaves with solutions 10, 11, ... for it."""
    with Client(d) as c:
        c.submit(nrhs, source=qk.SOURCE_Z2, column=[qk.Column(seed=10 + i) for i in range(nrhs)], detach_ms=HOUR)
        assert all(r.status == 0 for r in c.results(nrhs))
        c.send(goodbye=qk.Goodbye())
    return c.client_id


def insist(c, nrhs=5, **more):
    """Asks until there is room; how often there was none."""
    for refusals in range(1000):
        c.submit(nrhs, source=qk.SOURCE_Z2, expect=None, **more)
        name, reply = c.receive()
        while name in ('progress', 'credit'):
            name, reply = c.receive()
        if name == 'accepted':
            return refusals
        assert name == 'rejected' and reply.status == STATUS['BUSY'], reply
        c.control.poll(20)
    raise TimeoutError('never room')


def come_for(d, client_id, nrhs=5):
    with Client(d, client_id) as c:
        c.send(attach=qk.Attach(request=1))
        c.expect('attached')
        results = c.results(nrhs)
        for r in results:
            assert r.status == 0 and r.bytes == BYTES and c.fetch(r)[0] == 10 + r.rhs, r
        c.ack(1)
        c.send(goodbye=qk.Goodbye())


def finish(c, nrhs=5):
    for r in c.results(nrhs):
        assert r.status == 0 and c.fetch(r)[0] == r.rhs
    c.ack(c.request)


@tap.test
def what_nobody_fetches_makes_room_and_comes_back(case):
    with State(case) as s, s.daemon() as d:
        away = leave(d)
        with Client(d) as c:
            assert insist(c) > 0
            report = d.status_when(lambda s: s.counters.held == 10)
            assert report.memory_used <= report.memory_limit and len(s.spool()) == 3, s.spool()
            finish(c)
            c.send(goodbye=qk.Goodbye())
        come_for(d, away)
        report = d.status_when(lambda s: s.counters.sessions == 0)
        assert report.memory_used == 0 and d.terminate() == 0 and s.spool() == []


@tap.test
def all_of_it_comes_back_while_there_is_room_for_one(case):
    """Other solutions that are waited for fill the memory."""
    with State(case) as s, s.daemon() as d:
        away = leave(d, 7)
        with Client(d) as c:
            assert insist(c, 7) > 0
            assert len(s.spool()) == 7 and all(r.status == 0 for r in c.results(7))
            with Client(d, away) as c2:
                c2.send(attach=qk.Attach(request=1))
                c2.expect('attached')
                results = c2.results(7)
                for r in results:  # all at once
                    c2.send(grant=qk.Grant(request=1, rhs=r.rhs, until=BYTES))
                got = set()
                for _ in results:
                    chunk = c2.chunk()
                    assert np.frombuffer(chunk['payload'])[0] == 10 + chunk['rhs'] and d.status().memory_used <= ROOM + BYTES
                    got.add(chunk['rhs'])
                    c2.ack(1, chunk['rhs'])
                assert got == set(range(7))
                c2.send(goodbye=qk.Goodbye())
            c.ack(c.request)
            c.send(goodbye=qk.Goodbye())
        d.status_when(lambda s: s.counters.sessions == 0)
        assert d.terminate() == 0 and s.spool() == []


@tap.test
def a_restarted_front_finds_it_with_and_without_its_memory(case):
    for lost_memory in (False, True):
        with State(case) as s:
            with s.daemon() as d:
                away = leave(d)
                with Client(d) as c:
                    insist(c)
                    finish(c)
                    c.send(goodbye=qk.Goodbye())
                d.status_when(lambda s: s.counters.sessions == 1)
                assert len(s.spool()) == 3
                d.process.kill()
                d.process.wait()
            if lost_memory:
                s.end_the_machine()
            with s.daemon(env={'FAKE_BEFORE': '1'}) as d:
                report = d.status_when(lambda s: s.counters.held == 5)
                assert report.counters.iterations == (6 if lost_memory else 0), report.counters  # two were made again
                come_for(d, away)
                report = d.status_when(lambda s: s.counters.sessions == 0)
                assert report.memory_used == 0 and d.terminate() == 0 and s.spool() == []


@tap.test
def the_quota_is_kept_and_so_is_who_is_there(case):
    with State(case) as s:
        with s.daemon(spill=str(2 * BYTES)) as d:
            leave(d)
            with Client(d) as c:
                assert insist(c, 4) > 0 and len(s.spool()) == 2
                refused = c.submit(3, source=qk.SOURCE_Z2, expect=None)
                assert [c.receive()[0] for _ in range(5)].count('rejected') == 1 and refused is None
                d.status_when(lambda s: s.counters.held == 9)
                assert len(s.spool()) == 2
        with State(case) as s2, s2.daemon() as d, Client(d) as c:
            c.submit(5, source=qk.SOURCE_Z2)
            assert all(r.status == 0 for r in c.results(5))
            with Client(d) as other:  # c has its solutions since a moment ago: they stay
                for _ in range(5):
                    assert other.submit(5, source=qk.SOURCE_Z2, expect='rejected').status == STATUS['BUSY']
            assert s2.spool() == []


@tap.test
def who_is_there_but_does_not_fetch_makes_room_in_time(case):
    with State(case) as s, s.daemon('--lease', '0.5') as d, Client(d) as slow:
        slow.submit(5, source=qk.SOURCE_Z2)
        results = slow.results(5)
        with Client(d) as c:
            refusals = 0
            while c.submit(5, source=qk.SOURCE_Z2, expect=None) is None and c.receive()[0] == 'rejected':
                refusals += 1
                slow.ping()
                slow.control.poll(20)
            assert refusals > 10 and len(s.spool()) == 3
            for r in results:
                assert slow.fetch(r)[0] == r.rhs
                c.ping()
            slow.ack(1)


@tap.test
def a_disk_that_fails_loses_nothing_on_the_way_out(case):
    with State(case) as s, s.daemon(env={'QK_FAULTS': 'write:2+'}) as d:  # the journal's first transaction is the request
        with Client(d) as c:
            c.submit(5, source=qk.SOURCE_Z2, detach_ms=HOUR)
            c.send(goodbye=qk.Goodbye())
        with Client(d) as c:
            refused = c.submit(5, source=qk.SOURCE_Z2, expect='rejected')
            assert refused.status == STATUS['BUSY'], refused
        d.status_when(lambda _: s.spool() == [])


@tap.test
def what_was_damaged_has_expired(case):
    with State(case) as s, s.daemon() as d:
        away = leave(d)
        with Client(d) as c:
            insist(c)
            finish(c)
            c.send(goodbye=qk.Goodbye())
        name = os.path.join(s.dir, 'spool', s.spool()[0])
        with open(name, 'r+b') as f:
            f.seek(1000)
            f.write(b'damage')
        with Client(d, away) as c:
            c.send(attach=qk.Attach(request=1))
            c.expect('attached')
            results = c.results(5)
            c.send(grant=qk.Grant(request=1, rhs=results[0].rhs, until=BYTES))
            e = c.error('EXPIRED', fatal=False)
            assert 'checksum' in e.text and e.request == 1, e
            d.status_when(lambda _: not os.path.exists(name))
            for r in results[1:]:
                assert c.fetch(r)[0] == 10 + r.rhs
            c.ack(1)
            c.send(goodbye=qk.Goodbye())
        d.status_when(lambda s: s.counters.sessions == 0)
        assert d.terminate() == 0 and s.spool() == []


@tap.test
def a_file_of_another_solution_is_not_taken_for_it(case):
    """Two have changed places while no quarkd ran: each is a whole file with the checksum of its bytes."""
    with State(case) as s:
        with s.daemon() as d:
            away = leave(d)
            with Client(d) as c:
                insist(c)
                finish(c)
                c.send(goodbye=qk.Goodbye())
            d.status_when(lambda r: r.counters.sessions == 1)
            d.process.kill()
            d.process.wait()
        s.end_the_machine()
        one, two = (os.path.join(s.dir, 'spool', name) for name in s.spool()[:2])
        os.rename(one, one + '.tmp')
        os.rename(two, one)
        os.rename(one + '.tmp', two)
        with s.daemon(env={'FAKE_BEFORE': '1'}) as d, Client(d, away) as c:
            c.send(attach=qk.Attach(request=1))
            c.expect('attached', skip=('progress', 'credit', 'result'))
            wrong = {int(path.rsplit('-', 1)[1]) - (1 << 16) for path in (one, two)}
            for r in c.results(5):
                if r.rhs in wrong:
                    c.send(grant=qk.Grant(request=1, rhs=r.rhs, until=BYTES))
                    assert 'another file' in c.error('EXPIRED', fatal=False).text
                else:
                    assert c.fetch(r)[0] == 10 + r.rhs


@tap.test
def a_folder_that_was_replaced_is_noticed(case):
    """What is in the one that was opened comes back; nothing that goes into it counts as being on the disk."""
    with State(case) as s, s.daemon() as d:
        away = leave(d)
        with Client(d) as c:
            insist(c)
            finish(c)
            c.send(goodbye=qk.Goodbye())
        d.status_when(lambda r: r.counters.sessions == 1)
        assert len(s.spool()) == 3
        os.rename(s.dir + '/spool', s.dir + '/before')
        os.mkdir(s.dir + '/spool', 0o700)
        come_for(d, away)
        d.status_when(lambda _: os.listdir(s.dir + '/before') == [])
        with Client(d) as c:
            b = np.ones(BYTES // 16, complex)
            c.upload(c.submit(1), [b])
            assert 'not the folder' in d.log('rhs 0: its upload is not on disk').string
            assert s.spool() == [] and os.listdir(s.dir + '/before') == []


@tap.test
def it_needs_a_state_folder(case):
    done = case.run('--gauge', 'fake', '--mass', '0.1', '--spill', '1M')
    assert done.returncode == 64 and 'spill needs state' in done.stderr, done


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
