"""Notebooks are stored as they were written: without outputs, and with little else than their cells: test_notebooks.py SOURCE"""
import json
import os
import sys

import tap

SOURCE = sys.argv[1]
KEYS = {'code': {'cell_type', 'id', 'metadata', 'source', 'outputs', 'execution_count'}, 'markdown': {'cell_type', 'id', 'metadata', 'source'}}


def notebooks():
    for folder, folders, files in os.walk(SOURCE):
        folders[:] = [name for name in folders if name != 'build' and not name.startswith('.')]
        yield from (os.path.join(folder, name) for name in files if name.endswith('.ipynb'))


def faults(text):
    """What a stored notebook should not have."""
    notebook, found, names = json.loads(text), [], set()
    if set(notebook['metadata']) - {'kernelspec', 'language_info'} or set(notebook['metadata'].get('language_info', {})) - {'name'}:
        found.append('metadata of a machine')
    for cell in notebook['cells']:
        name = cell.get('id', '')
        if not name or name in names:
            found.append('id "%s": must be there, once' % name)
        names.add(name)
        if set(cell) != KEYS.get(cell['cell_type']) or cell['metadata']:
            found.append('%s: must have %s, and no metadata' % (name, ', '.join(sorted(KEYS[cell['cell_type']]))))
        if cell.get('outputs') or cell.get('execution_count') is not None:
            found.append('%s: has outputs or a number: clear them before you commit' % name)
    return found


@tap.test
def notebooks_are_stored_without_outputs():
    paths = list(notebooks())
    assert paths, 'there is none below ' + SOURCE
    for path in paths:
        with open(path, encoding='utf-8') as f:
            found = faults(f.read())
        assert not found, (path, found)


@tap.test
def outputs_and_metadata_are_found():
    with open(next(notebooks()), encoding='utf-8') as f:
        good = f.read()
    for change in (lambda n: n['cells'][1]['outputs'].append({}), lambda n: n['cells'][1].update(execution_count=3), lambda n: n['cells'][0].pop('id'),
                   lambda n: n['cells'][0]['metadata'].update(collapsed=True), lambda n: n['metadata']['language_info'].update(version='3.11')):
        notebook = json.loads(good)
        change(notebook)
        assert faults(json.dumps(notebook)), change


tap.run()
