#include "ptx/reaching.h"

#include <algorithm>

#include "ptx/cfg.h"
#include "ptx/dataflow.h"

namespace ttt::ptx {

Reaching::Reaching(const Module& module, const Function& function) {
    std::vector<Sym> regs;
    guarded_.resize(function.body.size());
    for (uint32_t i = 0; i < function.body.size(); ++i) {
        guarded_[i] = function.body[i].guard != kNoSym;
        written_registers(function.body[i], regs);
        for (Sym r : regs) definitions_[r].push_back(i);
    }
    std::erase_if(definitions_, [](const auto& d) { return d.second.size() < 2; });
    if (!definitions_.empty()) flow(module, function);
}

void Reaching::flow(const Module& module, const Function& function) {
    const Result<Cfg> cfg = build_cfg(module, function);
    if (!cfg.ok()) {  // unknown targets: every definition may reach everywhere, which is what not
                      // tracking says
        definitions_.clear();
        return;
    }
    block_of_ = cfg->block_of;
    const size_t blocks = cfg->blocks.size();
    std::vector<Sites> generated(blocks);  // definitions that leave the block
    std::vector<std::set<Sym>> killed(blocks);
    for (const auto& [reg, sites] : definitions_) {
        for (uint32_t site : sites) {
            const BlockId b = block_of_[site];
            if (!guarded_[site]) {
                generated[b][reg].clear();
                killed[b].insert(reg);
            }
            generated[b][reg].insert(site);
        }
    }
    in_.assign(blocks, {});
    for (const Block& block : cfg->blocks) begin_.push_back(block.begin);
    std::vector<bool> queued(blocks, true);
    std::vector<BlockId> work;
    for (BlockId b = 0; b < blocks; ++b) work.push_back(static_cast<BlockId>(blocks - 1 - b));
    while (!work.empty()) {
        const BlockId b = work.back();
        work.pop_back();
        queued[b] = false;
        for (BlockId next : cfg->blocks[b].successors) {
            bool changed = false;
            const auto send = [&](Sym reg, const std::set<uint32_t>& sites) {
                std::set<uint32_t>& into = in_[next][reg];
                const size_t before = into.size();
                into.insert(sites.begin(), sites.end());
                changed = changed || into.size() != before;
            };
            for (const auto& [reg, sites] : generated[b]) send(reg, sites);
            for (const auto& [reg, sites] : in_[b]) {
                if (!killed[b].contains(reg)) send(reg, sites);
            }
            if (changed && !queued[next]) {
                queued[next] = true;
                work.push_back(next);
            }
        }
    }
}

std::set<uint32_t> Reaching::at(uint32_t at, Sym reg) const {
    std::set<uint32_t> out;
    const auto found = definitions_.find(reg);
    if (found == definitions_.end()) return out;
    const BlockId block = block_of_[at];
    // Backwards through the block: a guarded definition may or may not happen.
    const std::vector<uint32_t>& sites = found->second;
    for (auto it = std::lower_bound(sites.begin(), sites.end(), at); it != sites.begin();) {
        --it;
        if (*it < begin_[block]) break;
        out.insert(*it);
        if (!guarded_[*it]) return out;
    }
    const auto entering = in_[block].find(reg);
    if (entering != in_[block].end()) out.insert(entering->second.begin(), entering->second.end());
    return out;
}

}  // namespace ttt::ptx
