#include "cuda/gpu/krylov/blas_launch.cuh"

namespace QK_NS {
QK_INSTANTIATE_BLAS(float)
}
