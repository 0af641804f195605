// Convolution and pooling, compiled ahead of time by nvcc into a fat binary.
// Images are channels first: x[n][c][h][w].

extern "C" __global__ void conv3x3(const float* x, const float* w, const float* bias, float* y, int n, int cin,
                                   int cout, int height, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int total = n * cout * height * width;
    if (i >= total) return;
    int px = i % width;
    int py = i / width % height;
    int co = i / (width * height) % cout;
    int image = i / (width * height * cout);
    float sum = bias[co];
    for (int ci = 0; ci < cin; ci++)
        for (int r = 0; r < 3; r++)
            for (int q = 0; q < 3; q++) {
                int sy = py + r - 1, sx = px + q - 1;
                if (sy >= 0 && sy < height && sx >= 0 && sx < width)
                    sum += x[((image * cin + ci) * height + sy) * width + sx] * w[((co * cin + ci) * 3 + r) * 3 + q];
            }
    y[i] = sum;
}

extern "C" __global__ void relu(const float* x, float* y, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

extern "C" __global__ void maxpool2x2(const float* x, float* y, int planes, int height, int width) {
    int oh = height / 2, ow = width / 2;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= planes * oh * ow) return;
    int px = i % ow, py = i / ow % oh, plane = i / (ow * oh);
    const float* p = x + (plane * height + 2 * py) * width + 2 * px;
    y[i] = fmaxf(fmaxf(p[0], p[1]), fmaxf(p[width], p[width + 1]));
}
