// Graph nodes: added, read, changed, in graphs and in their executable copies.
#include <algorithm>
#include <cstring>

#include "emulator/api.h"

namespace ttt::emulator::api {
namespace {

template <typename P>  // CUDA_KERNEL_NODE_PARAMS of any version
CUfunction function_of(const P& params) {
    if constexpr (requires { params.kern; }) {
        if (params.func == nullptr) return reinterpret_cast<CUfunction>(params.kern);
    }
    return params.func;
}

template <typename P>
CUresult kernel_work(const P* params, KernelWork* work) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Dim3 grid{params->gridDimX, params->gridDimY, params->gridDimZ};
    const Dim3 block{params->blockDimX, params->blockDimY, params->blockDimZ};
    return make_kernel(function_of(*params), grid, block, params->sharedMemBytes,
                       params->kernelParams, params->extra, work);
}

template <typename P>
CUresult give_kernel(CUgraphNode handle, P* out) {
    GraphNode* node = find_node(handle);
    auto* work = node != nullptr ? std::get_if<KernelWork>(&node->work) : nullptr;
    if (work == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!Gpu::get().alive(work->function)) return CUDA_ERROR_INVALID_HANDLE;
    work->param_pointers.clear();
    for (const auto& p : work->function->params)
        work->param_pointers.push_back(work->params.data() + p.offset);
    *out = {};
    const bool is_kernel = Gpu::get().functions.find(work->handle) == nullptr;
    if constexpr (requires { out->kern; }) {
        if (is_kernel) out->kern = reinterpret_cast<CUkernel>(work->handle);
        if (!is_kernel) out->func = work->handle;
    } else {
        out->func =
            is_kernel ? Handles<Function, CUfunction>::handle_of(work->function) : work->handle;
    }
    out->gridDimX = work->grid.x;
    out->gridDimY = work->grid.y;
    out->gridDimZ = work->grid.z;
    out->blockDimX = work->block.x;
    out->blockDimY = work->block.y;
    out->blockDimZ = work->block.z;
    out->sharedMemBytes = work->dynamic_shared;
    out->kernelParams = work->param_pointers.data();
    return CUDA_SUCCESS;
}

template <typename P>  // CUDA_MEMSET_NODE_PARAMS of any version
CUresult fill_work(const P* params, FillWork* work) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (params->elementSize != 1 && params->elementSize != 2 && params->elementSize != 4)
        return CUDA_ERROR_INVALID_VALUE;
    work->to = params->dst;
    work->value = params->value;
    work->value_bytes = params->elementSize;
    work->width = params->width;
    work->height = params->height;
    work->pitch = params->pitch;
    return CUDA_SUCCESS;
}

CUresult copy_work(const CUDA_MEMCPY3D* params, CopyWork* work) {
    return params != nullptr ? make_copy(*params, work) : CUDA_ERROR_INVALID_VALUE;
}

CUresult event_of(CUevent handle, Event** event) {
    *event = Gpu::get().events.find(handle);
    return *event != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult add(CUgraphNode* out, CUgraph graph_handle, const CUgraphNode* dependencies, size_t count,
             Work work) {
    const auto graph = find_graph(graph_handle);
    if (out == nullptr || graph == nullptr || (count > 0 && dependencies == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    TTT_EMU_TRY(check(work));
    std::vector<GraphNode*> before;
    for (size_t i = 0; i < count; ++i) {
        GraphNode* node = find_node(dependencies[i]);
        if (node == nullptr || node->graph != graph.get()) return CUDA_ERROR_INVALID_VALUE;
        if (std::find(before.begin(), before.end(), node) != before.end())
            return CUDA_ERROR_INVALID_VALUE;
        before.push_back(node);
    }
    return give(out, handle_of(add_node(*graph, std::move(work), std::move(before))));
}

// Replaces the work of a node by work of the same kind.
CUresult replace(Work& place, Work work) {
    if (place.index() != work.index()) return CUDA_ERROR_INVALID_VALUE;
    TTT_EMU_TRY(check(work));
    if (auto* kernel = std::get_if<KernelWork>(&work)) {
        kernel->attributes = std::get<KernelWork>(place).attributes;  // they stay as instantiated
    }
    place = std::move(work);
    return CUDA_SUCCESS;
}
CUresult set(CUgraphNode handle, Work work) {
    GraphNode* node = find_node(handle);
    return node != nullptr ? replace(node->work, std::move(work)) : CUDA_ERROR_INVALID_VALUE;
}
ExecNode* exec_node(CUgraphExec exec_handle, CUgraphNode handle) {
    GraphExec* exec = Gpu::get().execs.find(exec_handle);
    const GraphNode* node = find_node(handle);
    if (exec == nullptr || node == nullptr) return nullptr;
    for (ExecNode& candidate : exec->nodes) {
        if (candidate.source == node) return &candidate;
    }
    return nullptr;
}
CUresult set_exec(CUgraphExec exec, CUgraphNode handle, Work work) {
    ExecNode* node = exec_node(exec, handle);
    return node != nullptr ? replace(node->work, std::move(work)) : CUDA_ERROR_INVALID_VALUE;
}

template <typename W>
W* work_of(CUgraphNode handle) {
    GraphNode* node = find_node(handle);
    return node != nullptr ? std::get_if<W>(&node->work) : nullptr;
}

CUresult child_work(CUgraph handle, ChildWork* work) {
    const auto graph = find_graph(handle);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    work->graph = clone(*graph);
    publish(work->graph);
    return CUDA_SUCCESS;
}

// Work described by the generic form.
CUresult generic_work(const CUgraphNodeParams* params, Work* work) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    switch (params->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return kernel_work(&params->kernel, &work->emplace<KernelWork>());
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return copy_work(&params->memcpy.copyParams, &work->emplace<CopyWork>());
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return fill_work(&params->memset, &work->emplace<FillWork>());
        case CU_GRAPH_NODE_TYPE_HOST:
            if (params->host.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
            *work = HostWork{params->host.fn, params->host.userData};
            return CUDA_SUCCESS;
        case CU_GRAPH_NODE_TYPE_GRAPH:
            return child_work(params->graph.graph, &work->emplace<ChildWork>());
        case CU_GRAPH_NODE_TYPE_EMPTY:
            *work = EmptyWork{};
            return CUDA_SUCCESS;
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT: {
            Event* event = nullptr;
            TTT_EMU_TRY(event_of(params->eventWait.event, &event));
            *work = EventWaitWork{event};
            return CUDA_SUCCESS;
        }
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
            Event* event = nullptr;
            TTT_EMU_TRY(event_of(params->eventRecord.event, &event));
            *work = EventRecordWork{event};
            return CUDA_SUCCESS;
        }
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
    }
}

}  // namespace

CUresult cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                             size_t count) {
    return add(out, graph, before, count, EmptyWork{});
}

CUresult cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
    KernelWork work;
    TTT_EMU_TRY(kernel_work(params, &work));
    return add(out, graph, before, count, std::move(work));
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
    KernelWork work;
    TTT_EMU_TRY(kernel_work(params, &work));
    return add(out, graph, before, count, std::move(work));
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params) {
    return give_kernel(node, params);
}
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
    return give_kernel(node, params);
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
    KernelWork work;
    TTT_EMU_TRY(kernel_work(params, &work));
    return set(node, std::move(work));
}
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
    KernelWork work;
    TTT_EMU_TRY(kernel_work(params, &work));
    return set(node, std::move(work));
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* params) {
    KernelWork work;
    TTT_EMU_TRY(kernel_work(params, &work));
    return set_exec(exec, node, std::move(work));
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* params) {
    KernelWork work;
    TTT_EMU_TRY(kernel_work(params, &work));
    return set_exec(exec, node, std::move(work));
}
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                       CUkernelNodeAttrValue* value) {
    const KernelWork* work = work_of<KernelWork>(handle);
    if (work == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *value = {};
    for (const CUlaunchAttribute& attribute : work->attributes) {
        if (attribute.id == id) *value = attribute.value;
    }
    return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                       const CUkernelNodeAttrValue* value) {
    KernelWork* work = work_of<KernelWork>(handle);
    if (work == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::erase_if(work->attributes, [&](const CUlaunchAttribute& a) { return a.id == id; });
    CUlaunchAttribute made{};
    made.id = id;
    made.value = *value;
    work->attributes.push_back(made);
    return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
    KernelWork *target = work_of<KernelWork>(to), *source = work_of<KernelWork>(from);
    if (target == nullptr || source == nullptr) return CUDA_ERROR_INVALID_VALUE;
    target->attributes = source->attributes;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                              size_t count, const CUDA_MEMCPY3D* params, CUcontext) {
    CopyWork work;
    TTT_EMU_TRY(copy_work(params, &work));
    return add(out, graph, before, count, work);
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* params) {
    const CopyWork* work = work_of<CopyWork>(node);
    return work != nullptr ? give(params, work->params) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
    CopyWork work;
    TTT_EMU_TRY(copy_work(params, &work));
    return set(node, work);
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D* params, CUcontext) {
    CopyWork work;
    TTT_EMU_TRY(copy_work(params, &work));
    return set_exec(exec, node, work);
}

CUresult cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
    FillWork work;
    TTT_EMU_TRY(fill_work(params, &work));
    return add(out, graph, before, count, work);
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params) {
    const FillWork* work = work_of<FillWork>(node);
    if (work == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *params = {};
    params->dst = work->to;
    params->pitch = work->pitch;
    params->value = work->value;
    params->elementSize = work->value_bytes;
    params->width = work->width;
    params->height = work->height;
    return CUDA_SUCCESS;
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params) {
    FillWork work;
    TTT_EMU_TRY(fill_work(params, &work));
    return set(node, work);
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
    FillWork work;
    TTT_EMU_TRY(fill_work(params, &work));
    return set_exec(exec, node, work);
}

CUresult cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                            size_t count, const CUDA_HOST_NODE_PARAMS* params) {
    if (params == nullptr || params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add(out, graph, before, count, HostWork{params->fn, params->userData});
}
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* params) {
    const HostWork* work = work_of<HostWork>(node);
    if (work == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *params = {};
    params->fn = work->call;
    params->userData = work->data;
    return CUDA_SUCCESS;
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
    if (params == nullptr || params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return set(node, HostWork{params->fn, params->userData});
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS* params) {
    if (params == nullptr || params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return set_exec(exec, node, HostWork{params->fn, params->userData});
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                  size_t count, CUgraph child) {
    ChildWork work;
    TTT_EMU_TRY(child_work(child, &work));
    return add(out, graph, before, count, std::move(work));
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
    const ChildWork* work = work_of<ChildWork>(node);
    return work != nullptr ? give(graph, reinterpret_cast<CUgraph>(work->graph.get()))
                           : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                   size_t count, CUevent event_handle) {
    Event* event = nullptr;
    TTT_EMU_TRY(event_of(event_handle, &event));
    return add(out, graph, before, count, EventRecordWork{event});
}
CUresult cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                 size_t count, CUevent event_handle) {
    Event* event = nullptr;
    TTT_EMU_TRY(event_of(event_handle, &event));
    return add(out, graph, before, count, EventWaitWork{event});
}

CUresult cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before, size_t count,
                        CUgraphNodeParams* params) {
    Work work;
    TTT_EMU_TRY(generic_work(params, &work));
    return add(out, graph, before, count, std::move(work));
}
CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                           const CUgraphEdgeData*, size_t count, CUgraphNodeParams* params) {
    Work work;
    TTT_EMU_TRY(generic_work(params, &work));
    return add(out, graph, before, count, std::move(work));
}
CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
    Work work;
    TTT_EMU_TRY(generic_work(params, &work));
    return set(node, std::move(work));
}
CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
    Work work;
    TTT_EMU_TRY(generic_work(params, &work));
    return set_exec(exec, node, std::move(work));
}
CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode handle, unsigned int enabled) {
    ExecNode* node = exec_node(exec, handle);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    node->enabled = enabled != 0;
    return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode handle, unsigned int* enabled) {
    const ExecNode* node = exec_node(exec, handle);
    return node != nullptr ? give(enabled, node->enabled ? 1 : 0) : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace ttt::emulator::api
