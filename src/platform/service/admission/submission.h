// Submission is what a user sends to have a job run.
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
  // For a pipeline or a sweep, the snapshot of each `code` that its jobs name; by `code` as the
  // reader of job files gives it.
  std::map<std::string, std::string> snapshots;
  // The client's own name for this submission: sent again, it is answered with the job that it
  // became, which is never made a second time. Empty: none.
  std::string nonce;
  std::map<std::string, std::string> origin;  // as JobSpec::origin
  // It is being typed, to be checked alone: no store, server or registry that it names is asked.
  bool is_draft = false;
};

}  // namespace tutti::service
