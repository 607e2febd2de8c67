"""Part of test_disk.py: a disk that is slow, or stalls."""
import os
import tempfile
import time

import tap

try:
    import numpy as np
    from disk import ALL, KINDS, MET, NAMES, OPEN, PLACE, READ, ROOM, STALL
    from disk_case import hears_nothing_but_pongs, page
    from front_case import fake, field
    from front_driver import STATUS, Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

HTTP = ('--http', '127.0.0.1:0')
HOUR = 3600 * 1000


@tap.test
def who_waits_for_a_stat_that_hangs_stays(case):
    """For longer than the leases are, which have been 3 s."""
    with case.state() as (state, disk), state.daemon('--lease', '3') as d, Client(d) as c, Client(d) as quiet:
        b = field()
        c.upload(c.submit(1), [b])
        before = c.expect('result')
        disk.stalls(60000, PLACE)
        c.submit(1, expect=None)
        disk.when_met()
        time.sleep(4.5)
        disk.works()
        accepted = c.expect('accepted', skip=('progress', 'credit'))
        quiet.ping()
        c.upload(accepted, [b])
        for r in (before, c.expect('result')):
            assert np.array_equal(c.fetch(r), 2 * b)
        assert d.status().counters.sessions == 2 and not any('lease expired' in line for line in d.lines)


@tap.test
def a_disk_that_is_slow_delays_and_loses_nothing(case):
    with case.state() as (state, disk), state.daemon('--lease', '5') as d, Client(d) as c, Client(d) as other:
        disk.stalls(300)
        b = field()
        accepted = c.submit(1)
        c.upload(accepted, [b])
        r = c.expect('result')
        other.ping()
        assert disk.get(MET) > 0
        disk.works()
        assert np.array_equal(c.fetch(r), 2 * b)


@tap.test
def nobody_else_waits_for_a_slow_disk(case):
    """Who speaks during the commit of a request is answered at once; who has changed something hears no more than that of the journal."""
    with case.state() as (state, disk), state.daemon() as d, Client(d) as c, Client(d) as other:
        d.status_when(lambda s: os.path.getsize(os.path.join(state.dir, 'journal.db-wal')) == 0)
        disk.stalls(60000)
        c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, expect=None)
        disk.when_met()
        hears_nothing_but_pongs(other)
        hears_nothing_but_pongs(c)
        assert disk.get(MET) == 1
        disk.works()
        c.expect('accepted', skip=('progress',))
        c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD)
        d.status_when(lambda s: os.path.getsize(os.path.join(state.dir, 'journal.db-wal')) == 0)  # soon: the disk is not slow any more


@tap.test
def a_request_that_vanishes_before_it_is_recorded_keeps_nobody_waiting(case):
    """Submitted, cancelled and acknowledged during one commit: there is nothing to record of it, and nobody else does anything."""
    with case.state() as (state, disk), state.daemon() as d, Client(d) as c, Client(d) as other:
        disk.stalls(60000)
        other.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, expect=None)
        disk.when_met()
        c.submit(1, expect=None)
        c.send(cancel=qk.Cancel(request=1))
        c.ack(1)
        hears_nothing_but_pongs(c)
        disk.works()
        other.expect('accepted')
        c.expect('accepted')
        assert c.expect('result').status == STATUS['CANCELLED']
        assert d.status().counters.requests == 1
        c.ping()


@tap.test
def results_that_are_asked_for_again_take_no_memory(case):
    """A SUBMIT that is repeated while its request is not recorded is owed each RESULT once."""
    with case.state() as (state, disk), state.daemon() as d, Client(d) as c:
        n, request = 8, dict(request=1, source=qk.SOURCE_Z2, sink=qk.SINK_NONE, expect=None)
        disk.stalls(60000)
        c.submit(n, **request)
        disk.when_met()
        d.status_when(lambda s: s.counters.converged == n)
        for _ in range(20):
            c.submit(n, **request)
        hears_nothing_but_pongs(c)
        disk.works()
        c.expect('accepted')
        d.status_when(lambda s: not s.HasField('trouble'))
        c.ping()
        told = [body.rhs for name, body in c.later if name == 'result']
        assert set(told) == set(range(n)) and len(told) <= 2 * n, told


@tap.test
def a_solution_that_does_not_get_to_the_disk_holds_no_other_thread(case):
    """It is to make room; meanwhile a file of a client is written by the one thread that files of clients have here."""
    memory = 8 * field().nbytes  # seven solutions and what belongs to them
    with case.state() as (state, disk), tempfile.TemporaryDirectory() as root, \
            state.daemon('--max-memory', str(memory), '--spill', '1M', '--file-roots', root, env={'UV_THREADPOOL_SIZE': '1'}) as d:
        with Client(d) as away:
            away.submit(5, source=qk.SOURCE_Z2, detach_ms=HOUR)
            away.results(5)
            away.send(goodbye=qk.Goodbye())
        d.status_when(lambda s: s.counters.sessions == 1)
        with Client(d) as c:
            disk.stalls(600000, OPEN)
            assert c.submit(5, source=qk.SOURCE_Z2, expect='rejected').status == STATUS['BUSY']
            disk.when_met()
            path = os.path.join(os.path.realpath(root), 'x.raw')
            c.submit(1, source=qk.SOURCE_Z2, sink=qk.SINK_FILE, sink_file=qk.File(path=path))
            r = c.expect('result')
            assert r.status == 0 and os.path.exists(path), r
            disk.works()
            d.status_when(lambda _: state.spool())


@tap.test
def a_file_that_cannot_be_removed_holds_no_memory(case):
    """The journal is elsewhere; the folder hangs in the removal of a source that is not needed any more."""
    with tempfile.TemporaryDirectory() as journal, case.state() as (state, disk):
        with state.daemon('--journal', os.path.join(journal, 'journal')) as d, Client(d) as c:
            b = field()
            c.upload(c.submit(1), [b])
            d.log('is on the disk')
            r = c.expect('result')
            disk.stalls(600000, NAMES)
            for fetched in (r, None):
                if not fetched:
                    c.upload(c.submit(1), [b])
                    fetched = c.expect('result')
                assert np.array_equal(c.fetch(fetched), 2 * b)
                c.ack(c.request)
                d.status_when(lambda s: s.counters.requests == 0 and not state.memory())
            assert disk.get(MET) > 0 and state.spool() == ['1-0'], state.spool()
            disk.works()
            d.status_when(lambda _: not state.spool())


@tap.test
def a_disk_that_stalls_stops_no_solve_and_no_ping(case):
    """For 8 s, whatever is done with it: uploads that were accepted come in, all is solved, and everybody is heard; the lease is shorter. What
    that has changed is told when the disk goes on, with the same bits."""
    with case.state() as (state, disk), state.daemon('--lease', '3') as d, Client(d) as c, Client(d) as other:
        fields = [field() for _ in range(3)]
        accepted = c.submit(3, detach_ms=HOUR)
        c.upload(accepted, fields[:1])
        results = {0: c.expect('result')}
        disk.stalls(60000, ALL)
        begin, worst = time.monotonic(), 0
        c.upload(accepted, fields, begin=fields[0].nbytes)
        disk.when_met()
        other.submit(2, source=qk.SOURCE_Z2, expect=None)
        d.status_when(lambda s: s.counters.converged == 5)
        while time.monotonic() < begin + 8:
            for client in (c, other):
                sent = time.monotonic()
                hears_nothing_but_pongs(client, 1)
                worst = max(worst, time.monotonic() - sent)
            time.sleep(0.05)
        assert worst < 2, worst
        disk.works()
        other.expect('accepted', skip=('progress',))
        assert [r.status for r in other.results(2)] == [0, 0]
        while len(results) < 3:
            name, body = c.receive_new()
            if name == 'result':
                results[body.rhs] = body
        for i, b in enumerate(fields):
            assert results[i].status == 0 and np.array_equal(c.fetch(results[i]), 2 * b)


@tap.test
def a_spool_that_stalls_stops_nothing(case):
    """All is told and fetched while the first source waits for its file."""
    with case.state() as (state, disk), state.daemon(*HTTP) as d, Client(d) as c:
        disk.stalls(60000, OPEN)
        fields = [field() for _ in range(8)]
        for (r, x), b in zip(c.solve(fields), fields):
            assert r.status == 0 and np.array_equal(x, 2 * b)
        text = page(d, '/metrics')[1]
        waiting, oldest = (float(text.split('\nquarkd_spool_%s ' % name)[1].split()[0]) for name in ('waiting', 'oldest_seconds'))
        assert disk.get(MET) > 0 and waiting == 0 and oldest == 0, (waiting, oldest)  # what was acknowledged need not be there
        c.upload(c.submit(3, max_iter=fake.HOLD), fields[:3])
        while 'quarkd_spool_waiting 3\n' not in page(d, '/metrics')[1]:
            time.sleep(0.01)
        disk.works()
        while 'quarkd_spool_waiting 0\n' not in page(d, '/metrics')[1]:
            time.sleep(0.01)
        text = page(d, '/metrics')[1]
        loop, writer = (float(text.split('journal_seconds_total{where="%s"} ' % who)[1].split()[0]) for who in ('loop', 'writer'))
        assert 0 < loop < 1 and writer > 0, (loop, writer)
        assert len([name for name in state.spool() if name.startswith('2-')]) == 3


@tap.test
def a_disk_that_does_not_tell_its_room_holds_nobody(case):
    """As a server of NFS that is gone: uploads are accepted and solved, everybody is heard."""
    with case.state() as (state, disk), state.daemon() as d, Client(d) as c, Client(d) as other:
        disk.stalls(600000, ROOM)
        for _ in range(2):
            b = field()
            c.upload(c.submit(1), [b])
            r = c.expect('result')
            assert r.status == 0 and np.array_equal(c.fetch(r), 2 * b), r
            other.ping()
            disk.when_met()  # the second time it hangs for sure
        assert d.status().counters.converged == 2
        disk.works()


@tap.test
def a_file_system_that_does_not_answer_at_all_holds_nobody(case):
    """Uploads are submitted, which must be recorded; the others go on."""
    with case.state() as (state, disk), state.daemon() as d, Client(d) as c, Client(d) as other:
        disk.stalls(600000, ALL | PLACE | READ | ROOM)
        for client, more in ((c, {}), (other, dict(source=qk.SOURCE_Z2))):
            client.submit(1, expect=None, **more)
            disk.when_met()
            hears_nothing_but_pongs(c)
            hears_nothing_but_pongs(other)
        d.status_when(lambda s: s.counters.converged == 1)
        disk.works()
        b = field()
        c.upload(c.expect('accepted', skip=('progress',)), [b])
        assert np.array_equal(c.fetch(c.expect('result')), 2 * b)
        other.expect('accepted', skip=('progress',))
        assert other.expect('result').status == 0


@tap.test
def no_more_is_promised_than_there_was(case):
    """The disk had room for ten fields and says nothing any more. What is accepted counts, and goes on doing so when it has been written."""
    with case.state() as (state, disk), state.daemon(*HTTP) as d, Client(d) as c, Client(d) as other:
        fields = [field() for _ in range(6)]
        disk.has_room(10 * fields[0].nbytes)
        disk.when_asked()
        disk.stalls(600000, ROOM)
        accepted = c.submit(6, max_iter=fake.HOLD)
        for has_written in (False, True):
            refused = other.submit(5, expect='rejected')
            assert refused.status == STATUS['BUSY'] and 'has room for %d:' % (4 * fields[0].nbytes) in refused.text, (has_written, refused)
            if not has_written:
                c.upload(accepted, fields)
                d.status_when(lambda _: len(state.spool()) == 6 and 'quarkd_spool_waiting 0\n' in page(d, '/metrics')[1])
        other.submit(4, max_iter=fake.HOLD)
        refused = other.submit(1, expect='rejected')
        assert 'has room for 0:' in refused.text, refused
        disk.set(KINDS, 0)
        disk.set(STALL, 0)
        disk.when_asked()  # ten, it says again: what was written is in that
        other.submit(6, max_iter=fake.HOLD)
