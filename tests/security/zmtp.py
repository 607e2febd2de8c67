"""ZMTP byte by byte, by plain sockets: what a peer may send that uses no ZeroMQ, or uses it as libzmq would not."""
import contextlib
import socket
import struct
import time

TIMEOUT = 20.0
COMMAND, LONG, MORE = 4, 2, 1


def address(endpoint):
    host, port = endpoint[len('tcp://'):].rsplit(':', 1)
    return host, int(port)


def greeting(minor=0, mechanism=b'NULL'):
    """Of ZMTP 3."""
    return b'\xff' + bytes(7) + b'\x01\x7f' + bytes([3, minor]) + mechanism.ljust(20, b'\0') + bytes(32)


def frame(body, flags=0):
    if len(body) > 255:
        return bytes([flags | LONG]) + struct.pack('>Q', len(body)) + body
    return bytes([flags, len(body)]) + body


def ready(routing_id=b''):
    """The READY of a DEALER; without an id of its own it gets one."""
    properties = [(b'Socket-Type', b'DEALER')] + ([(b'Identity', routing_id)] if routing_id else [])
    return frame(b'\x05READY' + b''.join(bytes([len(n)]) + n + struct.pack('>I', len(v)) + v for n, v in properties), COMMAND)


def old_frame(body, more=False):
    """Of ZMTP 1."""
    return bytes([len(body) + 1, more]) + body


class Peer:
    """A connection to an endpoint of tcp."""

    def __init__(self, endpoint):
        self.socket = socket.create_connection(address(endpoint), TIMEOUT)
        self.input = b''

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def _need(self, n):
        """False: the connection has ended."""
        while len(self.input) < n:
            try:
                more = self.socket.recv(65536)
            except ConnectionResetError:
                more = b''
            if not more:
                return False
            self.input += more
        return True

    def _take(self, n):
        taken, self.input = self.input[:n], self.input[n:]
        return taken

    def greet(self, routing_id=b''):
        self.send(greeting() + ready(routing_id))
        assert self._need(64) and self._take(64)[0] == 0xff
        command = self.receive(commands=True)
        assert command and command.startswith(b'\x05READY'), command

    def say(self, *messages):
        """Each as one frame, all of them at once."""
        self.send(b''.join(frame(m) for m in messages))

    def receive(self, commands=False):
        """The next message; None: the connection has ended."""
        while True:
            if not self._need(2):
                return None
            flags = self.input[0]
            head = 9 if flags & LONG else 2
            if not self._need(head):
                return None
            n = struct.unpack('>Q', self.input[1:9])[0] if flags & LONG else self.input[1]
            if not self._need(head + n):
                return None
            body = self._take(head + n)[head:]
            if commands or not flags & COMMAND:
                return body

    def ended(self):
        """Waits for the end of the connection; what came before it."""
        before = b''
        while self._need(1):
            before += self._take(len(self.input))
        return before


@contextlib.contextmanager
def peers(endpoint, count):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Peer(endpoint)) for _ in range(count)]


def heir(endpoint, routing_id, *messages, heard=lambda p: p.receive()):
    """A peer with the routing id of a connection that has ended, which says these messages: tries until the server has noticed that,
    which `heard` tells by something that is true, or a timeout of its socket. The peer, and that."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        p = Peer(endpoint)
        p.greet(routing_id)
        p.say(*messages)
        p.socket.settimeout(0.3)
        with contextlib.suppress(TimeoutError):
            if (sign := heard(p)):
                p.socket.settimeout(TIMEOUT)
                return p, sign
        p.socket.close()
    raise TimeoutError('the routing id never became free')
