#!/usr/bin/env python3
"""What can be checked of container recipes where no container can be made.

usage: deploy.py SOURCE BUILD        prints TAP
"""
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support', 'python'))
import tap  # noqa: E402

# Always there: Essential, or what every package stands on.
GIVEN = {'libc6', 'libgcc-s1'}


def out(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def installed(build):
    """{file in the build folder: where it will be}"""
    return json.loads(out('meson', 'introspect', build, '--installed'))


def closure(packages):
    """The packages, of those here, that come with these."""
    depends, provides = {}, {}
    for line in out('dpkg-query', '-W', '-f', '${Package}\t${Pre-Depends}, ${Depends}\t${Provides}\n').splitlines():
        name, needs, gives = line.split('\t')
        words = [re.sub(r'[\s(:].*', '', alternative.strip()) for part in needs.split(',') for alternative in part.split('|')]
        depends.setdefault(name, []).extend(w for w in words if w)
        for given in gives.split(','):
            provides.setdefault(re.sub(r'[\s(:].*', '', given.strip()), []).append(name)
    found, todo = set(), list(packages)
    while todo:
        name = todo.pop()
        if name in found or name not in depends:
            todo += [p for p in provides.get(name, []) if p not in found]
            continue
        found.add(name)
        todo += depends[name]
    return found


def libraries(build):
    """{library: the packages that have it} of all that is installed, without our own."""
    found = set()
    for file in installed(build):
        if os.path.isfile(file) and open(file, 'rb').read(4) == b'\x7fELF':
            found |= set(re.findall(r' => (/\S+)', out('ldd', file)))
    real = {os.path.realpath(path) for path in found}
    real = {path for path in real if not path.startswith(os.path.realpath(build))}
    names = real | {path.removeprefix('/usr') for path in real}  # dpkg may know them without /usr
    listed = subprocess.run(['dpkg', '-S', *names], capture_output=True, text=True).stdout
    owners = {path: set() for path in real}
    for line in listed.splitlines():
        package, path = line.split(': ')
        owners[path if path in real else '/usr' + path] |= {re.sub(':.*', '', p.strip()) for p in package.split(',')}
    return owners


@tap.test
def the_runtime_packages_hold_every_library(source, build):
    if not shutil.which('dpkg-query'):
        raise tap.Skip('no dpkg here')
    wanted = out(os.path.join(source, 'deploy/packages.sh'), '--list', 'runtime').split()
    there = closure(wanted)
    if not there:
        raise tap.Skip('packages have other names here')
    used = {'openmpi-bin'}  # mpirun
    for library, packages in libraries(build).items():
        assert packages & (there | GIVEN), '%s of %s is not in the set' % (library, packages)
        used |= packages
    assert not set(wanted) & there - used, 'nothing needs %s' % (set(wanted) & there - used)
    assert len(used) > 10, used


def steps(text):
    """Shell lines of a Containerfile or of an Apptainer definition."""
    lines = re.findall(r'^RUN (.*)$', text, re.MULTILINE)
    for section in re.findall(r'^%(?:post|environment|runscript|test)\n((?:[ \t]+.*\n)+)', text, re.MULTILINE):
        lines += [line.strip() for line in section.splitlines()]
    return [re.sub(r'\{\{.*?\}\}', '', line) for line in lines]


@tap.test
def recipes_name_only_what_is_there(source, build):
    prefix = '/usr/local/'
    destined = {re.sub(r'^.*?/(?=(bin|libexec)/)', prefix, path) for path in installed(build).values()}
    scripts = {prefix + 'libexec/quarkd/' + name for name in ('image', 'packages.sh', 'healthy')}  # `image build` puts them there
    for recipe in ('deploy/Containerfile', 'deploy/quarkd.def'):
        with open(os.path.join(source, recipe), encoding='utf-8') as f:
            text = f.read()
        commands = steps(text)
        assert len(commands) >= 2, commands
        subprocess.run(['sh', '-n'], input='\n'.join(commands), text=True, check=True)
        body = '\n'.join(line for line in text.splitlines() if not line.startswith('#'))
        for path in re.findall(r'/src/([\w/.-]+)', body):
            assert os.access(os.path.join(source, path), os.X_OK), path
        for path in re.findall(r'(?<!image)/usr/local/(?:bin|libexec)/[\w/.-]+', body):
            assert path in destined | scripts, path
        for program in re.findall(r'"(quark\w+)"|(?:exec|&&|^ +) ?(quark[\w-]+) ', body):
            name = program[0] or program[1]
            assert prefix + 'bin/' + name in destined, name


@tap.test
def options_in_recipes_are_options(source, build):
    quarkd = next(file for file, place in installed(build).items() if place.endswith('/bin/quarkd'))
    known = set(re.findall(r'--([a-z-]+)', out(quarkd, '--help')))
    with open(os.path.join(source, 'deploy/Containerfile'), encoding='utf-8') as f:
        given = re.findall(r'"--([a-z-]+)', f.read())
    with open(os.path.join(source, 'deploy/quarkd.sbatch'), encoding='utf-8') as f:
        given += re.findall(r'(?<=[( ])--([a-z-]+) "?\$', f.read())
    assert len(given) >= 7 and set(given) <= known, set(given) - known


if __name__ == '__main__':
    tap.run(*sys.argv[1:])
