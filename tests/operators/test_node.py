#!/usr/bin/env python3
"""deploy/quarkd.sbatch in a real Slurm of one node: test_node.py QUARKD QUARKCTL QUARK_ENGINE SCRIPT

With QK_SLURM=1, as root, where Slurm and munge are installed (deploy/packages.sh slurm); .ci/run slurm runs it.
"""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types

import tap
import slurm_node

slurm_node.enter()
try:
    import zmq
    from front_case import FAKE, fake, field
    from front_driver import Client, program, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

POINT = ('propagator', '--source', 'point:0,0,0,0')
GAUGE = ('--gauge', 'builtin:weak:4x4x4x8:1', '--backend', 'cpu')
LIGHT = (*GAUGE, '--mass', '0.1', '--solver', 'bicgstab', '--drain-timeout', '30')
UNAVAILABLE = 69


class Case:
    def __init__(self, folder, quarkd, quarkctl, engine, script):
        self.folder = folder
        self.quarkctl, self.engine, self.script = quarkctl, engine, script
        os.mkdir(os.path.join(self.folder, 'run'))
        # generations of engines go on from run to run of the job
        self.fake = os.path.join(self.folder, 'fake-engine')
        with open(self.fake, 'w', encoding='utf-8') as f:
            f.write('#!/bin/sh\nexport FAKE_BEFORE=${SLURM_RESTART_COUNT:-0}\nexec "%s" "$@"\n' % program(FAKE, self.folder))
        os.chmod(self.fake, 0o755)
        self.env = {'QUARKD': quarkd, 'XDG_RUNTIME_DIR': os.path.join(self.folder, 'run'), 'OMP_NUM_THREADS': '1',
                    'QUARKD_LISTEN': 'tcp://127.0.0.1:0'}
        os.mkdir(os.path.join(self.folder, 'slurm'))
        os.chmod(self.folder, 0o755)
        self.node = slurm_node.Node(os.path.join(self.folder, 'slurm'))
        self.first = None

    def job(self, name, *options, engine=None, **more):
        return slurm_node.Job(self.node, self, name, '--engine', engine or self.engine, *options, **more)

    def start(self, job, *args, out=None):
        """A quarkctl that goes on by itself."""
        out = ('--out', os.path.join(self.folder, out)) if out else ()
        return subprocess.Popen([self.quarkctl, *map(str, args), *out], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env={**os.environ, 'QUARKD_ENDPOINT': job.endpoint})

    def ctl(self, job, *args, out=None):
        process = self.start(job, *args, out=out)
        stdout, stderr = process.communicate(timeout=slurm_node.LIMIT)
        return process.returncode, stdout, stderr

    def status(self, job, *args):
        code, out, err = self.ctl(job, 'status', '--any', '--json', *args)
        assert code == 0, (code, err, job.text()[-3000:])
        return json.loads(out)

    def status_when(self, job, condition):
        return slurm_node.until(lambda: condition(s := self.status(job)) and s, lambda: str(self.status(job)))

    def solves(self, job, *args):
        """A propagator, of which nothing is left."""
        code, _, err = self.ctl(job, *POINT, *args, '--tol', '1e-8', out='p.h5')
        assert code == 0, (code, err, job.text()[-3000:])
        os.unlink(os.path.join(self.folder, 'p.h5'))


@contextlib.contextmanager
def client_of(job):
    """One that speaks the protocol itself, with an upload to come."""
    job.log('listening on ')
    where = types.SimpleNamespace(curve=None, context=zmq.Context())
    where.endpoint, where.data_endpoint = re.search(r'listening on (\S+), data on (\S+)', job.text()).groups()
    try:
        with Client(where) as c:
            c.accepted = c.submit(1)
            yield c
    finally:
        where.context.destroy(linger=0)


def finish(client):
    """Sends what was to come, and has it solved."""
    client.upload(client.accepted, [field(4 * 4 * 4 * 8)])
    result = client.expect('result', skip=('progress', 'credit', 'pong'))
    assert result.status == 0, result
    client.ack(client.accepted.request)


def ends(process):
    out, err = process.communicate(timeout=slurm_node.LIMIT)
    assert process.returncode == 0, (process.returncode, out, err)
    return err


def fixed():
    """The endpoint at which a job comes back."""
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return {'QUARKD_LISTEN': 'tcp://127.0.0.1:%d' % s.getsockname()[1]}


def restarts(case, job):
    return [s['restarts'] for s in case.status(job)['setups']]


@tap.test
def two_ranks_and_a_second_setup_share_a_job(case):
    """By srun, each in a step of its own; signals of scancel to the ranks mean nothing."""
    job = case.first = case.job('first', *LIGHT, batch=('--ntasks=2', '--time=5'))
    job.log(r'ready: ')
    status = case.status(job)
    assert status['engine']['ranks'] == 2 and 100 < status['walltime_left'] <= 240, status
    case.solves(job)
    code, _, err = case.ctl(job, 'load', 'heavy', '--kappa', '0.11', '--timeout', '100')
    assert code == 0, (err, job.text()[-3000:])
    case.solves(job, '--setup', 'heavy')
    before = restarts(case, job)
    for number in ('USR1', 'USR2', 'HUP'):
        job.scancel('--signal=' + number)
    for name in ('main', 'heavy'):
        case.solves(job, '--setup', name)
    assert restarts(case, job) == before, job.text()


@tap.test
def a_requeued_job_goes_on_with_the_clients_that_it_had(case):
    """It is drained, and work is left; Slurm starts the job again, and the one who waits notices a delay."""
    job = case.job('requeued', *LIGHT[:-2], '--drain-timeout', '3', engine=case.fake, env=fixed(), batch=('--time=30',))
    job.log('ready: ')
    waiting = case.start(job, *POINT, '--max-iter', fake.HOLD_ONCE, out='requeued.h5')
    case.status_when(job, lambda s: s['counters']['running'] > 0)
    job.scancel('--signal=USR1', '--batch')
    job.log('quarkd has left with 75')
    job.log('1 request is back')  # in the second run
    ends(waiting)
    assert os.path.exists(os.path.join(case.folder, 'requeued.h5'))
    job.scancel('--signal=USR1', '--batch')
    job.log('quarkd has left with 0')
    facts = job.is_in('COMPLETED')
    assert facts['Restarts'] == '1' and not os.path.exists(job.endpoint), facts


@tap.test
def plain_scancel_drains(case):
    """SIGTERM reaches quarkd twice, by Slurm and by the script, and its engine, too: what was accepted is uploaded, solved and fetched."""
    job = case.job('cancelled', *LIGHT, batch=('--time=10',))
    job.log('ready: ')
    with client_of(job) as c:
        job.scancel()
        job.log('both count as one')
        assert case.status(job)['state'] == 'draining'
        finish(c)
        job.log('all work is finished')
    facts = job.is_in('CANCELLED')
    assert 'engine lost' not in job.text() and facts['Restarts'] == '0', (facts, job.text()[-3000:])


@tap.test
def a_suspended_job_loses_nobody(case):
    """It stands still for longer than leases last; clients go on saying that they are there."""
    job = case.job('suspended', *LIGHT, '--lease', '3', batch=('--time=30',))
    job.log('ready: ')
    with client_of(job) as c:
        c.ping()
        case.node.tell('scontrol', 'suspend', job.number)
        job.is_in('SUSPENDED')
        for _ in range(7):
            c.send(ping=qk.Ping())
            time.sleep(1)
        case.node.tell('scontrol', 'resume', job.number)
        finish(c)
    assert 'expired' not in job.text() and 'engine lost' not in job.text(), job.text()[-3000:]
    job.scancel('--signal=USR1', '--batch')
    job.is_in('COMPLETED')


@tap.test
def the_notice_of_a_short_job_is_not_its_end(case):
    """Slurm sends it 300 s before the end of a job of 300 s; killed ranks are started again; a drain by hand ends the job."""
    job = case.first
    if not job or job.facts()['JobState'] != 'RUNNING':
        job = case.first = case.job('again', *LIGHT, batch=('--ntasks=2', '--time=5'))
        job.log('ready: ')
    job.log('too early for so short a job')
    assert 'draining' not in job.text()
    before, lost = restarts(case, job), len(re.findall('engine lost', job.text()))
    pid = case.status_when(job, lambda s: s['ready'])['engine']['pid']
    assert pid > 1, pid
    os.kill(pid, signal.SIGKILL)
    job.log('engine lost', lost + 1)
    case.solves(job)
    assert restarts(case, job)[0] == before[0] + 1 and restarts(case, job)[1:] == before[1:], (before, job.text()[-3000:])
    job.scancel('--signal=USR1', '--batch')
    facts = job.is_in('COMPLETED')
    assert re.search('quarkd has left with 0', job.text()) and not os.path.exists(job.endpoint), facts


@tap.test
def a_node_that_dies_costs_a_delay(case):
    """Slurm puts the job into the queue again; what was in memory is gone, and the client gets what it waits for."""
    job = case.job('lost', *LIGHT, engine=case.fake, env=fixed(), batch=('--time=30',))
    job.log('ready: ')
    waiting = case.start(job, *POINT, '--max-iter', fake.HOLD_ONCE, out='lost.h5')
    case.status_when(job, lambda s: s['counters']['running'] > 0)
    case.node.lose(job)
    code, _, err = case.ctl(job, 'status', '--timeout', '1')
    assert code == UNAVAILABLE and 'Slurm job %d, since' % job.number in err and 'has ended and left' in err, (code, err)
    case.node.come_back()
    job.log('1 request is back')
    ends(waiting)
    job.scancel('--signal=USR1', '--batch')
    facts = job.is_in('COMPLETED')
    assert facts['Restarts'] == '1', facts


def main():
    with tempfile.TemporaryDirectory(prefix='qk-node-', ignore_cleanup_errors=True) as folder:
        case = Case(folder, *map(os.path.abspath, sys.argv[1:]))
        try:
            tap.run(case)
        finally:
            case.node.end()


if __name__ == '__main__':
    main()
