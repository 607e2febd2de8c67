#!/usr/bin/env python3
"""Fields between quarkd and several clients by tcp: GB/s up and down, by number of data threads, with and without CURVE, and the
processor seconds of a GB that clients and daemon spend.

usage: PYTHONPATH=BUILD/client/python bench_network.py BUILD [--dims XxYxZxT] [--clients N] [--rhs N] [--threads N[,N...]] [--repeat N] [--curve]

Each client is a process with a connection of its own. An engine that only pretends ends uploaded fields unread, so the time up is
from the first byte given to libquark to the last RESULT of all clients; the time down is of quark_download into memory that was
written before. Medians of all repetitions. `shared` is the same by shared memory.
"""
import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support', 'python'))
import numpy as np                           # noqa: E402
from bench_transfer import Quark, spent_by  # noqa: E402
from front_case import Case, fake            # noqa: E402
from front_keys import Keys, write           # noqa: E402


class Client(Quark):
    """One process of it."""

    def go(self, field, x, gate, nrhs, times):
        """Up, then down; gate: all begin and end together."""
        gate.wait()
        request, _ = self.up(field, nrhs, fake.ODD_STATUS)
        gate.wait()
        times.append(time.process_time())
        self.release(request)
        request, _ = self.up(field, 1, 10000)
        gate.wait()
        for _ in range(nrhs):
            self.down(request, x)
        gate.wait()
        times.append(time.process_time())
        assert np.array_equal(x, 2 * field)
        self.release(request)


def run_client(a, endpoint, way, keys, gate, queue):
    field = np.random.default_rng(os.getpid()).standard_normal(24 * sites(a.dims))
    x = np.ones_like(field)
    client = Client(endpoint, way == 'shared', *keys)
    for _ in range(a.repeat):
        times = [time.process_time()]
        client.go(field, x, gate, a.rhs, times)
        queue.put([times[1] - times[0], times[2] - times[1]])
        gate.wait()
    client.close()


def sites(dims):
    return int(np.prod([int(n) for n in dims.split('x')]))


def measure(a, d, way, keys):
    """Of each repetition: GB/s, then seconds a GB of clients and daemon; up, then down."""
    gate, queue = multiprocessing.Barrier(a.clients + 1), multiprocessing.Queue()
    clients = [multiprocessing.Process(target=run_client, args=(a, d.endpoint, way, keys, gate, queue)) for _ in range(a.clients)]
    for c in clients:
        c.start()
    gb, rows = 1e-9 * a.clients * a.rhs * 24 * 8 * sites(a.dims), []
    for _ in range(a.repeat):
        parts = []
        for _ in range(2):  # up, down
            gate.wait()
            begin, cost = time.perf_counter(), spent_by(d)
            gate.wait()
            parts.append((gb / (time.perf_counter() - begin), (spent_by(d) - cost) / gb))
        theirs = np.sum([queue.get() for _ in clients], axis=0) / gb
        gate.wait()
        rows.append([parts[0][0], theirs[0], parts[0][1], parts[1][0], theirs[1], parts[1][1]])
    for c in clients:
        c.join()
        assert c.exitcode == 0
    return [statistics.median(column) for column in zip(*rows)]


def show(name, row):
    print('%-26s  up %6.2f GB/s  clients %5.2f  daemon %5.2f s/GB   down %6.2f GB/s  clients %5.2f  daemon %5.2f s/GB' % (name, *row), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('build')
    parser.add_argument('--dims', default='32x32x32x32')
    parser.add_argument('--clients', type=int, default=8)
    parser.add_argument('--rhs', type=int, default=4)
    parser.add_argument('--threads', default='1,2,4,8')
    parser.add_argument('--repeat', type=int, default=3)
    parser.add_argument('--curve', action='store_true', help='with keys, too')
    a = parser.parse_args()
    quarkd = os.path.join(a.build, 'daemon/front/quarkd')
    print('%s: %.1f MB a field, %d clients, %d fields each, %d processors'
          % (a.dims, 24e-6 * 8 * sites(a.dims), a.clients, a.rhs, len(os.sched_getaffinity(0))))
    with Case(quarkd).daemon(dims=a.dims) as d:
        show('shared', measure(a, d, 'shared', ()))
    for threads in a.threads.split(','):
        with Case(quarkd).daemon('--data-threads', threads, dims=a.dims) as d:
            show('tcp, %s data threads' % threads, measure(a, d, 'tcp', ()))
    for threads in a.threads.split(',') if a.curve else []:
        with tempfile.TemporaryDirectory() as folder:
            keys = Keys(folder)
            curve, secret = keys.add('client', 'operate'), os.path.join(folder, 'client.key')
            write(secret, curve[2].decode() + '\n', 0o600)
            with Case(quarkd).daemon(*keys.options, '--data-threads', threads, dims=a.dims) as d:
                d.curve = curve
                show('CURVE, %s data threads' % threads, measure(a, d, 'tcp', (keys.server_public, secret.encode())))


if __name__ == '__main__':
    main()
