#!/usr/bin/env python3
"""Both flavours of twisted clover fermions from one setup, judged by the numpy oracle: test_flavours.py QUARKD QUARK_ENGINE QUARK_GAUGE"""
import os
import sys

import tap

try:
    import contract_ref
    import numpy as np
    import ref_dirac as ref
    from daemon_case import CSW, MASS, DaemonCase
    from front_case import State, kill, once_more
    from front_driver import Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

MU = 0.4


class Flavours(DaemonCase):
    def __init__(self, *programs):
        super().__init__(*programs)
        self.ops = {f: ref.ACTIONS['twisted-clover'](self.links, (1, 1, 1, -1), mass=MASS, mu=MU, csw=CSW, flavour=f) for f in (1, -1)}

    def daemon(self, *options, mu=MU, **more):
        return super().daemon('--action', 'twisted-clover', '--set', 'mu=%r' % mu, *options, **more)

    def lasting_engine(self, _):
        return self.engine

    def off(self, x, b, flavour):
        x, b = x.reshape(self.shape), b.reshape(self.shape)
        return np.linalg.norm(b - self.ops[flavour].apply(x)) / np.linalg.norm(b)


def solve(c, fields, flavours, tol=1e-10):
    """A request for each flavour, all under way together: {flavour: [x]}"""
    requests = {}
    for f in flavours:
        accepted = c.submit(len(fields), flavour=f, tol=tol)
        requests[accepted.request] = f
        c.upload(accepted, fields)
    found = {f: [None] * len(fields) for f in flavours}
    for r in c.results(len(flavours) * len(fields)):
        assert r.status == 0, r
        found[requests[r.request]][r.rhs] = c.fetch(r)
    for k in requests:
        c.ack(k)
    return found


def check_together(case, *options):
    """Alone each has the same slots' neighbours of its own flavour alone; together they share the block."""
    with case.daemon('--slots', '12', '--single-rhs-solver', 'no', *options) as d, Client(d) as c:
        fields = [case.noise(s) for s in range(4)]
        alone = {f: solve(c, fields, [f])[f] for f in (1, -1)}
        together = solve(c, fields, [1, -1])
        for f in 1, -1:
            for x, y, b in zip(alone[f], together[f], fields):
                assert np.array_equal(x, y), f
                assert case.off(x, b, f) < 1.01e-10 < 1e-3 < case.off(x, b, -f), f


@tap.test
def both_flavours_of_a_batch_have_the_bits_that_each_has_alone(case):
    check_together(case)


@tap.test
def the_same_with_multigrid(case):
    check_together(case, '--solver', 'mg', '--precision', 'single', '--mg-vectors', '8', '--mg-setup-iterations', '20')


@tap.test
def what_is_alone_has_its_flavour(case):
    """In the single-RHS solver, one flavour after the other."""
    with case.daemon('--slots', '8') as d, Client(d) as c:
        b = case.noise(5)
        for f in -1, 1, -1:
            assert case.off(solve(c, [b], [f])[f][0], b, f) < 1.01e-10


@tap.test
def without_a_twist_the_flavours_are_the_same(case):
    with case.daemon('--slots', '4', mu=0.0) as d, Client(d) as c:
        found = solve(c, [case.noise(5)], [1, -1])
        assert np.allclose(found[1][0], found[-1][0], rtol=0, atol=1e-9)


@tap.test
def pions_of_a_thermalised_lattice_know_the_sign(case):
    """C(t) = sum |S|^2 of twelve columns: flavour -1 of mu is +1 of -mu to rounding, and is not +1 of mu, on one configuration."""
    path = os.environ.get('QK_THERMAL', '')
    if not os.path.exists(path):
        raise tap.Skip('QK_THERMAL names no lattice')
    column = [qk.Column(spin=i // 3, colour=i % 3) for i in range(12)]
    pion = {}
    for mu in 0.1, -0.1:
        with case.daemon('--slots', '24', mu=mu, gauge=path, mass='-0.3') as d, Client(d) as c:
            requests = {c.submit(12, source=qk.SOURCE_POINT, tol=1e-11, column=column, flavour=f).request: f for f in (1, -1)}
            pion.update({(mu, f): np.zeros(16) for f in (1, -1)})
            for r in c.results(24):
                assert r.status == 0, r
                pion[mu, requests[r.request]] += (abs(c.fetch(r).reshape(16, -1)) ** 2).sum(1)
    for f in 1, -1:
        assert abs(pion[0.1, f] / pion[-0.1, -f] - 1).max() < 1e-8, f
    apart = abs(pion[0.1, 1] / pion[0.1, -1] - 1)
    assert 1e-3 < apart.max() < 0.3, apart


@tap.test
def kept_solutions_of_both_are_contracted_and_gone_through(case):
    origin = (1, 2, 3, 5)
    with case.daemon('--slots', '24') as d, Client(d) as c:
        column = [qk.Column(x=1, y=2, z=3, t=5, spin=i // 3, colour=i % 3) for i in range(12)]
        kept, s = {}, {}
        for f in 1, -1:
            kept[f] = c.submit(12, source=qk.SOURCE_POINT, sink=qk.SINK_KEEP, tol=1e-11, column=column, flavour=f).request
            results = sorted(c.results(12), key=lambda r: r.rhs)
            assert all(r.status == 0 for r in results), results
            s[f] = np.stack([c.fetch(r).reshape(case.shape) for r in results], -1).reshape(case.shape + (4, 3))
        for a, b in (1, 1), (-1, -1), (1, -1), (-1, 1):
            c.contract(kept[a], request_b=kept[b], origin=origin,
                       channel=[qk.Channel(kind=qk.CHANNEL_MESON, sink=g, source=h) for g, h in ((15, 15), (0, 1))])
            got = c.fetch(c.expect('result')).reshape(2, -1)
            for k, (sink, source) in enumerate(((15, 15), (0, 1))):
                want = contract_ref.meson(s[a], s[b], sink, source, [(0, 0, 0)], origin).ravel()
                assert np.linalg.norm(got[k] - want) < 1e-12 * np.linalg.norm(want), (a, b, sink)
        # S_-(x,0)+ = g5 S_+(0,x) g5: where source and sink are the same site both have one trace
        traces = [abs(s[f][5, 3, 2, 1]) ** 2 for f in (1, -1)]
        assert abs(traces[0].sum() - traces[1].sum()) < 1e-9 * traces[0].sum()
        c.submit(1, source=qk.SOURCE_SEQUENTIAL, tol=1e-11, column=[qk.Column(request=kept[1], rhs=4, gamma=15, t=-1)], flavour=-1)
        r = c.expect('result')
        assert r.status == 0 and case.off(c.fetch(r), np.einsum('ij,...ja->...ia', ref.GAMMA5, s[1][..., 1, 1]), -1) < 2e-11


@tap.test
def the_next_daemon_solves_for_the_flavour_that_was_asked_for(case):
    """Of what waited when a front was killed: by the journal, with an engine that is taken over."""
    endless, b = dict(source=qk.SOURCE_Z4, tol=1e-100, max_iter=10 ** 8), case.noise(7)
    options = '--slots', '1', '--single-rhs-solver', 'no'
    with State(case) as state, state.fronts() as front:
        with front(*options) as d, Client(d) as c:
            c.submit(1, **endless)
            d.status_when(lambda s: s.counters.running == 1)
            c.upload(c.submit(1, flavour=-1, tol=1e-10), [b])
            d.status_when(lambda s: s.counters.bytes_in == b.nbytes)
            kill(d)
        with front(*options) as d, Client(d, c.client_id) as c2:
            once_more(c2, 1, 2, flavour=-1, tol=1e-10)
            c2.send(cancel=qk.Cancel(request=1))
            r = c2.result_of(2)  # request 1 may have ended by itself, before c2 was there to see it
            assert r.status == 0 and case.off(c2.fetch(r), b, -1) < 1.01e-10, r
            for request in 1, 2:
                c2.ack(request)
            assert d.terminate() == 0


tap.run(Flavours(*sys.argv[1:]))
