// Graphs: nodes with work and dependencies, and their executable copies. Callers hold the call
// lock.
#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

#include "emulator/work.h"

namespace ttt::emulator {

struct GraphNode {
    Graph* graph = nullptr;
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    Work work;
    CUDA_KERNEL_NODE_PARAMS kernel{};  // getter views, pointing into `work`
    CUDA_MEMSET_NODE_PARAMS memset{};
    std::vector<GraphNode*> dependencies;
    const GraphNode* origin = nullptr;  // in a clone: the node it was cloned from
    uint64_t id = 0;
};

struct Graph {
    Graph() = default;
    ~Graph();  // its nodes' handles end with it
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    std::vector<std::unique_ptr<GraphNode>> nodes;  // in creation order
};

struct ExecNode {
    Work work;
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    const GraphNode* source = nullptr;  // only compared, never followed
    std::vector<size_t> dependencies;   // indices of earlier nodes
    bool enabled = true;
};

struct GraphExec {
    std::vector<ExecNode> nodes;  // in topological order
    unsigned long long flags = 0;
    struct Context* context = nullptr;
};

GraphNode* add_node(Graph& graph, Work work, std::vector<GraphNode*> dependencies);
CUgraphNode handle_of(const GraphNode* node);
// nullptr when the handle is no node of a living graph.
GraphNode* find_node(CUgraphNode handle);
std::shared_ptr<Graph> find_graph(CUgraph handle);
CUgraph publish(std::shared_ptr<Graph> graph);
void destroy_node(GraphNode* node);
void destroy_graph(CUgraph handle);
std::shared_ptr<Graph> clone(const Graph& graph);

// False when the dependencies have a cycle.
bool topological_order(const Graph& graph, std::vector<const GraphNode*>* order);
bool instantiate(const Graph& graph, GraphExec* exec);
// Runs every node once; the whole takes the critical path of its nodes.
CUresult launch(GraphExec& exec, uint64_t* nanoseconds);

}  // namespace ttt::emulator
