// What Azure ML has and tutti does not run: files that are no jobs, and types of jobs. Each with
// the reason and what to do in its place. Inside the room spec only. Pure functions; thread-safe.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::spec {

// By the last part of a file's $schema: "this is a file of kind data: make it known by `tutti data
// create --file data.yml`", where the file is `file`. "" if it may be a job.
std::string NoJobBecause(absl::string_view schema, absl::string_view file);

// The schema of a file that names none, by a key at its top and that key's value; "" if they do not
// tell. `runs`: the file says what is to be run.
absl::string_view SchemaToldBy(absl::string_view key, absl::string_view value, bool runs);

// Of a type of jobs or steps: "it needs a Spark cluster, …". "" for one that Azure ML does not
// have.
absl::string_view NotRunBecause(absl::string_view type);

}  // namespace tutti::spec
