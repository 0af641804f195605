// Compilers inside the program, seen through its own dlsym calls: which PTX became which machine
// code. A wrapper makes the program's call first, exactly once, and returns its result unchanged;
// what it learns goes to session::made_from.
#pragma once

namespace ttt::shim {

bool is_compiler_function(const char* name);
// The program looked `name` up and the real dlsym answered `found`. Our wrapper for it, or `found`
// itself when it is no function of compilers.def, or when more than four copies of that library are
// loaded. Any thread.
void* compiler_wrapper(const char* name, void* found);

}  // namespace ttt::shim
