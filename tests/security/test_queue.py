#!/usr/bin/env python3
"""A queue that one user fills and empties, and what others notice of it: test_queue.py QUARKD"""
import contextlib
import sys
import time

import tap

try:
    from front_case import Case, State, fake
    from front_driver import Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

MOST = 1024           # right-hand sides of a request
HOUR, DAY = 3600000, 86400000  # milliseconds
WAITING = dict(source=qk.SOURCE_Z2, sink=qk.SINK_NONE, max_iter=fake.HOLD)


def processor_seconds(d):
    """Of all threads, finer than ticks: the clock of the process."""
    return time.clock_gettime(~d.process.pid << 3 | 2)


def submit(c, n, deadline_ms=None, nrhs=MOST):
    """n requests; deadline_ms says for the i-th."""
    for i in range(n):
        more = dict(deadline_ms=deadline_ms(i)) if deadline_ms else {}
        c.submit(nrhs, **WAITING, **more)


@tap.test
def a_queue_is_filled_at_the_same_cost_in_any_order(case):
    """By processor time of the whole daemon. The 48th SUBMIT of earlier and earlier deadlines took a hundred times as long as the first when it
    looked at all that was there."""
    orders = dict(none=None, rising=lambda i: DAY + i * HOUR, falling=lambda i: 100 * DAY - i * HOUR,
                  mixed=lambda i: DAY + i * 29 % 48 * HOUR)
    cost = {}
    for name, deadline in orders.items():
        with case.daemon('--log-level', 'info') as d, Client(d) as c:
            before = processor_seconds(d)
            submit(c, 48, deadline)
            cost[name] = processor_seconds(d) - before
            assert d.status().counters.queued >= 47 * MOST
    print('# seconds of processor: ' + ', '.join('%s %.3f' % x for x in cost.items()))
    assert max(cost.values()) < 10 * min(cost.values()), cost


LOOKS = 5  # times that a bystander tries: where the machine has others to serve it may be away for as long as it all takes


def answers_beside(case, messages):
    """How many requests had been accepted, each time that a bystander was answered."""
    with State(case) as state, state.daemon('--log-level', 'info') as d, Client(d) as c, Client(d, hello=False) as by:
        for m in messages:
            c.control.send(m)
        seen = [0]
        while seen[-1] < len(messages):
            seen.append(by.status().counters.accepted)
        c.send(goodbye=qk.Goodbye())
    print('# answered %d times, after %d requests at most' % (len(seen), max(b - a for a, b in zip(seen, seen[1:]))))
    return seen


@tap.test
def nobody_waits_for_all_that_another_has_sent(case):
    """200 large requests are there at once, and each answer waits for the disk: a bystander is answered more often than in every 64th
    message's turn, which makes five answers; here some fifty, and a tenth of them where the machine is crowded."""
    columns = [qk.Column(seed=i) for i in range(MOST)]
    body = dict(WAITING, nrhs=MOST, dtype=qk.DTYPE_F64, tol=1e-8, column=columns)
    messages = [qk.ClientMessage(submit=qk.Submit(request=i + 1, **body)).SerializeToString() for i in range(200)]
    assert any(len(answers_beside(case, messages)) >= 7 for _ in range(LOOKS))


@contextlib.contextmanager
def full(case, n, **more):
    """A daemon in which n requests of a client that has gone wait for slots, and how many right-hand sides wait."""
    with case.daemon('--log-level', 'info', '--slots', '16') as d, Client(d) as c:
        for _ in range(n):
            c.submit(MOST, **WAITING, **more)
        d.status_when(lambda s: s.counters.queued == n * MOST - 16)
        yield d, c, n * MOST - 16


def goes_in_parts(d, total):
    """Whether a bystander sees requests of which a part has ended, while what waits falls from total to 0."""
    with Client(d, hello=False) as by:
        seen = [total]
        while seen[-1] > 0:
            seen.append(by.status().counters.queued)
    between = [n for n in seen if 0 < n < total and (total - n) % MOST not in (0, MOST - 16)]
    print('# seen in between: %d' % len(between))
    assert seen == sorted(seen, reverse=True), seen
    d.status_when(lambda s: s.counters.requests == 0 and s.memory_used == 0)
    return bool(between)


def left_in_parts(case, n, **more):
    with full(case, n, **more) as (d, c, total):
        c.send(goodbye=qk.Goodbye())
        return goes_in_parts(d, total)


@tap.test
def what_a_client_leaves_behind_goes_in_parts(case):
    """A quarter of a million right-hand sides at once."""
    assert any(left_in_parts(case, 250) for _ in range(LOOKS))


@tap.test
def what_is_due_at_once_ends_in_parts(case):
    """The client has left it to itself."""
    assert any(left_in_parts(case, 100, deadline_ms=6000, detach_ms=1) for _ in range(LOOKS))


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
