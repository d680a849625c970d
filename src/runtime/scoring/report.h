// Writes scores as a table for people, and as JSON and CSV for programs. Pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "runtime/scoring/heads/output_head.h"
#include "runtime/scoring/scorer.h"

namespace tutti::scoring {

// Returns one line a row, probabilities in percent; a file's name stands in its first line only.
// Files with errors are left out.
std::string FormatTable(const Head& head, std::span<const FileScore> scores);

// Returns an array in the files' order: {"file", NAME: [{"class", …}]}, NAME being the head's
// rows_name(), or {"file", "error"}. With `masks`, where they have been written: also "mask", the
// file in that folder.
std::string FormatJson(const Head& head, std::span<const FileScore> scores,
                       const std::string& masks = "");

// Writes the header file,rank,class,…; quoted where RFC 4180 wants it. Files with errors are left
// out.
std::string FormatCsv(const Head& head, std::span<const FileScore> scores);

// Returns the rows as an array of objects: [{"class", "probability"}].
nlohmann::ordered_json JsonOf(const Head& head, std::span<const Row> rows);

// Returns where a file's mask goes: DIR/photos_a.png of photos/a.jpg.
std::string MaskFile(const std::string& masks, const std::string& file);

}  // namespace tutti::scoring
