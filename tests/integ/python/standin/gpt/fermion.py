"""qcd.fermion: wilson_clover."""
import copy

import numpy as np
import ref_dirac as ref

import gpt


class operator(gpt.matrix_operator):
    """Of whole lattices, on one rank; of several it cannot be applied."""

    def __init__(self, name, U, params, daggered=False):
        self.name, self.U, self.params_constructor, self.daggered = name, U, params, daggered
        self.params = {'U_grid': 1, 'F_grid': 1, 'U': [id(u) for u in U], **params}
        self.U_grid = self.F_grid = U[0].grid
        self._make()
        super().__init__(self._adjoint if daggered else self._apply, self._apply if daggered else self._adjoint,
                         vector_space=(gpt.vector_space(U[0].grid, gpt.ot_vector_spin_color),) * 2)
        self.ImportPhysicalFermionSource = self.ExportPhysicalFermionSolution = gpt.matrix_operator(self._copy, vector_space=self.vector_space)

    def _make(self):
        """The links as they are now."""
        self._links, self._made = [u[:] for u in self.U], None

    @property
    def _op(self):
        """By the oracle, of one rank."""
        if self._made is None:
            self._made = self._oracle()
        return self._made

    def _oracle(self):
        p, where = self.params, self.U_grid
        xi, nu = (p['xi_0'], p['nu']) if p['isAnisotropic'] else (1.0, 1.0)
        links = np.stack([u.reshape(tuple(reversed(where.fdimensions)) + (3, 3)) for u in self._links])
        planes = [p['csw_t'] if 3 in plane else p['csw_r'] / xi for plane in ref.PLANES]
        clover = any(planes)
        return ref.WilsonClover(links, p['mass'], float(clover), p['boundary_phases'], hop=(nu / xi,) * 3 + (1,), planes=planes)

    def _on(self, function, dst, src):
        dst[:] = np.ascontiguousarray(function(src[:].reshape(self._op.shape)).reshape(-1, 4, 3))

    def _apply(self, dst, src):
        self._on(self._op.apply, dst, src)

    def _adjoint(self, dst, src):
        self._on(self._op.apply_dagger, dst, src)

    @staticmethod
    def _copy(dst, src):
        dst[:] = src[:]

    def adj(self):
        return operator(self.name, self.U, self.params_constructor, not self.daggered)

    def update(self, U):
        self.U = U
        self.params['U'] = [id(u) for u in U]
        self._make()

    def propagator(self, solver):
        inverse = solver(self)

        def prop(dst, src):
            dst_columns = (self.ExportPhysicalFermionSolution * inverse * self.ImportPhysicalFermionSource)(src)
            for to, of in zip(dst, dst_columns):
                to[:] = of[:]
        return gpt.matrix_operator(prop, vector_space=self.vector_space, accept_list=True)


def wilson_clover(U, kappa=None, mass=None, cF=1, use_legacy=False, boundary_phases=None, isAnisotropic=None, csw_r=None, csw_t=None, nu=None, xi_0=None, n_rhs=1):
    params = copy.copy(locals())
    del params['U']
    if kappa is not None:
        assert mass is None
        params['mass'] = 1.0 / kappa / 2.0 - 4.0
        del params['kappa']
    params['multi_rhs'] = n_rhs > 1
    if n_rhs > 1:
        params['Ls'] = n_rhs
    return operator('wilson_clover', U, params)


def wilson_twisted_mass(U, **params):
    return operator('wilson_twisted_mass', U, params)
