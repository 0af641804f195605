// The shim in real processes: every case runs shim-probe with and without libttt.so on the null
// driver.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace {

const std::string kRoot = TTT_BINARY_DIR;

struct Outcome {
    int code = -1;
    std::string text;
    std::map<std::string, std::string> values;
    long number(const std::string& key) const {
        auto it = values.find(key);
        return it == values.end() ? -1 : std::atol(it->second.c_str());
    }
    std::string operator[](const std::string& key) const {
        auto it = values.find(key);
        return it == values.end() ? "(absent)" : it->second;
    }
};

// No leak check in a program under libttt.so: what a launching thread may still hold when the
// program ends is given up on purpose, never freed, so every session would count as a leak.
// die_after_fork: the probe forks while our thread runs.
const std::string kSanitizerOptions =
    "TSAN_OPTIONS=die_after_fork=0 "
    "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0:abort_on_error=1 ";

std::string preload_setting() {
    const std::string runtime = TTT_SANITIZER_RUNTIME;
    return "LD_PRELOAD=" + (runtime.empty() ? "" : runtime + ":") + kRoot + "/lib/libttt.so ";
}

Outcome run(const std::string& command, const std::string& environment, bool preload = true,
            const std::string& driver = "null") {
    std::string line = "env " + kSanitizerOptions + "LD_LIBRARY_PATH=" + kRoot + "/" + driver + " ";
    if (environment.find("TTT_TUNER") == std::string::npos) line += "TTT_TUNER=/nonexistent ";
    line += environment + " ";
    if (preload) line += preload_setting();
    line += "timeout 60 " + kRoot + "/bin/" + command + " 2>&1";
    Outcome r;
    FILE* pipe = popen(line.c_str(), "r");
    std::array<char, 4096> buffer{};
    while (pipe != nullptr && std::fgets(buffer.data(), buffer.size(), pipe) != nullptr)
        r.text += buffer.data();
    const int status = pclose(pipe);
    r.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    std::istringstream lines(r.text);
    for (std::string l; std::getline(lines, l);)
        if (const size_t at = l.find('='); at != std::string::npos)
            r.values[l.substr(0, at)] = l.substr(at + 1);
    return r;
}

struct Fake {
    explicit Fake(const std::string& mode)
        : log(testing::TempDir() + "ttt_fake_" + std::to_string(getpid()) + "_" + mode) {
        std::remove(log.c_str());
        environment = "TTT_TUNER=" + kRoot + "/bin/shim-fake-tuner TTT_FAKE=" + mode +
                      " TTT_FAKE_LOG=" + log + " TTT_HOT_LAUNCHES=5 TTT_IDLE_US=1000 ";
    }
    std::string text() const {
        std::ifstream in(log);
        std::stringstream s;
        s << in.rdbuf();
        return s.str();
    }
    std::string log, environment;
};

TEST(ShimRoutes, DlsymAnswersOnlyExactHookedNames) {
    const Outcome r = run("shim-probe routes", "");
    ASSERT_EQ(r.code, 0) << r.text;
    EXPECT_EQ(r["dlsym"], "libttt.so");
    EXPECT_EQ(r["dlsym_get"], "libttt.so");
    EXPECT_EQ(r["dlsym_unhooked"], "libcuda.so.1");
    EXPECT_EQ(r["dlsym_prefix"], "null");
    EXPECT_EQ(r["dlsym_short"], "null");
    EXPECT_EQ(r["dlsym_empty"], "null");
    EXPECT_EQ(r["dlsym_c"], "null");
    EXPECT_EQ(r["other_library"], "null") << "a library without the symbol must not gain it";
    // The program comes first in the search order, we second: only seen from the program is ours
    // "next".
    EXPECT_EQ(r["next_of_caller"], "libttt.so") << "RTLD_NEXT must be seen from the caller";
}

TEST(ShimRoutes, GlobalLookupSaysWhetherADriverIsThere) {
    const Outcome r = run("shim-probe routes", "");
    EXPECT_EQ(r["default_before"], "null")
        << "no driver loaded: probing programs must not find one";
    EXPECT_EQ(r["default_after"], "libttt.so");
}

TEST(ShimRoutes, GetProcAddressSubstitutesTheVersionAskedFor) {
    const Outcome r = run("shim-probe routes", "");
    EXPECT_EQ(r["get_launch"], "libttt.so 0 0 cuLaunchKernel");
    EXPECT_EQ(r["get_launch_ptsz"], "libttt.so 0 0 cuLaunchKernel_ptsz");
    EXPECT_EQ(r["get_alloc"], "libttt.so 0 0 cuMemAlloc_v2");
    EXPECT_EQ(r["get_old_alloc"], "libcuda.so.1 0 0 cuMemAlloc");
    EXPECT_EQ(r["get_unhooked"], "libcuda.so.1 0 0 cuDeviceGetName");
    EXPECT_EQ(r["get_self"], "libttt.so 0 0 cuGetProcAddress_v2");
    EXPECT_EQ(r["get_self_is_ours"], "1");
}

TEST(ShimRoutes, OddLookupsAreTheDriversOwnAnswer) {
    const Outcome with = run("shim-probe routes", ""),
                  without = run("shim-probe routes", "", false);
    for (const char* key : {"get_empty", "get_unknown", "get_null_out"})
        EXPECT_EQ(with[key], without[key]) << key;
}

TEST(ShimRoutes, LinkedProgramsUseTheExportedSymbols) {
    const Outcome r = run("shim-probe-linked", "");
    ASSERT_EQ(r.code, 0) << r.text;
    EXPECT_EQ(r.number("failures"), 0);
    EXPECT_EQ(r.number("kernels"), 1);
    EXPECT_GE(r.number("counted"), 50) << "all forms: kernelParams, Ex, extra, cooperative";
}

TEST(ShimRoutes, SonameBuildStandsInForTheDriver) {
    const Outcome r = run("shim-probe launches 50",
                          "TTT_REAL_LIBCUDA=" + kRoot + "/null/libcuda.so.1", false, "soname");
    ASSERT_EQ(r.code, 0) << r.text;
    EXPECT_EQ(r.number("driver_launches"), 50);
    EXPECT_EQ(r.number("result"), 0);
}

TEST(ShimRoutes, ProgramsWithoutCudaAreLeftAlone) {
    const std::string line = kSanitizerOptions + preload_setting() + "/bin/true";
    EXPECT_EQ(std::system(line.c_str()), 0);
}

TEST(ShimSession, CountsSamplesAndPassesEveryLaunchOn) {
    const Outcome r = run("shim-probe launches 3000", "");
    ASSERT_EQ(r.code, 0) << r.text;
    EXPECT_EQ(r.number("result"), 0);
    EXPECT_EQ(r.number("driver_launches"), 3000);
    EXPECT_EQ(r.number("kernels"), 1);
    EXPECT_EQ(r.number("state"), 1);
    EXPECT_GE(r.number("counted"), 2999);
    EXPECT_GE(r.number("samples"), 2) << "at least one launch was timed";
}

TEST(ShimSession, ModeOffAndDisabledDoNothing) {
    const Outcome r = run("shim-probe launches 100", "TTT_MODE=off");
    EXPECT_EQ(r.number("driver_launches"), 100);
    EXPECT_EQ(r.number("samples"), 0);
    EXPECT_EQ(r.number("state"), 2);
}

TEST(ShimSession, NothingIsAllocatedInTheSteadyState) {
    if (!std::string(TTT_SANITIZER_NAME).empty())
        GTEST_SKIP() << "the sanitizer's allocator cannot be counted";
    const Outcome r = run("shim-probe steady", "");
    ASSERT_EQ(r.code, 0) << r.text;
    EXPECT_EQ(r.number("allocations"), 0);
    EXPECT_EQ(r.number("driver_launches"), 201100);
}

TEST(ShimSession, ResultsAreTheDriversOwn) {
    for (const char* fault :
         {"", "cuModuleLoadData:1=200", "cuMemAlloc:2=2", "cuLaunchKernel:7=701",
          "cuLaunchKernel:20+=700", "cuCtxCreate:1=100", "cuEventRecord:*=400", "cuEventCreate:*=2",
          "cuStreamCreate:*=2", "cuCtxGetCurrent:*=201", "cuFuncGetParamInfo:*=999",
          "cuThreadExchangeStreamCaptureMode:*=1", "cuStreamIsCapturing:*=900",
          "cuModuleUnload:1=3", "cuMemFree:1=1"}) {
        const std::string env = std::string("TTT_EMU_FAULT='") + fault + "'";
        const Outcome with = run("shim-probe results", env),
                      without = run("shim-probe results", env, false);
        EXPECT_EQ(with.text, without.text) << fault;
        EXPECT_EQ(with.code, without.code) << fault;
    }
}

TEST(ShimSession, GarbageImagesReachTheDriverUntouched) {
    const Outcome with = run("shim-probe garbage", ""),
                  without = run("shim-probe garbage", "", false);
    EXPECT_EQ(with.text, without.text);
    EXPECT_EQ(with["alive"], "1");
}

TEST(ShimSession, ForkedChildIsDisabledAndParentGoesOn) {
    const Outcome r = run("shim-probe fork", "");
    EXPECT_EQ(r.number("child"), 7) << r.text;
    EXPECT_EQ(r.number("parent_state"), 1);
    EXPECT_EQ(r.number("no_child"), 1);
}

TEST(ShimSession, CaptureIsUntouched) {
    const Outcome r = run("shim-probe capture", "TTT_EMU_FAULT='cuStreamIsCapturing:*=900'");
    ASSERT_EQ(r.code, 0) << r.text;
    EXPECT_GT(r.number("captured_launches"), 100);
    EXPECT_EQ(r.number("records"), 0);
    EXPECT_EQ(r.number("syncs"), 0);
    EXPECT_EQ(r.number("copies"), 0);
    EXPECT_GT(r.number("asked"), 0);
}

TEST(ShimSession, HandlesOfUnloadedModulesAreForgotten) {
    const Outcome r = run("shim-probe reload", "");
    ASSERT_EQ(r.code, 0) << r.text;
    EXPECT_EQ(r.number("driver_launches"), 2000);
    EXPECT_EQ(r.number("state"), 1);
}

TEST(ShimSession, ManyThreadsLoadLaunchAndUnload) {
    const Outcome r = run("shim-probe threads", "");
    ASSERT_EQ(r.code, 0) << r.text;
    EXPECT_EQ(r.number("driver_launches"), 8 * 20 * 500 + 1);
}

TEST(ShimSession, AThousandKernelsFitInSixteenMebibytes) {
    const Outcome with = run("shim-probe many 1000", ""),
                  without = run("shim-probe many 1000", "", false);
    EXPECT_EQ(with.number("kernels"), 1000) << with.text;
    ASSERT_GT(without.number("resident_kib"), 0);
    RecordProperty("added_kib",
                   static_cast<int>(with.number("resident_kib") - without.number("resident_kib")));
    if (std::string(TTT_SANITIZER_NAME).empty()) {
        EXPECT_LE(with.number("resident_kib") - without.number("resident_kib"), 16 * 1024);
    }
}

TEST(ShimTuner, ChildIsInvisible) {
    const Fake fake("observe_only");
    const Outcome r =
        run("shim-probe quiet_child", fake.environment + "CUDA_INJECTION64_PATH=/nonexistent");
    EXPECT_EQ(r.number("tuner"), 1) << r.text;
    EXPECT_EQ(r.number("sigchld"), 0);
    EXPECT_EQ(r.number("no_child"), 1);
    EXPECT_EQ(fake.text().find("leaked"), std::string::npos) << fake.text();
}

TEST(ShimTuner, WholeLifeOfASite) {
    const Fake fake("whole");
    const Outcome r = run("shim-probe serve 2500", fake.environment);
    ASSERT_EQ(r.code, 0) << r.text;
    const std::string log = fake.text();
    for (const char* step :
         {"hello protocol=3 arch=90 mode=apply", "image id=1 kind=Ptx", "read=1",
          "kernel name=k params=4", "hot grid=4 stable=1111 targets=3", "snapshot regions=3",
          "fd=1", "timing pairs=5 error=\n", "swap published=1 error=\n",
          "canary original=10 variant=10 errors=0", "released"})
        EXPECT_NE(log.find(step), std::string::npos) << step << "\n" << log;
    EXPECT_EQ(log.find("misaligned"), std::string::npos);
    EXPECT_EQ(r.number("result"), 0);
    EXPECT_EQ(r.number("variants_live"), 1) << log;
    EXPECT_GT(r.number("variant_launches"), 16);
}

TEST(ShimTuner, ShortKernelsAreTimedTogetherAlsoWhenTheyWorkInPlace) {
    const Fake fake("whole");
    const Outcome r = run("shim-probe serve 1500", fake.environment + "TTT_SLICE_US=40");
    const std::string log = fake.text();
    ASSERT_NE(log.find("timing pairs=5 error=\n"), std::string::npos) << log;
    // The null driver's kernels take 10 us: four to a slice, each on a copy of its own.
    EXPECT_GE(r.number("driver_launches") - r.number("launches"), 5 * 2 * 4) << r.text;
}

TEST(ShimTuner, ACanarysTimedLaunchesGetAHeadStart) {
    // What is launched beside the program's own: trials, and a wait before each of the canary's 20.
    const auto added = [](const char* mode) {
        const Fake fake(mode);
        const Outcome r = run("shim-probe serve 2500", fake.environment);
        EXPECT_NE(fake.text().find("canary original=10 variant=10"), std::string::npos)
            << fake.text();
        EXPECT_EQ(r.number("result"), 0);
        return r.number("driver_launches") - r.number("launches");
    };
    const auto without = added("whole"), with = added("head_start");
    EXPECT_GE(with, without + 20);
    EXPECT_LE(with, without + 40) << "only timed launches wait";
}

TEST(ShimTuner, ACanaryLateInShortBurstsIsDecidedWithinSeconds) {
    const Fake fake("whole");
    // Snapshot, timing and canary of a kernel that is the sixth launch of 40 to 50 bursts a second.
    const Outcome r = run("shim-probe bursts 9000", fake.environment);
    ASSERT_EQ(r.code, 0) << r.text;
    EXPECT_NE(fake.text().find("canary original=10 variant=10"), std::string::npos) << fake.text();
    EXPECT_GT(r.number("variant_launches"), 20) << "the canary's, and those after it: " << r.text;
}

TEST(ShimTuner, RollBackRestoresTheOriginal) {
    const Fake fake("rollback");
    const Outcome r = run("shim-probe serve 2500", fake.environment);
    EXPECT_NE(fake.text().find("canary original=1"), std::string::npos) << fake.text();
    EXPECT_EQ(r.number("variants_live"), 0);
    EXPECT_LE(r.number("variant_launches"), 20) << "only the canary's";
}

TEST(ShimTuner, GuardOutsideTheParametersIsRefused) {
    const Fake fake("bad_guard");
    const Outcome r = run("shim-probe serve 1500", fake.environment);
    EXPECT_EQ(r.number("variant_launches"), 0);
    EXPECT_NE(fake.text().find("outside the kernel's parameters"), std::string::npos)
        << fake.text();
}

TEST(ShimTuner, ModeTuneNeverSwaps) {
    const Fake fake("whole");
    const Outcome r = run("shim-probe serve 1500", fake.environment + "TTT_MODE=tune");
    EXPECT_EQ(r.number("variant_launches"), 0);
    EXPECT_NE(fake.text().find("swap published=0 error=mode is tune"), std::string::npos)
        << fake.text();
}

TEST(ShimTuner, ModeObserveTakesNoSnapshot) {
    const Fake fake("whole");
    const Outcome r = run("shim-probe serve 800", fake.environment + "TTT_MODE=observe");
    EXPECT_EQ(r.number("variant_launches"), 0);
    EXPECT_NE(fake.text().find("snapshot_failed mode is observe"), std::string::npos)
        << fake.text();
}

TEST(ShimTuner, AnyTunerFailureLeavesTheProgramAsItWas) {
    for (const char* mode : {"exit", "garbage", "silent", "kill_at_swap"}) {
        const Fake fake(mode);
        const Outcome r = run("shim-probe serve 1200", fake.environment);
        EXPECT_EQ(r.code, 0) << mode << r.text;
        EXPECT_EQ(r.number("result"), 0) << mode;
        EXPECT_NE(fake.text().find("started"), std::string::npos) << mode;
        EXPECT_EQ(r.number("variants_live"), 0) << mode;
        if (std::string(mode) != "silent") {
            EXPECT_EQ(r.number("tuner"), 0) << mode;
        }
    }
}

TEST(ShimTuner, VariantThatFailsToLaunchIsRetiredAndHidden) {
    const Fake fake("whole");
    // Whatever call of the program or ours is refused, it must be one that a variant made: the grid
    // tells.
    const Outcome r =
        run("shim-probe serve 2500", fake.environment + "TTT_EMU_FAULT='cuModuleLoadData:2=209'");
    EXPECT_EQ(r.number("result"), 0);
    EXPECT_EQ(r.number("variant_launches"), 0);
    EXPECT_NE(fake.text().find("the driver did not load the module (error 209)"), std::string::npos)
        << fake.text();
}

TEST(ShimTuner, ASecondLaunchIsRecordedInTheFirstOnesPlace) {
    const Fake fake("again");
    const Outcome r = run("shim-probe serve 2500", fake.environment);
    EXPECT_EQ(r.number("result"), 0) << r.text;
    const std::string log = fake.text();
    const size_t first = log.find("snapshot regions=3"), released = log.find("released"),
                 second = log.find("snapshot regions=3", first + 1);
    ASSERT_NE(second, std::string::npos) << log;
    EXPECT_LT(released, second) << "both at once: " << log;
    EXPECT_NE(log.find("swap published=1"), std::string::npos) << log;
    EXPECT_EQ(r.number("variants_live"), 1) << log;
}

// The loader's lock and ours are never held together: a library's constructor may look compilers up
// too.
TEST(ShimCompilers, LookUpsInConstructorsDoNotDeadlock) {
    const std::string library = " " + kRoot + "/race/shim-race-";
    const Outcome r = run(
        "shim-loader-race-probe 3" + library + "1.so" + library + "2.so" + library + "0.so", "");
    ASSERT_EQ(r.code, 0) << r.text;
    EXPECT_EQ(r.number("stuck"), 0);
    EXPECT_GT(r.number("reloads"), 10);
    EXPECT_GT(r.number("constructed"), 10);
}

TEST(ShimDescriptors, FilesThatTheProgramPutsOnOurNumbersAreItsOwn) {
    const Fake fake("whole");
    const Outcome r = run("shim-probe takes_numbers", fake.environment);
    ASSERT_EQ(r.code, 0) << r.text;
    EXPECT_GT(r.number("found"), 0) << "none of ours was there: " << r.text;
    EXPECT_EQ(r.number("wrong"), 0) << r.text;
    EXPECT_EQ(r.number("result"), 0);
}

TEST(ShimDescriptors, ModulesThatWaitForATunerTakeNone) {
    const Outcome r = run("shim-probe libraries 1000", "");
    ASSERT_EQ(r.code, 0) << r.text;
    EXPECT_EQ(r.number("opens_failed"), 0);
}

TEST(ShimMemory, OutOfMemoryGivesOursBackAndTriesOnceMore) {
    const Fake fake("keep");
    const Outcome r =
        run("shim-probe out_of_memory", fake.environment + "TTT_EMU_FAULT='cuMemAllocPitch:1=2'");
    ASSERT_EQ(r.code, 0) << r.text;
    EXPECT_EQ(r.number("alloc"), 0) << "the second try succeeds, and that is what the program sees";
    EXPECT_EQ(r.number("alloc_calls"), 2);
    EXPECT_EQ(r.number("launch"), 0);
    const std::string log = fake.text();
    const size_t taken = log.find("snapshot regions"), asked = log.find("free_memory"),
                 released = log.find("released");
    ASSERT_NE(taken, std::string::npos) << log;
    EXPECT_LT(taken, asked) << log;
    EXPECT_LT(asked, released) << log;
    EXPECT_NE(released, std::string::npos) << "the arena is freed: " << log;
}

TEST(ShimMemory, TheSecondResultIsTheProgramsWhateverItIs) {
    const Fake fake("keep");
    const Outcome r =
        run("shim-probe out_of_memory", fake.environment + "TTT_EMU_FAULT='cuMemAllocPitch:*=2'");
    EXPECT_EQ(r.number("alloc"), 2);
    EXPECT_EQ(r.number("alloc_calls"), 2);
}

TEST(ShimMemory, NothingOfOursMeansNoSecondTry) {
    const Fake fake("observe_only");
    const Outcome r =
        run("shim-probe out_of_memory", fake.environment + "TTT_EMU_FAULT='cuMemAllocPitch:1=2'");
    EXPECT_EQ(r.number("alloc"), 2);
    EXPECT_EQ(r.number("alloc_calls"), 1);
}

TEST(ShimMemory, OtherErrorsAreNotTriedAgain) {
    const Fake fake("keep");
    const Outcome r =
        run("shim-probe out_of_memory", fake.environment + "TTT_EMU_FAULT='cuMemAllocPitch:1=1'");
    EXPECT_EQ(r.number("alloc"), 1);
    EXPECT_EQ(r.number("alloc_calls"), 1);
}

TEST(ShimMemory, ATunerThatKeepsItsSandboxCostsAMomentOnly) {
    const Fake fake("keep_all");
    const Outcome r =
        run("shim-probe out_of_memory", fake.environment + "TTT_EMU_FAULT='cuMemAllocPitch:1=2'");
    EXPECT_EQ(r.number("alloc"), 0) << "the arena is free all the same";
    EXPECT_GE(r.number("alloc_ms"), 1000) << "it was waited for";
    EXPECT_LT(r.number("alloc_ms"), 2500);
}

// The four kinds of machine code that the probe makes: three with one PTX behind them, one linked
// from two.
TEST(ShimCompilers, PtxBehindMachineCodeIsToldToTheTuner) {
    Fake fake("observe_only");
    const std::string linked = fake.log + "_linked";
    const std::string command = std::string("shim-compilers-probe ") + TTT_CUDA_LIBRARIES + " " +
                                kRoot + "/null/libcuda.so.1";
    const std::string environment = fake.environment + " TTT_NULL_LINKED=" + linked;
    const Outcome without = run(command, environment, false, "none");
    if (without.code == 77)
        GTEST_SKIP() << "this machine has no NVRTC or nvJitLink: " << without.text;
    ASSERT_EQ(without.code, 0) << without.text;
    const Outcome r = run(command, environment, true, "none");
    ASSERT_EQ(r.code, 0) << r.text;
    EXPECT_EQ(r["code"], without["code"]);
    EXPECT_EQ(r["probe"], "null") << "a program that probes for NVRTC must not find ours";
    EXPECT_EQ(r["get_cubin"], "libttt.so");
    EXPECT_EQ(without["get_cubin"], "libnvrtc.");
    EXPECT_EQ(r["version"], "libnvrtc.");
    EXPECT_EQ(r["absent"], "null") << "a library without the symbol must not gain it";
    const std::string log = fake.text();
    EXPECT_NE(log.find("source origin=NVRTC options=-arch=sm_80 --maxrregcount=40 ptx=1"), log.npos)
        << log;
    EXPECT_NE(log.find("source origin=nvJitLink options=-arch=sm_80 ptx=1"), log.npos) << log;
    EXPECT_NE(log.find("source origin=the driver's linker options=--maxrregcount=32"), log.npos)
        << log;
    for (const char* origin : {"NVRTC", "nvJitLink", "the driver's linker"})
        EXPECT_NE(log.find(std::string("image of source ") + origin), log.npos)
            << origin << " in " << log;
    size_t sources = 0;
    for (size_t at = log.find("source origin="); at != log.npos;
         at = log.find("source origin=", at + 1))
        ++sources;
    EXPECT_EQ(sources, 4u);
    EXPECT_NE(log.find("source origin=nvJitLink made it from 2 inputs, 0 of them without PTX"),
              log.npos)
        << "machine code linked from two inputs has no one PTX: " << log;
    std::remove(linked.c_str());
}

TEST(ShimForeground, DecidesAtTheThirdLaunchWithinTheBudget) {
    const Fake fake("whole");
    const Outcome r = run("shim-probe launches 200 1000",
                          fake.environment + "TTT_FOREGROUND=20 TTT_HOT_LAUNCHES=1000000");
    ASSERT_EQ(r.code, 0) << r.text;
    EXPECT_EQ(r.number("result"), 0);
    EXPECT_NE(fake.text().find("canary original=10 variant=10"), std::string::npos) << fake.text();
    EXPECT_GT(r.number("variant_launches"), 50) << "most of 200 launches come after the third";
}

TEST(ShimForeground, SilentTunerCostsAtMostTheBudget) {
    const Fake fake("silent");
    const auto start = std::chrono::steady_clock::now();
    const Outcome r = run("shim-probe launches 50", fake.environment + "TTT_FOREGROUND=1.5");
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_EQ(r.number("driver_launches"), 50) << r.text;
    EXPECT_GE(seconds, 1.5) << "the launch was held";
    EXPECT_LT(seconds, 8) << "and let go";
}

TEST(ShimForeground, DeadTunerReleasesAtOnce) {
    const Fake fake("exit");
    const auto start = std::chrono::steady_clock::now();
    const Outcome r = run("shim-probe launches 50", fake.environment + "TTT_FOREGROUND=30");
    EXPECT_EQ(r.number("driver_launches"), 50) << r.text;
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 10);
}

}  // namespace
