#!/usr/bin/env python3
"""What libquda.so does not serve, and what ends a program: test_quda_refused.py QUARKD QUARK_ENGINE QUARK_GAUGE LIBQUARK_A QUDA_PARTS_A

The library and its callers are built with the address sanitizer."""
import os
import re
import shutil
import signal
import subprocess
import sys

import tap

try:
    import numpy as np
    from front_driver import Client, qk
    from quda_case import CSW, LOOKALIKE, SCRIPT, SHAPE, TOP, QudaCase
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

ASAN = '-fsanitize=address -g'


def exported(library):
    lines = subprocess.run(['nm', '-D', '--defined-only', library], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return {line.split()[-1] for line in lines}


def table():
    with open(os.path.join(TOP, 'client', 'quda', 'functions.txt'), encoding='utf-8') as f:
        return {line.split()[1]: line.split()[0] for line in f if line.strip() and not line.startswith('#')}


def other(case, variant, name):
    """The library that functions are forwarded to."""
    path = case.path(name)
    subprocess.run(['cc', '-shared', '-fPIC', '-DLOOKALIKE=%d' % variant, '-I' + LOOKALIKE, os.path.join(LOOKALIKE, 'other.c'), '-o', path],
                   check=True)
    return path


@tap.test
def every_function_of_the_header_is_there_and_nothing_else(case):
    folder = case.caller(4, flags=ASAN).folder
    declared = set()
    for name in ('quda.h', 'quda_milc_interface.h'):
        text = subprocess.run(['cc', '-E', '-P', '-DLOOKALIKE=4', '-I' + LOOKALIKE, os.path.join(LOOKALIKE, name)],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        declared |= set(re.findall(r'\b(\w*[Qq]uda\w*|perform\w+|set_dim)\s*\(', text)) - {'QudaCommsMap'}
    assert exported(os.path.join(folder, 'lib', 'libquda.so')) == declared


@tap.test
def what_no_table_serves_is_refused_by_its_name(case):
    known = table()
    refused = exported(os.path.join(case.caller(4, flags=ASAN).folder, 'lib', 'libquda.so')) - set(known)
    assert {'nobodyKnowsQuda', 'nobodyKnowsThisQuda', 'performWFlowQuda', 'qudaInvert', 'set_dim'} < refused, refused
    for name in sorted(refused):
        said = case.run(None, 'refused', np.zeros((1,) + SHAPE), 4, flags=ASAN, code=1, call=name)
        assert said == ('quark-quda: %s is not served by quarkd; QUARK_QUDA_FALLBACK=/path/libquda.so forwards it\n' % name), said


@tap.test
def another_library_gets_the_arguments(case):
    b = np.zeros((1,) + SHAPE)
    with case.daemon('--csw', repr(CSW)) as d:
        env = {'QUARK_QUDA_FALLBACK': other(case, 4, 'other.so')}
        _, said = case.run(d, 'refused', b, 4, flags=ASAN, call='forward', env=env)
        for line in ('other initQuda 3', 'other performWFlowQuda 12 0.25 1', 'other computeGaugeForceQuda 1 1.5 7 8 0.125 8', 'force 42',
                     'action 4.5', 'other endQuda'):
            assert line + '\n' in said, said
        said = case.run(d, 'refused', b, 4, flags=ASAN, call='plaqQuda', env=env, code=1)
        assert 'plaqQuda is not in QUARK_QUDA_FALLBACK' in said, said
        env = {'QUARK_QUDA_FALLBACK': other(case, 3, 'third.so')}
        said = case.run(d, 'refused', b, 4, flags=ASAN, call='forward', env=env, code=1)
        assert 'is not as in the header' in said, said
        assert d.terminate() == 0


@tap.test
def an_old_binary_is_compared_with_the_header(case):
    def build(variant):
        return subprocess.run([SCRIPT, '--header', LOOKALIKE, '--prefix', case.path('old'), '--cflags=-O0 -DLOOKALIKE=2',
                               '--libquark', case.libquark + ',' + os.path.join(TOP, 'client'), '--parts', case.parts,
                               '--old', other(case, variant, 'old%d.so' % variant)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    done = build(3)
    assert done.returncode == 1 and 'cannot be replaced' in done.stderr and not os.path.exists(case.path('old')), done
    done = build(2)
    assert done.returncode == 0, done
    for name in ('include/quda.h', 'lib/libquda.so', 'lib/cmake/QUDA/QUDAConfig.cmake'):
        assert os.path.exists(os.path.join(case.path('old'), name)), name


@tap.test
def what_is_not_there_to_build_with_is_named(case):
    done = subprocess.run([SCRIPT, '--header', case.folder, '--prefix', case.path('none')], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    assert done.returncode == 1 and 'has no quda.h' in done.stderr and not os.path.exists(case.path('none')), done
    done = subprocess.run([SCRIPT, '--header', LOOKALIKE, '--prefix', case.path('none')], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env={**os.environ, 'PKG_CONFIG_LIBDIR': case.folder, 'PKG_CONFIG_PATH': ''})
    assert done.returncode == 1 and '--libquark BUILD/client/libquark.a' in done.stderr and not os.path.exists(case.path('none')), done


@tap.test
def a_libquark_of_another_version_is_refused(case):
    for name, (old, new) in (('more', ('  int32_t part;', '  int32_t part; double more;')), ('less', ('  uint64_t detach_ms;', ''))):
        folder = case.path(name)
        shutil.copytree(os.path.join(TOP, 'client'), folder, ignore=lambda path, names: [n for n in names if not n.endswith('.h')])
        with open(os.path.join(folder, 'quark.h'), encoding='utf-8') as f:
            text = f.read()
        with open(os.path.join(folder, 'quark.h'), 'w', encoding='utf-8') as f:
            f.write(text.replace(old, new, 1))
        done = subprocess.run([SCRIPT, '--header', LOOKALIKE, '--prefix', case.path('none'), '--cflags=-DLOOKALIKE=2', '--cc', 'cc', '--parts', case.parts,
                               '--libquark', case.libquark + ',' + folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and 'is of another version than quark.h: its quark_' in done.stderr, done
        assert not os.path.exists(case.path('none'))


@tap.test
def headers_that_are_included_are_installed_and_no_others(case):
    header = case.path('headers')
    os.makedirs(os.path.join(header, 'kernels'))
    for name in os.listdir(LOOKALIKE):
        shutil.copy(os.path.join(LOOKALIKE, name), header)
    with open(os.path.join(header, 'quda.h'), 'a', encoding='utf-8') as f:
        f.write('#include "kernels/inner.h"\n')
    for name in ('kernels/inner.h', 'kernels/other.h', 'malloc_quda.h', 'dslash.h'):
        open(os.path.join(header, name), 'w', encoding='utf-8').close()
    subprocess.run([SCRIPT, '--header', header, '--prefix', case.path('prefix'), '--cflags=-O0 -DLOOKALIKE=2', '--cc', 'cc', '--parts', case.parts,
                    '--libquark', case.libquark + ',' + os.path.join(TOP, 'client')], stdout=subprocess.DEVNULL, check=True)
    include = case.path('prefix/include')
    found = {os.path.relpath(os.path.join(path, n), include) for path, _, names in os.walk(include) for n in names}
    assert found - {'cuda_runtime_api.h'} == {'quda.h', 'quda_milc_interface.h', 'kernels/inner.h', 'malloc_quda.h'}, found


@tap.test
def members_that_would_change_the_operator_are_refused(case):
    b = case.noise(1)
    with case.daemon('--csw', repr(CSW)) as d:
        for argument, text in ((dict(mu=0.1), 'mu = 0.1'), (dict(clover_rho=0.5), 'clover_rho = 0.5'), (dict(Ls=8), 'Ls = 8 '),
                               (dict(order=1), 'dirac_order = '), (dict(half=1), 'cpu_prec = '), (dict(device=2), 'in the memory of a GPU'),
                               (dict(dslash='asqtad'), 'dslash_type = '), (dict(dslash='twisted', mu=np.nan), 'mu = nan'),
                               (dict(dslash='twisted', mu=0.1, epsilon=0.2), 'epsilon = 0.2'), (dict(dslash='twisted', doublet=1), 'twist_flavor = '),
                               (dict(dslash='twisted', mu=0.1, xi=2), 'isotropic links alone'),
                               (dict(dslash='twisted-clover', mu=0.1, call='clover'), 'cloverQuda: dslash_type'),
                               (dict(dslash='twisted', mu=0.1, call='dslash', dagger=1), 'dagger = QUDA_DAG_YES'),
                               (dict(solution='matpcdag', call='one'), 'solution_type = '),
                               (dict(kappa=0), 'kappa = 0'), (dict(tol=0), 'no residual is asked for'),
                               (dict(sign=0), 'no time slice of the links has the sign')):
            said = case.run(d, 'pyquda', b, 4, flags=ASAN, code=1, **argument)
            assert text in said and said.strip().splitlines()[-1].startswith('quark-quda: '), said
        x, _ = case.run(d, 'pyquda', b, 4, flags=ASAN)  # the daemon is as it was
        assert np.linalg.norm(b[0] - case.op.apply(x[0])) < 2e-13 * np.linalg.norm(b[0])
        assert d.terminate() == 0


@tap.test
def bad_links_and_sources_end_the_program(case):
    b = case.noise(2)
    wire = case.wire(case.links)
    with case.daemon('--csw', repr(CSW)) as d:
        for change, text in ((lambda u: u.__setitem__((1, 2, 3, 0, 2), 2 * u[1, 2, 3, 0, 2]), 'not SU(3) times a scale'),
                             (lambda u: u.__setitem__((0, 0, 0, 0, 0, 0, 0), np.nan), 'the mean of |det U|'),
                             (lambda u: u.__setitem__((1, 2, 3, 0, 2, 0), u[1, 2, 3, 0, 2, 0] + 1e-4 * u[1, 2, 3, 0, 2, 1]), 'NOT_UNITARY')):
            u = wire.copy()
            change(u)
            u.tofile(case.path('bad'))
            said = case.run(d, 'pyquda', b, 4, flags=ASAN, links='bad', code=1)
            assert text in said, said
        bad = b.copy()
        bad[0, 1, 2, 3, 0, 1, 2] = np.inf
        assert 'NAN_INPUT' in case.run(d, 'pyquda', bad, 4, flags=ASAN, code=1)
        assert d.terminate() == 0


@tap.test
def a_setup_by_name_must_be_the_right_one(case):
    b = case.noise(3)
    with case.daemon('--csw', repr(CSW)) as d:
        _, said = case.run(d, 'pyquda', b, 4, flags=ASAN, env={'QUARK_QUDA_SETUP': 'main'})
        said = case.run(d, 'pyquda', b, 4, flags=ASAN, kappa=0.121, env={'QUARK_QUDA_SETUP': 'main'}, code=1)
        assert 'QUARK_QUDA_SETUP = main: its mass is' in said, said
        said = case.run(d, 'pyquda', b, 4, flags=ASAN, env={'QUARK_QUDA_SETUP': 'nobody'}, code=1)
        assert 'nobody' in said, said
        assert d.terminate() == 0


@tap.test
def no_daemon_no_room_and_bad_settings_are_told(case):
    b = case.noise(4)
    assert 'no daemon' in case.run(None, 'pyquda', b, 4, flags=ASAN, code=75, env={'QUARK_QUDA_WAIT': '0.5'})
    with case.daemon('--csw', repr(CSW), '--user-setups', '0') as d:
        for name, value, text in (('WIRE', 'half', 'must be f32'), ('RANKS', '2', 'a number from 0 to 1'), ('THREADS', '0', 'a number from 1 to 256')):
            said = case.run(d, 'pyquda', b, 4, flags=ASAN, code=1, env={'QUARK_QUDA_' + name: value})
            assert 'QUARK_QUDA_%s = %s: ' % (name, value) in said and text in said, said
        assert 'user-setups' in case.run(d, 'pyquda', b, 4, flags=ASAN, kappa=0.11, code=1)
        assert d.terminate() == 0


@tap.test
def a_full_daemon_is_waited_for(case):
    b = case.noise(7)
    with case.daemon('--csw', repr(CSW), '--max-memory', '1M') as d, Client(d) as c:
        held = c.submit(5).request  # with its room for sources and solutions
        command = case.command(d, 'pyquda', b, 4, flags=ASAN)
        caller = subprocess.Popen(command[0], env=command[1], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = []
        while not lines or '; waiting' not in lines[-1]:
            lines.append(caller.stderr.readline())
            assert lines[-1], lines
        assert lines[-1].startswith('quark-quda: submitting: '), lines
        c.send(release=qk.Release(request=held))
        caller.communicate(timeout=60)
        x = case.solutions(b)
        assert caller.returncode == 0 and np.linalg.norm(b[0] - case.op.apply(x[0])) < 2e-13 * np.linalg.norm(b[0])
        held = c.submit(5).request
        assert 'BUSY' in case.run(d, 'pyquda', b, 4, flags=ASAN, code=75, env={'QUARK_QUDA_WAIT': '0.3'})
        c.send(release=qk.Release(request=held))
        assert d.terminate() == 0


@tap.test
def a_lost_engine_costs_time_alone(case):
    b = case.noise(5, 3)
    with case.daemon('--csw', repr(CSW)) as d:
        engine = d.status().engine.pid
        os.kill(engine, signal.SIGSTOP)  # so that right-hand sides are with it when it dies
        command = case.command(d, 'pyquda', b, 4, flags=ASAN)
        caller = subprocess.Popen(command[0], env=command[1], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert d.log(r'accepted: 3 right-hand sides'), d.said()
        os.kill(engine, signal.SIGKILL)
        said, _ = caller.communicate(timeout=60)
        assert caller.returncode == 0, said
        for x, source in zip(case.solutions(b), b):
            assert np.linalg.norm(source - case.op.apply(x)) < 2e-13 * np.linalg.norm(source)
        assert d.status().engine.restarts == 1 and d.terminate() == 0


@tap.test
def many_sources_go_in_pieces_where_there_is_little_room(case):
    b = case.noise(6, 8)
    with case.daemon('--csw', repr(CSW), '--max-memory', '1M') as d:
        x, said = case.run(d, 'pyquda', b, 4, flags=ASAN)
        for solution, source in zip(x, b):
            assert np.linalg.norm(source - case.op.apply(solution)) < 2e-13 * np.linalg.norm(source)
        assert d.status().counters.accepted > 1 and d.terminate() == 0


if __name__ == '__main__':
    case = QudaCase(*sys.argv[1:])
    try:
        case.caller(4, flags=ASAN).program('pyquda')
        tap.run(case, beside=2)
    finally:
        case.close()
