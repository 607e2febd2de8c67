"""Part of test_front_state.py: a state folder that is in use, of another version, full, or fails."""
import contextlib
import itertools
import os
import subprocess

import tap

try:
    import numpy as np
    from front_case import LATER, State, fake, field, held, kill, once_more
    from front_driver import STATUS, Client, qk
    from state_case import again, check, results_of
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


@tap.test
def one_front_has_the_folder_and_one_operator(case):
    with State(case) as state:
        common = ['--gauge', 'fake', '--engine', '/bin/true', '--backend', 'cpu', '--listen', 'tcp://127.0.0.1:0', '--state', state.dir]
        with state.daemon() as d, Client(d) as c:
            r = case.run('--mass', '0.1', *common)
            assert r.returncode == 69 and 'another quarkd uses it (process %d)' % d.process.pid in r.stderr, r.stderr
            c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD)
            kill(d)
        before = state.rows('job')
        r = case.run('--mass', '0.2', *common)
        assert r.returncode == 78 and 'another operator' in r.stderr, r.stderr
        assert state.rows('job') == before == 1
        r = case.run('--mass', '0.1', '--gauge', 'fake', '--engine', '/bin/true', '--state', '/proc/nowhere')
        assert r.returncode == 69 and '/proc/nowhere' in r.stderr, r.stderr


@tap.test
def a_journal_of_another_version_is_left_alone(case):
    with State(case) as state:
        with state.daemon() as d:
            assert d.terminate() == 0
        with contextlib.closing(state.journal()) as db, db:
            db.execute("UPDATE note SET value='99' WHERE key='version'")
        r = case.run('--mass', '0.1', '--gauge', 'fake', '--engine', '/bin/true', '--state', state.dir, '--listen', 'tcp://127.0.0.1:0')
        assert r.returncode == 78 and 'version 99' in r.stderr, r.stderr


@tap.test
def every_write_can_fail_once(case):
    """Journal and spool: clients wait, or are asked to come again; nothing is lost."""
    for n in range(1, 9):
        with State(case) as state:
            b = field()
            with state.daemon(env={'QK_FAULTS': 'write:%d' % n}) as d, Client(d) as c:
                while True:
                    c.request += 1
                    c.submit(1, request=c.request, expect=None)
                    name, reply = c.receive()
                    if name == 'accepted':
                        break
                    assert reply.status == STATUS['BUSY'] and 'journal' in reply.text, reply
                c.upload(reply, [b])
                check(c, [c.expect('result')], [b])
                c.ack(c.request)
                s = d.status_when(lambda s: s.counters.requests == 0)
                assert s.memory_used == 0
                assert d.terminate() == 0
            with state.daemon() as d, Client(d, c.client_id) as c:  # where the last write failed there is something left
                c.send(goodbye=qk.Goodbye())
                d.status_when(lambda s: s.counters.sessions == 0)
                assert d.terminate() == 0
            state.is_empty()


@tap.test
def no_row_that_cannot_be_read_for_a_moment_is_taken_for_lost(case):
    with State(case) as state:
        b = field()
        with state.daemon() as d, Client(d) as c:
            c.upload(c.submit(1), [b])
            c.expect('result')
            kill(d)
        for n in itertools.count(1):
            with state.daemon(wait=None, env={**LATER, 'QK_FAULTS': 'read:%d' % n}) as d:
                if d.endpoint:  # all rows have been read
                    kill(d)
                    break
                assert d.process.wait() == 69 and d.log(r'journal\.db: reading it'), d.lines
        assert n > 4, n  # a session, a request, its right-hand side, and an end of each table at least
        with state.daemon(env=LATER) as d, Client(d, c.client_id) as c2:
            once_more(c2, 1, 1)
            r, = results_of(c2, 1, 1)
            assert r.attempt == 0 and np.array_equal(c2.fetch(r), 2 * b), r


@tap.test
def while_the_journal_cannot_be_written_nothing_is_promised(case):
    request = dict(source=qk.SOURCE_Z2, max_iter=fake.WHEN_TOLD)
    with State(case) as state:
        with held(state, env={'QK_FAULTS': 'write:2+'}) as (d, go), Client(d) as c, Client(d) as other:
            c.submit(1, **request)
            go()  # its result is the second that is written
            assert d.log('it cannot be written, no new work is accepted')
            refused = other.submit(1, source=qk.SOURCE_Z2, expect='rejected')
            assert refused.status == STATUS['BUSY'] and 'journal' in refused.text and refused.retry_after_ms > 0, refused
            assert not c.control.poll(0) or c.receive()[0] == 'progress'
            d.process.kill()
            d.process.wait()
        with held(state, env=LATER) as (d, go):
            c, _ = again(d, c, 1, **request)
            go()
            assert c.expect('result').status == 0
            c.close()


@tap.test
def a_full_disk_refuses_uploads(case):
    """On a file system of 2 MiB; where such a one cannot be mounted the test says so."""
    with State(case) as state:
        small = os.path.join(state.dir, 'small')
        os.mkdir(small)
        mount = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=2m,mode=700', 'none', small], capture_output=True, text=True)
        if mount.returncode != 0:
            raise tap.Skip('no right to mount a file system: ' + mount.stderr.strip())
        try:
            with case.daemon('--state', small) as d, Client(d) as c:
                refused = c.submit(60, expect='rejected')
                assert refused.status == STATUS['BUSY'] and 'the state folder has room for' in refused.text, refused
                fields = [field() for _ in range(4)]
                for (r, x), b in zip(c.solve(fields), fields):
                    assert r.status == 0 and np.array_equal(x, 2 * b)
                assert d.terminate() == 0
        finally:
            subprocess.run(['umount', small], check=True)
