#!/usr/bin/env python3
"""quarkd on a state folder whose disk is full, broken, read-only, slow, or goes away: test_disk.py QUARKD SHIM"""
import contextlib
import errno
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import tap

try:
    import numpy as np
    from disk import ALL, ERROR, KINDS, MET, OPEN, READ, ROOM, SYNC, Disk
    from disk_case import DiskCase, end, hears_nothing_but_pongs, mount, page, page_when, twice_mounted, unmount
    from front_case import LATER, check_solves, descriptors, fake, field, held, once_more
    from front_driver import STATUS, TIMEOUT, Client, qk
    from front_keys import Keys
    from zmtp import COMMAND, frame, peers
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

HTTP = ('--http', '127.0.0.1:0')
HOUR = 3600 * 1000
CAUSES = {errno.ENOSPC: 'No space left on device', errno.EIO: 'Input/output error', errno.EROFS: 'Read-only file system',
          errno.EDQUOT: 'Disk quota exceeded'}


@tap.test
def a_disk_that_fails_is_no_reason_to_tell_what_is_not_there(case):
    """Of an upload and of a solve: neither CREDIT nor RESULT, also for who has no message waiting; what was told before is there."""
    for error in (errno.ENOSPC, errno.EIO):
        with case.state() as (state, disk):
            b = field()
            with held(state) as (d, go), Client(d) as uploading, Client(d) as solving:
                accepted = uploading.submit(2, detach_ms=HOUR)
                solving.submit(1, source=qk.SOURCE_Z2, max_iter=fake.WHEN_TOLD, detach_ms=HOUR)
                d.status_when(lambda s: s.counters.running == 1)
                disk.fails(error)
                uploading.upload(accepted, [b])
                d.status_when(lambda s: s.counters.bytes_in == b.nbytes)
                hears_nothing_but_pongs(uploading)
                go()
                d.status_when(lambda s: s.counters.converged == 2)
                hears_nothing_but_pongs(solving)
                hears_nothing_but_pongs(uploading)
                end(d)
            disk.works()
            with state.daemon(env=LATER) as d, Client(d, uploading.client_id) as c, Client(d, solving.client_id) as other:
                assert c.welcome.resumed and other.welcome.resumed
                assert once_more(c, 2, 1, detach_ms=HOUR).upload_next == 0
                once_more(other, 1, 1, source=qk.SOURCE_Z2, max_iter=fake.WHEN_TOLD, detach_ms=HOUR)


@tap.test
def what_was_held_back_is_told_when_the_disk_works_again(case):
    with case.state() as (state, disk):
        fields = [field() for _ in range(6)]
        with state.daemon() as d, Client(d) as c:
            accepted = c.submit(6)
            disk.fails(errno.ENOSPC)
            c.upload(accepted, fields)
            d.status_when(lambda s: s.counters.converged == 6)
            hears_nothing_but_pongs(c)
            assert once_more_is_not_answered(c)
            disk.works()
            assert c.expect('accepted', skip=('progress', 'credit', 'result')).upload_next == accepted.field_bytes * 6
            c.later = []
            results = {}
            while len(results) < 6:
                r = c.expect('result')
                results[r.rhs] = r
            for i, b in enumerate(fields):
                assert results[i].status == 0 and np.array_equal(c.fetch(results[i]), 2 * b)
            c.ack(1)
            d.status_when(lambda s: s.counters.requests == 0)
            check_solves(c)
            assert d.terminate() == 0
        state.is_empty()


def once_more_is_not_answered(client):
    client.submit(6, request=1, expect=None)
    hears_nothing_but_pongs(client)
    return True


@tap.test
def a_submit_to_a_disk_that_fails_is_answered(case):
    """The first one, too; with the file, the cause and what to do."""
    for error, text in CAUSES.items():
        with case.state() as (state, disk), state.daemon(*HTTP) as d, Client(d) as c, Client(d) as other:
            disk.fails(error)
            for client in (c, c, other):
                for more in (dict(source=qk.SOURCE_Z2), dict()):
                    refused = client.submit(1, expect='rejected', **more)
                    assert refused.status == STATUS['BUSY'] and refused.retry_after_ms > 0, refused
                    where = os.path.join(state.dir, 'journal.db')
                    assert where in refused.text and text in refused.text and 'new work is accepted' in refused.text or \
                        error == errno.EROFS and 'mount' in refused.text, refused
            assert d.status().counters.requests == 0
            assert disk.get(MET) > 0
            disk.works()
            page_when(d, '/readyz', 200)
            check_solves(c)
            check_solves(other)


@tap.test
def what_was_refused_is_not_there_after_a_restart(case):
    """Wherever the commit that failed has stopped."""
    for kinds in (SYNC, ALL):
        with case.state() as (state, disk):
            with state.daemon() as d, Client(d) as c:
                kept = c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, detach_ms=HOUR).request
                disk.fails(errno.EIO, kinds)
                assert c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, detach_ms=HOUR, expect='rejected').status == STATUS['BUSY']
                disk.works()
                d.status_when(lambda s: not s.HasField('trouble'))
                end(d)
            with state.daemon(env=LATER) as d, Client(d, c.client_id) as c:
                assert d.status().counters.requests == 1
                once_more(c, 1, kept, source=qk.SOURCE_Z2, max_iter=fake.HOLD, detach_ms=HOUR)


@tap.test
def a_journal_that_cannot_be_written_is_seen_from_outside(case):
    with case.state() as (state, disk), state.daemon(*HTTP) as d, Client(d) as c:
        assert page(d, '/readyz') == (200, 'ready\n') and page(d, '/healthz') == (200, 'alive\n')
        assert not d.status().HasField('trouble') and '\nquarkd_journal_trouble 0\n' in page(d, '/metrics')[1]
        disk.fails(errno.EIO)
        c.submit(1, source=qk.SOURCE_Z2, expect='rejected')
        for path in ('/readyz', '/healthz'):
            status, text = page(d, path)
            assert status == 503 and 'journal.db' in text and 'Input/output error' in text, text
        assert '\nquarkd_journal_trouble 1\n' in page(d, '/metrics')[1]
        trouble = d.status().trouble
        assert state.dir in trouble and 'Input/output error' in trouble, trouble
        assert d.log('it cannot be written, no new work is accepted: .*journal.db: Input/output error')
        disk.works()
        page_when(d, '/readyz', 200)
        assert page(d, '/healthz')[0] == 200 and not d.status().HasField('trouble')
        assert d.log('it can be written again')
        assert len([line for line in d.lines if 'no new work is accepted' in line]) == 1, d.lines


@tap.test
def a_disk_that_works_again_is_used_again(case):
    """Also where nothing waits to be written."""
    with case.state() as (state, disk), state.daemon(*HTTP) as d:
        for _ in range(3):
            with Client(d) as c:
                disk.fails(errno.ENOSPC)
                c.submit(1, source=qk.SOURCE_Z2, expect='rejected')
                c.send(goodbye=qk.Goodbye())
                d.status_when(lambda s: s.counters.sessions == 0)
                disk.works()
                page_when(d, '/readyz', 200)
            with Client(d) as c:
                check_solves(c)
                c.send(goodbye=qk.Goodbye())
            d.status_when(lambda s: s.counters.sessions == 0 and state.spool() == [])
        assert d.terminate() == 0
        state.is_empty()


@tap.test
def what_is_recorded_can_be_fetched_from_a_disk_that_fails(case):
    with case.state() as (state, disk), state.daemon() as d, Client(d) as c:
        b = field()
        c.upload(c.submit(1), [b])
        r = c.expect('result')
        disk.fails(errno.ENOSPC)
        c.submit(1, source=qk.SOURCE_Z2, expect='rejected')
        assert np.array_equal(c.fetch(r), 2 * b)
        disk.works()


@tap.test
def a_disk_that_cannot_be_read_for_a_moment_loses_no_solution(case):
    """It has left memory. What stays unreadable expires in the end."""
    for mends in (True, False):
        with case.state() as (state, disk), state.daemon('--max-memory', str(4 * field().nbytes), '--spill', '1M') as d:
            with Client(d) as away:
                away.submit(1, source=qk.SOURCE_Z2, column=[qk.Column(seed=10)], detach_ms=HOUR)
                away.expect('result')
                away.send(goodbye=qk.Goodbye())
            with Client(d) as c:
                name = 'rejected'
                while name == 'rejected':  # until the other one's has left
                    c.submit(3, source=qk.SOURCE_Z2, expect=None)
                    name = c.receive()[0]
                    c.control.poll(20)
                c.results(3)
                c.ack(c.request)
                d.status_when(lambda s: s.counters.requests == 1)
            with Client(d, away.client_id) as again:
                again.send(attach=qk.Attach(request=1))
                again.expect('attached')
                r = again.expect('result')
                disk.fails(errno.EIO, READ)
                if mends:
                    again.send(grant=qk.Grant(request=1, rhs=0, until=r.bytes))
                    d.log('rhs 0 cannot be read back: .*Input/output error: tried again in 1 s, 4 more times')
                    disk.works()
                    assert again.fetch(r)[0] == 10
                else:
                    again.send(grant=qk.Grant(request=1, rhs=0, until=r.bytes))
                    assert 'Input/output error' in again.error('EXPIRED', fatal=False).text
                    assert len([line for line in d.lines if 'cannot be read back' in line]) == 4


@tap.test
def a_source_is_there_until_its_result_is_in_the_journal(case):
    """A detached upload that was acknowledged is solved, whenever the daemon is killed."""
    with case.state() as (state, disk):
        b = field()
        with held(state) as (d, go), Client(d) as c:
            c.upload(c.submit(1, max_iter=fake.WHEN_TOLD, detach_ms=HOUR), [b])
            while c.expect('credit', skip=('progress',)).next < b.nbytes:
                pass
            d.status_when(lambda s: s.counters.running == 1)
            disk.fails(errno.EIO)
            go()
            d.status_when(lambda s: s.counters.converged == 1)
            assert len(state.memory()) == 2, state.memory()  # source and solution
            end(d)
        with contextlib.suppress(FileNotFoundError):  # it might have been synced in time
            for name in state.spool():
                os.unlink(os.path.join(state.dir, 'spool', name))
        disk.works()
        with held(state, env=LATER) as (d, go), Client(d, c.client_id) as c:
            assert once_more(c, 1, 1, max_iter=fake.WHEN_TOLD, detach_ms=HOUR).upload_next == b.nbytes
            go()
            r = c.expect('result')
            assert r.status == 0 and np.array_equal(c.fetch(r), 2 * b)
            c.ack(1)
            d.status_when(lambda s: s.counters.requests == 0)
            assert d.terminate() == 0
        state.is_empty()


@tap.test
def nothing_is_accepted_in_a_folder_that_is_not_there(case):
    """Moved away: refused with path and cause until it is back, then as if nothing had been."""
    with case.state() as (state, _), state.daemon(*HTTP) as d, Client(d) as c:
        b = field()
        c.upload(c.submit(1), [b])
        before = c.expect('result')
        away = state.dir + '.away'
        os.rename(state.dir, away)
        for more in (dict(source=qk.SOURCE_Z2), dict(source=qk.SOURCE_Z2, detach_ms=HOUR), dict()):
            refused = c.submit(1, expect='rejected', **more)
            assert refused.status == STATUS['BUSY'] and state.dir in refused.text, refused
            assert 'No such file or directory' in refused.text and 'room for 0' not in refused.text, refused
        assert page(d, '/readyz')[0] == page(d, '/healthz')[0] == 503 and 'No such file' in d.status().trouble
        os.mkdir(state.dir)  # another folder of that name is not it
        open(os.path.join(state.dir, 'lock'), 'w', encoding='utf-8').close()
        while 'another file' not in page(d, '/readyz')[1]:
            time.sleep(0.02)
        refused = c.submit(1, source=qk.SOURCE_Z2, expect='rejected')
        assert refused.status == STATUS['BUSY'] and 'another file' in refused.text, refused
        os.unlink(os.path.join(state.dir, 'lock'))
        os.rmdir(state.dir)
        os.rename(away, state.dir)
        page_when(d, '/readyz', 200)
        assert np.array_equal(c.fetch(before), 2 * b)
        c.ack(1)
        check_solves(c)
        d.status_when(lambda s: s.counters.requests == 0)
        assert d.terminate() == 0
        state.is_empty()


@tap.test
def a_folder_that_goes_is_noticed_by_itself(case):
    """Nobody submits; each file that counts."""
    with case.state() as (state, _), state.daemon(*HTTP) as d:
        for name in ('lock', 'journal.db', 'journal.db-wal'):
            path = os.path.join(state.dir, name)
            os.rename(path, path + '.away')
            assert path in page_when(d, '/readyz', 503)
            os.rename(path + '.away', path)
            page_when(d, '/readyz', 200)
        with Client(d) as c:
            check_solves(c)


@tap.test
def a_file_system_that_is_unmounted_under_it_is_missed(case):
    """By `umount -l`, which leaves open files as they are; then it is mounted again."""
    with case.state() as (state, _), twice_mounted(state.dir, state.dir + '.store'):
        with state.daemon(*HTTP) as d, Client(d) as c:
            b = field()
            c.upload(c.submit(1), [b])
            before = c.expect('result')
            unmount(state.dir)
            for more in (dict(source=qk.SOURCE_Z2), dict()):
                refused = c.submit(1, expect='rejected', **more)
                assert refused.status == STATUS['BUSY'] and state.dir in refused.text and 'No such file' in refused.text, refused
            assert os.listdir(state.dir) == [], 'it writes below the mount'
            mount('--bind', state.dir + '.store', state.dir)
            page_when(d, '/readyz', 200)
            assert np.array_equal(c.fetch(before), 2 * b)
            check_solves(c)
            end(d)
        with state.daemon(env=LATER) as d, Client(d, c.client_id) as c:
            once_more(c, 1, 1)
            r = c.expect('result')
            assert r.status == 0 and np.array_equal(c.fetch(r), 2 * b)


@tap.test
def a_session_after_another_on_its_connection_hears_nothing_of_its_requests(case):
    """While the disk stalls a client leaves, and greets again by the same connection: it is told of its new request alone."""
    with case.state() as (state, disk), state.daemon() as d, Client(d) as c, Client(d) as by:
        disk.stalls(600000, SYNC)
        c.submit(1, source=qk.SOURCE_Z2, sink=qk.SINK_NONE, expect=None)
        by.ping()
        d.status_when(lambda s: s.counters.converged == 1)
        c.send(goodbye=qk.Goodbye())
        c.send(hello=qk.Hello(version=1, client_id=c.client_id, user='tester', program='test'))
        c.request = 0
        c.submit(1, source=qk.SOURCE_Z2, sink=qk.SINK_NONE, max_iter=fake.HOLD, expect=None)
        d.status_when(lambda s: s.counters.running == 1)
        disk.works()
        heard = []
        while c.control.poll(500 if 'accepted' in heard else TIMEOUT):
            heard.append(c.receive()[0])
        assert [name for name in heard if name != 'progress'] == ['welcome', 'accepted'], heard


@tap.test
def a_disk_without_room_for_another_file_loses_nothing(case):
    """No inode is left, or the user has as many as the quota allows, and files that are open can be written: the log names the upload that
    would not outlive the machine, which goes on and outlives the daemon."""
    for error in (errno.ENOSPC, errno.EDQUOT):
        with case.state() as (state, disk):
            b = field()
            request = dict(max_iter=fake.WHEN_TOLD, detach_ms=HOUR)
            with held(state) as (d, _), Client(d) as c:
                disk.fails(error, OPEN)
                c.upload(c.submit(1, **request), [b])
                assert d.log('rhs 0: its upload is not on disk: .*/spool/1-0: ' + CAUSES[error])
                while once_more(c, 1, 1, **request).upload_next != b.nbytes:  # which is told when it is recorded
                    pass
                end(d)
            disk.works()
            with held(state, env=LATER) as (d, go), Client(d, c.client_id) as c:
                assert once_more(c, 1, 1, **request).upload_next == b.nbytes
                go()
                r = c.expect('result')
                assert r.status == 0 and np.array_equal(c.fetch(r), 2 * b)


@tap.test
def a_disk_that_cannot_tell_its_room_takes_no_uploads(case):
    """What is not uploaded goes on."""
    with case.state() as (state, disk), state.daemon(*HTTP) as d, Client(d) as c:
        disk.fails(errno.EIO, ROOM)
        disk.when_asked()
        refused = c.submit(1, expect='rejected')
        assert refused.status == STATUS['BUSY'] and os.path.join(state.dir, 'spool') in refused.text, refused
        assert 'Input/output error' in refused.text and d.status().trouble == refused.text, refused
        assert page(d, '/readyz') == (503, refused.text + '\n') and page(d, '/healthz')[0] == 200
        c.submit(1, source=qk.SOURCE_Z2, sink=qk.SINK_NONE)
        c.results(1)
        disk.works()
        page_when(d, '/readyz', 200)
        check_solves(c)


@tap.test
def who_comes_behind_a_crowd_keeps_its_connection(case):
    """Thousands come and go while the disk stalls: what is heard of them late is not taken for the end of the one who has a descriptor of
    theirs now."""
    with case.state() as (state, disk), state.daemon() as d, Client(d) as c:
        host, port = d.endpoint.rpartition('/')[2].split(':')
        disk.stalls(60000)
        c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, expect=None)
        disk.when_met()
        before = descriptors(d)
        for _ in range(5000):
            socket.create_connection((host, int(port)), timeout=20).close()
        while descriptors(d) > before:
            time.sleep(0.01)
        with Client(d, hello=False) as late:
            while descriptors(d) < before + 2:
                time.sleep(0.01)
            disk.works()
            late.hello()
            for _ in range(100):
                late.ping()
        c.expect('accepted', skip=('progress',))


def break_off(peer):
    """With a reset in place of an end."""
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    peer.socket.close()


@tap.test
def who_breaks_off_before_it_is_read_ends_nothing(case):
    """Peers fill their queues while the disk stalls, and reset their connections. A libzmq that is not guarded ends the process when the
    next heartbeat is due, or when it finds a PING among what they had sent."""
    ask = frame(qk.ClientMessage(status=qk.StatusRequest()).SerializeToString())
    ping = frame(b'\x04PING\0\x64', COMMAND)
    with case.state() as (state, disk), state.daemon() as d, Client(d) as c, contextlib.ExitStack() as stack:
        c.ping()
        before = descriptors(d)
        many = stack.enter_context(peers(d.endpoint, 8))
        for peer in many:
            peer.greet()
        disk.stalls(60000)
        c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, expect=None)
        disk.when_met()
        for i, peer in enumerate(many):
            peer.send((ask + ping if i % 2 else ask) * 400)
            break_off(peer)
        with contextlib.suppress(subprocess.TimeoutExpired):
            d.process.wait(7)  # a heartbeat was due every 5 s
        assert d.process.poll() is None, d.said()
        disk.works()
        c.expect('accepted', skip=('progress',))
        c.ping()
        while descriptors(d) > before:  # until the broken ones have been let go
            c.ping()


@tap.test
def a_daemon_that_cannot_record_its_end_leaves_what_its_rows_need(case):
    """Stopped while the disk fails: the next one goes on."""
    with case.state() as (state, disk):
        b = field()
        with held(state) as (d, go), Client(d) as c:
            c.upload(c.submit(1, max_iter=fake.WHEN_TOLD, detach_ms=HOUR), [b])
            while c.expect('credit', skip=('progress',)).next < b.nbytes:
                pass
            d.status_when(lambda s: s.counters.running == 1)
            disk.fails(errno.EIO)
            go()
            d.status_when(lambda s: s.counters.converged == 1)
            c.send(shutdown=qk.Shutdown(now=True))
            d.process.wait()
        disk.works()
        with held(state, env=LATER) as (d, go), Client(d, c.client_id) as c:
            assert once_more(c, 1, 1, max_iter=fake.WHEN_TOLD, detach_ms=HOUR).upload_next == b.nbytes
            go()
            r = c.expect('result')
            assert r.status == 0 and np.array_equal(c.fetch(r), 2 * b)


@tap.test
def what_does_not_fit_leaves_the_room_to_what_does(case):
    """At a clean end: of kept solutions and correlators, none of which could be made again, the small ones."""
    with case.state() as (state, disk):
        with state.daemon() as d, Client(d) as c:
            keep = c.keep(detach_ms=HOUR)
            one = qk.Contraction(request_a=keep, channel=[qk.Channel(kind=qk.CHANNEL_MESON, source=15)])
            c.send(contract=qk.Contract(request=keep + 1, detach_ms=HOUR, contraction=one))
            c.expect('accepted')
            assert c.expect('result').status == 0
            c.send(goodbye=qk.Goodbye())
            d.status_when(lambda s: s.counters.sessions == 1)
            disk.has_room(40000)
            d.process.terminate()
            assert d.wait() == 0 and d.log('12 fields stay in /dev/shm')
        assert len(state.spool()) == 1, state.spool()


@tap.test
def an_output_whose_end_was_not_recorded_is_known_again(case):
    """It has its name, and the daemon is stopped while it cannot note that: the next one does not take the file for another's."""
    with case.state() as (state, disk), tempfile.TemporaryDirectory() as root:
        path = os.path.join(os.path.realpath(root), 'x.raw')
        request = dict(source=qk.SOURCE_Z2, max_iter=fake.WHEN_TOLD, detach_ms=HOUR, sink=qk.SINK_FILE, sink_file=qk.File(path=path))
        with held(state, '--file-roots', root) as (d, go), Client(d) as c:
            c.submit(1, **request)
            d.status_when(lambda s: s.counters.running == 1)
            disk.fails(errno.EIO)
            go()
            d.status_when(lambda _: os.path.exists(path))
            assert d.log('the solutions are written to their file')
            c.send(shutdown=qk.Shutdown(now=True))
            d.process.wait()
        disk.works()
        with held(state, '--file-roots', root, env=LATER) as (d, go), Client(d, c.client_id) as c:
            once_more(c, 1, 1, **request)
            threading.Thread(target=go, daemon=True).start()  # nobody may be there to hear it
            r = c.expect('result', skip=('progress',))
            assert r.status == 0, r
            c.ack(1)
            d.status_when(lambda _: os.listdir(root) == ['x.raw'])


@tap.test
def a_key_that_cannot_be_read_for_a_moment_counts_again(case):
    """Its file and its folder are the same before and after."""
    with tempfile.TemporaryDirectory() as folder:
        keys = Keys(folder)
        ada, disk = keys.add('ada'), Disk(case.shim, keys.folder)
        with case.daemon(*keys.options, env=disk.env) as d:
            d.curve = ada
            check_solves_once(d)
            disk.set(ERROR, errno.EIO)
            disk.set(KINDS, READ)
            bob = keys.add('bob')
            assert d.log('ada: Input/output error; nobody gets in') and d.log('bob: Input/output error; nobody gets in')
            met = disk.get(MET)
            end = time.monotonic() + TIMEOUT
            while disk.get(MET) < met + 4:  # it tries again
                assert time.monotonic() < end, 'it does not'
                time.sleep(0.1)
            assert sum('ada: Input/output error' in line for line in d.lines) == 1, 'it tells that again and again'
            disk.works()
            assert d.log(': 2 authorised keys')
            for d.curve in (ada, bob):
                check_solves_once(d)


@tap.test
def a_setup_is_dropped_or_the_default_once_that_is_recorded(case):
    """While nothing can be recorded both are refused; what the client was told is what the next daemon does."""
    with case.state() as (state, disk):
        with state.daemon() as d, Client(d, hello=False) as c:
            c.send(load=qk.Load(name='second', kappa=0.1))
            c.expect('setup')
            d.status_when(lambda s: [x.state for x in s.setups] == [qk.STATE_READY] * 2)
            disk.fails(errno.EIO)
            for _ in range(2):  # before it is known that nothing can be recorded, and after
                for order in (dict(make_default=qk.MakeDefault(name='second')), dict(drop=qk.Drop(name='second'))):
                    c.send(**order)
                    e = c.expect('error')
                    assert e.status in (STATUS['IO_ERROR'], STATUS['BUSY']) and not e.fatal, e
            assert [(x.name, x.is_default) for x in d.status().setups] == [('main', True), ('second', False)]
            end(d)
        disk.works()
        with state.daemon() as d:
            s = d.status_when(lambda s: [x.state for x in s.setups] == [qk.STATE_READY] * 2)
            assert [(x.name, x.is_default) for x in s.setups] == [('main', True), ('second', False)]


@tap.test
def an_engine_that_could_not_be_recorded_is_recorded_later(case):
    """It was started while the disk failed; a front that is killed after that leaves no engine that the next one does not know."""
    with case.state() as (state, disk), state.daemon(*HTTP) as d:
        before = d.status().engine.pid
        disk.fails(errno.EIO)
        os.kill(before, signal.SIGKILL)
        engine = d.status_when(lambda s: s.state == qk.STATE_READY and s.engine.pid != before).engine.pid
        assert d.log('a note: .*goes with the next commit')
        disk.works()
        page_when(d, '/readyz', 200)
        end(d)
        with contextlib.closing(state.journal()) as db:
            (note,), = db.execute("SELECT value FROM note WHERE key LIKE 'engine %'")
        assert int(note.split()[0]) == engine, (note, engine)


@tap.test
def a_write_ahead_log_that_cannot_be_emptied_is_told(case):
    """Once a minute, though it is tried every second; commits would succeed."""
    with case.state() as (state, disk), state.daemon() as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_Z2)
        c.results(1)
        d.status()
        disk.fails(errno.EIO)
        assert d.log(r'journal\.db: SQLite cannot copy the write-ahead log')
        met = disk.get(MET)
        d.status_when(lambda _: disk.get(MET) > met + 2)
        disk.works()
        d.status_when(lambda s: os.path.getsize(os.path.join(state.dir, 'journal.db-wal')) == 0)
        assert len([line for line in d.lines if 'cannot copy the write-ahead log' in line]) == 1


def check_solves_once(d):
    with Client(d) as c:
        check_solves(c)


if __name__ == '__main__':
    import disk_slow  # noqa: F401 (its tests run, too)
    import disk_spool  # noqa: F401
    tap.run(DiskCase(*sys.argv[1:]), beside=4)
