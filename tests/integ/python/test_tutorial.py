"""docs/tutorial.ipynb as a reader runs it: test_tutorial.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import tap

NEEDED = 'nbclient', 'nbformat', 'ipykernel', 'matplotlib', 'numpy'
missing = [name for name in NEEDED if not importlib.util.find_spec(name)]
if missing:
    tap.skip_all('not installed: ' + ', '.join(missing))
import nbclient
import nbformat
from cli_case import ROOT, np
from daemon import Daemon
from quarkd import io

NOTEBOOK = os.path.join(ROOT, 'docs', 'tutorial.ipynb')
LIMIT = 120  # seconds for a cell
TOLD = '''import json
print(json.dumps({'residual': residual, 'pion': ensemble['pion'][:, 0].tolist(), 'mass': [mass[0, 4], error[0, 4]],
                  'ratio': ratio.tolist(), 'trace': [trace, spread], 'shape': x.shape}))'''


def commands(notebook):
    """The lines of the first cell that a reader types, and its words."""
    text = notebook.cells[0].source
    return [line.split() for line in text.split('```')[1].strip().splitlines()]


def run(notebook, folder, endpoint):
    """What the notebook has found, and the kinds of its outputs."""
    notebook.cells.insert(-1, nbformat.v4.new_code_cell(TOLD))
    env = {'QUARKD_ENDPOINT': endpoint, 'MPLBACKEND': 'module://matplotlib_inline.backend_inline', 'IPYTHONDIR': folder, 'MPLCONFIGDIR': folder,
           'PYDEVD_DISABLE_FILE_VALIDATION': '1'}
    before = {key: os.environ.get(key) for key in env}
    os.environ.update(env)
    try:
        nbclient.NotebookClient(notebook, timeout=LIMIT, kernel_name='python3', resources={'metadata': {'path': folder}}).execute()
    finally:
        for key, value in before.items():
            os.environ.pop(key)
            if value is not None:
                os.environ[key] = value
    outputs = [output for cell in notebook.cells if cell.cell_type == 'code' for output in cell.outputs]
    kinds = [kind for output in outputs for kind in output.get('data', {})]
    told = next(o.text for o in notebook.cells[-2].outputs if o.output_type == 'stream')
    return json.loads(told), kinds


@tap.test
def the_tutorial_runs_and_finds_what_quarkctl_finds(quarkd, quarkctl, quark_gauge):
    notebook = nbformat.read(NOTEBOOK, 4)
    generate, serve = commands(notebook)
    assert generate[0] == 'quark-gauge' and serve[0] == 'quarkd', (generate, serve)
    serve = [a for a in serve[1:] if a != '--listen' and '://' not in a]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.abspath(quark_gauge), *generate[1:]], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        serve = [os.path.join(folder, a) if a.endswith('.lime') else a for a in serve]
        with Daemon(quarkd, quarkctl, *serve) as d:
            d.wait_listening()
            told, kinds = run(notebook, folder, d.endpoint)
            out = d.ctl('correlator', '--source=point:0,0,0,0', '--channels=pion', '--tol=1e-10', '--out', d.path('corr.h5'))
            assert out.code == 0, out
            theirs = io.read_correlators(d.path('corr.h5'))[0]['pion'].values[0]
        configurations = [name for name in os.listdir(folder) if name.endswith('.lime')]
    pion = np.array(told['pion'])
    assert pion.shape == (len(configurations), 16) and len(pion) == 10
    assert np.allclose(pion[0], theirs.real, rtol=1e-7)
    print('# %s' % {key: told[key] for key in ('mass', 'ratio', 'trace')})
    assert told['residual'] < 1.01e-10 and told['shape'] == [16, 4, 4, 4, 4, 3]
    mass, error = told['mass']
    assert 0.1 < mass < 2 and 0 < error < 0.3 * mass, told['mass']
    ratio = np.array(told['ratio'])
    assert np.ptp(ratio[2:5]) < 0.05 and np.ptp(ratio[7:15]) < 0.05 and 0.5 < ratio[3] - ratio[10] < 2, ratio  # flat, with a step at the sink
    assert told['trace'][1] < 0.01 * told['trace'][0], told['trace']
    assert kinds.count('image/png') == 2 and kinds.count('text/html') >= 3, kinds


tap.run(*sys.argv[1:4])
