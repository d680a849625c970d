// Draws numbers as a line of small bars, for a terminal.
#pragma once

#include <string>
#include <vector>

namespace tutti::client {

// Returns the values, the oldest first, as bars from 0 to the greatest of them, each bar the mean
// of its share of them, in at most `columns` columns. A value that is not finite is a gap. Empty
// where there is no finite value.
std::string Sparkline(const std::vector<double>& values, int columns);

}  // namespace tutti::client
