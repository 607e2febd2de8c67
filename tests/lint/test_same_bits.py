"""tests/same_bits tells builds apart: test_same_bits.py QUARK_ENGINE QUARK_GAUGE

Folders of links to the programs stand for builds. Other bits come of the same engine, told to compute as any processor of its kind can.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'support', 'python'))
import tap  # noqa: E402

SAME_BITS = os.path.join(HERE, '..', 'same_bits')
RUN = 'cpu-r1-t1/gcr-double-18-csw1.2-twisted'


class Case:
    def __init__(self, engine, gauge):
        self.engine, self.gauge = os.path.abspath(engine), os.path.abspath(gauge)
        self.folder = tempfile.TemporaryDirectory()

    def build(self, name, script=None):
        """A folder with quark-gauge and the engine, or a script in its place, somewhere below."""
        below = os.path.join(self.folder.name, name, 'some', 'where')
        os.makedirs(below)
        os.symlink(self.gauge, os.path.join(below, 'quark-gauge'))
        path = os.path.join(below, 'quark-engine')
        if script is None:
            os.symlink(self.engine, path)
        else:
            with open(path, 'w', encoding='utf-8') as f:
                f.write('#!/bin/sh\n' + script + '\n')
            os.chmod(path, 0o755)
        return os.path.join(self.folder.name, name)

    def compare(self, a, b, only=RUN):
        """(exit status, lines that begin with one of the verdicts)"""
        done = subprocess.run([sys.executable, SAME_BITS, a, b, '--quick', '--only', only], capture_output=True, text=True, timeout=280)
        return done.returncode, [x for x in done.stdout.splitlines() if x.split(None, 1)[0] in ('same', 'differs', 'failed')], done


@tap.test
def a_build_is_the_same_as_itself(case):
    code, lines, done = case.compare(case.build('one'), case.build('another'))
    assert code == 0 and len(lines) == 4 and all(x.startswith('same ' + RUN) for x in lines), done


@tap.test
def other_bits_differ_and_are_named(case):
    with open('/proc/cpuinfo', encoding='utf-8') as f:
        flags = f.read().split()
    if not {'avx2', 'fma'} <= set(flags):
        raise tap.Skip('this processor has one way to compute')
    base = case.build('base', 'QK_CPU_VARIANT=base exec %s "$@"' % case.engine)
    code, lines, done = case.compare(case.build('usual'), base)
    assert code == 1, done
    verdicts = dict(reversed(x.split()[:2]) for x in lines)
    assert verdicts[RUN + '/links'] == 'same' and verdicts[RUN + '/rhs16'] == 'differs', done
    assert any('x0' in x for x in lines if x.startswith('differs')), done


@tap.test
def a_run_that_fails_is_no_verdict(case):
    code, lines, done = case.compare(case.build('good'), case.build('bad', 'echo no >&2; exit 3'))
    assert code == 2 and len(lines) == 1 and lines[0].startswith('failed ' + RUN + ': BUILD_B: ') and 'no' in lines[0], done
    assert case.compare(case.build('fine'), case.build('other'), only='no-such-run')[0] == 2
    assert case.compare(case.build('full'), case.folder.name + '/empty')[0] == 2


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:]))
