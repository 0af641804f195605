# The shim in real processes on the null driver.
add_executable(shim-probe ${CMAKE_CURRENT_LIST_DIR}/shim_probe.cpp)
target_link_libraries(shim-probe PRIVATE ttt_flags ttt_cuda_headers Threads::Threads ${CMAKE_DL_LIBS})
add_executable(shim-probe-linked ${CMAKE_CURRENT_LIST_DIR}/shim_probe_linked.cpp)
target_link_libraries(shim-probe-linked PRIVATE ttt_flags ttt_cuda_headers ttt_null_driver Threads::Threads ${CMAKE_DL_LIBS})
add_executable(shim-fake-tuner ${CMAKE_CURRENT_LIST_DIR}/shim_fake_tuner.cpp)
target_link_libraries(shim-fake-tuner PRIVATE ttt_ipc)
ttt_test(test_shim SOURCES ${CMAKE_CURRENT_LIST_DIR}/shim_test.cpp LIBS ttt_flags LABELS e2e)
add_dependencies(test_shim shim-probe shim-probe-linked shim-fake-tuner ttt_shim ttt_shim_soname ttt_null_driver)
# A preloaded library that is built with a sanitizer needs the sanitizer's runtime before it.
set(sanitizer_runtime "")
if(TTT_SANITIZE MATCHES "address|thread")
  string(REGEX MATCH "address|thread" kind "${TTT_SANITIZE}")
  string(SUBSTRING ${kind} 0 1 letter)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=lib${letter}san.so
                  OUTPUT_VARIABLE sanitizer_runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
target_compile_definitions(test_shim PRIVATE TTT_SANITIZER_NAME="${TTT_SANITIZE}" TTT_SANITIZER_RUNTIME="${sanitizer_runtime}")
