#!/usr/bin/env python3
"""deploy/quarkd.sbatch with commands that stand in for Slurm's, and the engine that only pretends: test_slurm.py QUARKD SCRIPT"""
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time

import tap

try:
    from front_case import FAKE, check_solves, fake, memory_of
    from front_driver import STATUS, Client, Daemon, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

# They note how they were called; srun starts one process for all ranks.
COMMANDS = {
    'squeue': 'echo "squeue $*" >>"$CALLS"; echo "$TIME_LEFT"\n',
    'scontrol': 'echo "scontrol $*" >>"$CALLS"; exit "${SCONTROL_FAILS:-0}"\n',
    'srun': 'echo "srun $*" >>"$CALLS"\nwhile [ "$1" != -n ]; do shift; done\nshift 2\nexec "$@"\n'}


class Job:
    """A folder for the job, and its environment."""

    def __init__(self, case, **env):
        self.folder = tempfile.TemporaryDirectory(prefix='qk-slurm-')
        self.calls = self.path('calls')
        for name, text in COMMANDS.items():
            self.script(name, text)
        self.endpoint = self.path('test.state', 'endpoint')
        os.symlink(case.quarkd, self.path('quarkd'))
        self.env = dict(PATH=self.folder.name + ':' + os.environ['PATH'], CALLS=self.calls, SLURM_JOB_ID='77',
                        SLURM_JOB_NAME='test', SLURM_SUBMIT_DIR=self.folder.name, QUARKD_LISTEN='tcp://127.0.0.1:0',
                        **{'TIME_LEFT': 'UNLIMITED', **env})
        self.command = case.script

    def path(self, *names):
        return os.path.join(self.folder.name, *names)

    def script(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8') as f:
            f.write('#!/bin/sh\n' + text)
        os.chmod(self.path(name), 0o755)

    def start(self, *options, **more):
        return Daemon(self.command, *options, engine=FAKE, env=self.env, **more)

    def called(self, name):
        try:
            with open(self.calls, encoding='utf-8') as f:
                return [line.split(' ', 1)[1].strip() for line in f if line.startswith(name + ' ')]
        except FileNotFoundError:
            return []


class Case:
    def __init__(self, quarkd, script):
        self.quarkd, self.script = quarkd, script

    @contextlib.contextmanager
    def job(self, *options, **env):
        job = Job(self, **env)
        with job.folder:
            with job.start(*options) as d:
                yield job, d
            for path in memory_of(job.path('test.state')):  # work that is left in a folder that goes
                os.unlink(path)


def hold(d, c):
    """One right-hand side that stays in its slot."""
    c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
    d.status_when(lambda s: s.counters.running == 1)


@tap.test
def clients_find_it_while_it_is_there(case):
    with case.job() as (job, d), Client(d) as c:
        with open(job.endpoint, encoding='utf-8') as f:
            assert f.readline() == d.endpoint + '\n' and 'Slurm job 77' in f.read()
        assert not [n for n in os.listdir(job.path('test.state')) if n.endswith('.part')]
        check_solves(c)
        d.process.send_signal(signal.SIGUSR1)
        assert d.wait() == 0 and not os.path.exists(job.endpoint)
        assert job.called('scontrol') == []


@tap.test
def it_has_a_rank_for_each_gpu(case):
    with case.job(SLURM_GPUS_ON_NODE='4', SLURM_JOB_NUM_NODES='2', SLURM_NTASKS='8') as (job, d), Client(d) as c:
        check_solves(c)
        (call,) = job.called('srun')
        assert call.startswith('--overlap --mpi=pmix -n 8 ') and ' --front ipc://' in call, call
    with case.job(SLURM_NTASKS='3') as (job, d):
        assert '-n 3 ' in job.called('srun')[0]
    with case.job(SLURM_GPUS_ON_NODE='1') as (job, d):
        assert job.called('srun') == []  # one rank needs no launcher


@tap.test
def a_signal_drains_it_and_the_job_ends_where_all_is_done(case):
    with case.job() as (job, d), Client(d) as c:
        hold(d, c)
        d.process.send_signal(signal.SIGUSR1)
        d.log('draining')
        assert c.submit(1, source=qk.SOURCE_POINT, expect='rejected').status == STATUS['SHUTTING_DOWN']
        d.process.send_signal(signal.SIGUSR1)
        d.log('User defined signal 1', 2)
        c.send(cancel=qk.Cancel(request=1))
        c.results(1)
        c.ack(1)
        assert d.wait() == 0 and job.called('scontrol') == []


@tap.test
def it_is_requeued_where_work_is_left(case):
    with case.job('--drain-timeout', '0.2') as (job, d), Client(d) as c:
        hold(d, c)
        d.process.send_signal(signal.SIGUSR1)
        assert d.wait() == 0 and job.called('scontrol') == ['requeue 77']
        assert not os.path.exists(job.endpoint)
        with job.start() as again:  # the next run is found in the same place, and goes on
            with open(job.endpoint, encoding='utf-8') as f:
                assert f.readline() == again.endpoint + '\n'
            assert again.log('1 request is back with 1 right-hand side to solve')
            with Client(again, client_id=c.client_id) as same:
                assert same.welcome.resumed
                same.send(cancel=qk.Cancel(request=1))
                assert same.expect('result').status == STATUS['CANCELLED']
                same.ack(1)
                same.request = 1
                check_solves(same)


@tap.test
def it_is_not_requeued_for_ever_nor_after_sigterm(case):
    with case.job('--drain-timeout', '0.2', SLURM_RESTART_COUNT='5', QUARKD_REQUEUES='5') as (job, d), Client(d) as c:
        hold(d, c)
        d.process.send_signal(signal.SIGUSR1)
        assert d.wait() == 75 and job.called('scontrol') == []
    with case.job('--drain-timeout', '0.2') as (job, d), Client(d) as c:
        hold(d, c)
        d.process.terminate()
        assert d.wait() == 75 and job.called('scontrol') == []


@tap.test
def a_requeue_that_fails_is_told(case):
    with case.job('--drain-timeout', '0.2', SCONTROL_FAILS='1') as (job, d), Client(d) as c:
        hold(d, c)
        d.process.send_signal(signal.SIGUSR1)
        assert d.wait() == 75 and d.log('cannot be requeued')


@tap.test
def what_is_killed_leaves_no_endpoint(case):
    with case.job() as (job, d):
        os.kill(d.status().pid, signal.SIGKILL)
        assert d.process.wait(60) == 137 and not os.path.exists(job.endpoint) and job.called('scontrol') == []


def suspend(d):
    """All processes of the job, for longer than a busy machine holds one up."""
    pids = [d.process.pid]
    for pid in pids:
        with open('/proc/%d/task/%d/children' % (pid, pid), encoding='ascii') as f:
            pids += map(int, f.read().split())
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        time.sleep(8 if number == signal.SIGSTOP else 0)


@tap.test
def a_suspended_job_ends_later(case):
    """Slurm gives it the time back, and says so only when asked."""
    with case.job(SLURM_JOB_END_TIME=str(int(time.time()) + 7200), TIME_LEFT='05:00:00') as (job, d):
        assert d.status().walltime_left <= 7200 - 60
        suspend(d)
        d.status_when(lambda s: 17000 < s.walltime_left <= 18000 - 60)
        assert len(job.called('squeue')) == 1


@tap.test
def what_comes_right_after_cont_is_heard(case):
    """As Slurm sends it: bash loses signals that come while it runs the trap of another."""
    for i in range(12):
        with case.job() as (job, d):
            d.process.send_signal(signal.SIGCONT)
            time.sleep(i // 2 * 3e-4)
            d.process.send_signal((signal.SIGTERM, signal.SIGUSR1)[i % 2])
            assert d.log('draining') and d.process.wait(60) == 0, d.lines[-5:]


@tap.test
def it_knows_when_the_job_ends(case):
    with case.job(SLURM_JOB_END_TIME=str(int(time.time()) + 7200)) as (job, d):
        assert 7000 < d.status().walltime_left <= 7200 - 60 and job.called('squeue') == []
    for text, least, most in (('1-02:03:08', 93600, 93788), ('59:08', 3300, 3548), ('10:00:00', 35800, 36000)):
        with case.job(TIME_LEFT=text) as (job, d):
            assert least < d.status().walltime_left <= most - 60 and job.called('squeue') == ['-h -j 77 -o %L'], text
            d.process.send_signal(signal.SIGTERM)
            assert d.wait() == 0
    with case.job('--drain-timeout', '5', TIME_LEFT='1:00') as (job, d):  # a quarter of it
        assert 30 < d.status().walltime_left <= 45
    with case.job() as (job, d):
        assert not d.status().HasField('walltime_left')


@tap.test
def a_walltime_that_the_user_gives_wins(case):
    """It is no end of the job, so that it does not move with it."""
    for given in (('--walltime', '1:00:00'), ('--walltime=3600',)):
        with case.job(*given, TIME_LEFT='5:00:00') as (job, d):
            assert 3000 < d.status().walltime_left <= 3600, given
            assert not os.path.exists(job.path('test.state', 'walltime'))


@tap.test
def a_notice_right_after_the_start_of_a_short_job_is_not_taken(case):
    """Slurm sends it 300 s before the end, whatever the time is."""
    with case.job('--drain-timeout', '30', TIME_LEFT='6:00') as (job, d), Client(d) as c:
        assert 360 - 60 - 30 < d.status().walltime_left <= 360 - 60
        d.process.send_signal(signal.SIGUSR1)
        assert d.log('quarkd.sbatch: USR1 came .* too early for so short a job')
        check_solves(c)
        d.process.send_signal(signal.SIGUSR1)  # who sends another one means it
        assert d.log('draining') and d.wait() == 0
    for left in ('10:00', '1:00:00'):  # where more is left it is none of Slurm's
        with case.job('--drain-timeout', '30', TIME_LEFT=left) as (job, d):
            d.process.send_signal(signal.SIGUSR1)
            assert d.log('draining') and d.wait() == 0
            assert not any('too early' in line for line in d.lines)


@tap.test
def quarkds_refusals_end_the_job(case):
    job = Job(case)
    with job.folder:
        end = subprocess.run([case.script, '--nonsense'], env={**os.environ, **job.env}, capture_output=True, text=True, timeout=60)
        assert end.returncode == 64 and 'nonsense' in end.stderr and job.called('scontrol') == [], end


if __name__ == '__main__':
    tap.run(Case(*map(os.path.abspath, sys.argv[1:])))
