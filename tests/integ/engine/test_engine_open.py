"""An open boundary in t, in quark-engine: test_engine_open.py QUARK_ENGINE QUARK_GAUGE RANKS

Operators are those of numpy; files are as openQCD writes them, with links that are zero.
"""
import os
import sys
import tempfile

import tap
try:
    import numpy as np
    import ref_dirac as ref
    from engine_case import BAD_ARGUMENT, BOUNDARY, Case, GAUGE, OK
    from engine_driver import smearing, Vector, qk
    from open_gauge import opened, write_openqcd
except (ImportError, FileNotFoundError) as missing:
    tap.skip_all('python3-zmq, python3-protobuf, protoc, numpy and scipy are needed: %s' % missing)

NOT_UNITARY = 106
CF, T = 0.85, 8
PARAMETERS = dict(mass=0.1, csw=1.2, open=CF)


def alone(case):
    if case.ranks > 1:
        raise tap.Skip('one rank tells as much')


def settings(**values):
    return [qk.Setting(key=k.replace('_', '-'), value=str(v)) for k, v in values.items()]


def load(case, gauge=GAUGE, action='wilson-clover', slots=4, **more):
    """The engine, loaded, with ranks along t."""
    parameter = settings(**{**PARAMETERS, **more.pop('parameters', {})})
    e = case.start()
    try:
        e.load(gauge, action=action, parameter=parameter, boundary=BOUNDARY, slots=slots, grid=(1, 1, 1, case.ranks), **more)
        e.facts = e.ready()
    except BaseException:
        e.__exit__()
        raise
    return e


def refused(case, gauge=GAUGE, action='wilson-clover', parameters=None, **more):
    with case.start() as e:
        e.load(gauge, action=action, parameter=settings(**(parameters or PARAMETERS)), boundary=more.pop('boundary', BOUNDARY), **more)
        failed = e.expect('load_failed', skip=('load_progress',))
        return failed.status, failed.text


def operator(case, links=None, action='wilson-clover', **more):
    return ref.ACTIONS[action](case.links if links is None else links, BOUNDARY, **{**PARAMETERS, **more})


def off(op, x, b):
    return np.linalg.norm(b - op.apply(x)) / np.linalg.norm(b)


def is_zero_outside(x):
    return not x[0].any() and not x[-1].any()


# ---- the operator -----------------------------------------------------------------------------------


@tap.test
def solutions_are_those_of_the_oracle_in_all_forms(case):
    """Precisions and link forms, solvers, multigrid: zero on the outer slices, to the last bit."""
    op = operator(case, action='exp-clover')
    b = case.random(1) * op.inside
    forms = (dict(inner='PRECISION_DOUBLE'), dict(inner='PRECISION_SINGLE', link_reals=12), dict(inner='PRECISION_HALF', link_reals=18),
             dict(inner='PRECISION_HALF', link_reals=12, solver='cg'), dict(solver='gcr'), dict(solver='mg', link_reals=0))
    for how in forms if case.ranks == 1 else forms[-1:]:
        with load(case, action='exp-clover', **how) as e:
            x, end = e.solve(b, tol=1e-11)
            assert end.status == OK and off(op, x, b) < 1.1e-11 and is_zero_outside(x), (how, off(op, x, b), end)


@tap.test
def the_phase_of_t_has_no_effect(case):
    alone(case)
    b = case.random(2) * ref.inside(T)
    found = []
    for phase in (1, -1, 1j):
        with case.start() as e:
            e.load(GAUGE, action='wilson', parameter=settings(mass=0.1, open=1), boundary=(1, 1, 1, phase))
            e.ready()
            found.append(e.solve(b, tol=1e-11)[0])
    assert all(np.array_equal(found[0], x) for x in found)


# ---- files ------------------------------------------------------------------------------------------


@tap.test
def links_that_are_zero_are_taken_where_the_boundary_is_open(case):
    with tempfile.TemporaryDirectory() as folder:
        whole, part = os.path.join(folder, 'open'), os.path.join(folder, 'part')
        links = opened(case.links)
        write_openqcd(whole, links)
        write_openqcd(part, opened(case.links, 5))
        op = operator(case, links)
        assert abs(op.apply(case.random(3)) - operator(case).apply(case.random(3))).max() < 1e-13  # nobody reads these links
        b = case.random(3) * op.inside
        with load(case, whole) as e:
            assert abs(e.facts.plaquette - ref.plaquette(links)) < 1e-12, e.facts
            x, end = e.solve(b, tol=1e-11)
            assert end.status == OK and off(op, x, b) < 1.1e-11, end
        closed = {k: v for k, v in PARAMETERS.items() if k != 'open'}
        status, text = refused(case, whole, parameters=closed)
        assert status == NOT_UNITARY and 'open boundary: all links U_t from t = 7 to t = 0 are zero; give open = C_F' in text, text
        for parameters in (PARAMETERS, closed)[:2 - (case.ranks > 1)]:
            status, text = refused(case, part, parameters=parameters)
            assert status == NOT_UNITARY and 'links are not SU(3)' in text and 'largest |U^+U - 1| = 1,' in text, text


# ---- sources ----------------------------------------------------------------------------------------


@tap.test
def sources_on_the_outer_slices_are_refused_and_harm_nobody(case):
    """Beside good ones, in one turn; on the slices next to them all is well."""
    op, b = operator(case), case.random(4) * ref.inside(T)
    kinds = [(qk.SOURCE_POINT, dict(spin=1, colour=2)), (qk.SOURCE_WALL, dict(spin=0, colour=1, px=1)),
             (qk.SOURCE_Z4, dict(spin=-1, colour=-1, seed=3)), (qk.SOURCE_Z2, dict(spin=-1, colour=-1, seed=3, t_every=8))]
    with load(case) as e, Vector(case.shape, data=b) as good, Vector(case.shape) as out:
        for kind, column in kinds:
            for t in (0, 7):
                bad = e.fill(0, source=kind, column=qk.Column(t=t, **column))
                fine = e.fill(1, 1e-11, shm_in=good.name, shm_out=out.name)
                ends = e.done(2)
                assert ends[bad].status == BAD_ARGUMENT, ends
                assert 'source on t = %d: the boundary is open' % t in ends[bad].text and 'must be 1 to 6' in ends[bad].text, ends
                assert ends[fine].status == OK and off(op, out.read(), b) < 1.1e-11
            column = {k: v for k, v in column.items() if k != 't_every'}
            for t in (1, 6):
                x, end = e.generate(case.shape, kind, column=dict(t=t, **column))
                source = op.apply(x)
                assert end.status == OK and abs(source[t]).max() > 0.5 and abs(np.delete(source, t, 0)).max() < 1e-8, end


@tap.test
def a_sequential_source_is_refused_there_as_well(case):
    alone(case)
    with load(case) as e, Vector(case.shape, data=case.random(5)) as held, Vector(case.shape) as out:
        how = dict(source=qk.SOURCE_SEQUENTIAL, shm_in=held.name, shm_out=out.name)
        for t, status in ((0, BAD_ARGUMENT), (7, BAD_ARGUMENT), (3, OK), (-1, OK)):
            serial = e.fill(0, column=qk.Column(t=t, gamma=15), **how)
            assert e.done()[serial].status == status, t
        b = operator(case).apply(out.read())
        assert is_zero_outside(out.read()) and abs(b[1:-1]).max() > 0.1


@tap.test
def an_upload_must_be_zero_there(case):
    op = operator(case)
    with load(case) as e:
        for t, size in ((0, 1e-30), (7, 1)):
            b = case.random(6) * op.inside
            b[t, 3, 1, 2, 0, 1] = size
            _, end = e.solve(b)
            assert end.status == BAD_ARGUMENT and 'the source is not 0 on t = %d (norm %.3g)' % (t, size) in end.text, end
        _, end = e.solve(case.random(6) * op.inside * np.nan)
        assert end.status == 202, end  # as anywhere else
        b = case.random(6) * op.inside
        x, end = e.solve(b, tol=1e-11)
        assert end.status == OK and off(op, x, b) < 1.1e-11


@tap.test
def noise_on_all_slices_loses_them(case):
    op = operator(case)
    with load(case) as e:
        for column in (dict(t=-1), dict(t=0, t_every=1), dict(t=0, t_every=3)):
            x, end = e.generate(case.shape, qk.SOURCE_Z4, tol=1e-12, column=dict(spin=-1, colour=-1, seed=9, **column))
            b = op.apply(x)
            slices = [t for t in range(1, 7) if t % column.get('t_every', 1) == 0]
            assert end.status == OK and is_zero_outside(x)
            assert abs(abs(b[slices]) - 1).max() < 1e-9 and abs(np.delete(b, slices, 0)).max() < 1e-9, column
        assert abs(end.norm_b / np.sqrt(2 * 4 * 4 * 8 * 12) - 1) < 1e-12


@tap.test
def smearing_of_zero_links_is_refused_but_in_space(case):
    alone(case)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'open')
        write_openqcd(path, opened(case.links))
        point = dict(column=dict(t=3, spin=1, colour=0))
        with load(case, path, slots=12) as e:
            for spec in ('gauss:0.25,2+ape:0.5,1,4d', 'gauss:0.25,2+stout:0.1,1,4d', 'gauss:0.25,2+hyp:0.7,0.5,0.2,1'):
                _, end = e.generate(case.shape, qk.SOURCE_POINT, smear=smearing(spec), **point)
                assert end.status == BAD_ARGUMENT and 'smear them in space alone' in end.text, end
            x, end = e.generate(case.shape, qk.SOURCE_POINT, smear=smearing('gauss:0.25,2+ape:0.5,2'), **point)
            assert end.status == OK and np.isfinite(x).all()
            columns = [Vector(case.shape, data=x) for _ in range(12)]
            with Vector((1, T), bytes=16 * T) as out:
                _, end = e.contract(columns, out=out, sink=smearing('gauss:0.25,2+ape:0.5,1,4d'))
                assert end.status == BAD_ARGUMENT and 'smear them in space alone' in end.text, end
            for v in columns:
                v.__exit__()
        with load(case) as e:  # links that are not zero are smeared as they are
            assert e.generate(case.shape, qk.SOURCE_POINT, smear=smearing('gauss:0.25,2+ape:0.5,1,4d'), **point)[1].status == OK


# ---- what does not go together ----------------------------------------------------------------------


@tap.test
def what_does_not_fit_an_open_boundary_is_refused(case):
    alone(case)
    for more, says in ((dict(parameters={**PARAMETERS, 'links': 'stout:0.1,1'}), 'links = stout:0.1,1: must be thin with an open boundary'),
                       (dict(link_reals=8), 'link_reals = 8: must be 18 or 12 with an open boundary (open = 0.85)'),
                       (dict(parameters={**PARAMETERS, 'open': -0.5}), 'open = -0.5: must be a number from 0 to 1000'),
                       (dict(gauge='builtin:unit:4x4x4x2'), 'open = 0.85: the lattice has 2 time slices, and an open boundary needs 4'),
                       (dict(action='anisotropic-clover', parameters=dict(mass=0.1, xi0=2, c_r=1, c_t=1, open=1)),
                        'open: anisotropic-clover has no such parameter')):
        status, text = refused(case, **more)
        assert status == BAD_ARGUMENT and says in text, text


@tap.test
def an_exponential_that_no_precision_holds_is_refused(case):
    alone(case)
    for inner, csw in (('PRECISION_HALF', 200), ('PRECISION_DOUBLE', 1000)):
        status, text = refused(case, action='exp-clover', parameters=dict(mass=-3.9, csw=csw), inner=inner)
        assert status == BAD_ARGUMENT and 'exp-clover;mass=-3.9;csw=%d: on ' % csw in text and ' sites the local term T is ' in text, text


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:]))
