// Scaling of the input, dense layers and softmax, compiled by NVRTC when the server starts.

extern "C" __global__ void scale_pixels(const unsigned char* pixels, float* x, int count, float inverse_range) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) x[i] = pixels[i] * inverse_range;
}

extern "C" __global__ void dense(const float* x, const float* w, const float* bias, float* y, int n, int inputs,
                                 int outputs, int apply_relu) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * outputs) return;
    int row = i / outputs, o = i % outputs;
    float sum = bias[o];
    for (int k = 0; k < inputs; k++) sum += x[row * inputs + k] * w[o * inputs + k];
    y[i] = apply_relu && sum < 0.0f ? 0.0f : sum;
}

extern "C" __global__ void softmax(const float* x, float* y, int n, int classes) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    const float* in = x + row * classes;
    float top = in[0];
    for (int c = 1; c < classes; c++) top = fmaxf(top, in[c]);
    float sum = 0.0f;
    for (int c = 0; c < classes; c++) sum += expf(in[c] - top);
    for (int c = 0; c < classes; c++) y[row * classes + c] = expf(in[c] - top) / sum;
}
