#!/usr/bin/env bash
# Installs what is missing of the Debian 12 / Ubuntu 24.04 packages the project needs.
# usage: deploy/packages.sh [--list] SET...   sets: build test lint plot web slurm bundle runtime; --list: only print their names
set -euo pipefail

declare -A packages=(
  [build]="gcc g++ meson ninja-build pkg-config python3 protobuf-c-compiler libprotobuf-c-dev
    libzmq3-dev libuv1-dev libmicrohttpd-dev libsystemd-dev libsqlite3-dev libxxhash-dev zlib1g-dev libjansson-dev libinih-dev
    libhdf5-dev liblapack-dev libopenmpi-dev openmpi-bin"
  [test]="libcriterion-dev protobuf-compiler python3-numpy python3-scipy python3-h5py python3-zmq
    python3-protobuf python3-yaml binutils librandom123-dev patchelf systemd python3-cffi python3-dev
    python3-nbclient python3-ipykernel python3-matplotlib python3-mpi4py"
  [lint]="clang-14 libomp-14-dev clang-format-14 clang-tidy-14 shellcheck mandoc mypy"
  [plot]="gnuplot-nox"
  [web]="chromium chromium-driver"
  [slurm]="slurm-wlm munge"
  [bundle]="patchelf xz-utils"
  [runtime]="libprotobuf-c1 libzmq5 libuv1 libmicrohttpd12 libsystemd0 libsqlite3-0 libxxhash0 zlib1g libjansson4 libinih1
    libhdf5-103-1 liblapack3 libopenmpi3 openmpi-bin libgomp1 libstdc++6"
)

list=
if [ "${1:-}" = --list ]; then
  list=yes
  shift
fi
wanted=()
for set in "$@"; do
  if [ -z "${packages[$set]:-}" ]; then
    echo "packages.sh: set \"$set\": must be one of ${!packages[*]}" >&2
    exit 64
  fi
  read -r -d '' -a names <<<"${packages[$set]}" || true
  wanted+=("${names[@]}")
done

if [ -n "$list" ]; then
  printf '%s\n' "${wanted[@]}"
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "packages.sh: not root and no sudo; please install: ${missing[*]}" >&2
    exit 69
  fi
  as_root=(sudo)
fi
echo "installing: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
