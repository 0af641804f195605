#include "emulator/graph.h"

#include <algorithm>
#include <unordered_map>

#include "emulator/gpu.h"

namespace ttt::emulator {
namespace {

CUgraphNodeType type_of(const Work& work) {
    constexpr CUgraphNodeType kTypes[] = {
        CU_GRAPH_NODE_TYPE_EMPTY,      CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMCPY,
        CU_GRAPH_NODE_TYPE_MEMSET,     CU_GRAPH_NODE_TYPE_HOST,   CU_GRAPH_NODE_TYPE_EVENT_RECORD,
        CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_GRAPH};
    return kTypes[work.index()];
}

}  // namespace

Graph::~Graph() {
    for (const auto& node : nodes) Gpu::get().nodes.erase(handle_of(node.get()));
}

CUgraphNode handle_of(const GraphNode* node) {
    return reinterpret_cast<CUgraphNode>(const_cast<GraphNode*>(node));
}

GraphNode* find_node(CUgraphNode handle) {
    const auto& nodes = Gpu::get().nodes;
    const auto found = nodes.find(handle);
    return found == nodes.end() ? nullptr : found->second;
}

std::shared_ptr<Graph> find_graph(CUgraph handle) {
    const auto& graphs = Gpu::get().graphs;
    const auto found = graphs.find(handle);
    return found == graphs.end() ? nullptr : found->second;
}

CUgraph publish(std::shared_ptr<Graph> graph) {
    const CUgraph handle = reinterpret_cast<CUgraph>(graph.get());
    Gpu::get().graphs[handle] = std::move(graph);
    return handle;
}

GraphNode* add_node(Graph& graph, Work work, std::vector<GraphNode*> dependencies) {
    auto made = std::make_unique<GraphNode>();
    made->graph = &graph;
    made->type = type_of(work);
    made->work = std::move(work);
    made->dependencies = std::move(dependencies);
    made->id = Gpu::get().next_id();
    GraphNode* node = made.get();
    graph.nodes.push_back(std::move(made));
    Gpu::get().nodes[handle_of(node)] = node;
    return node;
}

void destroy_node(GraphNode* node) {
    Graph& graph = *node->graph;
    for (auto& other : graph.nodes) std::erase(other->dependencies, node);
    Gpu::get().nodes.erase(handle_of(node));
    std::erase_if(graph.nodes, [&](const auto& n) { return n.get() == node; });
}

void destroy_graph(CUgraph handle) {
    const auto graph = find_graph(handle);
    if (graph == nullptr) return;
    for (const auto& node : graph->nodes) {
        if (const auto* child = std::get_if<ChildWork>(&node->work)) {
            destroy_graph(reinterpret_cast<CUgraph>(child->graph.get()));
        }
    }
    Gpu::get().graphs.erase(handle);
}

std::shared_ptr<Graph> clone(const Graph& graph) {
    auto copy = std::make_shared<Graph>();
    std::unordered_map<const GraphNode*, GraphNode*> made;
    for (const auto& node : graph.nodes) {
        Work work = node->work;
        if (auto* child = std::get_if<ChildWork>(&work)) {
            child->graph = clone(*child->graph);
            publish(child->graph);
        }
        GraphNode* twin = add_node(*copy, std::move(work), {});
        twin->type = node->type;
        twin->kernel = node->kernel;
        twin->memset = node->memset;
        twin->origin = node.get();
        made[node.get()] = twin;
    }
    for (const auto& node : graph.nodes) {
        for (const GraphNode* d : node->dependencies)
            made[node.get()]->dependencies.push_back(made[d]);
    }
    return copy;
}

bool topological_order(const Graph& graph, std::vector<const GraphNode*>* order) {
    std::unordered_map<const GraphNode*, bool> placed;
    order->clear();
    // Rounds in creation order: the same graph always gives the same order.
    for (bool progress = true; progress && order->size() < graph.nodes.size();) {
        progress = false;
        for (const auto& node : graph.nodes) {
            if (placed[node.get()]) continue;
            const bool ready = std::all_of(node->dependencies.begin(), node->dependencies.end(),
                                           [&](const GraphNode* d) { return placed[d]; });
            if (!ready) continue;
            placed[node.get()] = true;
            order->push_back(node.get());
            progress = true;
        }
    }
    return order->size() == graph.nodes.size();
}

bool instantiate(const Graph& graph, GraphExec* exec) {
    std::vector<const GraphNode*> order;
    if (!topological_order(graph, &order)) return false;
    std::unordered_map<const GraphNode*, size_t> index;
    exec->nodes.clear();
    for (const GraphNode* node : order) {
        ExecNode made;
        made.work = node->work;
        if (auto* child = std::get_if<ChildWork>(&made.work)) child->graph = clone(*child->graph);
        made.type = node->type;
        made.source = node;
        for (const GraphNode* d : node->dependencies) made.dependencies.push_back(index[d]);
        index[node] = exec->nodes.size();
        exec->nodes.push_back(std::move(made));
    }
    return true;
}

CUresult launch(GraphExec& exec, uint64_t* nanoseconds) {
    std::vector<uint64_t> end(exec.nodes.size(), 0);
    *nanoseconds = 0;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < exec.nodes.size() && result == CUDA_SUCCESS; ++i) {
        uint64_t start = 0, cost = 0;
        for (const size_t d : exec.nodes[i].dependencies) start = std::max(start, end[d]);
        if (exec.nodes[i].enabled) result = execute(exec.nodes[i].work, true, &cost);
        end[i] = start + cost;
        *nanoseconds = std::max(*nanoseconds, end[i]);
        auto* record = std::get_if<EventRecordWork>(&exec.nodes[i].work);
        if (record != nullptr && Gpu::get().alive(record->event)) {
            record->event->time = end[i];  // relative; cuGraphLaunch adds the start
        }
    }
    return result;
}

}  // namespace ttt::emulator
