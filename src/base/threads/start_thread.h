// Starts a thread for work that goes on without it, if slower, where the machine has no room for
// another thread.
#pragma once

#include <functional>
#include <thread>

namespace tutti::base {

// Starts a thread that does `work`; returns one that is not joinable, and logs a line, where the
// machine has no room for another. An exception of `work` is the end of the process, as std::thread
// has it.
std::thread StartThread(std::function<void()> work);

}  // namespace tutti::base
