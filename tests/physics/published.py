"""Numbers that others have published, with where they stand. Lattice units."""

# Average plaquettes of the quenched theory, Re tr P / 3.
# (action, beta, lattice or '', value, error, source); four digits have an error of half a unit of the last.
PLAQUETTES = [
    ('wilson', 5.7, '', 0.5491, 0.00005, 'commonly quoted'),
    ('wilson', 6.0, '', 0.593678, 0.000024, 'G. Boyd et al., hep-lat/9602007, 16^4'),
    ('wilson', 6.2, '', 0.6136, 0.00005, 'commonly quoted'),
]

# The same on 2^4, heatbath of Gaugefields.jl 0.7.2 (commit 9e571997): fixtures/heatbath_statistics of
# github.com/shinaoka/latticeqcd-rs, 1024 sweeps each.
TINY_PLAQUETTES = [
    ('wilson', 5.5, '2x2x2x2', 0.56687, 0.0018, 'Gaugefields.jl'),
    ('wilson', 5.7, '2x2x2x2', 0.58892, 0.0017, 'Gaugefields.jl'),
    ('wilson', 6.0, '2x2x2x2', 0.61922, 0.0012, 'Gaugefields.jl'),
]

# (1 - W) / g^2 for g -> 0, g^2 = 6 / beta, of plaquette and 1x2 rectangle with the Iwasaki action: the constants with which the
# CP-PACS collaboration improved its one-loop coupling, 1 - W = 0.8412 / beta for the plaquette (A. Ali Khan et al.,
# hep-lat/0105015).
IWASAKI_ONE_LOOP = (0.1402, 0.2689)

# Quenched clover quarks at beta = 6.0: c_sw and c_A of the non-perturbative improvement, and where the PCAC mass vanishes:
# M. Luescher, S. Sint, R. Sommer, P. Weisz, U. Wolff, Nucl. Phys. B 491 (1997) 323, hep-lat/9609035. The error is the
# spread of determinations.
C_SW, C_A = 1.769, -0.083
KAPPA_CRITICAL = (0.135196, 0.00003, 'ALPHA, hep-lat/9609035')

# Pion masses there on 16^3 x 32, M. Goeckeler et al. (QCDSF), hep-lat/0303019, and J of quenched mesons, P. Lacock and
# C. Michael, hep-lat/9506009: quoted from memory and NOT checked against the papers, so shown beside ours and not judged by.
# (kappa, value, error)
UNCHECKED_PIONS = [(0.1320, 0.5412, 0.0009), (0.1324, 0.5042, 0.0007), (0.1333, 0.4122, 0.0009), (0.1338, 0.3549, 0.0012),
                   (0.1342, 0.3012, 0.0010)]
UNCHECKED_J = (0.37, 0.05)
