#!/usr/bin/env python3
"""Who may use quarkd: keys, roles, users, sockets of ipc: test_front_security.py QUARKD QUARKCTL"""
import os
import subprocess
import sys
import tempfile

import tap

try:
    import zmq
    from front_case import Case, check_solves, fake, field
    from front_driver import MIB, STATUS, UPLOAD, Client, checksum, frame, qk
    from front_keys import FAILED_AUTH, Keys, guarded, refused, write
except (ImportError, OSError) as e:
    tap.skip_all(str(e))
if not zmq.has('curve'):
    tap.skip_all('this libzmq was built without CURVE')


# ---- keys -------------------------------------------------------------------------------------------

@tap.test
def an_authorised_key_works_and_names_its_user(case):
    with guarded(case) as (d, keys):
        ada = keys.add('ada')
        with Client(d, user='somebody else', curve=ada) as c:
            assert d.log('opened: user ada, program test')
            check_solves(c, 3)
            accepted = c.submit(1, source=qk.SOURCE_POINT)
            assert c.fetch(c.results(1)[0]).nbytes == accepted.field_bytes
            c.ack(accepted.request)
        assert not any('can be reached from other machines' in line for line in d.lines)


@tap.test
def chunks_and_messages_of_full_size_pass(case):
    """Encryption makes messages longer on the wire: the limits are those of what is in them."""
    with guarded(case, dims='8x8x8x16') as (d, keys), Client(d, curve=keys.add('ada')) as c:
        b = field(8 ** 3 * 16)
        assert b.nbytes > MIB
        (result, x), = c.solve([b])
        assert result.status == 0 and (x == 2 * b).all()
        columns = [qk.Column(x=1, y=2, z=3, t=4) for _ in range(1024)]
        c.submit(1024, source=qk.SOURCE_POINT, column=columns, sink=qk.SINK_NONE)
        c.results(1024)
        c.control.send(bytes(64 * 1024 + 10))
        c.error('BAD_PROTOCOL')


@tap.test
def strangers_do_not_get_in(case):
    with guarded(case) as (d, keys):
        assert refused(d, keys.pair()) == FAILED_AUTH
        assert d.log(r'warn.*refused a connection from 127\.0\.0\.1')
        refused(d, False)  # no CURVE at all
        wrong_server = (zmq.curve_keypair()[0],) + keys.add('ada')[1:]
        refused(d, wrong_server)
        assert d.status().counters.refused >= 1


@tap.test
def a_plain_daemon_refuses_curve(case):
    with case.daemon() as d:
        public, secret = zmq.curve_keypair()
        refused(d, (public, public, secret))


# ---- the folder of clients --------------------------------------------------------------------------

@tap.test
def the_folder_is_read_again_when_it_changes(case):
    with guarded(case) as (d, keys):
        ada = keys.pair()
        assert refused(d, ada) == FAILED_AUTH
        keys.authorise('ada', ada)
        with Client(d, curve=ada) as c:
            check_solves(c)
            keys.authorise('ada', ada, role='read')
            assert d.log('authorised keys', 3)
            assert c.submit(expect='rejected').status == STATUS['DENIED']
            keys.authorise('ada', ada, user='bob')
            assert d.log('authorised keys', 4)
            c.send(ping=qk.Ping())
            assert c.expect('error').status in (STATUS['DENIED'], STATUS['NOT_FOUND'])
            c.send(hello=qk.Hello(version=1, client_id=c.client_id))
            assert 'another user' in c.error('DENIED').text
        with Client(d, curve=ada) as c, Client(d, hello=False, curve=ada) as sessionless:
            check_solves(c)
            os.remove(os.path.join(keys.folder, 'ada'))
            assert d.log('authorised keys', 5)
            c.send(ping=qk.Ping())
            c.error('DENIED')
            sessionless.send(status=qk.StatusRequest())
            sessionless.error('DENIED')
        assert refused(d, ada) == FAILED_AUTH


@tap.test
def a_damaged_file_lets_nobody_in(case):
    with guarded(case) as (d, keys):
        ada = keys.pair()
        key = 'key = %s\n' % ada[1].decode()
        path = os.path.join(keys.folder, 'ada')
        bad = [('', 'key is missing'), (key, 'user is missing'), (key + 'user = ada\n', 'role is missing'),
               (key + 'user = ada\nrole = root\n', 'role must be'), (key + 'user = a b\nrole = read\n', 'user must be'),
               (key + 'user = %s\nrole = read\n' % ('a' * 65), 'user must be'), (key + 'user =\nrole = read\n', 'user must be'),
               ('key = abc\nuser = ada\nrole = read\n', 'key must be 40'), (key + key + 'user = ada\nrole = read\n', 'given twice'),
               (key + 'user = ada\nrole = read\nadmin = yes\n', 'names other than'), ('[ada]\n' + key, 'names other than'),
               (ada[2].decode() + '\n', ''), (key + '#' * 5000, 'the limit is 4096'), ('\0' * 300, '')]
        for number, (text, reason) in enumerate(bad, 2):
            write(path, text, 0o644)
            d.status()  # each new connection has it look
            assert d.log('authorised keys', number)
            assert any(path in line and reason in line and 'nobody gets in by this' in line for line in d.lines), (text, reason)
        assert refused(d, ada) == FAILED_AUTH
        good = 'key = %s\nuser = ada\nrole = submit\n' % ada[1].decode()
        write(path, good, 0o666)
        assert d.log('mode 0666 lets others write it')
        assert refused(d, ada) == FAILED_AUTH
        os.remove(path)
        os.mkfifo(path)
        assert d.log('not a regular file')
        os.remove(path)
        write(path, good, 0o644)
        write(path + '2', good.replace('submit', 'operate'), 0o644)
        assert d.log(path + '2: another file has the same key')
        with Client(d, curve=ada) as c:  # the others are not disturbed, and the first file counts
            check_solves(c)
            c.send(shutdown=qk.Shutdown())
            c.error('DENIED', fatal=False)


@tap.test
def an_unreadable_folder_lets_nobody_in(case):
    with guarded(case) as (d, keys):
        operator = d.curve
        os.chmod(keys.folder, 0o777)
        assert d.log('error.*mode 0777 lets others write there.*nobody gets in')
        assert refused(d, operator) == FAILED_AUTH
        os.chmod(keys.folder, 0o755)
        assert d.log('authorised keys', 2)
        os.rename(keys.folder, keys.folder + '.away')
        assert d.log('error.*No such file.*nobody gets in')
        assert refused(d, operator) == FAILED_AUTH
        os.rename(keys.folder + '.away', keys.folder)
        assert d.log('authorised keys', 3)
        assert d.status().state == qk.STATE_READY


@tap.test
def a_server_key_that_others_can_read_is_refused(case):
    with tempfile.TemporaryDirectory() as folder:
        keys = Keys(folder)
        fine = ['--gauge', 'x', '--mass', '0.1', '--listen', 'tcp://127.0.0.1:0', '--engine', '/bin/false']

        def fails(code, *words, options=keys.options):
            r = case.run(*fine, *options)
            assert r.returncode == code and all(w in r.stderr for w in words), r
            assert not any(secret in r.stderr for secret in keys.secrets)
        for mode in (0o640, 0o604, 0o660):
            os.chmod(keys.server_file, mode)
            fails(78, keys.server_file, '%04o' % mode, 'chmod 600')
        write(keys.server_file, keys.server_secret.decode() + '\nmore\n', 0o600)
        fails(78, keys.server_file, 'one line of 40 characters')
        write(keys.server_file, keys.server_secret.decode()[:-1] + '~\n', 0o600)
        fails(78, keys.server_file, 'one line of 40 characters')
        os.remove(keys.server_file)
        fails(78, keys.server_file, 'No such file')
        os.mkdir(keys.server_file)
        fails(78, keys.server_file, 'not a regular file')
        fails(64, 'needed together', options=keys.options[:2])
        fails(64, 'needed together', options=keys.options[2:])
        fails(64, 'curve-key is for tcp', options=keys.options + ['--listen', 'ipc://%s/q' % folder])


# ---- roles and users --------------------------------------------------------------------------------

MESSAGES = {
    'submit': dict(submit=qk.Submit(request=1, nrhs=1, dtype=qk.DTYPE_F64, tol=1e-8, source=qk.SOURCE_POINT, sink=qk.SINK_NONE,
                                    column=[qk.Column()])),
    'contract': dict(contract=qk.Contract(request=2, contraction=qk.Contraction(request_a=1, channel=[qk.Channel(kind=qk.CHANNEL_MESON)]))),
    'grant': dict(grant=qk.Grant(request=1, rhs=0, until=1)),
    'ack': dict(ack=qk.Ack(request=1)),
    'cancel': dict(cancel=qk.Cancel(request=1)),
    'release': dict(release=qk.Release(request=1)),
}


@tap.test
def readers_look_and_do_nothing_else(case):
    with guarded(case) as (d, keys), Client(d, curve=keys.add('watch', 'read')) as c:
        assert c.status().state == qk.STATE_READY
        c.ping()
        for number, (name, message) in enumerate(MESSAGES.items(), 1):
            c.send(**message)
            e = c.expect('rejected') if name in ('submit', 'contract') else c.error('DENIED', fatal=False)
            assert e.status == STATUS['DENIED'] and name in e.text and 'role submit' in e.text and e.request, e
            assert c.status().counters.denied == number
        c.data.send(frame(UPLOAD, 1, 0, b'x' * 16, 16, 0, checksum(b'x' * 16)))
        assert 'submit' in c.error('DENIED', fatal=False).text
        c.send(shutdown=qk.Shutdown(now=True))
        assert 'role operate' in c.error('DENIED', fatal=False).text
        assert c.status().counters.accepted == 0
        c.send(goodbye=qk.Goodbye())
        d.status_when(lambda s: s.counters.sessions == 0)


@tap.test
def submitters_work_and_operators_may_end_it(case):
    with guarded(case) as (d, keys), Client(d, curve=keys.add('ada')) as c:
        check_solves(c)
        assert c.status().counters.denied == 0
        for now in (False, True):
            c.send(shutdown=qk.Shutdown(now=now))
            c.error('DENIED', fatal=False)
        setups = {'load': qk.Load(name='heavy', gauge='builtin:fake'), 'drop': qk.Drop(name='heavy'),
                  'make_default': qk.MakeDefault(name='heavy')}
        for name, message in setups.items():
            c.send(**{name: message})
            text = c.error('DENIED', fatal=False).text
            assert text.startswith(name + ' needs the role operate'), text
        check_solves(c)
        assert len(c.status().setups) == 1
        with Client(d, curve=keys.add('root', 'operate')) as root:
            check_solves(root)
            root.send(load=setups['load'])
            root.expect('setup')
            d.status_when(lambda s: all(x.state == qk.STATE_READY for x in s.setups))
            check_solves(c)
            root.send(drop=setups['drop'])
            root.expect('setup')
            root.send(shutdown=qk.Shutdown(now=True))
            assert root.expect('shutdown').now
            assert d.wait() == 0


@tap.test
def a_session_belongs_to_its_user(case):
    with guarded(case) as (d, keys):
        ada, laptop, bob = keys.add('ada'), keys.add('ada-laptop', user='ada'), keys.add('bob')
        with Client(d, curve=ada) as c:
            c.submit(1, source=qk.SOURCE_POINT)
            c.expect('result')
            with Client(d, client_id=c.client_id, hello=False, curve=bob) as thief:
                thief.send(hello=qk.Hello(version=1, client_id=c.client_id, user='ada'))
                assert 'another user' in thief.error('DENIED').text
                thief.welcome = c.welcome  # with the right token, too
                thief.bind(c.welcome.token)
                d.status_when(lambda s: s.counters.dropped >= 2)
                assert not thief.data.poll(0)
            accepted = c.submit(1)
            b = field()
            c.upload(accepted, [b])
            assert (c.fetch(c.results(1)[0]) == 2 * b).all()  # the data connection is still ada's
            with Client(d, client_id=c.client_id, curve=laptop) as again:
                assert again.welcome.resumed  # another key of the same user


@tap.test
def users_have_the_quotas_of_their_names(case):
    point = dict(source=qk.SOURCE_POINT, sink=qk.SINK_NONE, max_iter=fake.HOLD)
    with guarded(case, '--user-rhs', '2') as (d, keys):
        with Client(d, user='a', curve=keys.add('ada')) as a, Client(d, user='b', curve=keys.add('ada2', user='ada')) as same:
            a.submit(2, **point)
            assert same.submit(1, expect='rejected', **point).status == STATUS['BUSY']


# ---- endpoints --------------------------------------------------------------------------------------

@tap.test
def an_open_endpoint_without_keys_is_warned_of(case):
    with case.daemon('--listen', 'tcp://0.0.0.0:0') as d:
        line = next(line for line in d.lines if 'can be reached from other machines' in line)
        assert 'warn' in line and 'curve-key' in line and 'ssh' in line and '0.0.0.0' in line
    with case.daemon() as d:
        assert not any('can be reached from other machines' in line for line in d.lines)


CONNECT = '''
import os, socket, sys
os.setgid(65534)
os.setuid(65534)
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
except PermissionError:
    sys.exit(13)
s.settimeout(20)
sys.exit(0 if s.recv(10) == b'' else 1)
'''


@tap.test
def ipc_sockets_are_for_their_user(case):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'q')
        os.chmod(folder, 0o755)
        with case.daemon('--listen', 'ipc://' + path) as d, Client(d) as c:
            check_solves(c)
            for name in (path, path + '-data'):
                assert os.stat(name).st_mode & 0o777 == 0o600
            if os.geteuid() != 0:
                raise tap.Skip('only root can become somebody else')

            def connect(name):
                return subprocess.run([sys.executable, '-c', CONNECT, name], timeout=60, check=False).returncode
            assert connect(path) == connect(path + '-data') == 13  # EACCES
            os.chmod(path, 0o666)
            os.chmod(path + '-data', 0o666)
            assert connect(path) == connect(path + '-data') == 0  # hung up on at once
            check_solves(c)
            c.send(shutdown=qk.Shutdown(now=True))  # whoever may connect may operate
            c.expect('shutdown')


# ---- bounds -----------------------------------------------------------------------------------------

@tap.test
def what_nobody_understands_goes_nowhere(case):
    """With it a message to the engine would be over its limit, and stand in the way of all others."""
    def padded(message, size):
        return message.SerializeToString() + b'\xc2\x3e' + bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14]) + bytes(size)
    with case.daemon('--slots', '1') as d, Client(d, user='eve') as eve, Client(d, user='ada') as c:
        small = qk.Submit(request=1, nrhs=1, dtype=qk.DTYPE_F64, tol=1e-8, source=qk.SOURCE_POINT, sink=qk.SINK_DOWNLOAD, column=[qk.Column()])
        smear = padded(qk.Smearing(alpha=0.25, steps=3), 64 * 1024 - 47)
        small.smear.CopyFrom(qk.Smearing.FromString(smear))
        message = qk.ClientMessage(submit=small).SerializeToString()
        assert 64 * 1024 - 20 < len(message) <= 64 * 1024, len(message)
        eve.control.send(message)
        eve.expect('accepted')
        result = eve.expect('result')
        assert result.status == 0 and eve.fetch(result)[1] == 0.25
        check_solves(c)


@tap.test
def lists_have_an_end(case):
    with case.daemon() as d, Client(d) as c:
        c.submit(2, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        for message in (dict(ack=qk.Ack(request=1, rhs=[0] * 1025)), dict(cancel=qk.Cancel(request=1, rhs=[0] * 1025))):
            c.send(**message)
            e = c.error('TOO_LARGE', fatal=False)
            assert e.request == 1 and '1025' in e.text and '1024' in e.text
        c.send(cancel=qk.Cancel(request=1, rhs=[0] * 1024))
        assert c.expect('result').status == STATUS['CANCELLED']


# ---- libquark and quarkctl --------------------------------------------------------------------------

class Tool:
    """quarkctl on keys that it makes itself."""

    def __init__(self, quarkctl, folder):
        self.quarkctl, self.folder = quarkctl, folder
        self.env = {k: v for k, v in os.environ.items() if not k.startswith('QUARKD_')}

    def __call__(self, *options, code=0, **env):
        r = subprocess.run([self.quarkctl, *options], capture_output=True, text=True, timeout=60, check=False,
                           env=dict(self.env, **env), cwd=self.folder)
        assert r.returncode == code, r
        return r.stdout + r.stderr


@tap.test
def quarkctl_makes_keys_and_uses_them(case):
    with tempfile.TemporaryDirectory() as folder:
        ctl = Tool(case.quarkctl, folder)
        ctl('keygen', 'server.key')
        os.mkdir(os.path.join(folder, 'clients'), 0o755)
        ctl('keygen', 'ada.key', '--user', 'ada')
        ctl('keygen', 'op.key', '--user', 'op', '--role', 'operate')
        for name in ('ada', 'op'):
            os.rename(os.path.join(folder, name + '.key.pub'), os.path.join(folder, 'clients', name))
        ctl('keygen', 'eve.key')
        path = os.path.join(folder, 'ada.key')
        assert os.stat(path).st_mode & 0o777 == 0o600
        with open(path, encoding='utf-8') as f:
            secret = f.read()
        assert 'File exists' in ctl('keygen', 'ada.key', code=65)  # nothing is ever replaced
        with open(path, encoding='utf-8') as f:
            assert f.read() == secret
        ctl('keygen', code=64)
        ctl('keygen', 'x', '--role', 'king', code=64)
        ctl('keygen', 'x', '--user', 'a b', code=64)
        with open(os.path.join(folder, 'server.key.pub'), encoding='utf-8') as f:
            public = f.readline().split(' = ')[1].strip()
        options = ['--curve-key', os.path.join(folder, 'server.key'), '--curve-clients', os.path.join(folder, 'clients')]
        with case.daemon(*options) as d:
            where = ['--endpoint', d.endpoint]
            server = ['--server-key', 'server.key.pub']
            assert 'ready' in ctl('status', *where, *server, '--key', 'ada.key')
            assert d.log('opened: user ada, program quarkctl')
            assert 'ready' in ctl('status', *where, '--server-key', public, '--key', 'op.key')
            assert 'ready' in ctl('status', QUARKD_ENDPOINT=d.endpoint, QUARKD_SERVER_KEY='server.key.pub', QUARKD_KEY='ada.key')
            patient = where + ['--timeout', '30']  # an error is no lapse of time
            assert 'does not know the key' in ctl('status', *patient, *server, '--key', 'eve.key', code=78)
            assert 'uses CURVE' in ctl('status', *patient, code=78)
            assert 'not the daemon' in ctl('status', *patient, '--server-key', 'eve.key.pub', '--key', 'ada.key', code=78)
            assert 'is missing' in ctl('status', *where, *server, code=78)
            assert 'is missing' in ctl('status', *where, '--key', 'ada.key', code=78)
            assert 'no public key' in ctl('status', *where, '--server-key', 'server.key', '--key', 'ada.key', code=78)
            assert 'neither' in ctl('status', *where, '--server-key', 'x', '--key', 'ada.key', code=78)
            os.chmod(path, 0o640)
            assert 'chmod 600' in ctl('status', *where, *server, '--key', 'ada.key', code=78)
            os.chmod(path, 0o600)
            assert 'role operate' in ctl('shutdown', *patient, *server, '--key', 'ada.key', code=65)
            ctl('shutdown', *where, *server, '--key', 'op.key')
            assert d.wait() == 0
            assert not any(secret.strip() in line for line in d.lines)
        with case.daemon() as d:
            assert 'CURVE' in ctl('status', '--endpoint', d.endpoint, *server, '--key', 'ada.key', code=78)


@tap.test
def a_reader_is_told_at_once_that_it_may_not_submit(case):
    with guarded(case) as (d, keys), tempfile.TemporaryDirectory() as folder:
        reader = keys.add('watch', 'read')
        write(os.path.join(folder, 'key'), reader[2].decode() + '\n', 0o600)
        ctl = Tool(case.quarkctl, folder)
        text = ctl('propagator', '--source=point:0,0,0,0', '--out=x.h5', '--endpoint', d.endpoint, '--key', 'key', '--server-key',
                   keys.server_public.decode(), code=65)
        assert 'submit needs the role submit' in text, text


if __name__ == '__main__':
    the_case = Case(sys.argv[1])
    the_case.quarkctl = os.path.abspath(sys.argv[2])
    tap.run(the_case)
