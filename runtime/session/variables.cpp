#include "session/variables.h"

#include <fmt/format.h>

namespace ttt::session {
namespace {

Result<uint64_t> checked(CUresult r, CUdeviceptr at, size_t found, const std::string& name,
                         uint64_t bytes) {
    if (r != CUDA_SUCCESS || at == 0)
        return make_error(Code::kNotFound,
                          fmt::format("the driver finds no module variable {}", name));
    if (found != bytes)
        return make_error(
            Code::kNotFound,
            fmt::format("the module variable {} has {} bytes, not {}", name, found, bytes));
    return static_cast<uint64_t>(at);
}

}  // namespace

Result<uint64_t> variable_address(const Driver& d, CUmodule module, const std::string& name,
                                  uint64_t bytes) {
    CUdeviceptr at = 0;
    size_t found = 0;
    const CUresult r = d.cuModuleGetGlobal_v2 == nullptr
                           ? CUDA_ERROR_NOT_SUPPORTED
                           : d.cuModuleGetGlobal_v2(&at, &found, module, name.c_str());
    return checked(r, at, found, name, bytes);
}

Result<uint64_t> variable_address(const Driver& d, const Module& m, const std::string& name,
                                  uint64_t bytes) {
    auto* handle = const_cast<void*>(m.handle);
    if (!m.library) return variable_address(d, static_cast<CUmodule>(handle), name, bytes);
    CUdeviceptr at = 0;
    size_t found = 0;
    const CUresult r =
        d.cuLibraryGetGlobal == nullptr
            ? CUDA_ERROR_NOT_SUPPORTED
            : d.cuLibraryGetGlobal(&at, &found, static_cast<CUlibrary>(handle), name.c_str());
    return checked(r, at, found, name, bytes);
}

Status fill_cells(const Driver& d, CUmodule variant, const std::vector<VariableCell>& cells,
                  const std::function<Result<uint64_t>(const VariableCell&)>& where,
                  CUstream stream) {
    if (cells.empty()) return ok_status();
    if (d.cuMemcpyHtoDAsync_v2 == nullptr)
        return make_error(Code::kDriver, "the driver cannot fill address cells");
    std::vector<uint64_t> values(cells.size());  // must outlive the copies
    CUresult r = CUDA_SUCCESS;
    for (size_t i = 0; i < cells.size() && r == CUDA_SUCCESS; ++i) {
        TTT_TRY(const uint64_t cell, variable_address(d, variant, cells[i].cell, sizeof(uint64_t)));
        TTT_TRY(values[i], where(cells[i]));
        r = d.cuMemcpyHtoDAsync_v2(cell, &values[i], sizeof(uint64_t), stream);
    }
    const CUresult done = d.cuStreamSynchronize(stream);
    if (r == CUDA_SUCCESS) r = done;
    if (r != CUDA_SUCCESS)
        return make_error(
            Code::kDriver,
            fmt::format("an address cell could not be filled (error {})", static_cast<int>(r)));
    return ok_status();
}

}  // namespace ttt::session
