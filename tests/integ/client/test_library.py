"""libquark as it is installed: test_library.py LIBQUARK_SO LIBQUARK_A EXAMPLE_C

The header stands alone in every dialect, the libraries link, and nothing is exported but the API.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
import tap

CLIENT = os.path.join(HERE, '..', '..', '..', 'client')
HEADER = os.path.join(CLIENT, 'quark.h')
HEADERS = [HEADER] + [os.path.join(CLIENT, name) for name in ('quark_buffer.h', 'quark_daemon.h', 'quark_eigen.h', 'quark_wall.h')]
CC = os.environ.get('CC', 'cc').split()[-1]
STATIC = ['-lprotobuf-c', '-lxxhash', '-lzmq', '-lpthread', '-lm']


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done
    return done.stdout


def declared():
    text = ''
    for header in HEADERS:
        with open(header, encoding='utf-8') as f:
            text += f.read()
    return set(re.findall(r'^QUARK_API [^(;]*?(quark_\w+)\(', text, re.MULTILINE))


@tap.test
def the_header_is_c99_and_cpp11(so, a, example):
    for compiler, dialect, suffix in ((CC, 'c99', '.c'), (CC, 'c11', '.c'), ('c++', 'c++11', '.cc')):
        with tempfile.NamedTemporaryFile('w', suffix=suffix) as f:
            f.write('#include "%s"\nint main(void) { return quark_version() == 0; }\n' % os.path.abspath(HEADER))
            f.flush()
            run(compiler, '-std=' + dialect, '-pedantic', '-Wall', '-Wextra', '-Werror', '-fsyntax-only', f.name)


@tap.test
def the_shared_library_exports_the_api_and_nothing_else(so, a, example):
    found = {line.split()[-1] for line in run('nm', '-D', '--defined-only', so).splitlines()}
    assert len(declared()) > 20 and found == declared(), found ^ declared()


@tap.test
def a_program_links_with_either(so, a, example):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, 'client'))
        for header in HEADERS:
            shutil.copy(header, os.path.join(folder, 'client'))
        for libraries in ([so, '-Wl,-rpath,' + os.path.dirname(os.path.abspath(so))], [a] + STATIC):
            program = os.path.join(folder, 'program')
            run(CC, '-I' + folder, example, '-o', program, *libraries)
            done = subprocess.run([program, 'tcp://127.0.0.1:1'], stderr=subprocess.PIPE, text=True)
            assert done.returncode == 64 and 'usage' in done.stderr, done


tap.run(*sys.argv[1:])
