"""Many solves, threads, tasks and signals in Python: test_python_load.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE [SOLVES]"""
import asyncio
import gc
import importlib.util
import os
import random
import signal
import subprocess
import sys
import threading
import time

from cli_case import Case, np, random_sources, tap
import quarkd

SOLVES = int(sys.argv[6]) if len(sys.argv) > 6 else 180
PAGE = os.sysconf('SC_PAGE_SIZE')
LIMIT = 60  # seconds that anything here may take


def held():
    """Bytes of memory that are this process's own, mappings and descriptors."""
    gc.collect()
    with open('/proc/self/statm', encoding='ascii') as f:
        numbers = [int(word) for word in f.read().split()]
    with open('/proc/self/maps', encoding='utf-8') as f:
        maps = sum(1 for _ in f)
    return (numbers[1] - numbers[2]) * PAGE, maps, len(os.listdir('/proc/self/fd'))


def idle(q):
    """Waits until the daemon has nothing to do, and returns its report."""
    deadline = time.monotonic() + LIMIT
    while True:
        report = q.status()
        if not report.engine['slots_busy'] and not report.counters['queued']:
            return report
        assert time.monotonic() < deadline, report


@tap.test
def solves_leave_nothing_behind(case):
    b = random_sources(12)
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            def some(n):
                for i in range(n // 12):
                    x = q.solve(b[i % 12], tol=1e-3)
                    futures = q.submit_many(b[:10], tol=1e-3)
                    for f in quarkd.as_completed(futures):
                        f.result()
                    futures = q.submit(b[0], tol=1e-3)  # nobody waits for it
                    del futures
                return x
            some(60)
            before, used = held(), idle(q).memory_used
            x = some(SOLVES)
            after, report = held(), idle(q)
            assert case.residual(x, b[(SOLVES // 12 - 1) % 12]) < 1.01e-3
            assert after[0] - before[0] < 3 * b.nbytes, 'memory grew from %d to %d bytes' % (before[0], after[0])
            assert after[1] - before[1] < 20 and after[2] <= before[2] + 2, (before, after)  # a memfd stays for 10 s
            assert report.memory_used <= used + 12 * b[0].nbytes, (used, report.memory_used)


@tap.test
def solutions_that_are_held_stay_and_go_with_their_arrays(case):
    b = random_sources(1)[0]
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            held_ones = [f.result() for f in q.submit_many(np.repeat(b[None], 50, 0), tol=1e-8)]
            copies = [x.copy() for x in held_ones]
            maps = held()[1]
            del held_ones[1:]
            assert held()[1] <= maps - 40
        assert np.array_equal(held_ones[0], copies[0])  # also after close


@tap.test
def no_thread_starves(case):
    """Threads that solve as fast as they can get about the same number of solutions, and one that only counts goes on meanwhile."""
    b = random_sources(1)[0]
    count, stop, bad, ticks = [0] * 16, threading.Event(), [], [0]

    def solve(i, q):
        try:
            while not stop.is_set():
                q.solve(b, tol=1e-3)
                count[i] += 1
                if sum(count) >= 16 * 8:
                    stop.set()
        except Exception as e:
            bad.append(e)
            stop.set()

    def tick():
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0)

    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            threads = [threading.Thread(target=solve, args=(i, q)) for i in range(16)] + [threading.Thread(target=tick)]
            for t in threads:
                t.start()
            assert stop.wait(LIMIT) and not bad, bad
            for t in threads:
                t.join()
            assert min(count) >= 2 and ticks[0] > 100, (count, ticks)


@tap.test
def tasks_that_are_cancelled_end_alone(case):
    b = random_sources(4)

    async def one(a, i):
        return await a.solve(b[i % 4])

    async def main(endpoint):
        async with quarkd.aconnect(endpoint) as a:
            assert case.residual(await a.apply(await a.solve(b[0])), case.op.apply(b[0])) < 1e-8
            tasks = [asyncio.ensure_future(one(a, i)) for i in range(80)]
            gone = set(random.Random(3).sample(range(80), 40))
            await asyncio.sleep(0)
            for i in gone:
                tasks[i].cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            for i, x in enumerate(done):
                assert isinstance(x, asyncio.CancelledError) if i in gone else case.residual(x, b[i % 4]) < 1.1e-10, (i, x)
            bad = b[0].copy()
            bad[0, 0, 0, 0, 0, 0] = np.nan
            good, wrong = await asyncio.gather(a.solve(b[1]), a.solve(bad), return_exceptions=True)
            assert case.residual(good, b[1]) < 1.1e-10 and wrong.name == 'NAN_INPUT'
            return idle(a.sync)
    with case.daemon() as d:
        d.wait_listening()
        report = asyncio.run(main(d.endpoint))
        assert report.memory_used < 20 * b[0].nbytes, report.memory_used


def interrupt_when_busy(endpoint):
    """A SIGINT for this process, as soon as the daemon works for it."""
    with quarkd.connect(endpoint) as other:
        deadline = time.monotonic() + LIMIT
        while not other.status().engine['slots_busy'] and time.monotonic() < deadline:
            pass
    os.kill(os.getpid(), signal.SIGINT)


@tap.test
def an_interrupt_frees_the_slots_of_every_call_that_waits(case):
    b = random_sources(1)[0]
    endless = dict(tol=1e-30, max_iter=10**9)  # goes on until it is cancelled
    with case.daemon('--slots=4') as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            source = quarkd.z4(1, count=4)
            for call in (lambda: q.solve(b, **endless), lambda: q.submit(b, **endless).result(), lambda: q.propagator(source, **endless)):
                thread = threading.Thread(target=interrupt_when_busy, args=(d.endpoint,))
                thread.start()
                try:
                    call()
                    raise AssertionError('was not interrupted')
                except KeyboardInterrupt:
                    pass
                thread.join()
                idle(q)
            assert case.residual(q.solve(b), b) < 1.1e-10


@tap.test
def a_child_of_fork_reads_arrays_and_connects_again(case):
    b = random_sources(1)[0]
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            x = q.solve(b)
            f = q.submit(b)
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    assert case.residual(x, b) < 1.1e-10
                    try:
                        f.result()
                    except quarkd.ForkError:
                        with quarkd.connect(d.endpoint) as mine:
                            code = 0 if case.residual(mine.solve(b), b) < 1.1e-10 else 1
                    gc.collect()  # nothing of the parent's ends with the child
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            assert case.residual(f.result(), b) < 1.1e-10


class Exporter:
    """An array that knows DLPack alone."""

    def __init__(self, array, device=(1, 0)):
        self._array, self._device = array, device

    @property
    def shape(self):
        return self._array.shape

    def __dlpack__(self, stream=None):
        return self._array.__dlpack__()

    def __dlpack_device__(self):
        return self._device


@tap.test
def arrays_of_others_are_taken(case):
    b = random_sources(1)[0]
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            assert case.residual(q.solve(Exporter(b)), b) < 1.1e-10
            assert case.residual(q.solve(np.asfortranarray(b)), b) < 1.1e-10
            assert case.residual(q.solve(b.astype('>c16')), b) < 1.1e-10
            assert case.residual(q.solve(b.real), b.real) < 1.1e-10
            try:
                q.solve(Exporter(b, (2, 0)))
                raise AssertionError('memory of a device was taken')
            except TypeError as e:
                assert 'device' in str(e)
            for wrong in b.astype(object), b[1:], 3, None, 'text':
                try:
                    q.solve(wrong)
                    raise AssertionError('%r was taken' % type(wrong))
                except (TypeError, ValueError):
                    pass


@tap.test
def tensors_of_torch_come_back_as_tensors(case):
    if not importlib.util.find_spec('torch'):
        raise tap.Skip('torch is not installed')
    import torch
    b = torch.from_numpy(random_sources(2))
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            x, y = q.solve(b), q.submit(b[0].to(torch.complex64), tol=1e-6).result()
            assert isinstance(x, torch.Tensor) and x.dtype == torch.complex128 and y.dtype == torch.complex64
            assert case.residual(x[1].numpy(), b[1].numpy()) < 1.1e-10 and case.residual(y.numpy(), b[0].numpy()) < 1e-5
            y.mul_(2)  # it is the user's own


PROGRAM = '''
import sys, quarkd, numpy as np
q = quarkd.connect(sys.argv[1])
f = q.submit(np.ones(q.shape, complex))
x = q.solve(np.ones(q.shape, complex))
prop = q.propagator('point:0,0,0,0', progress=False)
column = prop[0].numpy()
print(x.shape)
'''


@tap.test
def a_program_that_closes_nothing_ends_quietly(case):
    with case.daemon() as d:
        d.wait_listening()
        done = subprocess.run([sys.executable, '-X', 'dev', '-c', PROGRAM, d.endpoint], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT)
        assert done.returncode == 0 and not done.stderr, done.stderr


tap.run(Case(*sys.argv[1:6]))
