#!/usr/bin/env bash
# gpu.sh [--quick] [--only PATTERN] [BUILD]: every check that needs a GPU, with one table last.
#
# Runs the tests of the kernels and of the engine on the GPU, the kernels under compute-sanitizer
# (memcheck, racecheck, initcheck) on a small lattice, and the benchmarks. Programs are taken from the build
# folder BUILD, or from PATH where no folder is given. --quick leaves out the benchmarks; --only runs the checks
# whose names in the table match the extended regular expression PATTERN, and no benchmark. Exit status:
# 0 when every check passed, 1 when one failed, 77 without a GPU.
# A build with PTX (-Dgpu_archs=90a,80-virtual) runs tests of kernels and solvers once more with what the driver makes of that.
#
# Checks run side by side, QK_JOBS of them (one for four cores), and take turns on the GPUs; benchmarks run alone.
# Whether two builds compute the same bits is another question: tests/same_bits asks it, on a GPU as well.
#
# The oracle needs python3 with numpy and scipy (QK_PYTHON names another interpreter).
set -uo pipefail

source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
quick=0
only=
build=
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=1 ;;
    --only) only=${2:?--only needs a pattern} quick=1; shift ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) build=$(cd "$1" && pwd) || exit 64 ;;
  esac
  shift
done
export PYTHONPATH=$source_root/tests/support/python:$source_root/tests/ref${PYTHONPATH:+:$PYTHONPATH}
export QK_BACKEND=cuda QK_LARGE=1 QK_SOURCE_ROOT=$source_root QK_DATA=${QK_DATA:-$source_root/../shared/data}
if [ -z "${QK_PYTHON:-}" ]; then
  for python in /usr/bin/python3 python3; do
    if "$python" -c 'import numpy, scipy' 2>/dev/null; then
      export QK_PYTHON=$python
      break
    fi
  done
fi

if ! nvidia-smi -L 2>/dev/null; then
  echo 'gpu.sh: no GPU here: skipped'
  exit 77
fi

log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
names=()
failed=0
gpus=$(nvidia-smi -L | wc -l)
cores=$(nproc)
most=${QK_JOBS:-$(((cores + 3) / 4))}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$(((cores + most - 1) / most))} OMP_WAIT_POLICY=passive

# The path of a program of the build, or nothing.
program() {
  if [ -n "$build" ]; then
    find "$build/tests" -type f -name "$1" -perm -u+x | head -n 1
  else
    command -v "$1"
  fi
}

# The path of an installed program of the build, or nothing.
installed() {
  if [ -n "$build" ]; then
    find "$build/daemon" "$build/client" -type f -name "$1" -perm -u+x | head -n 1
  else
    command -v "$1"
  fi
}

line() { # name verdict seconds
  printf '%-32s %-20s %8s\n' "$1" "$2" "$3"
}

note() { # name verdict seconds
  [[ $1 =~ $only ]] || return 0
  local i=${#names[@]}
  names+=("$1")
  printf '%s\t%s\n' "$2" "$3" >"$log/$i.verdict"
  line "$1" "$2" "$3"
}

run_check() { # index name command...
  local i=$1 name=$2 start=$SECONDS status verdict=passed
  shift 2
  timeout -k 10 300 "$@" >"$log/$i.out" 2>&1
  status=$?
  if [ $status -ne 0 ]; then
    verdict="FAILED ($status)"
    printf -- '--- %s\n%s\n' "$name" "$(tail -n 40 "$log/$i.out")"
  elif grep -qE '^\[SKIP\]|Tested: 0 |^1\.\.0 # SKIP' "$log/$i.out"; then
    verdict=skipped
  else
    verdict="passed $(sed -n 's/.*Tested: \([0-9]*\) | Passing: \([0-9]*\).*/\2 of \1/p' "$log/$i.out")"
  fi
  printf '%s\t%s\n' "$verdict" $((SECONDS - start)) >"$log/$i.verdict"
  line "$name" "$verdict" $((SECONDS - start))
}

# Starts a check that uses all GPUs; its output is shown when it fails.
check_all() { # name command...
  [[ $1 =~ $only ]] || return 0
  local i=${#names[@]}
  names+=("$1")
  while [ "$(jobs -rp | wc -l)" -ge "$most" ]; do wait -n; done
  run_check "$i" "$@" &
}

# Starts a check that uses one.
check() { # name command...
  local name=$1
  shift
  check_all "$name" env CUDA_VISIBLE_DEVICES=$((${#names[@]} % gpus)) "$@"
}

# A small thermalised lattice, which the tests of multigrid read.
quark_gauge=$(installed quark-gauge)
if [ -n "$quark_gauge" ]; then
  "$quark_gauge" generate --dims 8x8x8x16 --beta 6.0 --sweeps 300 --or-per-hb 4 --seed 1 --start cold --quiet \
    --out "$log/small.%d.lime" >/dev/null && export QK_THERMAL=$log/small.300.lime
fi

tests=(test_kernels_hop test_kernels_hop_each test_kernels_hop_wide test_kernels_hop_rough test_kernels_hop_masks test_kernels_local test_kernels_diag_exp test_kernels_gauge test_kernels_blas test_kernels_multi
  test_kernels_columns test_kernels_vector_block test_kernels_coherent test_kernels_coarse_fields test_kernels_gcr test_kernels_gcr_pass test_kernels_cagcr test_kernels_ratios
  test_kernels_coarse test_kernels_transfer test_kernels_aggregates test_kernels_mg_setup
  test_kernels_fifth test_kernels_stag test_kernels_shift test_kernels_smear test_kernels_fix test_kernels_paths test_kernels_project test_kernels_device
  test_conformance_operators test_field test_halo test_smear test_fat_links test_staggered test_overlap test_overlap_system test_overlap_masses test_gaugefield test_gauge_fix test_evolve test_operator test_solver
  test_engine_faults test_mg_faults
  test_smoother test_galerkin test_multigrid_setup test_cycle test_flavours test_doublet test_lanczos test_compressed test_laplacian test_projector test_mg_file test_mg_evolve test_setup test_plan
  test_mixed test_reference test_peers test_contract test_correlators test_chroma test_staggered_accuracy test_improved)
for name in "${tests[@]}"; do
  path=$(program "$name")
  if [ -z "$path" ]; then
    note "$name" 'not built' 0
  else
    check "$name" "$path" --jobs 1
  fi
done

peer_threads=$(program peer_threads)
[ -z "$peer_threads" ] || check 'peer threads' env QK_BACKEND=cuda "$peer_threads"

# Code for older cards, as PTX that the driver compiles for this one: of builds with PTX (-Dgpu_archs=80-virtual, portable).
device=$(program test_kernels_device)
if [ -n "$device" ] && CUDA_FORCE_PTX_JIT=1 timeout 300 "$device" --jobs 1 --filter device/says_what_it_is >"$log/ptx" 2>&1 &&
  ! grep -qE 'SKIP|Tested: 0 ' "$log/ptx"; then
  for name in "${tests[@]}"; do
    path=$(program "$name")
    case $name in
      test_kernels_* | test_operator | test_solver | test_setup | test_cycle | test_multigrid_setup)
        [ -z "$path" ] || check "PTX: $name" env CUDA_FORCE_PTX_JIT=1 "$path" --jobs 1 ;;
    esac
  done
else
  note 'PTX' 'not built' 0
fi

ranks=$(program ranks)
if [ "$gpus" -gt 1 ] && [ -n "$ranks" ] && command -v mpirun >/dev/null; then
  grids=(1x1x1x2 1x1x2x1)
  if [ "$gpus" -ge 4 ]; then grids+=(1x1x1x4 1x1x2x2 2x2x1x1); fi
  check_all 'several GPUs agree with one' "$QK_PYTHON" "$source_root/tests/ranks/compare.py" "$ranks" \
    builtin:weak:16x16x16x32:11 "${grids[@]}"
else
  note 'several GPUs agree with one' skipped 0
fi
mg_ranks=$(program mg_ranks)
if [ "$gpus" -gt 1 ] && [ -n "$mg_ranks" ] && command -v mpirun >/dev/null; then
  check_all 'multigrid on several GPUs' "$QK_PYTHON" "$source_root/tests/ranks/mg.py" "$mg_ranks" \
    builtin:weak:8x8x16x16:4 1x1x1x2 1x1x2x1
else
  note 'multigrid on several GPUs' skipped 0
fi

quarkd=$(installed quarkd)
quarkctl=$(installed quarkctl)
quark_tune=$(installed quark-tune)
if [ -n "$quarkd" ] && [ -n "$quarkctl" ] && [ -n "$quark_gauge" ]; then
  check 'programs: GPU against CPU' python3 "$source_root/tests/integ/tools/compare_backends.py" "$quarkd" "$quarkctl" "$quark_gauge"
else
  note 'programs: GPU against CPU' skipped 0
fi
quark_engine=$(installed quark-engine)
if [ -n "$quark_engine" ] && [ -n "$quark_gauge" ] && [ -n "${QK_PYTHON:-}" ]; then
  check 'five dimensions: GPU against CPU' "$QK_PYTHON" "$source_root/tests/integ/engine/test_engine_five_backend.py" "$quark_engine" "$quark_gauge" 1
else
  note 'five dimensions: GPU against CPU' skipped 0
fi
if [ -n "$quarkd" ] && [ -n "$quarkctl" ] && [ -n "$quark_engine" ]; then
  check 'quarkctl selftest' "$quarkctl" selftest --quarkd "$quarkd" --engine "$quark_engine"
else
  note 'quarkctl selftest' skipped 0
fi
if [ -n "$quarkd" ] && [ -n "$quark_engine" ] && [ -n "$quark_gauge" ] && [ -n "${QK_PYTHON:-}" ]; then
  service=("$quarkd" "$quark_engine" "$quark_gauge")
  for name in staggered masses overlap stopping; do
    check "service: $name" "$QK_PYTHON" "$source_root/tests/integ/daemon/test_$name.py" "${service[@]}" 1
  done
  if [ "$gpus" -gt 1 ]; then
    check_all 'service: ranks that are killed' "$QK_PYTHON" "$source_root/tests/integ/daemon/test_rank_kills.py" "${service[@]}" 2
  fi
else
  note 'service' skipped 0
fi
if [ -n "$quark_tune" ]; then
  # 0: settings are better than the defaults; 1: there are none
  check 'quark-tune for ten seconds' bash -c '"$@" || [ $? -eq 1 ]' tune "$quark_tune" --kappa 0.1350 --csw 1.769 --slots 8 --budget 10 --backend cuda \
    --protocol "$log/tuned.jsonl" --out "$log/tuned.conf" "${QK_THERMAL:-builtin:weak:8x8x8x16:1}"
else
  note 'quark-tune for ten seconds' skipped 0
fi
if [ -n "$quark_gauge" ] && [ -n "${QK_PYTHON:-}" ]; then
  check 'plaquettes of the literature' "$QK_PYTHON" "$source_root/tests/physics/plaquette.py" --backend cuda \
    --quark-gauge "$quark_gauge" --sweeps 3000 --configurations 0
else
  note 'plaquettes of the literature' skipped 0
fi

evolve_ranks=$(program evolve_ranks)
if [ -n "$evolve_ranks" ] && command -v mpirun >/dev/null; then
  for n in 2 4; do # they share a GPU where there are fewer
    check_all "Markov chain on $n ranks" mpirun -np $n "$evolve_ranks"
  done
fi

bench_hop=$(program bench_hop)
bench_blas=$(program bench_blas)
bench_evolve=$(program bench_evolve)
bench_smear=$(program bench_smear)
bench_contract=$(program bench_contract)
bench_project=$(program bench_project)
bench_stag=$(program bench_stag)
bench_mg_setup=$(program bench_mg_setup)
bench_mg=$(program bench_mg)
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
if [ -n "$sanitizer" ]; then
  small=(--backend cuda --dims 4x4x4x4 --seconds 0.0001)
  vectors=(--mg 'mg-vectors=24,24' --mg 'mg-test-vectors=24,24') # no test vectors beyond them: setups are long
  for tool in memcheck racecheck initcheck; do
    run=("$sanitizer" --tool "$tool" --error-exitcode 9)
    # The pad lanes of a ragged block are never written by anybody: initcheck is for whole tiles.
    counts=1,3,16
    if [ $tool = initcheck ]; then counts=1,8; fi
    if [ -n "$bench_hop" ]; then
      check "$tool bench_hop" "${run[@]}" "$bench_hop" "${small[@]}" --reals 18,12,8 --nrhs $counts
    fi
    if [ -n "$bench_evolve" ]; then
      for c1 in 0 -0.331; do
        check "$tool bench_evolve $c1" "${run[@]}" "$bench_evolve" "${small[@]}" --c1 $c1
      done
    fi
    if [ -n "$bench_smear" ]; then
      check "$tool bench_smear" "${run[@]}" "$bench_smear" "${small[@]}" --nrhs $counts
    fi
    if [ -n "$bench_contract" ]; then
      check "$tool bench_contract" "${run[@]}" "$bench_contract" "${small[@]}" --momenta 1,3
    fi
    if [ -n "$bench_project" ]; then
      check "$tool bench_project" "${run[@]}" "$bench_project" "${small[@]}" --vectors 24
    fi
    if [ -n "$bench_mg_setup" ]; then
      check "$tool bench_mg_setup" "${run[@]}" "$bench_mg_setup" --backend cuda --dims 8x4x4x4 \
        --block 4x2x2x2 --seconds 0.0001
    fi
    if [ -n "$bench_blas" ] && [ $tool != initcheck ]; then
      check "$tool bench_blas" "${run[@]}" "$bench_blas" "${small[@]}"
    fi
    # Whole solves under racecheck and initcheck take minutes on the smallest lattice, nearly all in the setup.
    if [ -n "$bench_mg" ] && [ $tool != memcheck ]; then
      solve=("${run[@]}" "$bench_mg" --gauge builtin:weak:4x4x4x8:1 --tol 1e-2 "${vectors[@]/,24/}" --mg mg-setup-iterations=2 --mg mg-setup-passes=none)
      batches='1 3'
      if [ $tool = initcheck ]; then batches=8; fi
      for batch in $batches; do
        check "$tool bench_mg $batch" "${solve[@]}" --batch "$batch"
        check "$tool flavours $batch" "${solve[@]}" --batch "$batch" --flavours 1 --action 'twisted-clover;mass=0.2;mu=0.1;csw=1'
        check "$tool doublet $batch" "${solve[@]}" --batch "$batch" --action 'doublet;mass=0.2;mu=0.1;epsilon=0.08;csw=1' \
          --mg mg-pre=2 --mg mg-post=2
      done
    elif [ -n "$bench_mg" ] && [ $tool = memcheck ]; then
      check "$tool bench_mg" "${run[@]}" "$bench_mg" --gauge builtin:weak:8x8x8x8:1 --kappa 0.12 --csw 1 \
        --tol 1e-3 --batch 1,3,12 --mg mg-levels=3 --mg mg-blocks=2x2x2x2 "${vectors[@]}" \
        --mg mg-setup-iterations=2 --mg mg-setup-passes=none
      check "$tool flavours" "${run[@]}" "$bench_mg" --gauge builtin:weak:8x8x8x8:1 --tol 1e-3 --batch 3,12 --flavours 1 \
        --action 'twisted-clover;mass=0.1;mu=0.1;csw=1' --mg mg-levels=3 --mg mg-blocks=2x2x2x2 "${vectors[@]}" \
        --mg mg-setup-iterations=2 --mg mg-setup-passes=none
      check "$tool doublet" "${run[@]}" "$bench_mg" --gauge builtin:weak:8x8x8x8:1 --tol 1e-3 --batch 3 \
        --action 'doublet;mass=0.1;mu=0.1;epsilon=0.08;csw=1' --mg mg-levels=3 --mg mg-blocks=2x2x2x2 "${vectors[@]}" \
        --mg mg-setup-iterations=2 --mg mg-setup-passes=none
    fi
  done
  for suite in hop smear; do
    path=$(program test_kernels_$suite)
    if [ -n "$path" ]; then
      check "memcheck ghosts of $suite" "$sanitizer" --target-processes all --tool memcheck \
        --error-exitcode 9 "$path" --jobs 1 --filter "$suite/reads_ghosts_*_in_all_directions"
    fi
  done
  for suite in coarse transfer aggregates vector_block coherent gcr gcr_pass cagcr ratios local diag_exp fifth project fix paths stag shift hop_each hop_wide \
    hop_rough; do
    path=$(program test_kernels_$suite)
    if [ -n "$path" ]; then
      check "memcheck $suite" "$sanitizer" --target-processes all --tool memcheck --error-exitcode 9 \
        "$path" --jobs 8
    fi
  done
  path=$(program test_kernels_fifth)
  if [ -n "$path" ]; then
    check 'racecheck fifth' "$sanitizer" --target-processes all --tool racecheck --error-exitcode 9 "$path" --jobs 8
  fi
  # What the benchmarks do not call: links in and out, boxes of the halo, sources and columns, sums into what is fresh.
  for name in test_gaugefield test_kernels_columns test_kernels_multi; do
    path=$(program $name)
    if [ -n "$path" ]; then
      check "memcheck $name" "$sanitizer" --target-processes all --tool memcheck --error-exitcode 9 \
        "$path" --jobs 1
    fi
  done
  if [ -n "$evolve_ranks" ] && command -v mpirun >/dev/null; then
    check_all 'memcheck halo of 2 ranks' mpirun -np 2 "$sanitizer" --target-processes all --tool memcheck \
      --error-exitcode 9 "$evolve_ranks"
  fi
else
  note compute-sanitizer 'not found' 0
fi

wait
if [ $quick = 0 ]; then
  unset OMP_NUM_THREADS
  if [ -n "$bench_hop" ]; then
    "$bench_hop" --backend cuda --reals 18,12,8 --nrhs 1,8,16 --seconds 0.2 || failed=1
  fi
  if [ -n "$bench_blas" ]; then "$bench_blas" --backend cuda || failed=1; fi
  if [ -n "$bench_evolve" ]; then
    for c1 in 0 -0.331; do "$bench_evolve" --backend cuda --c1 $c1 || failed=1; done
  fi
  if [ -n "$bench_smear" ]; then "$bench_smear" --backend cuda || failed=1; fi
  if [ -n "$bench_contract" ]; then "$bench_contract" --backend cuda || failed=1; fi
  if [ -n "$bench_project" ]; then "$bench_project" --backend cuda || failed=1; fi
  if [ -n "$bench_stag" ]; then "$bench_stag" --backend cuda || failed=1; fi
  if [ -n "$bench_mg_setup" ]; then "$bench_mg_setup" --backend cuda || failed=1; fi
  bench_coarse=$(program bench_coarse)
  if [ -n "$bench_coarse" ]; then "$bench_coarse" --backend cuda --seconds 0.05 || failed=1; fi
  bench_solve=$(program bench_solve)
  if [ -n "$quark_gauge" ]; then
    echo "1000 sweeps of 32x32x32x64 from a cold start, four overrelaxations each:"
    start=$SECONDS
    "$quark_gauge" generate --dims 32x32x32x64 --beta 6.0 --sweeps 1000 --or-per-hb 4 --seed 1 --start cold --bits 32 \
      --backend cuda --out "$log/thermal.%d.lime" | tail -n 5 || failed=1
    echo "wall time $((SECONDS - start)) s, with start and file"
    if [ -n "$bench_solve" ]; then
      "$bench_solve" --gauge "$log/thermal.1000.lime" --kappa 0.1333 --csw 1.769 --batch 1,8,16 --methods bicgstab || failed=1
    fi
    if [ -n "$bench_mg" ]; then timeout -k 10 120 "$bench_mg" --gauge "$log/thermal.1000.lime" --kappa 0.1350 --batch 1,8,16 || failed=1; fi
    if [ -n "$bench_mg" ] && [ -n "$quarkd" ]; then
      timeout -k 10 500 "$QK_PYTHON" "$source_root/tests/bench/bench_service.py" ${build:+"$build"} --only engine --backend cuda \
        --gauge "$log/thermal.1000.lime" --kappa 0.1350 --csw 1.769 --slots 16 --seconds 30 || failed=1
    fi
    bench_restart=$(program bench_restart)
    if [ -n "$bench_restart" ]; then
      timeout -k 10 120 "$bench_restart" --gauge "$log/thermal.1000.lime" --kappa 0.1350 --file "$log/restart.mg" || failed=1
    fi
  fi
fi

echo
line check result seconds
for i in "${!names[@]}"; do
  IFS=$'\t' read -r verdict seconds <"$log/$i.verdict"
  line "${names[i]}" "$verdict" "$seconds"
  if [[ $verdict == FAILED* ]]; then failed=1; fi
done
exit $failed
