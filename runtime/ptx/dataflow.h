// Where values come from: data flow from parameters, module variables and memory to every register
// of an entry and of the functions it calls. Flow-insensitive over virtual registers (their
// definitions are joined), hence sound whatever the control flow. Const and thread-safe once built.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/dim3.h"
#include "ptx/ir.h"

namespace ttt::ptx {

// Replay places every buffer at an address that is the same modulo this many bytes.
inline constexpr uint64_t kKeptAlignment = 256;
// What device code calls when assert() fails: prints and ends the launch with an error, writes no
// memory of ours.
inline constexpr std::string_view kFailedAssertion = "__assertfail";

// The entry's function index followed by those it can reach through direct calls.
std::vector<uint32_t> call_closure(const Module& module, const Function& entry);

// Registers an instruction writes / reads, in operand order (elements of vectors, pairs and tuples;
// address bases and the guard count as read; wgmma's accumulators count as both). Symbols that are
// no registers are left out.
void written_registers(const Stmt& stmt, std::vector<Sym>& out);
void read_registers(const Module& module, const Stmt& stmt, std::vector<Sym>& out);

bool is_rounded(const Stmt& stmt);          // carries .rn/.rz/.rm/.rp …
bool is_unrounded_float(const Stmt& stmt);  // mul, add, sub, mad on a float type without one
bool is_approximate(const Stmt& stmt);      // .approx or .full

struct Source {  // something a value can be derived from
    enum class Kind : uint8_t {
        kParam,     // bytes [offset, offset+size) of the parameter buffer
        kVariable,  // address of a module variable in .global or .const
        kShared,
        kLocal,
        kParamAddress,  // an address in that space
        kMemory,        // a value loaded from global or constant memory
        kUnknown,
    };
    Kind kind = Kind::kUnknown;
    uint32_t param = 0, offset = 0, size = 0;  // kParam
    Sym sym = kNoSym;                          // kVariable
};

using SourceSet = std::set<uint32_t>;  // indices into ValueFlow::sources()

struct Value {
    SourceSet bases;  // added into the value with factor one: it may be an address in them
    SourceSet taint;  // reached it in another way
    bool defined = false;
    bool no_base = false;       // some definition has no base
    bool alternatives = false;  // joined from definitions with different bases
    bool moved = false;         // something was added to a base
    friend bool operator==(const Value&, const Value&) = default;
};

struct Access {  // one memory operand in global, const or generic space
    uint32_t function = 0, stmt = 0;
    SourceSet bases;  // what its address is based on; never empty (kUnknown)
    bool read = false, written = false, atomic = false, noncoherent = false;
    uint32_t bytes = 0;
};

// How operand k of `stmt` is accessed; false when that cannot be global or constant memory.
bool classify_access(const Stmt& stmt, size_t k, Access& access);

class ValueFlow {
  public:
    ValueFlow(const Module& module, const Function& entry);
    const std::vector<Source>& sources() const { return sources_; }
    const Value& value(Sym sym) const { return values_[sym]; }
    const std::vector<Access>& accesses() const { return accesses_; }
    const SourceSet& leaked() const { return leaked_; }  // used in other ways than as an address
    const SourceSet& used_as_value() const { return used_; }  // any use but as an address
    const std::vector<uint32_t>& functions() const { return functions_; }
    // Sources that are certainly pointers: converted by cvta, declared .ptr, or the only base of an
    // access.
    const SourceSet& certain() const { return certain_; }

  private:
    friend class FlowBuilder;
    std::vector<Source> sources_;
    std::vector<Value> values_;
    std::vector<Access> accesses_;
    SourceSet leaked_, used_, certain_;
    std::vector<uint32_t> functions_;
};

// What is assumed to be known at compile time when asking which operands may become constants.
struct KnownValues {
    std::set<uint32_t>
        params;  // offsets in the parameter buffer at which ld.param gives a constant
    bool ntid = false, nctaid = false;
    std::optional<Dim3> block;  // tells the assembler the ranges of %tid
    std::optional<Dim3> grid;   // tells a transform the ranges of %ctaid
};

struct ApproxRisk {  // an approximate operation that may get a constant operand
    uint32_t function, stmt;
    std::set<uint32_t>
        params;  // offsets of the known parameters it is made of; empty: by control flow only
};
// Approximate operations some operand of which may be folded to a constant under `known` though it
// is no constant in the module as it stands (rules: the assembler folds them to other bits than the
// hardware gives).
std::vector<ApproxRisk> approx_risks(const Module& module, const Function& entry,
                                     const KnownValues& known);

}  // namespace ttt::ptx
