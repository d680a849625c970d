// Gives jobs with MLflow 1 a model registry in files, which it lacks, so that `register_model`
// works there (decision 043). model_registry.py is one, which MLflow finds by an entry point in the
// job's own Python. What it writes is what MLflow 2 and 3 write, see file_store.h. Thread-safe.
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tutti::mlflow {

// Returns whether MLflow 1 is in a folder of packages.
bool HasMlflow1(const std::filesystem::path& packages);

// Adds the registry to `own`, a folder of packages, if the folder of packages `shared`, of the same
// Python, has MLflow 1. Nothing is added for another MLflow, or none.
absl::Status AddModelRegistry(const std::filesystem::path& shared,
                              const std::filesystem::path& own);

// Returns the text of model_registry.py.
absl::string_view ModelRegistryText();

}  // namespace tutti::mlflow
