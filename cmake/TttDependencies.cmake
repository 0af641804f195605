# Every third-party package, its version range and its one home folder (README.md has the same table).
find_package(Threads REQUIRED)

# base
find_package(fmt 8 REQUIRED)
find_package(spdlog 1.9 REQUIRED)
# ipc
find_package(Flatbuffers 2.0 CONFIG QUIET)
find_program(FLATC flatc REQUIRED)
find_path(FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h REQUIRED)
# tools, store, tests
find_package(nlohmann_json 3.10 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(SQLite3 3.37 REQUIRED)
find_library(ZSTD_STATIC libzstd.a REQUIRED)
find_library(LZ4_STATIC liblz4.a REQUIRED)
find_library(SQLITE_STATIC libsqlite3.a REQUIRED)
find_library(SODIUM_STATIC libsodium.a REQUIRED)
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
if(TTT_TESTS)
  find_package(GTest 1.11 REQUIRED)
  find_package(benchmark 1.6 REQUIRED)
endif()

# CUDA headers: from a toolkit, else from the PyPI wheels that `./dev setup` unpacks. Never linked, always dlopen.
find_path(CUDA_INCLUDE cuda.h HINTS $ENV{CUDA_HOME}/include /usr/local/cuda/include ${CMAKE_SOURCE_DIR}/build/cuda/include REQUIRED)
add_library(ttt_cuda_headers INTERFACE)
target_include_directories(ttt_cuda_headers SYSTEM INTERFACE ${CUDA_INCLUDE})
file(STRINGS ${CUDA_INCLUDE}/cuda.h cuda_version_line REGEX "^#define CUDA_VERSION [0-9]+")
string(REGEX MATCH "[0-9]+$" TTT_CUDA_VERSION "${cuda_version_line}")
if(TTT_CUDA_VERSION LESS 12040 OR TTT_CUDA_VERSION GREATER_EQUAL 14000)
  message(FATAL_ERROR "cuda.h is version ${TTT_CUDA_VERSION}; libttt builds with 12.4 up to 13.x")
endif()
find_program(NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
find_program(PTXAS ptxas HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
