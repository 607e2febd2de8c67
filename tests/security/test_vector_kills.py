#!/usr/bin/env python3
"""quarkd killed between any two system calls on its state folder while vectors become eigenvectors: test_vector_kills.py QUARKD SHIM

QK_KILLS is how many kills, spread over all calls."""
import os
import sys

import tap

try:
    from disk import CALLS
    from disk_case import DiskCase
    from field_vectors import open_vectors, orthonormal, vectors_digest
    from front_case import LATER
    from front_driver import STATUS, Client, qk
    from lives import check_end
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

KILLS = int(os.environ.get('QK_KILLS', '5'))
V = orthonormal((4, 4, 4, 4), 3, 1)
DIGEST = vectors_digest(V)
HOUR = 3600 * 1000
FIELD, EIGEN = 1, 2


def problem():
    return qk.EigenProblem(name='given', kind=qk.EIGEN_LAPLACIAN, count=3, tol=1e-8, field='digest:%016x' % DIGEST)


class Gone(Exception):
    pass


def hear(d, c, told):
    """Until the next result or rejection; notes what was promised."""
    while True:
        while not c.control.poll(50):
            if d.process.poll() is not None:
                raise Gone
        name, body = c.receive_new()
        told.add((name, body.request))
        if name in ('accepted', 'result', 'rejected'):
            return body


def story(d, c, told):
    """Vectors are sent, and become a set; then the field goes."""
    t, n, z, y, x = V.shape[:5]
    c.send(field_open=qk.FieldOpen(request=FIELD, kind=qk.FIELD_VECTORS, dims=[x, y, z, t], count=n, dtype=qk.DTYPE_F64))
    c.upload(hear(d, c, told), [V.view('uint8').ravel()])
    assert hear(d, c, told).digest == DIGEST
    c.send(eigen=qk.Eigen(request=EIGEN, problem=problem(), detach_ms=HOUR))
    hear(d, c, told)
    assert hear(d, c, told).status == 0
    c.send(release=qk.Release(request=FIELD))
    told.add('released')


def is_kept(status):
    return [(s.name, s.state, s.field) for s in status.setup.eigen] == [('given', qk.EIGEN_KEPT, problem().field)]


def answer(c, request, *names):
    """To that request: an EIGEN whose acceptance was not told may go on beside it."""
    while True:
        name, body = c.receive_new()
        if name in names and body.request == request:
            return name, body


def check(d, client_id, told):
    """What was told is there, and what was not can be had."""
    with Client(d, client_id) as c:
        c.request = 100
        if ('accepted', EIGEN) in told:
            c.send(attach=qk.Attach(request=EIGEN))
            assert c.expect('attached', skip=('result', 'progress', 'credit')).eigen.problem == problem()
            r = c.expect('result')
            assert r.status == 0, r
            c.ack(EIGEN)
        else:
            open_vectors(c, V, digest=DIGEST, expect=None)
            a = answer(c, 101, 'accepted')[1]
            assert a.upload_until == 0 or ('result', FIELD) not in told, told
            if a.upload_until:
                c.upload(a, [V.view('uint8').ravel()])
            assert answer(c, 101, 'result')[1].digest == DIGEST
            c.send(eigen=qk.Eigen(request=102, problem=problem()))
            name, body = answer(c, 102, 'accepted', 'rejected')
            assert name == 'accepted' or (body.status == STATUS['BAD_ARGUMENT'] and 'of this name' in body.text), body
        d.status_when(is_kept)
        for request in FIELD, EIGEN, 101, 102:
            c.send(release=qk.Release(request=request))
        c.send(eigen_drop=qk.EigenDrop(name='given'))
        while c.receive_new()[0] != 'setup':
            pass
        d.status_when(lambda s: s.memory_used == 0 and s.counters.kept_bytes == 0 and not s.setup.eigen)


def begin(case, disk_calls=None):
    """Until the call of that number; how many calls there are where none is given."""
    told = set()
    with case.state() as (state, disk):
        client_id = os.urandom(16)
        try:
            with state.daemon() as d:
                with Client(d, client_id) as c:
                    before = disk.get(CALLS)
                    if disk_calls is not None:
                        disk.kills(disk_calls)
                    story(d, c, told)
                    if disk_calls is None:
                        c.ping()
                        return disk.get(CALLS) - before
                    d.process.kill()  # fewer calls than before
        except Gone:
            pass
        disk.spares()
        check_end(d)
        with state.daemon(env=LATER) as d:
            check(d, client_id, told)
            assert d.terminate() == 0
            return None


@tap.test
def what_was_told_of_vectors_is_there_wherever_the_daemon_is_killed(case):
    calls = begin(case)
    assert calls > 10, calls
    for n in range(0, calls, max(1, calls // KILLS)):
        try:
            begin(case, n)
        except (AssertionError, TimeoutError) as e:
            raise AssertionError('killed in place of call %d of %d: %s' % (n + 1, calls, e)) from e


if __name__ == '__main__':
    tap.run(DiskCase(*sys.argv[1:3]))
