#include "kernel_file.h"

#include <fmt/format.h>

#include <span>

#include "image/image.h"

namespace ttt::cli {
namespace {

constexpr uint64_t kFirstAddress = 0x100000000ull;
constexpr uint64_t kMaxFile = uint64_t{2} << 30;

Result<std::string> ptx_inside(std::string bytes) {
    const std::span<const std::byte> view{reinterpret_cast<const std::byte*>(bytes.data()),
                                          bytes.size()};
    if (image::classify(view.first(std::min<size_t>(view.size(), 64))) != image::Kind::kFatbin)
        return bytes;
    TTT_TRY(const auto entries, image::entries(view));
    const image::Entry* best = image::best_ptx(entries, 90);
    if (best == nullptr) return make_error(Code::kUnsupported, "this fat binary holds no PTX");
    return image::contents(*best);
}

}  // namespace

Result<std::string> read_text_file(const std::string& path) {
    return spec::read_text(path, kMaxFile);
}

Result<ptx::Module> read_module(const std::string& path) {
    TTT_TRY(auto bytes, read_text_file(path));
    auto text = ptx_inside(std::move(bytes));
    if (!text.ok()) return std::move(text).error().with(path);
    while (!text.value().empty() && text.value().back() == '\0') text.value().pop_back();
    auto module = ptx::parse(std::move(text).value());
    if (!module.ok()) return std::move(module).error().with(path);
    return module;
}

Result<const ptx::Function*> find_entry(const ptx::Module& module, const std::string& name) {
    std::string known;
    const ptx::Function* only = nullptr;
    size_t count = 0;
    for (const auto& f : module.functions) {
        if (!f.is_entry || !f.has_body) continue;
        if (!name.empty() && f.name == name) return &f;
        known += (known.empty() ? "" : ", ") + std::string(f.name);
        only = &f;
        ++count;
    }
    if (count == 0) return make_error(Code::kNotFound, "the file holds no kernel");
    if (!name.empty())
        return make_error(Code::kNotFound,
                          fmt::format("no entry '{}' in the file; it has {}", name, known));
    if (count > 1)
        return make_error(Code::kInvalidArgument,
                          "the file has several kernels, name one: " + known);
    return only;
}

Result<ptx::LaunchFacts> facts_of(const ptx::Module& module, const ptx::Function& entry,
                                  const spec::LaunchSpec& spec,
                                  const std::vector<uint64_t>& addresses, const std::string& arch) {
    ptx::LaunchFacts facts;
    facts.entry = spec.entry;
    facts.grid = spec.grid;
    facts.block = spec.block;
    facts.dynamic_shared = spec.shared;
    TTT_TRY(facts.params, spec::pack_params(module, entry, spec, addresses));
    facts.stable.assign(entry.params.size(), true);
    facts.arch = arch;
    return facts;
}

ptx::LaunchFacts facts_without_launch(const ptx::Module& module, const ptx::Function& entry,
                                      const std::string& arch) {
    ptx::LaunchFacts facts;
    facts.entry = std::string(entry.name);
    uint64_t bytes = 0;
    for (const auto& p : ptx::param_layout(module, entry))
        bytes = std::max<uint64_t>(bytes, uint64_t{p.offset} + p.size);
    facts.params.resize(bytes);
    facts.stable.assign(entry.params.size(), false);
    facts.arch = arch;
    return facts;
}

std::vector<uint64_t> place_buffers(const spec::LaunchSpec& spec) {
    std::vector<uint64_t> addresses;
    uint64_t next = kFirstAddress;
    for (const auto& a : spec.args) {
        if (a.kind != spec::Argument::Kind::kBuffer) continue;
        addresses.push_back(next);
        next += (a.buffer_bytes + 511) / 512 * 512 + (1u << 20);
    }
    return addresses;
}

}  // namespace ttt::cli
