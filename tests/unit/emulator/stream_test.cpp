// Streams, capture, graphs.
#include <atomic>
#include <thread>
#include <vector>

#include "unit/emulator/driver.h"

namespace ttt::test {
namespace {

struct Graphs : Emulator {
    void prepare() {
        fill = load(kFill, "fill");
        out = allocate(32 * 4);
        ASSERT_EQ(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    }
    unsigned first_word() {
        unsigned word = 0;
        EXPECT_EQ(CU(cuMemcpyDtoH)(&word, out, 4), CUDA_SUCCESS);
        return word;
    }
    CUresult launch(unsigned value) {
        void* params[] = {&out, &value};
        return CU(cuLaunchKernel)(fill, 1, 1, 1, 32, 1, 1, 0, stream, params, nullptr);
    }
    CUfunction fill = nullptr;
    CUdeviceptr out = 0;
    CUstream stream = nullptr;
};

TEST_F(Graphs, CaptureKeepsWorkForTheLaunch) {
    prepare();
    ASSERT_EQ(CU(cuMemsetD8)(out, 0, 128), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    CUstreamCaptureStatus status{};
    EXPECT_EQ(CU(cuStreamIsCapturing)(stream, &status), CUDA_SUCCESS);
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_EQ(launch(5), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuMemsetD32Async)(out, 77, 1, stream), CUDA_SUCCESS);
    CUgraph graph = nullptr;
    ASSERT_EQ(CU(cuStreamEndCapture)(stream, &graph), CUDA_SUCCESS);
    EXPECT_EQ(first_word(), 0u);  // nothing has run yet
    size_t count = 0;
    EXPECT_EQ(CU(cuGraphGetNodes)(graph, nullptr, &count), CUDA_SUCCESS);
    EXPECT_EQ(count, 2u);
    CUgraphExec exec = nullptr;
    ASSERT_EQ(CU(cuGraphInstantiate)(&exec, graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuGraphLaunch)(exec, stream), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
    std::vector<unsigned> words(32);
    ASSERT_EQ(CU(cuMemcpyDtoH)(words.data(), out, 128), CUDA_SUCCESS);
    EXPECT_EQ(words[0], 77u);
    EXPECT_EQ(words[1], 5u);
    EXPECT_EQ(CU(cuGraphExecDestroy)(exec), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuGraphDestroy)(graph), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuGraphDestroy)(graph), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, UnsafeCallsBreakACapture) {
    prepare();
    ASSERT_EQ(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    CUdeviceptr p = 0;
    EXPECT_EQ(CU(cuMemAlloc)(&p, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CUgraph graph = nullptr;
    EXPECT_EQ(CU(cuStreamEndCapture)(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
    ASSERT_EQ(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    EXPECT_EQ(CU(cuThreadExchangeStreamCaptureMode)(&mode), CUDA_SUCCESS);
    EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_EQ(CU(cuMemAlloc)(&p, 64), CUDA_SUCCESS);  // relaxed: allowed
    EXPECT_EQ(CU(cuThreadExchangeStreamCaptureMode)(&mode), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuStreamSynchronize)(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(CU(cuStreamEndCapture)(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Graphs, StreamsJoinACaptureThroughEvents) {
    prepare();
    CUstream other = nullptr;
    CUevent fork = nullptr, join = nullptr;
    ASSERT_EQ(CU(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuEventCreate)(&fork, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuEventCreate)(&join, 0), CUDA_SUCCESS);
    const auto capture = [&](bool joined) {
        CUgraph graph = nullptr;
        EXPECT_EQ(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                  CUDA_SUCCESS);
        EXPECT_EQ(launch(1), CUDA_SUCCESS);
        EXPECT_EQ(CU(cuEventRecord)(fork, stream), CUDA_SUCCESS);
        EXPECT_EQ(CU(cuStreamWaitEvent)(other, fork, 0), CUDA_SUCCESS);
        EXPECT_EQ(CU(cuMemsetD32Async)(out, 8, 1, other), CUDA_SUCCESS);
        EXPECT_EQ(CU(cuEventRecord)(join, other), CUDA_SUCCESS);
        if (joined) {
            EXPECT_EQ(CU(cuStreamWaitEvent)(stream, join, 0), CUDA_SUCCESS);
        }
        const CUresult result = CU(cuStreamEndCapture)(stream, &graph);
        if (graph != nullptr) CU(cuGraphDestroy)(graph);
        return result;
    };
    EXPECT_EQ(capture(true), CUDA_SUCCESS);
    EXPECT_EQ(capture(false), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    EXPECT_EQ(CU(cuEventQuery)(join), CUDA_SUCCESS);
}

TEST_F(Graphs, NodesByHandAndExecUpdates) {
    prepare();
    CUgraph graph = nullptr;
    ASSERT_EQ(CU(cuGraphCreate)(&graph, 0), CUDA_SUCCESS);
    unsigned value = 11;
    void* params[] = {&out, &value};
    CUDA_KERNEL_NODE_PARAMS kernel{};
    kernel.func = fill;
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
    kernel.blockDimX = 32;
    kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.kernelParams = params;
    CUgraphNode node = nullptr, empty = nullptr, set = nullptr;
    ASSERT_EQ(CU(cuGraphAddKernelNode)(&node, graph, nullptr, 0, &kernel), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuGraphAddEmptyNode)(&empty, graph, &node, 1), CUDA_SUCCESS);
    CUDA_MEMSET_NODE_PARAMS memset{};
    memset.dst = out + 4;
    memset.elementSize = 4;
    memset.width = memset.height = 1;
    memset.value = 99;
    ASSERT_EQ(CU(cuGraphAddMemsetNode)(&set, graph, &empty, 1, &memset, context), CUDA_SUCCESS);
    CUDA_KERNEL_NODE_PARAMS read{};
    ASSERT_EQ(CU(cuGraphKernelNodeGetParams)(node, &read), CUDA_SUCCESS);
    EXPECT_EQ(read.func, fill);
    EXPECT_EQ(*static_cast<unsigned*>(read.kernelParams[1]), 11u);
    CUgraphExec exec = nullptr;
    ASSERT_EQ(CU(cuGraphInstantiate)(&exec, graph, 0), CUDA_SUCCESS);
    value = 12;
    ASSERT_EQ(CU(cuGraphExecKernelNodeSetParams)(exec, node, &kernel), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuGraphLaunch)(exec, stream), CUDA_SUCCESS);
    unsigned words[2];
    ASSERT_EQ(CU(cuMemcpyDtoH)(words, out, 8), CUDA_SUCCESS);
    EXPECT_EQ(words[0], 12u);
    EXPECT_EQ(words[1], 99u);

    // A clone's node handle is refused; an edited clone updates the whole.
    CUgraph copy = nullptr;
    CUgraphNode twin = nullptr;
    ASSERT_EQ(CU(cuGraphClone)(&copy, graph), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuGraphNodeFindInClone)(&twin, node, copy), CUDA_SUCCESS);
    EXPECT_NE(CU(cuGraphExecKernelNodeSetParams)(exec, twin, &kernel), CUDA_SUCCESS);
    value = 13;
    ASSERT_EQ(CU(cuGraphKernelNodeSetParams)(twin, &kernel), CUDA_SUCCESS);
    CUgraphExecUpdateResultInfo info{};
    ASSERT_EQ(CU(cuGraphExecUpdate)(exec, copy, &info), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuGraphLaunch)(exec, stream), CUDA_SUCCESS);
    EXPECT_EQ(first_word(), 13u);
    ASSERT_EQ(CU(cuGraphAddEmptyNode)(&empty, copy, nullptr, 0), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuGraphExecUpdate)(exec, copy, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    EXPECT_EQ(CU(cuGraphDestroy)(graph), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuGraphDestroy)(copy), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuGraphLaunch)(exec, stream), CUDA_SUCCESS);  // independent of its graph
}

TEST_F(Graphs, StreamsAndEventsOrderSimulatedTime) {
    prepare();
    CUstream other = nullptr;
    ASSERT_EQ(CU(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CUevent events[3];
    for (CUevent& e : events) ASSERT_EQ(CU(cuEventCreate)(&e, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuEventRecord)(events[0], stream), CUDA_SUCCESS);
    for (int i = 0; i < 10; ++i) ASSERT_EQ(launch(1), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuEventRecord)(events[1], stream), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuStreamWaitEvent)(other, events[1], 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuEventRecord)(events[2], other), CUDA_SUCCESS);
    float waited = 0, worked = 0;
    ASSERT_EQ(CU(cuEventElapsedTime)(&worked, events[0], events[1]), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuEventElapsedTime)(&waited, events[0], events[2]), CUDA_SUCCESS);
    EXPECT_GT(worked, 0.01F);
    EXPECT_EQ(waited, worked);
    CUevent untimed = nullptr;
    ASSERT_EQ(CU(cuEventCreate)(&untimed, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuEventRecord)(untimed, stream), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuEventElapsedTime)(&worked, events[0], untimed), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Graphs, ThreadsShareTheContext) {
    prepare();
    constexpr int kThreads = 4, kLaunches = 50;
    std::vector<std::thread> threads;
    std::atomic<int> failures{0};
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&] {
            CUstream own = nullptr;
            failures += CU(cuCtxSetCurrent)(context) != CUDA_SUCCESS;
            failures += CU(cuStreamCreate)(&own, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
            unsigned value = 1;
            void* params[] = {&out, &value};
            for (int k = 0; k < kLaunches; ++k) {
                failures += CU(cuLaunchKernel)(fill, 1, 1, 1, 32, 1, 1, 0, own, params, nullptr) !=
                            CUDA_SUCCESS;
            }
            failures += CU(cuStreamDestroy)(own) != CUDA_SUCCESS;
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(failures, 0);
    CUmodule module = nullptr;
    CUdeviceptr total = 0;
    unsigned count = 0;
    ASSERT_EQ(CU(cuFuncGetModule)(&module, fill), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuModuleGetGlobal)(&total, nullptr, module, "total"), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemcpyDtoH)(&count, total, 4), CUDA_SUCCESS);
    EXPECT_EQ(count, 5u + kThreads * kLaunches * 32u);
}

TEST_F(Graphs, HostFunctionsMayWaitForThreadsThatCallTheDriver) {
    prepare();
    struct Shared {
        CUcontext context;
        CUresult result;
    } shared{context, CUDA_ERROR_UNKNOWN};
    const CUhostFn wait = [](void* data) {
        auto* s = static_cast<Shared*>(data);
        std::thread([s] {
            CU(cuCtxSetCurrent)(s->context);
            CUdeviceptr p = 0;
            s->result = CU(cuMemAlloc)(&p, 64);
        }).join();
    };
    EXPECT_EQ(CU(cuLaunchHostFunc)(stream, wait, &shared), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
    EXPECT_EQ(shared.result, CUDA_SUCCESS);
}

}  // namespace
}  // namespace ttt::test
