// What Azure ML has and tutti does not run: files that are no jobs, and types of jobs. Each with
// the reason and what to do in its place. Inside the room spec only. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "spec/yaml_tree.h"

namespace tutti::spec {

// A file that is no job.
struct OtherKind {
  absl::string_view kind;  // "data"
  std::string advice;      // "make it known by `tutti data create --file data.yml`"
  int line;                // where the file tells it
};

// "https://…/pipelineJob.schema.json" -> "pipelinejob.schema.json"; "" without a $schema.
std::string SchemaOf(const YamlNode& root);

// By its $schema or, without one, by its type and keys. nullopt if it may be a job. `file`: its
// name, for the advice.
std::optional<OtherKind> OtherKindOf(const YamlNode& root, absl::string_view file);

// Of a type of jobs or steps: "it needs a Spark cluster, …". "" for one that Azure ML does not
// have.
absl::string_view NotRunBecause(absl::string_view type);

}  // namespace tutti::spec
