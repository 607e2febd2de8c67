#!/usr/bin/env python3
"""Solves that begin with lowest eigenvectors, as quarkd is asked for them: test_front_deflation.py QUARKD QUARKCTL"""
import json
import os
import sys
import tempfile

import tap

try:
    from front_case import LATER, State, kill
    from front_driver import Client, qk
    from setups_case import FAKE, Setups, check, load, load_and_wait, refused, setups, wait_for
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

FEATURE = 14


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
    for option, words in (('4097', 'deflate'), ('-1', 'deflate'), ('many', 'deflate')):
        done = case.run('--gauge=x', '--mass=1', '--deflate', option)
        assert done.returncode == 64 and words in done.stderr, done
    done = case.run('--gauge=x', '--mass=1', '--deflate=1', '--solver=mg')
    assert done.returncode == 64 and 'deflate = 1: solves by multigrid' in done.stderr, done
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
        f.write('gauge = x\nmass = 1\ndeflate = 1.5\n')
        f.flush()
        done = case.run('--config', f.name)
        assert done.returncode == 78 and 'deflate' in done.stderr, done


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
        assert case.ctl(d, 'load', 'x', '--deflate=4097').returncode == 64
        done = case.ctl(d, 'load', 'x', '--deflate=1', '--solver=mg')
        assert done.returncode != 0 and 'deflate = 1: solves by multigrid' in done.stderr, done


if __name__ == '__main__':
    tap.run(Setups(*sys.argv[1:3]))
