#!/usr/bin/env python3
"""Each header compiles alone and may be included twice.

usage: headers.py SOURCE_ROOT BUILD_ROOT CC CXX        prints TAP, one test a folder

Headers that say extern "C" are for C and C++; others are C, in cuda/ C++.
"""
import os
import subprocess
import sys
import tempfile

FOLDERS = ['proto', 'daemon/base', 'daemon/comm', 'daemon/engine', 'daemon/front', 'client', 'cuda', 'cuda/args',
           'tests/support']
FLAGS = ['-D_GNU_SOURCE', '-DQK_NS=qk_alone', '-Wall', '-Wextra', '-Werror', '-fsyntax-only', '-I/usr/include/hdf5/serial']


def headers(root, folder):
    for directory, _, names in os.walk(os.path.join(root, folder)):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(directory, name), root)
            # The folders below cuda/ hold templates that want the settings of the file that includes them.
            # served.h wants the quda.h of a program.
            if name.endswith('.h') and not (folder == 'cuda' and os.path.dirname(path) != 'cuda') and name != 'served.h':
                yield path


def languages(root, header):
    """The compilers, by index in (CC, CXX), that must take the header."""
    with open(os.path.join(root, header), encoding='utf-8') as f:
        both = 'extern "C"' in f.read()
    return {0, 1} if both else {1} if header.startswith('cuda/') else {0}


def complaint(root, build, compiler, header, cxx):
    """What the compiler says of the header alone; empty where it is content."""
    with tempfile.NamedTemporaryFile('w', suffix='.cc' if cxx else '.c') as unit:
        unit.write(f'#include "{header}"\n#include "{header}"\n')
        unit.flush()
        run = subprocess.run([compiler, '-std=gnu++17' if cxx else '-std=gnu11', *FLAGS, f'-I{root}', f'-I{build}',
                              unit.name], capture_output=True, text=True, check=False)
    return run.stderr if run.returncode else ''


def main():
    root, build, compilers = sys.argv[1], sys.argv[2], sys.argv[3:5]
    folders = [f for f in FOLDERS if any(headers(root, f))]
    print(f'1..{len(folders)}')
    for folder in folders:
        bad = [(h, text) for h in headers(root, folder) for i in sorted(languages(root, h))
               if (text := complaint(root, build, compilers[i], h, i == 1))]
        print(f"{'not ok' if bad else 'ok'} - headers of {folder} are self-contained")
        for header, text in bad:
            print(f'# {header}')
            print(''.join(f'#   {line}\n' for line in text.splitlines()[:6]), end='')


main()
