#include "driver_table/proc_address.h"

#include <algorithm>
#include <cstring>

namespace ttt::driver_table {
namespace {

struct NameOrder {
    bool operator()(const LookupRow& row, const char* name) const {
        return std::strcmp(row.base, name) < 0;
    }
    bool operator()(const char* name, const LookupRow& row) const {
        return std::strcmp(name, row.base) < 0;
    }
};

const LookupRow* newest(std::span<const LookupRow> rows, int version, bool per_thread) {
    const LookupRow* best = nullptr;
    for (const LookupRow& row : rows) {
        if (row.per_thread != per_thread || row.since > version) continue;
        if (best == nullptr || row.since > best->since) best = &row;
    }
    return best;
}

}  // namespace

CUresult resolve(const char* name, int version, cuuint64_t flags, void** function,
                 CUdriverProcAddressQueryResult* status) {
    constexpr cuuint64_t kKnownFlags =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (version > CUDA_VERSION || (flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto all = lookup_rows();
    const auto [first, last] = std::equal_range(all.begin(), all.end(), name, NameOrder{});
    const std::span<const LookupRow> rows(first, last);
    const LookupRow* row = nullptr;
    if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0) {
        row = newest(rows, version, true);
    }
    if (row == nullptr) row = newest(rows, version, false);
    *function = row != nullptr ? row->function : nullptr;
    if (status != nullptr) {
        *status = row != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
                  : rows.empty() ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                                 : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    }
    return CUDA_SUCCESS;
}

}  // namespace ttt::driver_table
