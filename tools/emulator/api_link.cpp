// The linker, for programs that turn PTX into an image with it. Its output is the PTX itself: what
// the emulated GPU loads. Several inputs give one text after the other only if there is one input;
// linking across texts is refused.
#include <cstring>
#include <fstream>
#include <iterator>

#include "emulator/api.h"

namespace ttt::emulator::api {
namespace {

struct Link {
    std::vector<Source> sources;
    JitOptions jit;
    std::string output;
};
Handles<Link, CUlinkState>& links() {
    static auto* all = new Handles<Link, CUlinkState>;
    return *all;
}

CUresult add(Link& link, CUjitInputType type, std::string text) {
    if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY) return CUDA_ERROR_NOT_SUPPORTED;
    if (type == CU_JIT_INPUT_FATBINARY) return read_image(text.data(), &link.sources, link.jit);
    while (!text.empty() && text.back() == '\0') text.pop_back();
    TTT_EMU_TRY(parse_ptx(text, link.jit, nullptr));
    link.sources.push_back({std::move(text), 0});
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values,
                         CUlinkState* out) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    auto made = std::make_unique<Link>();
    made->jit = read_jit_options(count, options, values);
    return give(out, links().add(std::move(made)));
}
CUresult cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void* data, size_t size,
                          const char*, unsigned int, CUjit_option*, void**) {
    Link* link = links().find(handle);
    if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    return add(*link, type, std::string(static_cast<const char*>(data), size));
}
CUresult cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char* path, unsigned int,
                          CUjit_option*, void**) {
    Link* link = links().find(handle);
    if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::ifstream file(path, std::ios::binary);
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    return add(*link, type, std::string(std::istreambuf_iterator<char>(file), {}));
}
CUresult cuLinkComplete(CUlinkState handle, void** image, size_t* size) {
    Link* link = links().find(handle);
    if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (link->sources.size() != 1) {
        note("cuLinkComplete: {} inputs; the emulated linker takes one", link->sources.size());
        return link->sources.empty() ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
    }
    link->output = link->sources.front().text;
    give_if(size, link->output.size() + 1);
    return give(image, static_cast<void*>(link->output.data()));
}
CUresult cuLinkDestroy(CUlinkState handle) {
    return links().remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace ttt::emulator::api
