// What a user wrote, read: a job file, or the one that a script stands for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "platform/client/submit/submit.h"
#include "spec/file/job_file.h"

namespace tutti::client {

struct UserJob {
  std::string text;
  std::string path;  // as messages name it
  std::filesystem::path directory;
  std::vector<std::string> remarks;
  spec::Reading file;
};

// The faults of the file are in it. InvalidArgument where there is none to read, and for every
// fault of a script's options. Saves a script's job file if that is asked for. `home` holds the
// site's tables.
absl::StatusOr<UserJob> ReadUserJob(const std::filesystem::path& home, const JobFile& file);

}  // namespace tutti::client
