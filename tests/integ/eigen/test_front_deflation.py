#!/usr/bin/env python3
"""Solves that begin with lowest eigenvectors, as quarkd is asked for them: test_front_deflation.py QUARKD QUARKCTL"""
import json
import os
import shutil
import signal
import sys
import tempfile

import tap

try:
    from front_case import LATER, State, fake, held, kill
    from front_driver import Client, qk
    from setups_case import FAKE, Setups, check, drop, load, load_and_wait, refused, setups, wait_for
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

FEATURE, BY_NAME = 14, 18


def make(client, name='low', count=12, **more):
    """Eigenvectors of the daemon's default, or of a setup."""
    client.request += 1
    problem = qk.EigenProblem(**{'name': name, 'kind': qk.EIGEN_NORMAL, 'count': count, 'tol': 1e-8, **more.pop('problem', {})})
    client.send(eigen=qk.Eigen(request=client.request, problem=problem, **more))
    client.expect('accepted', skip=('progress', 'credit', 'result'))
    assert client.expect('result').status == 0
    client.ack(client.request)


def drop_set(client, name='low', **more):
    client.send(eigen_drop=qk.EigenDrop(name=name, **more))
    client.expect('setup')


def names(state):
    return sorted(os.listdir(os.path.join(state.dir, 'eigen')))


def begins_with(daemon, name, count, origin='low'):
    r = wait_for(daemon, name, qk.STATE_READY).deflation
    assert (r.vectors, r.origin, r.restored) == (count, origin, count > 0), r
    return os.path.basename(r.trouble)  # the fake engine tells the path


@tap.test
def a_setup_begins_with_as_many_as_it_was_asked_for(case):
    with case.daemon('--deflate', '100') as d, Client(d) as c:
        assert FEATURE in c.welcome.feature
        s = d.status().setup
        assert s.deflate == 100, s
        r = s.deflation
        assert (r.vectors, r.lowest, r.highest, r.seconds, r.bytes, r.restored, r.trouble) == (100, 0.125, 0.5, 1.5, 1 << 20, False, ''), r
        load_and_wait(d, c, 'same', kappa=0.12)  # what is not said is as the daemon was started
        load_and_wait(d, c, 'none', kappa=0.12, deflate=0)
        load_and_wait(d, c, 'more', kappa=0.12, deflate=4096)
        assert [setups(d)[n].deflation.vectors for n in ('main', 'same', 'none', 'more')] == [100, 100, 0, 4096]
        assert not setups(d)['none'].HasField('deflation')
        s = d.status(setup='none').setup
        assert not s.HasField('deflate') and not s.HasField('deflation'), s
        check(c, 3, setup='more')
        assert d.terminate() == 0


@tap.test
def a_load_with_another_number_is_another_load(case):
    with case.daemon() as d, Client(d) as c:
        load_and_wait(d, c, 'heavy', kappa=0.12, deflate=8)
        assert load(c, 'heavy', kappa=0.12, deflate=8).state == qk.STATE_READY
        for more in ({'deflate': 16}, {'deflate': 0}, {}):
            text = refused(c, 'BAD_ARGUMENT', load=qk.Load(name='heavy', gauge=FAKE, csw=1, kappa=0.12, **more))
            assert 'exists with other parameters' in text, text
        # no number, and none: the same
        load_and_wait(d, c, 'plain', kappa=0.12)
        assert load(c, 'plain', kappa=0.12, deflate=0).state == qk.STATE_READY
        assert 'exists with other' in refused(c, 'BAD_ARGUMENT', load=qk.Load(name='main', deflate=1))


@tap.test
def what_cannot_be_is_refused_and_nothing_is_loaded(case):
    with case.daemon() as d, Client(d) as c:
        for how, words, more in (('TOO_LARGE', 'deflate = 4097 is over the limit of 4096', dict(deflate=4097)),
                                 ('TOO_LARGE', 'deflate = 4294967295 is over the limit', dict(deflate=2 ** 32 - 1)),
                                 ('BAD_ARGUMENT', 'deflate = 8: solves by multigrid (solver = mg) begin with no eigenvectors',
                                  dict(deflate=8, solver='mg'))):
            text = refused(c, how, load=qk.Load(name='x', gauge=FAKE, csw=1, **more))
            assert words in text, text
        assert set(setups(d)) == {'main'}
        load_and_wait(d, c, 'mg', solver='mg', deflate=0)
    for option, words in (('4097', 'deflate = 4097 is over the limit'), ('-1', 'deflate = "-1": must be 0 to 4096, or a name'),
                          ('99999999999', 'deflate = "99999999999": must be 0'), ('a name', 'deflate = "a name": must be'), ('', 'deflate = "": must be'),
                          ('many', 'deflate = many: eigenvectors of a name are read from the state folder, and quarkd has none (--state)')):
        done = case.run('--gauge=x', '--mass=1', '--deflate', option)
        assert done.returncode == 64 and words in done.stderr, done
    done = case.run('--gauge=x', '--mass=1', '--deflate=1', '--solver=mg')
    assert done.returncode == 64 and 'deflate = 1: solves by multigrid' in done.stderr, done
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
        f.write('gauge = x\nmass = 1\ndeflate = -1.5\n')
        f.flush()
        done = case.run('--config', f.name)
        assert done.returncode == 64 and 'deflate = "-1.5"' in done.stderr, done


@tap.test
def vectors_are_kept_in_the_state_folder_for_the_next_start(case):
    with State(case) as state:
        folder = os.path.join(os.path.realpath(state.dir), 'eigen')
        with state.daemon('--deflate', '8') as d, Client(d) as c:
            assert os.path.realpath(d.status().setup.deflation.trouble) == folder + '/main'  # the fake engine tells the path
            assert os.stat(folder).st_mode & 0o777 == 0o700
            load_and_wait(d, c, 'heavy', kappa=0.12, deflate=16)
            load_and_wait(d, c, 'plain', kappa=0.12, deflate=0)
            assert os.path.realpath(setups(d)['heavy'].deflation.trouble) == folder + '/heavy'
            kill(d)
        with state.daemon('--deflate', '8') as d:
            assert wait_for(d, 'heavy', qk.STATE_READY).deflation.vectors == 16
            assert not wait_for(d, 'plain', qk.STATE_READY).HasField('deflation')
            assert d.terminate() == 0
    with case.daemon('--deflate', '8') as d:  # without such a folder there is no file
        assert d.status().setup.deflation.trouble == ''


@tap.test
def an_engine_with_another_number_is_not_taken_over(case):
    with State(case) as state, state.fronts() as front:
        with front('--deflate', '8') as d:
            pid = d.status().engine.pid
            kill(d)
        with front('--deflate', '8', env=LATER) as d:
            assert (d.status().engine.pid, d.status().setup.deflation.vectors) == (pid, 8)
            kill(d)
        with front('--deflate', '9', env=LATER) as d:
            assert d.log('not adopted|other settings')
            s = d.status()
            assert s.engine.pid != pid and s.setup.deflation.vectors == 9, s
            assert d.terminate() == 0


@tap.test
def quarkctl_asks_for_them_and_shows_them(case):
    with case.daemon() as d:
        done = case.ctl(d, 'load', 'heavy', '--kappa=0.12', '--deflate=32')
        assert done.returncode == 0, done
        line = '32 vectors, eigenvalues 0.125 to 0.5   made in 1.50 s   1.0 MiB\n'
        text = case.ctl(d, 'status').stdout
        assert '    ' + line in text and 'deflation ' not in text, text
        assert 'deflation   ' + line in case.ctl(d, 'status', '--setup=heavy').stdout
        found = json.loads(case.ctl(d, 'status', '--setup=heavy', '--json').stdout)
        want = {'vectors': 32, 'lowest': 0.125, 'highest': 0.5, 'seconds': 1.5, 'bytes': 1 << 20, 'restored': False, 'origin': '', 'trouble': ''}
        assert found['setup']['deflate'] == 32 and found['setup']['deflation'] == want, found['setup']
        assert [s['deflation'] for s in found['setups']] == [None, want], found['setups']
        for value in '4097', '-1', '', '9999999999':
            assert case.ctl(d, 'load', 'x', '--deflate=' + value).returncode == 64
        done = case.ctl(d, 'load', 'x', '--deflate=1', '--solver=mg')
        assert done.returncode != 0 and 'deflate = 1: solves by multigrid' in done.stderr, done


@tap.test
def vectors_that_a_setup_keeps_serve_another_one(case):
    with State(case) as state, state.daemon() as d, Client(d) as c:
        assert BY_NAME in c.welcome.feature
        make(c)
        load_and_wait(d, c, 'all', csw=0, deflate_from='low')
        load_and_wait(d, c, 'five', csw=0, deflate_from='low', deflate=5, precision='half')
        begins_with(d, 'all', 12), begins_with(d, 'five', 5)
        s = d.status(setup='five').setup
        assert (s.deflate, s.deflate_from, s.deflation.seconds) == (5, 'low', 0.25), s
        assert load(c, 'five', csw=0, deflate_from='low', deflate=5, precision='half').state == qk.STATE_READY  # the same again
        assert 'exists with other' in refused(c, 'BAD_ARGUMENT', load=qk.Load(name='five', gauge=FAKE, csw=0, deflate=5, precision='half'))
        check(c, 2, setup='all')
        assert len(names(state)) == 3 and 'main+low' in names(state), names(state)
        drop(c, 'five')
        wait_for(d, 'five', None)
        assert len(names(state)) == 2, names(state)
        assert d.terminate() == 0


@tap.test
def a_dropped_set_stays_with_those_that_begin_with_it(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            make(c)
            load_and_wait(d, c, 'twin', csw=0, deflate_from='low')
            drop_set(c)
            file, = names(state)
            assert begins_with(d, 'twin', 12) == file
            pid = d.status(setup='twin').engine.pid
            os.kill(pid, signal.SIGKILL)
            d.status_when(lambda s: s.engine.pid != pid and s.state == qk.STATE_READY, setup='twin')
            assert begins_with(d, 'twin', 12) == file
            assert 'no setup has eigenvectors of this name' in refused(c, 'NOT_FOUND', load=qk.Load(name='x', gauge=FAKE, csw=0, deflate_from='low'))
            make(c, count=20)  # others of that name
            begins_with(d, 'twin', 12)
            kill(d)
        with state.daemon() as d, Client(d) as c:
            assert begins_with(d, 'twin', 12) == file
            assert load(c, 'twin', csw=0, deflate_from='low').state == qk.STATE_READY
            load_and_wait(d, c, 'next', csw=0, deflate_from='low')
            begins_with(d, 'next', 20)
            assert len(names(state)) == 3, names(state)
            drop(c, 'twin')
            wait_for(d, 'twin', None)
            assert file not in names(state)
            kill(d)
        for name in 'main=7=low', 'twin=-1=low':  # left by a front that was killed at that moment
            shutil.copy(os.path.join(state.dir, 'eigen', 'main+low'), os.path.join(state.dir, 'eigen', name))
        with state.daemon() as d:
            begins_with(d, 'next', 20)
            assert len(names(state)) == 2, names(state)
            assert d.terminate() == 0


@tap.test
def of_several_sets_of_a_name_that_of_the_operator_says_why(case):
    with State(case) as state, state.daemon('--mass', '0.1', '--max-setups', '8') as d, Client(d) as c:
        make(c, count=4)
        load_and_wait(d, c, 'other', csw=0, kappa=0.11)
        make(c, setup='other')
        text = refused(c, 'BAD_ARGUMENT', load=qk.Load(name='x', gauge=FAKE, csw=0, deflate_from='low', deflate=8))
        assert 'deflate = 8: low of setup main has 4 vectors' in text, text


@tap.test
def what_serves_no_solve_is_refused_by_name(case):
    with State(case) as state, held(state) as (d, go), Client(d) as c:
        make(c)
        make(c, 'few', 4)
        make(c, 'five', 4, problem={'kind': qk.EIGEN_GAMMA5})
        c.request += 1
        c.send(eigen=qk.Eigen(request=c.request, problem=qk.EigenProblem(name='soon', kind=qk.EIGEN_NORMAL, count=4, tol=1e-8, space=4 + fake.HOLD)))
        c.expect('accepted')
        for how, words, more in (
                ('NOT_FOUND', 'deflate_from = none: no setup has eigenvectors of this name', dict(deflate_from='none')),
                ('BAD_ARGUMENT', 'deflate_from of 2 bytes', dict(deflate_from='a/')),
                ('BAD_ARGUMENT', 'deflate_from of 65 bytes', dict(deflate_from='a' * 65)),
                ('BAD_ARGUMENT', 'deflate_from = low: those of setup main are of another operator: wilson;mass=0.1, not wilson;mass=0.5454', dict(kappa=0.11)),
                ('BAD_ARGUMENT', 'deflate_from = low: those of setup main are of another boundary', dict(boundary='periodic')),
                ('BAD_ARGUMENT', 'deflate_from = five: those of setup main are of kind gamma5', dict(deflate_from='five')),
                ('BAD_ARGUMENT', 'deflate = 5: few of setup main has 4 vectors', dict(deflate_from='few', deflate=5)),
                ('TOO_LARGE', 'deflate = 4097 is over the limit', dict(deflate=4097)),
                ('BAD_ARGUMENT', 'deflate_from = low: solves by multigrid', dict(solver='mg')),
                ('BUSY', 'deflate_from = soon: those of setup main are being made', dict(deflate_from='soon'))):
            text = refused(c, how, load=qk.Load(**{'name': 'x', 'gauge': FAKE, 'csw': 0, 'deflate_from': 'low', **more}))
            assert words in text, text
        assert set(setups(d)) == {'main'} and names(state) == ['main+few', 'main+five', 'main+low', 'main+soon'], names(state)
        os.unlink(os.path.join(state.dir, 'eigen', 'main+low'))
        text = refused(c, 'NOT_FOUND', load=qk.Load(name='x', gauge=FAKE, csw=0, deflate_from='low'))
        assert 'deflate_from = low: setup main has them in memory alone' in text, text
    with case.daemon() as d, Client(d) as c:
        make(c)
        text = refused(c, 'BAD_ARGUMENT', load=qk.Load(name='x', gauge=FAKE, csw=0, deflate_from='low'))
        assert 'deflate_from = low: eigenvectors of a name are read from the state folder' in text, text


@tap.test
def of_other_links_it_is_refused_by_digest_or_by_the_engine(case):
    with State(case) as state, state.daemon() as d, Client(d) as c:
        load_and_wait(d, c, 'other', csw=0, gauge=FAKE + ':digest=9')
        make(c, setup='other')
        make(c, 'own')
        load_and_wait(d, c, 'both', csw=0, gauge=FAKE + ':digest=9', deflate_from='low')  # the front does not know yet what it will be
        drop(c, 'both')
        with Client(d, user='ann') as a:
            for digest, name, words in (('%016x' % 7, 'low', 'setup other are of other links: digest 0000000000000009, not 0000000000000007'),
                                        ('%016x' % 9, 'own', 'setup main are of other links: digest 0000000000000007, not 0000000000000009')):
                a.send(load=qk.Load(name='x', gauge='digest:' + digest, deflate_from=name))
                text = a.error('BAD_ARGUMENT', fatal=False).text
                assert words in text, text
            a.send(load=qk.Load(name='x', gauge='digest:%016x' % 9, csw=0, deflate_from='low'))
            a.expect('setup')
            d.status_when(lambda s: any(x.name == 'x' and x.state == qk.STATE_READY and x.deflation.origin == 'low' for x in s.setups))
            make(a, 'mine', setup='x')
            a.send(load=qk.Load(name='y', gauge='digest:%016x' % 9, csw=0, deflate_from='mine'))
            a.expect('setup')
        with Client(d, user='bob') as b:  # sets of private setups are their user's
            b.send(load=qk.Load(name='x', gauge='digest:%016x' % 9, csw=0, deflate_from='mine'))
            assert 'no setup has eigenvectors of this name' in b.error('NOT_FOUND', fatal=False).text
        assert 'no setup has' in refused(c, 'NOT_FOUND', load=qk.Load(name='z', gauge=FAKE + ':digest=9', csw=0, deflate_from='mine'))


@tap.test
def loaded_in_place_it_begins_with_its_own(case):
    with State(case) as state, held(state) as (d, go), Client(d, user='ann') as a:
        links = 'digest:%016x' % d.status().setup.digest
        a.send(load=qk.Load(name='mine', gauge=links))
        a.expect('setup')
        wait_for(d, 'mine', qk.STATE_READY)
        make(a, setup='mine')
        pid = d.status(setup='ann/mine').engine.pid
        a.send(load=qk.Load(name='mine', gauge=links, deflate_from='low'))
        a.expect('setup')
        d.status_when(lambda s: s.state == qk.STATE_READY and s.setup.deflate_from == 'low', setup='ann/mine')
        s = d.status(setup='ann/mine')
        assert s.engine.pid == pid and s.setup.deflation.vectors == 12 and not s.setup.eigen, s
        file, = names(state)  # the set went with the setup that had made it
        a.send(load=qk.Load(name='mine', gauge=links, deflate_from='low', precision='half'))
        assert 'no setup has' in a.error('NOT_FOUND', fatal=False).text
        a.send(load=qk.Load(name='mine', gauge=links))
        a.expect('setup')
        d.status_when(lambda s: s.state == qk.STATE_READY and not s.setup.deflate_from, setup='ann/mine')
        assert names(state) == [], names(state)


@tap.test
def quarkd_is_started_with_a_name(case):
    with State(case) as state, state.fronts() as front:
        with front() as d, Client(d) as c:
            make(c)
            kill(d)
        done = case.run('--gauge=' + FAKE, '--mass=1', '--state', state.dir, '--deflate=none', '--engine', '/bin/true', '--listen=tcp://127.0.0.1:0')
        assert done.returncode != 0 and 'deflate = none: no setup has eigenvectors of this name' in done.stderr, done
        with front('--deflate', 'low', env=LATER) as d, Client(d) as c:
            begins_with(d, 'main', 12)
            pid = d.status().engine.pid
            load_and_wait(d, c, 'heavy', kappa=0.12)  # the name is that of the daemon's own operator
            assert not setups(d)['heavy'].HasField('deflation')
            drop_set(c)
            kill(d)
        with front('--deflate', 'low', env=LATER) as d, Client(d) as c:  # its own link is left
            begins_with(d, 'main', 12)
            assert d.status().engine.pid == pid
            make(c, count=20)
            kill(d)
        with front('--deflate', 'low', '--precision', 'half', env=LATER) as d:
            begins_with(d, 'main', 20)
            kill(d)
        with front(env=LATER) as d:
            begins_with(d, 'main', 0, '')
            assert names(state) == ['main+low'], names(state)
            assert d.terminate() == 0


@tap.test
def quarkctl_asks_for_a_name_and_shows_it(case):
    with State(case) as state, state.daemon() as d, Client(d) as c:
        make(c)
        done = case.ctl(d, 'load', 'twin', '--csw=0', '--deflate=low')
        assert done.returncode == 0, done
        line = '12 vectors, eigenvalues 0.125 to 0.5   from low in 0.25 s   1.0 MiB\n'
        assert 'deflation   ' + line in case.ctl(d, 'status', '--setup=twin').stdout
        assert '    ' + line in case.ctl(d, 'status').stdout
        found = json.loads(case.ctl(d, 'status', '--setup=twin', '--json').stdout)['setup']
        assert (found['deflate'], found['deflate_from'], found['deflation']['origin']) == (0, 'low', 'low'), found
        done = case.ctl(d, 'load', 'x', '--deflate=high')
        assert done.returncode != 0 and 'deflate_from = high: no setup has eigenvectors of this name' in done.stderr, done
        assert d.terminate() == 0


if __name__ == '__main__':
    tap.run(Setups(*sys.argv[1:3]))
