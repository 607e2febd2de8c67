"""Masses from correlators: correlated fits of one state, errors by jackknife over configurations.

data[i, t]: configuration i, time t from the source. shape 'cosh': A cosh(m (t - T/2)), folded before; 'exp': A exp(-m t).
"""
import numpy as np
from scipy.optimize import minimize_scalar

import stats


class Fit:
    """mass, error, chi2, dof, window (first and last t), samples (jackknife)."""

    def __init__(self, mass, samples, chi2, dof, window):
        self.mass, self.samples, self.chi2, self.dof, self.window = mass, np.asarray(samples), chi2, dof, window
        self.error = float(stats.jackknife_error(samples))

    def __str__(self):
        return '%s, t %d..%d, chi2/dof %.1f/%d' % (stats.text(self.mass, self.error), *self.window, self.chi2, self.dof)


def fold(data, sign=1):
    """(C(t) + sign C(T-t)) / 2, t = 0 .. T/2."""
    half = data.shape[1] // 2
    back = np.roll(data[:, ::-1], 1, axis=1)
    return ((data + sign * back) / 2)[:, :half + 1]


def shape_of(kind, t, extent):
    if kind == 'cosh':
        # over its value at t = 0: stays in range for any mass
        return lambda m: (np.exp(-m * t) + np.exp(-m * (extent - t))) / (1 + np.exp(-m * extent))
    return lambda m: np.exp(-m * (t - t[0]))


def one_state(mean, whiten, shape, guess):
    """(mass, chi2) that minimise |whiten (mean - A shape(m))|; A is linear and solved for."""
    y = whiten @ mean

    def chi2(m):
        f = whiten @ shape(m)
        return y @ y - (f @ y)**2 / (f @ f)
    best = minimize_scalar(chi2, bounds=(0.5 * guess, 1.5 * guess), method='bounded', options={'xatol': 1e-10})
    return best.x, best.fun


def mass(data, kind, first, last, extent):
    """Fit of data[i, t], t = 0 .., in first .. last."""
    t = np.arange(first, last + 1)
    cut = np.asarray(data)[:, first:last + 1]
    mean = cut.mean(axis=0)
    if len(cut) < 2 * len(t):
        raise ValueError('%d configurations cannot give the covariance of %d times' % (len(cut), len(t)))
    whiten = np.linalg.inv(np.linalg.cholesky(stats.covariance(cut)))
    guess = np.log(mean[0] / mean[len(t) // 2]) / (len(t) // 2)
    if not (np.isfinite(guess) and guess > 0):
        raise ValueError('the correlator does not fall in t = %d .. %d' % (first, last))
    shape = shape_of(kind, t, extent)
    value, chi2 = one_state(mean, whiten, shape, guess)
    samples = [one_state(s, whiten, shape, guess)[0] for s in stats.jackknife_samples(cut)]
    return Fit(value, samples, chi2, len(t) - 2, (first, last))


def effective_mass(mean, kind, extent):
    """At t between 1 and the last but one: of cosh by (C(t-1) + C(t+1)) / (2 C(t)), of exp by C(t) / C(t+1)."""
    with np.errstate(invalid='ignore', divide='ignore'):
        if kind == 'cosh':
            return np.arccosh((mean[:-2] + mean[2:]) / (2 * mean[1:-1]))
        return np.log(mean[1:-1] / mean[2:])


def plateau(values, samples, first, last):
    """Weighted average of values[t] in first .. last, and its jackknife samples."""
    error = stats.jackknife_error(samples)[first:last + 1]
    weight = error**-2 / (error**-2).sum()
    return values[first:last + 1] @ weight, samples[:, first:last + 1] @ weight


def crossing(x, y, samples, degree=1):
    """Where the polynomial through y(x) is zero: (value, error). samples[i, k]: jackknife samples of y[k]."""
    def zero(v):
        # x as a polynomial of y: no root to choose
        return np.polyval(np.polyfit(v, x, degree), 0.0)
    return zero(y), float(stats.jackknife_error([zero(s) for s in samples]))
