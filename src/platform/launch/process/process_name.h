// Sets what ps(1) shows of this process.
#pragma once

#include <string>
#include <vector>

namespace tutti::launch {

// Puts `words` and `last` where the kernel looks for the arguments of main, which `argv` are: what
// there is room for, of `last` its end. `argv` is not to be read afterwards.
void NameProcess(int argc, const char* const* argv, const std::vector<std::string>& words,
                 const std::string& last);

}  // namespace tutti::launch
