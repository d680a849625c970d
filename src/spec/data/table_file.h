// Reads the file MLTable of a table's folder, as Azure ML and its Python package `mltable` write
// it: which files the table is of. What is done with their content (`transformations`, `traits`,
// `metadata`) is the package's, and passed over. The text may be anybody's: what it names is as
// much as YamlLimits let through, and kMostTablePaths. Pure function; thread-safe.
//
//   paths:
//     - file: ./2023.csv
//     - folder: wasbs://data@acme.blob.core.windows.net/2024
//     - pattern: azureml://datastores/sets/paths/**/*.csv
//   transformations: [...]
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::spec {

inline constexpr char kTableFile[] = "MLTable";
inline constexpr size_t kLargestTableFile = 256 * 1024;
inline constexpr size_t kMostTablePaths = 100;  // each is asked for, and fetched, by itself

struct TablePath {
  enum class Kind { kFile, kFolder, kPattern };

  Kind kind = Kind::kFile;
  std::string text;  // as it is written: relative to the table's folder, absolute, or an address
  int line = 0;
};

// Returns "file", "folder", "pattern".
absl::string_view Name(TablePath::Kind kind);

// Returns the paths, of which there is at least one. InvalidArgument: "FILE:LINE: what is wrong", a
// line for each.
absl::StatusOr<std::vector<TablePath>> ReadTable(absl::string_view text,
                                                 absl::string_view file_name);

}  // namespace tutti::spec
