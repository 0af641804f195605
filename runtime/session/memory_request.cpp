#include "session/memory_request.h"

#include <chrono>

#include "session/driver_section.h"

namespace ttt::session {

bool give_memory_back(Shared& s) {
    MemoryRequest& m = s.memory;
    if (m.holding.load() == 0 || s.leaving.load() != 0) return false;
    const uint32_t mine = m.asked.fetch_add(1) + 1;
    const auto served = [&] { return static_cast<int32_t>(m.served.load() - mine) >= 0; };
    wait_until_unused([&] { return !served() && s.leaving.load() == 0; }, std::chrono::seconds(2));
    return served();
}

}  // namespace ttt::session
