# A program that rewrites module variables between launches; chain.py runs it under libttt.so.
add_executable(variables_program ${CMAKE_CURRENT_SOURCE_DIR}/variables_program.cpp)
target_link_libraries(variables_program PRIVATE ttt_flags ttt_cuda_headers ttt_emulator Threads::Threads)
# It must find whatever driver the loader gives it.
set_target_properties(variables_program PROPERTIES SKIP_BUILD_RPATH ON)
