#!/usr/bin/env python3
"""Whole sessions of quarkd in random order, valid and invalid, of several peers: test_front_fuzz.py QUARKD [SEED [SECONDS]]

Peers submit, upload, fetch, cancel, leave, come back under their own or another's name, and send what no client would; beside
them an honest client works all the time. Judged by
  - the honest client: every one of its right-hand sides is solved, and fetched whole;
  - each peer: a RESULT only of what it submitted, once for each time it asked, always with the same verdict;
  - the end: all that was accepted has ended once by the daemon's own count, and memory, sessions and requests are back to none;
  - the daemon: alive, no word of a sanitizer, nothing left behind, exit code 0.
Prints the seed; the same seed does the same things, though not with the same timing.
"""
import contextlib
import itertools
import os
import random
import re
import sys
import tempfile
import time

import tap

try:
    import numpy as np
    import zmq
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from front_case import Case, fake
    from front_driver import BIND, DOWNLOAD, MIB, STATUS, UPLOAD, Client, checksum, frame, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

DIMS, SITES, PEERS = '4x4x4x4', 256, 8
SETUPS = ('main', 'default', 'a', 'b', 'c', 'd', 'e')
IDENTITIES = 4096
BIG = (0, 1, 2, 63, 64, 1023, 1024, 1025, 2 ** 31 - 1, 2 ** 32 - 1, 2 ** 63, 2 ** 64 - 1)
LOSES_ENGINE = {fake.DIE, fake.STALL, fake.GARBAGE, fake.NO_SUCH_SLOT, fake.FATAL, fake.DEAF}
OPTIONS = ('--slots', '3', '--lease', '2', '--fetch-time', '1', '--keep-time', '1', '--max-memory', '16M', '--user-memory', '6M', '--user-rhs',
           '40')


def with_bytes_for_strings(kind):
    """The kind of message as quarkd reads it: what is no UTF-8 is a string, too."""
    file = descriptor_pb2.FileDescriptorProto()
    kind.DESCRIPTOR.file.CopyToProto(file)
    for message in file.message_type:
        for field in message.field:
            if field.type == field.TYPE_STRING:
                field.type = field.TYPE_BYTES
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName(kind.DESCRIPTOR.full_name))


READ_AS_BYTES = with_bytes_for_strings(qk.ClientMessage)


class Identity:
    """A client id, over all its connections. Its requests have numbers that no other's have, so that it knows what is another's."""

    def __init__(self, rng, place):
        self.id, self.place = rng.randbytes(16), place
        self.asked = {}     # request -> times that it was submitted
        self.verdict = {}   # (token of the session, request, rhs) -> status
        self.seen = {}      # (token of the session, request, rhs) -> RESULTs
        self.newest = 0
        self.token = bytes(16)


class Peer:
    """One connection of an identity, with what it has heard."""

    def __init__(self, fuzz, identity):
        self.fuzz, self.rng, self.who = fuzz, fuzz.rng, identity
        self.speaks_for = [identity]  # all that the daemon may take it for
        self.connect()
        self.token, self.late = bytes(12), bytes(16)
        self.judged = True  # what comes is this identity's
        self.requests = {}  # number -> [nrhs, field_bytes, sent, until]
        self.ended = []     # (request, rhs, bytes)

    def connect(self):
        self.control, self.data = (self._connect(e) for e in (self.fuzz.daemon.endpoint, self.fuzz.daemon.data_endpoint))

    def _connect(self, endpoint):
        s = self.fuzz.daemon.context.socket(zmq.DEALER)
        s.linger = 0
        s.connect(endpoint)
        return s

    def close(self):
        self.control.close()
        self.data.close()

    @staticmethod
    def _post(socket, *parts):
        try:
            socket.send_multipart(parts, zmq.NOBLOCK)
        except zmq.Again:
            pass  # a queue that is full: the message is lost, as messages are

    def send(self, **body):
        self._post(self.control, qk.ClientMessage(**body).SerializeToString())

    # ---- what comes back

    def listen(self):
        while self.control.poll(0):
            m = qk.ServerMessage.FromString(self.control.recv())
            name = m.WhichOneof('body')
            getattr(self, 'on_' + name, lambda body: None)(getattr(m, name))
        while self.data.poll(0):
            head = self.data.recv()
            assert head[:4] == b'QKDF' and len(head) <= MIB + 64

    def on_welcome(self, m):
        self.token, self.who.token, self.late = m.token[:12], m.token, self.who.token  # the rest of it is another one each time
        if self.rng.random() < 0.8:
            self.bind()

    def on_error(self, m):
        if m.fatal and self.rng.random() < 0.8:
            self.hello()

    def on_accepted(self, m):
        assert not self.judged or m.request in self.who.asked, 'ACCEPTED of a request that was not made: %s' % m
        nrhs = self.fuzz.made.get((self.who.id, m.request)) or 1  # none: what was accepted is a mutant of it
        self.requests[m.request] = [nrhs, m.field_bytes, m.upload_next, m.upload_until]

    def on_attached(self, m):
        self.on_accepted(m.accepted)

    def on_credit(self, m):
        if m.request in self.requests:
            self.requests[m.request][3] = m.until

    def on_result(self, m):
        key, who = (self.token, m.request, m.rhs), self.who
        self.ended.append((m.request, m.rhs, m.bytes))
        if not self.judged:
            return
        assert m.request in who.asked, 'RESULT of a request that was not made: %s' % m
        who.seen[key] = who.seen.get(key, 0) + 1
        assert who.seen[key] <= who.asked[m.request], 'RESULT twice: %s' % m
        assert who.verdict.setdefault(key, m.status) == m.status, 'another verdict: %s' % m

    # ---- what a client does

    def number(self):
        """A request, most often one that there is."""
        if self.requests and self.rng.random() < 0.85:
            return self.rng.choice(list(self.requests))
        return self.rng.choice(BIG)

    def rhs_of(self, request):
        nrhs = self.requests[request][0] if request in self.requests else 1
        return self.rng.randrange(nrhs) if self.rng.random() < 0.9 else self.rng.choice(BIG) % 2 ** 32

    def hello(self):
        user = self.rng.choice(['ada', 'bob', 'eve', '', 'x' * 64])
        self.send(hello=qk.Hello(version=1, client_id=self.who.id, user=user, program='fuzz'))

    def bind(self):
        token = self.late if self.rng.random() < 0.1 else self.who.token
        self._post(self.data, frame(BIND, payload=self.who.id + token, field_bytes=32))

    def column(self, source):
        r, noise = self.rng, source in (qk.SOURCE_Z2, qk.SOURCE_Z4)
        c = qk.Column(t=r.randrange(4), spin=r.randrange(4), colour=r.randrange(3))
        if r.random() < 0.2:
            c.flavour = r.choice([0, 1, 1, -1, 2, 2 ** 31 - 1, -2 ** 31])
        if source == qk.SOURCE_POINT:
            c.x, c.y, c.z = (r.randrange(4) for _ in range(3))
        elif source == qk.SOURCE_SEQUENTIAL:
            c.request, c.rhs, c.gamma = self.number(), r.randrange(12), r.randrange(16)
            c.spin = c.colour = 0
        elif noise:
            c.seed, c.t_every = r.getrandbits(64), r.choice([0, 0, 2])
        if r.random() < 0.04:
            setattr(c, r.choice(['x', 't', 'spin', 'px']), r.choice([-2, 4, 2 ** 31 - 1, -2 ** 31]))
        if r.random() < 0.04:
            setattr(c, r.choice(['t_every', 'rhs', 'gamma']), r.choice(BIG) % 2 ** 32)
        return c

    def smearing(self):
        r = self.rng
        links = r.choice([qk.LINK_SMEAR_NONE, qk.LINK_SMEAR_APE, qk.LINK_SMEAR_STOUT, qk.LINK_SMEAR_HYP])
        return qk.Smearing(alpha=r.choice([0.5, 2, -1 / 6, float('nan')]), steps=r.choice([0, 3, 1001]), links=links,
                           link_param=[0.1] * r.randrange(4), link_steps=r.choice([1, 101]))

    def file(self, kind):
        """Of all kinds, below the root and elsewhere; sources are most often as long as one right-hand side."""
        r, root = self.rng, self.fuzz.root
        names = ['one', 'one', 'half', 'link', 'none', 'in', '../x', '', '\x01', 'n\u00e4chste', 'x' * 300]
        outputs = ['%d' % r.randrange(20), 'in/%d' % r.randrange(20), 'link/y']
        f = qk.File(path=r.choice([root] * 20 + ['', '/etc', root + '2']) + '/' + r.choice(names + 9 * outputs if kind else names))
        if r.random() < 0.1:
            f.offset = r.choice([1, 64, 2 ** 60, 2 ** 64 - 1])
        if r.random() < 0.1:
            f.size = r.choice(BIG)
        return f

    def next_number(self):
        if self.rng.random() < 0.98:
            newest = self.who.newest + self.rng.choice([1, 1, 1, 5])
            for who in self.speaks_for:
                who.newest = max(who.newest, newest)
            return newest * IDENTITIES + self.who.place
        return self.number()

    def submit(self):
        r = self.rng
        source = r.choice([qk.SOURCE_UPLOAD] * 4 + [qk.SOURCE_POINT, qk.SOURCE_WALL, qk.SOURCE_Z2, qk.SOURCE_Z4, qk.SOURCE_SEQUENTIAL])
        nrhs = r.choice([1, 1, 2, 3, 5, 12]) if r.random() < 0.97 else r.choice(BIG) % 2 ** 32
        s = qk.Submit(request=self.next_number(), nrhs=nrhs, dtype=r.choice([qk.DTYPE_F32, qk.DTYPE_F64]), tol=1e-8, source=source,
                      sink=r.choice([qk.SINK_DOWNLOAD, qk.SINK_DOWNLOAD, qk.SINK_NONE, qk.SINK_KEEP]), priority=r.randrange(10))
        s.max_iter = r.choice([100] * 12 + [fake.HOLD, fake.PROGRESS, fake.OVERSTATE, fake.STALE_SERIAL, fake.ODD_STATUS])
        if s.max_iter in (fake.HOLD, fake.PROGRESS) or r.random() < 0.1:
            s.deadline_ms = r.choice([1, 30, 200])
        if r.random() < 0.1:
            s.detach_ms = r.choice([1, 100, 500, 2 ** 64 - 1])
        if r.random() < self.fuzz.kill:
            s.max_iter = r.choice([fake.DIE, fake.GARBAGE, fake.NO_SUCH_SLOT, fake.FATAL])
        if source != qk.SOURCE_UPLOAD:
            s.column.extend(self.column(source) for _ in range(min(nrhs, 20)))
        if r.random() < 0.1:
            s.source = qk.SOURCE_FILE
            s.source_file.CopyFrom(self.file(0))
            del s.column[:]
        if r.random() < 0.1:
            s.sink = qk.SINK_FILE
            s.sink_file.CopyFrom(self.file(1))
        if r.random() < 0.05:  # of vectors that are not there
            s.sink, s.project, s.project_count = qk.SINK_PROJECT, r.choice(['low', '', '../x']), r.choice([0, 4, 2 ** 32 - 1])
        if r.random() < 0.1:
            s.smear.CopyFrom(self.smearing())
            if r.random() < 0.2:
                s.smear.shift = r.choice([1, 7, 8, 2 ** 32 - 1])
        if r.random() < 0.05:
            setattr(s, *r.choice([('tol', float('nan')), ('tol', 2), ('max_iter', 0), ('max_iter', 2 ** 63), ('keep_ms', 2 ** 63),
                                  ('priority', 10), ('flavour', -1), ('flavour', 2), ('deadline_ms', 2 ** 64 - 1), ('setup', 'x' * 70)]))
        if r.random() < 0.2:
            s.work, s.dagger, s.parity, s.schur = r.choice([0, 0, *range(8)]), r.random() < 0.5, r.randrange(3), r.choice([0, 0, 1, 2])
        if r.random() < 0.2:
            s.setup = r.choice(SETUPS)
        self.ask(s.request, nrhs, 'submit', s)

    def contract(self):
        r = self.rng
        kind = r.choice([qk.CHANNEL_MESON, qk.CHANNEL_NUCLEON, qk.CHANNEL_DELTA, qk.CHANNEL_CORNER])
        c = qk.Contraction(request_a=self.number(), channel=[qk.Channel(kind=kind, source=r.randrange(12, 17))] * r.choice([0, 1, 2, 600]))
        c.momentum.extend(r.randrange(-4, 5) for _ in range(r.choice([0, 3, 6, 7])))
        c.origin.extend(r.randrange(5) for _ in range(r.choice([0, 4, 4, 3])))
        if r.random() < 0.3:
            c.request_b = self.number()
        m = qk.Contract(request=self.next_number(), contraction=c, deadline_ms=r.choice([0, 0, 1]))
        self.ask(m.request, 1, 'contract', m)

    def note(self, request):
        for who in self.speaks_for:
            who.asked[request] = who.asked.get(request, 0) + 1

    def ask(self, request, nrhs, name, message):
        self.note(request)
        self.fuzz.made.setdefault((self.who.id, request), nrhs)
        self.fuzz.last[self.who.id] = (request, nrhs, name, message)
        self.send(**{name: message})

    def again(self):
        if self.who.id in self.fuzz.last:
            self.ask(*self.fuzz.last[self.who.id])

    def attach(self):
        request = self.number()
        self.note(request)
        self.send(attach=qk.Attach(request=request))

    def upload(self):
        """The next chunks of a request, as credit allows."""
        open_ones = [n for n, (nrhs, size, sent, until) in self.requests.items() if sent < until]
        if not open_ones:
            return
        number = self.rng.choice(open_ones)
        state = self.requests[number]
        for _ in range(self.rng.choice([1, 1, 3, 20])):
            nrhs, size, sent, until = state
            rhs, offset = divmod(sent, size)
            if rhs >= nrhs or sent >= until:
                return
            n = min(size - offset, self.rng.choice([1, 1000, 65536, MIB]), until - sent)
            payload = self.fuzz.zeros[:n]
            last = offset + n == size
            self._post(self.data, frame(UPLOAD, number, rhs, payload, size, offset, self.fuzz.sum_of_zeros(size) if last else 0))
            state[2] += n

    def grant(self):
        if self.ended and self.rng.random() < 0.9:
            request, rhs, size = self.rng.choice(self.ended)
            until = self.rng.choice([size, size, size // 2, size + 1, 2 ** 64 - 1])
            grant = qk.Grant(request=request, rhs=rhs, until=until)
            if self.rng.random() < 0.3:
                setattr(grant, 'from', self.rng.choice([0, size // 3, until, 2 ** 64 - 1]))
        else:
            grant = qk.Grant(request=self.number(), rhs=self.rhs_of(self.number()), until=self.rng.choice(BIG))
        self.send(grant=grant)

    def some_rhs(self, request):
        return [self.rhs_of(request) for _ in range(self.rng.choice([0, 0, 1, 3]))]

    def ack(self):
        request = self.rng.choice(self.ended)[0] if self.ended and self.rng.random() < 0.9 else self.number()
        self.send(ack=qk.Ack(request=request, rhs=self.some_rhs(request)))

    def cancel(self):
        request = self.number()
        self.send(cancel=qk.Cancel(request=request, rhs=self.some_rhs(request)))

    def release(self):
        self.send(release=qk.Release(request=self.number()))

    def status(self):
        self.send(status=qk.StatusRequest())

    def load(self):
        r = self.rng
        m = qk.Load(name=r.choice(SETUPS), gauge='builtin:fake' + r.choice(['', '', ':refuse=104', ':digest=8', ':die']))
        if r.random() < 0.3:
            setattr(m, *r.choice([('kappa', 0), ('mass', float('nan')), ('csw', 1e9), ('boundary', 'x'), ('solver', 'y'), ('slots', 2 ** 32 - 1),
                                  ('name', '../x'), ('name', 'x' * 70), ('gauge', '/etc/passwd'), ('gauge', 'z' * 5000)]))
        self.send(load=m)

    def drop(self):
        self.send(drop=qk.Drop(name=self.rng.choice(SETUPS), now=self.rng.random() < 0.5))

    def make_default(self):
        self.send(make_default=qk.MakeDefault(name=self.rng.choice(['main', 'nobody', '\n'])))

    def ping(self):
        self.send(ping=qk.Ping())

    def goodbye(self):
        self.send(goodbye=qk.Goodbye())

    # ---- what no client does

    def bad_hello(self):
        h = qk.Hello(version=1, client_id=self.who.id)
        setattr(h, *self.rng.choice([('version', 2), ('client_id', b''), ('client_id', bytes(17)), ('user', 'x' * 65), ('program', 'y' * 129),
                                     ('client_id', self.rng.randbytes(16)), ('user', '\n\x1b[2J')]))
        self.send(hello=h)

    def stolen_hello(self):
        """On another connection it takes the session over; on one that has a session, which stays, it is refused."""
        other = self.rng.choice(self.fuzz.peers)
        if self.rng.random() < 0.5:
            self.close()
            self.connect()
        self.send(hello=qk.Hello(version=1, client_id=other.who.id, user='eve'))
        self.who = other.who
        self.speaks_for.append(other.who)
        self.judged = False

    def bad_bind(self):
        other = self.rng.choice(self.fuzz.peers)
        token = self.rng.choice([bytes(16), other.who.token])
        self._post(self.data, frame(BIND, payload=self.who.id + token, field_bytes=32))

    def bad_frame(self):
        r = self.rng
        number = self.number()
        size = self.requests[number][1] if number in self.requests else 64
        values = dict(kind=r.choice([BIND, UPLOAD, UPLOAD, DOWNLOAD, 9]), request=number, rhs=0, payload=self.fuzz.zeros[:32],
                      field_bytes=size, keep_header_checksum=r.random() < 0.3)
        message = bytearray(frame(**values))
        if r.random() < 0.5:  # a field of the header, or a byte of the whole
            at = r.choice([0, 4, 6, 8, 16, 20, 24, 32, 40, 48])
            message[at:at + 4] = (r.choice(BIG) % 2 ** 32).to_bytes(4, 'little')
            message[56:64] = checksum(bytes(message[:56])).to_bytes(8, 'little')
        else:
            message[r.randrange(len(message))] ^= 1 << r.randrange(8)
        self._post(self.data, bytes(message))

    def noise(self):
        r = self.rng
        parts = [r.randbytes(r.choice([0, 1, 3, 64, 200, 5000])) for _ in range(r.choice([1, 1, 1, 2, 5]))]
        self._post(r.choice([self.control, self.data]), *parts)

    def mutant(self):
        """A message that was right until some of its bytes changed. What the engine that pretends would hang or end over is left out."""
        request, _, name, message = self.fuzz.last.get(self.who.id, (1, 1, 'ping', qk.Ping()))
        data = bytearray(qk.ClientMessage(**{name: message}).SerializeToString())
        for _ in range(self.rng.choice([1, 1, 2, 8])):
            at = self.rng.randrange(len(data) + 1)
            cut = self.rng.choice([0, 1, 4])
            data[at:at + cut] = self.rng.randbytes(self.rng.choice([0, 1, 1, 5]))
        try:  # it may be a request of another number now
            m = READ_AS_BYTES.FromString(bytes(data))
            for body in (m.submit, m.contract, m.attach):
                if body.request:
                    self.note(body.request)
            if m.HasField('shutdown') or LOSES_ENGINE & {m.submit.max_iter, *(c.source for c in m.contract.contraction.channel)}:
                return
        except Exception:  # protobuf's own, of several kinds
            pass
        self._post(self.control, bytes(data))


VALID = {'submit': 14, 'upload': 30, 'grant': 14, 'ack': 12, 'cancel': 4, 'again': 3, 'attach': 2, 'release': 2, 'contract': 4, 'status': 1, 'ping': 2,
         'hello': 2, 'bind': 2, 'goodbye': 0.3, 'load': 0.15, 'drop': 0.1, 'make_default': 0.1}
INVALID = {'bad_hello': 0.3, 'stolen_hello': 0.3, 'bad_bind': 0.4, 'bad_frame': 0.5, 'noise': 0.4, 'mutant': 2}
ACTIONS = {**VALID, **INVALID}


class Fuzz:
    def __init__(self, daemon, seed, kill, root):
        self.daemon, self.rng, self.kill = daemon, random.Random(seed), kill
        self.made, self.last, self.peers, self.sums = {}, {}, [], {}
        self.root, self.places = root, itertools.count()
        self.zeros = bytes(MIB)
        self.honest = Client(daemon, user='honest')
        self.solved, self.pinged = 0, 0

    def sum_of_zeros(self, size):
        if size not in self.sums:
            self.sums[size] = checksum(bytes(size))
        return self.sums[size]

    def come(self, who=None):
        peer = Peer(self, who or Identity(self.rng, next(self.places)))
        self.peers.append(peer)
        peer.hello()
        for _ in range(100):
            if peer.control.poll(200):  # most connections begin well
                break
            self.keep_lease()
        peer.listen()

    def keep_lease(self):
        """The honest client does not fall silent while others have much to do."""
        if time.monotonic() > self.pinged + 0.2:
            self.honest.send(ping=qk.Ping())
            self.pinged = time.monotonic()

    def step(self):
        r = self.rng
        self.keep_lease()
        if len(self.peers) < PEERS or r.random() < 0.01:
            if len(self.peers) >= PEERS:
                self.peers.pop(r.randrange(PEERS)).close()
            self.come(r.choice(self.peers).who if self.peers and r.random() < 0.4 else None)
        peer = r.choice(self.peers)
        peer.listen()
        name, = r.choices(list(ACTIONS), ACTIONS.values())
        getattr(peer, name)()

    def hear(self, wanted):
        """The next message that the honest client waits for, while it keeps its lease."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if not self.honest.later and not self.honest.control.poll(300):
                self.honest.send(ping=qk.Ping())
                continue
            name, body = self.honest.receive()
            if name in wanted:
                return name, body
            assert name in ('progress', 'credit', 'pong'), (name, body)
        raise TimeoutError('the honest client waits for ' + ' or '.join(wanted))

    def work(self):
        """The honest client solves two right-hand sides; who has no room is asked again."""
        fields = [np.full(SITES * 12, i + 1j * self.solved) for i in (1, 2)]
        while True:
            self.honest.submit(2, expect=None)
            name, reply = self.hear(('accepted', 'rejected'))
            if name == 'accepted':
                break
            assert reply.status in (STATUS['BUSY'], STATUS['NOT_READY']), reply
            for peer in self.peers:
                peer.listen()
            self.honest.control.poll(20)
        self.honest.upload(reply, fields)
        for _ in fields:
            _, result = self.hear(('result',))  # fetched at once: results are kept for a second here
            # the engine may have been killed twice over it, by others
            assert result.status in (0, STATUS['ENGINE_LOST']), result
            if result.status == 0:
                assert (self.honest.fetch(result) == 2 * fields[result.rhs]).all()
                self.solved += 1
        self.honest.ack(reply.request)

    def resident(self):
        with open('/proc/%d/statm' % self.daemon.process.pid, encoding='utf-8') as f:
            return int(f.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')

    def go_on(self, seconds):
        """Returns the number of steps."""
        end, steps = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            for _ in range(200):
                self.step()
            self.work()
            assert self.daemon.process.poll() is None, 'quarkd has ended'
            steps += 200
        return steps

    def lacks_a_death(self):
        return self.kill and not any('engine lost' in line for line in self.daemon.lines)

    def run(self, seconds):
        """Returns the number of steps; they are more where they were too few to judge by."""
        steps = self.go_on(seconds / 2)
        for _ in range(4):  # what waits to be read on a busy machine comes and goes, a leak grows on and on
            size = self.resident()
            steps += self.go_on(seconds / 2)
            grown = self.resident() - size
            if grown < 8 * MIB:
                break
        assert grown < 8 * MIB, 'grown by %d bytes in %g s' % (grown, seconds / 2)
        for _ in range(20):
            steps += self.go_on(seconds / 2) if self.lacks_a_death() else 0
        return steps

    def leave(self):
        for peer in self.peers:
            peer.close()
        self.honest.send(goodbye=qk.Goodbye())


def accepted_by_log(daemon):
    sizes = [re.search(r'accepted: (?:(\d+) right-hand sides|contraction)', line) for line in daemon.lines]
    return sum(int(m[1] or 1) for m in sizes if m)


@contextlib.contextmanager
def root_of_files():
    """A root with sources, a link that leads out of it, and a folder beside it that nothing is to get into."""
    with tempfile.TemporaryDirectory() as top:
        root = os.path.join(os.path.realpath(top), 'root')
        for folder in (root, root + '/in', root + '2'):
            os.mkdir(folder)
        os.symlink(root + '2', root + '/link')
        for name, size in (('one', SITES * 12 * 16), ('half', SITES * 12 * 8)):
            with open(os.path.join(root, name), 'wb') as f:
                f.write(bytes(size))
        yield root


def session(case, kill, *options):
    print('# seed %d, %g s' % (case.seed, case.seconds), flush=True)
    with root_of_files() as root, case.daemon(*OPTIONS, '--file-roots', root, *options, dims=DIMS) as d:
        fuzz = Fuzz(d, case.seed, kill, root)
        try:
            steps = fuzz.run(case.seconds)
            fuzz.leave()
            s = d.status_when(lambda s: s.counters.sessions == 0 and s.counters.running == 0 and s.state == qk.STATE_READY)
            c = s.counters
            assert (s.memory_used, c.requests, c.queued, c.held, c.kept, c.kept_bytes) == (0, 0, 0, 0, 0, 0), s
            ended, accepted = c.converged + c.failed + c.cancelled + c.contracted, accepted_by_log(d)
            print('# %d steps, %d right-hand sides accepted, %d of them by the honest client, %d requests refused, %d peers dropped, '
                  '%d engines lost' % (steps, accepted, fuzz.solved, c.rejected, c.dropped, s.engine.restarts), flush=True)
            assert ended == accepted, (ended, accepted, c)
            assert fuzz.solved > 0 and c.dropped > 0 and c.rejected > 0 and (s.engine.restarts > 0) == (kill > 0)
            assert d.terminate() == 0
            left = [n for folder in (root, root + '/in') for n in os.listdir(folder) if '.quarkd-' in n]
            assert not left and os.listdir(root + '2') == [], left
        except BaseException:
            print('# seed %d; the last lines of the log:' % case.seed)
            for line in d.lines[-20:]:
                print('# ' + line.rstrip())
            raise
        for line in d.lines:
            assert 'Sanitizer' not in line and 'runtime error' not in line, line
            assert line.rstrip('\n').isascii() and line.rstrip('\n').isprintable(), 'a peer writes into the log: %r' % line


@tap.test
def random_sessions_leave_nothing_behind(case):
    session(case, kill=0)


@tap.test
def random_sessions_with_engines_that_die(case):
    session(case, kill=0.03)


@tap.test
def random_sessions_with_a_journal(case):
    with tempfile.TemporaryDirectory() as folder:
        session(case, 0, '--state', folder, '--spill', '2M')


if __name__ == '__main__':
    the_case = Case(sys.argv[1])
    the_case.seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    the_case.seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 6
    tap.run(the_case)
