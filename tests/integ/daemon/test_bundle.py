#!/usr/bin/env python3
"""A bundle, made, unpacked and used where nothing of this machine is named: test_bundle.py BUNDLE BUILD RANKS"""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import tap

LIMIT = 300
# What a bundle takes from its host.
HOST = re.compile(r'/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|util|nsl|cuda|nvidia-[a-z]*))(-[.0-9]+)?\.so[.0-9]*$')


class Case:
    def __init__(self, bundle, build, ranks):
        self.ranks = [int(n) for n in ranks.split(',')]
        self.folder = tempfile.TemporaryDirectory(prefix='qk-bundle-')
        archive = os.path.join(self.folder.name, 'quarkd-test.tar.xz')
        subprocess.run([bundle, build, archive], check=True, stdout=subprocess.DEVNULL, env={**os.environ, 'XZ_OPT': '-0'}, timeout=LIMIT)
        # not where it was made
        elsewhere = os.path.join(self.folder.name, 'some', 'where')
        os.makedirs(elsewhere)
        subprocess.run(['tar', '-C', elsewhere, '-xf', archive], check=True, timeout=LIMIT)
        self.root = os.path.join(elsewhere, 'quarkd-test')
        tools = os.path.join(self.folder.name, 'tools')  # all that it may find of the host: no ssh, no mpirun
        os.mkdir(tools)
        os.symlink(shutil.which('readlink'), os.path.join(tools, 'readlink'))
        self.env = {'PATH': tools, 'HOME': self.folder.name, 'OMP_NUM_THREADS': '1', 'OMP_WAIT_POLICY': 'passive', 'OMPI_MCA_rmaps_base_oversubscribe': '1'}
        if os.geteuid() == 0:
            self.env.update(OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')

    def run(self, program, *args):
        return subprocess.run([os.path.join(self.root, 'bin', program), *args], env=self.env, cwd='/', capture_output=True, text=True,
                              timeout=LIMIT)

    def foreign(self, path):
        """A library that is neither in the bundle nor the host's to give."""
        return not path.startswith(self.root + '/') and not HOST.search(path)

    @contextlib.contextmanager
    def daemon(self, *options):
        """The process and its endpoint, ready to work."""
        command = [os.path.join(self.root, 'bin', 'quarkd'), '--gauge=builtin:weak:4x4x4x8:1', '--mass=0.1', '--backend=cpu',
                   '--listen=tcp://127.0.0.1:0', *options]
        process = subprocess.Popen(command, env=self.env, cwd='/', stderr=subprocess.PIPE, text=True)
        lines, endpoint = [], None
        timer = threading.Timer(LIMIT, process.kill)
        timer.start()
        try:
            for line in process.stderr:
                lines.append(line)
                m = re.search(r'listening on ([^\s,]+)', line)
                endpoint = m[1] if m else endpoint
                if ' ready: ' in line:
                    break
            else:
                raise AssertionError('quarkd has ended: ' + ''.join(lines))
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield process, endpoint
            process.terminate()
            assert process.wait() == 0
        finally:
            timer.cancel()
            process.kill()
            process.wait()


def family(pid):
    """The process and all that it has started."""
    parent = {}
    for entry in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError):
            with open('/proc/%s/stat' % entry, encoding='utf-8') as f:
                parent[int(entry)] = int(f.read().rsplit(')', 1)[1].split()[1])
    found = [pid]
    for p in found:
        found += [child for child, of in parent.items() if of == p]
    return found


def mapped(pid):
    with open('/proc/%d/maps' % pid, encoding='utf-8') as f:
        return {path for path in (line.split(maxsplit=5)[5].strip() for line in f if line.count('/') > 0) if '.so' in path}


@tap.test
def no_file_in_it_asks_for_a_library_that_is_not(case):
    checked = 0
    for folder, _, names in os.walk(case.root):
        for path in (os.path.join(folder, n) for n in names):
            with open(path, 'rb') as f:
                if os.path.islink(path) or f.read(4) != b'\x7fELF':
                    continue
            listed = subprocess.run(['ldd', path], env={}, executable=shutil.which('ldd'), capture_output=True, text=True, timeout=LIMIT).stdout
            bad = [line.strip() for line in listed.splitlines() if 'not found' in line or ('=> /' in line and case.foreign(line.split()[2]))]
            assert not bad, (path, bad)
            checked += 1
    assert checked > 30


@tap.test
def programs_answer_by_any_name(case):
    for program in ('quarkd', 'quarkctl', 'quark-gauge', 'quark-tune'):
        assert case.run(program, '--version').stdout.startswith(program), program
    link = os.path.join(case.folder.name, 'quarkctl')
    os.symlink(os.path.join(case.root, 'bin', 'quarkctl'), link)
    assert subprocess.run([link, '--version'], env={}, cwd='/', capture_output=True, timeout=LIMIT).returncode == 0
    for path in ('include/quark.h', 'include/quark_buffer.h', 'include/quark_daemon.h', 'include/quark_eigen.h', 'include/quark_wall.h', 'lib/libquark.so', 'share/man/man1/quarkd.1', 'deploy/quarkd.sbatch', 'share/doc/quarkd/LICENSE'):
        assert os.path.exists(os.path.join(case.root, path)), path


@tap.test
def it_solves_with_nothing_but_its_own_libraries(case):
    for n in case.ranks:
        with case.daemon('--ranks=%d' % n) as (process, endpoint):
            out = os.path.join(case.folder.name, 'prop%d.h5' % n)
            done = case.run('quarkctl', 'propagator', '--endpoint', endpoint, '--source', 'point:0,0,0,0', '--tol', '1e-8', '--out', out)
            assert done.returncode == 0 and os.path.getsize(out) > 0, done
            programs = []
            for pid in family(process.pid):
                programs.append(os.path.realpath('/proc/%d/exe' % pid))
                assert programs[-1].startswith(case.root), programs
                foreign = [path for path in mapped(pid) if case.foreign(path)]
                assert not foreign, (programs[-1], foreign)
            names = sorted(os.path.basename(p) for p in programs)
            assert names == sorted(['quarkd'] + n * ['quark-engine'] + (n > 1) * ['mpirun']), names


if __name__ == '__main__':
    if not shutil.which('patchelf'):
        tap.skip_all('patchelf is not here')
    test = Case(*sys.argv[1:])
    with test.folder:
        tap.run(test)
