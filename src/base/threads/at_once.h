// Runs pieces of work that mostly wait, several at a time. Thread-safe.
#pragma once

#include <cstddef>
#include <functional>

namespace tutti::base {

// Calls body(0) … body(count - 1), up to `most` at the same time, one of them in the caller's
// thread, and returns when all have returned. Each index once, from any of the threads; fewer at a
// time where the machine has no room for as many threads. The first exception of a body is thrown
// again, once all have returned.
void ForEachAtOnce(size_t count, size_t most, const std::function<void(size_t)>& body);

}  // namespace tutti::base
