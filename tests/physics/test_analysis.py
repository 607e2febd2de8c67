"""The analysis is right where the answer is known: synthetic data, and configurations of other programs."""
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
import couplings
import fits
import mg_mass
import published
import ref_dirac as ref
import stats
import tap

try:
    import h5py
    import spectrum
except ImportError:
    h5py = None

DATA = os.environ.get('QK_DATA', '')


def autoregression(rng, n, a):
    """x' = a x + noise: variance 1, rho(t) = a^t, tau = (1 + a) / (2 (1 - a))."""
    x = np.zeros(n)
    noise = rng.normal(size=n) * np.sqrt(1 - a * a)
    x[0] = rng.normal()
    for i in range(1, n):
        x[i] = a * x[i - 1] + noise[i]
    return x


@tap.test
def gamma_method_finds_the_autocorrelation_of_an_autoregression():
    rng = np.random.default_rng(1)
    for a in (0.0, 0.5, 0.9):
        tau = (1 + a) / (2 * (1 - a))
        runs = np.array([stats.gamma_method(autoregression(rng, 4000, a)) for _ in range(60)])
        mean, error, found, its_error = runs.T
        assert abs(found.mean() / tau - 1) < 0.05, (a, found.mean(), tau)
        assert abs(error.mean() / np.sqrt(2 * tau / 4000) - 1) < 0.05, (a, error.mean())
        assert 0.7 < (mean / error).std() < 1.3, (a, (mean / error).std())
        assert 0.6 < ((found - tau) / its_error).std() < 1.5, (a, ((found - tau) / its_error).std())


@tap.test
def gamma_method_refuses_a_constant():
    try:
        stats.gamma_method(np.ones(100))
    except ValueError:
        return
    assert False


@tap.test
def jackknife_has_the_error_of_a_mean_and_of_a_ratio():
    rng = np.random.default_rng(2)
    x = rng.normal(10, 1, size=(400, 2))
    means = stats.jackknife_samples(x)
    error = stats.jackknife_error(means)
    assert np.allclose(error, x.std(axis=0, ddof=1) / 20, rtol=1e-10), error
    ratio = stats.jackknife_error(means[:, 0] / means[:, 1])
    assert abs(ratio / (np.sqrt(2) / 10 / 20) - 1) < 0.1, ratio


def correlator(rng, configurations, extent, mass, noise, kind):
    """With noise that is correlated in time."""
    t = np.arange(extent)
    exact = np.exp(-mass * t) + (np.exp(-mass * (extent - t)) if kind == 'cosh' else 0)
    n = rng.normal(size=(configurations, extent))
    return 3.0 * exact * (1 + noise * sum(np.roll(n, s, axis=1) * 0.8**s for s in range(8)))


@tap.test
def fits_find_the_mass_within_their_errors():
    rng = np.random.default_rng(3)
    for kind, mass, window in (('cosh', 0.35, (6, 13)), ('exp', 0.7, (4, 10))):
        pulls, chi2 = [], []
        for _ in range(60):
            data = correlator(rng, 80, 32, mass, 0.03, kind)
            fit = fits.mass(fits.fold(data) if kind == 'cosh' else data, kind, *window, 32)
            pulls.append((fit.mass - mass) / fit.error)
            chi2.append(fit.chi2)
        assert 0.75 < np.std(pulls) < 1.35 and abs(np.mean(pulls)) < 0.5, (kind, np.std(pulls), np.mean(pulls))
        assert 0.7 < np.mean(chi2) / fit.dof < 1.4, (kind, np.mean(chi2))


@tap.test
def chi2_tells_a_second_state():
    rng = np.random.default_rng(4)
    data = correlator(rng, 80, 32, 0.35, 0.01, 'cosh') + 0.5 * correlator(rng, 80, 32, 0.9, 0.01, 'cosh')
    early, late = [fits.mass(fits.fold(data), 'cosh', first, 14, 32) for first in (1, 9)]
    assert early.chi2 > 5 * early.dof > 0 and late.chi2 < 3 * late.dof, (early.chi2, late.chi2)


@tap.test
def effective_mass_of_one_state_is_its_mass():
    t = np.arange(17)
    assert np.allclose(fits.effective_mass(np.cosh(0.3 * (t - 16)), 'cosh', 32), 0.3, atol=1e-12)
    assert np.allclose(fits.effective_mass(np.exp(-0.5 * t), 'exp', 32), 0.5, atol=1e-12)


@tap.test
def a_zero_is_found_between_points():
    x = np.array([3.0, 3.5, 4.0])
    y = 0.7 * (x - 2.5)
    samples = stats.jackknife_samples(y + 0.01 * np.random.default_rng(5).normal(size=(50, 3)))
    zero, error = fits.crossing(x, y, samples)
    assert abs(zero - 2.5) < 1e-12 and 0.001 < error < 0.02, (zero, error)


@tap.test
def loops_of_the_couplings_are_those_of_the_lattice():
    u = ref.reunitarise(np.random.default_rng(6).normal(size=(4, 4, 6, 4, 8, 3, 3, 2)) @ [1, 1j])
    plaquette, rectangle = couplings.equations(u)[2]
    direct = []
    for mu in range(4):
        for nu in range(4):
            if mu != nu:
                long = u[mu] @ ref.shift(u[mu], mu)
                p = long @ ref.shift(ref.shift(u[nu], mu), mu) @ ref.dag(u[nu] @ ref.shift(long, nu))
                direct.append(np.trace(p, axis1=-2, axis2=-1).real.mean() / 3)
    assert abs(plaquette - ref.plaquette(u)) < 1e-13 and abs(rectangle - np.mean(direct)) < 1e-13


@tap.test
def configurations_of_others_at_beta_6_say_so():
    names = ['dd_8x8x8x8b6.0000id3n1', 'milc_lat.sample.l8888']
    if not all(os.path.exists(os.path.join(DATA, n)) for n in names):
        raise tap.Skip('no gauge files in "%s" (QK_DATA)' % DATA)
    each = [couplings.equations(ref.load_any(os.path.join(DATA, n))[0]) for n in names]
    left, matrix = np.mean([e[0] for e in each], axis=0), np.mean([e[1] for e in each], axis=0)
    beta = couplings.solve_beta(left, matrix, 0.0)
    both = couplings.solve(left, matrix)
    print('# beta %.3f; with a rectangle beta %.3f, c1 %.4f' % (beta, *both))
    # 2 x 16384 links: 0.3 % and 1.5 %
    assert abs(beta - 6) < 0.06 and abs(both[0] - 6) < 0.3 and abs(both[1]) < 0.01


@tap.test
def a_hot_field_has_no_coupling():
    u = ref.reunitarise(np.random.default_rng(7).normal(size=(4, 6, 6, 6, 6, 3, 3, 2)) @ [1, 1j])
    left, matrix, _ = couplings.equations(u)
    assert abs(couplings.solve_beta(left, matrix, 0.0)) < 0.3


def free_mesons(mass, pairs):
    """C_AB(t) of free quarks on 4^3 x 16, by definition, for gamma matrices by their numbers."""
    u = np.broadcast_to(np.eye(3), (4, 16, 4, 4, 4, 3, 3)).astype(complex)
    operator = ref.WilsonClover(u, mass)
    s = np.stack([ref.solve(operator, ref.point_source(operator, spin, 0), 1e-10)[0][..., 0] for spin in range(4)], axis=-1)

    def gamma(n):
        return np.linalg.multi_dot([np.eye(4)] * 2 + [ref.GAMMA[mu] for mu in range(4) if n >> mu & 1])
    five = gamma(15)
    return [3 * np.einsum('tzyxij,tzyxij->t', s.conj(), five @ gamma(a) @ s @ gamma(b) @ five).real for a, b in pairs]


@tap.test
def pcac_mass_of_free_quarks_is_their_mass():
    if h5py is None:
        raise tap.Skip('no h5py')
    axial, pion = free_mesons(0.1, [(7, 15), (15, 15)])
    found = spectrum.pcac(axial, pion, 0.0)[5:12]
    # the pole is at log(1 + m), and the current is not improved: O(a m^2)
    assert np.all(abs(found - np.log(1.1)) < 0.002), found


def write_ensembles(path, rng, shift):
    """Three kappas with PCAC masses that vanish at the published kappa, or `shift` beside it in 1/(2 kappa)."""
    extent, t = 32, np.arange(32)
    with h5py.File(path, 'w') as file:
        for kappa in (0.1333, 0.1338, 0.1342):
            bare = 1 / (2 * kappa) - 1 / (2 * published.KAPPA_CRITICAL[0]) + shift
            m = np.sqrt(3.2 * bare)
            for i in range(40):
                noise = 1 + 0.003 * rng.normal()
                wave = np.exp(-m * t) + np.exp(-m * (extent - t))
                pion = noise * wave * (1 + 0.002 * rng.normal(size=extent))
                # so that its symmetric difference and c_A d^2 C_PP make 2 bare C_PP
                axial = noise * (np.exp(-m * t) - np.exp(-m * (extent - t))) * (
                    2 * bare - published.C_A * 2 * (np.cosh(m) - 1)) / np.sinh(m)
                rho = noise * (np.exp(-(m + 0.2) * t) + np.exp(-(m + 0.2) * (extent - t)))
                nucleon = noise * np.exp(-(1.5 * m + 0.3) * t)
                group = file.create_group('cfg.%04d/kappa=%g/smeared' % (i, kappa))
                for name, value in (('kappa', kappa), ('csw', published.C_SW), ('digest', '%016x' % i), ('label', 'smeared')):
                    group.attrs[name] = value
                group['momenta'] = np.array([[1, 0, 0], [0, 0, 0]], np.int32)
                for name, c in (('pion', pion), ('rho', rho), ('nucleon', nucleon), ('gxgygz-g5', axial)):
                    c = c * (1 + 0.002 * rng.normal(size=extent))
                    group[name] = np.array([9 * c, c], complex)


@tap.test
def spectrum_judges_a_file_by_its_critical_kappa():
    if h5py is None:
        raise tap.Skip('no h5py')
    rng = np.random.default_rng(8)
    with tempfile.TemporaryDirectory() as folder:
        for shift, code in ((0.0, 0), (0.004, 1)):
            path = os.path.join(folder, 'c.h5')
            write_ensembles(path, rng, shift)
            done = subprocess.run([sys.executable, os.path.join(HERE, 'spectrum.py'), path], stdout=subprocess.PIPE, text=True)
            print(''.join('# ' + line + '\n' for line in done.stdout.splitlines() if 'kappa' in line), end='')
            assert done.returncode == code, done.stdout
            assert ('DISAGREES' in done.stdout) == bool(code)


BENCH_MG = """a.lime, 8x8x8x16, csw 1.769, tolerance 1e-10, Some GPU (cuda)

kappa 0.1346
method            RHS    iter least  most  apps/RHS     s/RHS    gain  residual
bicgstab single     1   116.0   116   116     237.0    1.5737    1.00   4.9e-11

mg-smoother = mr,mr,mr,mr
setup 6.30 s, hierarchy 0.03 GB, device 0.05 GB, convergence 0.168 an iteration, attempts 1
multigrid           1   %s    15    15     153.0    0.9288     nan   6.3e-11
                 device 0.1 GB; share of time by level: outer 13 %%, 0: 82 %%, 1: 5 %% (of 1.0242 s per RHS)

kappa 0.133
bicgstab single     1    96.0    96    96     197.0    1.6150    1.00   4.1e-11%s
multigrid           1    13.0    13    13     133.0    0.2153    7.50   5.0e-11
"""


@tap.test
def masses_and_costs_are_read_from_what_bench_mg_prints():
    points = mg_mass.parse(BENCH_MG % (99.0, '') + BENCH_MG % (15.0, '  NOT CONVERGED'))
    assert len(points) == 4 and {p.lattice for p in points} == {'8x8x8x16'} and points[0].device == 'Some GPU'
    (place, methods), = mg_mass.curves(points, 0.1352).items()
    assert place == ('8x8x8x16', 'Some GPU', 1)
    (m, light), (heavy_m, heavy) = methods['multigrid'][::-1]
    assert m < heavy_m and abs(m - (1 / 0.1346 - 1 / 0.1352) / 2) < 1e-15, 'a later run counts'
    assert (light.iterations, light.applications, light.seconds, light.converged) == (15, 153, 0.9288, True)
    assert heavy.iterations == 13 and not methods['bicgstab single'][0][1].converged
    for text, critical in ((BENCH_MG.split('\n\n', 1)[1], 0.1352), (BENCH_MG % (15.0, ''), 0.1340)):
        try:
            mg_mass.curves(mg_mass.parse(text), critical)
        except ValueError as e:
            assert 'kappa' in str(e)
        else:
            raise AssertionError('no error')


@tap.test
def masses_and_costs_are_drawn():
    if not shutil.which('gnuplot'):
        raise tap.Skip('no gnuplot')
    with tempfile.TemporaryDirectory() as folder:
        log, png = os.path.join(folder, 'mass.log'), os.path.join(folder, 'mass.png')
        with open(log, 'w', encoding='utf-8') as f:
            f.write(BENCH_MG % (15.0, ''))
        done = subprocess.run([sys.executable, os.path.join(HERE, 'mg_mass.py'), '--log', log, '--plot', png], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0 and not done.stderr, done
        assert '| 0.1346 | 0.0164 | 15.0 | 153 | 0.9288 | 116.0 | 237 | 1.5737 | 1.7 |' in done.stdout, done.stdout
        with open(png, 'rb') as f:
            assert f.read(4) == b'\x89PNG'
        assert os.path.getsize(png) < 200000


tap.run()
