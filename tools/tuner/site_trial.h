// The life of one hot site, from its snapshot to a published variant or a reason why not. Pipeline
// thread; blocks on the sandbox, the compiler and the program, each with a deadline.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/config.h"
#include "search/search.h"
#include "store/store.h"
#include "tuner/eligibility.h"
#include "tuner/ledger.h"
#include "tuner/program_link.h"
#include "tuner/prover.h"
#include "tuner/sandbox_link.h"

namespace ttt::tuner {

// A published variant whose live comparison is still to come.
struct PendingCanary {
    uint64_t site = 0, variant = 0;
    store::Key key;
    store::Winner winner;
    std::vector<measure::Pair> pairs;  // reported so far
    uint32_t failed = 0;
    Clock::time_point deadline;  // for a decision, from the swap on
};

struct Services {                           // no ownership
    const ipc::LeasePage* lease = nullptr;  // null: the program gave none
    const Program& program;
    const Config& config;
    ProgramLink& link;
    SandboxLink& sandbox;
    compile::Compiler* compiler = nullptr;   // of variants
    compile::Compiler* assembler = nullptr;  // for pinning; null where there is none
    store::Store* store = nullptr;
    Ledger& ledger;
    std::function<void(PendingCanary)> expect_canary;  // called before the variant is published
};

inline constexpr char kStarved[] = "the program ran out of device memory: nothing more is tried";

class SiteTrial {
  public:
    SiteTrial(const Services& services, Site site, Recorded recorded,
              std::shared_ptr<const ModuleCode> code, Eligibility eligibility,
              uint32_t most_local_bytes);
    // Ends with SiteDone sent, or with a canary expected.
    void run();

  private:
    struct End {
        std::string state, reason;
    };  // of a site without a winner
    std::optional<End> fidelity();
    std::optional<End> oracle();
    void decide_pinning();
    void remember_original();
    bool hopeless(double coarse_speedup) const;
    std::optional<End> check_assembler();
    std::optional<End> search(std::vector<xform::Recipe> recipes);
    std::optional<End> from_store();
    void prove_round(search::Agent& agent,
                     std::vector<std::pair<xform::Recipe, ProvenVariant>>* proven);
    void time_round(std::vector<std::pair<xform::Recipe, ProvenVariant>> proven);
    referee::Verdict time_one(const ProvenVariant& v, double* speedup);
    End publish();
    std::optional<End> later_launch();
    End swap_in(ProvenVariant& v, double speedup);
    void row(const xform::Recipe& recipe, const referee::Verdict& verdict, double speedup);
    void end(const End& e);
    void note(std::string text);
    store::Key key() const;
    bool out_of_time() const {
        return Clock::now() >= deadline_ || services_.link.gone() || services_.link.starved();
    }
    // Patience for the pauses of one replay, ms, once the program leaves the GPU; 0 where no lease
    // is needed, nullopt when there is none in time.
    std::optional<uint32_t> lease() const;
    ptx::LaunchFacts facts() const;
    std::optional<xform::Applied> pinned_module() const;
    const measure::Launch& launch() const { return recorded_.snapshot.launch; }

    const Services& services_;
    Site site_;
    Recorded recorded_;
    std::shared_ptr<const ModuleCode> code_;
    Eligibility eligibility_;
    ptx::LaunchFacts facts_;
    xform::Context context_;
    Baseline baseline_;
    std::unique_ptr<Prover> prover_;
    search::Board board_;
    std::optional<ProvenVariant> leader_;
    double leader_speedup_ = 0;
    uint64_t next_variant_ = 1;
    Clock::time_point deadline_;
    bool copy_defined_ = false;  // ProgramLink::define_original
    bool stored_ = false;        // the recipe under trial came from the store
};

}  // namespace ttt::tuner
