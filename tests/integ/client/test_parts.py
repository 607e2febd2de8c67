"""The option `parts` of the build: what it leaves out is not asked for: test_parts.py

A machine that has only the libraries of a part is one whose pkg-config knows no others, and whose C++ compiler is not there.
"""
import json
import os
import shutil
import subprocess
import tempfile

import tap

ROOT = os.environ['QK_SOURCE_ROOT']
LIBRARY = {'libzmq', 'libprotobuf-c', 'libxxhash'}
CLIENT = LIBRARY | {'jansson', 'inih', 'hdf5', 'zlib'}


def known(folder, names):
    """An environment in which pkg-config knows these packages, and those that they are made of."""
    os.mkdir(folder)
    todo = set(names)
    while todo:
        name = todo.pop()
        where = subprocess.run(['pkg-config', '--variable=pcfiledir', name], stdout=subprocess.PIPE, text=True).stdout.strip()
        if not where or os.path.exists(os.path.join(folder, name + '.pc')):
            continue
        shutil.copy(os.path.join(where, name + '.pc'), folder)
        needs = subprocess.run(['pkg-config', '--print-requires', '--print-requires-private', name], check=True,
                               stdout=subprocess.PIPE, text=True).stdout
        todo |= {line.split()[0] for line in needs.splitlines() if line.strip()}
    env = {key: value for key, value in os.environ.items() if key not in ('CFLAGS', 'LDFLAGS', 'PKG_CONFIG_PATH')}
    return dict(env, PKG_CONFIG_LIBDIR=folder, CXX='/nowhere/c++')


def configure(scratch, parts, names):
    """Sets a build folder up, and returns what it asks for, its programs and libraries, and what it installs."""
    build = os.path.join(scratch, 'build')
    done = subprocess.run(['meson', 'setup', build, ROOT, '-Dparts=' + parts, '-Dpython=disabled'], env=known(os.path.join(scratch, 'pc'), names),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout

    def about(what):
        return json.loads(subprocess.run(['meson', 'introspect', what, build], check=True, stdout=subprocess.PIPE).stdout)
    asked = {d['name'] for d in about('--dependencies')} - {'threads', 'm'}
    return asked, {t['name'] for t in about('--targets')}, {os.path.basename(p) for p in about('--installed').values()}


@tap.test
def the_library_asks_for_three_libraries():
    with tempfile.TemporaryDirectory() as scratch:
        asked, targets, installed = configure(scratch, 'library', LIBRARY)
        assert asked == LIBRARY, asked
        assert {'quark', 'qkproto'} <= targets and not targets & {'quarkctl', 'quarkd', 'qkbase'}, targets
        assert {'libquark.a', 'quark.h', 'quark_buffer.h', 'quark_daemon.h', 'quark_eigen.h', 'quark_wall.h', 'libquark.pc', 'libquark.3'} <= installed, installed
        assert not installed & {'quarkctl.1', 'quarkd.1', 'grafana.json'}, installed


@tap.test
def the_client_asks_for_what_quarkctl_needs_besides():
    with tempfile.TemporaryDirectory() as scratch:
        asked, targets, installed = configure(scratch, 'client', CLIENT)
        assert asked == CLIENT, asked
        assert {'quark', 'quarkctl'} <= targets and not targets & {'quarkd', 'quark-engine'}, targets
        assert {'quarkctl', 'quarkctl.1', 'libquark.3'} <= installed and 'quarkd.1' not in installed, installed


tap.run()
