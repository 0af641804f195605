// Stands in for libFuzzer where it is not built: RUNS SEED_DIR. Every file of the folder as it is,
// then RUNS mutations (bytes changed, pieces cut, copied or spliced from another seed), the same
// ones each time. At most 60 seconds.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Input = std::vector<uint8_t>;

class Random {
  public:
    uint64_t next() {
        x_state += 0x9E3779B97F4A7C15u;
        uint64_t x = x_state;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
        return x ^ (x >> 31);
    }
    size_t below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(next() % n); }

  private:
    uint64_t x_state = 1;
};

std::vector<Input> read_seeds(const char* folder) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<Input> out;
    for (const auto& path : paths) {
        std::ifstream file(path, std::ios::binary);
        out.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return out;
}

void mutate(Input& input, const std::vector<Input>& seeds, Random& random) {
    constexpr uint8_t kEdges[] = {0x00, 0xFF, 0x7F, 0x80, 0x01, '{', '}', '"', '%', '\n'};
    const size_t at = random.below(input.size());
    const size_t length = 1 + random.below(64);
    const auto begin = input.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(length, input.size() - at));
    switch (random.below(6)) {
        case 0:
            if (!input.empty()) input[at] = static_cast<uint8_t>(random.next());
            break;
        case 1:
            if (!input.empty()) input[at] ^= static_cast<uint8_t>(1u << random.below(8));
            break;
        case 2:
            std::fill(begin, std::min(end, begin + 8), kEdges[random.below(std::size(kEdges))]);
            break;
        case 3:
            input.erase(begin, end);
            break;
        case 4: {
            const Input piece(begin, end);
            input.insert(input.begin() + static_cast<std::ptrdiff_t>(random.below(input.size())),
                         piece.begin(), piece.end());
            break;
        }
        default: {
            const Input& other = seeds[random.below(seeds.size())];
            if (random.below(8) == 0) input.resize(at);
            const size_t from = random.below(other.size());
            for (size_t i = 0; i < length && from + i < other.size() && at + i < input.size(); ++i)
                input[at + i] = other[from + i];
            break;
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s RUNS SEED_FOLDER\n", argv[0]);
        return 2;
    }
    const auto seeds = read_seeds(argv[2]);
    if (seeds.empty()) {
        std::fprintf(stderr, "no seeds in %s\n", argv[2]);
        return 1;
    }
    const auto start = std::chrono::steady_clock::now();
    for (const Input& seed : seeds) LLVMFuzzerTestOneInput(seed.data(), seed.size());
    Random random;
    const auto runs = std::strtoull(argv[1], nullptr, 10);
    unsigned long long done = 0;
    for (; done < runs && std::chrono::steady_clock::now() - start < std::chrono::seconds(60);
         ++done) {
        Input input = seeds[random.below(seeds.size())];
        for (size_t n = 1 + random.below(8); n > 0; --n) mutate(input, seeds, random);
        LLVMFuzzerTestOneInput(input.data(), input.size());
    }
    std::printf("%zu seeds, %llu mutations\n", seeds.size(), done);
    return 0;
}
