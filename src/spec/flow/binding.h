// Resolves the bindings between a pipeline's steps: which steps a step needs and, once their
// results are there, the step as a job whose inputs have paths. Pure functions; thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "spec/types/job.h"

namespace tutti::spec {

struct Binding {
  std::string step;  // empty: the pipeline itself
  std::string name;  // of its output, or of the pipeline's input
};

// Parses "inputs.X" or "jobs.S.outputs.O"; nothing for another text.
std::optional<Binding> ParseBinding(absl::string_view text);

// Returns the steps that must have completed before `step` starts.
std::set<std::string> NeedsOf(const JobSpec& pipeline, const Step& step);

// Returns where the output `name` of a job lies: `folder` is the job's own (with outputs/ in it).
// The default output "artifacts", which the job's command does not name, is that folder.
std::string PathOfOutput(const JobSpec& job, const std::string& name, const std::string& folder);

// Returns the step as a job: its open inputs have the paths that they are bound to. `folder_of`
// gives the folder of a sibling's job; `pipeline` has its own inputs bound already.
JobSpec Bind(const JobSpec& pipeline, const Step& step,
             const std::function<std::string(const std::string& step)>& folder_of);

}  // namespace tutti::spec
