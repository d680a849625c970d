// Checks the names of jobs, steps, inputs, outputs and secrets. Pure functions; thread-safe.
#pragma once

#include "absl/strings/string_view.h"

namespace tutti::spec {

// Returns whether it is letters, digits and "_", not beginning with a digit, at most 128
// characters: such names become folders and variables.
bool IsIdentifier(absl::string_view name);

// Returns whether it is letters, digits, "-" and "_", not beginning with a sign, at most 128
// characters.
bool IsJobName(absl::string_view name);

// Returns whether it is written as a job's name is.
bool IsSecretName(absl::string_view name);

}  // namespace tutti::spec
