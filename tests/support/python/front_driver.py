"""Starts quarkd and speaks its protocol as a client, byte by byte where a test wants that.

Needs python3-zmq, python3-protobuf, protoc and libxxhash. Import fails where one is missing.
"""
import ctypes
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading

import numpy as np
import zmq

import engine_driver
from engine_driver import qk

TIMEOUT = 60.0  # a machine that runs other tests, too, writes its journal slowly
MIB = 1 << 20
BIND, BOUND, UPLOAD, DOWNLOAD, UPLOAD_ZERO = 1, 2, 3, 4, 5
STATUS = {}
for line in open(os.path.join(engine_driver.ROOT, 'proto', 'status.h'), encoding='utf-8'):
    if m := re.match(r'\s*X\((\w+), (\d+), ', line):
        STATUS[m[1]] = int(m[2])

_xxhash = ctypes.CDLL('libxxhash.so.0')
_xxhash.XXH3_64bits.restype = ctypes.c_uint64
_xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def checksum(data):
    return _xxhash.XXH3_64bits(data, len(data))


def block_checksum(data):
    """That of the checksums of its blocks."""
    return checksum(b''.join(checksum(data[i:i + MIB]).to_bytes(8, 'little') for i in range(0, len(data), MIB)))


def frame(kind, request=0, rhs=0, payload=b'', field_bytes=0, offset=0, field_checksum=0, **wrong):
    """A data message; `wrong` replaces header fields after the checksums were made of the right ones."""
    values = dict(magic=b'QKDF', version=1, kind=kind, request=request, rhs=rhs, chunk_bytes=len(payload),
                  field_bytes=field_bytes, offset=offset, chunk_checksum=checksum(payload), field_checksum=field_checksum)
    keep_header_checksum = wrong.pop('keep_header_checksum', False)
    right = struct.pack('<4sHHQIIQQQQ', *values.values())
    values.update(wrong)
    header = struct.pack('<4sHHQIIQQQQ', *values.values())
    return header + struct.pack('<Q', checksum(right if keep_header_checksum else header)) + payload


def program(engine, folder):
    """A script is run by the interpreter that runs us: a program in the folder does that."""
    if not engine.endswith('.py'):
        return engine
    path = os.path.join(folder, 'engine')
    with open(path, 'w', encoding='utf-8') as f:
        f.write('#!/bin/sh\nexec "%s" "%s" "$@"\n' % (sys.executable, engine))
    os.chmod(path, 0o755)
    return path


class Daemon:
    """One quarkd, from start to end; a context manager that leaves no process behind."""

    def __init__(self, binary, *options, engine=None, gauge='fake', mass='0.1', dims=None, env=None, wait='ready: '):
        self.dir = tempfile.mkdtemp(prefix='qk-front-')
        self.environment = {**os.environ, 'QK_PROTO_PY': engine_driver.GENERATED.name, 'XDG_RUNTIME_DIR': self.dir,
                            'XDG_STATE_HOME': self.dir, **(env or {})}
        # what a sanitizer keeps aside is no growth
        self.environment['ASAN_OPTIONS'] = os.environ.get('ASAN_OPTIONS', '') + ':quarantine_size_mb=1'
        command = [binary, '--gauge', gauge, '--mass', mass, '--backend', os.environ.get('QK_BACKEND', 'cpu'),
                   '--solver', 'bicgstab']
        command += [] if '--config' in options else ['--log-level', 'debug']
        if not any(o.startswith('--listen') for o in options):
            command += ['--listen', 'tcp://127.0.0.1:0']
        command += ['--engine', program(engine, self.dir)] if engine else []
        command += ['--data-threads', os.environ['QK_DATA_THREADS']] if 'QK_DATA_THREADS' in os.environ else []
        command += ['--dims', dims] if dims else []
        self.process = subprocess.Popen(command + list(options), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        env=self.environment, text=True, errors='surrogateescape')
        self.lines, self.ended, self.news = [], False, threading.Condition()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        self.context = zmq.Context()
        self.endpoint = self.curve = None
        if m := self.log(r'listening on (\S+), data on ([^\s"]+)'):
            self.endpoint, self.data_endpoint = m[1], m[2]
        if wait:
            assert self.log(wait), 'quarkd has ended: ' + ''.join(self.lines[-5:])

    def _read(self):
        for line in self.process.stderr:
            with self.news:
                self.lines.append(line)
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def log(self, pattern, count=1):
        """Waits for the count-th line of the log that matches; None where the daemon has ended without it."""
        def found():
            hits = [m for m in (re.search(pattern, line) for line in self.lines) if m]
            return hits[count - 1] if len(hits) >= count else None
        with self.news:
            assert self.news.wait_for(lambda: found() or self.ended, TIMEOUT), 'no line with %s after %s' % (pattern, self.said())
            return found()

    def said(self):
        """The end of the log, for a test that fails."""
        return ''.join(self.lines[-40:]) + ('and quarkd has ended' if self.ended else '')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            if self.log('draining'):
                self.process.send_signal(signal.SIGINT)  # the second one stops it at once
        try:
            self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join()
        self.process.stderr.close()
        self.context.destroy(linger=0)
        shutil.rmtree(self.dir)

    def wait(self):
        """The exit code; checks that nothing is left behind."""
        code = self.process.wait(TIMEOUT)
        left = [n for n in os.listdir('/dev/shm') if n.startswith('quarkd-%d-' % self.process.pid)]
        assert not left, left
        assert not [n for n in os.listdir(self.dir) if n.startswith('quarkd-')], os.listdir(self.dir)
        return code

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def status(self, **asked):
        with Client(self, hello=False) as c:
            return c.status(**asked)

    def status_when(self, condition, **asked):
        """The first report that fulfils the condition: asks again and again."""
        with Client(self, hello=False) as c:
            for _ in range(20000):
                report = c.status(**asked)
                if condition(report):
                    return report
                c.control.poll(5)
        raise TimeoutError('the status never came:\n%s' % report)


class Client:
    """One client id with its two sockets. curve: the public key of the server, public and secret key of the client, as
    daemon.curve where it is None. routing_id: one of its own for both sockets. endpoint: which data endpoint; QK_DATA_ENDPOINT where it is not
    given, or the first if there are fewer. blocks: it understands, and sends, checksums of blocks."""

    def __init__(self, daemon, client_id=None, user='tester', hello=True, bind=True, curve=None, routing_id=None, endpoint=None, blocks=False):
        self.daemon, self.routing_id, self.blocks = daemon, routing_id, blocks
        self.curve = daemon.curve if curve is None else curve
        self.client_id = client_id or os.urandom(16)
        self.request = 0
        self.control = self._socket()
        self.control.connect(daemon.endpoint)
        self.data = self._socket()
        self.later = []
        if hello:
            self.hello(user)
        self.data.connect(self.data_endpoint(int(os.environ.get('QK_DATA_ENDPOINT', 0)) if endpoint is None else endpoint))
        if hello and bind:
            self.bind()

    def data_endpoint(self, endpoint):
        listed = list(self.welcome.extra_data_endpoint) if hasattr(self, 'welcome') else []
        first = listed.index(self.daemon.data_endpoint) if listed else 0
        return listed[(first + endpoint) % len(listed)] if endpoint < len(listed) else self.daemon.data_endpoint

    def _socket(self):
        s = self.daemon.context.socket(zmq.DEALER)
        s.setsockopt(zmq.LINGER, 0)
        if self.routing_id:
            s.setsockopt(zmq.ROUTING_ID, self.routing_id)
        if self.curve:
            s.curve_serverkey, s.curve_publickey, s.curve_secretkey = self.curve
        return s

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.control.close()
        self.data.close()

    # ---- messages

    def send(self, **body):
        if 'goodbye' in body:
            self.control.setsockopt(zmq.LINGER, 5000)  # it goes out, although the socket is closed at once
        self.control.send(qk.ClientMessage(**body).SerializeToString())

    def wait(self, socket):
        assert socket.poll(int(1e3 * TIMEOUT)), 'nothing comes from quarkd after ' + self.daemon.said()

    def receive(self):
        if self.later:
            return self.later.pop(0)
        self.wait(self.control)
        m = qk.ServerMessage.FromString(self.control.recv())
        name = m.WhichOneof('body')
        return name, getattr(m, name)

    def expect(self, wanted, skip=('progress', 'credit')):
        """The next message but for those in skip, which must be `wanted`."""
        while True:
            name, body = self.receive()
            if name == wanted:
                return body
            assert name in skip, 'got %s instead of %s: %s' % (name, wanted, body)

    def error(self, status, fatal=True):
        e = self.expect('error', skip=('progress', 'credit', 'result'))
        assert (e.status, e.fatal) == (STATUS[status], fatal), e
        return e

    def hello(self, user='tester'):
        self.send(hello=qk.Hello(version=1, client_id=self.client_id, user=user, program='test', feature=[8] if self.blocks else []))
        self.welcome = self.expect('welcome')
        return self.welcome

    def bind(self, token=None):
        self.data.send(frame(BIND, payload=self.client_id + (token or self.welcome.token), field_bytes=32))
        if token is None:
            assert self.chunk()['kind'] == BOUND

    def status(self, **asked):
        self.send(status=qk.StatusRequest(**asked))
        return self.expect('status', skip=('progress', 'credit', 'result'))

    def ping(self):
        """Returns when the server has handled all that was sent on the control channel before."""
        self.send(ping=qk.Ping())
        while True:
            name, body = self.receive_new()
            if name == 'pong':
                return
            self.later.append((name, body))

    def receive_new(self):
        later, self.later = self.later, []
        try:
            return self.receive()
        finally:
            self.later = later + self.later

    # ---- requests

    def submit(self, nrhs=1, request=None, expect='accepted', **more):
        if request is None:
            self.request += 1
            request = self.request
        body = dict(request=request, nrhs=nrhs, dtype=qk.DTYPE_F64, tol=1e-8, source=qk.SOURCE_UPLOAD, sink=qk.SINK_DOWNLOAD)
        body.update(more)
        if 'column' not in body and body['source'] not in (qk.SOURCE_UPLOAD, qk.SOURCE_FILE):
            body['column'] = [qk.Column(seed=i) for i in range(nrhs)]
        self.send(submit=qk.Submit(**body))
        return self.expect(expect) if expect else None

    def contract(self, a, request=None, expect='accepted', deadline_ms=0, source=15, **more):
        """One meson, and what `more` adds to the contraction; `source` tells the fake engine what to do."""
        if request is None:
            self.request += 1
            request = self.request
        more.setdefault('channel', [qk.Channel(kind=qk.CHANNEL_MESON, source=source)])
        self.send(contract=qk.Contract(request=request, deadline_ms=deadline_ms,
                                       contraction=qk.Contraction(request_a=a, **more)))
        return self.expect(expect) if expect else None

    def keep(self, nrhs=12, **more):
        """The number of a kept request that has ended; column i begins with the number i + 1."""
        more.setdefault('source', qk.SOURCE_Z2)
        if more['source'] == qk.SOURCE_Z2:
            more.setdefault('column', [qk.Column(seed=i + 1) for i in range(nrhs)])
        request = self.submit(nrhs, sink=qk.SINK_KEEP, **more).request
        assert all(r.status == 0 and r.bytes > 0 for r in self.results(nrhs))
        return request

    def upload(self, accepted, fields, chunk=MIB, begin=0):
        """All fields in chunks, under the credit that comes."""
        until = accepted.upload_until
        for rhs, field in enumerate(fields):
            data = field.tobytes()
            assert len(data) == accepted.field_bytes
            for offset in range(0, len(data), chunk):
                piece = data[offset:offset + chunk]
                end = rhs * len(data) + offset + len(piece)
                if end <= begin:
                    continue
                while end > until:
                    name, body = self.receive_new()
                    if name == 'credit':
                        until = body.until
                    else:
                        self.later.append((name, body))
                self.data.send(self.piece(accepted.request, rhs, data, offset, chunk))

    def piece(self, request, rhs, data, offset, chunk):
        """The message with the bytes of the field from offset on."""
        payload = data[offset:offset + chunk]
        last = offset + len(payload) == len(data)
        return frame(UPLOAD, request, rhs, payload, len(data), offset, (block_checksum if self.blocks else checksum)(data) if last else 0,
                     version=1 + self.blocks)

    def chunk(self):
        """The next data message, checked, as a dict with its payload."""
        self.wait(self.data)
        message = self.data.recv()
        names = ('magic', 'version', 'kind', 'request', 'rhs', 'chunk_bytes', 'field_bytes', 'offset', 'chunk_checksum', 'field_checksum')
        head = dict(zip(names, struct.unpack('<4sHHQIIQQQQ', message[:56])))
        head['payload'] = message[64:]
        assert struct.unpack('<Q', message[56:64])[0] == checksum(message[:56])
        assert head['chunk_bytes'] == len(head['payload']) and checksum(head['payload']) == head['chunk_checksum']
        return head

    def fetch(self, result, dtype=np.complex128, **more):
        """The whole solution under one grant; {'from': 0} where it may have been sent before."""
        self.send(grant=qk.Grant(request=result.request, rhs=result.rhs, until=result.bytes, **more))
        data = b''
        while len(data) < result.bytes:
            c = self.chunk()
            assert (c['kind'], c['request'], c['rhs'], c['offset']) == (DOWNLOAD, result.request, result.rhs, len(data))
            data += c['payload']
            assert c['version'] == 1 + self.blocks
        assert c['field_checksum'] == (block_checksum if self.blocks else checksum)(data)
        return np.frombuffer(data, dtype)

    def result_of(self, request):
        """The next result of this request; those of others on the way are dropped."""
        result = self.expect('result')
        while result.request != request:
            result = self.expect('result')
        return result

    def results(self, count):
        return sorted((self.expect('result') for _ in range(count)), key=lambda r: r.rhs)

    def ack(self, request, *rhs):
        self.send(ack=qk.Ack(request=request, rhs=rhs))

    def solve(self, fields, real=np.complex128, **more):
        """Upload, wait, fetch, acknowledge: [(result, solution or None)]."""
        accepted = self.submit(len(fields), **more)
        self.upload(accepted, fields)
        out = [(r, self.fetch(r, real) if r.bytes else None) for r in self.results(len(fields))]
        self.ack(accepted.request)
        return out
