// Converts cluster.json and file-server.json of Azure Batch AI to a compute's and a file server's
// file as `tutti compute create` and `tutti file-server create` take them: what becomes of each key
// stands in docs/formats/batch-ai.md. Pure functions, safe on hostile text; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/batchai/batch_ai_job.h"

namespace tutti::spec {

struct BatchAiCluster {
  std::string compute;  // YAML
  // JSON, a cluster's file with its volumes alone, which its jobs have; no credentials.
  std::string volumes;
  std::vector<std::string> warnings;  // "cluster.json:4: …"
  std::vector<BatchAiStore> stores;   // as a job's
};

// Returns the cluster as a compute of that name. InvalidArgument: all that is wrong, with lines.
absl::StatusOr<BatchAiCluster> ConvertBatchAiCluster(absl::string_view text,
                                                     absl::string_view file_name,
                                                     const std::string& name,
                                                     const std::string& storage_account);

// Has what a file server needs here and a file of Batch AI's does not say.
struct FileServerPlace {
  std::string folder;                // of this machine, that is served
  std::string address;               // of this machine; empty: of loopback
  std::vector<std::string> clients;  // who may mount
  int port = 0;                      // 0: NFS's own
};

struct BatchAiFileServer {
  std::string text;  // YAML
  std::vector<std::string> warnings;
};

// Returns the file server. InvalidArgument: all that is wrong, with lines.
absl::StatusOr<BatchAiFileServer> ConvertBatchAiFileServer(absl::string_view text,
                                                           absl::string_view file_name,
                                                           const std::string& name,
                                                           const FileServerPlace& place);

}  // namespace tutti::spec
