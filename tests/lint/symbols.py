#!/usr/bin/env python3
"""Which objects may name which foreign symbols, by nm.

usage: symbols.py BUILD_ROOT        prints TAP

MPI only in comm_mpi.c; the CUDA runtime only in cuda/gpu; neither of them, nor a line of the engine, in
quarkd, quarkctl and libquark.
"""
import os
import re
import subprocess
import sys

MPI = re.compile(r'^(MPI|PMPI|ompi|opal|mca)_')
CUDA = re.compile(r'^(__cuda|cuda[A-Z]|cu[A-Z])')
ENGINE = re.compile(r'^qk_(comm|geom|halo|work|gauge|wilson|solver|ops)_')


def symbols(path, *flags):
    """Names of the symbols of an object or program."""
    run = subprocess.run(['nm', '-P', *flags, path], capture_output=True, text=True, check=True)
    return {line.split()[0] for line in run.stdout.splitlines() if line and not line.endswith(':')}


def undefined(build, found):
    """{object: names that it lacks}, of all objects by one nm."""
    run = subprocess.run(['nm', '-A', '-P', '-u', *found], capture_output=True, text=True, check=True, cwd=build)
    names = {path: set() for path in found}
    for line in run.stdout.splitlines():
        path, name = line.split(': ', 1)
        names[path].add(name.split()[0])
    return names


def objects(build):
    for directory, _, names in os.walk(build):
        for name in names:
            if name.endswith('.o') and '.p' in directory:
                path = os.path.relpath(os.path.join(directory, name), build)
                if not path.startswith(('tests/', 'meson-private/')):
                    yield path


def object_complaints(lacks):
    for path, names in lacks.items():
        if not os.path.basename(path).startswith('comm_mpi.c'):
            yield 'MPI', [f'{path}: {s}' for s in sorted(names) if MPI.match(s)]
        if not (path.startswith('cuda/') and 'gpu' in path):
            yield 'CUDA', [f'{path}: {s}' for s in sorted(names) if CUDA.match(s)]


def program_complaints(build, program):
    path = os.path.join(build, program)
    bad = [s for s in symbols(path) | symbols(path, '-D')
           if MPI.match(s) or CUDA.match(s) or ENGINE.match(s)]
    needed = subprocess.run(['objdump', '-p', path], capture_output=True, text=True, check=True).stdout
    bad += re.findall(r'NEEDED\s+(lib(?:mpi|cuda|cudart|open-rte)\S*)', needed)
    return bad


def main():
    build, programs = sys.argv[1], sys.argv[2:]
    lacks = undefined(build, sorted(objects(build)))
    bad = {'MPI': [], 'CUDA': []}
    for kind, lines in object_complaints(lacks):
        bad[kind] += lines
    # The rules must be able to fail: the files that are allowed the symbols must be seen to use them.
    uses = {kind: [p for p, names in lacks.items() if any(map(pattern.match, names))] for kind, pattern in (('MPI', MPI), ('CUDA', CUDA))}
    print(f'1..{2 + len(programs)}')
    for kind, owner in (('MPI', 'comm_mpi.c'), ('CUDA', 'cuda/gpu')):
        print(f"{'not ok' if bad[kind] else 'ok'} - {kind} symbols stay in {owner} "
              f'({len(lacks)} objects, {len(uses[kind])} use them)')
        for line in bad[kind]:
            print('# ' + line)
    for program in programs:
        lines = program_complaints(build, program)
        print(f"{'not ok' if lines else 'ok'} - {os.path.basename(program)} holds no MPI, CUDA or engine symbol")
        for line in lines:
            print('# ' + line)


main()
