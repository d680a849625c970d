// Reads the job file: the Azure ML v2 command-job YAML, taken as it is, or a script with
// #SBATCH lines (batch_script.h).
//
// The file is hostile input: its size, depth and aliases are bounded, and what comes out has passed
// every check that needs no machine. An error says file and line, and all errors are reported at
// once, one a line (the first 20), in the order of the file:
//
//   job.yml:3: unknown key "comand" (did you mean "command"?)
//   job.yml:9: instance_count must be a whole number from 1 to 100000, but is "two"
//
// Pure functions, but for CheckPaths, which reads the file system, and the files that a job's
// environment names (conda.yaml, Dockerfile), which `read_file` brings; all are thread-safe.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/file/job_reading.h"
#include "spec/site/site.h"
#include "spec/types/job.h"
#include "spec/types/read_file.h"

namespace tutti::spec {

// The arguments are those of ReadJobFile.
Reading ReadAllOfJobFile(absl::string_view text, absl::string_view file_name,
                         const std::filesystem::path& base_directory, const Site& site,
                         const ReadFileFunction& read_file = ReadFromDisk);

// Reads a job file: `text` is the file's content, `file_name` its name as errors shall show it.
// Relative paths in it count from `base_directory`, which is absolute. `site` says what names and
// addresses mean here. InvalidArgument holds all errors.
absl::StatusOr<ReadResult> ReadJobFile(absl::string_view text, absl::string_view file_name,
                                       const std::filesystem::path& base_directory,
                                       const Site& site = BuiltInSite());
absl::StatusOr<ReadResult> ReadJobFile(absl::string_view text, absl::string_view file_name,
                                       const std::filesystem::path& base_directory,
                                       const Site& site, const ReadFileFunction& read_file);

// Reads a file of an environment's own schema, as `environment: file:…` names it. InvalidArgument
// holds all errors, with their lines.
absl::StatusOr<Environment> ReadEnvironmentFile(const std::filesystem::path& file,
                                                const Site& site = BuiltInSite());

// Returns the place of the logs of jobs whose files name none: the site's keep_logs; nothing if it
// has none. InvalidArgument, with its line, where it leads to no store that is known.
absl::StatusOr<std::optional<DataPlace>> LogsPlaceOfSite(const Site& site);

// Checks whether what the job names exists on this machine: its code, its inputs' paths, and a
// script that the command plainly runs from the code (`python train.py`). NotFound holds all
// errors, with lines: `job.yml:9: input "data": /x/y does not exist`. Says nothing when it cannot
// be sure; a script without which the job may go on (`python a.py || true`) is told to `warnings`.
// Code in `sent` (JobSpec::AllCode) has come from elsewhere and is not looked for here.
absl::Status CheckPaths(const JobSpec& spec, std::vector<std::string>& warnings,
                        const std::set<std::string>& sent = {});

// Returns the faults of a job and of the files that it names, a line each, from whatever has found
// them: each once, by file and line; the job file first, then its components in the order in which
// they are named, then other files as they come; last what tells no place. OK and the code stay.
absl::Status InFileOrder(const absl::Status& faults, const JobSpec& job);

// Returns what is wrong with the path of an input, by its type; "" if nothing is, or none is on
// this disk.
std::string PathFault(const Input& input);

}  // namespace tutti::spec
