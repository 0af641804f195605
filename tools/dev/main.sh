#!/usr/bin/env bash
# Developer commands behind ./dev. Each one does the set-up it needs first.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD

usage() {
    cat <<TXT
usage: ./dev COMMAND
  setup              install the packages and the CUDA headers the build needs (Debian 12, Ubuntu 24.04)
  build [PRESET]     configure and build (release, debug, asan-ubsan, tsan, fuzz; default release)
  test [PRESET] [--slow]   everything CI runs; --slow adds the tests labelled slow
  demo [ARGS]        the digits server with and without libttt.so, on the GPU or the emulated one
  bench              benchmarks as ratios, written to build/bench/
  check              formatting, clang-tidy on changed files, generated tables against cuda.h
  format             clang-format in place
  gpu-bundle         one folder (build/gpu-bundle, under 60 MiB) that runs on a machine with a GPU
TXT
}

packages=(cmake ninja-build g++ ccache flatbuffers-compiler libflatbuffers-dev libspdlog-dev libfmt-dev libgtest-dev
          libgmock-dev libbenchmark-dev libsqlite3-dev libzstd-dev liblz4-dev libcli11-dev nlohmann-json3-dev
          libcpp-httplib-dev libsodium-dev libxxhash-dev python3 python3-venv git)
fuzz_packages=(clang libclang-rt-14-dev)
check_packages=(clang-format clang-tidy)

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

install() {  # install NAME…: only what is missing
    local missing=()
    for p in "$@"; do
        dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null | grep -q '^installed' || missing+=("$p")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    echo "setup: installing ${missing[*]}"
    as_root apt-get update -qq
    DEBIAN_FRONTEND=noninteractive as_root apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# CUDA headers and assembler: a toolkit if there is one, else the PyPI wheels unpacked into build/cuda.
cuda_wheels() {
    local cuda=${CUDA_HOME:-/usr/local/cuda}
    [ -f "$cuda/include/cuda.h" ] && return 0
    [ -f build/cuda/include/cuda.h ] && return 0
    echo "setup: no CUDA toolkit found, unpacking its PyPI wheels into build/cuda"
    mkdir -p build/cuda
    python3 -m venv build/cuda/venv
    build/cuda/venv/bin/pip install -q --no-compile 'nvidia-cuda-runtime>=13,<14' 'nvidia-cuda-nvcc>=13,<14' 'nvidia-cuda-crt>=13,<14' \
        'nvidia-cuda-nvrtc>=13,<14' 'nvidia-cuda-cupti>=13,<14' 'nvidia-nvjitlink>=13,<14'
    local site
    site=$(build/cuda/venv/bin/python -c 'import site; print(site.getsitepackages()[0])')
    mkdir -p build/cuda/include build/cuda/bin build/cuda/lib64
    find "$site/nvidia" -type d -name include -exec cp -rsf {}/. build/cuda/include/ \;
    find "$site/nvidia" -type d -name bin -exec cp -rsf {}/. build/cuda/bin/ \;
    find "$site/nvidia" -type d -name lib -exec cp -rsf {}/. build/cuda/lib64/ \;
    [ -f build/cuda/include/cuda.h ] || { echo "setup: the wheels hold no cuda.h" >&2; exit 1; }
}

setup() {
    install "${packages[@]}"
    cuda_wheels
    if [ -z "${CUDA_HOME:-}" ] && [ -d "$root/build/cuda/include" ]; then export CUDA_HOME=$root/build/cuda; fi
}

build() {  # build PRESET [TARGET…]
    local preset=$1; shift
    setup
    [ "$preset" = fuzz ] && install "${fuzz_packages[@]}"
    export TTT_COMPILER_LAUNCHER=${TTT_COMPILER_LAUNCHER-$(command -v ccache || true)}
    cmake --preset "$preset" >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
    cmake --build --preset "$preset" -- ${TTT_JOBS:+-j$TTT_JOBS} "$@"
}

run_tests() {
    local preset=release slow=0
    for a in "$@"; do
        case $a in
            --slow) slow=1 ;;
            release|debug|asan-ubsan|tsan|fuzz) preset=$a ;;
            *) echo "dev test: unknown argument '$a'" >&2; exit 2 ;;
        esac
    done
    build "$preset"
    local args=(--test-dir "build/$preset" --output-on-failure --no-tests=error -j "${TTT_JOBS:-$(nproc)}")
    [ $slow = 1 ] || args+=(-LE slow)
    case $preset in
        # verify_asan_link_order: `ttt run` preloads a library before the sanitizer's runtime; one without interceptors may
        # be there. Leaks are looked for everywhere but in programs under libttt.so (tests/e2e/shim_test.cpp).
        asan-ubsan) export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=1:verify_asan_link_order=0}
                    export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1} ;;
        tsan) export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1} ;;
    esac
    ctest "${args[@]}"
    if [ "$preset" = release ]; then fuzz_smoke; fi
}

fuzz_smoke() {  # a few seconds of libFuzzer per target
    build fuzz fuzz_ptx fuzz_image
    ctest --test-dir build/fuzz --output-on-failure --no-tests=error -R "fuzz_(ptx|image)$" -j "${TTT_JOBS:-$(nproc)}"
}

format_files() { git ls-files -co --exclude-standard '*.cpp' '*.h' '*.hpp' | xargs clang-format "$@"; }

check() {
    setup
    install "${check_packages[@]}"
    format_files --dry-run -Werror
    build release
    # Fails on any exported driver function that cuda.h and cudaTypedefs.h do not pair up.
    python3 tools/driver_table/generate.py --include "$(sed -n 's/^CUDA_INCLUDE:PATH=//p' build/release/CMakeCache.txt)" -o build/driver_table.json
    local files
    files=$(git diff --name-only "${1:-HEAD~1}" -- 'runtime/*.cpp' 'shim/*.cpp' 'tools/*.cpp' | while read -r f; do [ -f "$f" ] && echo "$f"; done)
    [ -z "$files" ] || clang-tidy -p build/release --quiet $files
}

gpu_bundle() {
    build release
    python3 tools/dev/gpu_bundle.py build/release build/gpu-bundle
}

command=${1:-help}
[ $# -gt 0 ] && shift
mkdir -p build
case $command in
    setup) setup ;;
    build) build "${1:-release}" ;;
    test) run_tests "$@" ;;
    demo) build release && exec python3 tools/demo/run.py --build build/release "$@" ;;
    bench) build release && exec python3 tools/dev/bench.py --build build/release --out build/bench "$@" ;;
    check) check "$@" ;;
    format) install "${check_packages[@]}"; format_files -i ;;
    gpu-bundle) gpu_bundle ;;
    help|-h|--help) usage ;;
    *) echo "dev: unknown command '$command'" >&2; usage >&2; exit 2 ;;
esac
