#include "measure/snapshot.h"

#include <cstring>

namespace ttt::measure {

std::vector<std::byte> relocate(const Launch& launch, const std::vector<Region>& regions,
                                const std::vector<uint64_t>& new_base) {
    std::vector<std::byte> params = launch.params;
    for (size_t i = 0; i < regions.size() && i < new_base.size(); ++i) {
        for (uint32_t offset : regions[i].pointers) {
            if (params.size() < sizeof(uint64_t) || offset > params.size() - sizeof(uint64_t)) {
                continue;  // a pointer outside the buffer was never one of the launch's
            }
            // Read from the launch, not from `params`: two regions that name the same offset must
            // not move it twice.
            uint64_t value = 0;
            std::memcpy(&value, launch.params.data() + offset, sizeof value);
            value += new_base[i] - regions[i].address;
            std::memcpy(params.data() + offset, &value, sizeof value);
        }
    }
    return params;
}

}  // namespace ttt::measure
