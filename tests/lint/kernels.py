#!/usr/bin/env python3
"""Each kernel of cuda/rows.h has its line in the list of cuda/README.md, with the header of its arguments and the file of its body.

usage: kernels.py SOURCE_ROOT        prints TAP
"""
import glob
import os
import re
import sys

LINE = re.compile(r'^\| `(\w+)` \| (.*) \| ([^|]*) \| ([^|]*) \|$', re.M)


def rows(text):
    """{kernel: struct of its arguments} of rows.h."""
    return dict(re.findall(r'X\((\w+), (qk_\w+_t)\)', text))


def complaints(rows_h, readme, headers, bodies):
    """What is wrong with the list. headers: {name: text}, bodies: names."""
    kernels, listed = rows(rows_h), {}
    for name, meaning, arguments, body in LINE.findall(readme.split('## Kernels')[1].split('\n## ')[0]):
        if name in listed:
            yield '%s: listed twice' % name
        listed[name] = meaning, re.findall('`([^`]+)`', arguments), re.findall('`([^`]+)`', body)
    for name in sorted(kernels.keys() - listed.keys()):
        yield '%s: a row of cuda/rows.h without a line in the list of cuda/README.md' % name
    for name in sorted(listed.keys() - kernels.keys()):
        yield '%s: in the list of cuda/README.md, but not a row of cuda/rows.h' % name
    for name in sorted(kernels.keys() & listed.keys()):
        meaning, arguments, files = listed[name]
        homes = [header for header, text in headers.items() if re.search(r'^} %s;' % kernels[name], text, re.M)]
        if not meaning.strip():
            yield '%s: no word on what it computes' % name
        if arguments != homes:
            yield '%s: %s stands in %s, not in %s' % (name, kernels[name], ', '.join(homes), ', '.join(arguments))
        for missing in [f for f in files if f not in bodies] or ([] if files else ['a file']):
            yield '%s: cuda/body has no %s' % (name, missing)
    sizes = re.search(r'QK_KERNEL_SIZES\(X\)(.*)', rows_h, re.S)
    for name in re.findall(r'X\((\w+), \(', sizes[1] if sizes else ''):
        if '`%s`' % name not in readme:
            yield '%s: a row of cuda/rows.h that cuda/README.md does not name' % name


def main(root):
    def read(*path):
        with open(os.path.join(root, *path), encoding='utf-8') as f:
            return f.read()
    headers = {os.path.basename(p): read(p) for p in sorted(glob.glob(os.path.join(root, 'cuda', '*ops.h')))}
    rows_h = read('cuda', 'rows.h')
    bad = list(complaints(rows_h, read('cuda', 'README.md'), headers, [os.path.basename(p) for p in glob.glob(os.path.join(root, 'cuda', 'body', '**', '*.h'), recursive=True)]))
    print('1..1')
    print('%s - cuda/README.md lists the %d kernels of cuda/rows.h' % ('not ok' if bad or not rows(rows_h) else 'ok', len(rows(rows_h))))
    for line in bad:
        print('# ' + line)


if __name__ == '__main__':
    main(sys.argv[1])
