#include "tuner/ledger.h"

#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/log.h"

namespace ttt::tuner {
namespace {

using Json = nlohmann::ordered_json;

Json extent(const Dim3& d) { return Json::array({d.x, d.y, d.z}); }
Json known(double v) { return v > 0 && std::isfinite(v) ? Json(v) : Json(nullptr); }

Json verdict_json(const VerdictRow& v) {
    return {{"recipe", v.recipe},
            {"gate", v.gate},
            {"outcome", v.outcome},
            {"evidence", v.evidence},
            {"speedup", known(v.speedup)}};
}

Json site_json(const SiteRecord& s) {
    Json verdicts = Json::array();
    for (const auto& v : s.verdicts) verdicts.push_back(verdict_json(v));
    return {{"name", s.name},
            {"grid", extent(s.grid)},
            {"block", extent(s.block)},
            {"shared", s.shared},
            {"launches", s.launches},
            {"share", s.share},
            {"eligible", s.eligible},
            {"reason", s.reason},
            {"tried", s.tried},
            {"verdicts", std::move(verdicts)},
            {"base_us", known(s.base_us)},
            {"best_us", known(s.best_us)},
            {"speedup", known(s.speedup)},
            {"bit_exact", s.bit_exact_known ? Json(s.bit_exact) : Json(nullptr)},
            {"state", s.state},
            {"recipe", s.recipe},
            {"from", s.from},
            {"notes", s.notes}};
}

Json toll_json(const ProgramStats& s) {
    const double share =
        s.requests == 0 ? 0 : static_cast<double>(s.touched) / static_cast<double>(s.requests);
    return {{"requests", s.requests}, {"touched", s.touched}, {"share", share}};
}

bool write_file(const std::string& path, const std::string& text) {
    const std::string temporary = path + ".part." + std::to_string(::getpid());
    {
        Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
        size_t done = 0;
        while (fd.valid() && done < text.size()) {
            const ssize_t n = ::write(fd.get(), text.data() + done, text.size() - done);
            if (n <= 0) break;
            done += static_cast<size_t>(n);
        }
        if (!fd.valid() || done < text.size()) {
            ::unlink(temporary.c_str());
            return false;
        }
    }
    return ::rename(temporary.c_str(), path.c_str()) == 0;
}

}  // namespace

void Ledger::set_program(const Program& program) {
    std::lock_guard lock(mutex_);
    program_ = program;
}

void Ledger::set_stats(const ProgramStats& stats) {
    std::lock_guard lock(mutex_);
    stats_ = stats;
}

void Ledger::update(uint64_t site, const std::function<void(SiteRecord&)>& change) {
    bool moved = false;
    {
        std::lock_guard lock(mutex_);
        SiteRecord& r = sites_[site];
        r.id = site;
        const std::string before = r.state;
        change(r);
        moved = r.state != before;
    }
    if (moved) write(false);
}

bool Ledger::has(uint64_t site) const {
    std::lock_guard lock(mutex_);
    return sites_.contains(site);
}

std::string Ledger::json(bool final) const {
    std::lock_guard lock(mutex_);
    Json sites = Json::array();
    for (const auto& [id, s] : sites_) sites.push_back(site_json(s));
    const Json report{{"version", 1},
                      {"final", final},
                      {"pid", program_.pid},
                      {"exe", program_.exe},
                      {"mode", program_.mode},
                      {"device", program_.device},
                      {"emulated", program_.emulated},
                      {"state", stats_.state},
                      {"launches", stats_.launches},
                      {"modules", stats_.modules},
                      {"kernels", stats_.kernels},
                      {"kernels_without_ptx", stats_.cubin_only},
                      {"toll", toll_json(stats_)},
                      {"sites", std::move(sites)}};
    // Names and paths are the program's: bytes that are no UTF-8 are replaced, not fatal.
    return report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void Ledger::write(bool final) {
    if (path_.empty()) return;
    std::lock_guard lock(writing_);
    if (!write_file(path_, json(final))) log::warn("cannot write the report {}", path_);
}

}  // namespace ttt::tuner
