#include "compile/toolkit.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "compile/compiler.h"

namespace ttt::compile {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string name = (fs::temp_directory_path() / "ttt-toolkit-XXXXXX").string();
        x_path = ::mkdtemp(name.data());
    }
    ~TemporaryFolder() { fs::remove_all(x_path); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    fs::path file(const std::string& relative, const std::string& text = "x") const {
        const fs::path path = x_path / relative;
        fs::create_directories(path.parent_path());
        std::ofstream(path) << text;
        ::chmod(path.c_str(), 0755);
        return path;
    }
    fs::path path() const { return x_path; }

  private:
    fs::path x_path;
};

TEST(Toolkit, LayoutsOfToolkitsAndWheels) {
    for (const char* layout :
         {"lib64/libnvJitLink.so.13", "lib/libnvJitLink.so.12",
          "targets/x86_64-linux/lib/libnvJitLink.so.13", "nvidia/nvjitlink/lib/libnvJitLink.so.12",
          "nvidia/cu13/lib/libnvJitLink.so.13"}) {
        const TemporaryFolder folder;
        const fs::path file = folder.file(layout);
        EXPECT_EQ(find_nvjitlink(folder.path().string()).front(), file.string());
    }
    for (const char* layout :
         {"bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas", "nvidia/cu13/bin/ptxas"}) {
        const TemporaryFolder folder;
        const fs::path file = folder.file(layout);
        EXPECT_EQ(find_ptxas(folder.path().string()).front(), file.string());
    }
}

TEST(Toolkit, WheelsOfTheActiveEnvironment) {
    const TemporaryFolder folder;
    const fs::path file =
        folder.file("lib/python3.12/site-packages/nvidia/nvjitlink/lib/libnvJitLink.so.12");
    ::setenv("VIRTUAL_ENV", folder.path().c_str(), 1);
    const auto found = find_nvjitlink("");
    ::unsetenv("VIRTUAL_ENV");
    EXPECT_NE(std::find(found.begin(), found.end(), file.string()), found.end());
}

TEST(Toolkit, PtxasThatIsNone) {
    const TemporaryFolder folder;
    folder.file("bin/ptxas", "#!/bin/sh\necho hello\n");
    auto out = make_ptxas(folder.path().string());
    ASSERT_FALSE(out.ok());
    EXPECT_NE(out.error().str().find("not a ptxas"), std::string::npos) << out.error().str();
    const TemporaryFolder silent;
    silent.file("bin/ptxas", "#!/bin/sh\nkill -9 $$\n");
    EXPECT_FALSE(make_ptxas(silent.path().string()).ok());
}

TEST(Toolkit, LibraryThatIsNone) {
    const TemporaryFolder folder;
    folder.file("lib64/libnvJitLink.so.13", "not a library");
    for (const bool isolated : {true, false}) {
        auto out = make_nvjitlink(folder.path().string(), isolated);
        ASSERT_FALSE(out.ok());
        EXPECT_NE(out.error().str().find(folder.path().string()), std::string::npos)
            << out.error().str();
    }
}

}  // namespace
}  // namespace ttt::compile
