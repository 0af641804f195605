#include "xform/transforms/specialise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "ptx/dataflow.h"
#include "xform/knobs.h"

namespace ttt::xform {
namespace {

using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::Stmt;
using ptx::Type;

constexpr std::array<std::string_view, 5> kPreconditions = {
    "rounding is pinned",
    "scalars: some scalar parameter kept its value over the observed launches and is read by "
    "ld.param",
    "scalars: its value reaches no approximate operation that would become one of constants",
    "ntid, nctaid: the kernel reads the register",
    "ntid, nctaid: its value reaches no approximate operation that would become one of constants",
};

// A ld.param of the entry whose value may be written into the code.
struct Cell {
    uint32_t offset = 0, bytes = 0;  // of one element
    uint32_t elements = 1;
};

// Register types that a mov of a constant can fill.
bool can_hold_constant(Type type) {
    switch (ptx::bit_size(type)) {
        case 16:
        case 32:
        case 64:
            return true;
        default:
            return false;
    }
}

Mod mov_type(Type type) {
    switch (type) {
        case Type::kF32:
            return Mod::kF32;
        case Type::kF64:
            return Mod::kF64;
        default:
            break;
    }
    switch (ptx::bit_size(type)) {
        case 16:
            return Mod::kB16;
        case 32:
            return Mod::kB32;
        default:
            return Mod::kB64;
    }
}

class Specialiser {
  public:
    Specialiser(ptx::Module& module, const Context& context)
        : module_(module),
          context_(context),
          entry_(*module.find(context.facts.entry)),
          layout_(ptx::param_layout(module, entry_)) {}

    // Offsets of the parameter cells that may become constants.
    std::set<uint32_t> cells() const {
        std::set<uint32_t> out;
        for (const Stmt& stmt : entry_.body) {
            const std::optional<Cell> cell = constant_cell(stmt);
            for (uint32_t k = 0; cell && k < cell->elements; ++k)
                out.insert(cell->offset + k * cell->bytes);
        }
        return out;
    }

    bool reads(std::string_view special) const {
        for (uint32_t f : ptx::call_closure(module_, entry_)) {
            for (const Stmt& stmt : module_.functions[f].body) {
                for (const Operand& operand : stmt.operands) {
                    if (is_special(operand, special)) return true;
                }
            }
        }
        return false;
    }

    // Cells that keep clear of approximate operations; nullopt when no choice of cells does.
    std::optional<std::set<uint32_t>> safe_cells(bool ntid, bool nctaid) const {
        std::set<uint32_t> chosen = cells();
        while (true) {
            ptx::KnownValues known{chosen, ntid, nctaid, std::nullopt, std::nullopt};
            std::set<uint32_t> bad;
            bool by_flow = false;
            for (const ptx::ApproxRisk& risk : ptx::approx_risks(module_, entry_, known)) {
                bad.insert(risk.params.begin(), risk.params.end());
                by_flow = by_flow || risk.params.empty();
            }
            if (by_flow) return std::nullopt;
            if (bad.empty()) return chosen;
            for (uint32_t b : bad) chosen.erase(b);
        }
    }

    uint32_t replace_scalars(const std::set<uint32_t>& chosen, Guard& guard) {
        uint32_t count = 0;
        std::vector<Stmt> out;
        for (Stmt& stmt : entry_.body) {
            const std::optional<Cell> cell = constant_cell(stmt);
            if (!cell || !all_chosen(*cell, chosen)) {
                out.push_back(std::move(stmt));
                continue;
            }
            for (uint32_t k = 0; k < cell->elements; ++k) out.push_back(constant(stmt, *cell, k));
            guard_cell(*cell, guard);
            ++count;
        }
        entry_.body = std::move(out);
        return count;
    }

    void replace_special(std::string_view name, const Dim3& value) {
        for (uint32_t f : ptx::call_closure(module_, entry_)) {
            std::vector<Stmt> out;
            for (Stmt& stmt : module_.functions[f].body) {
                for (Operand& operand : stmt.operands) {
                    if (is_special(operand, name)) replace_operand(f, stmt, operand, value, out);
                }
                out.push_back(std::move(stmt));
            }
            module_.functions[f].body = std::move(out);
        }
    }

  private:
    static bool is_special(const Operand& operand, std::string_view name) {
        return operand.kind == Operand::Kind::kSpecial && operand.text == name &&
               operand.component < 3;
    }

    std::optional<Cell> constant_cell(const Stmt& stmt) const {
        if (!stmt.is(Opcode::kLd) || stmt.space() != ptx::Space::kParam ||
            stmt.operands.size() != 2)
            return std::nullopt;
        const Operand& address = stmt.operands[1];
        const auto param = std::find(entry_.params.begin(), entry_.params.end(), address.sym);
        if (address.sym == ptx::kNoSym || param == entry_.params.end()) return std::nullopt;
        const auto index = static_cast<size_t>(param - entry_.params.begin());
        if (index >= context_.facts.stable.size() || !context_.facts.stable[index])
            return std::nullopt;
        Cell cell;
        cell.bytes = ptx::byte_size(stmt.last_type());
        cell.elements = stmt.operands[0].elems.empty()
                            ? 1
                            : static_cast<uint32_t>(stmt.operands[0].elems.size());
        cell.offset = layout_[index].offset + static_cast<uint32_t>(address.value);
        const uint64_t end = address.value + uint64_t{cell.bytes} * cell.elements;
        if (cell.bytes == 0 || cell.bytes > 8 || address.value > layout_[index].size ||
            end > layout_[index].size) {
            return std::nullopt;
        }
        if (layout_[index].offset + end > context_.facts.params.size()) return std::nullopt;
        return destinations_fit(stmt) && !holds_pointer(cell) ? std::optional(cell) : std::nullopt;
    }

    bool destinations_fit(const Stmt& stmt) const {
        const Operand& dest = stmt.operands[0];
        const auto fits = [&](const Operand& d) {
            return d.kind == Operand::Kind::kRegister &&
                   can_hold_constant(module_.at(d.sym).type) &&
                   ptx::bit_size(module_.at(d.sym).type) >= ptx::bit_size(stmt.last_type());
        };
        return dest.elems.empty() ? fits(dest)
                                  : std::all_of(dest.elems.begin(), dest.elems.end(), fits);
    }

    bool holds_pointer(const Cell& cell) const {
        const uint32_t end = cell.offset + cell.bytes * cell.elements;
        return std::any_of(
            context_.summary.pointers.begin(), context_.summary.pointers.end(),
            [&](const ptx::PointerUse& p) { return p.offset < end && cell.offset < p.offset + 8; });
    }

    static bool all_chosen(const Cell& cell, const std::set<uint32_t>& chosen) {
        for (uint32_t k = 0; k < cell.elements; ++k) {
            if (!chosen.contains(cell.offset + k * cell.bytes)) return false;
        }
        return true;
    }

    // The value as ld leaves it in the register: extended to the register's width.
    uint64_t loaded_bits(const Cell& cell, uint32_t k, Type type, uint32_t register_bits) const {
        uint64_t bits = 0;
        std::memcpy(&bits, context_.facts.params.data() + cell.offset + k * cell.bytes, cell.bytes);
        if (ptx::is_signed(type) && cell.bytes < 8) {
            const uint32_t shift = 64 - 8 * cell.bytes;
            bits = static_cast<uint64_t>(static_cast<int64_t>(bits << shift) >> shift);
        }
        return register_bits >= 64 ? bits : bits & ((uint64_t{1} << register_bits) - 1);
    }

    Stmt constant(const Stmt& load, const Cell& cell, uint32_t k) {
        const Operand& dest =
            load.operands[0].elems.empty() ? load.operands[0] : load.operands[0].elems[k];
        const Type type = module_.at(dest.sym).type;
        Stmt mov;
        mov.op = Opcode::kMov;
        mov.guard = load.guard;
        mov.guard_negated = load.guard_negated;
        mov.id = module_.next_id++;
        mov.offset = 0xFFFFFFFFu;
        mov.mods[mov.mod_count++] = mov_type(type);
        mov.operands = {
            dest, immediate(loaded_bits(cell, k, load.last_type(), ptx::bit_size(type)), type)};
        return mov;
    }

    Operand immediate(uint64_t bits, Type type) {
        Operand out;
        out.kind = Operand::Kind::kImmediate;
        out.value = bits;
        if (type == Type::kF32) {
            out.literal = Operand::Literal::kF32;
            out.text = module_.intern(fmt::format("0f{:08X}", bits));
        } else if (type == Type::kF64) {
            out.literal = Operand::Literal::kF64;
            out.text = module_.intern(fmt::format("0d{:016X}", bits));
        } else {
            out.text = module_.intern(fmt::format("{}", bits));
        }
        return out;
    }

    void guard_cell(const Cell& cell, Guard& guard) const {
        const std::byte* from = context_.facts.params.data() + cell.offset;
        guard.scalars.push_back({cell.offset, {from, from + cell.bytes * cell.elements}});
    }

    void replace_operand(uint32_t f, Stmt& stmt, Operand& operand, const Dim3& value,
                         std::vector<Stmt>& out) {
        const uint32_t extent[] = {value.x, value.y, value.z};
        const Operand constant_value = immediate(extent[operand.component], Type::kU32);
        if (stmt.op == Opcode::kMov) {
            operand = constant_value;
            stmt.offset = 0xFFFFFFFFu;
            return;
        }
        Stmt mov;  // not every instruction takes a constant where it takes a special register
        mov.op = Opcode::kMov;
        mov.id = module_.next_id++;
        mov.offset = 0xFFFFFFFFu;
        mov.mods[mov.mod_count++] = Mod::kU32;
        Operand dest;
        dest.kind = Operand::Kind::kRegister;
        dest.sym = module_.add_register(f, Type::kU32, "spec");
        mov.operands = {dest, constant_value};
        out.push_back(mov);
        operand = dest;
        stmt.offset = 0xFFFFFFFFu;
    }

    ptx::Module& module_;
    const Context& context_;
    ptx::Function& entry_;
    std::vector<ptx::ParamLayout> layout_;
};

Status no_constants() {
    return make_error(Code::kUnsupported, "an approximate operation may get a constant operand");
}

}  // namespace

std::string_view Specialise::name() const { return "specialise"; }
std::string_view Specialise::family() const { return "specialise"; }
std::span<const std::string_view> Specialise::preconditions() const { return kPreconditions; }

std::vector<Step> Specialise::propose(const ptx::Module& module, const Context& context,
                                      std::string* why) const {
    std::vector<Step> out;
    if (module.find(context.facts.entry) == nullptr) {
        *why = "no such entry";
        return out;
    }
    ptx::Module copy = module.clone();
    const Specialiser s(copy, context);
    Step step{std::string(name()), {}};
    const auto scalars = s.safe_cells(false, false);
    if (scalars && !scalars->empty()) {
        step.knobs["scalars"] = "";
        out.push_back(step);
    }
    for (const char* special : {"ntid", "nctaid"}) {
        Step with = step;
        with.knobs[special] = "";
        if (s.reads(special) &&
            s.safe_cells(with.knobs.contains("ntid"), with.knobs.contains("nctaid")))
            step = with;
    }
    if (!step.knobs.empty() && (out.empty() || !(out.back() == step))) out.push_back(step);
    if (out.empty()) {
        *why = !scalars ? "an approximate operation may get a constant operand"
                        : "no scalar parameter is stable and safe to fix, and no block or grid "
                          "size is read";
    }
    return out;
}

Status Specialise::apply(const Step& step, const Context& context, Applied& state) const {
    TTT_CHECK_OK(only_knobs(step, {"scalars", "ntid", "nctaid"}));
    if (step.knobs.empty())
        return make_error(Code::kInvalidArgument, "specialise needs scalars, ntid or nctaid");
    if (!state.pinned) return make_error(Code::kUnsupported, "rounding is not pinned");
    Specialiser s(state.module, context);
    const bool ntid = has_knob(step, "ntid"), nctaid = has_knob(step, "nctaid");
    const auto chosen = s.safe_cells(ntid, nctaid);
    if (!chosen) return no_constants();
    Guard guard;
    if (has_knob(step, "scalars")) {
        if (chosen->empty())
            return make_error(Code::kUnsupported, "no scalar parameter is stable and safe to fix");
        const uint32_t count = s.replace_scalars(*chosen, guard);
        state.notes.push_back(fmt::format("specialise: {} parameter loads are constants", count));
    }
    if (ntid) {
        if (!s.reads("ntid"))
            return make_error(Code::kUnsupported, "the kernel does not read %ntid");
        s.replace_special("ntid", context.facts.block);
        guard.block = context.facts.block;
    }
    if (nctaid) {
        if (!s.reads("nctaid"))
            return make_error(Code::kUnsupported, "the kernel does not read %nctaid");
        s.replace_special("nctaid", context.facts.grid);
        guard.grid = context.facts.grid;
    }
    state.guard.merge(guard);
    return ok_status();
}

}  // namespace ttt::xform
