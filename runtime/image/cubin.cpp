#include <elf.h>

#include <algorithm>
#include <new>
#include <unordered_map>
#include <unordered_set>

#include "image/bytes.h"
#include "image/elf.h"
#include "image/image.h"
#include "image/layout.h"
#include "image/sass.h"

namespace ttt::image {
namespace {

constexpr std::string_view kText = ".text.";

// Attributes of .nv.info and .nv.info.<kernel>.
enum Attribute : uint8_t {
    kMaxThreads = 0x05,
    kParamCbank = 0x0A,
    kFrameSize = 0x11,
    kMinStackSize = 0x12,
    kParamInfo = 0x17,
    kParamBytes = 0x19,
    kMaxStackSize = 0x23,
    kRegisters = 0x2F,
    kBarriers = 0x4C,
};
enum Format : uint8_t { kNoValue = 1, kByte = 2, kHalf = 3, kSized = 4 };

// Calls visit(attribute, immediate, bytes) for each record; false when the section is malformed.
template <typename Visit>
bool each_record(Bytes section, Visit visit) {
    uint64_t at = 0;
    while (section.size() - at >= 4) {
        const auto format = load_or_zero<uint8_t>(section, at);
        const auto attribute = load_or_zero<uint8_t>(section, at + 1);
        const auto value = load_or_zero<uint16_t>(section, at + 2);
        Bytes bytes;
        if (format == kSized && !slice(section, at + 4, value, bytes)) return false;
        if (format < kNoValue || format > kSized) return false;
        visit(attribute, format == kByte ? static_cast<uint16_t>(value & 0xFF) : value, bytes);
        at += 4 + bytes.size();
        if (format == kSized) at = std::min<uint64_t>((at + 3) / 4 * 4, section.size());
    }
    return true;
}

struct PerFunction {
    uint32_t registers = 0, local_bytes = 0;
};

// Names of functions by symbol index; empty for other symbols.
std::vector<std::string_view> function_names(const ElfFile& elf) {
    std::vector<std::string_view> names;
    for (const Section& s : elf.sections) {
        if (s.type != SHT_SYMTAB || s.link >= elf.sections.size()) continue;
        const std::string_view strings = as_text(elf.sections[s.link].data);
        names.assign(s.data.size() / sizeof(Elf64_Sym), {});
        for (size_t i = 0; i < names.size(); ++i) {
            const auto symbol = load_or_zero<Elf64_Sym>(s.data, i * sizeof(Elf64_Sym));
            if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_name >= strings.size())
                continue;
            const std::string_view rest = strings.substr(symbol.st_name);
            names[i] = rest.substr(0, rest.find('\0'));
        }
        break;
    }
    return names;
}

using FunctionTable = std::unordered_map<std::string_view, PerFunction>;

// The module-wide .nv.info: registers and stack per function.
Result<FunctionTable> read_functions(const ElfFile& elf) {
    FunctionTable table;
    const Section* info = elf.find(".nv.info");
    if (info == nullptr) return table;
    const auto names = function_names(elf);
    const bool sound = each_record(info->data, [&](uint8_t attribute, uint16_t, Bytes bytes) {
        const auto symbol = load_or_zero<uint32_t>(bytes, 0);
        const auto value = load_or_zero<uint32_t>(bytes, 4);
        if (bytes.size() < 8 || symbol >= names.size() || names[symbol].empty()) return;
        PerFunction& f = table[names[symbol]];
        if (attribute == kRegisters) f.registers = value;
        if (attribute == kFrameSize || attribute == kMinStackSize || attribute == kMaxStackSize)
            f.local_bytes = std::max(f.local_bytes, value);
    });
    if (!sound) return make_error(Code::kParse, "cubin: .nv.info is malformed");
    return table;
}

void read_max_threads(Bytes bytes, KernelCode& k) {
    uint64_t product = 1;
    for (uint64_t i = 0; i < 3; ++i)
        product *= std::clamp<uint32_t>(load_or_zero<uint32_t>(bytes, i * 4), 1, 1u << 16);
    k.max_threads = static_cast<uint32_t>(std::min<uint64_t>(product, 0xFFFFFFFFu));
}

Status read_kernel_info(Bytes section, KernelCode& k) {
    struct Param {
        uint16_t ordinal;
        uint32_t offset, size;
    };
    std::vector<Param> params;
    const bool sound = each_record(section, [&](uint8_t attribute, uint16_t value, Bytes bytes) {
        switch (attribute) {
            case kParamInfo:
                if (bytes.size() >= 12)
                    params.push_back({load_or_zero<uint16_t>(bytes, 4),
                                      load_or_zero<uint16_t>(bytes, 6),
                                      load_or_zero<uint32_t>(bytes, 8) >> 18});
                break;
            case kParamBytes:
                k.param_bytes = value;
                break;
            case kMaxThreads:
                read_max_threads(bytes, k);
                break;
            case kBarriers:
                k.barriers = value;
                break;
            default:
                break;
        }
    });
    if (!sound)
        return make_error(Code::kParse, "cubin: .nv.info of kernel " + k.name + " is malformed");
    std::sort(params.begin(), params.end(),
              [](const Param& a, const Param& b) { return a.ordinal < b.ordinal; });
    for (const Param& p : params) k.params.emplace_back(p.offset, p.size);
    return ok_status();
}

// From sm_90 on the section begins with the 1 KiB that the system keeps in every block's shared
// memory; the kernel's own share, as the assembler and cuFuncGetAttribute state it, is the rest.
uint32_t own_shared(uint64_t section_bytes, uint32_t arch) {
    constexpr uint64_t kReserved = 1024;
    if (arch >= 90 && section_bytes >= kReserved) section_bytes -= kReserved;
    return static_cast<uint32_t>(std::min<uint64_t>(section_bytes, 0xFFFFFFFFu));
}

Result<KernelCode> read_kernel(const Section& text, const FunctionTable& functions,
                               const std::unordered_map<std::string_view, const Section*>& sections,
                               uint32_t arch) {
    KernelCode k;
    const std::string_view name = text.name.substr(kText.size());
    k.name = std::string(name);
    k.text = text.data;
    const auto section = [&](const char* prefix) {
        const auto found = sections.find(std::string(prefix) + k.name);
        return found == sections.end() ? nullptr : found->second;
    };
    if (const auto found = functions.find(name); found != functions.end()) {
        k.registers = found->second.registers;
        k.local_bytes = found->second.local_bytes;
    }
    // Before CUDA 13, and in machine code that did not come from ptxas, the section header has the
    // counts.
    if (k.registers == 0) k.registers = text.info >> 24;
    k.barriers = static_cast<uint32_t>(text.flags >> 20) & 0x7F;
    if (const Section* s = section(".nv.shared.")) k.shared_bytes = own_shared(s->size, arch);
    if (const Section* s = section(".nv.info.")) TTT_CHECK_OK(read_kernel_info(s->data, k));
    count_instructions(text.data, arch, k);
    return k;
}

void add_counts(const KernelCode& from, KernelCode& to) {
    to.ffma += from.ffma;
    to.fmul += from.fmul;
    to.fadd += from.fadd;
    to.dfma += from.dfma;
    to.dmul += from.dmul;
    to.dadd += from.dadd;
    to.hfma += from.hfma;
    to.mufu += from.mufu;
    to.bar += from.bar;
    to.instructions += from.instructions;
}

// .nv.callgraph: pairs of symbol indices, caller and callee; negative callees are markers.
std::unordered_multimap<std::string_view, std::string_view> read_calls(const ElfFile& elf) {
    std::unordered_multimap<std::string_view, std::string_view> calls;
    const Section* graph = elf.find(".nv.callgraph");
    if (graph == nullptr) return calls;
    const auto names = function_names(elf);
    for (uint64_t at = 0; at + 8 <= graph->data.size(); at += 8) {
        const auto caller = load_or_zero<uint32_t>(graph->data, at);
        const auto callee = load_or_zero<uint32_t>(graph->data, at + 4);
        if (caller < names.size() && callee < names.size() && !names[callee].empty())
            calls.emplace(names[caller], names[callee]);
    }
    return calls;
}

// The linker keeps helpers such as the slow path of a division apart, the assembler puts a copy
// into each kernel: with callees counted, both give the same numbers for the same kernel.
void add_callees(const ElfFile& elf, Cubin& cubin) {
    if (cubin.functions.empty()) return;
    const auto calls = read_calls(elf);
    std::unordered_map<std::string_view, const KernelCode*> functions;
    for (const KernelCode& f : cubin.functions) functions.emplace(f.name, &f);
    for (KernelCode& k : cubin.kernels) {
        std::vector<std::string_view> open{k.name};
        std::unordered_set<std::string_view> seen;
        while (!open.empty()) {
            const auto [first, last] = calls.equal_range(open.back());
            open.pop_back();
            for (auto it = first; it != last; ++it) {
                const auto found = functions.find(it->second);
                if (found == functions.end() || !seen.insert(it->second).second) continue;
                add_counts(*found->second, k);
                k.calls.push_back(found->second->name);
                open.push_back(it->second);
            }
        }
    }
}

Result<Cubin> read(Bytes bytes) {
    TTT_TRY(const ElfFile elf, read_elf(bytes));
    if (elf.machine != kMachineCuda)
        return make_error(Code::kUnsupported, "ELF image: not CUDA machine code");
    Cubin out;
    out.abi = elf.abi_version;
    out.arch = cubin_arch(elf.machine, elf.abi_version, elf.flags);
    TTT_TRY(const FunctionTable functions, read_functions(elf));
    std::unordered_map<std::string_view, const Section*> sections;
    for (const Section& s : elf.sections) sections.emplace(s.name, &s);
    for (const Section& s : elf.sections) {
        if (s.type != SHT_PROGBITS || s.name.substr(0, kText.size()) != kText) continue;
        // Only a kernel has a constant bank for parameters; the rest are device functions that were
        // not inlined.
        const std::string bank = ".nv.constant0." + std::string(s.name.substr(kText.size()));
        TTT_TRY(KernelCode code, read_kernel(s, functions, sections, out.arch));
        (sections.contains(bank) ? out.kernels : out.functions).push_back(std::move(code));
    }
    add_callees(elf, out);
    return out;
}

}  // namespace

Result<Cubin> read_cubin(std::span<const std::byte> elf) {
    try {
        return read(elf);
    } catch (const std::bad_alloc&) {
        return make_error(Code::kExhausted, "no memory to read a cubin");
    }
}

}  // namespace ttt::image
