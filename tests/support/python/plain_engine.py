"""Plays the front to a quark-engine with Python alone: no zmq, protobuf or numpy, which few machines with a GPU have.

The messages are those of proto/engine.proto, which is read here; ZeroMQ is the library that the engine itself is linked with.
"""
import ctypes
import ctypes.util
import itertools
import os
import re
import shutil
import struct
import subprocess
import tempfile
import time

PROTO = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'proto')
TIMEOUT = 120.0  # seconds without any news of the engine but heartbeats

class Failed(Exception):
    """The engine, or another program, did not do as it was told."""


# ---- messages: dicts of fields; those that repeat are lists -----------------------------------------

FIELD = re.compile(r'(?:(required|optional|repeated)\s+)?([\w.]+)\s+(\w+)\s*=\s*(\d+)\s*(\[[^\]]*\])?\s*;')
FIXED = {'double': '<d', 'fixed64': '<Q', 'float': '<f', 'fixed32': '<I'}


def read_proto(*names):
    """({message: {field: (number, type, repeated)}}, {enum value: number}) of proto2 files; later ones take precedence."""
    messages, values = {}, {}
    for name in names:
        with open(os.path.join(PROTO, name), encoding='utf-8') as f:
            text = re.sub(r'//.*', '', f.read())
        text = re.sub(r'oneof\s+\w+\s*\{([^}]*)\}', r'\1', text)
        for kind, title, body in re.findall(r'\b(message|enum)\s+(\w+)\s*\{([^}]*)\}', text):
            if kind == 'enum':
                values.update((word, int(n)) for word, n in re.findall(r'(\w+)\s*=\s*(\d+)', body))
            else:
                messages[title] = {field: (int(n), kind, label == 'repeated')
                                   for label, kind, field, n, _ in FIELD.findall(body)}
    return messages, values


MESSAGES, VALUES = read_proto('quark.proto', 'engine.proto')
MESSAGES['Load'].update(mass=(3, 'double', False), csw=(4, 'double', False))  # engines of version 0.1 need them, later ones skip them


def varint(n):
    n &= 2**64 - 1  # negative int32 are sent as 64 bits
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def encode_value(number, kind, value):
    if kind in FIXED:
        return varint(number << 3 | (1 if kind in ('double', 'fixed64') else 5)) + struct.pack(FIXED[kind], value)
    if kind in ('string', 'bytes') or kind in MESSAGES:
        data = encode(kind, value) if kind in MESSAGES else value.encode() if kind == 'string' else value
        return varint(number << 3 | 2) + varint(len(data)) + data
    if isinstance(value, str):
        value = VALUES[value]
    if kind == 'sint32':
        value = value * 2 if value >= 0 else -2 * value - 1
    return varint(number << 3) + varint(int(value))


def encode(message, fields):
    """Lists are never packed: proto2 parsers take both forms."""
    out = b''
    for name, value in fields.items():
        number, kind, repeated = MESSAGES[message][name]
        out += b''.join(encode_value(number, kind, v) for v in (value if repeated else [value]))
    return out


def take_varint(data, at):
    n = shift = 0
    while True:
        byte = data[at]
        at += 1
        n |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return n, at


def take_value(wire, data, at):
    if wire == 0:
        return take_varint(data, at)
    size = {1: 8, 5: 4}.get(wire)
    if size is None:
        size, at = take_varint(data, at)
    return data[at:at + size], at + size


def convert(kind, value):
    if kind in FIXED:
        return struct.unpack(FIXED[kind], value)[0]
    if kind in MESSAGES:
        return decode(kind, value)
    return value.decode() if kind == 'string' else value


def decode(message, data):
    """Fields that are not known are left out, and so are those that are not there."""
    names = {number: (name, kind, repeated) for name, (number, kind, repeated) in MESSAGES[message].items()}
    out, at = {}, 0
    while at < len(data):
        key, at = take_varint(data, at)
        value, at = take_value(key & 7, data, at)
        if key >> 3 not in names:
            continue
        name, kind, repeated = names[key >> 3]
        if repeated:
            out.setdefault(name, []).append(convert(kind, value))
        else:
            out[name] = convert(kind, value)
    return out


# ---- ZeroMQ -----------------------------------------------------------------------------------------

DEALER, LINGER, RCVTIMEO, SNDTIMEO = 5, 17, 27, 28


def linked(binary):
    """{name: path} of the shared libraries of a program; none of a script that starts one."""
    out = subprocess.run(['ldd', binary], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return dict(re.findall(r'(\S+) => (/\S+)', out))


def zeromq(binary):
    """The library that the engine uses, or that of the machine."""
    found = [path for name, path in linked(binary).items() if name.startswith('libzmq')] or [ctypes.util.find_library('zmq')]
    if found[0] is None:
        raise Failed('no libzmq here')
    return found[0]


class Socket:
    """A DEALER bound to an endpoint."""

    def __init__(self, path, endpoint):
        self.zmq = ctypes.CDLL(path, use_errno=True)
        for name in 'zmq_ctx_new', 'zmq_socket':
            getattr(self.zmq, name).restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(self.zmq.zmq_ctx_new())
        self.socket = ctypes.c_void_p(self.zmq.zmq_socket(self.context, DEALER))
        for option, ms in (LINGER, 0), (RCVTIMEO, 500), (SNDTIMEO, 10000):
            self.zmq.zmq_setsockopt(self.socket, option, ctypes.byref(ctypes.c_int(ms)), ctypes.c_size_t(4))
        if self.zmq.zmq_bind(self.socket, endpoint.encode()) != 0:
            raise OSError('cannot bind %s: errno %d' % (endpoint, ctypes.get_errno()))
        self.buffer = ctypes.create_string_buffer(1 << 17)

    def send(self, data):
        if self.zmq.zmq_send(self.socket, data, ctypes.c_size_t(len(data)), 0) != len(data):
            raise TimeoutError('the engine takes no messages')

    def receive(self):
        """A message; None where none comes for half a second."""
        n = self.zmq.zmq_recv(self.socket, self.buffer, ctypes.c_size_t(len(self.buffer)), 0)
        return self.buffer.raw[:n] if n >= 0 else None

    def close(self):
        self.zmq.zmq_close(self.socket)
        self.zmq.zmq_ctx_term(self.context)


# ---- shared memory ----------------------------------------------------------------------------------


class Segment:
    """A shared-memory object; data: bytes, or how many of them. A context manager that removes it."""
    count = itertools.count()

    def __init__(self, data):
        self.name = '/qk-plain-%d-%d' % (os.getpid(), next(Segment.count))
        self.path = '/dev/shm' + self.name
        with open(self.path, 'xb') as f:
            f.truncate(data) if isinstance(data, int) else f.write(data)

    def read(self):
        with open(self.path, 'rb') as f:
            return f.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.unlink(self.path)


# ---- the engine -------------------------------------------------------------------------------------


class Engine:
    """One quark-engine from start to end; a context manager that leaves nothing behind."""

    def __init__(self, binary, launcher=(), env=None, level='warn'):
        self.dir = tempfile.mkdtemp(prefix='qk-plain-')
        self.serials, self.pinged, self.process, self.socket, self.hello = 0, 0.0, None, None, None
        endpoint = 'ipc://%s/front' % self.dir
        try:
            self.socket = Socket(zeromq(binary), endpoint)
            with open(os.path.join(self.dir, 'log'), 'wb') as log:
                self.process = subprocess.Popen([*launcher, binary, '--front', endpoint, '--log-level', level],
                                                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **(env or {})})
            self.hello = self.expect('hello')
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process is not None:
            if self.process.poll() is None:
                try:
                    self.send('stop')  # MPI leaves its shared memory behind when it is killed
                    self.process.wait(20)
                except (OSError, subprocess.TimeoutExpired):
                    self.process.kill()
            self.process.wait()
        if self.socket is not None:
            self.socket.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def log(self, most=500):
        with open(os.path.join(self.dir, 'log'), encoding='utf-8', errors='replace') as f:
            return f.read().strip()[-most:]

    def send(self, body, **fields):
        self.socket.send(encode('FrontMessage', {body: fields}))

    def receive(self):
        """(name of the body, body) of the next message that is no heartbeat."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            if self.hello and time.monotonic() > self.pinged + 1 and self.process.poll() is None:
                self.pinged = time.monotonic()
                self.send('ping')
            data = self.socket.receive()
            if data is None and self.process.poll() is not None:
                raise Failed('the engine has left with %d: %s' % (self.process.poll(), self.log()))
            if data is not None:
                (name, body), = decode('EngineMessage', data).items()
                if name != 'heartbeat':
                    return name, body
        raise Failed('no message from the engine in %g s: %s' % (TIMEOUT, self.log()))

    def expect(self, wanted, skip=('load_progress', 'fill_progress', 'multigrid')):
        while True:
            name, body = self.receive()
            if name == wanted:
                return body
            if name not in skip:
                raise Failed('%s instead of %s: %s: %s' % (name, wanted, body, self.log()))

    def load(self, **fields):
        """READY. mass, csw: of Wilson-clover, or Wilson if csw is 0; the others are fields of LOAD."""
        csw = fields['csw']
        given = [dict(key=key, value=repr(float(fields[key]))) for key in ('mass', 'csw')]
        self.send('load', action='wilson-clover' if csw else 'wilson', parameter=given if csw else given[:1], **fields)
        return self.expect('ready')

    def fill(self, entry, **fields):
        """The serial."""
        self.serials += 1
        self.send('fill', entry=entry, serial=self.serials, **fields)
        return self.serials

    def contract(self, **fields):
        """CONTRACTED."""
        self.serials += 1
        self.send('contract', serial=self.serials, **fields)
        return self.expect('contracted')
