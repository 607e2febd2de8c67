#!/usr/bin/env python3
"""What the front takes by what it holds: SUBMIT, STATUS, a tick, the choice of the next right-hand side, and a restart.

usage: bench_front.py QUARKD [--most N] [--requests N] [--users N] [--state DIR [--held N]] [--shim FILE --sync MS]

At 10^3, 10^4, ... up to --most (1000000) right-hand sides that wait, in requests of 1024; and at 10^2, 10^3, ... up to --requests (100000)
requests of one; and (turns) with right-hand sides of up to --users users (2048) that wait for one slot. Printed are the median of the time from SUBMIT to
ACCEPTED, and from STATUS to its answer; the share of a processor that the front takes while nothing happens (its ticks); the front's own time for a request that comes
and is cancelled, while so many users wait for their turn; with --state (a folder on the disk that is meant) the time of a restart after kill -9 until it serves, also
with up to --held solutions (20000) of 49 kB in shared memory.
With --shim (tests/support/disk_shim.so of a build) nothing of that, but: four clients upload and fetch on a disk each of whose syncs takes so many ms (20); right-hand
sides a second, and the PINGs of a bystander.
"""
import argparse
import contextlib
import os
import sys
import tempfile
import threading
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support', 'python'))
from front_case import Case, fake, field    # noqa: E402
from front_driver import Client, qk         # noqa: E402

MOST, OF_A_CLIENT, AHEAD, TRIES = 1024, 256, 32, 25
DAY = 86400000  # milliseconds


def packed(request, nrhs, action=fake.HOLD):
    columns = [qk.Column(seed=i) for i in range(nrhs)]
    return qk.ClientMessage(submit=qk.Submit(request=request, nrhs=nrhs, dtype=qk.DTYPE_F64, tol=1e-8, source=qk.SOURCE_Z2, column=columns, sink=qk.SINK_NONE,
                                             max_iter=action, detach_ms=DAY)).SerializeToString()


def wait(c, wanted):
    while True:
        name, body = c.receive()
        if name == wanted:
            return body


def seconds(d):
    """Of processor that the front has taken."""
    with open('/proc/%d/stat' % d.process.pid, encoding='utf-8') as f:
        fields = f.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Crowd:
    """Clients that have submitted what waits, and have gone without a word."""

    def __init__(self, d, nrhs):
        self.d, self.nrhs, self.count = d, nrhs, 0

    def grow(self, size):
        while self.count < size:
            n = min(OF_A_CLIENT, -(-(size - self.count) // self.nrhs))
            with Client(self.d) as c:
                for i in range(n):
                    c.control.send(packed(i + 1, self.nrhs))
                    if i >= AHEAD:
                        wait(c, 'accepted')
                for _ in range(min(n, AHEAD)):
                    wait(c, 'accepted')
            self.count += n * self.nrhs


def measure(d):
    """Medians in ms of SUBMIT and STATUS; share of a processor at rest, in percent."""
    submits, reports = [], []
    with Client(d) as c:
        for i in range(TRIES):
            begin = time.perf_counter()
            c.control.send(packed(i + 1, 1))
            wait(c, 'accepted')
            submits.append(time.perf_counter() - begin)
        for _ in range(TRIES):
            begin = time.perf_counter()
            c.status()
            reports.append(time.perf_counter() - begin)
    time.sleep(1)
    before = seconds(d)
    time.sleep(5)
    rest = (seconds(d) - before) / 5
    return 1e3 * np.median(submits), 1e3 * np.median(reports), 1e2 * rest


def told(what, count, figures, restart):
    print('%8d %-18s SUBMIT %6.2f ms   STATUS %6.2f ms   at rest %5.2f %% of a core%s' %
          (count, what, *figures, '   restart %6.2f s' % restart if restart else ''), flush=True)


def by_size(start, what, nrhs, sizes, state):
    with start() as d:
        crowd = Crowd(d, nrhs)
        for size in sizes:
            crowd.grow(size)
            figures, restart = measure(d), None
            if state and size == sizes[-1]:
                d.process.kill()
                d.process.wait()
                begin = time.perf_counter()
                with start():
                    restart = time.perf_counter() - begin
            told(what, size, figures, restart)


def by_held(start, size):
    """Solutions that nobody has fetched, each of which is an object in shared memory; the restart finds them again."""
    with start() as d:
        done = 0
        while done < size:
            with Client(d) as c:
                c.submit(MOST, source=qk.SOURCE_Z2, detach_ms=DAY)
                c.results(MOST)
                done += MOST
        d.process.kill()
        d.process.wait()
        begin = time.perf_counter()
        with start():
            print('%8d solutions are held: restart %6.2f s' % (done, time.perf_counter() - begin), flush=True)


def turns(start, users):
    """Of each user four right-hand sides wait behind those that hold the slot; one more user comes and goes."""
    with start('--slots', '1') as d:
        count, size = 0, 8
        with Client(d) as c:
            request = 1
            while size <= users:
                while count < size:
                    with Client(d, user='u%d' % count) as other:
                        other.control.send(packed(1, 4))
                        wait(other, 'accepted')
                    count += 1
                n = 500
                before, begin = seconds(d), time.perf_counter()
                for _ in range(n):
                    c.control.send(packed(request, 1))
                    wait(c, 'accepted')
                    c.send(cancel=qk.Cancel(request=request))
                    wait(c, 'result')
                    c.ack(request)
                    request += 1
                c.ping()
                print('%8d users wait         SUBMIT, CANCEL, ACK %6.1f us of the front   %6.2f ms' %
                      (size, 1e6 * (seconds(d) - before) / n, 1e3 * (time.perf_counter() - begin) / n), flush=True)
                size *= 16


def slow_disk(quarkd, shim, ms):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'security'))
    from disk_case import DiskCase      # noqa: E402
    solved, waited, until = [0] * 4, [], time.monotonic() + 10

    def work(d, i):
        with Client(d) as c:
            while time.monotonic() < until:
                c.solve([field() for _ in range(4)])
                solved[i] += 4

    case = DiskCase(quarkd, shim)
    with case.state() as (state, disk), state.daemon('--log-level', 'info') as d, Client(d) as by:
        by.ping()
        disk.stalls(ms)
        threads = [threading.Thread(target=work, args=(d, i)) for i in range(4)]
        for t in threads:
            t.start()
        while time.monotonic() < until:
            sent = time.perf_counter()
            by.ping()
            waited.append(time.perf_counter() - sent)
            time.sleep(0.01)
        for t in threads:
            t.join()
        disk.works()
    print('syncs of %d ms: %.0f RHS/s; PING of a bystander: median %.2f ms, 99 %% %.2f ms, max %.2f ms' %
          (ms, sum(solved) / 10, *(1e3 * np.percentile(waited, p) for p in (50, 99, 100))), flush=True)


def powers(first, last):
    return [n for n in (first * 10**k for k in range(10)) if n <= last]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('quarkd')
    parser.add_argument('--most', type=int, default=1000000)
    parser.add_argument('--requests', type=int, default=100000)
    parser.add_argument('--users', type=int, default=2048)
    parser.add_argument('--state')
    parser.add_argument('--held', type=int, default=20000)
    parser.add_argument('--shim')
    parser.add_argument('--sync', type=int, default=20)
    o = parser.parse_args()
    if o.shim:
        slow_disk(o.quarkd, os.path.abspath(o.shim), o.sync)
        return
    case = Case(o.quarkd)

    @contextlib.contextmanager
    def start(*options):
        with case.daemon('--log-level', 'info', '--max-sessions', '65536', *options, *(('--state', folder) if folder else ())) as d:
            yield d

    for what, nrhs, sizes in (('RHS of 1024 each', MOST, powers(1000, o.most)), ('requests of 1', 1, powers(100, o.requests))):
        with tempfile.TemporaryDirectory(dir=o.state) as made:
            folder = made if o.state else None
            by_size(start, what, nrhs, sizes, o.state)
    for size in (o.held // 4, o.held // 2, o.held) if o.state else ():
        with tempfile.TemporaryDirectory(dir=o.state) as folder:
            by_held(start, size)
    folder = None
    turns(start, o.users)


if __name__ == '__main__':
    main()
