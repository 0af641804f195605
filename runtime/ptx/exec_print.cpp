// printf and assert from device code.
#include <cstdio>

#include "ptx/exec_decode.h"

namespace ttt::ptx::exec {
namespace {

constexpr size_t kMostOutput = 1 << 20;  // like the driver's ring: what does not fit is lost

// Host bytes of a generic address, or nullptr.
const std::byte* bytes_at(const Context& c, uint32_t lane, uint64_t address, uint64_t bytes) {
    const Launch& launch = *c.worker->launch;
    if (address - kLocalWindow < kWindowBytes) {
        const uint64_t offset = address - kLocalWindow;
        if (offset + bytes > launch.local_stride) return nullptr;
        return c.warp->local + uint64_t{lane} * launch.local_stride + offset;
    }
    if (address - kSharedWindow < kWindowBytes) {
        const uint64_t offset = address - kSharedWindow;
        return offset + bytes > c.block->shared_bytes ? nullptr : c.block->shared + offset;
    }
    const AddressSpace::Allocation* a = launch.space->find(address, bytes);
    return a == nullptr || !a->readable ? nullptr : a->host + (address - a->base);
}

std::string text_at(const Context& c, uint32_t lane, uint64_t address) {
    std::string out;
    while (out.size() < 4096) {
        const std::byte* b = bytes_at(c, lane, address + out.size(), 1);
        if (b == nullptr || *b == std::byte{0}) break;
        out += static_cast<char>(*b);
    }
    return out;
}

uint64_t argument(const Context& c, const Op& op, uint32_t lane, size_t index) {
    const Call& call = c.code->calls[op.table];
    if (index >= call.arguments.size()) return 0;
    const Transfer& t = call.arguments[index];
    if (!t.in_memory) return c.lane(t.source, lane);
    uint64_t bits = 0;
    const uint64_t at =
        uint64_t{lane} * c.worker->launch->local_stride + c.frame->local_base + t.offset;
    std::memcpy(&bits, c.warp->local + at, std::min(t.bytes, 8u));
    return bits;
}

void set_result(const Context& c, const Op& op, uint32_t lane, uint32_t value) {
    const Call& call = c.code->calls[op.table];
    if (call.results.empty()) return;
    const Transfer& t = call.results[0];
    if (!t.in_memory) return c.set_lane(t.dest, lane, value);
    const uint64_t at =
        uint64_t{lane} * c.worker->launch->local_stride + c.frame->local_base + t.offset;
    std::memcpy(c.warp->local + at, &value, std::min(t.bytes, 4u));
}

// The packed values behind the format's conversions, each at its natural alignment.
class Values {
  public:
    Values(const Context& c, uint32_t lane, uint64_t address)
        : c_(c), lane_(lane), address_(address) {}
    uint64_t next(uint32_t bytes) {
        offset_ = (offset_ + bytes - 1) / bytes * bytes;
        uint64_t bits = 0;
        if (const std::byte* p = bytes_at(c_, lane_, address_ + offset_, bytes))
            std::memcpy(&bits, p, bytes);
        offset_ += bytes;
        return bits;
    }

  private:
    const Context& c_;
    uint32_t lane_;
    uint64_t address_, offset_ = 0;
};

template <typename T>
std::string printed(const std::string& spec, T value) {
    char buffer[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    // `spec` is one conversion that conversion() built for exactly this type.
    const int n = std::snprintf(buffer, sizeof buffer, spec.c_str(), value);
#pragma GCC diagnostic pop
    return n > 0 ? std::string(buffer, std::min<size_t>(static_cast<size_t>(n), sizeof buffer - 1))
                 : std::string();
}

// One conversion starting behind '%' at `i`; moves `i` behind it.
std::string conversion(const Context& c, uint32_t lane, const std::string& format, size_t& i,
                       Values& values) {
    std::string spec = "%";
    bool wide = false;
    for (; i < format.size(); ++i) {
        const char ch = format[i];
        if (ch == '*') {
            spec += std::to_string(static_cast<int32_t>(static_cast<uint32_t>(values.next(4))));
        } else if (ch == 'l' || ch == 'z' || ch == 'j' || ch == 't') {
            wide = true;
        } else if (std::string_view("-+ #0.123456789").find(ch) != std::string_view::npos) {
            if (spec.size() < 32) spec += ch;
        } else if (ch != 'h') {
            break;
        }
    }
    if (i >= format.size()) return spec;
    const char kind = format[i++];
    if (kind == '%') return "%";
    if (std::string_view("fFeEgGaA").find(kind) != std::string_view::npos)
        return printed(spec + kind, std::bit_cast<double>(values.next(8)));
    if (kind == 's') {
        const std::string text = text_at(c, lane, values.next(8));
        return printed(spec + "s", text.c_str());
    }
    if (kind == 'p') return printed("%#llx", static_cast<unsigned long long>(values.next(8)));
    if (kind == 'c') return printed(spec + "c", static_cast<int>(values.next(4)));
    if (kind == 'd' || kind == 'i') {
        const uint64_t bits = values.next(wide ? 8 : 4);
        const auto value =
            wide ? static_cast<long long>(bits) : static_cast<int32_t>(static_cast<uint32_t>(bits));
        return printed(spec + "lld", static_cast<long long>(value));
    }
    if (std::string_view("uxXo").find(kind) == std::string_view::npos) return spec + kind;
    return printed(spec + "ll" + kind, static_cast<unsigned long long>(values.next(wide ? 8 : 4)));
}

}  // namespace

void run_print(Context& c, const Op& op, uint32_t mask) {
    for_lanes(mask, [&](uint32_t lane) {
        const std::string format = text_at(c, lane, argument(c, op, lane, 0));
        Values values(c, lane, argument(c, op, lane, 1));
        std::string out;
        for (size_t i = 0; i < format.size();) {
            if (format[i] != '%')
                out += format[i++];
            else
                out += conversion(c, lane, format, ++i, values);
        }
        if (c.worker->printf_output.size() + out.size() <= kMostOutput)
            c.worker->printf_output += out;
        set_result(c, op, lane, static_cast<uint32_t>(out.size()));
    });
}

void run_assert_fail(Context& c, const Op& op, uint32_t mask) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const std::string what = text_at(c, lane, argument(c, op, lane, 0));
    const std::string file = text_at(c, lane, argument(c, op, lane, 1));
    const auto line = static_cast<uint32_t>(argument(c, op, lane, 2));
    c.fault(Fault::Kind::kTrap, lane, op, 0,
            "assertion \"" + what + "\" failed (" + file + ":" + std::to_string(line) + ")");
}

}  // namespace ttt::ptx::exec
