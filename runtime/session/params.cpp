#include "session/params.h"

#include <cstring>

#include "session/cuda_api.h"

namespace ttt::session {

bool locate(const ParamLayout& layout, uint32_t offset, uint32_t size, ParamField* field) {
    for (size_t i = 0; i < layout.params.size(); ++i) {
        const ParamSpan& p = layout.params[i];
        if (offset < p.offset || uint64_t{offset} + size > uint64_t{p.offset} + p.size) continue;
        *field = {static_cast<uint32_t>(i), offset - p.offset, offset, size};
        return true;
    }
    return false;
}

ParamView::ParamView(const ParamLayout& layout, void* const* params, void* const* extra)
    : layout_(layout) {
    if (!layout.known) return;
    if (params != nullptr || layout.params.empty()) {
        params_ = params;
        ok_ = true;
        return;
    }
    // The driver stops at END; a longer list than its three possible entries is not one we
    // understand.
    for (int i = 0; extra != nullptr && i < 6; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_END) break;
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer_ = static_cast<const std::byte*>(extra[i + 1]);
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1] != nullptr)
            buffer_bytes_ = *static_cast<const size_t*>(extra[i + 1]);
        else
            return;
    }
    ok_ = buffer_ != nullptr;
}

bool ParamView::pack(std::span<std::byte> out) const {
    if (!ok_ || out.size() < layout_.bytes()) return false;
    std::memset(out.data(), 0, layout_.bytes());
    for (size_t i = 0; i < layout_.params.size(); ++i) {
        const ParamSpan& p = layout_.params[i];
        const std::byte* from = at({static_cast<uint32_t>(i), 0, p.offset, p.size});
        if (from == nullptr) return false;
        std::memcpy(out.data() + p.offset, from, p.size);
    }
    return true;
}

}  // namespace ttt::session
