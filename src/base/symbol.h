// Looks up functions of a library that was loaded at run time.
#pragma once

#include <dlfcn.h>

#include <string>

namespace tutti::base {

// Returns whether `library`, of dlopen, has it; null if not. The type is the caller's to know.
template <typename Function>
bool Resolve(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

// Looks several up, and remembers the first that is missing.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}
  template <typename Function>
  void Find(Function& function, const char* name) {
    if (!Resolve(library_, name, function) && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }  // "": none

 private:
  void* const library_;
  std::string missing_;
};

}  // namespace tutti::base
