#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "ptx/exec_loaded.h"
#include "ptx/exec_state.h"

namespace ttt::ptx::exec {
namespace {

constexpr uint64_t kGap = 256;  // between variables, so that running off one is noticed

bool has_storage(const Symbol& s, const Variable& v) {
    return (s.space == Space::kGlobal || s.space == Space::kConst) && v.linkage != "extern";
}

uint64_t bytes_of(const Symbol& s, const Variable& v) {
    return std::max(s.bytes(), uint64_t{byte_size(s.type)} * v.init.size());
}

}  // namespace

PlacedModule::~PlacedModule() {
    for (const Global& g : globals_) space_.remove(g.address);
}

Status PlacedModule::place(uint64_t base) {
    address_.assign(module_.symbols.size(), 0);
    index_functions();
    uint64_t next = base;
    std::vector<const Variable*> placed;
    for (const Variable& v : module_.variables) {
        const Symbol& s = module_.at(v.sym);
        const uint64_t bytes = bytes_of(s, v);
        if (!has_storage(s, v) || bytes == 0) continue;
        const uint64_t align = std::max<uint64_t>(kGap, s.align);
        next = (next + align - 1) / align * align;
        address_[v.sym] = next;
        placed.push_back(&v);
        next += bytes + kGap;
    }
    storage_.resize(next - base + 2 * kGap);
    // Host bytes have the alignment of their device addresses.
    const auto start = reinterpret_cast<uintptr_t>(storage_.data());
    std::byte* host = storage_.data() + ((base - start) % kGap + kGap) % kGap;
    for (const Variable* v : placed) {
        const Symbol& s = module_.at(v->sym);
        const uint64_t address = address_[v->sym], bytes = bytes_of(s, *v);
        const bool constant = s.space == Space::kConst;
        TTT_CHECK_OK(space_.add({address, bytes, host + (address - base), true, !constant}));
        globals_.push_back({s.name, address, bytes, constant});
        TTT_CHECK_OK(initialise(*v, host + (address - base)));
    }
    return ok_status();
}

void PlacedModule::index_functions() {
    function_.assign(module_.symbols.size(), kNoSym);
    std::unordered_map<std::string_view, uint32_t> with_body;
    for (uint32_t i = 0; i < module_.functions.size(); ++i)
        if (module_.functions[i].has_body) with_body[module_.functions[i].name] = i;
    for (Sym sym = 0; sym < module_.symbols.size(); ++sym) {
        if (module_.at(sym).kind != Symbol::Kind::kFunction) continue;
        const auto it = with_body.find(module_.at(sym).name);
        if (it != with_body.end()) function_[sym] = it->second;
    }
}

Result<uint64_t> PlacedModule::init_value(const Init& init) const {
    if (init.sym == kNoSym) return init.value;
    uint64_t value = 0;
    if (module_.at(init.sym).kind == Symbol::Kind::kFunction)
        value = function_[init.sym] == kNoSym
                    ? 0
                    : kFunctionAddresses + 16 * uint64_t{function_[init.sym]};
    else
        value = address_[init.sym];
    if (value == 0)
        return make_error(ttt::Code::kUnsupported,
                          fmt::format("initialiser names {}, which has no address here",
                                      module_.at(init.sym).name));
    value += init.value;
    return init.mask_shift == 0xFF ? value : value >> (8 * init.mask_shift) & 0xFF;
}

Status PlacedModule::initialise(const Variable& v, std::byte* host) {
    const uint32_t size = byte_size(module_.at(v.sym).type);
    for (size_t i = 0; i < v.init.size(); ++i) {
        TTT_TRY(const uint64_t value, init_value(v.init[i]));
        std::memcpy(host + i * size, &value, std::min<uint32_t>(size, 8));
    }
    return ok_status();
}

}  // namespace ttt::ptx::exec

namespace ttt::ptx {

Result<std::unique_ptr<LoadedModule>> LoadedModule::load(const Module& module, AddressSpace& space,
                                                         uint64_t base) {
    auto placed = std::make_unique<exec::PlacedModule>(module, space);
    TTT_CHECK_OK(placed->place(base));
    return std::unique_ptr<LoadedModule>(std::move(placed));
}

Status set_variable(const LoadedModule& module, const AddressSpace& space, std::string_view name,
                    std::span<const std::byte> bytes) {
    for (const LoadedModule::Global& g : module.globals()) {
        if (g.name != name) continue;
        const AddressSpace::Allocation* a = space.find(g.address, g.bytes);
        if (a == nullptr) break;
        if (bytes.size() > g.bytes)
            return make_error(
                Code::kInvalidArgument,
                fmt::format("variable {} has {} bytes, not {}", name, g.bytes, bytes.size()));
        std::copy(bytes.begin(), bytes.end(), a->host + (g.address - a->base));
        return ok_status();
    }
    return make_error(Code::kNotFound, fmt::format("the module has no variable {}", name));
}

}  // namespace ttt::ptx
