"""A Slurm of one node, real and its own: munged, slurmctld and slurmd as root in namespaces of processes, network, names and mounts.

Nothing of it is heard outside, and nothing is left when the first process of the namespace has ended, however that was.
"""
import ctypes
import fcntl
import glob
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import tap

NEEDED = ('munged', 'slurmctld', 'slurmd', 'sbatch', 'srun', 'scontrol', 'squeue', 'scancel', 'sinfo', 'unshare')
NAMESPACES = ['unshare', '--net', '--pid', '--ipc', '--uts', '--mount-proc', '--fork', '--kill-child']
INSIDE = 'QK_SLURM_INSIDE'
LIMIT = 120      # seconds that anything may take
PAUSE = 0.1      # between two looks
REQUEUE = 5      # seconds that a requeued job waits; Slurm's own are 120

CONF = """\
ClusterName=quarkd
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort=6817
SlurmdPort=6818
AuthType=auth/munge
AuthInfo=socket={dir}/munge.socket,cred_expire={requeue}
CredType=cred/munge
MailProg=/bin/true
StateSaveLocation={dir}/ctld
SlurmdSpoolDir={dir}/spool
TmpFS={dir}/tmp
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
DefMemPerNode=500
ReturnToService=2
MinJobAge=3600
KillWait=30
NodeName=localhost NodeAddr=127.0.0.1 CPUs=16 RealMemory=16000 State=UNKNOWN
PartitionName=main Nodes=localhost Default=YES MaxTime=INFINITE State=UP
"""


def enter():
    """Goes on inside, as a child of the first process there; skips where that cannot be."""
    if not os.environ.get('QK_SLURM'):
        tap.skip_all('starts a real Slurm: only with QK_SLURM=1, as .ci/run slurm does')
    missing = [name for name in NEEDED if not shutil.which(name)]
    if os.geteuid() != 0 or missing:
        tap.skip_all('not root' if not missing else 'not here: %s (deploy/packages.sh slurm)' % ' '.join(missing))
    if not os.environ.get(INSIDE):
        tried = subprocess.run([*NAMESPACES, 'true'], capture_output=True, text=True)
        if tried.returncode != 0:
            tap.skip_all('no namespaces here: ' + tried.stderr.strip())
        os.environ[INSIDE] = '1'
        os.execvp(NAMESPACES[0], [*NAMESPACES, sys.executable, *sys.argv])
    child = os.fork()
    while child:  # the first process inherits all that is orphaned
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 255)
    make_network()
    if ctypes.CDLL(None, use_errno=True).mount(b'tmpfs', b'/dev/shm', b'tmpfs', 0, None) != 0:
        tap.skip_all('no /dev/shm of its own: ' + os.strerror(ctypes.get_errno()))


def make_network():
    """The loopback, and a second address: with 127.0.0.1 alone getaddrinfo(AI_ADDRCONFIG), as Slurm asks it, finds nothing."""
    siocsifaddr, siocgifflags, siocsifflags, up = 0x8916, 0x8913, 0x8914, 1
    with socket.socket() as s:
        flags = struct.unpack('16sh14x', fcntl.ioctl(s, siocgifflags, struct.pack('16sh14x', b'lo', 0)))[1]
        fcntl.ioctl(s, siocsifflags, struct.pack('16sh14x', b'lo', flags | up))
        fcntl.ioctl(s, siocsifaddr, struct.pack('16sH2s4s8x', b'lo:1', socket.AF_INET, b'', socket.inet_aton('127.0.0.2')))
    socket.sethostname('localhost')


def until(condition, what):
    """The first value that is true."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(PAUSE)
    raise TimeoutError(what() if callable(what) else what)


class Node:
    def __init__(self, folder):
        self.dir, self.running = folder, {}
        os.chmod(folder, 0o755)
        for name in ('ctld', 'spool', 'tmp'):
            os.mkdir(os.path.join(folder, name))
        with open(os.path.join(folder, 'slurm.conf'), 'w', encoding='ascii') as f:
            f.write(CONF.format(dir=folder, requeue=REQUEUE))
        key = os.open(os.path.join(folder, 'key'), os.O_WRONLY | os.O_CREAT, 0o400)
        os.write(key, os.urandom(1024))
        os.close(key)
        os.environ['SLURM_CONF'] = os.path.join(folder, 'slurm.conf')
        try:
            self.start('munged', '--foreground', '--force', '--num-threads=2',
                       *('--%s=%s/%s' % (o, folder, f) for o, f in (('key-file', 'key'), ('socket', 'munge.socket'), ('pid-file', 'munge.pid'),
                                                                    ('log-file', 'munge.log'), ('seed-file', 'seed'))))
            until(lambda: self.lives() and os.path.exists(os.path.join(folder, 'munge.socket')), 'munged')
            self.start('slurmctld', '-D')
            self.start('slurmd', '-D', '-N', 'localhost')
            until(lambda: self.lives() and self.ask('sinfo', '-h', '-o', '%t') == 'idle', 'the node')
        except (OSError, RuntimeError) as e:
            self.end()
            tap.skip_all('Slurm does not start here: %s; %s' % (e, self.last_words()))

    def start(self, name, *options):
        with open(os.path.join(self.dir, name + '.out'), 'a', encoding='utf-8') as out:
            self.running[name] = subprocess.Popen([name, *options], stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def lives(self):
        for name, process in self.running.items():
            if process.poll() is not None:
                raise RuntimeError('%s has left with %d' % (name, process.returncode))
        return True

    def last_words(self):
        lines = []
        for path in sorted(glob.glob(os.path.join(self.dir, '*.out'))):
            with open(path, encoding='utf-8', errors='replace') as f:
                lines += ['%s: %s' % (os.path.basename(path), line) for line in f.read().splitlines()[-1:]]
        return ' | '.join(lines)

    def ask(self, *command):
        """None where it fails."""
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)
        return done.stdout.strip() if done.returncode == 0 else None

    def tell(self, *command, env=None):
        done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT,
                              env={**os.environ, **(env or {})})
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout.strip()

    def end(self):
        for process in reversed(self.running.values()):
            process.terminate()
        for process in self.running.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    # ---- the node dies, and is there again

    def lose(self, job):
        """All processes of the job and slurmd end without a word, and with them what is in memory."""
        self.running['slurmd'].kill()
        self.running.pop('slurmd').wait()
        mine = b'SLURM_JOB_ID=%d' % job.number
        for path in glob.glob('/proc/[0-9]*/environ'):
            pid = int(path.split('/')[2])
            try:
                with open(path, 'rb') as f, open('/proc/%d/cmdline' % pid, 'rb') as g:
                    if mine in f.read().split(b'\0') or g.read().startswith(b'slurmstepd: [%d.' % job.number):
                        os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        for path in glob.glob('/dev/shm/quarkd-*'):
            os.unlink(path)
        self.tell('scontrol', 'update', 'nodename=localhost', 'state=down', 'reason=power')

    def come_back(self):
        self.tell('scontrol', 'update', 'nodename=localhost', 'state=resume')
        self.start('slurmd', '-D', '-N', 'localhost')


class Job:
    """quarkd.sbatch, submitted."""

    def __init__(self, node, case, name, *options, batch=(), env=None):
        self.node, self.case, self.name = node, case, name
        self.state = os.path.join(node.dir, name)
        self.log_file, self.endpoint = self.state + '.log', os.path.join(self.state, 'endpoint')
        self.number = int(node.tell('sbatch', '--parsable', '--job-name', name, '--output', self.log_file, *batch, case.script, *options,
                                    env={**case.env, 'QUARKD_STATE': self.state, **(env or {})}))

    def facts(self):
        return dict(re.findall(r'(\w+)=(\S*)', self.node.tell('scontrol', 'show', 'job', '-o', self.number)))

    def is_in(self, state):
        return until(lambda: (f := self.facts())['JobState'] == state and f, lambda: '%s is not %s: %s' % (self.name, state, self.facts()))

    def text(self):
        try:
            with open(self.log_file, encoding='utf-8', errors='replace') as f:
                return f.read()
        except FileNotFoundError:
            return ''

    def log(self, pattern, count=1):
        """Waits for the count-th line that has it."""
        until(lambda: len(re.findall(pattern, self.text())) >= count,
              lambda: 'no line with %s (%d) in the log of %s (%s):\n%s' % (pattern, count, self.name, self.facts(), self.text()[-6000:]))

    def scancel(self, *options):
        self.node.tell('scancel', *options, self.number)
