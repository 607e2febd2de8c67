"""Errors of Monte Carlo averages.

gamma_method: mean of one chain with its autocorrelation (U. Wolff, hep-lat/0306017); jackknife: functions of averages of
independent measurements.
"""
import numpy as np


def gamma_method(series, stretch=1.5):
    """(mean, error, tau, error of tau); tau is the integrated autocorrelation time in steps of the series, 1/2 where
    there is none. The window is the one that balances both errors if tau decays as exp(-t stretch / tau) does."""
    x = np.asarray(series, float)
    n = len(x)
    d = x - x.mean()
    spectrum = np.fft.rfft(d, 2 * n)
    gamma = np.fft.irfft(spectrum * spectrum.conj())[:n // 2] / (n - np.arange(n // 2))
    if not gamma[0] > 0:
        raise ValueError('the series of %d values is constant or too short' % n)
    rho, tau, window = gamma / gamma[0], 0.5, len(gamma) - 1
    for w in range(1, len(gamma)):
        tau += rho[w]
        decay = stretch / np.log((2 * tau + 1) / (2 * tau - 1)) if tau > 0.5 else 1e-9
        if np.exp(-w / decay) < decay / np.sqrt(w * n):
            window = w
            break
    variance = (gamma[0] + 2 * gamma[1:window + 1].sum()) * (1 + (2 * window + 1) / n)
    tau = variance / (2 * gamma[0])
    return x.mean(), np.sqrt(variance / n), tau, tau * np.sqrt(4 / n * max(window + 0.5 - tau, 0.5))


def jackknife_samples(data):
    """Means of data[i, ...] without sample i."""
    data = np.asarray(data)
    return (data.sum(axis=0) - data) / (len(data) - 1)


def jackknife_error(samples):
    """Of any function of the means, evaluated on jackknife_samples."""
    samples = np.asarray(samples)
    return np.sqrt((len(samples) - 1) * samples.var(axis=0))


def covariance(data):
    """Of the mean of data[i, k] over i."""
    return np.atleast_2d(np.cov(np.asarray(data), rowvar=False)) / len(data)


def text(value, error):
    """0.59368(12): two digits of the error."""
    if not error > 0:
        return '%.6g' % value
    digits = max(0, 1 - int(np.floor(np.log10(error))))
    shown = int(round(error * 10**digits)) if digits else error
    return '%.*f(%s)' % (digits, value, shown if digits else '%.0f' % error)
