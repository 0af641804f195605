// Streams, events, graphs.
#include "support/runtime.h"

using namespace ttt::test_runtime;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    TTT_START();
    return keep(DRIVER(cuStreamCreate)(stream, CU_STREAM_DEFAULT));
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    TTT_START();
    return keep(DRIVER(cuStreamCreate)(stream, flags));
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
    TTT_START();
    return keep(DRIVER(cuStreamCreateWithPriority)(stream, flags, priority));
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    TTT_START();
    return keep(DRIVER(cuStreamDestroy)(stream));
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    TTT_START();
    return keep(DRIVER(cuStreamSynchronize)(stream));
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    TTT_START();
    return keep(DRIVER(cuStreamQuery)(stream));
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    TTT_START();
    return keep(DRIVER(cuStreamWaitEvent)(stream, event, flags));
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void* data) {
    TTT_START();
    return keep(DRIVER(cuLaunchHostFunc)(stream, call, data));
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    TTT_START();
    return keep(DRIVER(cuEventCreate)(event, 0));
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    TTT_START();
    return keep(DRIVER(cuEventCreate)(event, flags));
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    TTT_START();
    return keep(DRIVER(cuEventDestroy)(event));
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    TTT_START();
    return keep(DRIVER(cuEventRecord)(event, stream));
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    TTT_START();
    return keep(DRIVER(cuEventSynchronize)(event));
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    TTT_START();
    return keep(DRIVER(cuEventQuery)(event));
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t second) {
    TTT_START();
    return keep(DRIVER(cuEventElapsedTime)(milliseconds, first, second));
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    TTT_START();
    return keep(DRIVER(cuStreamBeginCapture)(stream, static_cast<CUstreamCaptureMode>(mode)));
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    TTT_START();
    return keep(DRIVER(cuStreamEndCapture)(stream, graph));
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    TTT_START();
    CUstreamCaptureStatus lower{};
    const CUresult result = DRIVER(cuStreamIsCapturing)(stream, &lower);
    *status = static_cast<cudaStreamCaptureStatus>(lower);
    return keep(result);
}
cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
    TTT_START();
    return keep(DRIVER(cuGraphCreate)(graph, flags));
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    TTT_START();
    return keep(DRIVER(cuGraphDestroy)(graph));
}
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
    TTT_START();
    return keep(DRIVER(cuGraphClone)(clone, original));
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    TTT_START();
    return keep(DRIVER(cuGraphGetNodes)(graph, nodes, count));
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
    TTT_START();
    return keep(DRIVER(cuGraphInstantiate)(exec, graph, flags));
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
    TTT_START();
    return keep(DRIVER(cuGraphInstantiate)(exec, graph, flags));
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    TTT_START();
    return keep(DRIVER(cuGraphLaunch)(exec, stream));
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    TTT_START();
    return keep(DRIVER(cuGraphExecDestroy)(exec));
}

}  // extern "C"
