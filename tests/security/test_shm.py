#!/usr/bin/env python3
"""Fields in /dev/shm: who takes their names, what happens when it is full, and who may hand them over: test_shm.py QUARKD QUARKCTL
QUARK-ENGINE"""
import contextlib
import glob
import os
import re
import subprocess
import sys
import tempfile
import time

import tap

try:
    import engine_driver
    from front_case import LATER, Case, State, check_solves, fake, field, kill
    from front_driver import STATUS, UPLOAD, Client, checksum, frame, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

NOBODY = 65534
SITES = 8**4
FIELD = SITES * 24 * 8
FIELD_4 = 4**4 * 24 * 8
HOUR = 3600 * 1000


class ShmCase(Case):
    def __init__(self, quarkd, quarkctl, engine):
        super().__init__(os.path.abspath(quarkd))
        self.engine = os.path.abspath(engine)
        self.quarkctl = os.path.abspath(quarkctl)


def as_nobody(act):
    """Runs it in a process of another user; needs root."""
    if os.geteuid() != 0:
        raise tap.Skip('needs root')
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            act()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@contextlib.contextmanager
def taken(names):
    """Objects of another user with these names; none of them is anybody else's."""
    def take():
        for name in names:
            os.close(os.open('/dev/shm/' + name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
    try:
        as_nobody(take)
        yield
    finally:
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink('/dev/shm/' + name)


# ---- names


@tap.test
def names_that_another_user_takes_are_in_nobodys_way(case):
    with case.daemon() as d, Client(d) as c:
        with taken(['quarkd-%d-%d' % (d.process.pid, i) for i in range(300)]):
            check_solves(c, 4)
    with State(case) as s, s.daemon() as d, Client(d) as c:
        with taken(['quarkd-s%016x-%d' % (checksum(os.path.realpath(s.dir).encode()), (1 << 32) + i) for i in range(300)]):
            check_solves(c, 4)
            # whoever looks at what is there knows no name that is to come
            c.submit(1, source=qk.SOURCE_POINT)
            r = c.expect('result')
            number = int(re.search(r'-(\d+)-[0-9a-f]{16}$', s.memory()[0])[1]) if len(s.memory()) == 1 else None
            c.ack(r.request, r.rhs)
            assert number is None or number > 1 << 32
            check_solves(c, 4)


@tap.test
def what_others_put_there_is_neither_swept_nor_adopted(case):
    with State(case) as s:
        with s.daemon() as d, Client(d) as c:
            c.submit(1, source=qk.SOURCE_POINT)
            c.expect('result')
            kill(d)
        name = 'quarkd-s%016x-%d-%016x' % (checksum(os.path.realpath(s.dir).encode()), 7 << 32, 5)
        with taken([name]):
            with s.daemon(env=LATER) as d, Client(d, c.client_id) as c:
                c.submit(1, request=1, source=qk.SOURCE_POINT, expect=None)
                assert c.expect('accepted').repeated_submit and c.expect('result').status == 0
                assert os.path.exists('/dev/shm/' + name)
                c.ack(1, 0)


# ---- a full /dev/shm


def in_small_memory(name):
    """The test once more, where /dev/shm has 8 MiB and is nobody else's; False where this is it."""
    if os.environ.get('QK_SMALL_SHM'):
        return False
    if os.geteuid() != 0:
        raise tap.Skip('needs root')
    script = 'mount -t tmpfs -o size=8m,mode=1777 tmpfs /dev/shm && exec "$@"'
    probe = subprocess.run(['unshare', '-m', '--propagation', 'private', 'sh', '-c', script, 'sh', 'true'], capture_output=True, text=True)
    if probe.returncode != 0:
        raise tap.Skip('no mount namespace: ' + probe.stderr.strip())
    done = subprocess.run(['unshare', '-m', '--propagation', 'private', 'sh', '-c', script, 'sh', sys.executable, os.path.abspath(__file__),
                           *sys.argv[1:]], env={**os.environ, 'QK_SMALL_SHM': name}, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0 and '\nok 1 - ' in done.stdout, done.stdout + done.stderr
    return True


def leave_free(path, left):
    """Takes all of /dev/shm but so many bytes."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    s = os.statvfs('/dev/shm')
    with open(path, 'wb') as f:
        os.posix_fallocate(f.fileno(), 0, s.f_bavail * s.f_frsize - left)


@tap.test
def a_solution_that_found_no_room_is_made_again(case):
    if in_small_memory('a_solution_that_found_no_room_is_made_again'):
        return
    filler, page = '/dev/shm/filler', os.sysconf('SC_PAGE_SIZE')
    with case.daemon('--max-memory', '6M', dims='8x8x8x8') as d, Client(d) as c:
        b = field(SITES)
        accepted = c.submit(1)
        leave_free(filler, FIELD + 4 * page)
        c.upload(accepted, [b])  # the source is there, and nothing is left
        line = d.log('rhs 0 is tried again').string
        assert '/dev/shm' in line and '--max-memory' in line, line
        s = d.status()
        assert s.counters.queued + s.counters.running == 1 and s.counters.failed == 0, s
        os.unlink(filler)
        r = c.expect('result')
        assert r.status == STATUS['OK'] and (c.fetch(r) == 2 * b).all(), r
        c.ack(accepted.request)
        # a client may let go of one that waits
        accepted = c.submit(1)
        leave_free(filler, FIELD + 4 * page)
        c.upload(accepted, [b])
        assert d.log('/2: rhs 0 is tried again')
        c.send(cancel=qk.Cancel(request=accepted.request))
        assert c.expect('result').status == STATUS['CANCELLED']
        os.unlink(filler)
        check_solves_of(c, b)


def check_solves_of(c, b):
    (r, x), = c.solve([b])
    assert r.status == STATUS['OK'] and (x == 2 * b).all()


@tap.test
def so_is_one_of_the_real_engine(case):
    if in_small_memory('so_is_one_of_the_real_engine'):
        return
    filler, page = '/dev/shm/filler', os.sysconf('SC_PAGE_SIZE')
    with case.daemon('--max-memory', '6M', engine=case.engine, gauge='builtin:weak:8x8x8x8:1') as d, Client(d) as c:
        accepted = c.submit(1)
        leave_free(filler, FIELD + 4 * page)
        c.upload(accepted, [field(SITES)])
        line = d.log('rhs 0 is tried again').string
        assert '/dev/shm is full' in line and '--max-memory' in line, line
        os.unlink(filler)
        r = c.expect('result')
        assert r.status == STATUS['OK'] and len(c.fetch(r)) == SITES * 12, r
        assert d.status().engine.restarts == 0


@tap.test
def one_that_never_finds_room_ends_after_twelve_times(case):
    with case.daemon() as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.NO_ROOM)
        r = c.expect('result')
        assert r.status == STATUS['NO_MEMORY'] and '/dev/shm' in r.text, r
        assert d.log('is tried again', count=11) and d.status().counters.failed == 1
        check_solves(c)
        c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.NO_ROOM, deadline_ms=1)
        assert c.expect('result').status in (STATUS['NO_MEMORY'], STATUS['DEADLINE'])


@tap.test
def a_solution_waits_on_the_disk_for_room_in_memory(case):
    if in_small_memory('a_solution_waits_on_the_disk_for_room_in_memory'):
        return
    filler, page = '/dev/shm/filler', os.sysconf('SC_PAGE_SIZE')
    with State(case) as s, s.daemon('--max-memory', str(5 * FIELD), '--spill', '100M', dims='8x8x8x8') as d:
        with Client(d) as away:
            away.submit(4, source=qk.SOURCE_Z2, detach_ms=HOUR)
            assert [r.status for r in away.results(4)] == [0] * 4
            away.send(goodbye=qk.Goodbye())
        with Client(d) as c:
            for _ in range(1000):  # until there is room
                c.submit(4, source=qk.SOURCE_Z2, expect=None)
                if c.receive_new()[0] == 'accepted':
                    break
                c.control.poll(20)
            assert [r.status for r in c.results(4)] == [0] * 4
            c.ack(c.request)
            d.status_when(lambda r: r.counters.held == 4)
        assert len(s.spool()) >= 3
        leave_free(filler, 4 * page)
        with Client(d, away.client_id) as c:
            c.send(attach=qk.Attach(request=1))
            c.expect('attached', skip=('progress', 'credit', 'result'))
            for r in range(4):
                c.send(grant=qk.Grant(request=1, rhs=r, until=FIELD))
            for _ in range(20):  # ticks, in which it might be given up
                assert not c.control.poll(20) or c.receive_new()[0] == 'result'
            assert len(s.spool()) >= 3 and d.status().counters.held == 4
            os.unlink(filler)
            done = set()
            while len(done) < 4:
                chunk = c.chunk()
                if chunk['offset'] + chunk['chunk_bytes'] == FIELD:
                    done.add(chunk['rhs'])
                    c.ack(1, chunk['rhs'])


@tap.test
def a_start_that_finds_no_room_loses_nothing(case):
    """Kept solutions and the sources of what waits are on the disk; there is room for two of them, then for all."""
    if in_small_memory('a_start_that_finds_no_room_loses_nothing'):
        return
    filler, page, fields = '/dev/shm/filler', os.sysconf('SC_PAGE_SIZE'), [field(SITES) for _ in range(3)]
    for kept in (False, True):
        with State(case) as s:
            with s.daemon('--drain-timeout', '0.5', '--max-memory', '6M', dims='8x8x8x8') as d, Client(d) as c:
                if kept:
                    c.keep(3, detach_ms=HOUR)
                    c.send(goodbye=qk.Goodbye())
                else:
                    accepted = c.submit(3, detach_ms=HOUR, max_iter=fake.HOLD_ONCE)
                    c.upload(accepted, fields)
                    assert d.log(r'rhs \d is on the disk', count=3)
                assert drain(d) == (0 if kept else 75)
            assert s.memory() == []
            leave_free(filler, 2 * FIELD + 8 * page)
            before = s.spool()
            assert len(before) == 3
            with s.daemon('--max-memory', '6M', dims='8x8x8x8', wait=None, env=LATER) as d:
                assert d.process.wait(20) == 75, d.lines[-5:]
                line = d.log('nothing is lost').string
                assert '/dev/shm' in line and s.dir in line, line
            assert s.spool() == before and s.memory() == [], (s.spool(), s.memory())
            os.unlink(filler)
            with s.daemon('--max-memory', '6M', dims='8x8x8x8', env=LATER) as d, Client(d, c.client_id) as c:
                if kept:
                    assert d.status().counters.kept == 3
                    continue
                c.send(attach=qk.Attach(request=1))
                c.expect('attached', skip=('progress', 'credit', 'result'))
                for r in c.results(3):
                    assert r.status == 0 and (c.fetch(r) == 2 * fields[r.rhs]).all(), r
                    c.ack(1, r.rhs)


# ---- the end of a front



def drain(d):
    """The exit code of a front that is told to end; the second signal of one that has work left."""
    d.process.terminate()
    assert d.log('draining')
    return d.wait()


def result_of(client, request):
    """Those of others may come before it."""
    while (r := client.expect('result')).request != request:
        pass
    return r


@tap.test
def shared_memory_goes_with_a_clean_end(case):
    fields = [field() for _ in range(4)]
    with State(case) as s:
        with s.daemon('--drain-timeout', '0.5') as d, Client(d) as c:
            ended = c.submit(4, detach_ms=HOUR)
            c.upload(ended, fields)
            assert [r.status for r in c.results(4)] == [0] * 4
            held = c.submit(2, detach_ms=HOUR, max_iter=fake.HOLD_ONCE)
            c.upload(held, fields[:2])
            d.status_when(lambda r: r.counters.running == 2)
            begun = c.submit(2, detach_ms=HOUR)
            c.upload(begun, fields[:1])
            c.data.send(frame(UPLOAD, begun.request, 1, fields[1].tobytes()[:1000], FIELD_4, 0))
            assert c.expect('result').status == 0
            assert d.log(r'rhs \d is on the disk', count=7)
            assert len(s.memory()) > 0
            assert drain(d) == 75
        assert s.memory() == [], s.memory()
        with s.daemon(env=LATER) as d, Client(d, c.client_id) as c:
            assert c.welcome.resumed
            for request in (ended.request, held.request):
                c.send(attach=qk.Attach(request=request))
            results = {}
            while len(results) < 6:
                name, r = c.receive()
                if name == 'result':
                    results[r.request, r.rhs] = r
            for (request, rhs), r in results.items():
                assert r.status == 0 and (c.fetch(r) == 2 * fields[rhs]).all(), r
            for rhs in range(4):
                assert results[ended.request, rhs].attempt == 0
            assert d.status().counters.converged == 2, d.status().counters


@tap.test
def detached_results_outlive_a_clean_end_on_another_node(case):
    b = field()
    with State(case) as s:
        with s.daemon() as d, Client(d) as c:
            keep = c.keep(12, detach_ms=HOUR)
            c.ack(keep, *range(12))
            accepted = c.submit(1, detach_ms=HOUR)
            c.upload(accepted, [b])
            assert c.expect('result').status == 0
            c.send(goodbye=qk.Goodbye())
            assert drain(d) == 0
        assert s.memory() == [], s.memory()
        for end in ('clean', 'kill', 'clean'):
            with s.daemon(env=LATER) as d, Client(d, c.client_id) as c2:
                c2.request = d.status().counters.accepted + 100
                assert c2.welcome.resumed and d.status().counters.kept == 12, d.status().counters
                c2.send(attach=qk.Attach(request=accepted.request))
                c2.expect('attached')
                r = c2.expect('result')
                assert r.attempt == 0 and (c2.fetch(r) == 2 * b).all()
                c2.submit(1, request=1000 + len(end) + d.process.pid, source=qk.SOURCE_SEQUENTIAL,
                          column=[qk.Column(request=keep, rhs=3, gamma=1)])
                r = c2.expect('result')
                assert r.status == 0 and c2.fetch(r)[0] == 2 * 4, r
                c2.ack(r.request, 0)
                c2.send(goodbye=qk.Goodbye())
                if end == 'kill':
                    kill(d)
                    s.end_the_machine()
                else:
                    assert drain(d) == 0
            assert s.memory() == [], (end, s.memory())


@tap.test
def what_is_in_no_folder_stays_and_is_said_to(case):
    """A disk that takes nothing: solutions are made again, the source of one that waits is kept where it is."""
    b = field()
    with State(case) as s:
        with s.daemon('--drain-timeout', '0.5') as d, Client(d) as c:
            os.rmdir(s.dir + '/spool')
            open(s.dir + '/spool', 'w', encoding='utf-8').close()
            accepted = c.submit(1, detach_ms=HOUR, max_iter=fake.HOLD_ONCE)
            c.upload(accepted, [b])
            assert d.log('its upload is not on disk')
            begun = c.submit(1, detach_ms=HOUR)
            c.data.send(frame(UPLOAD, begun.request, 0, b.tobytes()[:1000], FIELD_4, 0))
            d.status_when(lambda r: r.counters.bytes_in == FIELD_4 + 1000)
            assert drain(d) == 75
            assert '1 field stays in memory' in d.log('server: job %s/1: ' % c.client_id.hex()[:8]).string
            assert 'incomplete upload is dropped' in d.log('server: job %s/2: ' % c.client_id.hex()[:8]).string
            assert d.log('1 field stays in /dev/shm')
        assert len(s.memory()) == 1
        os.unlink(s.dir + '/spool')
        with s.daemon(env=LATER) as d, Client(d, c.client_id) as c:
            c.send(attach=qk.Attach(request=accepted.request))
            c.expect('attached', skip=('progress', 'credit', 'result'))
            r = c.expect('result')
            assert r.status == 0 and (c.fetch(r) == 2 * b).all()
            c.ack(r.request, 0)


@tap.test
def a_solution_that_nobody_can_make_again_stays(case):
    """Its upload is on no disk, or the kept solution that it is made of has been released; and the disk takes it no more than them."""
    b = field()
    with State(case) as s:
        with s.daemon() as d, Client(d) as c:
            os.rmdir(s.dir + '/spool')
            open(s.dir + '/spool', 'w', encoding='utf-8').close()
            keep = c.keep(detach_ms=HOUR)
            c.ack(keep, 0)
            uploaded = c.submit(1, detach_ms=HOUR)
            c.upload(uploaded, [b])
            assert c.expect('result').status == 0
            made = c.submit(1, detach_ms=HOUR, source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=keep, rhs=0, gamma=1)])
            assert c.expect('result').status == 0
            c.send(release=qk.Release(request=keep))
            d.status_when(lambda r: r.counters.kept == 0)
            c.send(goodbye=qk.Goodbye())
            assert drain(d) == 0
            assert d.log('2 fields stay in /dev/shm')
        assert len(s.memory()) == 2
        os.unlink(s.dir + '/spool')
        with s.daemon(env=LATER) as d, Client(d, c.client_id) as c:
            for request, right in ((uploaded.request, 2 * b.flat[0]), (made.request, 2)):
                c.send(attach=qk.Attach(request=request))
                c.expect('attached', skip=('progress', 'credit', 'result'))
                r = result_of(c, request)
                assert (r.status, r.attempt) == (0, 0), r
                assert c.fetch(r).flat[0] == right, r
                c.ack(r.request, 0)


@tap.test
def nothing_stays_that_no_row_names_or_the_next_front_makes(case):
    """The source that was read from a file, and a kept solution that was released while another request is being made of it."""
    with State(case) as s, tempfile.TemporaryDirectory() as root:
        b = field()
        with open(root + '/b', 'wb') as f:
            f.write(b.tobytes())
        with s.daemon('--drain-timeout', '0.5', '--file-roots', root) as d, Client(d) as c:
            keep = c.keep()
            c.ack(keep, *range(12))
            c.submit(1, detach_ms=HOUR, max_iter=fake.HOLD_ONCE, source=qk.SOURCE_FILE, source_file=qk.File(path=root + '/b'))
            made = c.submit(1, detach_ms=HOUR, max_iter=fake.HOLD_ONCE, source=qk.SOURCE_SEQUENTIAL,
                            column=[qk.Column(request=keep, rhs=3, gamma=1)])
            d.status_when(lambda r: r.counters.running == 2)
            c.send(release=qk.Release(request=keep))
            c.ping()
            assert drain(d) == 75
        assert s.memory() == [], s.memory()
        with s.daemon('--file-roots', root, env=LATER) as d, Client(d, c.client_id) as c:
            for request, right in ((made.request - 1, 2 * b.flat[0]), (made.request, 2 * 4)):
                c.send(attach=qk.Attach(request=request))
                c.expect('attached', skip=('progress', 'credit', 'result'))
                r = result_of(c, request)
                assert r.status == 0 and c.fetch(r).flat[0] == right, r
                c.ack(request, 0)


@tap.test
def a_solution_that_may_not_be_made_again_stays(case):
    """Of a source in a file, which its client may have removed; with a deadline, which may be over; kept, and others use it."""
    with State(case) as s, tempfile.TemporaryDirectory() as root:
        b = field()
        with open(root + '/b', 'wb') as f:
            f.write(b.tobytes())
        with s.daemon('--drain-timeout', '0.5', '--file-roots', root) as d, Client(d) as c:
            os.rmdir(s.dir + '/spool')
            open(s.dir + '/spool', 'w', encoding='utf-8').close()
            for source in (dict(source=qk.SOURCE_FILE, source_file=qk.File(path=root + '/b')), dict(source=qk.SOURCE_Z2, deadline_ms=3000)):
                c.submit(1, detach_ms=HOUR, **source)
                assert c.expect('result').status == 0
            keep = c.keep(1, detach_ms=HOUR)
            c.submit(1, detach_ms=HOUR, max_iter=fake.HOLD_ONCE, source=qk.SOURCE_SEQUENTIAL,
                     column=[qk.Column(request=keep, rhs=0, gamma=1)])
            d.status_when(lambda r: r.counters.running == 1)
            assert drain(d) == 75
            assert d.log('3 fields stay in /dev/shm')
            ended = time.monotonic()
        os.unlink(s.dir + '/spool')
        os.unlink(root + '/b')
        time.sleep(max(0, ended + 3 - time.monotonic()))  # until the deadline is over
        with s.daemon('--file-roots', root, env=LATER) as d, Client(d, c.client_id) as c:
            for request, right in ((1, 2 * b.flat[0]), (2, 0), (4, 2)):
                c.send(attach=qk.Attach(request=request))
                c.expect('attached', skip=('progress', 'credit', 'result'))
                r = result_of(c, request)
                assert (r.status, r.attempt) == (0, 0), r
                assert c.fetch(r).flat[0] == right, r
                c.ack(request, 0)


@tap.test
def what_was_left_to_a_folder_that_went_elsewhere_is_removed(case):
    """By the next quarkd of the same user, whichever; not while its own folder may come for it, nor what belongs to others."""
    def note_of(s):
        return '/dev/shm/quarkd-dir-%016x' % checksum(os.path.realpath(s.dir).encode())

    def left_behind(s):
        with s.daemon() as d, Client(d) as c:
            c.keep(2, detach_ms=HOUR)
            kill(d)
        assert len(s.memory()) == 2

    def serves_elsewhere(s, front, boot='01234567-89ab-cdef-0123-456789abcdef'):
        with open(s.dir + '/lock', 'w', encoding='utf-8') as f:
            f.write('4711\n%d %s\n' % (front, boot))

    def starts():
        """What it has said."""
        with State(case) as other, other.daemon(wait=None) as d:
            d.log('ready: ')
            return ''.join(d.lines)
    with State(case) as s:
        left_behind(s)
        note = note_of(s)
        with open(note, encoding='utf-8') as f:
            assert f.read() == os.path.realpath(s.dir)
        with open(s.dir + '/lock', encoding='utf-8') as f:
            here = f.read().split()
        assert here[1] == '1' and len(here[2]) == 36, here
        starts()  # its folder may come for it
        serves_elsewhere(s, 2, here[2])  # it has been adopted on this machine
        starts()
        serves_elsewhere(s, 1)  # by the one that left it
        starts()
        with open(s.dir + '/lock', 'w', encoding='utf-8') as f:
            f.write('4711\n')  # a front that is starting
        starts()
        assert len(s.memory()) == 2 and os.path.exists(note)
    with State(case) as second:
        left_behind(second)
        for _ in range(20):  # another test's quarkd may be first
            with State(case) as s:
                left_behind(s)
                serves_elsewhere(s, 2)
                said = starts()
                if 'removed 2 shared-memory objects of state folders' in said:
                    assert s.memory() == [] and not os.path.exists(note_of(s))
                    break
        else:
            raise AssertionError(said)
        assert len(second.memory()) == 2
    with State(case) as s:  # a note that is another's, or of another folder, is none
        left_behind(s)
        with open(note_of(s), 'w', encoding='utf-8') as f:
            f.write(os.path.realpath(s.dir) + '/.')
        serves_elsewhere(s, 2)
        starts()
        assert len(s.memory()) == 2
    with State(case) as s:
        with s.daemon() as d, Client(d) as c:
            check_solves(c)
            c.send(goodbye=qk.Goodbye())
            assert drain(d) == 0
        assert not os.path.exists(note_of(s))


# ---- who hands fields over


@tap.test
def root_hands_fields_over_to_a_daemon_of_another_user(case):
    if os.geteuid() != 0:
        raise tap.Skip('needs root')
    with tempfile.TemporaryDirectory() as folder:
        binary = os.path.join(folder, 'quarkd')
        with open(binary, 'w', encoding='utf-8') as f:
            f.write('#!/bin/sh\nexec setpriv --reuid %d --regid %d --clear-groups %s "$@"\n' % (NOBODY, NOBODY, case.binary))
        os.chmod(binary, 0o755)
        os.chmod(folder, 0o777)
        os.chmod(engine_driver.GENERATED.name, 0o755)
        other = Case(binary)
        with other.daemon(engine=case.lasting_engine(folder), env={'XDG_RUNTIME_DIR': folder}) as d:
            owner = os.stat('/proc/%d' % d.process.pid).st_uid
            assert owner == NOBODY
            done = subprocess.run([case.quarkctl, 'bench', '--endpoint', d.endpoint, '--source', 'upload', '--requests', '3', '--clients',
                                   '1', '--json'], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            s = d.status()
            assert s.counters.bytes_local == s.counters.bytes_in + s.counters.bytes_out > 0, s.counters


if __name__ == '__main__':
    only = os.environ.get('QK_SMALL_SHM')
    if only:
        tap.tests[:] = [t for t in tap.tests if t.__name__ == only]
    tap.run(ShmCase(*sys.argv[1:]))
