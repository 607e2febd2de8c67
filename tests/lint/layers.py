#!/usr/bin/env python3
"""Includes point one way only.

usage: layers.py SOURCE_ROOT        prints TAP, one test a folder

Each folder may include itself and the folders listed for it; mpi.h is for comm_mpi.c alone, the CUDA
headers for cuda/ alone. Exceptions are includes that still point upwards: the list may only shrink.
"""
import os
import re
import sys

ALLOWED = {
    'proto': set(),
    'daemon/base': {'proto'},
    'cuda': {'daemon/base', 'proto'},
    'daemon/comm': {'daemon/base', 'proto'},
}


ROOMS = []  # folders that are rooms or hold them: no further folders are below them


def rooms(top, below, rows):
    """Rows for the rooms of a folder, from the bottom up: each may include `below` and the rooms listed for it, the folder itself all of them."""
    seen = set()
    for name, others in rows.items():
        assert set(others.split()) <= seen, f'{top}/{name}: may include what stands above it'
        seen.add(name)
        ALLOWED[f'{top}/{name}'] = below | {f'{top}/{other}' for other in others.split()}
    ALLOWED[top] = below | {f'{top}/{name}' for name in rows}
    ROOMS.extend([top, *(f'{top}/{name}' for name in rows)])


rooms('daemon/engine', {'daemon/comm', 'cuda', 'daemon/base', 'proto'}, {
    'lattice': '',
    'launch': '',
    'gauge': 'lattice',
    'gauge/fix': 'gauge lattice',
    'gauge/fat': 'gauge lattice',
    'operator': 'lattice',
    'action': 'operator gauge lattice',
    'action/wilson': 'action operator gauge lattice',
    'action/twisted': 'action operator gauge lattice',
    'action/domainwall': 'action operator gauge lattice',
    'action/staggered': 'action operator gauge/fat gauge lattice',
    'smoother': 'operator lattice',
    'eigen': 'operator lattice',
    'hadron': 'gauge/fat gauge lattice',
    'tool': 'gauge launch lattice',
    'krylov': 'eigen operator lattice',
    'krylov/multishift': 'operator lattice',
    'masses': 'krylov/multishift operator lattice',
    'placement': 'krylov',
    'overlap': 'krylov/multishift krylov eigen action operator gauge lattice',
    'gauge_tool': 'tool gauge/fix gauge lattice',
    'multigrid': 'krylov eigen smoother operator lattice',
    'checkpoint': 'multigrid eigen operator lattice',
    'mg_service': 'checkpoint multigrid krylov operator lattice',
    'setup': 'mg_service checkpoint multigrid overlap krylov eigen action/wilson action/twisted action/domainwall action/staggered action operator hadron '
             'gauge/fix gauge launch lattice',
    'transfer': 'launch lattice',
    'modes': 'transfer setup checkpoint eigen operator hadron gauge lattice',
    'tune': 'tool setup multigrid krylov action lattice',
    'colours': 'setup transfer hadron lattice',
    'serve': 'colours placement masses modes transfer setup mg_service multigrid smoother krylov hadron action operator lattice',
})
rooms('daemon/front', {'daemon/base', 'proto'}, {
    'host': '',
    'settings': 'host',
    'storage': 'host',
    'measure': '',
    'job': 'storage',
    'state': 'job storage host',
    'engines': 'state job measure settings host',
    'service': 'engines state job measure storage settings host',
    'service/setups': 'service engines state job measure storage settings host',
    'restore': 'service engines state job storage settings host',
    'view': 'service engines state job measure settings host',
    'wire': 'job storage host',
    'net': 'wire view service state job storage settings host',
})
rooms('client', {'daemon/base', 'proto', 'client'}, {  # client itself: quark.h
    'libquark/connection': '',
    'libquark/memory': 'libquark/connection',
    'libquark/request': 'libquark/connection libquark/memory',
    'libquark': 'libquark/connection libquark/memory libquark/request',
    'files': '',
    'analysis': 'files',
    'cli': 'analysis files',
    'bench': 'cli',
    'workflow': 'cli analysis files',
    'selftest': 'cli workflow',
    'quarkctl': 'cli bench workflow selftest analysis files',
    'quda/base': '',
    'quda': 'quda/base',
})
ALLOWED['client'] = {'daemon/base', 'proto'}
EXCEPTIONS = {}
MPI = 'daemon/comm/comm_mpi.c', 'client/quda/base/grid.c'  # the second one: that of the caller
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
ENDINGS = ('.c', '.h', '.cc', '.cu', '.cuh')


used = set()  # of the exceptions


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
    if folder in ROOMS and os.path.dirname(source) != folder:
        yield source + ': its folder has no row here'
    with open(os.path.join(root, source), encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            m = INCLUDE.match(line)
            if not m:
                continue
            name, where = m[2], f'{source}:{number}: {m[2]}'
            if name == 'mpi.h' and source not in MPI:
                yield where + ': MPI is for %s alone' % ' and '.join(MPI)
            if re.match(r'cuda(_runtime|_fp16|_bf16)?(_api)?\.h$', name) and folder != 'cuda':
                yield where + ': the CUDA headers are for cuda/ alone'
            target = folder_of(resolve(root, source, name) or '') if m[1] == '"' else None
            if target and target != folder and target not in ALLOWED[folder]:
                if name in EXCEPTIONS.get(source, ()):
                    used.add((source, name))
                else:
                    yield where + f': {folder} must not include {target}'


def main():
    root = sys.argv[1]
    print(f'1..{len(ALLOWED) + 1}')
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
    stale = [(s, n) for s, names in EXCEPTIONS.items() for n in names if (s, n) not in used]
    print(('not ok' if stale else 'ok') + ' - every exception is needed')
    for source, name in stale:
        print(f'# {source} does not include {name} any more: take it out of EXCEPTIONS')


main()
