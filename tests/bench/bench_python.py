#!/usr/bin/env python3
"""Twelve columns in Python beside libquark and quarkctl, by turns on one daemon: seconds and their ratios.

usage: PYTHONPATH=BUILD/client/python bench_python.py BUILD [--dims XxYxZxT] [--repeat N] [--solver NAME]

uploaded   twelve right-hand sides are sent, solved to 1e-8 and fetched. libquark: its calls one after the other, each solution copied by
           quark_download; quarkctl: `quarkctl bench` with one request at a time; Python: q.solve, also of an array in a buffer (q.empty), twelve
           futures of one request, and twelve requests
generated  the propagator of a point stays with the daemon, and its pion is contracted
Medians of the repetitions; the ratio is to libquark, or, of generated ones, to quarkctl bench, whose requests stand at other points. Seconds of
processors in the client, of all its threads, change less where others use the machine.
"""
import argparse
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support', 'python'))
from daemon import Daemon  # noqa: E402
import numpy as np         # noqa: E402
import quarkd              # noqa: E402
from quarkd._quark import ffi, lib  # noqa: E402

TOL = 1e-8


def libquark(q, b, out):
    """The same by the calls of libquark alone."""
    err, params, number, size = ffi.new('quark_error_t *'), ffi.new('quark_params_t *'), ffi.new('uint64_t *'), ffi.new('uint64_t *')
    result = ffi.new('quark_result_t *')

    def call(code):
        assert code == 0, ffi.string(err.text)
    with q._handle as conn:
        lib.quark_params_init(params)
        params.nrhs, params.tol = len(b), TOL
        call(lib.quark_submit(conn, params, number, size, err))
        call(lib.quark_upload(conn, number[0], ffi.from_buffer(b), b.nbytes, err))
        for i in range(len(b)):
            call(lib.quark_wait(conn, number[0], i, -1, result, err))
            call(lib.quark_download(conn, number[0], i, ffi.from_buffer(out[i]), size[0], err))
        call(lib.quark_release(conn, number[0], err))


def quarkctl(d, source, sink):
    done = d.ctl('bench', '--clients=1', '--rhs=12:12', '--requests=1', '--tol=%g' % TOL, '--source=' + source, '--sink=' + sink, '--json')
    assert done.code == 0, done
    return done.json


def seconds(call):
    """By the clock, and of processors in this process."""
    start, spent = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, time.process_time() - spent


def row(name, times, base):
    t, best, spent = float(np.median([x[0] for x in times])), min(x[0] for x in times), float(np.median([x[1] for x in times]))
    print('%-36s %9.4f %9.4f %8.3f %9.4f' % (name, t, best, base / t if base else 1, spent), flush=True)
    return t


def measure(build, dims, repeat, solver):
    programs = [os.path.join(build, path) for path in ('daemon/front/quarkd', 'client/quarkctl')]
    with Daemon(*programs, '--gauge=builtin:weak:%s:1' % dims, '--kappa=0.13', '--csw=1', '--solver=' + solver, '--slots=12') as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            shape = (12,) + q.shape
            b = np.random.default_rng(1).normal(size=shape + (2,)).view(complex)[..., 0].copy()
            out, own = np.empty_like(b), q.empty(shape)
            own[...] = b
            kinds = {'libquark, uploaded': lambda: libquark(q, b, out), 'Python, solve': lambda: q.solve(b, tol=TOL),
                     'Python, solve, in a buffer': lambda: q.solve(own, tol=TOL),
                     'Python, twelve futures': lambda: [f.result() for f in q.submit_many(b, tol=TOL)],
                     'Python, twelve requests': lambda: [f.result() for f in [q.submit(x, tol=TOL) for x in b]],
                     'Python, propagator and pion': lambda: q.propagator('point:0,0,0,0', tol=TOL, progress=False).correlator()}
            times = {name: [] for name in [*kinds, 'quarkctl bench, uploaded', 'quarkctl bench, propagator and pion']}
            for n in range(repeat + 1):
                for name, call in kinds.items():
                    times[name].append(seconds(call))
                times['quarkctl bench, uploaded'].append(told(quarkctl(d, 'upload', 'download')))
                times['quarkctl bench, propagator and pion'].append(told(quarkctl(d, 'point', 'correlator')))
            assert np.allclose(out, q.solve(b, tol=TOL), rtol=0, atol=1e-6 * np.abs(out).max())
    print('%s, %s, twelve columns, %d turns' % (dims, solver, repeat))
    print('%-36s %9s %9s %8s %9s' % ('', 'median s', 'best s', 'ratio', 'client s'))
    first = row('libquark, uploaded', times['libquark, uploaded'][1:], 0)
    for name in ('quarkctl bench, uploaded', 'Python, solve', 'Python, solve, in a buffer', 'Python, twelve futures', 'Python, twelve requests'):
        row(name, times[name][1:], first)
    first = row('quarkctl bench, propagator and pion', times['quarkctl bench, propagator and pion'][1:], 0)
    row('Python, propagator and pion', times['Python, propagator and pion'][1:], first)


def told(report):
    """Seconds of the one request; those of its processors are not known."""
    return report['latency']['request']['mean'], float('nan')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--dims', default='8x8x8x16')
    parser.add_argument('--repeat', type=int, default=9)
    parser.add_argument('--solver', default='bicgstab')
    options = parser.parse_args()
    measure(options.build, options.dims, options.repeat, options.solver)


main()
