#!/usr/bin/env python3
"""Which modules call each other in circles, by nm of their objects.

usage: cycles.py SOURCE BUILD        prints TAP

A module is a source file. It stands on those that define what its objects leave undefined. Modules that stand on each other are one
circle; it must be within a row of limits.txt: `registry`, a table and what it lists, or `circle`, one that is to go.
"""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import ratchet  # noqa: E402

PRODUCT = ('daemon/', 'client/', 'proto/', 'cuda/')


def part(path):
    """front, engine, base, comm, client, cuda, proto: what moves inside of one change no name here."""
    folders = path.split('/')
    return folders[1] if folders[0] == 'daemon' else folders[0]


def objects(source, build):
    """{module: [objects]} of the product."""
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as f:
        commands = json.load(f)
    found = {}
    for command in commands:
        path = os.path.relpath(os.path.join(command['directory'], command['file']), source)
        if not path.startswith(PRODUCT):  # made by the build
            path = os.path.relpath(os.path.join(command['directory'], command['file']), build)
        if path.startswith(PRODUCT) and command['output'].startswith(PRODUCT):  # tests compile some of them once more
            found.setdefault(path, []).append(os.path.join(command['directory'], command['output']))
    return found


def symbols(paths):
    """{object: ({defined}, {undefined})}, external symbols alone; inline functions of C++ belong to nobody."""
    run = subprocess.run(['nm', '-A', '-P', '-g', *paths], capture_output=True, text=True, check=True)
    found = {path: (set(), set()) for path in paths}
    for line in run.stdout.splitlines():
        path, rest = line.split(': ', 1)
        name, kind = rest.split()[:2]
        if kind == 'U':
            found[path][1].add(name)
        elif kind in 'TDBRSGC':
            found[path][0].add(name)
    return found


def graph(source, build):
    """{module: {module that it needs: a symbol}}"""
    built = objects(source, build)
    table = symbols([o for paths in built.values() for o in paths if os.path.exists(o)])
    needs, homes = {module: set() for module in built}, {}
    for module, paths in built.items():
        for path in paths:
            defined, undefined = table.get(path, (set(), set()))
            needs[module] |= undefined
            for name in defined:
                homes.setdefault(name, set()).add(module)
    edges = {module: {} for module in built}
    for module, names in needs.items():
        for name in sorted(names):
            at = homes.get(name, set()) - {module}
            near = {m for m in at if part(m) == part(module)}  # `main` and the like are in several programs
            for target in near or at:
                edges[module].setdefault(target, name)
    return edges


def unbuilt(source, build):
    return sorted(o for paths in objects(source, build).values() for o in paths if not os.path.exists(o))


def way(edges, start, goal, within):
    """The shortest way, as a list of modules; start alone where there is none."""
    came, todo = {start: None}, [start]
    for at in todo:
        for target in sorted(edges[at]):
            if target in within and target not in came:
                came[target] = at
                todo.append(target)
    path = [goal] if goal in came else [start]
    while came[path[0]] is not None:
        path.insert(0, came[path[0]])
    return path


def reached(edges, start):
    found, todo = {start}, [start]
    for at in todo:
        todo += [t for t in edges[at] if t not in found]
        found.update(edges[at])
    return found


def circles(edges):
    """Sets of modules that stand on each other."""
    reach = {module: reached(edges, module) for module in edges}
    left, found = set(edges), []
    for module in sorted(edges):
        if module in left:
            circle = {m for m in reach[module] if module in reach[m]}
            left -= circle
            if len(circle) > 1:
                found.append(circle)
    return found


def named(circle):
    """(part of the program, {names of modules})"""
    return part(min(circle)), {os.path.splitext(os.path.basename(m))[0] for m in circle}


def table(lines):
    """[(index of the line, registry or circle, part, {names})]"""
    found = []
    for i, line in enumerate(lines):
        words = line.split()
        if words[:1] in (['registry'], ['circle']):
            found.append((i, words[0], words[1], set(words[2:])))
    return found


def assign(found, rows):
    """{index of a row: circles within it}, and the circles that are within none."""
    within, strange = {row[0]: [] for row in rows}, []
    for circle in found:
        home, names = named(circle)
        fits = [row[0] for row in rows if row[2] == home and names <= row[3]]
        if fits:
            within[fits[0]].append(circle)
        else:
            strange.append(circle)
    return within, strange


def text_of(kind, circle):
    home, names = named(circle)
    return ' '.join([kind, home, *sorted(names)])


def complaint(edges, circle, rows):
    """Which modules are new in a circle, and by which calls each is in it."""
    home, names = named(circle)
    known = max((row[3] for row in rows if row[2] == home and row[3] & names), key=lambda r: len(r & names), default=set())
    for module in sorted(circle, key=str):
        if named({module})[1] <= known:
            continue
        yield '%s:' % module
        first = min((t for t in edges[module] if t in circle), key=lambda t: (len(way(edges, t, module, circle)), t))
        path = [module] + way(edges, first, module, circle)
        for a, b in zip(path, path[1:]):
            yield '  %s needs %s of %s' % (os.path.basename(a), edges[a][b], os.path.basename(b))
    yield 'Let the lower one of two not know the upper: it returns what happened, or calls a function that it was given.'
    yield 'A table and the rows that it lists may be a circle: a line `registry` in limits.txt.'


def verdicts(edges, lines):
    """(name, what is wrong) of each row and of each circle without one."""
    rows = table(lines)
    within, strange = assign(circles(edges), rows)
    for i, kind, home, names in rows:
        bad = []
        if [named(c)[1] for c in within[i]] != [names]:
            less = [text_of(kind, c) for c in within[i]]
            bad = ['It has become less: in limits.txt %s' % ('this line becomes' if less else 'this line goes')] + less
        yield '%s of %d modules in %s (%s ...)' % (kind, len(names), home, ' '.join(sorted(names)[:3])), bad
    for circle in strange:
        yield 'a new circle, or one that has grown, of %d modules in %s' % (len(circle), part(min(circle))), list(complaint(edges, circle, rows))


def lowered(lines, source, build):
    """The lines of limits.txt without what is no circle any more."""
    source, build = os.path.abspath(source), os.path.abspath(build)
    if missing := unbuilt(source, build):  # calls that nobody sees end no circle
        print('circles are left as they are: %s is not built' % missing[0])
        return lines
    within, strange = assign(circles(graph(source, build)), table(lines))
    for circle in strange:
        print('left: a circle that no line allows: ' + text_of('circle', circle))
    kinds = {row[0]: row[1] for row in table(lines)}
    out = []
    for i, line in enumerate(lines):
        new = [text_of(kinds[i], c) for c in within[i]] if i in within else [line]
        if i in within and [set(n.split()) for n in new] != [set(line.split())]:
            print('was: %s\nnow: %s' % (line, '\n     '.join(new) or 'no circle'))
        out += new
    return out


def main():
    source, build = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    edges = graph(source, build)
    with open(os.path.join(source, ratchet.TABLE), encoding='utf-8') as f:
        found = list(verdicts(edges, f.read().splitlines()))
    calls = sum(len(targets) for targets in edges.values())
    missing = unbuilt(source, build)
    found.insert(0, ('%d modules, %d of them called by another: %d calls' % (
        len(edges), len({t for targets in edges.values() for t in targets}), calls),
        ['not built: ' + o for o in missing[:5]] + ([] if calls else ['no object calls another: is this a build folder?'])))
    print('1..%d' % len(found))
    for name, bad in found:
        print('%s - %s' % ('not ok' if bad else 'ok', name))
        for line in bad:
            print('# ' + line)
    sys.exit(1 if any(bad for _, bad in found) else 0)


if __name__ == '__main__':
    main()
