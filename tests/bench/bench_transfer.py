#!/usr/bin/env python3
"""How fast fields go through quarkd, and what it costs: GB/s up and down, by socket and by shared memory, and the processor
seconds of a GB that client and daemon spend, which other load on the machine changes less.

usage: bench_transfer.py QUARKD LIBQUARK [--dims XxYxZxT] [--rhs N] [--repeat N]

An engine that only pretends ends uploaded fields unread, so the time up is from the first byte given to libquark to the last RESULT. The
time down is of quark_download into memory that was written before. The best of all
repetitions.
"""
import argparse
import ctypes
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support', 'python'))
from front_case import Case, fake  # noqa: E402
import numpy as np                 # noqa: E402


class Options(ctypes.Structure):
    _fields_ = [('timeout_ms', ctypes.c_uint32), ('reconnect_ms', ctypes.c_uint32), ('client_id', ctypes.c_void_p),
                ('keep_session', ctypes.c_bool), ('user', ctypes.c_char_p), ('program', ctypes.c_char_p),
                ('server_key', ctypes.c_char_p), ('key_file', ctypes.c_char_p), ('local', ctypes.c_bool),
                ('rest', ctypes.c_uint64 * 8)]


class Params(ctypes.Structure):
    _fields_ = [('setup', ctypes.c_char_p), ('nrhs', ctypes.c_uint32), ('dtype', ctypes.c_int), ('basis', ctypes.c_int),
                ('normalisation', ctypes.c_int), ('tol', ctypes.c_double), ('max_iter', ctypes.c_uint64), ('deadline_ms', ctypes.c_uint64),
                ('priority', ctypes.c_int), ('source', ctypes.c_int), ('column', ctypes.c_void_p), ('discard', ctypes.c_bool),
                ('rest', ctypes.c_uint64 * 32)]


class Quark:
    """The few calls of libquark that are measured."""

    def __init__(self, library, endpoint, local, server_key=None, key_file=None):
        self.lib = ctypes.CDLL(library)
        options, self.conn = Options(), ctypes.c_void_p()
        self.lib.quark_options_init(ctypes.byref(options))
        options.local, options.server_key, options.key_file = local, server_key, key_file
        self.call('connect', endpoint.encode(), ctypes.byref(options), ctypes.byref(self.conn))
        self.lib.quark_local.restype = ctypes.c_bool
        assert self.lib.quark_local(self.conn) == local

    def call(self, name, *arguments):
        code = getattr(self.lib, 'quark_' + name)(*arguments, None)
        assert code == 0, (name, code)

    def up(self, field, nrhs, max_iter):
        """The request, and seconds until all have ended."""
        params, request, result = Params(), ctypes.c_uint64(), ctypes.create_string_buffer(512)
        self.lib.quark_params_init(ctypes.byref(params))
        params.nrhs, params.max_iter, params.discard = nrhs, max_iter, max_iter == fake.ODD_STATUS
        self.call('submit', self.conn, ctypes.byref(params), ctypes.byref(request), None)
        start = time.perf_counter()
        for _ in range(nrhs):
            self.call('upload', self.conn, request, field.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(field.nbytes))
        for i in range(nrhs):
            self.call('wait', self.conn, request, ctypes.c_uint32(i), ctypes.c_int64(-1), result)
        return request, time.perf_counter() - start

    def down(self, request, rhs, x):
        start = time.perf_counter()
        self.call('download', self.conn, request, ctypes.c_uint32(rhs), x.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(x.nbytes))
        return time.perf_counter() - start

    def close(self):
        self.lib.quark_close(self.conn)


def spent_by(d):
    """Processor seconds of quarkd so far."""
    with open('/proc/%d/stat' % d.process.pid, encoding='ascii') as f:
        numbers = f.read().rpartition(')')[2].split()
    return sum(int(n) for n in numbers[11:13]) / os.sysconf('SC_CLK_TCK')


def spent(d):
    """Processor seconds of this process and of quarkd so far."""
    return np.array([time.process_time(), spent_by(d)])


def measure(d, quark, field, nrhs):
    """GB/s, then seconds a GB of client and daemon; up, then down."""
    x, gb = np.ones_like(field), 1e-9 * nrhs * field.nbytes
    begin = spent(d)
    request, up = quark.up(field, nrhs, fake.ODD_STATUS)
    up_cost = (spent(d) - begin) / gb
    quark.call('release', quark.conn, request)
    request, _ = quark.up(field, 1, 10000)
    begin = spent(d)
    down = sum(quark.down(request, 0, x) for _ in range(nrhs))
    down_cost = (spent(d) - begin) / gb
    assert np.array_equal(x, 2 * field)
    quark.call('release', quark.conn, request)
    return np.array([gb / up, *up_cost, gb / down, *down_cost])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('quarkd')
    parser.add_argument('libquark')
    parser.add_argument('--dims', default='32x32x32x32')
    parser.add_argument('--rhs', type=int, default=4)
    parser.add_argument('--repeat', type=int, default=3)
    a = parser.parse_args()
    field = np.random.default_rng(1).standard_normal(24 * int(np.prod([int(n) for n in a.dims.split('x')])))
    copy = min(timed(lambda: np.copyto(other, field)) for other in [np.ones_like(field)] for _ in range(3))
    print('%s: %.1f MB a field, memcpy %.2f GB/s' % (a.dims, 1e-6 * field.nbytes, 1e-9 * field.nbytes / copy))
    with Case(a.quarkd).daemon(dims=a.dims) as d:
        for way in ('socket', 'shared'):
            quark = Quark(a.libquark, d.endpoint, way == 'shared')
            runs = np.array([measure(d, quark, field, a.rhs) for _ in range(a.repeat)])
            quark.close()
            best = [runs[:, i].max() if i % 3 == 0 else runs[:, i].min() for i in range(6)]
            for name, (rate, client, daemon) in (('up', best[:3]), ('down', best[3:])):
                print('%-6s  %-4s  %5.2f GB/s   client %.2f s/GB   daemon %.2f s/GB' % (way, name, rate, client, daemon), flush=True)


def timed(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


if __name__ == '__main__':
    main()
