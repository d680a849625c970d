// Writes scores as a table for people, and as JSON and CSV for programs. Pure functions.
#pragma once

#include <span>
#include <string>

#include "runtime/scoring/scorer.h"

namespace tutti::scoring {

// Returns one line a prediction, probabilities in percent; a file's name stands in its first line
// only. Files with errors are left out.
std::string FormatTable(std::span<const FileScore> scores);

// Returns an array in the files' order: {"file", "predictions": [{"class", "probability"}]}, or
// {"file", "error"}.
std::string FormatJson(std::span<const FileScore> scores);

// Writes the header file,rank,class,probability; quoted where RFC 4180 wants it. Files with errors
// are left out.
std::string FormatCsv(std::span<const FileScore> scores);

}  // namespace tutti::scoring
