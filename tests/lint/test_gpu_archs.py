#!/usr/bin/env python3
"""-Dgpu_archs (cuda/gpu_archs.py) with made-up cards and compilers; and that cuda/ alone knows architectures.

usage: test_gpu_archs.py SOURCE        prints TAP
"""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support', 'python'))
import tap  # noqa: E402

KNOWN = '75 80 86 87 89 90 100 103 120'


def program(folder, name, body):
    path = os.path.join(folder, name)
    with open(path, 'w', encoding='utf-8') as f:
        f.write('#!/bin/sh\n' + body + '\n')
    os.chmod(path, 0o755)
    return path


def asked(root, *items, caps=None, known=KNOWN):
    """Names and arguments, or the message. caps: of the cards; None: a machine without nvidia-smi."""
    with tempfile.TemporaryDirectory() as folder:
        nvcc = program(folder, 'nvcc', '[ "$1" = --list-gpu-arch ] || exit 1\n' + '\n'.join(f'echo compute_{k}' for k in known.split()))
        if caps is not None:
            program(folder, 'nvidia-smi', caps if 'exit' in caps else '\n'.join(f'echo {cap}' for cap in caps.split()))
        done = subprocess.run([sys.executable, os.path.join(root, 'cuda', 'gpu_archs.py'), nvcc, *items], env={'PATH': folder + ':/bin:/usr/bin'}
                              if caps is not None else {'PATH': '/nowhere'}, capture_output=True, text=True, check=False)
    if done.returncode:
        assert done.returncode == 1 and done.stdout == '' and 'Traceback' not in done.stderr, done
        return done.stderr
    return dict(line.split(' ') for line in done.stdout.splitlines())


@tap.test
def cards_of_this_machine(root):
    assert list(asked(root, 'auto')) == ['90a'], 'no nvidia-smi'
    assert list(asked(root, 'auto', caps='exit 9')) == ['90a'], 'no driver'
    assert list(asked(root, 'auto', caps='7.0')) == ['90a'], 'an old card'
    assert list(asked(root, 'auto', caps='8.6')) == ['86']
    assert list(asked(root, 'native', caps='9.0 8.9 9.0 7.5')) == ['89', '90a']
    assert list(asked(root, 'native', caps='12.0')) == ['120']
    for caps in (None, 'exit 9', '7.0', 'echo No devices were found; exit 6'):
        assert 'native' in asked(root, 'native', caps=caps) and 'portable' in asked(root, 'native', caps=caps)


@tap.test
def lists_and_what_is_portable(root):
    found = asked(root, '80', '90a', '86-virtual', '80')
    assert found == {'80': '-gencode=arch=compute_80,code=sm_80', '90a': '-gencode=arch=compute_90a,code=sm_90a',
                     '86-virtual': '-gencode=arch=compute_86,code=compute_86'}, found
    found = asked(root, 'portable')
    assert list(found) == ['80', '86', '89', '90a', '100', '120', '86-virtual'], found
    assert list(asked(root, 'portable', known='75 80 86 89 90')) == ['80', '86', '89', '90a', '86-virtual'], 'a toolkit of CUDA 12.4'
    for item, word in (('70', '80 or more'), ('sm_80', 'sm_80'), ('80,90', '80,90'), ('', 'NN'), ('130', 'knows'), ('80-real', '80-real')):
        assert word in asked(root, item), (item, asked(root, item))
    assert 'empty' in asked(root)


@tap.test
def no_other_folder_knows_an_architecture(root):
    for top in ('daemon', 'proto', 'client', 'deploy', 'meson.build'):
        paths = [os.path.join(root, top)] if os.path.isfile(os.path.join(root, top)) else [
            os.path.join(path, name) for path, _, names in os.walk(os.path.join(root, top)) for name in names]
        for path in paths:
            with open(path, encoding='utf-8', errors='replace') as f:
                found = re.findall(r'\b(?:sm|compute)_\d+|__CUDA_ARCH__', f.read())
            assert not found, f'{path}: {found}'


if __name__ == '__main__':
    tap.run(*sys.argv[1:])
