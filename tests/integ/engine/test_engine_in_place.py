"""LOAD after READY: test_engine_in_place.py QUARK_ENGINE QUARK_GAUGE RANKS

The process, its device and its pinned memory stay; nothing else of what was loaded may be seen in what is loaded next.
"""
import sys

import tap
try:
    import numpy as np
    from engine_case import BAD_ARGUMENT, BAD_PROTOCOL, CANCELLED, Case, DEVICE_MEMORY, GAUGE, MASS, NOT_READY, OK
    from engine_driver import Vector, pb, qk
except (ImportError, FileNotFoundError) as missing:
    tap.skip_all('python3-zmq, python3-protobuf, protoc, numpy and scipy are needed: %s' % missing)

NOISE = dict(source=qk.SOURCE_Z2, column=qk.Column(t=-1, spin=-1, colour=-1))
MG = dict(solver='mg', multigrid=[qk.Setting(key='mg-vectors', value='8'), qk.Setting(key='mg-setup-iterations', value='10')])
OTHER = 'builtin:weak:4x4x8x8:8'
LOADS = [dict(gauge=GAUGE, mass=MASS), dict(gauge=OTHER, mass=MASS), dict(gauge=GAUGE, mass=0.3, csw=0),
         dict(gauge='builtin:weak:8x8x8x8:3', slots=3, **MG), dict(gauge='builtin:weak:8x8x4x8:3', solver='gcr', inner='PRECISION_DOUBLE'),
         dict(gauge=GAUGE, mass=0.2, slots=4, staging=2, single_rhs=True)]


def shape_of(gauge):
    x, y, z, t = (int(n) for n in gauge.split(':')[2].split('x'))
    return t, z, y, x, 4, 3


def bits(engine, load):
    """Of a solution in single and one in double precision, with what READY says."""
    engine.load(**load)
    ready = engine.expect('ready', skip=('load_progress', 'multigrid'))
    out = []
    for k in range(2):
        b = np.random.default_rng(k).normal(size=shape_of(load['gauge']) + (2,)) @ np.array([1, 1j])
        x, end = engine.solve(b, entry=k, tol=1e-9, dtype=(qk.DTYPE_F32, qk.DTYPE_F64)[k])
        assert end.status == OK and end.true_residual <= 1e-6, end
        out.append(x.tobytes())
    return ready, out


@tap.test
def gives_the_bits_of_a_fresh_engine(case):
    with case.start() as e:
        for n, load in enumerate(LOADS + LOADS[:1] if case.ranks == 1 else LOADS[:2] + LOADS[4:5] + LOADS[:1]):  # ranks share cores
            ready, got = bits(e, dict(load, fingerprint=n + 1))
            with case.start() as fresh:
                first, want = bits(fresh, load)
            assert got == want, load
            for name in 'slots', 'inflight', 'device_bytes', 'digest', 'dims', 'solver', 'memory':
                a, b = getattr(ready, name), getattr(first, name)
                assert a == b if name != 'memory' else (a.share, a.serving, a.setup) == (b.share, b.serving, b.setup), (name, a, b)
            assert ready.fingerprint == n + 1
        assert e.process.poll() is None and e.stop() == 0


def resident(pids):
    total = 0
    for pid in pids:
        with open('/proc/%d/statm' % pid, encoding='utf-8') as f:
            total += int(f.read().split()[1]) * 4096
    return total


@tap.test
def memory_does_not_grow_over_fifty_loads(case):
    loads = [LOADS[0], LOADS[1], dict(LOADS[3], slots=2), LOADS[5]]
    with case.start() as e:
        pids, seen = e.ranks(), {}
        for n in range(50 if case.ranks == 1 else 15):
            k = n % len(loads) if n % 20 < 4 else n % 2
            e.load(**loads[k])
            ready = e.ready()
            held = ready.device_bytes, ready.host_bytes, e.ranks() == pids
            if n == 9:  # what is pinned serves all of them now
                seen, before = {}, resident(pids)
            assert n < 9 or held[2] and seen.setdefault(k, held) == held, (n, k, held, seen)
        assert resident(pids) < before + case.ranks * (64 << 20), (resident(pids), before)  # malloc keeps some


@tap.test
def refused_while_something_is_in_flight(case):
    with case.endless() as e, Vector(case.shape) as sink:
        serial = e.fill(0, shm_out=sink.name, tol=1e-13, max_iter=10**9, **NOISE)
        e.expect('fill_progress')
        e.load(OTHER)
        failed = e.expect('load_failed', skip=('fill_progress',))
        assert failed.status == BAD_PROTOCOL and 'in flight' in failed.text, failed
        e.send(cancel=pb.CancelFill(entry=0, serial=serial))  # it runs still
        assert e.done()[serial].status == CANCELLED
        e.load(OTHER)
        assert e.ready().digest != e.facts.digest


@tap.test
def a_failure_leaves_an_engine_without_a_setup(case):
    with case.loaded() as e, Vector(case.shape) as sink:
        e.load(GAUGE, mass=float('nan'))  # it is not even tried
        assert e.expect('load_failed').status == BAD_ARGUMENT
        assert e.generate(case.shape, qk.SOURCE_POINT)[1].status == OK
        for _ in range(3):
            e.load('/no/such/file')
            assert e.expect('load_failed', skip=('load_progress',)).text
            serial = e.fill(0, shm_out=sink.name, **NOISE)
            assert e.done()[serial].status == NOT_READY
        e.send(adopt=pb.Adopt(nonce=3))
        assert not e.expect('hello').loaded
        want = bits(e, LOADS[0])[1]
        with case.start() as fresh:
            assert bits(fresh, LOADS[0])[1] == want


@tap.test
def want_of_memory_fails_the_load_alone(case):
    """Allocations of the second load fail in their turn; the next one finds memory, the same as ever."""
    failed = 0
    with case.start() as fresh:
        want = bits(fresh, LOADS[1])[1]
    for n in range(100, 600, 67 if case.ranks == 1 else 250):
        before = failed
        with case.start(env={'QK_FAULTS': 'device-alloc:%d' % n}) as e:
            for load in LOADS[0], LOADS[1], LOADS[2], LOADS[1], LOADS[1]:
                e.load(**load)
                name, body = e.receive()
                while name == 'load_progress':
                    name, body = e.receive()
                assert name == 'ready' or body.status == DEVICE_MEMORY, body
                failed += name != 'ready'
            if failed > before:
                assert bits(e, LOADS[1])[1] == want, n
    assert failed > 0


@tap.test
def another_front_learns_what_is_loaded(case):
    with case.start(options=['--grace', '60000']) as e:
        for n in (1 << 63) + 1, 0, 2:
            e.load(GAUGE, fingerprint=n)
            assert e.ready().fingerprint == n
            e.send(adopt=pb.Adopt(nonce=n))
            assert e.expect('hello').loaded and e.expect('ready').fingerprint == n


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:]))
