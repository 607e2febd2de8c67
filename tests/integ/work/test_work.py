#!/usr/bin/env python3
"""Parts of the operator and solves of its adjoint, through the daemon, judged by the numpy oracle: test_work.py QUARKD QUARK_ENGINE QUARK_GAUGE RANKS"""
import sys

import tap

try:
    import numpy as np
    import ref_dirac as ref
    import smear_ref
    from daemon_case import GAUGE, MASS, DaemonCase
    from engine_case import BASES
    from front_driver import STATUS, Client, Daemon, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

KAPPA = 1 / (2 * (4 + MASS))
ANTIPERIODIC, PHASES = ((1, 1, 1, -1), 'antiperiodic'), ((1, np.exp(0.5j * np.pi), -1, np.exp(0.3j * np.pi)), '1,0.5pi,-1,0.3pi')
# action, its parameters, boundary
ACTIONS = {
    'wilson': ('wilson', {}, PHASES),
    'wilson_clover': ('wilson-clover', dict(csw=1.2), ANTIPERIODIC),
    'anisotropic_clover': ('anisotropic-clover', dict(xi0=2.5, nu=0.9, c_r=1.1, c_t=0.8), ANTIPERIODIC),
    'exp_clover': ('exp-clover', dict(csw=1.2), PHASES),
    'twisted_mass': ('twisted-clover', dict(mu=0.4), ANTIPERIODIC),
    'twisted_clover': ('twisted-clover', dict(mu=0.4, csw=1.2), PHASES),
    'open_boundary': ('wilson-clover', dict(csw=1.2, open=0.85), ANTIPERIODIC),
    'smeared_links': ('wilson-clover', dict(csw=1.2, links='stout:0.1,2/hyp:0.75,0.6,0.3,1'), ANTIPERIODIC),
    'doublet': ('doublet', dict(mu=0.4, epsilon=0.3, csw=1.2), ANTIPERIODIC),
}
G5 = np.diag(ref.GAMMA5).real[:, None]
PARTS = 'M', 'HOP', 'DIAG', 'DIAG_INVERSE', 'DIAG_INVERSE_HOP'
# powers of 2 kappa that the normalisation KAPPA adds
POWER = {'M': 1, 'HOP': 0, 'DIAG': 1, 'DIAG_INVERSE': -1, 'DIAG_INVERSE_HOP': -1, 'SCHUR': 0, 'SMEAR': 0, 'SOLVE': -1}


class Oracle:
    """Of one flavour or of a doublet; with dagger of the adjoint."""

    def __init__(self, case, name):
        self.action, self.values, (self.bc, self.boundary) = ACTIONS[name]
        values = dict(self.values)
        links, clover = smear_ref.links_of(case.links, values.pop('links', 'thin'))
        more = dict(clover_links=clover) if clover is not links else {}
        flavours = [dict(flavour=f) for f in (1, -1)] if self.action == 'twisted-clover' else [{}]
        self.op = {f.get('flavour', 1): ref.ACTIONS[self.action](links, self.bc, mass=MASS, **values, **more, **f) for f in flavours}
        self.inside = ref.inside(8) if 'open' in self.values else 1
        self.shape = self.op[1].shape

    def noise(self, seed):
        r = np.random.default_rng(seed)
        return self.inside * (r.normal(size=self.shape) + 1j * r.normal(size=self.shape))

    def turned(self, part, psi, flavour):
        """The adjoint of hop, T and M: gamma_5 of that of the other flavour gamma_5."""
        return G5 * part(self.op.get(-flavour, self.op[1]), G5 * psi)

    def part(self, name, psi, dagger=False, flavour=1):
        def linear(f):
            return self.turned(f, psi, flavour) if dagger else f(self.op[flavour], psi)
        if name == 'M':
            return linear(lambda op, x: op.apply(x))
        if name == 'HOP':
            return self.inside * linear(lambda op, x: op.hops(x))
        if name == 'DIAG':
            return self.inside * linear(lambda op, x: op.local(x))
        if name == 'DIAG_INVERSE':
            return self.inside * linear(lambda op, x: op.local_inverse(x))
        hop = self.part('HOP', psi, dagger, flavour)
        return self.part('DIAG_INVERSE', hop, dagger, flavour)

    def schur(self, psi, asymmetric, dagger=False, flavour=1):
        """A Mhat, Mhat = 1 - A^-1 H A^-1 H / 4, or its adjoint, of a field of one parity."""
        if dagger and not asymmetric:
            psi, whole = self.part('DIAG_INVERSE', psi, True, flavour), psi
            return whole - self.part('HOP', self.part('DIAG_INVERSE_HOP', psi, True, flavour), True, flavour) / 4
        back = self.part('HOP', self.part('DIAG_INVERSE_HOP', psi, dagger, flavour), dagger, flavour)
        if asymmetric:
            return self.part('DIAG', psi, dagger, flavour) - back / 4
        return psi - self.part('DIAG_INVERSE', back, dagger, flavour) / 4


# what is run on several ranks, too
TOGETHER = 'twisted_clover', 'open_boundary'


def alone(case, name=''):
    if case.ranks != '1' and name not in TOGETHER:
        raise tap.Skip('one rank tells as much')


def settings(values):
    return [s for k, v in values.items() for s in ('--set', '%s=%s' % (k.replace('_', '-'), v))]


class Works(DaemonCase):
    def started(self, oracle, *options, **more):
        options = '--action', oracle.action, *settings(oracle.values), '--boundary', oracle.boundary, '--slots', '4', *options
        return Daemon(self.binary, '--ranks', self.ranks, *options, **{'engine': self.engine, 'gauge': GAUGE, 'mass': str(MASS), **more})


def in_basis(psi, basis):
    """From DeGrand-Rossi: psi_X = T^+ psi."""
    t = BASES.get(basis, np.eye(4))
    return np.einsum('ji,...jc->...ic', t.conj(), psi)


PARITIES = qk.PARITY_EVEN, qk.PARITY_ODD


def sites(shape, parity):
    """Which sites are of that parity, as a mask."""
    return np.indices(shape[:4]).sum(0) % 2 == (parity == qk.PARITY_ODD)


def half(psi, parity):
    """What is sent of it."""
    return psi[sites(psi.shape, parity)]


def whole(sent, shape, parity):
    """0 on the other parity."""
    psi = np.zeros(shape, complex)
    psi[sites(shape, parity)] = sent.reshape(-1, 4, 3)
    return psi


def other(parity):
    return 3 - parity


def ask(c, fields, dtype=qk.DTYPE_F64, **more):
    """[(result, field)] of an upload."""
    real = {qk.DTYPE_F64: np.complex128, qk.DTYPE_F32: np.complex64}[dtype]
    return c.solve([np.ascontiguousarray(f).astype(real).ravel() for f in fields], real=real, dtype=dtype, **more)


def near(x, y, limit=1e-13):
    return np.linalg.norm(x.ravel() - y.ravel()) <= limit * np.linalg.norm(y.ravel())


def check_results(result, b, x):
    """norm_b and norm_x are those of what the client sent and got."""
    assert result.status == 0 and result.true_residual == 0 and result.iterations == 0, result
    assert abs(result.norm_b / np.linalg.norm(b) - 1) < 1e-12 and abs(result.norm_x / np.linalg.norm(x) - 1) < 1e-6, result


def check_parts(case, name):
    alone(case, name)
    oracle = Oracle(case, name)
    with case.started(oracle) as d, Client(d) as c:
        assert 4 in c.welcome.feature
        b = oracle.noise(3)
        for flavour in oracle.op:
            for part in PARTS:
                for dagger in False, True:
                    (r, x), = ask(c, [b], work=getattr(qk, 'WORK_' + part), dagger=dagger, flavour=flavour)
                    want = oracle.part(part, b, dagger, flavour)
                    assert near(x, want), (part, dagger, flavour, np.linalg.norm(x - want.ravel()) / np.linalg.norm(want))
                    check_results(r, b, x)


for NAME in ACTIONS:
    if NAME != 'doublet':
        def body(case, name=NAME):
            check_parts(case, name)
        body.__name__ = 'parts_of_%s_are_those_of_the_oracle' % NAME
        tap.test(body)


@tap.test
def every_basis_and_normalisation_has_every_part(case):
    alone(case)
    oracle = Oracle(case, 'twisted_clover')
    with case.started(oracle) as d, Client(d) as c:
        b = oracle.noise(4)
        for basis in range(4):
            for part in PARTS:
                for dtype, limit in (qk.DTYPE_F64, 1e-13), (qk.DTYPE_F32, 1e-6):
                    (r, x), = ask(c, [in_basis(b, basis)], dtype, basis=basis, work=getattr(qk, 'WORK_' + part), normalisation=qk.NORMALISATION_KAPPA,
                                  dagger=basis % 2 == 1)
                    want = in_basis(oracle.part(part, b, basis % 2 == 1), basis) * (2 * KAPPA) ** POWER[part]
                    assert near(x, want, limit), (basis, part)
                    assert abs(r.norm_x / np.linalg.norm(want) - 1) < limit * 10, (r, part)


@tap.test
def doublets_have_parts_of_both_flavours(case):
    """M and its adjoint by the oracle; T, T^-1 and H by what they make of M."""
    alone(case)
    oracle = Oracle(case, 'doublet')
    op = oracle.op[1]
    with case.started(oracle) as d, Client(d) as c:
        b = oracle.noise(5)
        got = {}
        for dagger in False, True:
            for part in PARTS:
                (r, x), = ask(c, [b], work=getattr(qk, 'WORK_' + part), dagger=dagger)
                got[part] = x.reshape(oracle.shape)
                check_results(r, b, x)
            assert near(got['M'], op.apply_dagger(b) if dagger else op.apply(b))
            assert near(got['DIAG'] - got['HOP'] / 2, got['M'])
            (_, x), = ask(c, [got['DIAG']], work=qk.WORK_DIAG_INVERSE, dagger=dagger)
            assert near(x, b)
            (_, x), = ask(c, [got['HOP']], work=qk.WORK_DIAG_INVERSE, dagger=dagger)
            assert near(x, got['DIAG_INVERSE_HOP'])
            hops = np.stack([f.hops(v) for f, v in zip(op.flavour, b)])
            assert near(got['HOP'], G5 * np.stack([f.hops(G5 * v) for f, v in zip(op.flavour, b)]) if dagger else hops)
        r = c.submit(1, dagger=True, expect='rejected')
        assert r.status == STATUS['UNSUPPORTED'] and 'doublet' in r.text and 'dagger' in r.text, r


@tap.test
def solves_of_the_adjoint_have_its_residual(case):
    """In every basis, both normalisations and of both flavours, by every solver; beside solves of M."""
    alone(case)
    for name, options in (('wilson_clover', ()), ('twisted_clover', ()), ('twisted_mass', ('--solver', 'cg')), ('anisotropic_clover', ('--solver', 'gcr')),
                          ('open_boundary', ()), ('wilson_clover', ('--solver', 'mg', '--mg-vectors', '8', '--mg-setup-iterations', '20'))):
        oracle = Oracle(case, name)
        with case.started(oracle, *options) as d, Client(d) as c:
            b = oracle.noise(6)
            for flavour in oracle.op:
                for basis in (0, 1, 2, 3) if name == 'twisted_clover' else (1,):
                    sent = in_basis(b, basis)
                    more = dict(basis=basis, flavour=flavour, normalisation=basis % 2, tol=1e-11)
                    both = [c.submit(1, dagger=dagger, **more) for dagger in (True, False)]
                    for accepted in both:
                        c.upload(accepted, [sent])
                    for r in c.results(2):
                        dagger = r.request == both[0].request
                        x = c.fetch(r).reshape(oracle.shape) * (2 * KAPPA) ** (basis % 2)
                        x = np.einsum('ij,...jc->...ic', BASES.get(basis, np.eye(4)), x)
                        off = np.linalg.norm(b - oracle.part('M', x, dagger, flavour)) / np.linalg.norm(b)
                        assert r.status == 0 and off < 1.1e-11 and abs(off - r.true_residual) < 1e-12, (name, dagger, flavour, off, r)


@tap.test
def a_product_with_m_is_one_with_its_adjoint(case):
    """<y, M x> = <M^+ y, x>"""
    alone(case)
    oracle = Oracle(case, 'twisted_clover')
    with case.started(oracle) as d, Client(d) as c:
        x, y = oracle.noise(7).ravel(), oracle.noise(8).ravel()
        for part in 'M', 'HOP', 'DIAG', 'DIAG_INVERSE':
            (_, there), = ask(c, [x], work=getattr(qk, 'WORK_' + part))
            (_, back), = ask(c, [y], work=getattr(qk, 'WORK_' + part), dagger=True)
            a, b = np.vdot(y, there), np.vdot(back, x)
            assert abs(a - b) < 1e-12 * np.linalg.norm(y) * np.linalg.norm(there), (part, a, b)


@tap.test
def sources_of_all_kinds_are_worked_on(case):
    """Generated, smeared, kept; M of a kept solution is its source, and moves nothing; M^+M x = b by two solves."""
    alone(case)
    oracle = Oracle(case, 'wilson_clover')
    alpha, steps = 0.7, 5
    smear = qk.Smearing(alpha=alpha, steps=steps)
    with case.started(oracle) as d, Client(d) as c:
        def made(**more):
            c.submit(1, **more)
            r = c.expect('result')
            assert r.status == 0, r
            return r, c.fetch(r).reshape(oracle.shape)

        column = [qk.Column(x=1, y=2, z=3, t=4, spin=2, colour=1)]
        point = np.zeros(oracle.shape, complex)
        point[4, 3, 2, 1, 2, 1] = 1
        _, x = made(source=qk.SOURCE_POINT, column=column, work=qk.WORK_M)
        assert near(x, oracle.part('M', point))
        smeared = smear_ref.smear_source(case.links, point, 'gauss:%r,%d' % (alpha, steps))
        r, x = made(source=qk.SOURCE_POINT, column=column, work=qk.WORK_SMEAR, smear=smear)
        assert near(x, smeared)
        check_results(r, smeared, x)
        _, x = made(source=qk.SOURCE_POINT, column=column, work=qk.WORK_HOP, smear=smear, dagger=True)
        assert near(x, oracle.part('HOP', smeared, True))
        kept = c.submit(1, source=qk.SOURCE_POINT, sink=qk.SINK_KEEP, column=column, tol=1e-12, smear=smear).request
        assert c.expect('result').status == 0
        through = [qk.Column(request=kept, gamma=0, t=-1)]
        before = d.status().counters.bytes_in
        r, x = made(source=qk.SOURCE_SEQUENTIAL, column=through, work=qk.WORK_M)
        assert near(x, smeared, 2e-12) and d.status().counters.bytes_in == before
        # (M M^+)^-1 b = M^+^-1 M^-1 b
        _, x = made(source=qk.SOURCE_SEQUENTIAL, column=through, tol=1e-12, dagger=True)
        assert near(oracle.part('M', oracle.part('M', x, True)), smeared, 1e-10)
        c.submit(1, source=qk.SOURCE_SEQUENTIAL, column=through, work=qk.WORK_M, sink=qk.SINK_NONE)
        r = c.expect('result')
        assert r.status == 0 and r.bytes == 0 and abs(r.norm_x / np.linalg.norm(smeared) - 1) < 1e-11, r


@tap.test
def what_cannot_be_worked_on_is_refused(case):
    alone(case)
    oracle = Oracle(case, 'wilson_clover')
    with case.started(oracle) as d, Client(d) as c:
        b = oracle.noise(9)
        bad = b.copy()
        bad[5, 1, 2, 3, 1, 2] = np.nan
        (r, x), = ask(c, [bad], work=qk.WORK_M)
        assert r.status == STATUS['NAN_INPUT'] and 'x y z t = 3 2 1 5, spin 1, colour 2' in r.text and x is None, r
        (r, x), = ask(c, [1e-30 * b], qk.DTYPE_F32, work=qk.WORK_M)
        assert r.status == 0 and near(x, 1e-30 * oracle.part('M', b), 1e-6), r
        (r, x), = ask(c, [1e37 * b], qk.DTYPE_F32, work=qk.WORK_M)
        assert r.status == 0 or 'too large' in r.text, r
        (r, x), = ask(c, [1e38 * np.sign(b.real)], qk.DTYPE_F32, work=qk.WORK_M)
        assert r.status == STATUS['BAD_ARGUMENT'] and 'too large for f32' in r.text and x is None, r
        (r, x), = ask(c, [1e-200 * b], work=qk.WORK_M)
        assert near(x, 1e-200 * oracle.part('M', b)) and abs(r.norm_b / (1e-200 * np.linalg.norm(b)) - 1) < 1e-12, r
        (r, x), = ask(c, [0 * b], work=qk.WORK_M)
        assert r.status == 0 and not x.any() and r.norm_b == r.norm_x == 0, r
        (r, x), = ask(c, [b], work=qk.WORK_M)
        assert near(x, oracle.part('M', b)), 'nothing is left of those before'


@tap.test
def solves_keep_their_bits_beside_work(case):
    """Slots that run while others are worked on, with staging buffers and without."""
    oracle = Oracle(case, 'twisted_clover')
    for options in (('--staging', '4'), ('--staging', '0'))[:1 if case.ranks != '1' else 2]:
        with case.started(oracle, '--single-rhs-solver', 'no', *options) as d, Client(d) as c, Client(d) as other:
            fields = [oracle.noise(20 + i).ravel() for i in range(4)]
            alone = [x for _, x in c.solve(fields, tol=1e-13)]
            accepted = c.submit(4, tol=1e-13)
            c.upload(accepted, fields)
            count = 0
            while True:
                (_, x), = ask(other, [fields[0]], work=qk.WORK_M, flavour=-1)
                assert near(x, oracle.part('M', fields[0].reshape(oracle.shape), flavour=-1))
                count += 1
                if d.status().counters.running == 0:
                    break
            for r, x in zip(c.results(4), alone):
                assert np.array_equal(c.fetch(r), x), (r, count)


@tap.test
def work_is_done_while_every_slot_is_taken(case):
    """By solves that never end: with staging there are entries beside slots."""
    alone(case)
    oracle = Oracle(case, 'wilson_clover')
    with case.started(oracle, '--staging', '4', mass='-2') as d, Client(d) as c, Client(d, user='other') as other:
        c.submit(4, source=qk.SOURCE_Z4, tol=1e-100, max_iter=10 ** 8)
        d.status_when(lambda s: s.counters.running == 4)
        for i in range(3):
            b = oracle.noise(30 + i)
            (r, x), = ask(other, [b], work=qk.WORK_HOP)
            assert near(x, oracle.part('HOP', b))
        assert d.status().counters.running == 4
        c.send(cancel=qk.Cancel(request=1))
        assert all(r.status == STATUS['CANCELLED'] for r in c.results(4))


# ---- fields of one parity


@tap.test
def parts_go_from_and_to_one_parity(case):
    """Hops to it from the other one. With basis and type, which have to do with sites."""
    for name in 'twisted_clover', 'open_boundary':
        oracle = Oracle(case, name)
        with case.started(oracle) as d, Client(d) as c:
            b = oracle.noise(40)
            for k, part in enumerate(PARTS):
                for parity in PARITIES:
                    dagger, basis = (k + parity) % 2 == 0, k % 4
                    start = other(parity) if 'HOP' in part else parity
                    dtype, limit = (qk.DTYPE_F32, 1e-6) if k == 2 else (qk.DTYPE_F64, 1e-13)
                    sent = half(in_basis(b, basis), start)
                    (r, x), = ask(c, [sent], dtype, work=getattr(qk, 'WORK_' + part), parity=parity, dagger=dagger, basis=basis)
                    full = oracle.part(part, whole(half(b, start), oracle.shape, start), dagger)
                    want = half(in_basis(full, basis), parity)
                    assert r.status == 0 and r.bytes == want.size * (16 if dtype == qk.DTYPE_F64 else 8) and near(x, want, limit), (name, part, parity)
                    assert abs(r.norm_b / np.linalg.norm(sent) - 1) < limit and abs(r.norm_x / np.linalg.norm(want) - 1) < 10 * limit, r


@tap.test
def the_schur_complement_is_that_of_the_oracle(case):
    for name in ('twisted_clover',) if case.ranks != '1' else ('wilson', 'exp_clover', 'twisted_clover', 'open_boundary'):
        oracle = Oracle(case, name)
        with case.started(oracle) as d, Client(d) as c:
            b = oracle.noise(41)
            for flavour in oracle.op:
                for parity in PARITIES:
                    psi = whole(half(b, parity), oracle.shape, parity)
                    for schur, power in (qk.SCHUR_NONE, 0), (qk.SCHUR_SYMMETRIC, 0), (qk.SCHUR_ASYMMETRIC, 1):
                        for dagger in False, True:
                            (r, x), = ask(c, [half(b, parity)], work=qk.WORK_SCHUR, parity=parity, schur=schur, dagger=dagger, flavour=flavour,
                                          normalisation=dagger)
                            want = half(oracle.schur(psi, power == 1, dagger, flavour), parity) * (2 * KAPPA) ** (power * dagger)
                            assert near(x, want), (name, flavour, parity, schur, dagger)
                            check_results(r, half(b, parity), x)


@tap.test
def solves_of_one_parity_are_parts_of_whole_ones(case):
    """Source 0 on the other parity, solution not sent."""
    alone(case)
    oracle = Oracle(case, 'wilson_clover')
    with case.started(oracle) as d, Client(d) as c:
        b = oracle.noise(42)
        for parity in PARITIES:
            (_, x), = ask(c, [whole(half(b, parity), oracle.shape, parity)], tol=1e-11)
            (r, y), = ask(c, [half(b, parity)], tol=1e-11, parity=parity)
            want = half(x.reshape(oracle.shape), parity)
            assert r.status == 0 and r.true_residual <= 1e-11 and near(y, want, 1e-9)
            assert abs(r.norm_x / np.linalg.norm(want) - 1) < 1e-9 and abs(r.norm_b / np.linalg.norm(half(b, parity)) - 1) < 1e-12, r


def check_schur_solves(case, name, *options, tol=1e-10, **more):
    alone(case, name)
    oracle = Oracle(case, name)
    with case.started(oracle, *options, **more) as d, Client(d) as c:
        b = oracle.noise(43)
        cases = [(f, p, s, dagger) for f in oracle.op for p in PARITIES for s in (qk.SCHUR_SYMMETRIC, qk.SCHUR_ASYMMETRIC) for dagger in (False, True)]
        asked = {}
        for flavour, parity, schur, dagger in cases:  # all at once: slots have residuals of different systems
            kappa = qk.NORMALISATION_KAPPA if dagger else qk.NORMALISATION_MASS
            accepted = c.submit(1, tol=tol, parity=parity, schur=schur, dagger=dagger, flavour=flavour, normalisation=kappa)
            c.upload(accepted, [half(b, parity)])
            asked[accepted.request] = flavour, parity, schur, dagger
        for r in c.results(len(cases)):
            flavour, parity, schur, dagger = asked[r.request]
            asymmetric = schur == qk.SCHUR_ASYMMETRIC
            x = whole(c.fetch(r) * (2 * KAPPA if asymmetric and dagger else 1), oracle.shape, parity)
            psi = whole(half(b, parity), oracle.shape, parity)
            off = np.linalg.norm(psi - oracle.schur(x, asymmetric, dagger, flavour)) / np.linalg.norm(psi)
            assert r.status == 0 and off <= 1.01 * tol and abs(off - r.true_residual) < 1e-3 * tol, (name, asked[r.request], off, r)
            assert abs(r.norm_b / np.linalg.norm(psi) - 1) < 1e-12, r


for NAME, OPTIONS in (('wilson', ()), ('wilson_clover', ('--solver', 'gcr')), ('exp_clover', ('--precision', 'half')),
                      ('twisted_clover', ('--solver', 'cg')), ('open_boundary', ('--precision', 'single')),
                      ('twisted_mass', ('--solver', 'mg', '--mg-vectors', '8', '--mg-setup-iterations', '20'))):
    def body(case, name=NAME, options=OPTIONS):
        check_schur_solves(case, name, *options)
    body.__name__ = 'schur_solves_of_%s_have_the_residual_of_their_system' % NAME
    tap.test(body)


@tap.test
def schur_solves_of_any_size_and_alone(case):
    """In the single-RHS solver; sources whose squares a double does not hold; none; NaN."""
    alone(case)
    oracle = Oracle(case, 'wilson_clover')
    with case.started(oracle) as d, Client(d) as c:
        b = half(oracle.noise(44), qk.PARITY_ODD)
        solutions = {}
        for schur in qk.SCHUR_SYMMETRIC, qk.SCHUR_ASYMMETRIC:
            for size in 1, 1e-200, 1e200:
                (r, x), = ask(c, [size * b], parity=qk.PARITY_ODD, schur=schur, tol=1e-10)
                assert r.status == 0 and abs(r.norm_b / size / np.linalg.norm(b) - 1) < 1e-12, r
                assert near(x / size, solutions.setdefault(schur, x), 1e-9)
            (r, x), = ask(c, [0 * b], parity=qk.PARITY_ODD, schur=schur, tol=1e-10)
            assert r.status == 0 and not x.any(), r
            bad = oracle.noise(45)
            bad[2, 3, 1, 3, 1, 2] = np.inf
            (r, x), = ask(c, [half(bad, qk.PARITY_ODD)], parity=qk.PARITY_ODD, schur=schur, tol=1e-10)
            assert r.status == STATUS['NAN_INPUT'] and 'x y z t = 3 1 3 2, spin 1, colour 2' in r.text and x is None, r
        assert not near(solutions[qk.SCHUR_SYMMETRIC], solutions[qk.SCHUR_ASYMMETRIC], 1e-3)


@tap.test
def kept_fields_of_one_parity_are_sources(case):
    """Of whole requests and of either parity; a kept whole field is one, too."""
    oracle = Oracle(case, 'wilson_clover')
    with case.started(oracle) as d, Client(d) as c:
        b = oracle.noise(46)
        kept = {}
        for parity in 0, 1, 2:
            accepted = c.submit(1, work=qk.WORK_SMEAR, parity=parity, sink=qk.SINK_KEEP)
            c.upload(accepted, [half(b, parity) if parity else b])
            assert c.expect('result').status == 0
            kept[accepted.request] = whole(half(b, parity), oracle.shape, parity) if parity else b
        for request, psi in kept.items():
            for parity in 0, 1, 2:
                c.submit(1, source=qk.SOURCE_SEQUENTIAL, work=qk.WORK_DIAG, parity=parity, column=[qk.Column(request=request, gamma=15, t=-1)])
                r = c.expect('result')
                want = oracle.part('DIAG', G5 * psi)
                assert r.status == 0 and np.allclose(c.fetch(r), (half(want, parity) if parity else want).ravel(), rtol=0, atol=1e-12), (request, parity)


tap.run(Works(*sys.argv[1:]))
