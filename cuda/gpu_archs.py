#!/usr/bin/env python3
"""The option -Dgpu_archs as arguments of nvcc.

usage: gpu_archs.py NVCC ITEM...

ITEM: NN[a]       code for the cards of compute capability N.N; other cards with the same first digit and a larger
                  second one run it, too, if there is no "a"
      NN-virtual  PTX of compute_NN, which the driver compiles for any card from N.N on when a program starts
      native      the cards of this machine, as nvidia-smi names them
      portable    all of PORTABLE that this nvcc knows
      auto        native if the machine has a card that the kernels can run on, else DEFAULT

The output has a line for each architecture: its name and the argument.
"""
import re
import subprocess
import sys

DEFAULT = "90a"
OLDEST = 80  # tf32 and double on the tensor cores, cp.async
# PTX of 8.6 and not of 8.0: kernels of 8.0 take more shared memory than later cards of 8.x and 12.x have (gpu/arch.cuh).
PORTABLE = ["80", "86", "89", "90a", "100", "120", "86-virtual"]


def fail(text):
    sys.exit(f"gpu_archs: {text}")


def output(*command):
    """Its lines; none if it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.split() if done.returncode == 0 else []


def number(arch):
    return int(re.match(r"\d+", arch)[0])


def cards():
    """Compute capabilities of this machine's cards, as 86."""
    found = output("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
    return sorted({int(cap.replace(".", "")) for cap in found if re.fullmatch(r"\d+\.\d", cap)})


def native(item):
    found = [cap for cap in cards() if cap >= OLDEST]
    if not found and item == "native":
        fail("native: nvidia-smi names no card of compute capability 8.0 or more on this machine; "
             "name architectures (-Dgpu_archs=80,90a), or take portable")
    return ["90a" if cap == 90 else str(cap) for cap in found] or [DEFAULT]


def chosen(item, known):
    if item in ("native", "auto"):
        return native(item)
    if item == "portable":
        return [arch for arch in PORTABLE if number(arch) in known]
    if not re.fullmatch(r"\d{2,3}([af]|-virtual)?", item):
        fail(f'"{item}": NN, NN-virtual, native, portable or auto')
    if number(item) < OLDEST:
        fail(f'"{item}": 80 or more')
    return [item]


def argument(arch):
    if arch.endswith("-virtual"):
        virtual = "compute_" + arch.removesuffix("-virtual")
        return f"-gencode=arch={virtual},code={virtual}"
    return f"-gencode=arch=compute_{arch},code=sm_{arch}"


def main():
    nvcc, items = sys.argv[1], sys.argv[2:]
    known = [number(arch.removeprefix("compute_")) for arch in output(nvcc, "--list-gpu-arch")]
    archs = []
    for item in items:
        archs += [arch for arch in chosen(item, known) if arch not in archs]
    if not archs:
        fail("no architecture: -Dgpu_archs is empty")
    for arch in archs:
        if known and number(arch) not in known:
            fail(f'"{arch}": {nvcc} knows {", ".join(str(a) for a in known)}')
    for arch in archs:
        print(arch, argument(arch))


main()
