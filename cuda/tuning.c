#include "cuda/tuning.h"

const qk_tuning_t qk_tuning_cpu = {.narrow = QK_SINGLE,
                                   .nvec = 24,
                                   .setup_iterations = 50,
                                   .setup_passes = -1,
                                   .post = 4,
                                   .iterations = 4,
                                   .last_iterations = 16,
                                   .deflated_iterations = 16,
                                   .deflate = 32,
                                   .smoother_bits = -1,
                                   .whole = -1};

const qk_tuning_t qk_tuning_gpu = {.narrow = QK_HALF,
                                   .nvec = 32,
                                   .ntest = 64,
                                   .setup_iterations = 100,
                                   .setup_passes = 2,
                                   .post = 2,
                                   .iterations = 3,
                                   .last_iterations = 32,
                                   .deflated_iterations = 6,
                                   .deflate = 128,
                                   .last_least = 128,
                                   .last_most = 1024,
                                   .smoother_bits = 8,
                                   .whole = 1024};
