// Reads the names of a dataset's classes: classes.txt, one name a line; a label is a line's number
// from 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tutti::data {

// Reads the classes' names; NotFound without the file; InvalidArgument for an empty file, an empty
// line or a name that stands there twice. Errors name file and line.
absl::StatusOr<std::vector<std::string>> ReadClasses(const std::filesystem::path& path);

// Where no classes.txt says how many there are, the highest label does, and one damaged label would
// make a network of as many outputs. So a label is stray if more labels in a row are missing right
// below it than half of those that there are below the gap, from 3 (few images lack classes) to
// 16 (what chance leaves out of a large set is spread). The lowest stray label of `labels`, which
// count from 0; those below `known` are classes whether they occur or not.
std::optional<int64_t> StrayLabel(const std::set<int64_t>& labels, int64_t known = 0);

// Returns InvalidArgument; `place` names file and record.
absl::Status StrayLabelError(absl::string_view place, int64_t label);

}  // namespace tutti::data
