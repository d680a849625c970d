// Converts job files of Azure Batch AI (job.json, schemas 2017-09-01-preview to 2018-05-01) to job
// files as ReadJobFile takes them: what becomes of each key stands in docs/formats/batch-ai.md.
// Pure functions, safe on hostile text; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::spec {

// Has what Batch AI's commands said beside the file; empty: nothing.
struct BatchAiOptions {
  std::string name;             // of the job
  std::string cluster;          // the compute or its id, in place of the file's
  std::string experiment;       // in place of the file's
  std::string storage_account;  // stands for <AZURE_BATCHAI_STORAGE_ACCOUNT>
  // The cluster's file, whose volumes its jobs have, and its name for messages.
  std::string cluster_text, cluster_file;
  // Leaves out the secrets whose values the file has, for a check of the job before they are set.
  bool without_values = false;
};

struct BatchAiSecret {
  std::string variable;  // that the job's processes have
  std::string secret;    // the service's, which the job's file names
  std::string value;     // as the file has it; empty: it is in a Key Vault
};

// A share or container whose key the file has.
struct BatchAiStore {
  std::string name;     // of the datastore
  std::string address;  // "https://acme.blob.core.windows.net/images/"
  std::string text;     // YAML of the datastore's file, with the key
};

struct BatchAiJob {
  std::string text;                   // YAML
  std::vector<std::string> warnings;  // "job.json:4: …"
  // These must be there before the job is submitted.
  std::vector<BatchAiSecret> secrets;
  std::vector<BatchAiStore> stores;  // unless there is a datastore of the address
};

// Returns the job's file. InvalidArgument: all that is wrong, "job.json:4: …" a line.
absl::StatusOr<BatchAiJob> ConvertBatchAiJob(absl::string_view text, absl::string_view file_name,
                                             const BatchAiOptions& options);

// Returns the name of the cluster whose volumes a job has: the last part of `cluster`, as the
// commands have it, else of the file's own; "" if there is none.
absl::StatusOr<std::string> ClusterOfBatchAiJob(absl::string_view text, absl::string_view file_name,
                                                const std::string& cluster);

}  // namespace tutti::spec
