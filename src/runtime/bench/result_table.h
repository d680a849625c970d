// Writes a benchmark's points as a Markdown table and as JSON. Pure functions.
#pragma once

#include <span>
#include <string>

#include "runtime/bench/point.h"

namespace tutti::bench {

// Returns a table in Markdown, a line a point, with its conditions above.
std::string MarkdownTable(const Conditions& conditions, std::span<const Point> points);

// Returns the same and all that was measured, as a JSON document: seconds, bytes, images per
// second.
std::string JsonDocument(const Conditions& conditions, std::span<const Point> points);

}  // namespace tutti::bench
