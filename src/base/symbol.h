// A function of a library that was loaded at run time.
#pragma once

#include <dlfcn.h>

namespace tutti::base {

// Whether `library`, of dlopen, has it; null if not. The type is the caller's to know.
template <typename Function>
bool Resolve(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace tutti::base
