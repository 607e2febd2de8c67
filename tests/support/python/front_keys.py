"""CURVE keys for tests of quarkd: of the server and its clients, and daemons that ask for them."""
import contextlib
import os
import tempfile

import zmq
import zmq.utils.monitor

from front_driver import TIMEOUT

FAILED_AUTH, FAILED = zmq.EVENT_HANDSHAKE_FAILED_AUTH, (zmq.EVENT_HANDSHAKE_FAILED_AUTH, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL,
                                                        zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)


class Keys:
    """Keys of a server and its clients, in files as quarkd takes them."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, 'clients')
        self.server_file = os.path.join(folder, 'server.key')
        os.mkdir(self.folder, 0o755)
        self.server_public, self.server_secret = zmq.curve_keypair()
        write(self.server_file, self.server_secret.decode() + '\n', 0o600)
        self.secrets = [self.server_secret.decode()]
        self.options = ['--curve-key', self.server_file, '--curve-clients', self.folder]

    def pair(self):
        """What Client(curve=...) takes, of a key that nobody knows yet."""
        public, secret = zmq.curve_keypair()
        self.secrets.append(secret.decode())
        return self.server_public, public, secret

    def authorise(self, name, curve, role='submit', user=None):
        write(os.path.join(self.folder, name),
              '# a client\nkey = %s\nuser = %s\nrole = %s\n' % (curve[1].decode(), user or name, role), 0o644)

    def add(self, name, role='submit', user=None):
        curve = self.pair()
        self.authorise(name, curve, role, user)
        return curve


def write(path, text, mode):
    """At once: whoever looks at the folder sees one change."""
    with tempfile.NamedTemporaryFile('w', delete=False) as f:
        f.write(text)
    os.chmod(f.name, mode)
    os.replace(f.name, path)


@contextlib.contextmanager
def guarded(case, *options, **more):
    """A daemon with keys, of which `operator` looks at its status; no secret may be in its log."""
    with tempfile.TemporaryDirectory() as folder:
        keys = Keys(folder)
        operator = keys.add('operator', 'operate')
        with case.daemon(*keys.options, *options, **more) as d:
            d.curve = operator
            yield d, keys
        for line in d.lines:
            assert not any(secret in line for secret in keys.secrets), 'a secret is in the log'
        os.chmod(keys.folder, 0o755)


def end_of_handshake(daemon, curve):
    """The event with which that of a control connection ends."""
    with daemon.context.socket(zmq.DEALER) as s:
        s.linger = 0
        if curve:
            s.curve_serverkey, s.curve_publickey, s.curve_secretkey = curve
        monitor = s.get_monitor_socket(addr='inproc://' + os.urandom(8).hex())
        s.connect(daemon.endpoint)
        try:
            while True:
                assert monitor.poll(int(1e3 * TIMEOUT)), 'neither in nor out'
                event = zmq.utils.monitor.recv_monitor_message(monitor)['event']
                if event in (zmq.EVENT_HANDSHAKE_SUCCEEDED, *FAILED):
                    return event
        finally:
            s.disable_monitor()


def refused(daemon, curve):
    """The event by which the handshake fails."""
    event = end_of_handshake(daemon, curve)
    assert event != zmq.EVENT_HANDSHAKE_SUCCEEDED, 'a stranger got in'
    return event
