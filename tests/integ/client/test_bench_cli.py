#!/usr/bin/env python3
"""quarkctl bench, as a user sees it, with the real daemon:
test_bench_cli.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import json
import shutil
import signal
import socket
import sys

import tap
from cli_case import AGAIN, DATA, UNAVAILABLE, USAGE, Case

SPREAD = {'samples', 'mean', 'p50', 'p90', 'p99', 'max'}
KEYS = {'load': {'loop', 'clients', 'depth', 'users', 'rate', 'think', 'rhs_min', 'rhs_max', 'tol', 'source', 'seed'},
        'requests': {'done', 'rejected', 'retried', 'abandoned', 'late', 'correlators', 'spoilt'}, 'rhs': {'done', 'converged', 'iterations', 'failed'},
        'per_second': {'rhs', 'megabytes_in', 'megabytes_out'},
        'latency': {'request', 'rhs', 'queue', 'solver', 'elsewhere', 'rhs_by_user'},
        'solver': {'slots', 'slot_seconds', 'capacity', 'share'},
        'occupancy': {'saturated_seconds', 'solving_slot_seconds', 'moving_slot_seconds', 'idle_slot_seconds', 'occupancy'},
        'verified': {'norms', 'solves', 'wrong', 'worst_norm', 'worst_solve'}}
MIX = ('--rhs=1:4', '--tol=1e-4,1e-7,1e-10', '--source=point,wall,z2,z4,upload')
FIELD = 4 * 4 * 4 * 8 * 24 * 8


def bench(d, *args, code=0):
    r = d.ctl('bench', '--json', *args)
    assert r.code == code, r
    return r.json


def plan(case, *args):
    r = case.ctl('bench', '--list', *args)
    assert r.code == 0, r
    return json.loads(r.out)


def check_spread(s, samples):
    assert set(s) == SPREAD and s['samples'] == samples, s
    assert 0 <= s['p50'] <= s['p90'] <= s['p99'] <= s['max'] and s['mean'] <= s['max'], s


@tap.test
def a_seed_makes_the_same_requests(case):
    first = plan(case, '--requests=200', '--seed=5', *MIX)
    assert first == plan(case, '--requests=200', '--seed=5', '--clients=7', '--users=3', *MIX)
    assert first[:50] == plan(case, '--requests=50', '--seed=5', *MIX)
    assert first != plan(case, '--requests=200', '--seed=6', *MIX)
    assert {r['source'] for r in first} == {'point', 'wall', 'z2', 'z4', 'upload'} and {r['rhs'] for r in first} == {1, 2, 3, 4}
    assert {r['tol'] for r in first} == {1e-4, 1e-7, 1e-10} and len({r['seed'] for r in first}) == 200
    assert all(r['arrival'] == 0 and r['think'] == 0 for r in first)


@tap.test
def arrivals_and_pauses_are_as_asked_for(case):
    arrivals = [r['arrival'] for r in plan(case, '--requests=4000', '--rate=50')]
    gaps = [b - a for a, b in zip([0] + arrivals, arrivals)]
    mean = sum(gaps) / len(gaps)
    assert min(gaps) > 0 and abs(mean * 50 - 1) < 0.08, mean
    assert abs(sum(g > mean for g in gaps) / len(gaps) - 0.368) < 0.03  # exponential
    pauses = [r['think'] for r in plan(case, '--requests=4000', '--think=2')]
    assert abs(sum(pauses) / len(pauses) / 2 - 1) < 0.08 and max(pauses) > 6
    assert {r['think'] for r in plan(case, '--requests=10', '--think=2:fixed')} == {2}


@tap.test
def a_closed_loop_sends_the_requests_of_its_seed(case):
    wanted = plan(case, '--requests=30', '--seed=3', *MIX)
    count = sum(r['rhs'] for r in wanted)
    with case.daemon('--slots=4') as d:
        j = bench(d, '--clients=6', '--users=2', '--requests=30', '--seed=3', '--verify', *MIX)
        assert set(j) == set(KEYS) | {'seconds', 'interrupted'}, set(j)
        for name, keys in KEYS.items():
            assert set(j[name]) == keys, (name, set(j[name]))
        assert j['load']['loop'] == 'closed' and j['load']['rate'] is None and not j['interrupted']
        assert j['requests'] == dict(done=30, rejected=0, retried=0, abandoned=0, late=0, correlators=0, spoilt=0)
        assert j['rhs']['done'] == j['rhs']['converged'] == count and j['rhs']['failed'] == {}
        for name in ('rhs', 'queue', 'solver'):
            check_spread(j['latency'][name], count)
        check_spread(j['latency']['request'], 30)
        assert [u['samples'] > 0 for u in j['latency']['rhs_by_user']] == [True, True]
        assert sum(u['samples'] for u in j['latency']['rhs_by_user']) == count
        seconds, rate = j['seconds'], j['per_second']
        assert abs(rate['rhs'] * seconds - count) < 1e-6
        uploaded = FIELD * sum(r['rhs'] for r in wanted if r['source'] == 'upload')
        assert rate['megabytes_in'] * seconds * 1e6 >= uploaded - 1 and uploaded > 0  # second solves come on top
        assert rate['megabytes_out'] * seconds * 1e6 >= count * FIELD - 1
        v = j['verified']
        assert v['norms'] == count and v['wrong'] == 0 and v['worst_norm'] < 1e-10, v
        assert 0 < j['solver']['share'] <= 1.001 and j['solver']['slots'] == 4, j['solver']
        assert abs(j['solver']['capacity'] - 4 * seconds) < 1e-9
        o = j['occupancy']
        assert o['saturated_seconds'] <= seconds + 0.2 and 0 <= o['occupancy'] <= 1, o
        assert d.ctl('status', '--json').json['counters']['requests'] == 0


@tap.test
def clients_can_have_several_requests_under_way(case):
    wanted = plan(case, '--requests=30', '--seed=4', *MIX)
    with case.daemon('--slots=4') as d:
        j = bench(d, '--clients=2', '--depth=3', '--requests=30', '--seed=4', *MIX)
        assert j['load']['depth'] == 3 and j['requests']['done'] == 30 and j['requests']['abandoned'] == 0, j
        assert j['rhs']['done'] == j['rhs']['converged'] == sum(r['rhs'] for r in wanted)
        check_spread(j['latency']['request'], 30)
        p = d.start_ctl('bench', '--json', '--clients=2', '--depth=3', '--rhs=4', '--source=upload', '--duration=1000')
        while d.ctl('status', '--json').json['counters']['requests'] < 6:
            assert p.poll() is None, p.communicate()
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(timeout=60)
        j = json.loads(out)
        assert j['interrupted'] and 0 < j['requests']['abandoned'] <= 6, j['requests']
        assert d.ctl('status', '--json').json['counters']['requests'] == 0


@tap.test
def correlators_are_all_that_comes(case):
    with case.daemon('--slots=4') as d:
        j = bench(d, '--clients=2', '--depth=2', '--rhs=12', '--source=point,wall', '--sink=correlator', '--requests=6')
        assert (j['requests']['done'], j['requests']['correlators'], j['requests']['spoilt']) == (6, 6, 0), j
        assert j['rhs']['converged'] == 72 and j['per_second']['megabytes_out'] * j['seconds'] < 0.01, j
        s = d.ctl('status', '--json').json['counters']
        assert (s['contracted'], s['kept'], s['requests']) == (6, 0, 0), s
        text = d.ctl('bench', '--rhs=12', '--source=point', '--sink=correlator', '--requests=1', '--max-iter=1')
        assert text.code == DATA and 'correlators' not in text.out, text  # nothing to make them of


@tap.test
def uploads_are_solved_a_second_time(case):
    with case.daemon('--slots=4') as d:
        for dtype in ('f32', 'f64'):
            j = bench(d, '--requests=40', '--source=upload', '--verify', '--rhs=2', '--tol=1e-5', '--dtype=' + dtype)
            again = j['verified']
            assert again['solves'] > 0 and again['wrong'] == 0 and again['norms'] == 80 and again['worst_solve'] < 1e-3, again


@tap.test
def an_open_loop_counts_from_the_arrival(case):
    """One client for many arrivals: most of them wait for it, and that is counted."""
    with case.daemon('--slots=2') as d:
        j = bench(d, '--rate=2000', '--clients=1', '--requests=60', '--sink=none')
        assert j['load']['loop'] == 'open' and j['load']['rate'] == 2000 and j['requests']['done'] == 60
        assert j['requests']['late'] > 30, j['requests']
        assert j['latency']['request']['max'] > 0.5 * j['seconds'], j  # of the last one: nearly all the time
        assert j['per_second']['megabytes_out'] == 0
        text = d.ctl('bench', '--rate=2000', '--clients=1', '--requests=20')
        assert text.code == 0 and 'more than --clients=1' in text.out and 'open loop' in text.out, text


@tap.test
def a_full_daemon_is_asked_again(case):
    with case.daemon('--slots=1', '--user-rhs=2') as d:
        j = bench(d, '--clients=4', '--requests=12', '--tol=1e-3')
        assert j['requests']['retried'] > 0 and j['requests']['rejected'] == 0 and j['rhs']['converged'] == 12, j
        r = d.ctl('bench', '--json', '--clients=1', '--requests=2', '--rhs=3')  # never fits
        assert r.code == AGAIN, r


@tap.test
def what_fails_is_named(case):
    with case.daemon('--slots=2') as d:
        j = bench(d, '--requests=4', '--max-iter=1', '--tol=1e-10', code=DATA)
        assert j['rhs']['failed'] == {'NOT_CONVERGED': 4} and j['rhs']['converged'] == 0 and j['rhs']['done'] == 4
        text = d.ctl('bench', '--requests=4', '--max-iter=1')
        assert text.code == DATA and 'failed      4 right-hand sides: NOT_CONVERGED' in text.out, text


@tap.test
def warm_up_and_duration_bound_what_is_measured(case):
    with case.daemon('--slots=2') as d:
        j = bench(d, '--duration=1', '--warmup=0.5', '--clients=3')
        assert abs(j['seconds'] - 1) < 1e-9
        solved = d.ctl('status', '--json').json['counters']['converged']
        assert 0 < j['rhs']['done'] < solved, (j['rhs'], solved)
        assert j['latency']['rhs']['samples'] <= solved
        j = bench(d, '--duration=0.5', '--rate=3000', '--clients=20', '--cut', '--tol=1e-12')
        assert j['requests']['abandoned'] > 0 and j['rhs']['failed'] == {}, j
        assert d.ctl('status', '--json').json['counters']['requests'] == 0


@tap.test
def an_interrupt_prints_what_was_measured(case):
    with case.daemon('--slots=2') as d:
        p = d.start_ctl('bench', '--json', '--progress', '--clients=2', '--duration=1000')
        while True:
            line = p.stderr.readline()
            assert line, 'bench has left'
            if 'right-hand sides' in line and ': 0 ' not in line:
                break
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(timeout=60)
        j = json.loads(out)
        assert p.returncode == 0 and j['interrupted'] and j['rhs']['done'] > 0 and j['seconds'] < 500, (p.returncode, j)
        r = d.ctl('status', '--json').json
        assert r['counters']['requests'] == 0 and r['counters']['running'] == 0, r['counters']


@tap.test
def a_picture_is_drawn(case):
    if not shutil.which('gnuplot'):
        return
    with case.daemon('--slots=2') as d:
        path = d.path('load.png')
        bench(d, '--requests=20', '--plot=' + path)
        with open(path, 'rb') as f:
            assert f.read(8) == b'\x89PNG\r\n\x1a\n'


@tap.test
def a_daemon_that_leaves_ends_the_load(case):
    with case.daemon('--slots=2') as d:
        p = d.start_ctl('bench', '--clients=2', '--duration=1000', '--progress', '--timeout=3')
        while ': 0 ' in p.stderr.readline():
            pass
        assert d.ctl('shutdown', '--now').code == 0
        p.communicate(timeout=100)
        assert p.returncode in (AGAIN, UNAVAILABLE), p.returncode


@tap.test
def nobody_there_and_bad_options(case):
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        r = case.ctl('bench', '--endpoint=tcp://127.0.0.1:%d' % s.getsockname()[1], '--timeout=0.3')
    assert r.code == UNAVAILABLE and r.out == '', r
    for args in (['--clients=0'], ['--clients=many'], ['--rhs=0'], ['--rhs=5:2'], ['--rhs=1:1025'], ['--tol=0'], ['--tol=1e-8,'],
                 ['--source=cloud'], ['--source='], ['--sink=sky'], ['--dtype=f16'], ['--priority=10'], ['--rate=0'],
                 ['--rate=5', '--think=1'], ['--depth=0'], ['--sink=correlator'], ['--sink=correlator', '--rhs=12'], ['--sink=correlator', '--rhs=12', '--source=point', '--verify'],
                  ['--depth=65'], ['--depth=2', '--rate=5'], ['--depth=2', '--verify'], ['--depth=2', '--think=1'],
                 ['--think=1:often'], ['--users=9', '--clients=4'], ['--duration=0'], ['--requests=0'],
                 ['--warmup=-1'], ['--seed=-1'], ['--verify', '--sink=none'], ['--list'], ['--user=' + 'x' * 100], ['surplus'],
                 ['--tol=' + ','.join(['1e-8'] * 17)]):
        r = case.ctl('bench', *args)
        assert r.code == USAGE and r.out == '', (args, r)
        assert args[0].split('=')[0] in r.err or args == ['surplus'] or 'Usage' in r.err, (args, r.err)


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:6]))
