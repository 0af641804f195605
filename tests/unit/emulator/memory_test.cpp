// Memory: kinds, ranges, copies, sharing between processes.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "unit/emulator/driver.h"

namespace ttt::test {
namespace {

using Memory = Emulator;

TEST_F(Memory, AttributesAndRanges) {
    const CUdeviceptr p = allocate(1000);
    CUdeviceptr base = 0;
    size_t bytes = 0;
    EXPECT_EQ(CU(cuMemGetAddressRange)(&base, &bytes, p + 500), CUDA_SUCCESS);
    EXPECT_EQ(base, p);
    EXPECT_EQ(bytes, 1000u);
    EXPECT_EQ(CU(cuMemGetAddressRange)(&base, &bytes, p + 1000), CUDA_ERROR_NOT_FOUND);
    unsigned type = 0;
    EXPECT_EQ(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), CUDA_SUCCESS);
    EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
    EXPECT_EQ(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0x1234),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CU(cuMemFree)(p + 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CU(cuMemFree)(p), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuMemFree)(p), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CU(cuMemFree)(0), CUDA_SUCCESS);
    CUdeviceptr none = 0;
    EXPECT_EQ(CU(cuMemAlloc)(&none, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CU(cuMemAlloc)(&none, size_t{1} << 50), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Memory, CopiesCheckTheirExtent) {
    const CUdeviceptr p = allocate(64);
    char bytes[128] = {};
    EXPECT_EQ(CU(cuMemcpyHtoD)(p, bytes, 65), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CU(cuMemcpyDtoH)(bytes, p + 60, 8), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CU(cuMemcpyHtoD)(p, bytes, 64), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuMemsetD32)(p, 7, 17), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, TwoDimensionalCopyAndSet) {
    const CUdeviceptr p = allocate(4 * 16);
    ASSERT_EQ(CU(cuMemsetD8)(p, 0xEE, 64), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemsetD2D8)(p, 16, 1, 4, 4), CUDA_SUCCESS);
    unsigned char block[3][5];
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = p;
    copy.srcPitch = 16;
    copy.srcY = 1;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = block;
    copy.dstPitch = 5;
    copy.WidthInBytes = 5;
    copy.Height = 3;
    ASSERT_EQ(CU(cuMemcpy2D)(&copy), CUDA_SUCCESS);
    for (const auto& row : block) {
        for (int x = 0; x < 4; ++x) EXPECT_EQ(row[x], 1);
        EXPECT_EQ(row[4], 0xEE);
    }
}

TEST_F(Memory, PinnedAndManagedMemoryHaveOneAddress) {
    CUfunction fill = load(kFill, "fill");
    void* pinned = nullptr;
    CUdeviceptr managed = 0;
    ASSERT_EQ(CU(cuMemHostAlloc)(&pinned, 128, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemAllocManaged)(&managed, 128, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    CUdeviceptr device = 0;
    ASSERT_EQ(CU(cuMemHostGetDevicePointer)(&device, pinned, 0), CUDA_SUCCESS);
    unsigned value = 9;
    for (CUdeviceptr out : {device, managed}) {
        void* params[] = {&out, &value};
        ASSERT_EQ(CU(cuLaunchKernel)(fill, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr),
                  CUDA_SUCCESS);
        ASSERT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
    }
    EXPECT_EQ(static_cast<unsigned*>(pinned)[31], 9u);
    EXPECT_EQ(reinterpret_cast<unsigned*>(managed)[31], 9u);
    EXPECT_EQ(CU(cuMemFreeHost)(pinned), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuMemFree)(managed), CUDA_SUCCESS);
}

TEST_F(Memory, RegisteredMemoryIsReachable) {
    std::vector<unsigned> host(32);
    ASSERT_EQ(CU(cuMemHostRegister)(host.data(), 128, 0), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuMemHostRegister)(host.data(), 128, 0),
              CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CUdeviceptr out = 0;
    ASSERT_EQ(CU(cuMemHostGetDevicePointer)(&out, host.data(), 0), CUDA_SUCCESS);
    CUfunction fill = load(kFill, "fill");
    unsigned value = 3;
    void* params[] = {&out, &value};
    ASSERT_EQ(CU(cuLaunchKernel)(fill, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(host[31], 3u);
    EXPECT_EQ(CU(cuMemHostUnregister)(host.data()), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuMemHostUnregister)(host.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

struct Mapping {
    CUdeviceptr address = 0;
    CUmemGenericAllocationHandle handle = 0;
};
constexpr size_t kMapped = size_t{2} << 20;

CUmemAllocationProp shareable() {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return prop;
}

CUresult map(Mapping* mapping, CUmemAccess_flags access) {
    if (CU(cuMemAddressReserve)(&mapping->address, kMapped, 0, 0, 0) != CUDA_SUCCESS)
        return CUDA_ERROR_UNKNOWN;
    if (const auto bad = CU(cuMemMap)(mapping->address, kMapped, 0, mapping->handle, 0)) return bad;
    CUmemAccessDesc desc{};
    desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    desc.flags = access;
    return CU(cuMemSetAccess)(mapping->address, kMapped, &desc, 1);
}

// The other process: maps the descriptor's memory, checks the first word, writes the second.
int child(int fd) {
    CUcontext context = nullptr;
    Mapping mapping;
    if (CU(cuInit)(0) != CUDA_SUCCESS) return 2;
    if (CU(cuDevicePrimaryCtxRetain)(&context, 0) != CUDA_SUCCESS) return 3;
    if (CU(cuCtxSetCurrent)(context) != CUDA_SUCCESS) return 4;
    void* os_handle = reinterpret_cast<void*>(static_cast<intptr_t>(fd));
    if (CU(cuMemImportFromShareableHandle)(&mapping.handle, os_handle,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        return 5;
    if (map(&mapping, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)) return 6;
    unsigned word = 0;
    if (CU(cuMemcpyDtoH)(&word, mapping.address, 4) || word != 0x11111111) return 7;
    word = 0x22222222;
    if (CU(cuMemcpyHtoD)(mapping.address + 4, &word, 4)) return 8;
    return 0;
}

TEST(SharedMemory, AnotherProcessMapsTheSameBytes) {
    // Before this process uses the driver: a forked child may not use a driver that its parent has
    // started.
    int to_child[2];
    ASSERT_EQ(pipe(to_child), 0);
    const CUmemAllocationProp prop = shareable();
    // The parent must create the memory first, so the child is a fresh program: this binary with a
    // special argument.
    ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
    CUcontext context = nullptr;
    ASSERT_EQ(CU(cuDevicePrimaryCtxRetain)(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuCtxSetCurrent)(context), CUDA_SUCCESS);
    Mapping mapping;
    ASSERT_EQ(CU(cuMemCreate)(&mapping.handle, kMapped, &prop, 0), CUDA_SUCCESS);
    ASSERT_EQ(map(&mapping, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_SUCCESS);
    const unsigned mark = 0x11111111;
    ASSERT_EQ(CU(cuMemcpyHtoD)(mapping.address, &mark, 4), CUDA_SUCCESS);
    int fd = -1;
    ASSERT_EQ(CU(cuMemExportToShareableHandle)(&fd, mapping.handle,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
              CUDA_SUCCESS);
    const pid_t pid = fork();
    if (pid == 0) {
        const int inherited = dup(fd);  // without close-on-exec
        execl("/proc/self/exe", "test_emulator", "--shared-memory-child",
              std::to_string(inherited).c_str(), nullptr);
        _exit(9);
    }
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    unsigned words[2] = {};
    ASSERT_EQ(CU(cuMemcpyDtoH)(words, mapping.address, 8), CUDA_SUCCESS);
    EXPECT_EQ(words[0], 0x11111111u);
    EXPECT_EQ(words[1], 0x22222222u);
    EXPECT_EQ(CU(cuMemAddressFree)(mapping.address, kMapped),
              CUDA_ERROR_INVALID_VALUE);  // still mapped
    EXPECT_EQ(CU(cuMemUnmap)(mapping.address, kMapped), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuMemRelease)(mapping.handle), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuMemRelease)(mapping.handle), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CU(cuMemAddressFree)(mapping.address, kMapped), CUDA_SUCCESS);
    close(fd);
    close(to_child[0]);
    close(to_child[1]);
    CU(cuDevicePrimaryCtxReset)(0);
}

TEST_F(Memory, AccessIsWhatWasSet) {
    const CUmemAllocationProp prop = shareable();
    Mapping mapping;
    ASSERT_EQ(CU(cuMemCreate)(&mapping.handle, kMapped, &prop, 0), CUDA_SUCCESS);
    ASSERT_EQ(map(&mapping, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_SUCCESS);
    unsigned word = 1;
    EXPECT_EQ(CU(cuMemcpyDtoH)(&word, mapping.address, 4), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuMemcpyHtoD)(mapping.address, &word, 4), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr wanted = mapping.address + 64 * kMapped, got = 0;
    ASSERT_EQ(CU(cuMemAddressReserve)(&got, kMapped, 0, wanted, 0), CUDA_SUCCESS);
    EXPECT_EQ(got, wanted);  // a free hint is honoured
    CUdeviceptr other = 0;
    ASSERT_EQ(CU(cuMemAddressReserve)(&other, kMapped, 0, wanted, 0), CUDA_SUCCESS);
    EXPECT_NE(other, wanted);
}

}  // namespace

int shared_memory_child(int fd) { return child(fd); }

}  // namespace ttt::test
