#!/usr/bin/env python3
"""Sources and solutions in files of a shared file system: test_front_files.py QUARKD"""
import contextlib
import os
import shutil
import sys
import tempfile
import threading
import time

import tap

try:
    import numpy as np
    from front_case import Case, fake, field
    from front_driver import STATUS, Client, checksum, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

HOUR = 3600 * 1000
BYTES = 4**4 * 24 * 8


class Place:
    """A root with a folder in it, and a folder beside it that is none of the daemon's business."""

    def __init__(self, case):
        self.case, self.top = case, os.path.realpath(tempfile.mkdtemp(prefix='qk-files-'))
        self.root, self.outside, self.state = (os.path.join(self.top, n) for n in ('root', 'outside', 'state'))
        for folder in (self.root, os.path.join(self.root, 'in'), self.outside, self.state):
            os.mkdir(folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in os.listdir('/dev/shm'):
            if name.startswith('quarkd-s%016x-' % checksum(self.state.encode())):
                os.unlink('/dev/shm/' + name)
        shutil.rmtree(self.top)

    def daemon(self, *options, **more):
        return self.case.daemon('--file-roots', self.root, *options, **more)

    def path(self, name):
        return os.path.join(self.root, name)

    def write(self, name, *fields, head=b'', tail=b''):
        with open(self.path(name), 'wb') as f:
            f.write(head + b''.join(x.tobytes() for x in fields) + tail)
        return self.path(name)

    def read(self, name, dtype=complex, offset=0):
        return np.fromfile(self.path(name), dtype, offset=offset)

    def all_names(self):
        return sorted(os.listdir(self.root))

    def names(self, folder=''):
        """When no output has its other name any more: that goes in the background."""
        for _ in range(2000):
            names = sorted(os.listdir(self.path(folder)))
            if not any('.quarkd-' in n for n in names):
                return names
            threading.Event().wait(0.005)
        raise TimeoutError('it stays: %s' % names)


def source(path, **more):
    return dict(source=qk.SOURCE_FILE, source_file=qk.File(path=path, **more))


def sink(path, **more):
    return dict(sink=qk.SINK_FILE, sink_file=qk.File(path=path, **more))


def over(d, c, request):
    """The results have been seen: everything goes."""
    c.ack(request)
    s = d.status_when(lambda s: s.counters.requests == 0)
    assert s.memory_used == 0


def attached(c):
    """Results that come before are told again after it."""
    c.send(attach=qk.Attach(request=1))
    return c.expect('attached', skip=('result', 'progress'))


@contextlib.contextmanager
def client(d):
    with Client(d) as c:
        yield c
        c.send(goodbye=qk.Goodbye())


@tap.test
def files_in_and_out_are_what_uploads_and_downloads_are(case):
    with Place(case) as p, p.daemon() as d, client(d) as c:
        b = [field() for _ in range(5)]
        path = p.write('in/b.raw', *b)
        request = c.submit(5, **source(path)).request
        for r, x in zip(c.results(5), b):
            assert r.status == 0 and np.array_equal(c.fetch(r), 2 * x)
        over(d, c, request)
        request = c.submit(5, **source(path), **sink(p.path('in/x.raw'))).request
        assert all(r.status == 0 and r.bytes == 0 for r in c.results(5))
        assert np.array_equal(p.read('in/x.raw'), 2 * np.concatenate(b))
        over(d, c, request)
        accepted = c.submit(2, **sink(p.path('y.raw')))
        c.upload(accepted, b[:2])
        assert all(r.status == 0 for r in c.results(2))
        assert np.array_equal(p.read('y.raw'), 2 * np.concatenate(b[:2]))
        over(d, c, accepted.request)
        assert p.names() == ['in', 'y.raw'] and p.names('in') == ['b.raw', 'x.raw']


@tap.test
def fields_are_found_at_their_offset_and_in_their_precision(case):
    with Place(case) as p, p.daemon() as d, client(d) as c:
        b = [field().astype(np.complex64) for _ in range(2)]
        path = p.write('b.raw', *b, head=b'header', tail=b'more')
        size = 6 + BYTES + 4
        request = c.submit(2, dtype=qk.DTYPE_F32, **source(path, offset=6, size=size), **sink(p.path('x.raw'), offset=5)).request
        assert all(r.status == 0 for r in c.results(2))
        assert os.path.getsize(p.path('x.raw')) == 5 + BYTES
        assert np.array_equal(p.read('x.raw', np.complex64, 5), 2 * np.concatenate(b))
        over(d, c, request)


@tap.test
def what_a_name_shows_is_rejected(case):
    with Place(case) as p, p.daemon() as d, client(d) as c:
        for path, status, word in ((p.outside + '/b', 'DENIED', 'below none of the file-roots'), (p.root + '2/b', 'DENIED', 'below none'),
                                   (p.root, 'DENIED', 'below none'), (p.path('../outside/b'), 'BAD_ARGUMENT', 'without . and ..'),
                                   (p.path('in/./b'), 'BAD_ARGUMENT', 'without . and ..'), ('b', 'BAD_ARGUMENT', 'absolute'),
                                   (p.path('a\nb'), 'BAD_ARGUMENT', 'control characters'), (p.path('in/'), 'BAD_ARGUMENT', 'last part'),
                                   (p.path('x' * 201), 'BAD_ARGUMENT', '201 bytes'), (p.path('x/' * 600 + 'b'), 'TOO_LARGE', '1023')):
            for what in (source(path), sink(path)):
                refused = c.submit(1, expect='rejected', **what)
                assert refused.status == STATUS[status] and word in refused.text, (path, refused)
        for what, word in ((dict(source=qk.SOURCE_FILE), 'source_file is missing'), (dict(sink=qk.SINK_FILE), 'sink_file is missing'),
                           (source(p.path('b'), offset=1, size=BYTES), 'from byte 1 end at byte %d' % (BYTES + 1)),
                           (dict(source_file=qk.File(path=p.path('b'))), 'source_file is for SOURCE_FILE only'),
                           (dict(sink_file=qk.File(path=p.path('b'))), 'sink_file is for SINK_FILE only'),
                           (source(p.path('b')) | dict(column=[qk.Column()]), 'columns')):
            refused = c.submit(1, expect='rejected', **what)
            assert refused.status == STATUS['BAD_ARGUMENT'] and word in refused.text, refused
        refused = c.submit(1, expect='rejected', **source(p.path('b'), offset=1 << 61))
        assert refused.status == STATUS['TOO_LARGE'] and 'source_file.offset' in refused.text, refused
        assert d.status().memory_used == 0
    with case.daemon() as d, client(d) as c:
        refused = c.submit(1, expect='rejected', **source('/b'))
        assert refused.status == STATUS['DENIED'] and '--file-roots' in refused.text, refused


def one_failure(d, c, status, word, nrhs=1, **what):
    request = c.submit(nrhs, **what).request
    for r in c.results(nrhs):
        assert r.status == STATUS[status] and word in r.text and r.bytes == 0, r
    over(d, c, request)


@tap.test
def what_the_disk_shows_ends_the_request(case):
    with Place(case) as p, p.daemon() as d, client(d) as c:
        secret = os.path.join(p.outside, 'secret')
        with open(secret, 'wb') as f:
            f.write(bytes(BYTES))
        os.symlink(secret, p.path('link'))
        os.symlink('../outside', p.path('way'))
        os.symlink('/proc/self/root' + secret, p.path('magic'))
        os.symlink('b.raw', p.path('inside'))
        os.mkfifo(p.path('fifo'))
        b = field()
        p.write('b.raw', b)
        for name, status, word in (('none', 'NOT_FOUND', 'No such file'), ('b.raw/x', 'NOT_FOUND', 'Not a directory'),
                                   ('link', 'DENIED', 'leads out of its root'), ('way/secret', 'DENIED', 'leads out'),
                                   ('magic', 'DENIED', ''), ('fifo', 'BAD_ARGUMENT', 'not a regular file'),
                                   ('in', 'BAD_ARGUMENT', 'not a regular file')):
            one_failure(d, c, status, word, nrhs=3, **source(p.path(name)))
        one_failure(d, c, 'TRUNCATED', 'has %d bytes, not %d' % (BYTES, 2 * BYTES), nrhs=2, **source(p.path('b.raw')))
        one_failure(d, c, 'TRUNCATED', 'not %d' % (BYTES + 8), **source(p.path('b.raw'), offset=8))
        one_failure(d, c, 'BAD_ARGUMENT', 'has %d bytes, not %d' % (BYTES, BYTES // 2), dtype=qk.DTYPE_F32, **source(p.path('b.raw')))
        generated = dict(source=qk.SOURCE_Z2, max_iter=fake.SOLVE)
        for name, status, word in (('none/x', 'NOT_FOUND', 'No such file'), ('way/x', 'DENIED', 'leads out'),
                                   ('b.raw', 'BAD_ARGUMENT', 'it is not replaced'), ('link', 'BAD_ARGUMENT', 'it is not replaced')):
            one_failure(d, c, status, word, nrhs=3, **generated, **sink(p.path(name)))
        assert np.array_equal(p.read('b.raw'), b) and os.listdir(p.outside) == ['secret']
        request = c.submit(1, **source(p.path('inside'))).request  # a link that stays inside is a name like others
        assert c.results(1)[0].status == 0
        over(d, c, request)
        assert p.names() == sorted(['b.raw', 'fifo', 'in', 'inside', 'link', 'magic', 'way'])


@tap.test
def results_are_told_when_the_file_has_its_name(case):
    """Not before the last right-hand side has ended; what has no solution is zero; where none has there is no file."""
    with Place(case) as p, p.daemon() as d, client(d) as c:
        b = [field() for _ in range(3)]
        accepted = c.submit(3, **sink(p.path('x.raw')))
        c.upload(accepted, b[:2])
        d.status_when(lambda s: s.counters.converged == 2)
        c.ack(accepted.request)
        c.ack(accepted.request, 0)
        e = c.error('BAD_ARGUMENT', fatal=False)
        assert 'has not ended' in e.text and not os.path.exists(p.path('x.raw')), e
        c.send(cancel=qk.Cancel(request=accepted.request, rhs=[2]))
        assert [r.status for r in c.results(3)] == [0, 0, STATUS['CANCELLED']]
        x = p.read('x.raw')
        assert np.array_equal(x, np.concatenate([2 * b[0], 2 * b[1], 0 * b[2]]))
        over(d, c, accepted.request)
        request = c.submit(2, source=qk.SOURCE_Z2, max_iter=fake.HOLD, **sink(p.path('y.raw'))).request
        d.status_when(lambda s: s.counters.running == 2)
        c.send(cancel=qk.Cancel(request=request))
        assert [r.status for r in c.results(2)] == [STATUS['CANCELLED']] * 2
        over(d, c, request)
        assert p.names() == ['in', 'x.raw']


@tap.test
def who_lets_go_leaves_no_file(case):
    with Place(case) as p, p.daemon() as d:
        with Client(d) as c:
            accepted = c.submit(2, **sink(p.path('x.raw')))
            c.upload(accepted, [field()], begin=0)
            d.status_when(lambda s: s.counters.converged == 1)
            c.send(release=qk.Release(request=accepted.request))
            d.status_when(lambda s: s.counters.requests == 0 and s.memory_used == 0)
            c.send(goodbye=qk.Goodbye())
        assert d.terminate() == 0
        assert p.names() == ['in']


@tap.test
def an_upload_that_nobody_goes_on_with_is_not_waited_for(case):
    with Place(case) as p, p.daemon() as d:
        with Client(d) as c:
            accepted = c.submit(2, detach_ms=1, **sink(p.path('x.raw')))
            c.upload(accepted, [field()])
            d.status_when(lambda s: s.counters.converged == 1)
            c.send(goodbye=qk.Goodbye())
        s = d.status_when(lambda s: s.counters.sessions == 0)
        assert s.memory_used == 0 and d.terminate() == 0 and p.names() == ['in']


@tap.test
def a_disk_that_fails_is_told_and_leaves_nothing(case):
    """The first and the second field, and the moment of publishing; reading likewise."""
    for n in range(1, 4):
        with Place(case) as p, p.daemon(env={'QK_FAULTS': 'write:%d' % n}) as d, client(d) as c:
            request = c.submit(2, source=qk.SOURCE_Z2, **sink(p.path('x.raw'))).request
            for r in c.results(2):
                assert r.status == STATUS['IO_ERROR'] and 'x.raw' in r.text, (n, r)
            over(d, c, request)
            assert d.terminate() == 0 and p.names() == ['in'], (n, p.names())
    with Place(case) as p, p.daemon(env={'QK_FAULTS': 'read:1'}) as d, client(d) as c:
        b = field()
        p.write('b.raw', b)
        one_failure(d, c, 'IO_ERROR', 'b.raw', **source(p.path('b.raw')))
        request = c.submit(1, **source(p.path('b.raw'))).request
        assert np.array_equal(c.fetch(c.results(1)[0]), 2 * b)
        over(d, c, request)


@tap.test
def a_killed_front_goes_on(case):
    """While it waits for an engine, and when all is written but the client does not know; with and without its memory."""
    for lost_memory in (False, True):
        for hold in (True, False):
            with Place(case) as p:
                b = [field() for _ in range(2)]
                p.write('b.raw', *b)
                with p.daemon('--state', p.state) as d:
                    with Client(d) as c:
                        c.submit(2, max_iter=fake.HOLD_ONCE if hold else fake.SOLVE, detach_ms=HOUR, **source(p.path('b.raw')),
                                 **sink(p.path('x.raw')))
                        if hold:
                            d.status_when(lambda s: s.counters.running == 2)
                        else:
                            assert all(r.status == 0 for r in c.results(2))
                    d.process.kill()
                    d.process.wait()
                if lost_memory:
                    for name in os.listdir('/dev/shm'):
                        if name.startswith('quarkd-s%016x-' % checksum(p.state.encode())):
                            os.unlink('/dev/shm/' + name)
                with p.daemon('--state', p.state, env={'FAKE_BEFORE': '1'}) as d, Client(d, c.client_id) as c2:
                    a = attached(c2)
                    assert a.submit.source_file.path == p.path('b.raw') and a.submit.sink_file.path == p.path('x.raw')
                    assert all(r.status == 0 for r in c2.results(2))
                    assert np.array_equal(p.read('x.raw'), 2 * np.concatenate(b))
                    over(d, c2, 1)
                    c2.send(goodbye=qk.Goodbye())
                    d.status_when(lambda s: s.counters.sessions == 0)
                    assert d.terminate() == 0 and p.names() == ['b.raw', 'in', 'x.raw'], p.names()


@tap.test
def what_was_published_but_not_recorded_is_no_strangers_file(case):
    """The front is killed between the two: simulated by the state before it, and the file with both of its names."""
    with Place(case) as p:
        b = [field()]
        p.write('b.raw', *b)
        with p.daemon('--state', p.state) as d:
            with Client(d) as c:
                c.submit(1, max_iter=fake.HOLD_ONCE, detach_ms=HOUR, **source(p.path('b.raw')), **sink(p.path('x.raw')))
                d.status_when(lambda s: s.counters.running == 1)
            d.process.kill()
            d.process.wait()
        other = next(n for n in p.all_names() if n.startswith('.x.raw.quarkd-'))
        with open(p.path(other), 'wb') as f:
            f.write((2 * b[0]).tobytes())
        os.link(p.path(other), p.path('x.raw'))
        with p.daemon('--state', p.state, env={'FAKE_BEFORE': '1'}) as d, Client(d, c.client_id) as c2:
            attached(c2)
            assert c2.results(1)[0].status == 0 and np.array_equal(p.read('x.raw'), 2 * b[0])
            over(d, c2, 1)
            c2.send(goodbye=qk.Goodbye())
            d.status_when(lambda s: s.counters.sessions == 0)
            assert d.terminate() == 0 and p.names() == ['b.raw', 'in', 'x.raw']


def temp_name(c, request, name):
    """What an output is written under before it has its name: anybody can know it."""
    return '.%s.quarkd-%016x' % (name, checksum(c.client_id + request.to_bytes(8, 'little')))


def plant_link(p, secret, at):
    os.link(secret, at)


def plant_symlink(p, secret, at):
    os.symlink(secret, at)


def plant_dangling(p, secret, at):
    os.symlink(os.path.join(p.outside, 'new'), at)


def plant_fifo(p, secret, at):
    os.mkfifo(at)


def plant_folder(p, secret, at):
    os.mkdir(at)


@tap.test
def what_others_have_put_there_is_not_written_to(case):
    """Under the name that the output has at first: a link to a file of the daemon's user, symbolic links, a FIFO, a folder."""
    with Place(case) as p, p.daemon() as d, client(d) as c:
        secret = os.path.join(p.outside, 'secret')
        for number, plant in enumerate((plant_link, plant_symlink, plant_dangling, plant_fifo, plant_folder), 100):
            with open(secret, 'wb') as f:
                f.write(b'secret')
            at = p.path(temp_name(c, number, 'x.raw'))
            plant(p, secret, at)
            before = os.lstat(at)
            c.submit(1, request=number, source=qk.SOURCE_Z2, **sink(p.path('x.raw')))
            r, = c.results(1)
            assert r.status == STATUS['DENIED'] and 'is taken by a file that is not quarkd' in r.text, (plant, r)
            over(d, c, number)
            assert open(secret, 'rb').read() == b'secret' and not os.path.exists(os.path.join(p.outside, 'new')), plant
            assert not os.path.exists(p.path('x.raw')), plant
            if os.path.lexists(at):
                assert os.lstat(at).st_ino == before.st_ino, plant
                with contextlib.suppress(FileNotFoundError):  # the front may remove its link meanwhile
                    (os.rmdir if plant == plant_folder else os.unlink)(at)
            os.unlink(secret)


@tap.test
def what_others_put_there_meanwhile_is_not_written_to(case):
    """In place of the output that has been begun, while the engine is at work; with a third name also under both names."""
    for both in False, True:
        with Place(case) as p, p.daemon() as d, client(d) as c:
            secret = os.path.join(p.outside, 'secret')
            with open(secret, 'wb') as f:
                f.write(b'secret')
            accepted = c.submit(1, **sink(p.path('x.raw')))
            at = p.path(temp_name(c, accepted.request, 'x.raw'))
            end = time.monotonic() + 60
            while not os.path.exists(at) or os.path.getsize(at) == 0:
                assert time.monotonic() < end
                threading.Event().wait(0.005)
            os.unlink(at)
            os.link(secret, at)
            if both:
                os.link(secret, p.path('x.raw'))
            c.upload(accepted, [field()])
            r, = c.results(1)
            assert r.status == STATUS['DENIED'] and 'is taken by a file that is not quarkd' in r.text, r
            over(d, c, accepted.request)
            assert open(secret, 'rb').read() == b'secret'


@tap.test
def what_the_front_before_has_left_is_no_hindrance(case):
    """It was killed and had no state folder; the client asks again under the same number."""
    with Place(case) as p:
        with p.daemon() as d:
            with Client(d) as c:
                c.submit(1, request=5, source=qk.SOURCE_Z2, max_iter=fake.HOLD, **sink(p.path('x.raw')))
                d.status_when(lambda s: s.counters.running == 1)
                d.process.kill()
                d.process.wait()
        assert temp_name(c, 5, 'x.raw') in p.all_names()
        with p.daemon() as d, Client(d, c.client_id) as c2:
            c2.submit(1, request=5, source=qk.SOURCE_Z2, **sink(p.path('x.raw')))
            assert c2.results(1)[0].status == 0 and os.path.getsize(p.path('x.raw')) == BYTES
            over(d, c2, 5)
            assert p.names() == ['in', 'x.raw']
            c2.send(goodbye=qk.Goodbye())


@tap.test
def roots_that_are_none_are_refused_at_the_start(case):
    with Place(case) as p:
        for roots, word in (('relative', 'no absolute path'), ('/', 'is the whole file system'), (p.path('none'), 'No such file'),
                            (p.write('b.raw', field()), 'no folder'), (':'.join([p.root] * 17), 'more than 16')):
            done = case.run('--gauge', 'fake', '--mass', '0.1', '--engine', sys.executable, '--listen', 'tcp://127.0.0.1:0',
                            '--file-roots', roots)
            assert done.returncode == 78 and word in done.stderr, (roots, done)
        with case.daemon('--file-roots', '%s:%s/' % (p.outside, p.root)) as d, client(d) as c:
            request = c.submit(1, source=qk.SOURCE_Z2, **sink(p.path('x.raw'))).request
            assert c.results(1)[0].status == 0 and p.names() == ['b.raw', 'in', 'x.raw']
            over(d, c, request)


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
