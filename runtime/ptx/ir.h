// Typed IR of a PTX module. Nothing here knows CUDA headers.
//
// The IR keeps what the assembler can see (order of statements, spelling of constants, verbatim
// text of anything we do not understand), so that print(parse(text)) assembles to the same machine
// code. Names are resolved to symbol ids at parse time, nested scopes included. Ownership: a Module
// owns its text and every Name in it; it is movable, and clone() makes an independent copy for a
// transform to edit. Threads: const access is safe from several threads.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/dim3.h"
#include "base/result.h"

namespace ttt::ptx {

using Name = std::string_view;  // points into Module::source or Module::names
using Sym = uint32_t;           // index into Module::symbols
inline constexpr Sym kNoSym = 0xFFFFFFFFu;

enum class Type : uint8_t {
    kNone,
#define TTT_TYPE(e, spelling, bits, cls) e,
#include "ptx/names.def"
#undef TTT_TYPE
};
uint32_t bit_size(Type type);  // 1 for predicates, 0 for kNone
inline uint32_t byte_size(Type type) { return (bit_size(type) + 7) / 8; }
bool is_float(Type type);
bool is_signed(Type type);
std::string_view spelling(Type type);  // without the dot

enum class Space : uint8_t {
    kGeneric,
    kReg,
    kSpecial,
    kConst,
    kGlobal,
    kLocal,
    kParam,
    kShared,
    kTex
};

// Base mnemonics ("add", "ld", "setp", …) and modifiers ("rn", "ftz", "global", "f32", "v4", …) are
// interned from opcodes.def and modifiers.def. kOpaque = not in the table; the instruction is kept
// as text.
enum class Opcode : uint16_t {
    kOpaque,
#define TTT_OPCODE(e, spelling, dests, flags) e,
#include "ptx/opcodes.def"
#undef TTT_OPCODE
};
enum class Mod : uint16_t {
    kNone,
#define TTT_MODIFIER(e, spelling) e,
#include "ptx/modifiers.def"
#undef TTT_MODIFIER
};

struct OpcodeInfo {
    std::string_view spelling;
    // Leading operands written (a pair p|q counts once) where no modifier says otherwise;
    // dest_count() knows the exceptions.
    uint8_t usual_dests;
    uint32_t flags;  // kFlag… below
};
enum OpcodeFlag : uint32_t {
    kFlagBranch = 1,
    kFlagTerminator = 2,
    kFlagBarrier = 4,
    kFlagWarp = 8 /* shfl, vote, match, redux, activemask */,
    kFlagLoad = 16,
    kFlagStore = 32,
    kFlagAtomic = 64,
    kFlagCall = 128,
    kFlagTexture = 256,
    kFlagMatrix = 512,
    kFlagFence = 1024,
    kFlagFloat = 2048,
    kFlagApprox = 4096,
    kFlagAsyncCopy = 8192,
    kFlagExotic = 16384,
};
const OpcodeInfo& info(Opcode op);
struct Stmt;
// Leading operands this instruction writes; the only way to ask. 0 for calls (their first tuple)
// and opaque ones.
uint8_t dest_count(const Stmt& stmt);
std::string_view spelling(Mod mod);  // without the dot
Type type_of(Mod mod);               // kNone when the modifier is no type
Space space_of(Mod mod);             // kGeneric when the modifier is no state space

struct Operand {
    enum class Kind : uint8_t {
        kRegister,   // sym; component when a vector register's element (v.x)
        kSpecial,    // special register: text is its base name without '%' ("tid"), component 0..3
                     // for .x….w, 4 = none
        kImmediate,  // value holds the bits; text the spelling
        kSymbol,     // variable, function, parameter or label named by sym (value = addend)
        kAddress,    // [sym + value]; sym kNoSym: absolute; base may be a register or a variable
        kVector,     // {elems…}
        kTuple,      // (elems…): call arguments and results
        kPair,       // elems[0]|elems[1]
        kSink,       // _
        kText,       // anything else, kept verbatim in text
    };
    enum class Literal : uint8_t { kInt, kF32, kF64 };
    Kind kind = Kind::kText;
    Literal literal = Literal::kInt;
    bool negated = false;   // !p
    uint8_t component = 4;  // 0..3 = .x .y .z .w
    Sym sym = kNoSym;
    uint64_t value = 0;  // two's complement integer, IEEE bits, or address offset
    Name text;
    std::vector<Operand> elems;
};

struct Stmt {
    enum class Kind : uint8_t {
        kInstruction,
        kLabel,       // sym
        kRegisters,   // .reg declaration: text verbatim, e.g. ".reg .b32 %r<5>;"
        kVariable,    // .shared/.local/.const/.global/.param declaration inside a body: sym (first
                      // declared), text verbatim
        kScopeBegin,  // {
        kScopeEnd,    // }
        kDirective,   // .loc .pragma .branchtargets … : text verbatim
    };
    Kind kind = Kind::kInstruction;
    Opcode op = Opcode::kOpaque;
    bool guard_negated = false;
    uint8_t mod_count = 0;
    Sym guard = kNoSym;  // predicate register of @p / @!p
    Sym sym = kNoSym;
    uint32_t id =
        0;  // stable within the module; unique; transforms take fresh ones from Module::next_id
    uint32_t offset =
        0;  // byte offset in Module::source; 0xFFFFFFFF for statements made by a transform
    Mod mods[12] = {};  // in source order, opcode itself excluded
    Name text;          // verbatim text for opaque instructions, declarations and directives
    std::vector<Operand> operands;

    bool has(Mod m) const {
        for (uint8_t i = 0; i < mod_count; ++i)
            if (mods[i] == m) return true;
        return false;
    }
    // The k-th modifier that is a type (cvt and setp have several); Type::kNone when there is none.
    Type type(unsigned k = 0) const;
    Type last_type() const;
    Space space() const;  // state-space modifier of ld/st/atom/cvta…; kGeneric when absent
    bool is(Opcode o) const { return kind == Kind::kInstruction && op == o; }
};

struct Symbol {
    enum class Kind : uint8_t { kRegister, kVariable, kParam, kLabel, kFunction, kOther };
    Kind kind = Kind::kOther;
    Type type = Type::kNone;
    Space space = Space::kGeneric;
    uint8_t vector = 1;         // 2 or 4 for .v2/.v4
    bool pointer_attr = false;  // parameter declared .ptr
    Space pointer_space = Space::kGeneric;
    uint32_t align = 0;     // bytes; 0 = natural
    uint64_t elements = 1;  // product of array extents; 0 = extern []
    Name name;
    uint32_t function = 0xFFFFFFFFu;  // index in Module::functions for local symbols
    uint64_t bytes() const { return uint64_t{byte_size(type)} * vector * elements; }
};

struct Directive {  // ".maxntid 256, 1, 1" before a function's body
    Name name;      // "maxntid"
    std::vector<uint32_t> values;
    Name text;  // verbatim
};

struct Function {
    bool is_entry = false;
    bool has_body = false;
    Name linkage;  // "visible", "weak", "extern", "common" or empty
    Name name;
    Sym sym = kNoSym;
    std::vector<Sym> returns;
    std::vector<Sym> params;
    std::vector<Directive> directives;
    std::vector<Stmt> body;
    std::vector<Sym>
        fresh_registers;  // made by Module::add_register; printed before the body's first statement
    Name header_text;     // verbatim from linkage to the closing parenthesis of the parameters
    uint32_t offset = 0;
};

struct Init {            // one element of a variable's initialiser
    uint64_t value = 0;  // bits, or addend when sym is set
    Sym sym = kNoSym;
    bool generic = false;       // generic(sym)
    uint8_t mask_shift = 0xFF;  // 0xFF(sym)-style byte extraction: byte index; 0xFF = none
};

struct Variable {  // module-level .global/.const/.shared/.tex … variable
    Sym sym = kNoSym;
    Name linkage;
    bool initialised = false;
    std::vector<Init> init;  // in element order; missing tail is zero
    Name text;               // verbatim declaration
};

struct Item {  // order of the module's top level
    enum class Kind : uint8_t {
        kFunction,
        kVariable,
        kText /* .file, .section {…}, unknown directives */
    };
    Kind kind = Kind::kText;
    uint32_t index = 0;  // into functions / variables
    Name text;           // verbatim for kText
};

struct Module {
    std::shared_ptr<const std::string> source;
    std::deque<std::string> names;  // names made by transforms; see intern()
    uint32_t version_major = 0, version_minor = 0;
    Name target;  // "sm_90" or "sm_90, texmode_independent, debug"
    uint32_t address_size = 64;
    bool has_address_size = true;  // the text states it
    std::vector<Symbol> symbols;
    std::vector<Function> functions;
    std::vector<Variable> variables;
    std::vector<Item> items;
    uint32_t next_id = 1;
    uint32_t opaque_count = 0;  // instructions and directives kept verbatim because unknown

    Module() = default;
    Module(Module&&) = default;
    Module& operator=(Module&&) = default;
    Module(const Module&) = delete;  // names point into owned text: use clone()
    Module clone() const;

    Name intern(std::string text);
    Sym add_symbol(Symbol symbol);
    // A fresh register of `type` for function index `f`, named %<prefix>$<n>. Its declaration is
    // printed at the top of the body and lives in Function::fresh_registers, so indices and
    // references into the body stay valid.
    Sym add_register(uint32_t f, Type type, std::string_view prefix);
    const Function* find(std::string_view name) const;  // entry or function with a body
    Function* find(std::string_view name);
    const Symbol& at(Sym sym) const { return symbols[sym]; }
};

// Byte offset, size and alignment of each parameter in the launch's parameter buffer.
struct ParamLayout {
    uint32_t offset, size, align;
};
std::vector<ParamLayout> param_layout(const Module& module, const Function& function);

struct Limits {
    uint32_t max_depth = 256;  // nested scopes and braces
    size_t max_bytes = size_t{2} << 30;
};

// Parses one module. Error: Code::kParse with line and column of the first fault. Time linear in
// the text. `text` is copied into the module only if not already shared.
Result<Module> parse(std::shared_ptr<const std::string> text, const Limits& limits = {});
Result<Module> parse(std::string text, const Limits& limits = {});

std::string print(const Module& module);
std::string print(const Module& module, const Stmt& stmt);  // one statement, no newline

// Structural rules a transform must not break (types of operands, defined labels, destinations are
// registers, declared symbols, balanced scopes). Error names function, statement id and rule.
Status verify(const Module& module);

}  // namespace ttt::ptx
