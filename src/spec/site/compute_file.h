// Reads Azure ML's compute files, and keeps the computes that they define: `tutti compute create
// --file compute.yml` notes in HOME/computes.json that a name stands for nodes that are there
// already, this machine's or those of a compute of site.yml, and how many of them a job may take.
// Nothing is bought or given back.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::spec {

struct ComputeFile {
  std::string name;                 // as the file writes it; jobs name it in any case
  std::string type = "amlcompute";  // or computeinstance, virtualmachine, kubernetes
  std::string description;
  std::map<std::string, std::string> tags;
  int max_instances = 0;             // nodes that a job may take; 0: all
  std::string stands_for = "local";  // or a compute of site.yml
};

struct ReadComputeResult {
  ComputeFile compute;
  std::vector<std::string> warnings;
};

// Reads the file of a compute; InvalidArgument holds all errors, with their lines.
absl::StatusOr<ReadComputeResult> ReadComputeFile(absl::string_view text,
                                                  absl::string_view file_name);

// The files of computes, by the compute's name in lower case.
using ComputeFiles = std::map<std::string, ComputeFile>;

// Returns a JSON array, as HOME/computes.json and `tutti compute list` have it.
nlohmann::json JsonOf(const ComputeFiles& computes);
absl::StatusOr<ComputeFiles> ComputesFromJson(absl::string_view text, const std::string& file);
std::filesystem::path ComputesFile(const std::filesystem::path& home);
absl::StatusOr<ComputeFiles> ReadComputes(const std::filesystem::path& home);
absl::Status WriteComputes(const std::filesystem::path& home, const ComputeFiles& computes);

}  // namespace tutti::spec
