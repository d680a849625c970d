// Reads what a user wants to run: a job file, or the one that a script stands for.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/client/submit/submit.h"
#include "spec/file/job_file.h"

namespace tutti::client {

struct UserJob {
  std::string text;
  std::string path;  // as messages name it
  std::filesystem::path directory;
  std::vector<KeyOption> keys;  // that options have set
  std::vector<std::string> remarks;
  std::string script;                         // for which the text stands; empty: it was a job file
  std::map<std::string, std::string> origin;  // as JobSpec::origin
  std::string save;  // where the text is to be written once the job is taken; empty: nowhere
  spec::Reading file;
};

// Reads a job; the faults of the file are in it. InvalidArgument where there is none to read, and
// for every fault of a script's options, AlreadyExists where its job file could not be saved.
// `home` holds the site's tables.
absl::StatusOr<UserJob> ReadUserJob(const std::filesystem::path& home, const JobFile& file);

// Writes the job file of a script that was taken, if that is asked for; what to say of it, or "".
std::string SaveTaken(const UserJob& written);

// Returns what is wrong with a job, in the words in which the user asked for it: of a script, its
// options in place of the keys that they stand for, and no place in a file that is not saved.
absl::Status AsTheUserWroteIt(const absl::Status& status, const UserJob& written);
// Returns the same of one line, a warning for example, that is told before the job is taken.
std::string AsTheUserWroteIt(absl::string_view line, const UserJob& written);

}  // namespace tutti::client
