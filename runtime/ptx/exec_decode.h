// Statements of one function to operations. Internal to the interpreter.
#pragma once

#include <map>
#include <unordered_map>

#include "ptx/cfg.h"
#include "ptx/exec_loaded.h"
#include "ptx/exec_state.h"

namespace ttt::ptx::exec {

// Decodes the entry and every function it can reach. Error (kUnsupported) names the first
// instruction that cannot be executed, with its line.
Result<std::unique_ptr<ProgramCode>> decode_program(const PlacedModule& loaded, uint32_t entry);

// What all functions of one program share while decoding.
class ProgramDecoder {
  public:
    ProgramDecoder(const PlacedModule& loaded, ProgramCode& out) : loaded_(loaded), out_(out) {}
    Status decode(uint32_t entry);

    const PlacedModule& loaded() const { return loaded_; }
    const Module& module() const { return loaded_.module(); }
    // A constant in every lane.
    Source constant(Width width, uint64_t bits);
    // Offset in shared memory; extern arrays start behind the static ones.
    uint64_t shared_offset(Sym sym) const;
    uint32_t new_cache() { return out_.caches++; }

  private:
    void discover(uint32_t entry);
    void scan(uint32_t function, std::vector<uint32_t>& work);
    void scan_operand(const Operand& operand, std::vector<uint32_t>& work);
    void reach(uint32_t function, std::vector<uint32_t>& work);
    void place_shared(Sym sym);
    void size_local_memory();
    uint32_t deepest(uint32_t code, std::vector<uint32_t>& state, bool& recursive);

    const PlacedModule& loaded_;
    ProgramCode& out_;
    std::map<std::pair<Width, uint64_t>, Source> constants_;
    std::unordered_map<Sym, uint64_t> shared_;
    bool indirect_ = false;
};

class FunctionDecoder {
  public:
    FunctionDecoder(ProgramDecoder& program, uint32_t function, FunctionCode& out);
    Status decode();

  private:
    Status place_locals();
    Status signature();
    Status statement(const Stmt& s);
    bool instruction(const Stmt& s);
    void connect(const Cfg& cfg);

    // Families; false when the form is not supported.
    bool arithmetic(const Stmt& s);
    bool select(const Stmt& s, Op& op);
    bool move(const Stmt& s);
    bool pack_move(const Stmt& s);
    bool convert_address(const Stmt& s);
    bool is_space(const Stmt& s);
    bool load(const Stmt& s);
    bool store(const Stmt& s);
    bool atomic(const Stmt& s);
    bool copy(const Stmt& s);
    bool branch(const Stmt& s);
    bool branch_indexed(const Stmt& s);
    bool call(const Stmt& s);
    bool system_call(std::string_view name, Op op);
    bool barrier(const Stmt& s);
    bool leave(const Stmt& s, Flow flow);
    bool no_operation(const Stmt& s);

    // Operands. `fail_` says why when they answer false.
    Op fresh(const Stmt& s);
    void emit(Op op) { out_.ops.push_back(std::move(op)); }
    bool source(const Operand& o, Type type, Source& out);
    bool source_any(const Operand& o, Type immediate_type, Source& out);
    bool dest(const Operand& o, Dest& out, Type sink_type);
    bool dests(const Operand& o, Type type, Op& op);
    bool address(const Operand& o, Space space, Op& op);
    bool symbol_source(Sym sym, uint64_t addend, Source& out);
    bool special(const Operand& o, const Dest& to);
    bool width_is(Width got, Type type);
    Type source_type(const Stmt& s, uint32_t k) const;
    Dest register_slot(Sym sym, uint8_t component);
    Dest scratch(Width width);
    uint32_t allocate(Width width);
    bool transfer(const Operand& o, bool result, Transfer& out);
    Error unsupported(const Stmt& s) const;

    ProgramDecoder& program_;
    const Module& module_;
    const Function& function_;
    FunctionCode& out_;
    std::unordered_map<Sym, uint32_t> slots_;   // first component of a register
    std::unordered_map<Sym, uint32_t> locals_;  // offset in local memory
    std::unordered_map<Sym, uint32_t> params_;  // entry parameters: offset in the parameter buffer
    std::vector<uint32_t> first_op_;            // per statement
    std::vector<std::pair<uint32_t, const Stmt*>> branches_;
    uint32_t predicate_chunk_ = kNowhere, predicate_left_ = 0;
    uint32_t index_ = 0;  // of the statement being decoded
    std::string fail_;
};

Width width_of(Type type);
uint32_t line_of(const Module& module,
                 const Stmt& stmt);  // 0 when the statement is not from the text

// A value in every special register form; Op::sub says which.
bool select_special(std::string_view name, uint8_t component, Op& op);
void run_print(Context& context, const Op& op, uint32_t mask);
void run_assert_fail(Context& context, const Op& op, uint32_t mask);

}  // namespace ttt::ptx::exec
