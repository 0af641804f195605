#include "ptx/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ptx/dataflow.h"
#include "ptx/loops.h"

namespace ttt::ptx {
namespace {

bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// Registers whose value depends on when or where the block runs. Fixed geometry keeps %laneid,
// %lanemask and %warpid (whose relation to %tid no program can observe otherwise) stable, so those
// only count as ids.
bool depends_on_time_or_place(std::string_view name) {
    return name.starts_with("clock") || name.starts_with("globaltimer") || name.starts_with("pm") ||
           one_of(name, {"smid", "gridid", "current_graph_exec"});
}

bool is_placement_id(std::string_view name) {
    return depends_on_time_or_place(name) || name.starts_with("envreg") ||
           name.starts_with("reserved_smem") || one_of(name, {"nsmid", "warpid", "nwarpid"});
}

class Summariser {
  public:
    Summariser(const Module& module, const Function& entry)
        : module_(module),
          entry_(entry),
          flow_(module, entry),
          layout_(param_layout(module, entry)) {}

    KernelSummary run() {
        if (module_.address_size != 64) refuse("addresses are 32 bits wide");
        for (uint32_t f : flow_.functions()) {
            const std::vector<Stmt>& body = module_.functions[f].body;
            for (const Stmt& stmt : body) visit(f, stmt);
            const LoopFacts loops = loop_facts(module_, module_.functions[f]);
            out_.loops += loops.loops;
            out_.spins = out_.spins || loops.spins;
            if (loops.unknown) refuse("its control flow cannot be followed");
        }
        if (out_.spins) refuse("it waits in a loop for other blocks or for the host");
        pointers();
        parameters();
        variables();
        if (out_.pointer_value_leaks)
            refuse("the value of a pointer is used as data: results depend on where buffers lie");
        return std::move(out_);
    }

  private:
    void refuse(std::string reason) {
        if (out_.ineligible_reason.empty()) out_.ineligible_reason = std::move(reason);
    }

    void visit(uint32_t f, const Stmt& stmt) {
        (void)f;
        if (stmt.kind == Stmt::Kind::kVariable && stmt.sym != kNoSym)
            declared(module_.at(stmt.sym).space);
        if (stmt.kind != Stmt::Kind::kInstruction) return;
        ++out_.instructions;
        if (stmt.op == Opcode::kOpaque) {
            out_.opaque = true;
            return refuse(fmt::format("it holds an instruction that is not understood: {}",
                                      first_line(stmt)));
        }
        flags(stmt);
        specials(stmt.operands);
        masks(f, stmt);
        if (stmt.is(Opcode::kCall)) call(stmt);
    }

    static std::string first_line(const Stmt& stmt) {
        std::string text(stmt.text.substr(0, std::min<size_t>(stmt.text.find('\n'), 60)));
        return text;
    }

    void declared(Space space) {
        out_.shared = out_.shared || space == Space::kShared;
        out_.local = out_.local || space == Space::kLocal;
    }

    void flags(const Stmt& stmt) {
        const uint32_t bits = info(stmt.op).flags;
        out_.barriers |= (bits & kFlagBarrier) != 0;
        out_.warp_ops |= (bits & kFlagWarp) != 0;
        out_.matrix |= (bits & kFlagMatrix) != 0;
        out_.fences |= (bits & kFlagFence) != 0;
        out_.atomics |= (bits & kFlagAtomic) != 0;
        out_.float_atomics |=
            (bits & kFlagAtomic) != 0 && is_float(stmt.last_type()) && !is_exchange(stmt);
        out_.volatile_access |= is_strong(stmt);
        out_.approx |= is_approximate(stmt);
        out_.float_unrounded |= is_unrounded_float(stmt);
        declared(stmt.space());
        if (bits & kFlagTexture) {
            out_.textures = true;
            refuse("it reads or writes through textures or surfaces");
        }
        exotic(stmt);
    }

    static bool is_exchange(const Stmt& stmt) {
        return stmt.has(Mod::kExch) || stmt.has(Mod::kCas);
    }

    void exotic(const Stmt& stmt) {
        switch (stmt.op) {
            case Opcode::kAlloca:
            case Opcode::kStacksave:
            case Opcode::kStackrestore:
                return refuse("it allocates stack memory at run time");
            case Opcode::kMultimem:
                return refuse("it reaches the memory of several GPUs");
            case Opcode::kTensormap:
            case Opcode::kClusterlaunchcontrol:
                return refuse(fmt::format("it uses {}", info(stmt.op).spelling));
            case Opcode::kCp:
                if (stmt.has(Mod::kBulk)) refuse("it uses bulk copies");
                return;
            case Opcode::kBrkpt:
                return refuse("it holds a breakpoint");
            case Opcode::kGriddepcontrol:
                return refuse("it runs as a dependent launch");
            default:
                return;
        }
    }

    void specials(const std::vector<Operand>& operands) {
        for (const Operand& operand : operands) {
            specials(operand.elems);
            if (operand.kind != Operand::Kind::kSpecial) continue;
            out_.special_ids |= is_placement_id(operand.text);
            if (depends_on_time_or_place(operand.text)) {
                refuse(fmt::format("it reads %{}: its result depends on when or where it runs",
                                   operand.text));
            }
        }
    }

    void masks(uint32_t f, const Stmt& stmt) {
        bool partial = stmt.op == Opcode::kActivemask || stmt.op == Opcode::kElect;
        if (stmt.op == Opcode::kVote || stmt.op == Opcode::kMatch) {
            partial = !stmt.has(Mod::kSync) || stmt.operands.empty() ||
                      !all_lanes(f, stmt.operands.back());
        }
        if (!partial) return;
        out_.partial_warp = true;
        refuse(fmt::format("it uses {} on part of a warp", info(stmt.op).spelling));
    }

    bool all_lanes(uint32_t f, const Operand& mask) const {
        if (mask.kind == Operand::Kind::kImmediate)
            return (mask.value & 0xFFFFFFFFu) == 0xFFFFFFFFu;
        if (mask.kind != Operand::Kind::kRegister) return false;
        const Operand* only = nullptr;
        std::vector<Sym> written;
        for (const Stmt& stmt : module_.functions[f].body) {
            written_registers(stmt, written);
            if (std::find(written.begin(), written.end(), mask.sym) == written.end()) continue;
            if (only != nullptr || !stmt.is(Opcode::kMov) || stmt.operands.size() < 2) return false;
            only = &stmt.operands[1];
        }
        return only != nullptr && only->kind == Operand::Kind::kImmediate &&
               (only->value & 0xFFFFFFFFu) == 0xFFFFFFFFu;
    }

    void call(const Stmt& stmt) {
        out_.calls = true;
        const Symbol* target = nullptr;
        for (const Operand& operand : stmt.operands) {
            if (operand.kind == Operand::Kind::kTuple) continue;
            if (target == nullptr && operand.kind == Operand::Kind::kSymbol &&
                operand.sym != kNoSym) {
                target = &module_.at(operand.sym);
            } else if (target == nullptr) {
                break;
            }
        }
        if (target == nullptr || target->kind != Symbol::Kind::kFunction) {
            out_.indirect_calls = true;
            return refuse("it calls a function through a pointer");
        }
        if (module_.find(target->name) != nullptr || target->name == kFailedAssertion) return;
        if (target->name.starts_with("cudaLaunch") ||
            target->name.starts_with("cudaGetParameterBuffer") ||
            target->name.starts_with("cudaCDP")) {
            out_.device_launch = true;
            return refuse("it launches kernels itself");
        }
        refuse(fmt::format("it calls {}, whose code is not in the module", target->name));
    }

    // Pointers: cells of the parameter buffer that serve as the base of an access, or certainly are
    // one.
    void pointers() {
        std::map<uint32_t, PointerUse> found;  // by offset
        std::map<uint32_t, bool> plain_read;
        for (const Access& access : flow_.accesses()) {
            for (uint32_t b : access.bases) base_of(access, flow_.sources()[b], found, plain_read);
        }
        for (uint32_t c : flow_.certain()) {
            const Source& s = flow_.sources()[c];
            if (s.kind == Source::Kind::kParam && s.size == 8) found[s.offset].offset = s.offset;
        }
        for (auto& [offset, use] : found) {
            use.noncoherent_only = use.read && !plain_read[offset];
            out_.pointers.push_back(use);
        }
        for (uint32_t l : flow_.leaked()) {
            const Source& s = flow_.sources()[l];
            if (s.kind == Source::Kind::kParam && found.contains(s.offset))
                out_.pointer_value_leaks = true;
            if (s.kind != Source::Kind::kVariable) continue;
            out_.pointer_value_leaks = true;
            refuse(fmt::format("the address of the module variable {} is used as data",
                               module_.at(s.sym).name));
        }
    }

    void base_of(const Access& access, const Source& s, std::map<uint32_t, PointerUse>& found,
                 std::map<uint32_t, bool>& plain_read) {
        switch (s.kind) {
            case Source::Kind::kParam: {
                if (s.size != 8) return refuse("an address is made of a scalar parameter");
                PointerUse& use = found[s.offset];
                use.offset = s.offset;
                use.read |= access.read;
                use.written |= access.written;
                use.atomic |= access.atomic;
                use.element_bytes = std::max(use.element_bytes, access.bytes);
                if (access.read && !access.noncoherent) plain_read[s.offset] = true;
                return;
            }
            case Source::Kind::kVariable: {
                const std::string name(module_.at(s.sym).name);
                if (access.read) add_name(out_.globals_read, name);
                if (access.written) add_name(out_.globals_written, name);
                return;
            }
            case Source::Kind::kMemory:
                out_.loaded_pointers = true;
                return;
            default:
                return refuse("an address cannot be traced to a parameter");
        }
    }

    static void add_name(std::vector<std::string>& names, const std::string& name) {
        const auto at = std::lower_bound(names.begin(), names.end(), name);
        if (at == names.end() || *at != name) names.insert(at, name);
    }

    // Every variable that is accessed counts as read: bytes that are not written must be there as
    // well.
    void variables() {
        for (const std::string& name : out_.globals_written) add_name(out_.globals_read, name);
    }

    void parameters() {
        std::set<uint32_t> scalars;
        for (size_t i = 0; i < layout_.size(); ++i) {
            ParamUse use;
            use.offset = layout_[i].offset;
            use.size = layout_[i].size;
            for (const PointerUse& p : out_.pointers) {
                use.pointer |= p.offset >= use.offset && p.offset < use.offset + use.size;
            }
            for (uint32_t s = 0; s < flow_.sources().size(); ++s) {
                const Source& source = flow_.sources()[s];
                if (source.kind != Source::Kind::kParam || source.param != i) continue;
                const bool pointer =
                    std::any_of(out_.pointers.begin(), out_.pointers.end(),
                                [&](const PointerUse& p) { return p.offset == source.offset; });
                if (pointer) continue;
                use.scalar = true;
                scalars.insert(source.offset);
            }
            out_.params.push_back(use);
        }
        mark_approximate(scalars);
    }

    void mark_approximate(const std::set<uint32_t>& scalars) {
        if (!out_.approx) return;
        KnownValues known;
        known.params = scalars;
        known.ntid = known.nctaid = true;
        for (const ApproxRisk& risk : approx_risks(module_, entry_, known)) {
            for (ParamUse& use : out_.params) {
                for (uint32_t offset : risk.params) {
                    use.reaches_approx |= offset >= use.offset && offset < use.offset + use.size;
                }
            }
        }
    }

    const Module& module_;
    const Function& entry_;
    ValueFlow flow_;
    std::vector<ParamLayout> layout_;
    KernelSummary out_;
};

}  // namespace

KernelSummary summarise(const Module& module, const Function& entry) {
    return Summariser(module, entry).run();
}

}  // namespace ttt::ptx
