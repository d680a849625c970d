// Says what differs between two jobs: their arguments, the keys of their job files as they were
// read, their code, and what was installed in their Pythons.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/client/connection/service_client.h"

namespace tutti::client {

// The result of a job that lists what was installed where it ran.
inline constexpr char kInstalledResult[] = "logs/environment.txt";

struct Installed {
  std::string python;                           // "3.11.2"
  std::string interpreter;                      // "/usr/bin/python3"; "": the job is an older one
  std::map<std::string, std::string> packages;  // versions by name
};
Installed ParseInstalled(absl::string_view text);
// Returns what the service has of it. NotFound: nothing, as of a job that has not ended or that ran
// no Python, or in an image.
absl::StatusOr<Installed> InstalledFor(ServiceClient& service, const std::string& job);

struct JobDifference {
  // "--lr 0.1 -> 0.01", "resources.instance_count 1 -> 2", "train.py +3 -1", "torch 2.3 -> 2.4".
  std::vector<std::string> arguments, keys, files, packages;
  std::string patch;               // of the code
  std::vector<std::string> notes;  // what cannot be told, and why
};

// Returns what differs of the keys of two jobs, each as the service has read it, as JSON: not where
// their files lie, nor their names. `arguments` gets what differs in the command, if that is in the
// values of its options alone.
std::vector<std::string> KeysThatDiffer(absl::string_view before, absl::string_view now,
                                        std::vector<std::string>& arguments);

// Compares job `before` with the later `now`. Code of more than `most_bytes` is not looked at.
absl::StatusOr<JobDifference> CompareJobs(ServiceClient& service, const std::string& before,
                                          const std::string& now, uint64_t most_bytes);

// Returns the last job of the script before `job`; NotFound if it is the first.
absl::StatusOr<std::string> FormerJob(ServiceClient& service, const std::string& job);

// Returns all of it in one line, of which `most` things are named: "--lr 0.1 -> 0.01; train.py +3
// -1; … and 2 more: tutti job diff J". 0: all.
std::string DifferenceLine(const JobDifference& difference, const std::string& job, size_t most);

}  // namespace tutti::client
