// Finds the line in which a program that shows no Python exception says what went wrong. Pure
// functions. Inside the room launch only.
#pragma once

#include <cstddef>
#include <string>

#include "platform/launch/diagnosis/printed_lines.h"

namespace tutti::launch {

// Lines between two errors of which one follows from the other.
inline constexpr std::ptrdiff_t kOneFailure = 12;

// Returns all of `lines`, if they are one message: few and plain, of which the first says error and
// no other begins a message of its own; else "".
std::string MessageOfAll(const Lines& lines);

// Returns what Hydra says of a configuration that it cannot make: "In 'config': Could not find
// 'db/x' Available options in 'db': mysql"; or "".
std::string HydrasError(const Lines& lines);

// Returns the first line that says so of those that stand close together at the end of what is
// before `end`, with what it announces; or "".
std::string LineThatSaysError(const Lines& lines, Lines::const_iterator end,
                              bool (*says)(absl::string_view) = SaysError);

}  // namespace tutti::launch
