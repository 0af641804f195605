# Helpers that every folder uses, so that a CMakeLists.txt there is a few lines.

add_library(ttt_flags INTERFACE)
target_include_directories(ttt_flags INTERFACE ${CMAKE_SOURCE_DIR}/runtime ${CMAKE_SOURCE_DIR}/include
                                               ${CMAKE_BINARY_DIR}/generated)
target_compile_options(ttt_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion -Werror
                                           -ffunction-sections -fdata-sections
                                           -fno-math-errno -ffp-contract=off
                                           # clang warns where a hinted loop stays scalar: slower, not wrong
                                           $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)
target_link_options(ttt_flags INTERFACE -Wl,--gc-sections)
if(TTT_SANITIZE)
  target_compile_options(ttt_flags INTERFACE -fsanitize=${TTT_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
  target_link_options(ttt_flags INTERFACE -fsanitize=${TTT_SANITIZE})
endif()

# ttt_module(ptx DEPS base [PRIVATE_LIBS zstd …]): static library ttt_ptx from runtime/ptx/**/*.cpp.
function(ttt_module name)
  cmake_parse_arguments(A "" "" "DEPS;PRIVATE_LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  set(deps ttt_flags)
  foreach(d IN LISTS A_DEPS)
    list(APPEND deps ttt_${d})
  endforeach()
  if(sources)
    add_library(ttt_${name} STATIC ${sources})
    target_link_libraries(ttt_${name} PUBLIC ${deps} PRIVATE ${A_PRIVATE_LIBS})
  else()  # headers only
    add_library(ttt_${name} INTERFACE)
    target_link_libraries(ttt_${name} INTERFACE ${deps})
  endif()
endfunction()

# ttt_test(name SOURCES … LIBS … [LABELS …] [ARGS …] [TIMEOUT s]): a GoogleTest binary registered as one ctest test.
function(ttt_test name)
  cmake_parse_arguments(A "" "TIMEOUT" "SOURCES;LIBS;LABELS;ARGS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE ttt_flags ${A_LIBS} GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE TTT_SOURCE_DIR="${CMAKE_SOURCE_DIR}" TTT_BINARY_DIR="${CMAKE_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name} ${A_ARGS})
  if(A_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${A_LABELS}")
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${A_TIMEOUT})
endfunction()
