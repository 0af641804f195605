// Streams, events and synchronisation.
#include "driver.h"

using ttt_cudart::done;
using ttt_cudart::driver;

extern "C" {

cudaError_t cudaDeviceSynchronize() {
    TTT_ENTER();
    return done(driver()->p_cuCtxSynchronize());
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    TTT_ENTER();
    return done(driver()->p_cuStreamCreate(stream, 0));
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    TTT_ENTER();
    return done(driver()->p_cuStreamCreate(stream, flags));
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    TTT_ENTER();
    return done(driver()->p_cuStreamDestroy(stream));
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    TTT_ENTER();
    return done(driver()->p_cuStreamSynchronize(stream));
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    TTT_ENTER();
    return done(driver()->p_cuStreamQuery(stream));
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    TTT_ENTER();
    return done(driver()->p_cuStreamWaitEvent(stream, event, flags));
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
    TTT_ENTER();
    return done(driver()->p_cuEventCreate(event, 0));
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    TTT_ENTER();
    return done(driver()->p_cuEventCreate(event, flags));
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    TTT_ENTER();
    return done(driver()->p_cuEventDestroy(event));
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    TTT_ENTER();
    return done(driver()->p_cuEventRecord(event, stream));
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    TTT_ENTER();
    return done(driver()->p_cuEventQuery(event));
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    TTT_ENTER();
    return done(driver()->p_cuEventSynchronize(event));
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
    TTT_ENTER();
    return done(driver()->p_cuEventElapsedTime(ms, start, end));
}

}  // extern "C"
