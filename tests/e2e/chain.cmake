# Hazards and programs through the whole chain on the emulated GPU; `run.sh tests` of the GPU bundle on a real one.
find_package(Python3 COMPONENTS Interpreter REQUIRED)
add_test(NAME chain_on_emulated_gpu
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/chain.py --bin ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
                 --data ${CMAKE_SOURCE_DIR}/tests/data --emulate h200 --budget 10)
set_tests_properties(chain_on_emulated_gpu PROPERTIES LABELS "e2e;slow" TIMEOUT 900)
