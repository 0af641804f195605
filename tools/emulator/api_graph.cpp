// Whole graphs: made, cloned, instantiated, updated, launched; edges.
#include <algorithm>

#include "emulator/api.h"

namespace ttt::emulator::api {
namespace {

CUresult need_graph(CUgraph handle, std::shared_ptr<Graph>* graph) {
    *graph = find_graph(handle);
    return *graph != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult make_exec(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
    std::shared_ptr<Graph> graph;
    TTT_EMU_TRY(need_graph(handle, &graph));
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<GraphExec>();
    made->flags = flags;
    made->context = context;
    if (!instantiate(*graph, made.get())) return CUDA_ERROR_INVALID_VALUE;
    return give(out, Gpu::get().execs.add(std::move(made)));
}

// The two-call protocol of the getters: a null list asks for the count; a longer list is filled up
// with nulls.
CUresult give_nodes(const std::vector<const GraphNode*>& found, CUgraphNode* out, size_t* count) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (out != nullptr) {
        for (size_t i = 0; i < *count; ++i)
            out[i] = i < found.size() ? handle_of(found[i]) : nullptr;
        *count = std::min(*count, found.size());
    } else {
        *count = found.size();
    }
    return CUDA_SUCCESS;
}

std::vector<const GraphNode*> dependents(const GraphNode& node) {
    std::vector<const GraphNode*> found;
    for (const auto& other : node.graph->nodes) {
        const auto& d = other->dependencies;
        if (std::find(d.begin(), d.end(), &node) != d.end()) found.push_back(other.get());
    }
    return found;
}

CUresult give_edges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, size_t* count) {
    std::shared_ptr<Graph> graph;
    TTT_EMU_TRY(need_graph(handle, &graph));
    std::vector<const GraphNode*> sources, targets;
    for (const auto& node : graph->nodes) {
        for (const GraphNode* d : node->dependencies) {
            sources.push_back(d);
            targets.push_back(node.get());
        }
    }
    if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    size_t room = *count;
    TTT_EMU_TRY(give_nodes(sources, from, count));
    return to != nullptr ? give_nodes(targets, to, &room) : CUDA_SUCCESS;
}

CUresult edit_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, size_t count,
                    bool adding) {
    std::shared_ptr<Graph> graph;
    TTT_EMU_TRY(need_graph(handle, &graph));
    if (count > 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
        GraphNode *source = find_node(from[i]), *target = find_node(to[i]);
        if (source == nullptr || target == nullptr || source->graph != graph.get() ||
            target->graph != graph.get()) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        auto& d = target->dependencies;
        const bool present = std::find(d.begin(), d.end(), source) != d.end();
        if (present == adding) return CUDA_ERROR_INVALID_VALUE;
        if (adding) {
            d.push_back(source);
        } else {
            std::erase(d, source);
        }
    }
    return CUDA_SUCCESS;
}

CUresult update(CUgraphExec exec_handle, CUgraph graph_handle, CUgraphExecUpdateResult* result,
                CUgraphNode* error_node) {
    GraphExec* exec = Gpu::get().execs.find(exec_handle);
    std::shared_ptr<Graph> graph;
    if (exec == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    TTT_EMU_TRY(need_graph(graph_handle, &graph));
    const auto refuse = [&](CUgraphExecUpdateResult why, const GraphNode* node) {
        give_if(result, why);
        give_if(error_node, node != nullptr ? handle_of(node) : nullptr);
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    };
    std::vector<const GraphNode*> order;
    if (!topological_order(*graph, &order) || order.size() != exec->nodes.size()) {
        return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
    }
    GraphExec fresh;
    instantiate(*graph, &fresh);
    for (size_t i = 0; i < order.size(); ++i) {
        if (fresh.nodes[i].type != exec->nodes[i].type) {
            return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, order[i]);
        }
        if (fresh.nodes[i].dependencies != exec->nodes[i].dependencies) {
            return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, order[i]);
        }
    }
    for (size_t i = 0; i < order.size(); ++i) exec->nodes[i].work = std::move(fresh.nodes[i].work);
    give_if(result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    give_if(error_node, nullptr);
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGraphCreate(CUgraph* out, unsigned int flags) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return give(out, publish(std::make_shared<Graph>()));
}
CUresult cuGraphDestroy(CUgraph handle) {
    std::shared_ptr<Graph> graph;
    TTT_EMU_TRY(need_graph(handle, &graph));
    destroy_graph(handle);
    return CUDA_SUCCESS;
}
CUresult cuGraphClone(CUgraph* out, CUgraph handle) {
    std::shared_ptr<Graph> graph;
    TTT_EMU_TRY(need_graph(handle, &graph));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return give(out, publish(clone(*graph)));
}
CUresult cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph clone_handle) {
    std::shared_ptr<Graph> graph;
    TTT_EMU_TRY(need_graph(clone_handle, &graph));
    const GraphNode* wanted = find_node(original);
    if (out == nullptr || wanted == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& node : graph->nodes) {
        if (node->origin == wanted) return give(out, handle_of(node.get()));
    }
    return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* out, size_t* count) {
    std::shared_ptr<Graph> graph;
    TTT_EMU_TRY(need_graph(handle, &graph));
    std::vector<const GraphNode*> found;
    for (const auto& node : graph->nodes) found.push_back(node.get());
    return give_nodes(found, out, count);
}
CUresult cuGraphGetRootNodes(CUgraph handle, CUgraphNode* out, size_t* count) {
    std::shared_ptr<Graph> graph;
    TTT_EMU_TRY(need_graph(handle, &graph));
    std::vector<const GraphNode*> found;
    for (const auto& node : graph->nodes) {
        if (node->dependencies.empty()) found.push_back(node.get());
    }
    return give_nodes(found, out, count);
}
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
    return give_edges(graph, from, to, count);
}
CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* data, size_t* count) {
    const size_t room = count != nullptr ? *count : 0;
    TTT_EMU_TRY(give_edges(graph, from, to, count));
    if (data != nullptr) std::fill_n(data, room, CUgraphEdgeData{});
    return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetDependencies(CUgraphNode handle, CUgraphNode* out, size_t* count) {
    const GraphNode* node = find_node(handle);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return give_nodes({node->dependencies.begin(), node->dependencies.end()}, out, count);
}
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode* out, CUgraphEdgeData* data,
                                       size_t* count) {
    const size_t room = count != nullptr ? *count : 0;
    TTT_EMU_TRY(api::cuGraphNodeGetDependencies(handle, out, count));
    if (data != nullptr) std::fill_n(data, room, CUgraphEdgeData{});
    return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode handle, CUgraphNode* out, size_t* count) {
    const GraphNode* node = find_node(handle);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return give_nodes(dependents(*node), out, count);
}
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode* out,
                                         CUgraphEdgeData* data, size_t* count) {
    const size_t room = count != nullptr ? *count : 0;
    TTT_EMU_TRY(api::cuGraphNodeGetDependentNodes(handle, out, count));
    if (data != nullptr) std::fill_n(data, room, CUgraphEdgeData{});
    return CUDA_SUCCESS;
}
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                size_t count) {
    return edit_edges(graph, from, to, count, true);
}
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, size_t count) {
    return edit_edges(graph, from, to, count, true);
}
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t count) {
    return edit_edges(graph, from, to, count, false);
}
CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData*, size_t count) {
    return edit_edges(graph, from, to, count, false);
}
CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
    const GraphNode* node = find_node(handle);
    return node != nullptr ? give(type, node->type) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGraphDestroyNode(CUgraphNode handle) {
    GraphNode* node = find_node(handle);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    destroy_node(node);
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
    return make_exec(out, graph, flags);
}
CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char* log,
                            size_t bytes) {
    give_if(error_node, nullptr);
    if (log != nullptr && bytes > 0) log[0] = '\0';
    return make_exec(out, graph, 0);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    params->hErrNode_out = nullptr;
    const CUresult result = make_exec(out, graph, params->flags);
    params->result_out =
        result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}
CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
    const GraphExec* exec = Gpu::get().execs.find(handle);
    return exec != nullptr ? give(flags, exec->flags) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGraphExecDestroy(CUgraphExec handle) {
    return Gpu::get().execs.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                           CUgraphExecUpdateResult* result) {
    return update(exec, graph, result, error_node);
}
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
    if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *info = {};
    return update(exec, graph, &info->result, &info->errorNode);
}
CUresult cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(stream_handle, &stream));
    return Gpu::get().execs.find(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
    GraphExec* exec = Gpu::get().execs.find(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(stream_handle, &stream));
    if (stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->legacy) TTT_EMU_TRY(refuse_legacy_in_capture());
    // A copy: host nodes run unlocked, and the program may update or destroy the original then.
    GraphExec running = *exec;
    uint64_t nanoseconds = 0;
    const CUresult result = launch(running, &nanoseconds);
    if (!Gpu::get().alive(stream)) return result;
    advance(*stream, nanoseconds + static_cast<uint64_t>(Gpu::get().device->launch_ns));
    for (ExecNode& node : running.nodes) {
        auto* record = std::get_if<EventRecordWork>(&node.work);
        if (record == nullptr || !Gpu::get().alive(record->event)) continue;
        record->event->time += stream->clock - nanoseconds;
    }
    return result;
}

}  // namespace ttt::emulator::api
