// Kernel parameters as a launch passes them: an array of pointers, or one packed buffer (`extra`).
// Reads only memory that the driver itself would read for the same launch. Any thread, no
// allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ttt::session {

struct ParamSpan {
    uint32_t offset = 0, size = 0;
    friend bool operator==(const ParamSpan&, const ParamSpan&) = default;
};

struct ParamLayout {
    std::vector<ParamSpan> params;
    bool known =
        false;  // false: neither the driver nor the image told; parameters must not be touched
    uint32_t bytes() const {
        return params.empty() ? 0 : params.back().offset + params.back().size;
    }
};

// A field of the parameter buffer, located once so that a launch needs no search.
struct ParamField {
    uint32_t param = 0;   // index of the parameter that holds it
    uint32_t within = 0;  // byte inside that parameter
    uint32_t offset = 0;  // byte in the packed buffer
    uint32_t size = 0;
};
// False if [offset, offset + size) does not lie inside one parameter.
bool locate(const ParamLayout& layout, uint32_t offset, uint32_t size, ParamField* field);

class ParamView {
  public:
    // As passed to cuLaunchKernel. ok() is false when there is neither form, or `extra` is not
    // understood.
    ParamView(const ParamLayout& layout, void* const* params, void* const* extra);
    bool ok() const { return ok_; }
    // Precondition: ok(). Null if the program's packed buffer is shorter than the field needs.
    const std::byte* at(const ParamField& f) const {
        if (params_ != nullptr) return static_cast<const std::byte*>(params_[f.param]) + f.within;
        return uint64_t{f.offset} + f.size <= buffer_bytes_ ? buffer_ + f.offset : nullptr;
    }
    // Packs everything into `out` (padding zero). Returns false if it does not fit or the buffer is
    // too short.
    bool pack(std::span<std::byte> out) const;

  private:
    const ParamLayout& layout_;
    void* const* params_ = nullptr;
    const std::byte* buffer_ = nullptr;
    size_t buffer_bytes_ = 0;
    bool ok_ = false;
};

}  // namespace ttt::session
