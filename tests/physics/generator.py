"""Runs of quark-gauge generate for the checks here."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'ref'))
import ref_dirac as ref  # noqa: E402

C1 = {'wilson': 0.0, 'luescher-weisz': -1 / 12, 'iwasaki': -0.331, 'dbw2': -1.4088}


class Chain:
    """plaquettes[i] after sweep i + 1; files[i] after sweep (i + 1) every."""

    def __init__(self, report, every):
        self.plaquettes, self.files, self.every = report['plaquettes'], report['configurations'], every

    def configurations(self, after=0):
        return (ref.load_any(f)[0] for i, f in enumerate(self.files, 1) if i * self.every > after)


def generate(program, folder, dims, action, beta, sweeps, every, seed, or_per_hb=4, start='cold', backend='auto'):
    """A chain written to folder as cfg.SWEEP.lime."""
    command = [program, 'generate', '--dims=' + dims, '--action=' + action, '--beta=%.17g' % beta, '--sweeps=%d' % sweeps,
               '--or-per-hb=%d' % or_per_hb, '--seed=%d' % seed, '--start=' + start, '--every=%d' % every,
               '--out=' + os.path.join(folder, 'cfg.%07d.lime'), '--backend=' + backend, '--json', '--quiet']
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=3600)
    if done.returncode:
        raise RuntimeError('%s\nexit %d\n%s' % (' '.join(command), done.returncode, done.stderr))
    return Chain(json.loads(done.stdout), every)
