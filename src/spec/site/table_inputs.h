// Makes inputs of the paths that a table names, so that they are checked and fetched as inputs are,
// and says where their files lie in the folder that the job gets: Azure ML takes off what the paths
// have in common. Pure function; thread-safe.
//
//   file: ./2023/a.csv                  2023/a.csv
//   pattern: ./2024/*/*.csv             2024/MONTH/FILE.csv
//   folder: s3://bucket/more/x          of one store: as above. Of several: local/2023/a.csv, …,
//                                       bucket/FILE.csv
//
// Two files of the same name differ in the folders that they lie in, or in their store. So no file
// takes another's place, and what two paths name is there once.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/data/table_file.h"
#include "spec/site/site.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Returns one input for each path, in their order, with `placed`, and `pattern` of those of this
// machine; mode, location and table are left to the caller. `table`: the input whose table it is.
//
// Relative paths count from the table's folder. A table of this machine may name any path of it;
// one in a store names by relative paths what its container has, or its datastore's folder.
//
// InvalidArgument: "FILE:LINE: what cannot be had and why", a line for each.
absl::StatusOr<std::vector<Input>> TableInputs(const std::vector<TablePath>& paths,
                                               const Input& table, const Site& site,
                                               absl::string_view file_name);

}  // namespace tutti::spec
