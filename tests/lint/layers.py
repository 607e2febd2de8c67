#!/usr/bin/env python3
"""Includes point one way only.

usage: layers.py SOURCE_ROOT        prints TAP, one test a folder

Each folder may include itself and the folders listed for it; mpi.h is for comm_mpi.c alone, the CUDA
headers for cuda/ alone.
"""
import os
import re
import sys

ALLOWED = {
    'proto': set(),
    'daemon/base': {'proto'},
    'cuda': {'daemon/base', 'proto'},
    'daemon/comm': {'daemon/base', 'proto'},
    'daemon/engine': {'daemon/comm', 'cuda', 'daemon/base', 'proto'},
    'daemon/front': {'daemon/base', 'proto'},
    'client': {'daemon/base', 'proto'},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
ENDINGS = ('.c', '.h', '.cc', '.cu', '.cuh')


def folder_of(path):
    """The longest known folder that holds path; None for others."""
    known = [f for f in ALLOWED if path == f or path.startswith(f + '/')]
    return max(known, key=len) if known else None


def resolve(root, source, name):
    """Path, from the root, of the project file that #include "name" in source means; else None."""
    for base in (os.path.dirname(source), ''):
        path = os.path.normpath(os.path.join(base, name))
        if os.path.exists(os.path.join(root, path)):
            return path
    return None


def complaints(root, source, folder):
    with open(os.path.join(root, source), encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            m = INCLUDE.match(line)
            if not m:
                continue
            name, where = m[2], f'{source}:{number}: {m[2]}'
            if name == 'mpi.h' and source != 'daemon/comm/comm_mpi.c':
                yield where + ': MPI is for daemon/comm/comm_mpi.c alone'
            if re.match(r'cuda(_runtime|_fp16|_bf16)?(_api)?\.h$', name) and folder != 'cuda':
                yield where + ': the CUDA headers are for cuda/ alone'
            target = folder_of(resolve(root, source, name) or '') if m[1] == '"' else None
            if target and target != folder and target not in ALLOWED[folder]:
                yield where + f': {folder} must not include {target}'


def main():
    root = sys.argv[1]
    print(f'1..{len(ALLOWED)}')
    for folder in ALLOWED:
        bad, seen = [], 0
        for directory, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(names):
                source = os.path.relpath(os.path.join(directory, name), root)
                if name.endswith(ENDINGS) and folder_of(source) == folder:
                    seen += 1
                    bad += complaints(root, source, folder)
        ok = 'ok' if seen and not bad else 'not ok'
        print(f'{ok} - includes of {folder} ({seen} files) point downwards')
        for line in bad:
            print('# ' + line)


main()
