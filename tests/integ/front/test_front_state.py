#!/usr/bin/env python3
"""What outlives the front in its state folder, when it is killed, stopped, or its machine ends: test_front_state.py QUARKD"""
import os
import signal
import sys

import tap

try:
    import numpy as np
    from front_case import LATER, Case, State, fake, field, kill, once_more
    from front_driver import MIB, STATUS, Client, frame, UPLOAD, qk
    from state_case import again, check, results_of, spooled
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


@tap.test
def what_was_accepted_comes_back_after_a_kill(case):
    """Solved and fetched, solved, in a slot, in the queue."""
    with State(case) as state:
        fields = [field() for _ in range(5)]
        with state.daemon('--slots', '1') as d, Client(d) as c:
            accepted = c.submit(2)
            c.upload(accepted, fields[:2])
            done = c.results(2)
            c.ack(1, 0)
            held = c.submit(3, max_iter=fake.HOLD_ONCE)
            c.upload(held, fields[2:])
            d.status_when(lambda s: s.counters.running == 1 and s.counters.queued == 2)
            kill(d)
        with state.daemon('--slots', '1', env=LATER) as d, Client(d, c.client_id) as c2:
            assert c2.welcome.resumed
            once_more(c2, 2, 1)
            r, = results_of(c2, 1, 1)
            assert (r.rhs, r.iterations, r.seconds, r.attempt) == (1, done[1].iterations, done[1].seconds, 0), r
            assert np.array_equal(c2.fetch(r), 2 * fields[1])
            once_more(c2, 3, 2, max_iter=fake.HOLD_ONCE)
            check(c2, results_of(c2, 2, 3), fields[2:])
            c2.ack(1)
            c2.ack(2)
            s = d.status_when(lambda s: s.counters.requests == 0)
            assert s.memory_used == 0 and s.counters.converged == 3, s
            assert c2.submit(2, request=2, expect='rejected').status == STATUS['EXPIRED']
            assert d.terminate() == 0
            state.is_empty()


@tap.test
def clients_are_told_whether_there_is_a_journal(case):
    with State(case) as state, state.daemon() as d, Client(d) as c:
        assert c.welcome.HasField('journal') and c.welcome.journal
    with case.daemon() as d, Client(d) as c:
        assert c.welcome.HasField('journal') and not c.welcome.journal


@tap.test
def an_upload_goes_on_where_it_was(case):
    with State(case) as state:
        with state.daemon(dims='8x8x8x16') as d, Client(d) as c:
            fields = [field(8192) for _ in range(2)]
            accepted = c.submit(2)
            data = fields[0].tobytes()
            c.data.send(frame(UPLOAD, 1, 0, data[:MIB], len(data), 0))
            while once_more(c, 2, 1).upload_next != MIB:  # which is told when it is recorded, however slow thread and disk are
                pass
            kill(d)
        with state.daemon(dims='8x8x8x16') as d:
            c, accepted = again(d, c, 2)
            assert accepted.upload_next == MIB and accepted.upload_until > MIB, accepted
            c.upload(accepted, fields, begin=MIB)
            check(c, c.results(2), fields)
            c.close()


@tap.test
def an_upload_goes_on_behind_what_has_ended(case):
    """Cancelled when a part of it had come."""
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            fields = [field() for _ in range(2)]
            c.submit(2)
            data = fields[0].tobytes()
            c.data.send(frame(UPLOAD, 1, 0, data[:1000], len(data), 0))
            d.status_when(lambda s: s.counters.bytes_in == 1000)
            c.send(cancel=qk.Cancel(request=1, rhs=[0]))
            assert c.expect('result').status == STATUS['CANCELLED']
            kill(d)
        with state.daemon() as d:
            c, accepted = again(d, c, 2)
            assert accepted.upload_next == accepted.field_bytes
            c.upload(accepted, fields, begin=accepted.field_bytes)
            gone, solved = results_of(c, 1, 2)
            assert gone.status == STATUS['CANCELLED']
            check(c, [solved], fields[1:])
            c.close()


@tap.test
def uploads_outlive_the_machine(case):
    """One field is complete and on the disk, one was solved, one has half arrived: only that one is sent again."""
    with State(case) as state:
        fields = [field() for _ in range(3)]
        with state.daemon('--slots', '1') as d, Client(d) as c:
            accepted = c.submit(1)
            c.upload(accepted, fields[:1])
            first = c.expect('result')
            held = c.submit(2, max_iter=fake.HOLD_ONCE)
            data = fields[2].tobytes()
            c.upload(held, fields[1:2])
            c.data.send(frame(UPLOAD, 2, 1, data[:1000], len(data), 0))
            d.status_when(lambda s: s.counters.bytes_in == 2 * len(data) + 1000)
            spooled(d, 2)
            kill(d)
        state.end_the_machine()
        with state.daemon('--slots', '1', env=LATER) as d:
            c, accepted = again(d, c, 2, max_iter=fake.HOLD_ONCE)
            assert accepted.upload_next == accepted.field_bytes
            c.upload(accepted, fields[1:], begin=accepted.field_bytes)
            check(c, results_of(c, 2, 2), fields[1:])
            once_more(c, 1, 1)
            r, = results_of(c, 1, 1)
            assert (first.attempt, r.attempt) == (0, 1)
            check(c, [r], fields[:1])
            for k in (1, 2):
                c.ack(k)
            d.status_when(lambda s: s.counters.requests == 0)
            c.close()
            assert d.terminate() == 0
            state.is_empty()


@tap.test
def what_was_on_no_disk_gets_there_with_the_next_front(case):
    """The spool took nothing until quarkd was killed; its source was adopted from shared memory."""
    b = field()
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            os.rmdir(state.dir + '/spool')
            open(state.dir + '/spool', 'w', encoding='utf-8').close()
            c.upload(c.submit(1, detach_ms=3600 * 1000, max_iter=fake.HOLD), [b])
            assert d.log('its upload is not on disk')
            kill(d)
        os.unlink(state.dir + '/spool')
        with state.daemon() as d:
            spooled(d, 1)
            kill(d)
        state.end_the_machine()
        with state.daemon(env=LATER) as d, Client(d, c.client_id) as c:
            d.status_when(lambda s: s.counters.running == 1)
            assert d.status().counters.running == 1


@tap.test
def what_was_on_no_disk_gets_there_when_it_can(case):
    """The spool took nothing for a while; quarkd tries again by itself."""
    b = field()
    with State(case) as state:
        spool, away = os.path.join(state.dir, 'spool'), os.path.join(state.dir, 'away')
        with state.daemon() as d, Client(d) as c:
            accepted = c.submit(2, detach_ms=3600 * 1000, max_iter=fake.HOLD)
            os.rename(spool, away)
            c.upload(accepted, [b, b])
            assert d.log('its upload is not on disk', 2)
            os.rename(away, spool)
            spooled(d, 2)
            kill(d)
        assert len([line for line in d.lines if 'its upload is not on disk' in line and ' warn ' in line]) == 2
        state.end_the_machine()
        with state.daemon(env=LATER) as d, Client(d, c.client_id):
            d.status_when(lambda s: s.counters.running == 2)


@tap.test
def what_is_made_again_is_not_mistaken_for_what_was_there(case):
    """Solved; gone with the machine and in a slot again, when the next front is killed, too."""
    with State(case) as state:
        b = field()
        with state.daemon(env=LATER) as d, Client(d) as c:
            accepted = c.submit(1, max_iter=fake.HOLD_ONCE)
            c.upload(accepted, [b])
            assert c.expect('result').attempt == 0
            spooled(d, 1)
            kill(d)
        state.end_the_machine()
        with state.daemon() as d:
            d.status_when(lambda s: s.counters.running == 1)
            kill(d)
        with state.daemon(env=LATER) as d:
            c, _ = again(d, c, 1, max_iter=fake.HOLD_ONCE)
            r, = c.results(1)
            assert r.attempt == 1
            check(c, [r], [b])
            c.close()


@tap.test
def what_is_lost_stays_lost(case):
    """Solution and spool file are gone; the file is there again for the front after that."""
    with State(case) as state:
        with state.daemon(env=LATER) as d, Client(d) as c:
            c.upload(c.submit(1), [field()])
            assert c.expect('result').status == 0
            spooled(d, 1)
            kill(d)
        state.end_the_machine()
        path = os.path.join(state.dir, 'spool')
        os.rename(path, path + '.away')
        with state.daemon(env=LATER) as d:
            d.log('1 is lost')
            kill(d)
        os.rename(path + '.away/1-0', path + '/1-0')
        with state.daemon(env=LATER) as d:
            now, _ = again(d, c, 1)
            r = now.expect('result')
            assert r.status == STATUS['EXPIRED'], r
            kill(d)


@tap.test
def a_solution_that_was_given_up_takes_no_memory(case):
    """Nobody fetched it in time."""
    with State(case) as state:
        with state.daemon('--fetch-time', '0.2') as d, Client(d) as c:
            c.submit(2, source=qk.SOURCE_Z2)
            held = d.status_when(lambda s: s.counters.converged == 2).memory_used
            left = d.status_when(lambda s: s.memory_used < held).memory_used
            kill(d)
        with state.daemon() as d:
            assert d.status().memory_used == left


@tap.test
def generated_sources_are_solved_again(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            c.submit(3, source=qk.SOURCE_Z2)
            c.results(3)
            c.ack(1, 0)
            kill(d)
        state.end_the_machine()
        with state.daemon(env=LATER) as d:
            c, _ = again(d, c, 3, source=qk.SOURCE_Z2)
            results = c.results(2)
            assert [(r.rhs, r.attempt) for r in results] == [(1, 1), (2, 1)], results
            assert [c.fetch(r)[0] for r in results] == [1, 2]
            c.close()


@tap.test
def a_damaged_spool_is_not_believed(case):
    """Cut short, and one bit wrong: both have to be sent again."""
    with State(case) as state:
        fields = [field() for _ in range(3)]
        with state.daemon() as d, Client(d) as c:
            c.upload(c.submit(3, max_iter=fake.HOLD), fields)
            spooled(d, 3)
            kill(d)
        state.end_the_machine()
        names = state.spool()
        assert len(names) == 3
        with open(os.path.join(state.dir, 'spool', names[1]), 'r+b') as f:
            f.truncate(1000)
        with open(os.path.join(state.dir, 'spool', names[2]), 'r+b') as f:
            f.seek(5000)
            byte = f.read(1)
            f.seek(5000)
            f.write(bytes([byte[0] ^ 1]))
        with state.daemon() as d:
            assert d.log('rhs 1: .*has 1000 bytes of') and d.log('rhs 2: .*its checksum is not')
            c, accepted = again(d, c, 3, max_iter=fake.HOLD)
            assert accepted.upload_next == accepted.field_bytes
            c.upload(accepted, fields, begin=accepted.field_bytes)
            spooled(d, 2)
            d.status()
            c.request = 1
            c.submit(1)  # the disk is not taken for fuller than it is
            c.close()


@tap.test
def kept_solutions_and_contractions_survive_a_kill(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            kept = c.keep()
            c.ack(kept)
            c.contract(kept, source=fake.HOLD_ONCE)
            d.status_when(lambda s: s.counters.running == 1)
            kill(d)
        with state.daemon(env=LATER) as d, Client(d, c.client_id) as c2:
            c2.request = c.request
            c2.contract(kept, request=c.request, source=fake.HOLD_ONCE, expect=None)
            c2.expect('accepted', skip=('progress', 'result'))
            r, = results_of(c2, c.request, 1)
            assert r.status == 0, r
            want = fake.correlators(qk.Contraction(channel=[qk.Channel(kind=qk.CHANNEL_MESON)]), [[i + 1] for i in range(12)], [], 4)
            assert np.array_equal(c2.fetch(r), want)
            c2.submit(1, source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=kept, rhs=4, gamma=2)])
            assert c2.fetch(c2.expect('result'))[0] == 3 * 5
            c2.send(release=qk.Release(request=kept))
            s = d.status_when(lambda s: s.counters.kept == 0)
            assert s.counters.requests == 2, s


@tap.test
def kept_solutions_survive_an_end_in_order(case):
    """On the disk, wherever the next front is; one that is released, or whose time is over, stays nowhere."""
    def end(daemon):
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(20) == 0
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            kept = c.keep(2)
            c.ack(kept)
            d.status_when(lambda s: s.counters.kept == 2)
            end(d)
        assert len(state.spool()) == 2 and state.memory() == [] and state.rows('job') == 1
        with state.daemon(env=LATER) as d, Client(d, c.client_id) as c2:
            assert c2.welcome.resumed and d.status().counters.kept == 2
            c2.request = c.request
            number = c2.submit(1, source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=kept, rhs=1, gamma=2)]).request
            assert c2.fetch(c2.expect('result'))[0] == 3 * 2
            c2.ack(number)
            c2.send(release=qk.Release(request=kept))
            d.status_when(lambda s: s.counters.requests == 0)
            end(d)
        state.is_empty()
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            c.ack(c.keep(1, keep_ms=4000))
            d.status_when(lambda s: s.counters.kept == 1)
            end(d)
        assert state.rows('job') == 1
        with state.daemon(env=LATER) as d, Client(d, c.client_id) as c2:
            assert c2.welcome.resumed
            d.status_when(lambda s: s.counters.requests == 0)  # nobody has used it for its time
            end(d)
        state.is_empty()


@tap.test
def what_used_kept_solutions_says_that_they_are_gone(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            kept = c.keep()
            c.ack(kept)
            c.contract(kept, source=fake.HOLD_ONCE)
            d.status_when(lambda s: s.counters.running == 1)
            kill(d)
        state.end_the_machine()
        with state.daemon(env=LATER) as d, Client(d, c.client_id) as c2:
            c2.contract(kept, request=c.request, source=fake.HOLD_ONCE, expect=None)
            c2.expect('accepted', skip=('progress', 'result'))
            r, = results_of(c2, c.request, 1)
            assert r.status == STATUS['NOT_FOUND'] and 'has expired' in r.text, r


@tap.test
def a_request_that_was_released_while_it_was_used_is_not_found_again(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            kept = c.keep()
            c.ack(kept)
            c.contract(kept, source=fake.HOLD_ONCE)
            d.status_when(lambda s: s.counters.running == 1)
            c.send(release=qk.Release(request=kept))
            c.ping()
            kill(d)
        with state.daemon(env=LATER) as d, Client(d, c.client_id) as c2:
            c2.contract(kept, request=c.request, source=fake.HOLD_ONCE, expect=None)
            c2.expect('accepted', skip=('progress', 'result'))
            r, = results_of(c2, c.request, 1)
            assert r.status == 0, r
            c2.fetch(r)
            c2.request = c.request
            refused = c2.contract(kept, expect='rejected')
            assert refused.status == STATUS['NOT_FOUND'], refused
            c2.ack(c.request)
            s = d.status_when(lambda s: s.counters.requests == 0)
            assert s.memory_used == 0, s


@tap.test
def a_request_that_was_released_while_it_was_used_may_be_made_again_in_part(case):
    """What used it also used one that is gone, and ends; then nobody needs it."""
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            kept = c.keep(13)
            gone = c.keep()
            c.contract(kept, request_b=gone, source=fake.HOLD_ONCE)
            d.status_when(lambda s: s.counters.running == 1)
            c.send(release=qk.Release(request=kept))
            c.ping()
            kill(d)
        state.lose(kept, [12])
        state.lose(gone, [0])
        with state.daemon(env=LATER) as d, Client(d, c.client_id) as c2:
            c2.contract(kept, request=c.request, request_b=gone, source=fake.HOLD_ONCE, expect=None)
            c2.expect('accepted', skip=('progress', 'result'))
            r, = results_of(c2, c.request, 1)
            assert r.status == STATUS['NOT_FOUND'] and 'wait for it' in r.text, r
            c2.request = c.request
            c2.contract(kept, expect=None)
            refused = c2.expect('rejected', skip=('progress', 'result'))
            assert refused.status == STATUS['NOT_FOUND'], refused
            d.status_when(lambda s: s.counters.kept == 12)
            c2.ack(c.request)
            c2.contract(gone, expect=None)
            c2.expect('accepted', skip=('progress', 'result'))


@tap.test
def what_was_in_a_slot_of_a_client_that_left_is_gone(case):
    """The slot was still the engine's when the front was killed."""
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.DEAF)
            d.status_when(lambda s: s.counters.running == 1)
            c.send(goodbye=qk.Goodbye())
            d.status_when(lambda s: s.counters.sessions == 0)
            kill(d)
        assert state.rows('job') == 1
        with state.daemon(env=LATER) as d:
            assert d.terminate() == 0
        state.is_empty()


@tap.test
def who_has_killed_an_engine_is_remembered(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.DIE)
            assert d.log('engine lost')
            kill(d)
        with state.daemon() as d:
            c, _ = again(d, c, 1, source=qk.SOURCE_Z2, max_iter=fake.DIE)
            r = c.expect('result')
            assert r.status == STATUS['ENGINE_LOST'] and '2 engines' in r.text, r
            assert d.log('engine lost') and len([line for line in d.lines if 'engine lost' in line]) == 1
            c.close()


@tap.test
def what_an_engine_counts_fits_into_the_journal(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.BOAST)
            told = c.expect('result')
            assert (told.status, told.iterations, told.applications) == (0, 2 ** 63 - 1, 2 ** 63 - 1), told
            kill(d)
        with state.daemon() as d:
            c, _ = again(d, c, 1, source=qk.SOURCE_Z2, max_iter=fake.BOAST)
            r = c.expect('result')
            assert (r.status, r.iterations, r.applications, r.attempt) == (0, told.iterations, told.applications, 0), r
            c.close()


@tap.test
def deadlines_go_on_while_the_front_is_away(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, deadline_ms=1)
            c.request += 1
            c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD_ONCE, deadline_ms=10**8, request=2, expect=None)
            c.expect('accepted', skip=('result', 'progress'))  # the first one may be over already
            kill(d)
        with state.daemon(env=LATER) as d, Client(d, c.client_id) as c2:
            once_more(c2, 1, 1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, deadline_ms=1)
            assert results_of(c2, 1, 1)[0].status == STATUS['DEADLINE']
            once_more(c2, 1, 2, source=qk.SOURCE_Z2, max_iter=fake.HOLD_ONCE, deadline_ms=10**8)
            assert results_of(c2, 2, 1)[0].status == 0


@tap.test
def a_front_that_is_stopped_leaves_its_work_to_the_next(case):
    """SIGTERM, and the time to drain is not enough: the client is not told that all is over."""
    with State(case) as state:
        with state.daemon('--drain-timeout', '0.1') as d, Client(d) as c:
            c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD_ONCE)
            d.status_when(lambda s: s.counters.running == 1)
            d.process.send_signal(signal.SIGTERM)
            assert d.process.wait(20) == 75
            while c.control.poll(0):
                assert c.receive()[0] == 'progress'
        with state.daemon(env=LATER) as d:
            c, _ = again(d, c, 1, source=qk.SOURCE_Z2, max_iter=fake.HOLD_ONCE)
            assert c.expect('result').status == 0
            c.close()


@tap.test
def the_setup_may_be_refused_once(case):
    """A file that is not there for a moment costs no request."""
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD_ONCE)
            kill(d)
        with state.daemon(env={'FAKE_LOAD': 'refuse'}, wait=None) as d:
            assert d.process.wait(20) == 65
        with state.daemon(env=LATER) as d:
            c, _ = again(d, c, 1, source=qk.SOURCE_Z2, max_iter=fake.HOLD_ONCE)
            assert c.expect('result').status == 0
            c.close()


@tap.test
def another_configuration_ends_what_waited(case):
    with State(case) as state:
        with state.daemon(env={'FAKE_LOAD': 'change'}) as d, Client(d) as c:
            c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD)
            kill(d)
        with state.daemon(env={'FAKE_LOAD': 'change', 'FAKE_BEFORE': '1'}) as d:
            c, _ = again(d, c, 1, source=qk.SOURCE_Z2, max_iter=fake.HOLD)
            r = c.expect('result')
            assert r.status == STATUS['ENGINE_LOST'] and 'configuration has changed' in r.text, r
            c.close()


@tap.test
def solutions_on_another_configuration_are_not_made_again(case):
    """Solved and not fetched; the next engine loads another configuration, the front is killed, then the machine ends."""
    with State(case) as state:
        with state.daemon(env={'FAKE_LOAD': 'change'}) as d, Client(d) as c:
            c.submit(2, source=qk.SOURCE_Z2)
            c.results(2)
            os.kill(d.status().engine.pid, signal.SIGKILL)
            d.log('not the one loaded before')
            kill(d)
        for lost in (False, True):
            if lost:
                state.end_the_machine()
            with state.daemon(env={'FAKE_LOAD': 'change', 'FAKE_BEFORE': '1'}) as d:
                now, _ = again(d, c, 2, source=qk.SOURCE_Z2)
                results = now.results(2)
                assert [r.status for r in results] == 2 * [STATUS['EXPIRED'] if lost else 0], results
                if not lost:
                    assert [(now.fetch(r)[0], r.attempt) for r in results] == [(0, 0), (1, 0)]
                kill(d)


if __name__ == '__main__':
    import state_failures  # noqa: F401 (its tests run, too)
    import state_journal  # noqa: F401 (likewise)
    tap.run(Case(sys.argv[1]))
