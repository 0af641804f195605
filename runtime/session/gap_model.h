// How long the program's pauses last, learned from those it made: a histogram on a logarithmic
// scale (four bins per doubling, 0.1 ms to some minutes), older pauses fading out. Plain
// arithmetic, one thread, no clock of its own.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

namespace ttt::session {

class GapModel {
  public:
    using Duration = std::chrono::nanoseconds;

    // A pause that has ended.
    void add(Duration gap);

    // Chance (0..1) that the program comes back within the next `work`, after it has been quiet for
    // `quiet`. nullopt: too few pauses lasted that long to say.
    std::optional<double> chance(Duration quiet, Duration work) const;
    // The longest work for which that chance stays within `limit`; nullopt as above.
    std::optional<Duration> room(Duration quiet, double limit) const;
    // Half of all idle time lies in pauses of at least this length; nullopt before enough pauses.
    std::optional<Duration> long_gap() const;

  private:
    static constexpr size_t kBins = 88;
    static size_t bin(double ns);
    static double edge(size_t bin);  // its lower end; pauses under edge(1) are in bin 0
    double lasted(double ns) const;  // pauses that lasted longer; linear within a bin
    std::array<double, kBins> counts_{};
    double total_ = 0;
};

}  // namespace ttt::session
