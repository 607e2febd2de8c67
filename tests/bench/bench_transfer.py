#!/usr/bin/env python3
"""How fast fields go through quarkd, and what it costs: GB/s up and down, by socket and by shared memory, and the processor
seconds of a GB that client and daemon spend, which other load on the machine changes less.

usage: PYTHONPATH=BUILD/client/python bench_transfer.py BUILD [--dims XxYxZxT] [--rhs N] [--repeat N] [--sources]

An engine that only pretends ends uploaded fields unread, so the time up is from the first byte given to libquark to the last RESULT:
of quark_upload, or of quark_put from a buffer that was written before. The time down is of quark_download into memory that was written
before, or of quark_view_open and quark_view_close. The best of all repetitions.

--sources: in place of that what twelve columns of a propagator cost on their way up, as bytes that quarkd takes and as time: points, noise
on one time slice, and noise everywhere, which costs what all cost without runs of zeros.
"""
import argparse
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support', 'python'))
from front_case import Case, fake  # noqa: E402
import numpy as np                 # noqa: E402
from quarkd._quark import ffi, lib  # noqa: E402


class Quark:
    """The few calls of libquark that are measured."""

    def __init__(self, endpoint, local, server_key=None, key_file=None):
        options, conn = ffi.new('quark_options_t *'), ffi.new('quark_connection_t **')
        lib.quark_options_init(options)
        options.local = local
        if server_key:
            keys = [ffi.new('char[]', key) for key in (server_key, key_file)]
            options.server_key, options.key_file = keys
        call(lib.quark_connect, endpoint.encode(), options, conn)
        self.conn = conn[0]
        assert lib.quark_local(self.conn) == local

    def up(self, field, nrhs, max_iter, buffer=None):
        """The request, and seconds until all have ended."""
        params, request, result = ffi.new('quark_params_t *'), ffi.new('uint64_t *'), ffi.new('quark_result_t *')
        lib.quark_params_init(params)
        params.nrhs, params.max_iter, params.discard = nrhs, max_iter, max_iter == fake.ODD_STATUS
        call(lib.quark_submit, self.conn, params, request, ffi.NULL)
        start = time.perf_counter()
        for i in range(nrhs):
            if buffer:
                call(lib.quark_put, self.conn, request[0], i, buffer, 0)
            else:
                call(lib.quark_upload, self.conn, request[0], ffi.from_buffer(field), field.nbytes)
        for i in range(nrhs):
            call(lib.quark_wait, self.conn, request[0], i, -1, result)
        return request[0], time.perf_counter() - start

    def down(self, request, x):
        start = time.perf_counter()
        call(lib.quark_download, self.conn, request, 0, ffi.from_buffer(x), x.nbytes)
        return time.perf_counter() - start

    def look(self, request, x):
        view = ffi.new('quark_view_t *')
        start = time.perf_counter()
        call(lib.quark_view_open, self.conn, request, 0, ffi.from_buffer(x), x.nbytes, view)
        assert view.mapped
        lib.quark_view_close(view)
        return time.perf_counter() - start

    def release(self, request):
        call(lib.quark_release, self.conn, request)

    def close(self):
        lib.quark_close(self.conn)


def call(function, *arguments):
    err = ffi.new('quark_error_t *')
    assert function(*arguments, err) == 0, ffi.string(err.text)


def filled(field):
    """A buffer with the field in it."""
    buffer, data = ffi.new('quark_buffer_t **'), ffi.new('void **')
    call(lib.quark_buffer_create, field.nbytes, buffer, data)
    np.copyto(np.frombuffer(ffi.buffer(data[0], field.nbytes)), field)
    return buffer[0]


def spent_by(d):
    """Processor seconds of quarkd so far."""
    with open('/proc/%d/stat' % d.process.pid, encoding='ascii') as f:
        numbers = f.read().rpartition(')')[2].split()
    return sum(int(n) for n in numbers[11:13]) / os.sysconf('SC_CLK_TCK')


def cost(d, gb, work):
    """GB/s, then processor seconds a GB of this process and of quarkd. work returns its seconds."""
    begin = np.array([time.process_time(), spent_by(d)])
    seconds = work()
    spent = np.array([time.process_time(), spent_by(d)]) - begin
    return [gb / seconds, *(spent / gb)]


def measure(d, quark, field, nrhs, buffer):
    """Lines of a table by name."""
    gb, x, out = 1e-9 * nrhs * field.nbytes, np.ones_like(field), {}

    def up(source):
        def work():
            request, seconds = quark.up(field, nrhs, fake.ODD_STATUS, source)
            quark.release(request)
            return seconds
        return work
    out['up'] = cost(d, gb, up(None))
    if buffer:
        out['up from a buffer'] = cost(d, gb, up(buffer))
    request, _ = quark.up(field, 1, 10000, buffer)
    out['down'] = cost(d, gb, lambda: sum(quark.down(request, x) for _ in range(nrhs)))
    assert np.array_equal(x, 2 * field)
    if buffer:
        out['mapped'] = cost(d, gb, lambda: sum(quark.look(request, x) for _ in range(nrhs)))
    quark.release(request)
    return out


def columns(kind, dims):
    """Twelve sources [t][z][y][x][spin][colour]."""
    x, y, z, t = dims
    rng = np.random.default_rng(2)
    for k in range(12):
        b = np.zeros((t, z * y * x, 12), complex)
        if kind == 'points':
            b[t // 3, 5, k] = 1
        else:
            b[slice(None) if kind == 'noise' else t // 3] = rng.standard_normal(b.shape[0 if kind == 'noise' else 1:])
        yield b


def send_columns(d, quark, fields):
    """Seconds, and bytes of fields that quarkd has taken."""
    before = d.status().counters.bytes_in
    params, request, result = ffi.new('quark_params_t *'), ffi.new('uint64_t *'), ffi.new('quark_result_t *')
    lib.quark_params_init(params)
    params.nrhs, params.max_iter, params.discard = len(fields), fake.ODD_STATUS, True
    call(lib.quark_submit, quark.conn, params, request, ffi.NULL)
    start = time.perf_counter()
    for b in fields:
        call(lib.quark_upload, quark.conn, request[0], ffi.from_buffer(b), b.nbytes)
    for i in range(len(fields)):
        call(lib.quark_wait, quark.conn, request[0], i, -1, result)
    seconds = time.perf_counter() - start
    quark.release(request[0])
    return seconds, d.status().counters.bytes_in - before


def compare_sources(a, dims):
    with Case(os.path.join(a.build, 'daemon/front/quarkd')).daemon('--data-threads', '1', dims=a.dims) as d:
        for way in ('socket', 'shared'):
            quark = Quark(d.endpoint, way == 'shared')
            for kind in ('noise', 'slice', 'points'):
                fields = list(columns(kind, dims))
                runs = [send_columns(d, quark, fields) for _ in range(a.repeat)]
                print('%-6s  %-6s  %12d bytes of %d   %.4f s' % (way, kind, runs[0][1], sum(b.nbytes for b in fields), min(r[0] for r in runs)), flush=True)
            quark.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--dims', default='32x32x32x32')
    parser.add_argument('--rhs', type=int, default=4)
    parser.add_argument('--repeat', type=int, default=3)
    parser.add_argument('--sources', action='store_true')
    a = parser.parse_args()
    if a.sources:
        compare_sources(a, [int(n) for n in a.dims.split('x')])
        return
    field = np.random.default_rng(1).standard_normal(24 * int(np.prod([int(n) for n in a.dims.split('x')])))
    copy = min(timed(lambda: np.copyto(other, field)) for other in [np.ones_like(field)] for _ in range(3))
    print('%s: %.1f MB a field, memcpy %.2f GB/s' % (a.dims, 1e-6 * field.nbytes, 1e-9 * field.nbytes / copy))
    buffer = filled(field)
    with Case(os.path.join(a.build, 'daemon/front/quarkd')).daemon(dims=a.dims) as d:
        for way in ('socket', 'shared'):
            quark = Quark(d.endpoint, way == 'shared')
            runs = [measure(d, quark, field, a.rhs, buffer if way == 'shared' else None) for _ in range(a.repeat)]
            quark.close()
            for name in runs[0]:
                numbers = np.array([run[name] for run in runs])
                print('%-6s  %-16s  %5.2f GB/s   client %.2f s/GB   daemon %.2f s/GB'
                      % (way, name, numbers[:, 0].max(), numbers[:, 1].min(), numbers[:, 2].min()), flush=True)


def timed(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


if __name__ == '__main__':
    main()
