# Sandbox and tuner against the emulated GPU, with the tests in the place of the program.
function(ttt_tuner_test name)
  ttt_test(${name} SOURCES ${ARGN} LIBS ttt_tuner_parts)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  add_dependencies(${name} ttt-tuner ttt-sandbox ttt_emulator)
  target_compile_definitions(${name} PRIVATE TTT_EMULATOR_DIR="${CMAKE_BINARY_DIR}/emulator"
                             TTT_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endfunction()
ttt_tuner_test(test_tuner_sandbox ${CMAKE_CURRENT_SOURCE_DIR}/tuner_sandbox_test.cpp)
ttt_tuner_test(test_tuner_protocol ${CMAKE_CURRENT_SOURCE_DIR}/tuner_protocol_test.cpp)
ttt_tuner_test(test_tuner_modules ${CMAKE_CURRENT_SOURCE_DIR}/kernel_caches_test.cpp)
