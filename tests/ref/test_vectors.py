"""Runs make_vectors.py on a small lattice and checks what it wrote against the definition."""
import json
import os
import sys
import tempfile
import numpy as np
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_vectors
import ref_dirac as ref

with tempfile.TemporaryDirectory() as out:
    make_vectors.main(['--dims', '2x4x2x6', '--boundary', '1,1j,1,-1', '--solve', out])
    facts = json.load(open(os.path.join(out, 'vectors.json')))
    read = lambda name, *tail: np.fromfile(os.path.join(out, name + '.bin'), '<c16').reshape((6, 2, 4, 2) + tail)
    links, psi = read('links', 4, 3, 3), read('psi', 4, 3)
    m_psi, md_psi, x = read('M_psi', 4, 3), read('Mdagger_psi', 4, 3), read('x', 4, 3)

op = ref.WilsonClover(np.moveaxis(links, 4, 0), facts['mass'], facts['csw'], [complex(*b) for b in facts['boundary']])
checks = {
    'dims': facts['dims'] == [2, 4, 2, 6],
    'links are SU(3)': max(ref.su3_deviation(links)) < 1e-14,
    'M psi': np.abs(op.apply(psi) - m_psi).max() < 1e-13,
    'M^+ psi is the adjoint': abs(np.vdot(psi, m_psi) - np.vdot(md_psi, psi)) < 1e-10 * facts['norm2_M_psi'],
    'M x = psi': np.linalg.norm(op.apply(x) - psi) < 1e-11 * np.linalg.norm(psi),
    'norm': abs(np.linalg.norm(m_psi)**2 / facts['norm2_M_psi'] - 1) < 1e-13,
}
for name, good in checks.items():
    print('%-30s %s' % (name, 'ok' if good else 'FAIL'))
sys.exit(0 if all(checks.values()) else 1)
