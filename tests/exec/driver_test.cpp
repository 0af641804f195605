// exec_driver must notice what is wrong: results, faults, hangs, GPUs that are too old.
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/command.h"

namespace ttt::test {
namespace {

using namespace ttt::cli_test;

std::string kernel_file(const std::string& name, const std::string& expect, const std::string& body,
                        const std::string& target = "sm_80") {
    return scratch_file(
        name,
        "// launch: {\"entry\":\"k\",\"grid\":[1,1,1],\"block\":[2,1,1],\"shared\":0,"
        "\"args\":[{\"buffer\":{\"bytes\":16}}]}\n// expect: [{\"arg\":0,\"hex\":\"" +
            expect + "\"}]\n// forms: 2\n.version 8.0\n.target " + target +
            "\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n\t.reg .b64 %p, %t;\n"
            "\t.reg .b32 %r;\n\tld.param.u64 %p, [out];\n\tmov.u32 %r, %tid.x;\n"
            "\tmul.wide.u32 %t, %r, 4;\n\tadd.s64 %p, %p, %t;\n" +
            body + "\tret;\n}\n");
}

const std::string kBody =
    "\t// st.global.u32 [a], b;\n\tst.global.u32 [%p], %r;\n"
    "\t// add.u32 d, a, b;\n\tadd.u32 %r, %r, 5;\n\tst.global.u32 [%p+8], %r;\n";
const std::string kRight = "00000000010000000500000006000000";

Ran run(const Words& files, const Words& options = {}) {
    Words command{binary("exec_driver")};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), files.begin(), files.end());
    return run_program(command);
}

TEST(ExecDriver, PassesAndCounts) {
    const Ran r = run({kernel_file("right.ptx", kRight, kBody)});
    EXPECT_EQ(r.rc, 0) << r.out << r.err;
    EXPECT_NE(r.out.find("1 files with 2 forms as expected; 0 files"), std::string::npos) << r.out;
}

TEST(ExecDriver, NamesTheWrongForm) {
    const std::string file = kernel_file("wrong.ptx", "00000000010000000500000007000000", kBody);
    const std::string json = scratch_path("wrong.json");
    const Ran r = run({file}, {"--json", json});
    EXPECT_EQ(r.rc, 1);
    EXPECT_NE(r.out.find("fail wrong.ptx: argument 0 differs at byte 12 (add.u32 d, a, b;): "
                         "06000000 instead of 07000000, 1 wrong"),
              std::string::npos)
        << r.out;
    const Ran written = run_program({"cat", json});
    EXPECT_EQ(written.json()["tests"][0]["differences"][0]["form"], "add.u32 d, a, b;");
}

TEST(ExecDriver, GoesOnAfterFaultsAndHangs) {
    const std::string fault = "\tmov.u64 %p, 16;\n" + kBody,
                      hang =
                          "AGAIN:\n\tld.volatile.global.u32 %r, [%p];\n"
                          "\tst.volatile.global.u32 [%p], %r;\n\tbra AGAIN;\n";
    const Words files{kernel_file("a_fault.ptx", kRight, fault),
                      kernel_file("b_hang.ptx", kRight, hang),
                      kernel_file("c_right.ptx", kRight, kBody)};
    const Ran r = run(files, {"--timeout", "4"});
    EXPECT_EQ(r.rc, 1);
    EXPECT_NE(r.out.find("fail a_fault.ptx: "), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("fail b_hang.ptx: "), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("1 files with 2 forms as expected; 2 files"), std::string::npos) << r.out;
}

TEST(ExecDriver, RefusedPtxFailsWithTheReason) {
    const Ran malformed = run({kernel_file("bad.ptx", kRight, "\tadd.u32 %r, %r, nothing;\n")});
    EXPECT_EQ(malformed.rc, 1);
    EXPECT_NE(malformed.out.find("fail bad.ptx: 15:18: "), std::string::npos) << malformed.out;
    const std::string file = kernel_file("right.ptx", kRight, kBody);
    const Ran invalid =
        run_program({binary("exec_driver"), file}, {{"TTT_EMU_FAULT", "cuModuleLoadData:1=218"}});
    EXPECT_EQ(invalid.rc, 1);
    EXPECT_NE(invalid.out.find("fail right.ptx: cuModuleLoadData: "), std::string::npos)
        << invalid.out;
    const Ran too_new =
        run_program({binary("exec_driver"), file}, {{"TTT_EMU_FAULT", "cuModuleLoadData:1=222"}});
    EXPECT_EQ(too_new.rc, 0);
    EXPECT_NE(too_new.out.find("skip right.ptx: cuModuleLoadData: "), std::string::npos)
        << too_new.out;
}

TEST(ExecDriver, SkipsWhatTheGpuIsTooOldFor) {
    const Ran r = run({kernel_file("new.ptx", kRight, kBody, "sm_130")});
    EXPECT_EQ(r.rc, 0);
    EXPECT_NE(r.out.find("skip new.ptx: needs sm_130"), std::string::npos) << r.out;
}

TEST(ExecDriver, NoGpuAndWrongArgumentsAreExitCode2) {
    const std::string file = kernel_file("right.ptx", kRight, kBody);
    const Ran r = run_program({binary("exec_driver"), file}, {{"TTT_EMU_FAULT", "cuInit:1=100"}});
    EXPECT_EQ(r.rc, 2);
    EXPECT_NE(r.err.find("exec_driver: cuInit"), std::string::npos) << r.err;
    EXPECT_EQ(run({}).rc, 2);
    EXPECT_EQ(run({file}, {"--nonsense"}).rc, 2);
    EXPECT_EQ(run({"/nonexistent.ptx"}).rc, 1);
}

}  // namespace
}  // namespace ttt::test
