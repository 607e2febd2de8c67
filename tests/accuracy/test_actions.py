#!/usr/bin/env python3
"""Every action that quarkctl lists, solved by the engine against the oracle's operator (tests/ref).

usage: test_actions.py ENGINE QUARK-GAUGE QUARKCTL [RANKS]
"""
import itertools
import json
import subprocess
import sys

import numpy as np

import ref_dirac as ref
import smear_ref as smear
import tap
from engine_case import Case
from engine_driver import Vector, qk
from field_links import blocks_of, noisy_term, term_digest

GAUGE, BOUNDARY = 'builtin:weak:4x4x8x8:7', (1, 1, 1j, -1)
SLOW = {'overlap'}  # one mass
MASSES = (0.1, False), (-0.2, True)  # with all parameters or without those that have a default


def value_of(p, mass):
    """In its range, and no other number's of a list."""
    if p['key'] == 'mass':
        return mass if mass > p['least'] else -mass
    if p['key'] == 'sign-tol':  # the oracle has no such error
        return 1e-11
    numbers = [min(p['most'], max(p['least'], 4 if p['type'] == 'integer' else 1.3 - 0.2 * i)) for i in range(p.get('count', 1))]
    return numbers if p['type'] == 'reals' else numbers[0]


def settings(action, mass, every):
    """Parameters without a default, or all but words."""
    return {p['key']: value_of(p, mass) for p in action['parameters'] if p['type'] != 'word' and (every or p['default'] is None)}


def text(value):
    return ','.join(map(repr, value)) if isinstance(value, list) else repr(value)


TERM = noisy_term((4, 4, 8, 8), 3)


def in_memory(term):
    """A clover term in shared memory."""
    return Vector(term.shape[:4] + (36,), data=term.view(complex))


class Term:
    """The clover term of an action that is given one: what LOAD says of it, and the matrices; nothing for others."""

    def __init__(self, action):
        self.given = any(p['key'] == 'clover' for p in action['parameters'])
        self.memory = in_memory(TERM) if self.given else None
        self.load = dict(clover='memory:%s:f64:4x4x8x8' % self.memory.name) if self.given else {}
        self.parameter = [qk.Setting(key='clover', value='digest:%016x' % term_digest(TERM))] if self.given else []
        self.oracle = dict(clover=blocks_of(TERM)) if self.given else {}

    def close(self):
        if self.memory:
            self.memory.__exit__()


@tap.test
def every_action_solves_the_equation_of_the_oracle(case):
    listed = json.loads(subprocess.run([case.quarkctl, 'actions', '--json'], check=True, stdout=subprocess.PIPE).stdout)['actions']
    assert {a['name'] for a in listed} == set(ref.ACTIONS), 'tests/ref/ref_dirac.py has other actions than proto/action/actions.c'
    # one after the other in place; the oracle may take long over one of them, in which the engine hears nothing
    with case.start(options=('--silence', '600000')) as e:
        for action, (mass, every) in itertools.product(listed, MASSES if case.ranks == 1 else MASSES[:1]):
            if action['name'] in SLOW and not every and case.ranks == 1:
                continue
            given = settings(action, mass, every)
            term = Term(action)
            op = ref.ACTIONS[action['name']](case.links, BOUNDARY, **{k.replace('-', '_'): v for k, v in given.items()}, **term.oracle)
            if len(op.shape) > 5:  # t, z, y, x, spin, colour
                b = np.stack([case.random(3 + k) for k in range(action['vectors'])]).reshape(op.shape)
            else:  # colour vectors
                b = np.random.default_rng(3).normal(size=op.shape + (2,)) @ np.array([1, 1j])
            b *= getattr(op, 'inside', 1)  # an open boundary in t
            e.load(GAUGE, action=action['name'], boundary=BOUNDARY, solver='auto',
                   parameter=[qk.Setting(key=k, value=text(v)) for k, v in given.items()] + term.parameter, **term.load)
            e.expect('ready', skip=('load_progress', 'multigrid'))
            term.close()
            x, end = e.solve(b, tol=1e-11)
            if hasattr(op, 'residual'):  # x is made of the solution
                off = np.linalg.norm(op.residual(b, x)) / np.linalg.norm(b)
            elif hasattr(op, 'apply'):
                off = np.linalg.norm(b - op.apply(x)) / np.linalg.norm(b)
            else:  # a quark in four dimensions, of a system in five
                wanted = op.solve(b)
                off = 0.1 * np.linalg.norm(x.reshape(op.shape) - wanted) / np.linalg.norm(wanted)
            assert end.status == 0 and off < 3e-11, (action['name'], given, off, end)


@tap.test
def a_clover_term_that_cannot_be_is_refused(case):
    def changed(at, value):
        term = TERM.copy()
        term[at] = value
        return term
    singular = changed((1, 2, 3, 0, slice(36, 72)), 0)
    for term, more, words in ((singular, {}, 'singular on 1 sites, or has an inverse too large for the precision: at x y z t = 0 3 2 1'),
                              (changed((7, 0, 1, 2, 9), 1e40), {}, 'the clover term has 1e+40 at x y z t = 2 1 0 7'),
                              (changed((7, 0, 1, 2, 9), np.nan), {}, 'the clover term is not finite: number 9 of site'),
                              (TERM, dict(digest=5), 'and 0000000000000005 is wanted'),
                              (TERM, dict(dims='4x4x8x4'), 'is of 4x4x8x4, and the links are of 4x4x8x8'),
                              (TERM[:4], {}, 'bytes: 589824 are needed'),
                              (TERM, dict(name='/nowhere'), 'cannot open'), (TERM, dict(form='f16'), 'memory:/NAME:f32|f64:XxYxZxT'),
                              (TERM, dict(clover=None), 'the term is not here'), (TERM, dict(action='wilson'), 'wilson takes none')):
        with in_memory(term) as memory, case.start() as e:
            value = 'memory:%s:%s:%s' % (more.get('name', memory.name), more.get('form', 'f64'), more.get('dims', '4x4x8x8'))
            wilson = more.get('action') == 'wilson'
            given = dict(mass='0.1') if wilson else dict(clover='digest:%016x' % more.get('digest', term_digest(term)))
            e.load(GAUGE, action=more.get('action', 'foreign-clover'), boundary=BOUNDARY, solver='bicgstab', clover=more.get('clover', value),
                   parameter=[qk.Setting(key=k, value=v) for k, v in given.items()])
            failed = e.expect('load_failed', skip=('load_progress',))
            assert words in failed.text, (words, failed)
            if not more and case.ranks == 1:  # and the engine takes another one
                e.load(GAUGE, action='wilson', boundary=BOUNDARY, solver='bicgstab', parameter=[qk.Setting(key='mass', value='0.1')])
                e.ready()


@tap.test
def links_are_smeared_as_they_say(case):
    b = case.random(5)
    with case.start() as e:
        for text in ('stout:0.125,2', 'stout:0.1,1:xyz', 'ape:0.6,1', 'ape:0.5,2:xyz', 'hyp:0.75,0.6,0.3,1', 'hex:0.95,0.76,0.38,2', 'slinc:0.1,1',
                     'thin/stout:0.1,2', 'hyp:0.7,0.5,0.2,1/stout:0.11,1:xyz'):
            hop, clover = smear.links_of(case.links, text)
            op = ref.WilsonClover(hop, 0.05, 1.2, BOUNDARY, clover_links=clover)
            e.load(GAUGE, action='wilson-clover', boundary=BOUNDARY, solver='bicgstab',
                   parameter=[qk.Setting(key=k, value=v) for k, v in (('mass', '0.05'), ('csw', '1.2'), ('links', text))])
            e.ready()
            x, end = e.solve(b, tol=1e-11)
            off = np.linalg.norm(b - op.apply(x)) / np.linalg.norm(b)
            assert end.status == 0 and off < 3e-11, (text, off, end)


@tap.test
def links_that_nobody_knows_are_refused(case):
    with case.start() as e:
        for text in ('fat', 'stout', 'stout:0.1', 'stout:0.1,1,2', 'stout:0.1,1:xy', 'stout:0.3,1', 'stout:0.1,1.5', 'hyp:1,1,1', 'hex:1,1,1,1:xyz',
                     'thin:1', 'thin/thin/thin', 'stout:0.10,1', 'stout:0.1,0', 'thin/thin', 'stout:0.1,1/stout:0.1,1', 'slinc:0.1,1', 'slinc:0.1,1/thin', 'thin/slinc:0.1,1', 'ape:2,1', '/', 'stout:,1', 'stout:0.1,101'):
            e.load(GAUGE, action='wilson', boundary=BOUNDARY, solver='bicgstab',
                   parameter=[qk.Setting(key=k, value=v) for k, v in (('mass', '0.05'), ('links', text))])
            failed = e.expect('load_failed')
            assert 'links = %s: ' % text in failed.text, (text, failed)


@tap.test
def memory_that_one_rank_lacks_fails_the_load_on_all(case):
    """Each allocation of the last rank in its turn (with one rank each third, as tests/unit/engine/setup has all): of links, smeared and as they are, terms, solver, until none is left to fail."""
    given = ('mass', '0.05'), ('csw', '1.2'), ('links', 'slinc:0.1,1')
    for n in range(1, 80, 1 if case.ranks > 1 else 3):
        with case.start(last_env={'QK_FAULTS': 'device-alloc:%d' % n}) as e:
            e.load(GAUGE, action='wilson-clover', boundary=BOUNDARY, solver='bicgstab', parameter=[qk.Setting(key=k, value=v) for k, v in given])
            name = 'load_progress'
            while name == 'load_progress':
                name, said = e.receive()
        if name == 'ready':
            break
        assert name == 'load_failed' and ('memory' in said.text or 'injected fault' in said.text), (n, name, said)
    assert 20 < n < 79, n


class ActionCase(Case):
    def __init__(self, engine, quark_gauge, quarkctl, ranks=1):
        super().__init__(engine, quark_gauge, int(ranks))
        self.quarkctl = quarkctl


tap.run(ActionCase(*sys.argv[1:]))
