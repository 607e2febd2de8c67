#!/usr/bin/env python3
"""The lints that count, on made-up sources.

usage: test_ratchet.py SOURCE        prints TAP
"""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support', 'python'))
import csource  # noqa: E402
import cycles  # noqa: E402
import declared  # noqa: E402
import duplicates  # noqa: E402
import ratchet  # noqa: E402
import readmes  # noqa: E402
import sizes  # noqa: E402
import tap  # noqa: E402
import widths  # noqa: E402
import words  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
LONG = 'int wide; /* %s */' % ('x' * 90)


def counts(lint, tree):
    return {c.name: c for c in lint.measure(tree)}


def values(lint, tree):
    return {name: c.value() for name, c in counts(lint, tree).items() if c.value()}


def places(count):
    return [f.place for f in count.findings]


@tap.test
def functions_are_found(_root):
    text = '''#include <a.h>
#define MACRO(x) \\
  int x(void) { return '{'; }
/* int no(void) { */
static const struct row rows[] = {{"a{", first}, {NULL, NULL}};
struct point { int x; };
enum { A = 1, B };
static int __attribute__((noinline)) first(int a,
                                           char *b) {
  if (a) { return '}'; }
  return 0;
}
extern "C" {
void (*get(int which))(void) { return NULL; }
}
namespace inner {
template <int N> __global__ void __launch_bounds__(128) kernel(float *x) { x[0] = {}; }
struct holder { int method() const { return 1; } int field = 2; };
}
Test(suite, name, .timeout = 10) {
}
int last(void) { return 1'000; }
'''
    found = csource.functions('x.cc', text)
    assert [(f.name, f.line, f.lines, f.static) for f in found] == [
        ('first', 8, 5, True), ('get', 14, 1, False), ('kernel', 17, 1, False), ('method', 18, 1, False), ('suite::name', 20, 2, False),
        ('last', 22, 1, False)], found


@tap.test
def wide_lines_are_counted(_root):
    tree = {'daemon/x.h': 'short\n' + LONG + '\n', 'cuda/x.cu': LONG + '\n' + LONG, 'tests/x.py': LONG, 'daemon/y.c': 'x' * 100 + '\n' + 'é' * 100}
    found = counts(widths, tree)
    assert places(found['lines over 100 columns in headers']) == ['daemon/x.h:2'], found
    assert places(found['lines over 100 columns in sources']) == ['cuda/x.cu:1', 'cuda/x.cu:2'], found


@tap.test
def words_are_counted_by_lines(_root):
    text = 'qk_mount_t *mount; /* mounts */\nMOUNTED = 1\namount mounting\n  if (!status) status = f();\nif (status == QK_OK) status = g();\nif (other) status = 0;\n'
    tree = {'daemon/engine/a/x.c': text, 'tests/x.c': text, 'proto/x.proto': 'berth = 1;\nnumber', 'daemon/front/x.c': 'if (!status) status = f();'}
    assert values(words, tree) == {'lines with the word mount': 2, 'lines with the word berth': 1,
                                   'lines of daemon/engine that pass a status on': 2}, values(words, tree)
    assert places(counts(words, tree)['lines with the word mount']) == ['daemon/engine/a/x.c:1', 'daemon/engine/a/x.c:2']
    text = 'a->prec == QK_HALF;\nif (QK_HALF != b)\nc > QK_HALF\ncase QK_HALF:\nfor (int p = 0; p < 3; p++)\n{.prec = QK_HALF}\nint mom[3];\n'
    tree = {path: text for path in ('cuda/x.cu', 'cuda/cpu/coarse.cc', 'tests/x.c', 'daemon/front/x.c')}
    assert places(counts(words, tree)['lines that tell precisions apart by hand']) == ['cuda/x.cu:%d' % n for n in range(1, 6)]
    keys = [counts(words, {'cuda/x.c': '#include "%smount.h"' % where})['lines with the word mount'].findings[0].key for where in ('a/', 'b/c/')]
    assert keys[0] == keys[1], keys


@tap.test
def sizes_are_counted(_root):
    function = 'int f(void) {\n%s}\n'
    tree = {'daemon/engine/f%d.c' % i: '' for i in range(26)}
    tree.update({'daemon/engine/README.md': '', 'client/long.c': '\n' * 601, 'client/f.c': function % ('  x();\n' * 59),
                 'client/g.c': function % ('  x();\n' * 58), 'tests/t.c': function % ('  x();\n' * 10), 'tests/t.py': '\n' * 700})
    assert values(sizes, tree) == {
        'files in daemon/engine': 26, 'files in client': 3, 'files in tests': 2, 'lines of the longest file of the product': 601,
        'files of the product over 600 lines': 1, 'lines of the longest function of the product': 61,
        'functions of the product over 60 lines': 1, 'lines of the longest file of tests': 700, 'files of tests over 600 lines': 1,
        'lines of the longest function of tests': 12}, values(sizes, tree)


@tap.test
def functions_that_are_alike_are_counted(_root):
    body = '%s %s(int a) {' + ' '.join('v%d = f(v%d, %d);' % (n, n, n) for n in range(9)) + '}'
    renamed = (body % ('int', 'other')).replace('f(', 'call(').replace(', 8', ', 0xffu')
    tree = {'daemon/a.c': body % ('int', 'one'), 'client/b.c': renamed, 'tests/c.c': body % ('void', 'third'), 'client/d.c': 'int f(void) { return 1; }'}
    assert values(duplicates, tree) == {'pairs of functions of the product that share 80 tokens': 1,
                                        'pairs of functions with tests that share 80 tokens': 2}, values(duplicates, tree)
    tree = {'daemon/a.c': body % ('int', 'one'), 'client/b.c': renamed.replace('v5 =', 'v5 +=')}
    assert not values(duplicates, tree), values(duplicates, tree)


@tap.test
def functions_without_a_header_are_counted(_root):
    tree = {'daemon/front/x.c': 'int qk_x(void) { return 0; }\nstatic int y(void) { return 1; }\n', 'daemon/front/x.h': 'int qk_x(void);',
            'daemon/front/x_more.c': 'int qk_x_more(void) { return 0; }', 'daemon/front/x_impl.h': 'int qk_x_more(void);',
            'daemon/front/z.c': 'int qk_z(void) { return 0; }\nint main(void) { }', 'daemon/front/server.h': 'int qk_z(void); /* qk_w() */',
            'client/w.c': 'int qk_w(void) { return 0; }', 'client/quarkctl/c.c': 'int ctl_c(void) { return 0; }', 'client/quarkctl/ctl.h': 'run_t ctl_c;'}
    found = counts(declared, tree)['files whose functions another header declares'].findings
    assert [(f.place, f.text) for f in found] == [('daemon/front/z.c:1', 'server.h declares qk_z'),
                                                  ('client/w.c:1', 'no header declares qk_w')], found


@tap.test
def files_that_a_readme_leaves_out_are_counted(_root):
    table = '''| file | what it is |
| --- | --- |
| `a.c`, `b.c`, `.h` | `d.c` |
| `part_*.c`, `part.[ch]` | |
| `sub/e.c`, `f.c`, `page.html` | |
| `gone.c` | |

| setting | |
| --- | --- |
| `g.c` | |
'''
    files = ['a.c', 'b.c', 'b.h', 'part_x.c', 'part_y.c', 'part.c', 'part.h', 'sub/e.c', 'sub/f.c', 'd.c', 'g.c']
    tree = {'client/' + name: '' for name in files}
    tree['client/README.md'] = table + '\n| file | |\n| --- | --- |\n| `part_y.c`, `a.c` | |\n'
    found = counts(readmes, tree)
    assert places(found['folders of sources without a README']) == ['client/sub'], found
    assert places(found['files that no README names, or that one names twice']) == ['client/d.c', 'client/g.c', 'client/a.c'], found
    assert places(found['rows of READMEs that name no file']) == ['client/README.md:6'], found


@tap.test
def a_limit_only_falls(_root):
    def of(n, row, **more):
        return ratchet.verdict(ratchet.Count('x', [ratchet.Finding('a:1', 't')] * n, 'advice', **more), row and ratchet.Row(1, *row))
    assert of(5, (5, 0)) is None
    assert of(6, (5, 0)) == 'the limit is 5'
    assert of(4, (5, 0)).startswith('lower the limit from 5 to 4')
    assert of(1, (5, 2)).startswith('lower the limit from 5 to 2')
    assert of(1, (2, 2)) is None and of(2, (2, 2)) is None and of(3, (2, 2)) == 'the limit is 2'
    assert of(0, None) == 'limits.txt has no line for it'
    assert of(25, None, aim=25, listed=False) is None and of(26, None, aim=25, listed=False) == 'the limit is 25'
    assert of(26, (26, 25), aim=25, listed=False) is None
    assert 'remove it' in of(25, (26, 25), aim=25, listed=False)


@tap.test
def circles_only_shrink(_root):
    base = ['a', 'b', 'c', 'd', 'e']
    path = {name: 'daemon/front/sub/%s.c' % name for name in base}

    def verdicts(text, lines):
        edges = {path[name]: {} for name in base}
        for a, b in text.split():
            edges[path[a]][path[b]] = 'qk_%s_do' % b
        return [(name.split(' of ')[0], bad) for name, bad in cycles.verdicts(edges, lines)]
    assert verdicts('ab bc', []) == []
    assert verdicts('ab ba cd', ['circle front a b']) == [('circle', [])]
    assert verdicts('ab ba cd', ['registry front b a']) == [('registry', [])]
    (_, bad), = verdicts('ab ba', ['circle front a b c'])
    assert bad[-1] == 'circle front a b', bad
    (_, bad), = verdicts('ab ba cd dc', ['circle front a b c d e'])
    assert bad[-2:] == ['circle front a b', 'circle front c d'], bad
    (_, bad), = verdicts('ab', ['circle front a b'])
    assert 'this line goes' in bad[0], bad
    (gone, less), (new, bad) = verdicts('ab bc ca', ['circle front a b'])
    assert 'this line goes' in less[0] and new.startswith('a new circle'), (gone, less, new)
    assert bad[:4] == ['daemon/front/sub/c.c:', '  c.c needs qk_a_do of a.c', '  a.c needs qk_b_do of b.c', '  b.c needs qk_c_do of c.c'], bad
    assert verdicts('ab ba', ['circle engine a b'])[1][0] == 'a new circle, or one that has grown,'


@tap.test
def circles_are_left_where_a_build_is_not_complete(_root):
    lines = ['circle front a b', 'circle front b c']
    with tempfile.TemporaryDirectory() as build:
        commands = []
        for name in 'abc':
            with open(os.path.join(build, name + '.s'), 'w', encoding='utf-8') as f:
                f.write('.globl qk_%s\nqk_%s: .quad qk_%s\n' % (name, name, {'a': 'b', 'b': 'c', 'c': 'b'}[name]))
            os.makedirs(os.path.join(build, 'daemon/front'), exist_ok=True)
            out = 'daemon/front/%s.o' % name
            commands.append({'directory': build, 'file': 'daemon/front/%s.c' % name, 'output': out})
            subprocess.run(['as', '-o', os.path.join(build, out), os.path.join(build, name + '.s')], check=True)
        with open(os.path.join(build, 'compile_commands.json'), 'w', encoding='utf-8') as f:
            json.dump(commands, f)
        with contextlib.redirect_stdout(io.StringIO()):
            whole = cycles.lowered(lines, build, build)
            os.remove(os.path.join(build, 'daemon/front/c.o'))
            part = cycles.lowered(lines, build, build)
        assert whole == lines[1:] and part == lines, (whole, part)


@tap.test
def the_line_that_is_new_is_named(_root):
    def git(*words):
        subprocess.run(['git', '-C', root, '-c', 'user.name=x', '-c', 'user.email=x@x', *words], check=True, capture_output=True)

    def write(path, text):
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), 'w', encoding='utf-8') as f:
            f.write(text)

    def lint(script, *words):
        return subprocess.run([sys.executable, os.path.join(HERE, script), root, *words], capture_output=True, text=True, check=False)

    table = '# a comment\n    1    0  lines over 100 columns in headers\n    0    0  lines over 100 columns in sources\n'
    with tempfile.TemporaryDirectory() as root:
        for folder in ratchet.FOLDERS:
            write(folder + '/README.md', '')
        write('daemon/old.h', '\n' + LONG + '\n')
        write(ratchet.TABLE, table)
        assert lint('widths.py').returncode == 0
        write('daemon/new.h', LONG.replace('x', 'y') + '\n')
        out = lint('widths.py').stdout
        assert 'daemon/old.h:2' in out and 'daemon/new.h:1' in out, out  # without git both
        os.remove(os.path.join(root, 'daemon/new.h'))
        try:
            git('init', '-q')
        except OSError:
            raise tap.Skip('no git here') from None
        git('add', '.')
        git('commit', '-qm', 'first')
        write('daemon/sub/moved.h', LONG + '\n\n' + LONG.replace('x', 'y') + '\n')
        os.remove(os.path.join(root, 'daemon/old.h'))
        git('add', '-A')
        git('commit', '-qm', 'second')
        ran = lint('widths.py')
        assert ran.returncode == 1 and 'not ok - lines over 100 columns in headers: 2; the limit is 1' in ran.stdout, ran
        assert 'daemon/sub/moved.h:3' in ran.stdout and 'daemon/sub/moved.h:1' not in ran.stdout, ran.stdout
        write('daemon/sub/moved.h', '\n')
        ran = lint('widths.py')
        assert ran.returncode == 1 and 'lower the limit from 1 to 0' in ran.stdout, ran
        ran = lint('ratchet.py')
        assert ran.returncode == 0 and lint('widths.py').returncode == 0, ran
        with open(os.path.join(root, ratchet.TABLE), encoding='utf-8') as f:
            assert f.read() == table.replace('    1 ', '    0 '), ran


@tap.test
def each_limit_is_one_that_is_counted(root):
    with open(os.path.join(root, ratchet.TABLE), encoding='utf-8') as f:
        lines = [line for line in f.read().splitlines() if line and line[0] != '#']
    known = ratchet.rows(root)
    assert len(known) + len(cycles.table(lines)) == len(lines), 'a line that nobody reads, or one that is there twice'
    wanted = {name: c for lint in (sizes, widths, words, duplicates, declared, readmes) for name, c in counts(lint, {}).items()}
    for name, row in known.items():
        assert name in wanted or name.startswith('files in '), name
        assert row.limit >= row.aim == (wanted[name].aim if name in wanted else sizes.FILES), (name, row)


if __name__ == '__main__':
    tap.run(*sys.argv[1:])
