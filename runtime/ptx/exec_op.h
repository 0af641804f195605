// Decoded form of one function: an array of small operations over 32-lane register slots. Internal
// to the interpreter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ptx/interpreter.h"
#include "ptx/ir.h"

namespace ttt::ptx::exec {

struct Context;
struct Op;

inline constexpr uint32_t kLanes = 32;
inline constexpr uint32_t kNowhere = 0xFFFFFFFFu;

// A register slot holds one value per lane: 16, 32, 64 or 128 bits each; a predicate is one bit per
// lane in a word.
enum class Width : uint8_t { kPred, kHalf, kWord, kLong, kQuad };
constexpr uint32_t slot_bytes(Width w) {
    return w == Width::kPred ? 4u : 32u << static_cast<uint32_t>(w);
}

// Executes the operation for the lanes in `mask` (never empty).
using Handler = void (*)(Context& context, const Op& op, uint32_t mask);
// One lane: sources as zero-extended bits (predicates as 0/1) to the result's bits.
using Scalar = uint64_t (*)(const uint64_t* sources, const Op& op);

struct Source {
    uint32_t offset = 0;
    Width width = Width::kWord;
    uint8_t bank = 0;      // 0: registers of the frame, 1: constants of the program
    bool negated = false;  // !p
};

struct Dest {
    uint32_t offset = kNowhere;  // kNowhere: the sink
    Width width = Width::kWord;
};

enum class Flow : uint8_t {
    kNone,
    kBranch,         // target, join
    kBranchIndexed,  // targets in tables[table]
    kExit,
    kReturn,
    kCall,
    kBarrier,     // bar.sync/arrive/red on barrier src[0] with src[1] threads
    kCollective,  // needs the lanes of the member mask in src[member_source]
    kTrap,
};

enum class BarrierAction : uint8_t { kSync, kArrive, kPopc, kAnd, kOr };

struct Op {
    Handler run = nullptr;
    Scalar scalar = nullptr;
    Source src[5];
    Dest dst[2];
    uint64_t imm = 0;           // address offset, look-up table, … (what the handler says)
    uint32_t guard = kNowhere;  // predicate slot
    bool guard_negated = false;
    bool counted = true;          // false for the helper operations of an instruction
    bool joins = false;           // some divergent branch reconverges here
    bool joins_after = false;     // a call whose lanes may part: they meet at the next operation
    bool frame_relative = false;  // the address counts from the frame's local memory
    Flow flow = Flow::kNone;
    Space space = Space::kGeneric;
    Type type = Type::kNone;
    Type type2 = Type::kNone;
    uint8_t sources = 0;
    uint8_t element_bytes = 0;
    uint8_t elements = 1;
    uint8_t member_source = kNoMember;
    uint16_t sub = 0;  // sub-operation, as the handler says
    uint16_t sub2 = 0;
    uint32_t target = kNowhere;
    uint32_t join = kNowhere;
    uint32_t table = kNowhere;    // index of FunctionCode::dests, targets or calls
    uint32_t results = kNowhere;  // index of FunctionCode::dests of a vector atomic
    uint32_t cache = 0;           // index of the worker's allocation cache
    uint32_t stmt = 0;            // index in the function's body

    static constexpr uint8_t kNoMember = 0xFF;
};

// How one actual argument or result travels: through a .param variable in the frame or a register.
struct Transfer {
    bool in_memory = true;
    uint32_t offset = 0;  // in the frame's local memory
    uint32_t bytes = 0;
    Source source;  // register (or constant) of an argument
    Dest dest;      // register of a formal parameter, or of a result
};

struct Call {
    bool system = false;         // vprintf and the like: nothing to enter
    uint32_t callee = kNowhere;  // function index; kNowhere: address in src[0]
    std::vector<Transfer> arguments, results;
};

// What one execution of an operation costs; see exec_cost.h.
struct OpCost {
    Unit unit = Unit::kNone;
    uint8_t instructions = 0, special = 0;
    uint32_t chain_loads = 0, chain_clocks = 0;  // of the basic block that begins here
};

struct FunctionCode {
    uint32_t function = kNowhere;  // index in Module::functions
    std::vector<Op> ops;
    std::vector<OpCost> costs;                   // of each operation
    std::vector<std::vector<Dest>> dests;        // of vector loads and unpacking moves
    std::vector<std::vector<Source>> values;     // of vector stores and packing moves
    std::vector<std::vector<uint32_t>> targets;  // of brx.idx
    std::vector<Call> calls;
    std::vector<Transfer> formals,
        returns;  // where the callee finds its parameters and puts its results
    bool is_entry = false;
    uint32_t frame_bytes = 0;   // registers
    uint32_t local_bytes = 0;   // .local and .param variables per thread
    uint32_t carry = kNowhere;  // predicate slot of the condition code's carry
};

// What the operations of one opcode family must fill in: run (or scalar), flow and the fields they
// read. Sources, destinations and the guard are in place. Returns false when the form is not
// supported.
bool select_integer(const Stmt& stmt, Op& op);
bool select_float(const Stmt& stmt, Op& op);
bool select_compare(const Stmt& stmt, Op& op);
bool select_convert(const Stmt& stmt, Op& op);
bool select_warp(const Stmt& stmt, Op& op);

// Runs op.scalar lane by lane.
void run_scalar(Context& context, const Op& op, uint32_t mask);

}  // namespace ttt::ptx::exec
