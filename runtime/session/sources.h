// PTX behind machine code that a compiler made inside the program (NVRTC, nvJitLink, the driver's
// linker). The program loads only the machine code; the tuner needs the PTX. Any thread tells, our
// thread collects; may be called before there is a session. Slow path only: compiling takes
// milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ttt::session {

struct Source {
    Source* next = nullptr;
    std::vector<uint64_t>
        codes;            // identities of the machine code made from it (image::code_identity)
    std::string ptx;      // empty: there is none at hand, and `origin` says why
    std::string origin;   // "NVRTC", …
    std::string options;  // of the compiler, as one string
};

// `ptx` was compiled to `machine_code`, with these options; empty when the compiler started from
// something else, which `origin` then says. Copies both; does nothing when the machine code is
// unreadable or when too much waits already (64 MiB).
void made_from(std::span<const std::byte> machine_code, std::string_view ptx,
               std::string_view origin, std::string_view options);

// What was told since the last call, oldest first. One caller at a time.
std::vector<Source> take_sources();

// Inputs of links that are under way, by the linker's handle: a link of exactly one PTX module is
// told as its source when the machine code is taken out, any other as one without PTX. Any thread.
class Links {
  public:
    explicit Links(std::string_view origin) : origin_(origin) {}
    void begin(const void* link, std::string options);
    void add_ptx(const void* link, std::span<const std::byte> text);
    void add_other(const void* link);  // anything whose PTX is not at hand
    void linked(const void* link, std::span<const std::byte> machine_code);
    void end(const void* link);

  private:
    struct Link {
        std::string options, ptx;
        int inputs = 0, without_ptx = 0;
    };
    const std::string_view origin_;
    std::mutex mutex_;
    std::map<const void*, Link> links_;
};

}  // namespace ttt::session
