#include <map>
#include <set>

#include "ptx/dataflow.h"
#include "tuner/eligibility.h"

namespace ttt::tuner {
namespace {

using ptx::Sym;

// Widths of floating-point types an instruction's operands have, by the modifiers it carries.
void note_uses(const ptx::Module& module, const ptx::Stmt& stmt,
               std::map<Sym, std::set<unsigned>>& as_float, std::set<Sym>& as_other) {
    const uint32_t flags = ptx::info(stmt.op).flags;
    if ((flags & (ptx::kFlagLoad | ptx::kFlagStore)) != 0 || stmt.is(ptx::Opcode::kMov)) return;
    std::vector<Sym> read;
    ptx::read_registers(module, stmt, read);
    // The last type is that of the sources (cvt.d.s, setp.cmp.s, fma.s).
    const ptx::Type source = stmt.last_type();
    for (Sym s : read) {
        if (ptx::is_float(source))
            as_float[s].insert(ptx::byte_size(source));
        else if (module.at(s).type != ptx::Type::kPred)
            as_other.insert(s);
    }
}

class Widths {
  public:
    Widths(const ptx::Module& module, const ptx::Function& entry)
        : module_(module), flow_(module, entry) {
        for (uint32_t f : flow_.functions())
            for (const auto& stmt : module_.functions[f].body)
                if (stmt.kind == ptx::Stmt::Kind::kInstruction)
                    note_uses(module_, stmt, as_float_, as_other_);
        for (const auto& access : flow_.accesses()) note_access(access);
    }

    // 0 unless every read through the pointers of the region is of floats of one width.
    unsigned of(const measure::Region& region) const {
        std::set<unsigned> all;
        for (uint32_t offset : region.pointers) {
            auto it = by_offset_.find(offset);
            if (it != by_offset_.end()) all.insert(it->second.begin(), it->second.end());
        }
        return all.size() == 1 ? *all.begin() : 0;
    }

  private:
    unsigned width_of(const ptx::Stmt& stmt) const {
        const ptx::Type type = stmt.last_type();
        if (ptx::is_float(type)) return ptx::byte_size(type);
        std::vector<Sym> written;
        ptx::written_registers(stmt, written);
        std::set<unsigned> widths;
        for (Sym s : written) {
            auto it = as_float_.find(s);
            if (it == as_float_.end() || as_other_.contains(s)) return 0;
            widths.insert(it->second.begin(), it->second.end());
        }
        return widths.size() == 1 && *widths.begin() == ptx::byte_size(type) ? *widths.begin() : 0;
    }

    void note_access(const ptx::Access& access) {
        if (!access.read) return;
        const unsigned width = width_of(module_.functions[access.function].body[access.stmt]);
        for (uint32_t b : access.bases) {
            const ptx::Source& s = flow_.sources()[b];
            if (s.kind == ptx::Source::Kind::kParam) by_offset_[s.offset].insert(width);
        }
    }

    const ptx::Module& module_;
    ptx::ValueFlow flow_;
    std::map<Sym, std::set<unsigned>> as_float_;
    std::set<Sym> as_other_;
    std::map<uint32_t, std::set<unsigned>> by_offset_;
};

}  // namespace

std::vector<uint8_t> float_widths(const ptx::Module& module, const ptx::Function& entry,
                                  const std::vector<measure::Region>& regions) {
    const Widths widths(module, entry);
    std::vector<uint8_t> out;
    for (const auto& r : regions) {
        const unsigned w = r.read ? widths.of(r) : 0;
        out.push_back(static_cast<uint8_t>(w == 2 || w == 4 || w == 8 ? w : 0));
    }
    return out;
}

}  // namespace ttt::tuner
