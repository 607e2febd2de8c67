#!/usr/bin/env python3
"""Several setups in one daemon: which come, which go, and that none disturbs another: test_front_setups.py QUARKD QUARKCTL"""
import json
import os
import signal
import subprocess
import sys
import tempfile

import tap

try:
    import numpy as np
    from field_links import noisy, send
    from front_case import State, check_solves, fake, field, kill
    from front_driver import STATUS, Client, qk
    from setups_case import (FAKE, Setups, check, drop, load, load_and_wait, refused, results_of, setups,
                             wait_for)
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

@tap.test
def another_setup_loads_and_solves_while_the_first_serves(case):
    with case.daemon() as d, Client(d) as c, Client(d) as busy:
        busy.upload(busy.submit(1, max_iter=fake.HOLD), [field()])
        s = load(c, 'heavy', kappa=0.12)
        assert s.name == 'heavy' and s.state != qk.STATE_FAILED and not s.is_default, s
        s = wait_for(d, 'heavy', qk.STATE_READY)
        assert (s.kappa, s.csw, list(s.dims), s.digest, s.slots) == (0.12, 1.0, [4, 4, 4, 4], 7, 16), s
        assert (s.action, [(p.key, p.value) for p in s.parameter]) == ('wilson-clover', [('kappa', '0.12'), ('csw', '1')]), s
        for _ in range(3):
            check(c, 2)
            check(c, 2, setup='main')
            check(c, 2, setup='default')
            check(c, 3, setup='heavy')
        assert [s.name for s in d.status().setups if s.is_default] == ['main']
        assert d.status().setup.name == 'main'
        busy.send(cancel=qk.Cancel(request=1))
        assert busy.expect('result').status == STATUS['CANCELLED']
        busy.ack(1)
        pids = [d.status(setup=n).engine.pid for n in ('main', 'heavy')]
        assert pids[0] != pids[1]
        assert d.terminate() == 0


def origin_of(daemon, name):
    return wait_for(daemon, name, qk.STATE_READY).origin


@tap.test
def null_vectors_of_another_setup_are_the_start(case):
    with tempfile.TemporaryDirectory() as scratch:
        path, go = os.path.join(scratch, 'mg'), os.path.join(scratch, 'go')
        os.mkfifo(go)
        with case.daemon('--solver', 'mg', '--mg-checkpoint', path) as d, Client(d) as c:
            load(c, 'heavy', kappa=0.12, evolve_from='main')
            assert origin_of(d, 'heavy') == 'evolved from main at ' + path
            load(c, 'third', kappa=0.12, evolve_from='default')
            assert origin_of(d, 'third') == 'evolved from main at ' + path
            load(c, 'slow', gauge='%s:wait=%s' % (FAKE, go))
            s = load(c, 'next', kappa=0.13, evolve_from='slow')  # waits for it
            s = load(c, 'next', kappa=0.13, evolve_from='slow')  # the same again
            assert s.state == qk.STATE_STARTING, s
            assert 'exists with other parameters' in refused(c, 'BAD_ARGUMENT', load=qk.Load(name='next', gauge=FAKE, csw=1, kappa=0.13))
            wait_for(d, 'slow', qk.STATE_LOADING)
            assert wait_for(d, 'next', qk.STATE_STARTING)
            open(go, 'w', encoding='utf-8').close()
            assert origin_of(d, 'next') == 'evolved from slow at %s-slow' % path
            # one that is gone: what is left of its checkpoint
            drop(c, 'slow')
            wait_for(d, 'slow', None)
            assert 'no checkpoint is left of it' in refused(c, 'NOT_FOUND', load=qk.Load(name='x', gauge=FAKE, evolve_from='slow'))
            open(path + '-slow', 'w', encoding='utf-8').close()
            load(c, 'after', kappa=0.13, evolve_from='slow')
            assert origin_of(d, 'after') == 'evolved from slow at %s-slow' % path
            # one that goes while it is waited for
            load(c, 'slow', gauge='%s:wait=%s' % (FAKE, go))
            load(c, 'alone', kappa=0.13, evolve_from='slow')
            drop(c, 'slow')
            assert origin_of(d, 'alone') == 'evolved from slow at %s-slow' % path
            assert d.terminate() == 0


@tap.test
def null_vectors_that_there_cannot_be_are_refused(case):
    with case.daemon('--solver', 'mg', '--mg-checkpoint', '/nowhere/mg') as d, Client(d) as c:
        load_and_wait(d, c, 'plain', kappa=0.12, solver='cg')
        for how, words, more in (('NOT_FOUND', 'there is no setup of this name; there are main, plain', dict(evolve_from='nobody')),
                                 ('BAD_ARGUMENT', 'evolve_from', dict(evolve_from='../x')),
                                 ('BAD_ARGUMENT', 'evolve_from', dict(evolve_from='')),
                                 ('BAD_ARGUMENT', 'no null vectors, as its solver is cg', dict(evolve_from='plain')),
                                 ('BAD_ARGUMENT', 'for multigrid, but solver = cg', dict(evolve_from='main', solver='cg')),
                                 ('BAD_ARGUMENT', 'its lattice is 4x4x4x4, not 4x4x4x8', dict(evolve_from='main', dims=[4, 4, 4, 8]))):
            text = refused(c, how, load=qk.Load(name='x', gauge=FAKE, csw=1, **more))
            assert words in text, (text, words)
        assert 'exists with other parameters' in refused(c, 'BAD_ARGUMENT', load=qk.Load(name='main', evolve_from='plain'))
        assert set(setups(d)) == {'main', 'plain'}
    with case.daemon('--solver', 'mg', '--mg-checkpoint', 'off') as d, Client(d) as c:
        assert 'mg-checkpoint = off' in refused(c, 'BAD_ARGUMENT', load=qk.Load(name='x', gauge=FAKE, evolve_from='main'))


@tap.test
def null_vectors_start_from_a_file_where_quarkd_is_told_so(case):
    with case.daemon('--solver', 'mg', '--mg-checkpoint', 'off', '--mg-from', '/nowhere/old.mg') as d, Client(d) as c:
        assert d.status().setup.multigrid.origin == 'evolved from old.mg at /nowhere/old.mg'
        load(c, 'heavy', kappa=0.12)  # not of others
        assert origin_of(d, 'heavy') == ''


@tap.test
def what_is_not_said_is_as_the_daemon_was_started(case):
    with case.daemon('--csw', '0.5', '--boundary', '1,1,1,1', '--slots', '3', gauge=FAKE, mass='0.25', dims='4x4x4x8') as d, Client(d) as c:
        c.send(load=qk.Load(name='same'))
        c.expect('setup')
        s = wait_for(d, 'same', qk.STATE_READY)
        assert (s.kappa, s.csw, list(s.dims), s.slots, s.gauge) == (1 / 8.5, 0.5, [4, 4, 4, 8], 3, FAKE), s
        c.send(load=qk.Load(name='other', gauge=FAKE, mass=-0.5, boundary='1,-1,1,0.5pi', slots=5, solver='cg', precision='half'))
        c.expect('setup')
        s = wait_for(d, 'other', qk.STATE_READY)
        assert (s.kappa, s.csw, list(s.dims), s.slots, s.solver) == (1 / 7, 0.5, [4, 4, 4, 4], 5, 'cg'), s
        report = d.status(setup='other')
        assert (report.setup.mass, report.setup.precision, np.round(report.setup.boundary, 15).tolist()) == \
            (-0.5, 'half', [1, 0, -1, 0, 1, 0, 0, 1])


@tap.test
def a_setup_that_is_refused_says_why_and_nobody_else_notices(case):
    with case.daemon() as d, Client(d) as c:
        check_solves(c)
        for status in ('BAD_CHECKSUM', 'TRUNCATED', 'BAD_GEOMETRY', 'BAD_PLAQUETTE', 'NOT_UNITARY', 'DEVICE_MEMORY'):
            gauge = FAKE + ':refuse=%d' % STATUS[status]
            load(c, 'bad', gauge=gauge)
            check_solves(c)
            s = wait_for(d, 'bad', qk.STATE_FAILED)
            assert (s.status, s.text) == (STATUS[status], 'as %s wants' % gauge), s
            r = c.submit(setup='bad', expect='rejected')
            assert r.status == STATUS['NOT_FOUND'] and 'as builtin:fake:refuse' in r.text, r
        assert len(d.status().setups) == 2
        load_and_wait(d, c, 'bad')  # the same name, mended
        check(c, 3, setup='bad')
        check_solves(c)
        assert d.status().engine.restarts == 0
        assert d.terminate() == 0


@tap.test
def an_engine_that_cannot_load_is_given_up(case):
    with case.daemon() as d, Client(d) as c:
        load(c, 'bad', gauge=FAKE + ':die')
        s = wait_for(d, 'bad', qk.STATE_FAILED)
        assert s.status == STATUS['ENGINE_LOST'] and 'signal 9' in s.text and s.restarts == 2, s
        check_solves(c)
        drop(c, 'bad')
        wait_for(d, 'bad', None)
        assert d.terminate() == 0


@tap.test
def a_loading_setup_is_not_ready(case):
    with tempfile.TemporaryDirectory() as folder, case.daemon() as d, Client(d) as c:
        go = os.path.join(folder, 'go')
        os.mkfifo(go)
        load(c, 'slow', gauge=FAKE + ':wait=' + go)
        d.status_when(lambda s: any((x.phase, x.done, x.total) == ('read', 1, 2) for x in s.setups))
        r = c.submit(setup='slow', expect='rejected')
        assert r.status == STATUS['NOT_READY'] and r.retry_after_ms > 0 and 'slow' in r.text, r
        assert load(c, 'slow', gauge=FAKE + ':wait=' + go).state == qk.STATE_LOADING  # the same again
        refused(c, 'NOT_READY', make_default=qk.MakeDefault(name='slow'))
        assert 'other parameters' in refused(c, 'BAD_ARGUMENT', load=qk.Load(name='slow', gauge=FAKE))
        check_solves(c)
        with open(go, 'w', encoding='utf-8'):
            pass
        wait_for(d, 'slow', qk.STATE_READY)
        check(c, 3, setup='slow')
        assert not setups(d)['slow'].is_default
        assert load(c, 'slow', gauge=FAKE + ':wait=' + go, make_default=True).is_default  # nothing else of it is new


@tap.test
def what_a_load_may_say_is_checked(case):
    with case.daemon() as d, Client(d) as c:
        wrong = [(dict(name='default'), 'stands for'), (dict(name=''), 'letters'), (dict(name='-x'), 'letters'), (dict(name='../x'), 'letters'),
                 (dict(name='x' * 65), 'letters'), (dict(name='a', kappa=0.1, mass=0.1), 'both'), (dict(name='a', kappa=0), 'kappa = 0'),
                 (dict(name='a', kappa=float('nan')), 'kappa = nan'), (dict(name='a', kappa=1e-300), 'kappa = 1e-300'),
                 (dict(name='a', kappa=-1e-310), 'kappa = -1e-310'), (dict(name='a', kappa=-0.1), 'above 0'),
                 (dict(name='a', mass=-4), 'above -4'), (dict(name='a', action='ghost'), 'must be one of wilson, wilson-clover'),
                 (dict(name='a', action='wilson', parameter=[qk.Setting(key='csw', value='1')]), 'it has mass'),
                 (dict(name='a', action='wilson-clover', mass=0.1), 'needs csw'),
                 (dict(name='a', mass=0.1, parameter=[qk.Setting(key='mass', value='1')]), 'twice'),
                 (dict(name='a', parameter=[qk.Setting(key='k' * 9000, value='v')]), 'no such parameter'),
                 (dict(name='a', parameter=[qk.Setting(key='mass', value='1' * 9000)]), 'the limit is'),
                 (dict(name='a', parameter=3000 * [qk.Setting(key='m', value='1')]), 'the limit is 16'), (dict(name='a', mass=1e7), '1e+06'),
                 (dict(name='a', csw=2000), 'csw = 2000'), (dict(name='a', boundary='1,1,1'), 'four of'),
                 (dict(name='a', boundary='2,1,1,1'), 'four of'), (dict(name='a', dims=[4, 4]), '4 are needed'),
                 (dict(name='a', dims=[4, 4, 4, 0]), 'extent 0'), (dict(name='a', solver='magic'), 'one of auto, mg'),
                 (dict(name='a', precision='quarter'), 'one of double'), (dict(name='a', gauge='x' * 1024), '1024 bytes')]
        for fields, text in wrong:
            assert text in refused(c, 'BAD_ARGUMENT', load=qk.Load(**fields)), fields
        assert '65 is over the limit of 64' in refused(c, 'TOO_LARGE', load=qk.Load(name='a', slots=65))
        text = refused(c, 'BAD_ARGUMENT', load=qk.Load(name='main', gauge=FAKE))
        assert 'main exists' in text, text
        c.send(load=qk.Load(name='main'))
        assert c.expect('setup').setup.is_default
        assert 'there are main' in refused(c, 'NOT_FOUND', drop=qk.Drop(name='nobody'))
        assert 'there are main' in refused(c, 'NOT_FOUND', make_default=qk.MakeDefault(name='nobody'))
        assert 'there are main' in refused(c, 'NOT_FOUND', status=qk.StatusRequest(setup='nobody'))
        assert 'there are main' in c.submit(setup='no\x07body', expect='rejected').text
        assert len(d.status().setups) == 1


@tap.test
def gauge_files_of_clients_lie_below_the_roots(case):
    with tempfile.TemporaryDirectory() as folder:
        root, other, outside = (os.path.join(folder, n) for n in ('root', 'other', 'outside'))
        for n in (root, other, outside):
            os.mkdir(n)
        for path in (root + '/cfg', other + '/second', outside + '/secret', root + '/x'):
            open(path, 'w', encoding='utf-8').close()
        os.symlink(outside + '/secret', root + '/out')
        os.symlink(outside, root + '/way')
        os.symlink('cfg', root + '/in')
        with case.daemon('--gauge-roots', root + ':' + other) as d, Client(d) as c:
            for path in (outside + '/secret', root + '/out', 'out', 'way/secret', '../outside/secret', root + '/../outside/secret', 'missing',
                         outside + '/missing', '/etc/passwd', '.', '', '/proc/self/exe', 'cfg/'):
                text = refused(c, 'NOT_FOUND', load=qk.Load(name='a', gauge=path))
                assert text.startswith('gauge = %s: there is no such file below %s' % (path, root)), text
            for i, (path, real) in enumerate([('cfg', root + '/cfg'), (root + '/cfg', root + '/cfg'), ('in', root + '/cfg'), ('second', other + '/second')]):
                assert load_and_wait(d, c, 'a', gauge=path).gauge == real
                drop(c, 'a')
                wait_for(d, 'a', None)
        with case.daemon(gauge=root + '/cfg') as d, Client(d) as c:  # the folder of --gauge
            assert load_and_wait(d, c, 'a', gauge='x').gauge == root + '/x'
            refused(c, 'NOT_FOUND', load=qk.Load(name='b', gauge=other + '/second'))
        with case.daemon(gauge=FAKE) as d, Client(d) as c:  # none at all
            assert 'has no --gauge-roots' in refused(c, 'NOT_FOUND', load=qk.Load(name='b', gauge=root + '/cfg'))


@tap.test
def a_dropped_setup_finishes_what_it_has_and_takes_no_more(case):
    with case.daemon() as d, Client(d) as c, Client(d) as other:
        load_and_wait(d, c, 'heavy')
        pid = d.status(setup='heavy').engine.pid
        b = field()
        c.upload(c.submit(1, setup='heavy', max_iter=fake.HOLD), [b])
        accepted = other.submit(1, setup='heavy')  # its data are still to come
        d.status_when(lambda s: s.counters.running == 1)
        assert drop(c, 'heavy').state == qk.STATE_DRAINING
        r = c.submit(setup='heavy', expect='rejected')
        assert r.status == STATUS['NOT_FOUND'] and 'being dropped' in r.text, r
        refused(c, 'BUSY', load=qk.Load(name='heavy', gauge=FAKE))
        refused(c, 'NOT_FOUND', make_default=qk.MakeDefault(name='heavy'))
        other.upload(accepted, [b])
        result = other.expect('result')
        assert setups(d)['heavy'].open == 1
        c.send(cancel=qk.Cancel(request=1))
        assert c.expect('result').status == STATUS['CANCELLED']
        wait_for(d, 'heavy', None)
        assert not os.path.exists('/proc/%d' % pid)
        assert np.array_equal(other.fetch(result), 3 * b)  # what has ended outlives the setup
        other.ack(1)
        check_solves(c)
        load_and_wait(d, c, 'heavy')
        check(c, 3, setup='heavy')


@tap.test
def a_drop_now_cancels(case):
    with case.daemon('--slots', '1') as d, Client(d) as c, Client(d) as first:
        load_and_wait(d, c, 'heavy')
        c.upload(c.submit(3, setup='heavy', max_iter=fake.HOLD), [field() for _ in range(3)])
        first.upload(first.submit(1, max_iter=fake.HOLD), [field()])
        d.status_when(lambda s: s.counters.running == 2)
        c.send(drop=qk.Drop(name='heavy', now=True))
        results = []
        while len(results) < 3:
            name, body = c.receive()
            results += [body] if name == 'result' else []
        assert {r.status for r in results} == {STATUS['CANCELLED']}
        wait_for(d, 'heavy', None)
        assert d.status().counters.running == 1  # the other setup goes on


@tap.test
def the_default_is_a_choice(case):
    with case.daemon('--setup-name', 'first') as d, Client(d) as c:
        assert 'is the default' in refused(c, 'BAD_ARGUMENT', drop=qk.Drop(name='first'))
        load(c, 'second', make_default=True)
        d.status_when(lambda s: s.setup.name == 'second')
        check(c, 3)
        check(c, 2, setup='first')
        c.send(make_default=qk.MakeDefault(name='first'))
        assert c.expect('setup').setup.is_default
        check(c, 2)
        c.send(make_default=qk.MakeDefault(name='second'))
        c.expect('setup')
        drop(c, 'first')
        wait_for(d, 'first', None)
        check(c, 3)
        assert 'is the default' in refused(c, 'BAD_ARGUMENT', drop=qk.Drop(name='default'))
        assert d.terminate() == 0


@tap.test
def the_setup_of_the_command_line_comes_back_by_its_name(case):
    with case.daemon() as d, Client(d) as c:
        load(c, 'second', make_default=True)
        d.status_when(lambda s: s.setup.name == 'second')
        drop(c, 'main')
        wait_for(d, 'main', None)
        assert 'by its name alone' in refused(c, 'BAD_ARGUMENT', load=qk.Load(name='main', gauge=FAKE))
        c.send(load=qk.Load(name='main'))
        c.expect('setup')
        wait_for(d, 'main', qk.STATE_READY)
        check(c, 2, setup='main')
        check(c, 3)


@tap.test
def a_name_that_the_state_folder_has_for_another_setup_is_refused(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            load_and_wait(d, c, 'heavy')
            c.close()
            kill(d)
        with state.daemon('--setup-name', 'heavy', wait=None) as d:
            assert d.process.wait() == 78
            assert any('a setup that it holds' in line for line in d.lines), d.lines
        with state.daemon() as d:
            wait_for(d, 'heavy', qk.STATE_READY)


@tap.test
def kept_solutions_serve_setups_of_the_same_configuration(case):
    with case.daemon() as d, Client(d) as c:
        load_and_wait(d, c, 'heavy')
        load_and_wait(d, c, 'later', gauge=FAKE + ':digest=8')
        light, heavy, later = c.keep(), c.keep(setup='heavy'), c.keep(setup='later')
        c.contract(light, request_b=heavy)  # two masses
        assert c.expect('result').status == 0
        column = [qk.Column(request=heavy, rhs=1, gamma=5)]
        c.submit(1, source=qk.SOURCE_SEQUENTIAL, column=column, setup='main')
        assert c.expect('result').status == 0
        r = c.contract(light, request_b=later, expect='rejected')
        assert r.status == STATUS['BAD_ARGUMENT'] and 'another gauge configuration (setup later)' in r.text, r
        r = c.submit(1, source=qk.SOURCE_SEQUENTIAL, column=column, setup='later', expect='rejected')
        assert r.status == STATUS['BAD_ARGUMENT'] and 'another gauge configuration (setup heavy)' in r.text, r
        drop(c, 'heavy')
        wait_for(d, 'heavy', None)
        r = c.contract(light, request_b=heavy, expect='rejected')
        assert r.status == STATUS['NOT_FOUND'], r
        assert d.status().counters.kept == 24


@tap.test
def a_nul_in_a_string_makes_no_message(case):
    """protobuf-c would take what stands before it."""
    with case.daemon() as d:
        for more in dict(parameter=[qk.Setting(key='mass', value='0.1\x00001')]), dict(boundary='periodic\x00'), dict(solver='\x00mg'):
            with Client(d) as c:
                c.send(load=qk.Load(name='a', **more))
                assert c.error('BAD_PROTOCOL').text == 'control message that cannot be read'
        assert 'a' not in setups(d)


@tap.test
def fields_have_the_numbers_a_site_that_the_engine_says(case):
    with case.daemon() as d, Client(d) as c:
        s = load_and_wait(d, c, 'colours', gauge=FAKE + ':site_reals=6:columns=3')
        assert (s.site_reals, s.columns) == (6, 3), s
        main = d.status().setup
        assert (main.site_reals, main.columns) == (24, 12), main
        usual, accepted = c.submit(1), c.submit(1, setup='colours')
        assert accepted.field_bytes * 4 == usual.field_bytes, (accepted, usual)
        light, colours = c.keep(), c.keep(setup='colours')
        r = c.contract(colours, channel=[qk.Channel(kind=qk.CHANNEL_NUCLEON)], expect='rejected')
        assert r.status == STATUS['UNSUPPORTED'] and 'of fields with colour alone there are mesons' in r.text, r
        r = c.contract(light, request_b=colours, expect='rejected')
        assert r.status == STATUS['BAD_ARGUMENT'] and "setup colours) has fields of 6 real numbers a site, setup main of 24" in r.text, r


@tap.test
def an_engine_with_impossible_fields_is_lost(case):
    with case.daemon() as d, Client(d) as c:
        for words in ('site_reals=0', 'site_reals=7', 'site_reals=1154', 'columns=0', 'columns=13'):
            name = words.replace('=', '-')
            load(c, name, gauge=FAKE + ':' + words)
            assert d.log('%s.*%s outside' % (name, 'columns' if 'columns' in words else 'reals a site'))
            drop(c, name)
            wait_for(d, name, None)


@tap.test
def kept_solutions_that_are_used_outlive_their_setup(case):
    """A request for another setup waits to use them when theirs is dropped."""
    with case.daemon('--slots', '1') as d, Client(d) as c:
        load_and_wait(d, c, 'heavy')
        heavy = c.keep(setup='heavy')
        c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, setup='main')
        held = c.request
        c.submit(1, source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=heavy, rhs=1, gamma=5)], setup='main')
        d.status_when(lambda s: s.counters.queued == 1)
        drop(c, 'heavy')
        wait_for(d, 'heavy', None)
        assert d.status().counters.kept == 12
        c.send(cancel=qk.Cancel(request=held))
        assert results_of(c, held + 1, 1)[0].status == 0
        d.status_when(lambda s: s.counters.kept == 0)


@tap.test
def as_many_setups_as_are_allowed(case):
    """Twelve; each has work of its own, so that none makes room for another one. The list is told in parts, too."""
    names = ['s%d' % i for i in range(11)]
    with case.daemon('--max-setups', '12', '--slots', '1') as d, Client(d) as c:
        for name in names:
            load(c, name)
        d.status_when(lambda s: len(s.setups) == 12 and all(one.state == qk.STATE_READY for one in s.setups))
        for name in ['main'] + names:
            assert c.solve([field()], setup=name)[0][0].status == 0
            c.submit(1, setup=name, source=qk.SOURCE_Z2, max_iter=fake.HOLD)
        text = refused(c, 'BUSY', load=qk.Load(name='more', gauge=FAKE))
        assert '12 setups of 12 (max-setups)' in text, text
        assert [s.name for s in d.status(first_setup=10).setups] == names[9:] and not d.status(first_setup=99).setups
        d.status_when(lambda s: s.counters.running == 12)
        shown = json.loads(case.ctl(d, 'status', '--json').stdout)['setups']
        assert {s['name'] for s in shown} == set(['main'] + names) and shown[0]['boundary'] == [1, 0, 1, 0, 1, 0, -1, 0], shown[0]
        assert list(d.status().setups[3].boundary) == shown[3]['boundary']


@tap.test
def who_uses_several_setups_has_one_share_in_each(case):
    """One slot each. a waits in both, b in the second alone: what a is given in the first counts in the second."""
    def in_second(s):
        return [x.user for x in s.activity.slot if x.setup == 'second']
    with case.daemon('--slots', '1', '--max-setups', '2') as d, Client(d, user='a') as a, Client(d, user='b') as b:
        load_and_wait(d, a, 'second')
        held = dict(source=qk.SOURCE_Z2, max_iter=fake.HOLD, sink=qk.SINK_NONE)
        first = [a.submit(1, setup=name, **held).request for name in ('main', 'second')]
        d.status_when(lambda s: s.counters.running == 2)
        a.submit(2, setup='second', **held)
        a.submit(12, source=qk.SOURCE_Z2, setup='main', sink=qk.SINK_NONE)
        b.submit(3, setup='second', **held)
        d.status_when(lambda s: s.counters.queued == 17)
        a.send(cancel=qk.Cancel(request=first[0]))  # the twelve of the first setup are solved
        d.status_when(lambda s: s.counters.queued == 5)
        a.send(cancel=qk.Cancel(request=first[1]))
        for k in range(3):
            d.status_when(lambda s, k=k: in_second(s) == ['b'] and s.counters.queued == 4 - k, activity=True)
            b.send(cancel=qk.Cancel(request=1, rhs=[k]))
        d.status_when(lambda s: in_second(s) == ['a'] and s.counters.queued == 1, activity=True)


@tap.test
def over_the_limit_the_one_that_was_idle_the_longest_goes(case):
    with case.daemon('--max-setups', '3') as d, Client(d) as c:
        for name in 'ab':
            load_and_wait(d, c, name)
        check(c, 3, setup='a')  # b was idle for longer
        load_and_wait(d, c, 'c')
        assert set(setups(d)) == {'main', 'a', 'c'}
        c.upload(c.submit(1, setup='a', max_iter=fake.HOLD), [field()])
        held = c.request
        kept = c.keep(1, setup='c')
        text = refused(c, 'BUSY', load=qk.Load(name='d', gauge=FAKE))
        assert '3 setups of 3 (max-setups)' in text, text
        c.send(release=qk.Release(request=kept))
        load_and_wait(d, c, 'd')
        assert set(setups(d)) == {'main', 'a', 'd'}
        for wrong in (dict(name='e', gauge=FAKE, solver='magic'), dict(name='e', gauge='builtin:\x1b')):
            refused(c, 'BAD_ARGUMENT', load=qk.Load(**wrong))
        assert set(setups(d)) == {'main', 'a', 'd'}  # what is wrong costs nobody a place
        c.send(cancel=qk.Cancel(request=held))
        c.expect('result')
        load(c, 'bad', gauge=FAKE + ':refuse=104')
        wait_for(d, 'bad', qk.STATE_FAILED)
        check(c, 2)


@tap.test
def an_idle_setup_makes_room_in_memory(case):
    with tempfile.TemporaryDirectory() as room, case.daemon(env={'FAKE_ROOM': room, 'FAKE_ENGINES': '2'}) as d, Client(d) as c:
        load_and_wait(d, c, 'a')
        load_and_wait(d, c, 'b')  # a goes
        assert set(setups(d)) == {'main', 'b'}
        c.upload(c.submit(1, setup='b', max_iter=fake.HOLD), [field()])
        load(c, 'c')
        s = wait_for(d, 'c', qk.STATE_FAILED)  # b is busy, main the default
        assert s.status == STATUS['DEVICE_MEMORY'], s
        assert set(setups(d)) == {'main', 'b', 'c'}
        check_solves(c)
        c.send(cancel=qk.Cancel(request=1))
        c.expect('result')
        load_and_wait(d, c, 'c')
        assert set(setups(d)) == {'main', 'c'}
        check(c, 3, setup='c')


@tap.test
def a_setup_does_not_make_room_for_itself(case):
    with tempfile.TemporaryDirectory() as room, case.daemon(env={'FAKE_ROOM': room, 'FAKE_ENGINES': '2'}) as d, Client(d) as c:
        load_and_wait(d, c, 'a')
        pid = d.status(setup='a').engine.pid
        other = subprocess.Popen(['sleep', '60'])  # another program takes the memory as soon as it is free
        with open(os.path.join(room, str(other.pid)), 'w', encoding='utf-8'):
            pass
        try:
            os.kill(pid, signal.SIGKILL)
            s = wait_for(d, 'a', qk.STATE_FAILED)
            assert s.status == STATUS['DEVICE_MEMORY'], s
        finally:
            other.kill()
            other.wait()
        load_and_wait(d, c, 'a')
        check(c, 3, setup='a')


@tap.test
def quarkctl_waits_for_the_setup_that_it_means(case):
    """Not for those of the same name that others have."""
    links = noisy((4, 4, 4, 4), 1)
    with case.daemon('--max-setups', '6') as d, Client(d) as c, Client(d, user='else') as other:
        for who in c, other:
            load(who, 'same', gauge='field:%d' % send(who, links).request, kappa=0.12)
        load(c, 'other')
        d.status_when(lambda s: all(x.state == qk.STATE_READY for x in s.setups))
        other.submit(source=qk.SOURCE_Z2, max_iter=fake.HOLD, setup='same')
        assert case.ctl(d, 'drop', 'else/same', '--no-wait').returncode == 0  # it is there as long as its request is
        load(c, 'same', csw=2.0)
        done = case.ctl(d, 'load', 'same', '--gauge', FAKE, '--csw', '2')  # the public one
        assert (done.returncode, done.stdout) == (0, 'same: ready\n'), done
        done = case.ctl(d, 'drop', 'tester/same')
        assert done.returncode == 0, done
        assert [s.owner for s in d.status().setups if s.name == 'same'] == ['else', '']
        other.send(cancel=qk.Cancel(request=other.request))
        assert case.ctl(d, 'drop', 'else/same').returncode in (0, 65)  # gone already, or soon
        assert case.ctl(d, 'drop', '/same').returncode == 0
        assert [s.name for s in d.status().setups] == ['main', 'other']


if __name__ == '__main__':
    import setups_losses  # noqa: F401 (its tests run, too)
    tap.run(Setups(*sys.argv[1:3]))
