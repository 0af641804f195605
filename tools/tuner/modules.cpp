#include "tuner/modules.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "image/image.h"
#include "ipc/channel.h"
#include "tuner/kernel_caches.h"

namespace ttt::tuner {
namespace {

constexpr size_t kMostSourceBytes = size_t{256} << 20;
constexpr size_t kImageLimit = size_t{1} << 30;

// "--maxrregcount 32" or "-maxrregcount=32" → 32; 0 when absent.
uint32_t register_option(const std::string& options) {
    const size_t at = options.find("maxrregcount");
    if (at == std::string::npos) return 0;
    const size_t digits = options.find_first_of("0123456789", at);
    if (digits == std::string::npos) return 0;
    uint32_t value = 0;
    std::from_chars(options.data() + digits, options.data() + options.size(), value);
    return value;
}

// Machine code runs on devices of its major architecture and the same or a later minor one.
const image::Entry* machine_code(const std::vector<image::Entry>& entries, uint32_t arch) {
    const image::Entry* best = nullptr;
    for (const auto& e : entries) {
        if (e.kind != image::EntryKind::kElf || e.arch / 10 != arch / 10 || e.arch > arch) continue;
        if (best == nullptr || e.arch > best->arch) best = &e;
    }
    return best;
}

void parse_ptx(ModuleCode& c, std::string text) {
    auto parsed = ptx::parse(std::move(text));
    if (parsed.ok())
        c.ptx = std::move(*parsed);
    else
        c.no_ptx = "its PTX does not parse: " + parsed.error().str();
}

void read_ptx(ModuleCode& c, const std::vector<image::Entry>& entries, uint32_t arch) {
    const image::Entry* best = image::best_ptx(entries, arch);
    if (best == nullptr) {
        c.no_ptx = "its module holds machine code only (cubin, no PTX)";
        return;
    }
    auto text = image::contents(*best);
    if (!text.ok()) {
        c.no_ptx = "its PTX cannot be read: " + text.error().str();
        return;
    }
    if (c.option_max_registers == 0) c.option_max_registers = register_option(best->options);
    parse_ptx(c, std::move(*text));
}

}  // namespace

// Machine code alone: its PTX may be known from the compiler that made it, or from that compiler's
// cache on disk.
void Modules::find_source(ModuleCode& c) const {
    if (c.cubin.empty()) return;
    if (const auto s = sources_.find(image::code_identity(c.cubin)); s != sources_.end()) {
        if (s->second->ptx.empty()) {
            c.no_ptx = "its module holds machine code only: " + s->second->origin;
            return;
        }
        c.ptx_origin = fmt::format("from {} in the program ({})", s->second->origin,
                                   s->second->options.empty() ? "no options" : s->second->options);
        if (c.option_max_registers == 0)
            c.option_max_registers = register_option(s->second->options);
        return parse_ptx(c, s->second->ptx);
    }
    if (auto cached = find_in_caches(std::as_bytes(std::span(c.cubin)), kernel_cache_folders())) {
        c.ptx_origin = "from the kernel cache, " + cached->file.string();
        parse_ptx(c, std::move(cached->ptx));
    }
}

void Modules::examine(ModuleCode& c, uint32_t arch) const {
    if (c.jit_max_registers > 0)
        c.option_max_registers = static_cast<uint32_t>(c.jit_max_registers);
    auto entries = image::entries(c.image);
    if (!entries.ok()) {
        c.no_ptx = "its module cannot be read: " + entries.error().str();
        return;
    }
    if (const image::Entry* elf = machine_code(*entries, arch)) {
        auto bytes = image::contents(*elf);
        c.has_machine_code = true;
        if (bytes.ok()) c.cubin = std::move(*bytes);
        if (c.option_max_registers == 0) c.option_max_registers = register_option(elf->options);
    }
    read_ptx(c, *entries, arch);
    if (image::best_ptx(*entries, arch) == nullptr) find_source(c);
}

namespace {

template <typename F>
void with_kernel(const std::string& cubin, const std::string& entry, F f) {
    if (cubin.empty()) return;
    auto code = image::read_cubin(std::as_bytes(std::span(cubin)));
    if (!code.ok()) return;
    for (const auto& k : code->kernels)
        if (k.name == entry) f(k);
}

}  // namespace

std::optional<xform::Context::FusedCounts> ModuleCode::fused_counts(
    const std::string& entry) const {
    std::optional<xform::Context::FusedCounts> out;
    with_kernel(cubin, entry, [&](const image::KernelCode& k) {
        out = xform::Context::FusedCounts{k.ffma, k.fmul, k.fadd, k.dfma, k.dmul, k.dadd};
    });
    return out;
}

std::vector<std::byte> ModuleCode::text(const std::string& entry) const {
    std::vector<std::byte> out;
    with_kernel(cubin, entry,
                [&](const image::KernelCode& k) { out.assign(k.text.begin(), k.text.end()); });
    return out;
}

Status Modules::add(uint64_t id, const Fd& image, uint64_t size, int max_registers, int opt_level,
                    std::string options) {
    if (!image.valid()) return make_error(Code::kProtocol, "module without a descriptor");
    TTT_TRY(std::vector<std::byte> bytes, ipc::read_memfd(image.get(), kImageLimit));
    if (bytes.size() != size || size == 0)
        return make_error(Code::kProtocol, "module size differs from its descriptor's");
    auto code = std::make_shared<ModuleCode>();
    code->image = std::move(bytes);
    code->jit_max_registers = max_registers;
    code->jit_opt_level = opt_level;
    code->jit_options = std::move(options);
    codes_[id] = std::move(code);
    examined_[id] = false;
    return ok_status();
}

Status Modules::add_source(std::span<const uint64_t> codes, const Fd& text, uint64_t size,
                           std::string origin, std::string options) {
    std::vector<std::byte> bytes;
    if (size != 0) {
        if (!text.valid()) return make_error(Code::kProtocol, "PTX source without a descriptor");
        TTT_TRY(bytes, ipc::read_memfd(text.get(), kImageLimit));
    }
    if (bytes.size() != size)
        return make_error(Code::kProtocol, "PTX source size differs from its descriptor's");
    const auto source = std::make_shared<const Source>(
        Source{std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
               std::move(origin), std::move(options)});
    for (const uint64_t code : codes) sources_[code] = source;
    source_bytes_ += source->ptx.size();
    told_.emplace_back(codes.begin(), codes.end());
    while (source_bytes_ > kMostSourceBytes && told_.size() > 1) forget_oldest();
    return ok_status();
}

void Modules::forget_oldest() {
    for (const uint64_t code : told_.front()) {
        const auto it = sources_.find(code);
        if (it == sources_.end()) continue;
        if (it->second.use_count() == 1) source_bytes_ -= it->second->ptx.size();
        sources_.erase(it);
    }
    told_.pop_front();
}

void Modules::remove(uint64_t id) {
    codes_.erase(id);
    examined_.erase(id);
}

std::shared_ptr<const ModuleCode> Modules::code(uint64_t id, uint32_t arch) {
    auto it = codes_.find(id);
    if (it == codes_.end()) return nullptr;
    if (!examined_[id]) examine(*it->second, arch);
    examined_[id] = true;
    return it->second;
}

}  // namespace ttt::tuner
