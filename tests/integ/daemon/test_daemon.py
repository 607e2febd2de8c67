#!/usr/bin/env python3
"""quarkd with the real engine, judged by the numpy oracle: test_daemon.py QUARKD QUARK_ENGINE QUARK_GAUGE [RANKS]"""
import json
import os
import sys
import tempfile
import urllib.request

import tap

try:
    import signal

    import contract_ref
    import numpy as np
    import smear_ref
    from daemon_case import DIMS, MASS, DaemonCase
    from front_driver import STATUS, Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

@tap.test
def solutions_solve_the_equation(case):
    with case.daemon('--slots', '4') as d, Client(d) as c:
        fields = [case.noise(s) for s in range(6)]
        for (r, x), b in zip(c.solve(fields, tol=1e-10), fields):
            assert r.status == 0 and r.true_residual <= 1e-10, r
            assert abs(case.residual(x, b) - r.true_residual) < 1e-13
            assert abs(r.norm_b - np.linalg.norm(b)) < 1e-9 * r.norm_b
            assert abs(r.norm_x - np.linalg.norm(x)) < 1e-9 * r.norm_x
            assert r.iterations > 0 and r.applications > 0 and r.seconds > 0
        s = d.status_when(lambda s: s.counters.requests == 0)
        assert list(s.setup.dims) == list(DIMS) and s.engine.ranks == int(case.ranks) and s.memory_used == 0
        assert d.terminate() == 0


@tap.test
def the_log_of_all_processes_is_json(case):
    with case.daemon('--log-format', 'json', '--solver', 'auto') as d, Client(d) as c:
        c.solve([case.noise(1)], tol=1e-8)
        os.kill(d.status().engine.pid, signal.SIGKILL)
        d.log('ready: ', 2)
        c.solve([case.noise(2)], tol=1e-8)
        c.send(goodbye=qk.Goodbye())
        assert d.terminate() == 0
        d.reader.join()
        lines = [json.loads(line) for line in d.lines]
    assert all(list(o) == ['time', 'level', 'program', 'rank', 'subsystem', 'job', 'text'] for o in lines)
    ours = [o for o in lines if o['program'] == 'engine']
    assert ours and {o['rank'] for o in ours} <= {None, *range(int(case.ranks))}, ours
    # mpirun has something to say of a rank that was killed; a single engine says nothing that is not its own
    said = [o['text'] for o in lines if o['program'] == 'quarkd' and o['subsystem'] == 'engine']
    assert case.ranks != '1' or not said, said


@tap.test
def generated_sources_are_what_an_upload_would_be(case):
    with case.daemon('--slots', '2') as d, Client(d) as c:
        b = np.zeros(case.shape, complex)
        b[7, 2, 1, 3, 2, 1] = 1  # [t, z, y, x, spin, colour]
        c.submit(1, source=qk.SOURCE_POINT, tol=1e-11, column=[qk.Column(x=3, y=1, z=2, t=7, spin=2, colour=1)])
        r = c.expect('result')
        x = c.fetch(r)
        assert r.status == 0 and case.residual(x, b) < 1.01e-11
        (r2, x2), = c.solve([b], tol=1e-11)
        assert np.linalg.norm(x - x2) < 1e-12
        (r3, x3), = c.solve([b], tol=1e-11, normalisation=qk.NORMALISATION_KAPPA)
        assert np.linalg.norm(x3 - (4 + MASS) * x) < 1e-11 * np.linalg.norm(x3)
        (r4, x4), = c.solve([b.astype(np.complex64)], np.complex64, tol=1e-6, dtype=qk.DTYPE_F32)
        assert r4.status == 0 and np.linalg.norm(x4 - x) < 1e-5 * np.linalg.norm(x)


def delta(case, site, spin, colour):
    x, y, z, t = site
    b = np.zeros(case.shape, complex)
    b[t, z, y, x, spin, colour] = 1
    return b


def keep_propagator(case, c, site, **more):
    """A kept propagator of a point source: its request, and [t,z,y,x, s,c, s',c']."""
    column = [qk.Column(x=site[0], y=site[1], z=site[2], t=site[3], spin=i // 3, colour=i % 3) for i in range(12)]
    request = c.submit(12, source=qk.SOURCE_POINT, sink=qk.SINK_KEEP, tol=1e-11, column=column, **more).request
    results = c.results(12)
    assert all(r.status == 0 for r in results), results
    columns = [c.fetch(r).reshape(case.shape) for r in results]
    c.ack(request)
    return request, np.stack(columns, -1).reshape(case.shape + (4, 3))


@tap.test
def sources_through_kept_solutions_are_what_the_oracle_makes(case):
    with case.daemon('--slots', '12') as d, Client(d) as c:
        kept, s = keep_propagator(case, c, (1, 2, 3, 5))
        spec, smear = 'gauss:0.3,3', qk.Smearing(alpha=0.3, steps=3)
        c.submit(2, source=qk.SOURCE_SEQUENTIAL, tol=1e-11, smear=smear,
                 column=[qk.Column(request=kept, rhs=4, gamma=11, t=6, px=1, pz=-2), qk.Column(request=kept, gamma=15, t=-1)])
        one, all_t = [c.fetch(r) for r in c.results(2)]
        b = np.zeros(case.shape, complex)
        phase = np.conj(contract_ref.phases(case.shape[:4], (1, 0, -2), (0, 0, 0, 0)))
        b[6] = np.einsum('zyx,ij,zyxja->zyxia', phase, contract_ref.gamma(11), s[6, ..., 1, 1])
        assert case.residual(one, smear_ref.smear_source(case.links, b, spec)) < 2e-11
        b = np.einsum('ij,...ja->...ia', contract_ref.gamma(15), s[..., 0, 0])
        assert case.residual(all_t, smear_ref.smear_source(case.links, b, spec)) < 2e-11


@tap.test
def correlators_of_kept_propagators_are_those_of_the_oracle(case):
    origin, momenta = (1, 2, 3, 5), [(0, 0, 0), (1, -1, 2)]
    with case.daemon('--slots', '12') as d, Client(d) as c:
        smear = qk.Smearing(alpha=0.5, steps=2, links=qk.LINK_SMEAR_HYP, link_param=[0.75, 0.6, 0.3], link_steps=1)
        (a, s), (b, r) = keep_propagator(case, c, origin), keep_propagator(case, c, origin, smear=smear)
        hyp = smear_ref.smear_links(case.links, 'hyp:0.75,0.6,0.3,1')
        column = smear_ref.smear_source(hyp, delta(case, origin, 2, 1), 'gauss:0.5,2')
        assert case.residual(r[..., 2, 1], column) < 2e-11
        c.contract(a, origin=origin)
        pion = np.roll((abs(s) ** 2).sum((1, 2, 3, 4, 5, 6, 7)), -origin[3])
        assert np.linalg.norm(c.fetch(c.expect('result')) - pion) < 1e-12 * np.linalg.norm(pion)
        channels = [qk.Channel(kind=qk.CHANNEL_MESON, sink=k, source=l) for k, l in ((15, 15), (1, 9), (7, 8))]
        channels += [qk.Channel(kind=qk.CHANNEL_NUCLEON), qk.Channel(kind=qk.CHANNEL_DELTA)]
        check_correlators(c, (a, s), (b, r), channels, origin, momenta)
        s, r = [np.stack([smear_ref.smear_source(hyp, p.reshape(case.shape + (12,))[..., k], 'gauss:0.5,2') for k in range(12)],
                         -1).reshape(p.shape) for p in (s, r)]
        check_correlators(c, (a, s), (b, r), channels[:4], origin, momenta, sink=smear)
        assert d.status().counters.contracted == 3


def check_correlators(c, first, second, channels, origin, momenta, **more):
    """Of two kept propagators (request, numbers) against the oracle's."""
    (a, s), (b, r) = first, second
    nt, nmom = s.shape[0], len(momenta)
    c.contract(a, request_b=b, channel=channels, momentum=sum(momenta, ()), origin=origin, **more)
    result = c.expect('result')
    assert result.status == 0, result
    got = c.fetch(result)
    sign = np.where(np.arange(nt) + origin[3] < nt, 1, -1)[None, :, None]  # antiperiodic: the cube of -1
    for channel in channels:
        if channel.kind == qk.CHANNEL_MESON:
            want = contract_ref.meson(s, r, channel.sink, channel.source, momenta, origin)
        elif channel.kind == qk.CHANNEL_NUCLEON:
            want = sign * contract_ref.nucleon(s, r, momenta, origin).reshape(nmom, nt, 16)
        else:
            want = sign * contract_ref.delta(s, momenta, origin).reshape(nmom, nt, 144)
        part, got = got[:want.size], got[want.size:]
        assert np.linalg.norm(part - want.ravel()) < 1e-12 * np.linalg.norm(want), channel
    assert len(got) == 0


@tap.test
def bad_sources_end_by_themselves(case):
    with case.daemon('--slots', '4') as d, Client(d) as c:
        nan, zero, good = case.noise(1), np.zeros(int(np.prod(case.shape)), complex), case.noise(2)
        nan[17] = complex(float('nan'), 0)
        (r0, x0), (r1, x1), (r2, x2) = c.solve([nan, zero, good])
        assert r0.status == STATUS['NAN_INPUT'] and x0 is None
        assert r1.status == 0 and r1.iterations == 0 and not x1.any()
        assert r2.status == 0 and case.residual(x2, good) < 1e-8
        (r, x), = c.solve([good], tol=1e-14, max_iter=2)
        assert r.status == STATUS['NOT_CONVERGED'] and abs(case.residual(x, good) - r.true_residual) < 1e-6
        assert d.status().state == qk.STATE_READY


# Large enough that the solver takes many times the interval of PROGRESS until it sees that nothing improves.
LONG = 'builtin:weak:12x12x12x16:7'


def noise_column(seed):
    return qk.Column(seed=seed, t=-1, spin=-1, colour=-1)


@tap.test
def a_killed_engine_comes_back(case):
    with case.daemon('--slots', '2', '--staging', '0', gauge=LONG) as d, Client(d) as c:
        c.submit(3, source=qk.SOURCE_Z4, tol=1e-100, max_iter=10 ** 8, column=[noise_column(k) for k in range(3)])
        s = d.status_when(lambda s: s.counters.running == 2 and s.counters.queued == 1)
        os.kill(s.engine.pid, signal.SIGKILL)
        d.log('ready: ', 2)
        d.status_when(lambda s: s.counters.running == 2 and s.counters.queued == 1)
        c.send(cancel=qk.Cancel(request=1))
        assert all(r.status == STATUS['CANCELLED'] for r in c.results(3))
        c.ack(1)
        again = c.submit(1, source=qk.SOURCE_Z4, sink=qk.SINK_NONE, tol=1e-10, column=[noise_column(0)])
        r = c.expect('result')
        assert r.status == 0 and r.true_residual <= 1e-10
        c.ack(again.request)
        s = d.status_when(lambda s: s.counters.requests == 0)
        assert s.engine.restarts == 1 and s.memory_used == 0 and s.state == qk.STATE_READY
        assert d.terminate() == 0


@tap.test
def status_follows_a_solve(case):
    """Residuals of what is in the slots, as the engine reports them, in STATUS and in the curves of the page."""
    with case.daemon('--http', '127.0.0.1:0', '--slots', '2', gauge=LONG) as d, Client(d) as c:
        c.submit(2, source=qk.SOURCE_Z4, tol=1e-100, max_iter=10 ** 8, column=[noise_column(k) for k in range(2)])
        s = d.status_when(lambda s: any(x.iterations > 0 and 0 < x.residual != 1 for x in s.activity.slot), activity=True)
        assert [x.slot for x in s.activity.slot] == [0, 1] and s.activity.user[0].running == 2, s.activity
        port = d.log(r'over HTTP on 127\.0\.0\.1:(\d+)')[1]
        with urllib.request.urlopen('http://127.0.0.1:%s/status.json' % port, timeout=30) as answer:
            curves = json.load(answer)['curves']
        assert any(len(curve) > 1 and curve[0] == [0, 0] and curve[-1][0] > 0 for curve in curves), curves
        c.send(cancel=qk.Cancel(request=1))
        c.results(2)


@tap.test
def cancel_stops_a_running_solve(case):
    with case.daemon('--slots', '2', gauge=LONG) as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_Z4, tol=1e-100, max_iter=10 ** 8, column=[noise_column(1)])
        while c.expect('progress', skip=()).running[0].iterations == 0:
            pass
        c.send(cancel=qk.Cancel(request=1))
        r = c.expect('result')
        assert r.status == STATUS['CANCELLED'] and r.bytes == 0


@tap.test
def a_thousand_solves_leave_memory_where_it_was(case):
    if case.ranks != '1':
        raise tap.Skip('once is enough')
    with case.daemon('--slots', '16', gauge='builtin:weak:4x4x4x4:1', mass='1') as d, Client(d) as c:
        after = []
        for i in range(5):
            accepted = c.submit(200, source=qk.SOURCE_Z4, sink=qk.SINK_NONE, tol=1e-3,
                                column=[noise_column(200 * i + k) for k in range(200)])
            assert all(r.status == 0 for r in c.results(200))
            c.ack(accepted.request)
            s = d.status_when(lambda s: s.counters.requests == 0)
            after.append((s.engine.device_bytes, s.engine.host_bytes, s.memory_used, resident(s.pid), resident(s.engine.pid)))
        first, last = after[1], after[-1]
        assert s.counters.converged == 1000 and first[:3] == last[:3] and s.memory_used == 0, after
        assert last[3] - first[3] < 1 << 20 and last[4] - first[4] < 4 << 20, after


def resident(pid):
    with open('/proc/%d/statm' % pid, encoding='utf-8') as f:
        return int(f.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


@tap.test
def a_bad_gauge_file_is_refused_with_65(case):
    with tempfile.NamedTemporaryFile(suffix='.lime') as f:
        f.write(b'this is no gauge file' * 100)
        f.flush()
        for gauge in (f.name, '/nonexistent.lime'):
            with case.daemon(gauge=gauge, wait=None) as d:
                assert d.wait() == 65, d.lines
                assert any('setup rejected' in line for line in d.lines)


if __name__ == '__main__':
    tap.run(DaemonCase(*sys.argv[1:]))
