// What a user sends to have a job run.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace tutti::service {

struct Submission {
  std::string file = "job.yml";  // name of the job file, for messages
  std::string text;              // its content
  std::filesystem::path base_directory;
  std::string snapshot;  // "sha256:…" or empty
  // Of a pipeline or a sweep: of each `code` that its jobs name, as the reader gives it.
  std::map<std::string, std::string> snapshots;
};

}  // namespace tutti::service
