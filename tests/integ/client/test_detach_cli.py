"""quarkctl --detach and fetch, with the real daemon: test_detach_cli.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE SHIM"""
import contextlib
import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import threading

from cli_case import (AGAIN, COLUMN_BYTES, CONFIG, CSW, DATA, KAPPA, SHAPE, USAGE, Case, h5py, np, random_sources, read_field, ref, tap,
                      write_sources)
from daemon import LIMIT

POINT = ('propagator', '--source=point:1,2,3,5', '--tol=1e-10')


def stop_engine(d):
    engine = d.ctl('status', '--json').json['engine']['pid']
    os.kill(engine, signal.SIGSTOP)
    return lambda: os.kill(engine, signal.SIGCONT)


def nothing_is_left(d):
    c = d.ctl('status', '--json').json
    return c['counters']['requests'] == 0 and c['memory']['used'] == 0


def wait_for(d, condition):
    while not condition(d.ctl('status', '--json').json['counters']):
        assert d.process.poll() is None


def open_files(pid):
    names = []
    for fd in os.listdir('/proc/%d/fd' % pid):
        try:
            names.append(os.readlink('/proc/%d/fd/%s' % (pid, fd)))
        except OSError:  # closed meanwhile
            pass
    return names


def contents(path):
    with h5py.File(path, 'r') as f:
        attributes = {k: np.array(v).tolist() for k, v in f.attrs.items()}
        columns = f['columns'][...]
        return f['field'][...], attributes, {n: columns[n].tolist() for n in columns.dtype.names if n not in
                                             ('true_residual', 'hq_residual', 'iterations', 'seconds')}, np.isnan(columns['hq_residual'])


def read_all(fd):
    os.set_blocking(fd, True)
    while os.read(fd, 1 << 16):
        pass


def check_same(direct, fetched, limit=1e-8):
    x, attributes, columns, unasked = contents(direct)
    y, others, more, not_told = contents(fetched)
    assert attributes == others and columns == more, (attributes, others, columns, more)
    assert (unasked == not_told).all() and unasked[0] == ('tolerance_hq' not in attributes), (unasked, not_told)
    assert x.dtype == y.dtype and np.max(np.abs(x - y)) <= limit * np.max(np.abs(x))


@tap.test
def a_fetch_writes_what_the_command_would_have_written(case):
    """Generated and uploaded sources, in another basis, precision and normalisation; of one request and of several."""
    with case.daemon('--drain-timeout=9', '--user-rhs=5') as d:
        write_sources(d.path('b.h5'), random_sources(7, np.complex64), basis='ukqcd')
        for name, args in (('p', (*POINT, '--smear=gauss:0.25,3', '--smear-links=ape:0.5,2')),
                           ('n', ('propagator', '--source=z4:7:3', '--count=2', '--normalisation=kappa', '--dtype=f32', '--tol-hq=1e-8', '--tol-abs=1e-6')),
                           ('x', ('solve', '--in', d.path('b.h5'), '--tol=1e-6'))):
            direct, out = d.path(name + '.direct'), d.path(name)
            assert d.ctl(*args, '--out', direct).code == 0
            left = d.ctl(*args, '--out', out, '--detach=600', '--json')
            assert left.code == 0 and left.json['ticket'] == out + '.ticket' and left.json['kept_seconds'] == 600, left
            assert sum(r['nrhs'] for r in left.json['requests']) == left.json['rhs']
            assert len(left.json['requests']) == {'p': 4, 'n': 1, 'x': 2}[name], left
            assert stat.S_IMODE(os.stat(out + '.ticket').st_mode) == 0o600 and not os.path.exists(out)
            done = case.ctl('fetch', out + '.ticket', '--json', endpoint='tcp://127.0.0.1:1')  # the ticket knows better
            assert done.code == 0 and done.json['out'] == out and [r['status'] for r in done.json['rhs']] == ['OK'] * left.json['rhs']
            check_same(direct, out, 1e-5 if name in 'nx' else 1e-8)
            assert not os.path.exists(out + '.ticket') and nothing_is_left(d)


@tap.test
def the_line_that_is_printed_can_be_kept_by_a_script(case):
    with case.daemon('--drain-timeout=9') as d:
        out = d.path('p.h5')
        done = d.ctl(*POINT, '--out', out, '--detach')
        words = done.out.split()
        assert done.code == 0 and words[0] == out + '.ticket' and words[-2:] == ['86400', 's'], done
        with open(words[0], encoding='utf-8') as f:
            ticket = json.load(f)
        assert words[1:5] == ['client', ticket['client'], 'requests', str(ticket['requests'][0]['request'])], done
        again = d.ctl(*POINT, '--out', out, '--detach')
        assert again.code == DATA and 'have not been fetched' in again.err, again
        other = d.path('elsewhere')
        os.rename(words[0], other)
        done = d.ctl('fetch', other)
        assert done.code == USAGE and '--out' in done.err, done
        done = d.ctl('fetch', other, '--out', out)
        took = re.search(r' iterations, ([\d.]+) m?s \(fetch [\d.]+ m?s, write [\d.]+ m?s, sync [\d.]+ m?s\), written to %s$' % re.escape(out),
                         done.out.strip())
        assert done.code == 0 and took and float(took[1]) > 0 and not os.path.exists(other), done


@tap.test
def one_can_look_without_fetching(case):
    with case.daemon('--drain-timeout=9') as d:
        proceed = stop_engine(d)
        ticket = d.ctl(*POINT, '--out', d.path('p.h5'), '--detach', '--json').json['ticket']
        done = d.ctl('fetch', ticket, '--status', '--json')
        assert done.code == AGAIN and (done.json['ended'], done.json['rhs'], done.json['complete']) == (0, 12, False), done
        done = d.ctl('fetch', ticket, '--no-wait')
        assert done.code == AGAIN and '0 of 12' in done.err and not os.path.exists(d.path('p.h5')), done
        proceed()
        wait_for(d, lambda c: c['converged'] == 12)
        done = d.ctl('fetch', ticket, '--status')
        assert done.code == 0 and '12 of 12 right-hand sides have ended, 12 converged' in done.out, done
        assert not os.path.exists(d.path('p.h5')) and os.path.exists(ticket)
        done = d.ctl('fetch', ticket, '--no-wait')
        assert done.code == 0 and read_field(d.path('p.h5')).shape == (12,) + SHAPE and nothing_is_left(d), done


@tap.test
def a_fetch_that_was_killed_or_failed_can_be_repeated(case):
    with case.daemon('--drain-timeout=9') as d:
        proceed = stop_engine(d)
        ticket = d.ctl(*POINT, '--out', d.path('p.h5'), '--detach', '--json').json['ticket']
        waiting = d.start_ctl('fetch', ticket)
        while ticket not in open_files(waiting.pid):  # it locks what it has opened
            assert waiting.poll() is None
        second = d.ctl('fetch', ticket, '--no-wait')
        assert second.code == AGAIN and 'another fetch' in second.err, second
        waiting.kill()
        waiting.communicate(timeout=LIMIT)
        proceed()

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (500000, 500000))
        done = d.ctl('fetch', ticket, preexec_fn=limit)  # some solutions have been downloaded by then
        assert done.code == DATA and 'IO_ERROR' in done.err and os.path.exists(ticket), done
        assert not os.path.exists(d.path('p.h5'))
        assert d.ctl('fetch', ticket).code == 0 and nothing_is_left(d)
        assert d.ctl(*POINT, '--out', d.path('q.h5')).code == 0
        check_same(d.path('q.h5'), d.path('p.h5'))


@tap.test
def ctrl_c_while_a_column_is_written_leaves_all_to_the_next_fetch(case):
    """The disk stalls in a column, when others may have been fetched."""
    with case.daemon() as d:
        disk = case.disk(d.folder.name)
        ticket = d.ctl(*POINT, '--out', d.path('p.h5'), '--detach', '--json').json['ticket']
        disk.stalls_writes(COLUMN_BYTES)
        fetching = d.start_ctl('fetch', ticket, env=disk.env)
        disk.when_met()
        fetching.send_signal(signal.SIGINT)
        disk.works()
        out, err = fetching.communicate(timeout=LIMIT)
        assert fetching.returncode == AGAIN and out == '', (fetching.returncode, out, err)
        assert 'interrupted: nothing is written, and the daemon keeps all solutions' in err, err
        assert sorted(n for n in os.listdir(d.folder.name) if n.startswith('p.h5')) == ['p.h5.ticket']
        assert d.ctl('fetch', ticket).code == 0 and nothing_is_left(d) and not os.path.exists(ticket)
        assert d.ctl(*POINT, '--out', d.path('q.h5')).code == 0
        check_same(d.path('q.h5'), d.path('p.h5'))


@tap.test
def what_is_detached_survives_a_killed_daemon(case):
    b = random_sources(3)
    with tempfile.TemporaryDirectory() as state:
        with case.daemon('--state', state) as d:
            d.expected = -signal.SIGKILL
            proceed = stop_engine(d)
            write_sources(d.path('b.h5'), b)
            left = d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('x.h5'), '--tol=1e-10', '--detach', '--json')
            assert left.code == 0, left
            d.process.kill()
            d.process.wait()
            proceed()
            with case.daemon('--state', state) as d2:
                d2.wait_listening()
                done = d2.ctl('fetch', left.json['ticket'], '--endpoint', d2.endpoint)
                assert done.code == 0, (done, d2.log)
                x = read_field(d.path('x.h5'))
                assert max(case.residual(x[i], b[i]) for i in range(3)) < 1.1e-10


@tap.test
def a_ticket_stays_until_the_daemon_has_heard(case):
    """It is killed when the file is written and quarkctl prints, which waits for a pipe that is full."""
    for comes_back in True, False:
        with tempfile.TemporaryDirectory() as state, case.daemon('--state', state, '--engine-grace=0') as d:
            d.expected = -signal.SIGKILL
            left = d.ctl(*POINT, '--out', d.path('p.h5'), '--detach', '--json')
            assert left.code == 0, left
            ticket, out = left.json['ticket'], d.path('p.h5')
            read, write = os.pipe()
            os.set_blocking(write, False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(write, b' ')
            os.set_blocking(write, True)
            fetch = subprocess.Popen([case.quarkctl, 'fetch', ticket, '--json', '--timeout=%d' % (60 if comes_back else 1)], stdout=write,
                                     stderr=subprocess.PIPE, text=True)
            os.close(write)
            while not os.path.exists(out):
                assert fetch.poll() is None
                threading.Event().wait(0.005)
            d.process.kill()
            d.process.wait()
            drain = threading.Thread(target=read_all, args=(read,))
            if comes_back:
                with case.daemon('--state', state, '--listen=' + d.endpoint, '--listen-data=tcp://127.0.0.1:0') as again:
                    again.wait_listening()
                    drain.start()
                    assert fetch.wait(LIMIT) == 0, fetch.stderr.read()
                    assert not os.path.exists(ticket) and nothing_is_left(again)
            else:
                drain.start()
                assert fetch.wait(LIMIT) == AGAIN
                said = fetch.stderr.read()
                assert 'has not confirmed that it deleted the solutions' in said and ticket in said and os.path.exists(ticket), said
                with case.daemon('--state', state) as again:
                    again.wait_listening()
                    done = again.ctl('fetch', ticket, '--endpoint', again.endpoint)
                    assert done.code == 0 and not os.path.exists(ticket) and nothing_is_left(again), done
            fetch.stderr.close()
            drain.join()
            os.close(read)


@tap.test
def tickets_of_before_actions_are_fetched(case):
    with case.daemon('--drain-timeout=9') as d:
        out = d.path('p.h5')
        path = d.ctl(*POINT, '--out', out, '--detach', '--json').json['ticket']
        with open(path, encoding='utf-8') as f:
            ticket = json.load(f)
        assert (ticket['setup']['action'], ticket['setup']['parameters']) == ('wilson-clover', 'kappa=%r;csw=%r' % (KAPPA, CSW)), ticket
        assert (ticket['setup']['site_reals'], ticket['setup']['columns']) == (24, 12), ticket

        def write(**changed):
            with open(path, 'w', encoding='utf-8') as f:
                json.dump({**ticket, 'setup': {k: v for k, v in {**ticket['setup'], **changed}.items() if v is not None}}, f)
        for changed in ({'action': 32 * 'x'}, {'parameters': 4096 * 'x'}, {'site_reals': 0}, {'columns': -1}, {'site_reals': '24'}):
            write(**changed)
            done = d.ctl('fetch', path)
            assert done.code == DATA and 'is not a ticket of version 1, or is damaged' in done.err, (changed, done)
        write(site_reals=8, columns=4, action='strange', parameters='mass=0.1')
        done = d.ctl('fetch', path)
        assert done.code == DATA and 'strange: its fields have 8 real numbers at a site and its propagators 4 columns' in done.err, done
        write(action=None, parameters=None, site_reals=None, columns=None)
        assert d.ctl('fetch', path).code == 0
        with h5py.File(out, 'r') as f:
            assert (f.attrs['action'], f.attrs['site_reals']) == ('wilson-clover;mass=%r;csw=%r' % (0.5 / KAPPA - 4, CSW), 24)


@tap.test
def tickets_that_are_of_no_use_are_told_apart(case):
    with case.daemon('--drain-timeout=9', '--detach-time=100') as d:
        none = d.path('none.ticket')
        done = d.ctl('fetch', none)
        assert done.code == DATA and 'fetched, or never written' in done.err, done
        for text in ('', '{}', '[1]', '{"format": "quarkd ticket", "version": 2}'):
            with open(none, 'w', encoding='utf-8') as f:
                f.write(text)
            done = d.ctl('fetch', none)
            assert done.code == DATA and 'is not a ticket' in done.err, done
        done = d.ctl(*POINT, '--out', d.path('p.h5'), '--detach=101')
        assert done.code == DATA and 'detach_ms = 101000 is over the limit of 100000' in done.err, done
        ticket = d.ctl(*POINT, '--out', d.path('p.h5'), '--detach=1', '--json').json['ticket']
        wait_for(d, lambda c: c['requests'] == 0)
        done = d.ctl('fetch', ticket)
        assert done.code == DATA and 'nobody came for it in 1 s' in done.err and os.path.exists(ticket), done
        os.remove(ticket)
        ticket = d.ctl(*POINT, '--out', d.path('p.h5'), '--detach', '100', '--json')
        assert ticket.code == USAGE  # an optional value is written with =
        left = d.ctl(*POINT, '--out', d.path('p.h5'), '--detach=100', '--json').json
        assert d.ctl('cancel', '--client', left['client'], '--request', left['requests'][0]['request']).code == 0
        done = d.ctl('fetch', left['ticket'], '--json')
        assert {r['status'] for r in done.json['rhs']} <= {'CANCELLED', 'OK'}, done
        assert nothing_is_left(d) and not os.path.exists(left['ticket'])


@tap.test
def what_cannot_stay_there_as_a_whole_is_not_begun(case):
    field = int(np.prod(SHAPE)) * 16
    with case.daemon('--drain-timeout=9', '--max-memory=%d' % (7 * field)) as d:
        done = d.ctl(*POINT, '--out', d.path('p.h5'), '--detach', '--timeout=1')
        assert done.code == AGAIN and 'has room for' in done.err and done.out == '', done
        assert nothing_is_left(d) and os.listdir(d.folder.name).count('p.h5.ticket') == 0
        done = d.ctl('sequential', '--source=point:0,0,0,0', '--sink-time=1', '--out', d.path('s.h5'), '--detach')
        assert done.code == USAGE and 'need results of the daemon in between' in done.err, done


@tap.test
def what_waits_on_the_disk_is_fetched_like_the_rest(case):
    """Three propagators where there is memory for one."""
    field = int(np.prod(SHAPE)) * 16
    with tempfile.TemporaryDirectory() as state, \
            case.daemon('--drain-timeout=9', '--state', state, '--spill=1G', '--max-memory=%d' % (13 * field)) as d:
        for t in range(3):
            done = d.ctl('propagator', '--source=point:0,0,0,%d' % t, '--tol=1e-10', '--out', d.path('p%d' % t), '--detach')
            assert done.code == 0, done
        assert len(os.listdir(os.path.join(state, 'spool'))) > 12
        for t in range(3):
            done = d.ctl('fetch', d.path('p%d.ticket' % t))
            assert done.code == 0, done
            x = read_field(d.path('p%d' % t))
            assert max(case.residual(x[i], ref.point_source(case.op, i // 3, i % 3, (t, 0, 0, 0))) for i in range(12)) < 1.1e-10
        assert nothing_is_left(d) and os.listdir(os.path.join(state, 'spool')) == []


@tap.test
def solutions_are_for_their_user_only(case):
    with tempfile.TemporaryDirectory() as folder:
        def path(name):
            return os.path.join(folder, name)
        os.mkdir(path('clients'), 0o700)
        assert case.ctl('keygen', path('server')).code == 0
        for name, user, role in (('one', 'one', 'submit'), ('other', 'other', 'submit'), ('reader', 'one', 'read')):
            assert case.ctl('keygen', path(name), '--user', user, '--role', role).code == 0
            os.rename(path(name + '.pub'), path('clients/' + name))
        with case.daemon('--drain-timeout=9', '--curve-key', path('server'), '--curve-clients', path('clients')) as d:
            keys = ('--server-key', path('server.pub'), '--key')
            left = d.ctl(*POINT, '--out', d.path('p.h5'), '--detach', '--json', *keys, path('one'))
            assert left.code == 0, left
            ticket = left.json['ticket']
            done = d.ctl('fetch', ticket, '--key', path('other'))
            assert done.code == CONFIG and 'belongs to another user' in done.err, done
            done = d.ctl('fetch', ticket, '--key', path('reader'))
            assert done.code == DATA and 'needs the role submit' in done.err, done
            done = d.ctl('fetch', ticket, '--key', path('one'))
            assert done.code == 0 and os.path.exists(d.path('p.h5')), done


tap.run(Case(*sys.argv[1:]))
