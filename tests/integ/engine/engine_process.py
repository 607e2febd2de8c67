"""Part of test_engine.py: a device that fails, signals, and fronts that come and go."""
import os
import select
import signal
import subprocess

import tap
try:
    from engine_case import CANCELLED, DEVICE_ERROR, DEVICE_MEMORY, GAUGE
    from engine_driver import Vector, pb, qk
except (ImportError, FileNotFoundError) as missing:
    tap.skip_all('python3-zmq, python3-protobuf, protoc, numpy and scipy are needed: %s' % missing)


# ---- the device fails --------------------------------------------------------------------------------


@tap.test
def no_device_memory_fails_the_load_alone(case):
    """Every allocation of the load fails in its turn, once; the next load finds memory."""
    failed = True
    for n in range(1, 1000) if case.ranks == 1 else (1, 2, 30):
        with case.start(env={'QK_FAULTS': 'device-alloc:%d' % n}) as e:
            e.load(GAUGE)
            name, body = e.receive()
            while name == 'load_progress':
                name, body = e.receive()
            failed = name == 'load_failed'
            if not failed:
                break
            assert body.status == DEVICE_MEMORY and body.text, body
            e.load(GAUGE)
            e.ready()
    assert n > 5 and (not failed or case.ranks > 1)


@tap.test
def a_lost_device_is_fatal(case):
    """Wherever the device fails, the engine says so and leaves with 70; of several ranks another one may end it before rank 0
    has spoken."""
    for n in (1, 7, 60, 300, 700) if case.ranks == 1 else (7, 300):
        with case.start(env={'QK_FAULTS': 'device-call:%d' % n}) as e:
            e.load(GAUGE)
            try:
                name, body = e.receive()
                while name in ('load_progress', 'ready', 'fill_done', 'fill_progress'):
                    if name in ('ready', 'fill_done'):
                        e.fill(0, source=qk.SOURCE_POINT, column=qk.Column(), tol=1e-12)
                    name, body = e.receive()
                assert name == 'fatal' and body.status == DEVICE_ERROR and body.text, body
            except ChildProcessError:
                assert case.ranks > 1
            assert e.wait() == 70, n


# ---- the process ------------------------------------------------------------------------------------


@tap.test
def memory_stays_where_it_was(case):
    with case.loaded() as e:
        b = case.random(30)

        def work():
            for k in range(4):
                e.solve(b, entry=k % 2, tol=1e-5, dtype=(qk.DTYPE_F32, qk.DTYPE_F64)[k % 2])
            beat = e.heartbeat()
            return beat.device_bytes, beat.host_bytes
        before = work()
        assert before[0] > 0 and work() == before


@tap.test
def heartbeats_count_steps(case):
    with case.loaded() as e:
        first = e.heartbeat()
        e.solve(case.random(31))
        assert e.heartbeat().steps > first.steps == 0


@tap.test
def nonsense_is_skipped(case):
    with case.start() as e:
        for junk in b'', b'\xff' * 100, os.urandom(70000), pb.EngineMessage(heartbeat=pb.Heartbeat(steps=1)).SerializeToString():
            e.socket.send(junk)
        e.load(GAUGE)
        e.ready()
        assert e.stop() == 0


@tap.test
def signals_end_an_engine_only_when_its_front_has_gone(case):
    """As a batch system sends them, to every process: SIGTERM is the front's to understand, the others mean nothing here."""
    noise = dict(source=qk.SOURCE_Z2, column=qk.Column(t=-1, spin=-1, colour=-1), tol=1e-13, max_iter=10**9)
    for busy in (False, True):
        with case.start(options=['--grace', '60000']) as e:
            ranks = e.ranks()
            assert len(ranks) == case.ranks and e.hello.pid in ranks, (ranks, e.hello.pid)
            e.load(GAUGE, mass=-2, csw=0, solver='gcr', inner='PRECISION_DOUBLE')
            e.ready()
            with Vector(case.shape) as sink:
                if busy:
                    serial = e.fill(0, shm_out=sink.name, **noise)
                    e.expect('fill_progress')
                for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGTERM):
                    for pid in ranks:
                        os.kill(pid, number)
                if not busy:
                    serial = e.fill(0, shm_out=sink.name, **noise)
                    e.expect('fill_progress')
                e.send(cancel=pb.CancelFill(entry=0, serial=serial))
                assert e.done()[serial].status == CANCELLED and e.ranks() == ranks
                if busy:
                    e.fill(0, shm_out=sink.name, **noise)
                    e.expect('fill_progress')
                e.socket.close()
                os.kill(e.hello.pid, signal.SIGTERM)
                assert e.wait() == 0


@tap.test
def a_silent_front_is_left(case):
    with case.start(options=['--silence', '1500']) as e:
        assert e.wait() != 0


@tap.test
def another_front_takes_over(case):
    """All slots end, and nobody hears of it: HELLO with the nonce, READY as before, and slots are free. Once more without a setup."""
    with case.start(options=['--grace', '60000']) as e:
        e.send(adopt=pb.Adopt(nonce=1 << 63))
        hello = e.expect('hello')
        assert (hello.nonce, hello.loaded, hello.pid, hello.ranks) == (1 << 63, False, e.hello.pid, case.ranks), hello
        assert not e.hello.HasField('nonce')
        e.load(GAUGE, mass=-2, csw=0, solver='gcr', inner='PRECISION_DOUBLE', staging=1)
        facts = e.ready()
        noise = dict(source=qk.SOURCE_Z2, column=qk.Column(t=-1, spin=-1, colour=-1), tol=1e-13, max_iter=10**9)
        for slot in range(facts.inflight):
            e.fill(slot, **noise)
        e.expect('fill_progress')
        e.fill(0, **noise)  # refused, before ADOPT is looked at
        e.send(adopt=pb.Adopt(nonce=7))
        hello = e.expect('hello', skip=('fill_progress', 'fill_done'))
        assert (hello.nonce, hello.loaded) == (7, True), hello
        again = e.expect('ready')
        assert (again.digest, again.seconds, again.slots, again.inflight) == (facts.digest, facts.seconds, facts.slots, facts.inflight)
        with Vector(case.shape) as sink:
            serial = e.fill(0, shm_out=sink.name, **noise)
            assert e.expect('fill_progress').serial == serial
            e.send(cancel=pb.CancelFill(entry=0, serial=serial))
            assert e.done()[serial].status == CANCELLED
        assert e.stop() == 0


@tap.test
def waits_for_another_front(case):
    """The first one goes while slots run; another binds the endpoint. Where nobody comes it leaves."""
    with case.start(options=['--grace', '3000']) as e:
        e.load(GAUGE, mass=-2, csw=0, solver='gcr', inner='PRECISION_DOUBLE')
        e.ready()
        e.fill(0, source=qk.SOURCE_Z2, column=qk.Column(t=-1, spin=-1, colour=-1), tol=1e-13, max_iter=10**9)
        e.expect('fill_progress')
        for nonce in (5, 6):
            e.rebind()
            e.send(adopt=pb.Adopt(nonce=nonce))
            while (hello := e.expect('hello', skip=('fill_progress', 'fill_done', 'ready'))).nonce != nonce:
                pass
            e.ready()
        e.socket.close()
        assert e.wait() == 69


@tap.test
def dies_with_its_parent(case):
    """A shell stands in for quarkd, which starts the engine; it is killed with no chance to clean up."""
    if case.ranks > 1:
        raise tap.Skip('mpirun is the parent')
    with case.start(wrapper=['sh', '-c', '"$@" & wait', 'sh']) as e:
        engine = os.pidfd_open(e.hello.pid)
        e.process.send_signal(signal.SIGKILL)
        assert select.select([engine], [], [], 30)[0], 'the engine lives on'
        os.close(engine)


@tap.test
def usage_errors_exit_64(case):
    for arguments in [], ['--front'], ['--front', 'ipc:///x', '--comm', 'pigeon'], ['--what']:
        done = subprocess.run([case.binary, *arguments], capture_output=True)
        assert done.returncode == 64 and done.stderr, arguments
    assert subprocess.run([case.binary, '--front', 'carrier:pigeon'], capture_output=True).returncode == 69
