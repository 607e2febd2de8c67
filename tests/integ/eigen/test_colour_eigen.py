"""Eigenvectors of staggered fermions with the real engine, for one mass and for others: test_colour_eigen.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import os
import signal
import sys
import tempfile

from cli_case import GAUGE, Case, np, tap
from daemon import Daemon
import quarkd
from refusals import refused

COUNT, MASS = 48, 0.02
ACTION = ['--gauge=' + GAUGE, '--action=staggered', '--solver=cg', '--slots=3']


class ColourCase(Case):
    """D by shifts of whole arrays, antiperiodic in t, as a matrix from odd to even sites."""

    def __init__(self, *programs):
        super().__init__(*programs)
        shape = self.shape = self.links.shape[1:5]
        t, z, y, x = np.indices(shape)
        site = np.arange(t.size).reshape(shape)
        eta = np.ones(shape), (-1.0) ** x, (-1.0) ** (x + y), (-1.0) ** (x + y + z)
        d = np.zeros((t.size, 3, t.size, 3), complex)
        for mu, axis in enumerate((3, 2, 1, 0)):
            u = self.links[mu] * eta[mu][..., None, None]
            if mu == 3:
                u = u * np.where(t == shape[0] - 1, -1, 1)[..., None, None]
            ahead = np.roll(site, -1, axis).ravel()
            d[site.ravel(), :, ahead, :] += u.reshape(-1, 3, 3)
            d[ahead, :, site.ravel(), :] -= u.reshape(-1, 3, 3).conj().transpose(0, 2, 1)
        self.d = d.reshape(3 * t.size, 3 * t.size)
        self.even = np.repeat((x + y + z + t).ravel() % 2 == 0, 3)
        eo = self.d[np.ix_(self.even, ~self.even)]
        self.squares = np.linalg.eigvalsh(eo @ eo.conj().T)

    def start(self, *options):
        return Daemon(self.quarkd, self.quarkctl, *ACTION, '--set=mass=%r' % MASS, *options)

    def values(self, mass):
        """Of Mhat = 1 - D_eo D_oe / (4 m^2), ascending."""
        return 1 + self.squares / (4 * mass ** 2)

    def off(self, x, b, mass):
        return np.linalg.norm(mass * x.ravel() + self.d @ x.ravel() / 2 - b.ravel()) / np.linalg.norm(b)


def iterations(case, q, mass, **where):
    """The most that a point of three colours takes; the solutions are looked at."""
    p = q.propagator(quarkd.point(1, 2, 3, 2), tol=1e-10, **where)
    for colour, column in enumerate(p):
        b = np.zeros(case.shape + (3,), complex)
        b[2, 3, 2, 1, colour] = 1
        assert case.off(column.numpy(), b, mass) < 1.01e-10, (colour, mass)
    return max(r.iterations for r in p.results)


@tap.test
def what_it_finds_are_eigenvectors_of_mhat(case):
    for tol, within in (1e-10, 1e-9), (1e-4, 1e-3):  # in double, and in single
        with case.start('--precision=single') as d:
            d.wait_listening()
            with quarkd.connect(d.endpoint) as q:
                e = q.eigen('low', COUNT, tol=tol)
                want = case.values(MASS)
                assert np.abs(e.values - want[:COUNT]).max() < within * want[-1], (e.values, want[:COUNT])
                v = e.vectors().reshape(COUNT, -1)
                assert not v[:, ~case.even].any()
                assert np.abs(v.conj() @ v.T - np.eye(COUNT)).max() < max(within, 1e-6)
                for x, value in zip(v, e.values):
                    image = x - (case.d @ (case.d @ x)) / (4 * MASS ** 2)
                    assert np.linalg.norm(image - value * x) < within * want[-1]


@tap.test
def what_there_is_not_of_colours_is_refused_by_name(case):
    with case.start() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            for kind in 'laplacian', 'gamma5':
                text = refused(lambda: q.eigen('low', 4, kind), 'UNSUPPORTED')
                assert kind in text and 'of fields with colour alone there are eigenvectors of kind = 0' in text, text
            text = refused(lambda: q.eigen('low', 16, basis=8), 'UNSUPPORTED')
            assert 'are not compressed' in text, text


def setup(q, name):
    return next(s for s in q.setups() if s.name == name).everything['deflation']


@tap.test
def solves_of_any_mass_begin_with_them(case):
    """Whose eigenvalues are shifted; whatever becomes of the set, and of the engine."""
    masses = {'same': MASS, 'light': 0.005, 'heavy': 0.1}
    with tempfile.TemporaryDirectory(prefix='qk-eigen-') as state, case.start('--state=' + state, '--max-setups=8') as d:
        d.wait_listening()
        made = case.ctl('eigen', 'low', '--count=%d' % COUNT, '--tol=1e-6', endpoint=d.endpoint)
        assert made.code == 0, made
        with quarkd.connect(d.endpoint) as q:
            for name, mass in masses.items():
                for options, deflated in ((['--deflate=low'], name), ([], 'plain-' + name)):
                    loaded = case.ctl('load', deflated, '--set=mass=%r' % mass, *options, endpoint=d.endpoint)
                    assert loaded.code == 0, loaded

            def look(name, mass):
                found, want = setup(q, name), case.values(mass)
                assert (found['vectors'], found['origin'], found['restored']) == (COUNT, 'low', True), found
                assert abs(found['lowest'] / want[0] - 1) < 1e-4 and abs(found['highest'] / want[COUNT - 1] - 1) < 1e-4, (found, want[:COUNT])
                return iterations(case, q, mass, setup=name)
            for name, mass in masses.items():
                plain, fewer = iterations(case, q, mass, setup='plain-' + name), look(name, mass)
                print('# mass %g: %d iterations, %d with %d vectors' % (mass, plain, fewer, COUNT))
                assert fewer < 0.8 * plain or mass > MASS, (plain, fewer)
            assert case.ctl('eigen', 'low', '--drop', endpoint=d.endpoint).code == 0
            os.kill(case.ctl('status', '--setup=light', '--json', endpoint=d.endpoint).json['engine']['pid'], signal.SIGKILL)
            q.ready('light', patience=60)
            look('light', masses['light'])


@tap.test
def another_operator_has_no_use_for_them(case):
    with tempfile.TemporaryDirectory(prefix='qk-eigen-') as state, case.start('--state=' + state) as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            q.eigen('low', COUNT, tol=1e-4)
            for terms in dict(action='asqtad', parameters={'mass': MASS, 'u0': 0.9}), dict(parameters={'mass': MASS, 'links': 'stout:0.1,1'}):
                text = refused(lambda: q.load('other', deflate='low', **terms), 'BAD_ARGUMENT')
                assert 'deflate_from = low: those of setup main are of another operator' in text, text


@tap.test
def a_number_of_them_is_made_and_restored(case):
    """Those of --deflate N, which the setup's own file has when quarkd is started again."""
    with tempfile.TemporaryDirectory(prefix='qk-eigen-') as state:
        for restored in False, True:
            with case.start('--state=' + state, '--deflate=%d' % COUNT, '--precision=half') as d:
                d.wait_listening()
                with quarkd.connect(d.endpoint) as q:
                    q.ready()
                    found, want = setup(q, 'main'), case.values(MASS)
                    assert (found['vectors'], found['restored'], found['trouble']) == (COUNT, restored, ''), found
                    assert abs(found['lowest'] / want[0] - 1) < 1e-3, (found, want)
                    assert iterations(case, q, MASS) > 0


tap.run(ColourCase(*sys.argv[1:]))
