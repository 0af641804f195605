// Graphs by stream capture.
#include "driver.h"

using ttt_cudart::done;
using ttt_cudart::driver;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    TTT_ENTER();
    return done(driver()->p_cuStreamBeginCapture(stream, static_cast<CUstreamCaptureMode>(mode)));
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    TTT_ENTER();
    return done(driver()->p_cuStreamEndCapture(stream, graph));
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
    TTT_ENTER();
    return done(driver()->p_cuGraphInstantiate(exec, graph, flags));
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    TTT_ENTER();
    return done(driver()->p_cuGraphLaunch(exec, stream));
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    TTT_ENTER();
    return done(driver()->p_cuGraphDestroy(graph));
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    TTT_ENTER();
    return done(driver()->p_cuGraphExecDestroy(exec));
}

}  // extern "C"
