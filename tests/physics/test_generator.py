"""quark-gauge generate makes the ensemble that it was asked for: test_generator.py QUARK_GAUGE

Against another program's plaquettes, a published one, and the equations of motion of each action.
"""
import sys
import tempfile

import numpy as np
import couplings
import generator
import published
import stats
import tap


def distance(value, error, want, want_error=0.0):
    return abs(value - want) / (error**2 + want_error**2)**0.5


def plaquette(program, dims, action, beta, thermalise, sweeps, **kwargs):
    with tempfile.TemporaryDirectory() as folder:
        total = thermalise + sweeps
        chain = generator.generate(program, folder, dims, action, beta, total, total, seed=1, backend='cpu', **kwargs)
    mean, error, tau, _ = stats.gamma_method(chain.plaquettes[thermalise:])
    print('# %s beta %g on %s: %s, tau %.1f' % (action, beta, dims, stats.text(mean, error), tau))
    return mean, error


@tap.test
def plaquettes_on_two_to_the_four_are_those_of_gaugefields_jl(program):
    for action, beta, dims, want, want_error, _ in published.TINY_PLAQUETTES:
        mean, error = plaquette(program, dims, action, beta, 200, 2000, or_per_hb=1)
        assert error < 0.002 and distance(mean, error, want, want_error) < 3, (beta, mean, error)


@tap.test
def plaquette_at_beta_5_7_is_the_published_one(program):
    want, want_error = [p[3:5] for p in published.PLAQUETTES if p[:2] == ('wilson', 5.7)][0]
    mean, error = plaquette(program, '8x8x8x8', 'wilson', 5.7, 30, 80)
    assert error < 0.0015 and distance(mean, error, want, want_error) < 3, (mean, error)


def weak_loops(program, beta):
    """(1 - W) / g^2 of plaquette and 1x2 rectangle with the Iwasaki action on 8^4: values and errors."""
    with tempfile.TemporaryDirectory() as folder:
        chain = generator.generate(program, folder, '8x8x8x8', 'iwasaki', beta, 100, 4, seed=3, or_per_hb=1, backend='cpu')
        x = (1 - np.array([couplings.equations(u)[2] for u in chain.configurations(20)])) * beta / 6
    return x.mean(axis=0), x.std(axis=0, ddof=1) / np.sqrt(len(x))


@tap.test
def iwasaki_loops_at_weak_coupling_are_those_of_perturbation_theory(program):
    (one, one_error), (two, two_error) = weak_loops(program, 40.0), weak_loops(program, 80.0)
    # what is linear in g^2 drops out
    found, error = 2 * two - one, np.hypot(2 * two_error, one_error)
    print('# plaquette %s, rectangle %s' % tuple(stats.text(*pair) for pair in zip(found, error)))
    for value, its_error, want in zip(found, error, published.IWASAKI_ONE_LOOP):
        assert its_error < 0.004 * want and distance(value, its_error, want) < 3, (found, error)


def add_action(action, beta):
    def body(program):
        c1 = generator.C1[action]
        with tempfile.TemporaryDirectory() as folder:
            chain = generator.generate(program, folder, '4x4x4x4', action, beta, 250, 5, seed=2, start='hot', backend='cpu')
            found, error = couplings.measure(chain.configurations(50), couplings.both(c1))
        print('# beta %s, c1 %s' % tuple(stats.text(*pair) for pair in zip(found, error)))
        assert error[0] < 0.02 * beta and distance(found[0], error[0], beta) < 3, (found, error)
        assert distance(found[1], error[1], c1) < 3, (found, error)
    body.__name__ = 'configurations of %s at beta %g obey its equations of motion' % (action, beta)
    tap.test(body)


for point in (('wilson', 6.0), ('luescher-weisz', 4.5), ('iwasaki', 2.6), ('dbw2', 1.04)):
    add_action(*point)
tap.run(*sys.argv[1:])
