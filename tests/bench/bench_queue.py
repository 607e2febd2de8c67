#!/usr/bin/env python3
"""What a long queue costs: the wait of a bystander while others fill it, and the cost of a SUBMIT by what is queued.

usage: bench_queue.py QUARKD [--most N] [--state]

(a) 60 requests of 1024 generated right-hand sides with earlier and earlier deadlines are sent at once; a bystander sends one PING
after the other until all are accepted. (b) Requests of 128 right-hand sides one after the other, at 10^3, 10^4, ... up to --most (100000)
right-hand sides that wait: the time from SUBMIT to ACCEPTED, with deadlines that fall and with none. An engine that only
pretends holds what is in its slots. --state: with a journal, which is brought to the disk before each answer.
"""
import argparse
import contextlib
import os
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support', 'python'))
from front_case import Case, fake       # noqa: E402
from front_driver import Client, qk     # noqa: E402

REQUESTS, MOST, FEW = 60, 1024, 128
DAY = 86400000  # milliseconds


def packed(request, nrhs, deadline_ms):
    columns = [qk.Column(seed=i) for i in range(nrhs)]
    return qk.ClientMessage(submit=qk.Submit(request=request, nrhs=nrhs, dtype=qk.DTYPE_F64, tol=1e-8, source=qk.SOURCE_Z2, column=columns,
                                             sink=qk.SINK_NONE, max_iter=fake.HOLD, deadline_ms=deadline_ms)).SerializeToString()


def wait(c, poll=True):
    """The next message but for progress; None where there is none and poll is False."""
    while poll or c.control.poll(0):
        name, body = c.receive()
        if name != 'progress':
            return name, body
    return None


def bystander(d):
    messages = [packed(i + 1, MOST, 200 * DAY - i * DAY) for i in range(REQUESTS)]
    ping = qk.ClientMessage(ping=qk.Ping()).SerializeToString()
    waited = []
    with Client(d) as c, Client(d) as by:
        begin, left = time.perf_counter(), REQUESTS
        for m in messages:
            c.control.send(m)
        while left > 0:
            sent = time.perf_counter()
            by.control.send(ping)
            by.control.recv()
            waited.append(time.perf_counter() - sent)
            while (answer := wait(c, False)):
                assert answer[0] == 'accepted', answer
                left -= 1
        took = time.perf_counter() - begin
    print('(a) %d SUBMITs of %d: %.2f s; PING of a bystander: median %.2f ms, 99 %% %.2f ms, max %.2f ms' %
          (REQUESTS, MOST, took, *(1e3 * np.percentile(waited, p) for p in (50, 99, 100))), flush=True)


def fill(c, first, until, falling):
    """From request number `first` on until so many wait."""
    n = 0
    while n * MOST < until:
        c.control.send(packed(first + n, MOST, 300 * DAY - (first + n) * DAY // 2 if falling else 0))
        assert wait(c)[0] == 'accepted'
        n += 1
    return first + n


def costs(start, most):
    for falling in (False, True):
        with start() as d, Client(d) as c:
            request, waits, size = 1, 0, 1000
            while size <= most:
                request = fill(c, request, size - waits, falling)
                took = []
                for _ in range(15):
                    m = packed(request, FEW, 300 * DAY - request * DAY // 2 if falling else 0)
                    begin = time.perf_counter()
                    c.control.send(m)
                    assert wait(c)[0] == 'accepted'
                    took.append(time.perf_counter() - begin)
                    request += 1
                waits = size + 15 * FEW
                print('(b) %7d wait, deadlines %-7s: SUBMIT of %d median %.2f ms, max %.2f ms' %
                      (size, 'fall' if falling else 'none', FEW, 1e3 * np.median(took), 1e3 * max(took)), flush=True)
                size *= 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('quarkd')
    parser.add_argument('--most', type=int, default=100000)
    parser.add_argument('--state', action='store_true')
    o = parser.parse_args()
    case = Case(o.quarkd)

    @contextlib.contextmanager
    def start():
        with tempfile.TemporaryDirectory() as state, \
                case.daemon('--log-level', 'info', *(('--state', state) if o.state else ())) as d:
            yield d

    with start() as d:
        bystander(d)
    costs(start, o.most)


if __name__ == '__main__':
    main()
