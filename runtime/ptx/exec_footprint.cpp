#include "ptx/exec_footprint.h"

#include <algorithm>
#include <bit>

namespace ttt::ptx::exec {
namespace {

// Appends the runs of set bits of one page to `out`, joining a run that touches the last one.
void append_runs(uint64_t base, const uint64_t* words, size_t count,
                 std::vector<Footprint::Range>& out) {
    for (size_t w = 0; w < count; ++w) {
        uint64_t word = words[w];
        const uint64_t start = base + w * 64;
        while (word != 0) {
            const auto first = static_cast<uint32_t>(std::countr_zero(word));
            const auto length = static_cast<uint32_t>(std::countr_one(word >> first));
            const uint64_t begin = start + first, end = begin + length;
            if (!out.empty() && out.back().end == begin)
                out.back().end = end;
            else
                out.push_back({begin, end});
            if (first + length >= 64) break;
            word &= ~uint64_t{0} << (first + length);
        }
    }
}

}  // namespace

void TouchedBytes::select(uint64_t page) {
    auto& recent = recent_[page % kRecent];
    if (recent.first != page || recent.second == nullptr) {
        auto& slot = pages_[page];
        if (!slot) slot = std::make_unique<Page>(Page{});
        recent = {page, slot.get()};
    }
    last_ = page;
    page_ = recent.second;
}

void TouchedBytes::add_slow(uint64_t address, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; ++i) add(address + i, 1);
}

void TouchedBytes::merge(const TouchedBytes& other) {
    for (const auto& [page, words] : other.pages_) {
        select(page);
        for (size_t i = 0; i < words->size(); ++i) (*page_)[i] |= (*words)[i];
    }
}

uint64_t TouchedBytes::count() const {
    uint64_t total = 0;
    for (const auto& entry : pages_)
        for (const uint64_t word : *entry.second)
            total += static_cast<uint64_t>(std::popcount(word));
    return total;
}

std::vector<Footprint::Range> TouchedBytes::ranges() const {
    std::vector<uint64_t> order;
    order.reserve(pages_.size());
    for (const auto& entry : pages_) order.push_back(entry.first);
    std::sort(order.begin(), order.end());
    std::vector<Footprint::Range> out;
    for (uint64_t page : order) {
        const Page& words = *pages_.at(page);
        append_runs(page * kPageBytes, words.data(), words.size(), out);
    }
    return out;
}

}  // namespace ttt::ptx::exec

namespace ttt::ptx {

bool Footprint::covers(std::span<const Range> outer, std::span<const Range> inner) {
    size_t at = 0;
    for (const Range& r : inner) {
        if (r.begin >= r.end) continue;
        uint64_t need = r.begin;
        while (need < r.end) {
            while (at < outer.size() && outer[at].end <= need) ++at;
            if (at == outer.size() || outer[at].begin > need) return false;
            need = outer[at].end;
        }
    }
    return true;
}

}  // namespace ttt::ptx
