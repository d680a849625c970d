// Checks, before a job queues, that the programs that it needs are there: a misspelt one is said at
// once, and not by a failure when the job's turn has come. Thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "spec/types/job.h"

namespace tutti::service {

// Says what this machine adds to the environment of a job's processes.
struct MachineFacts {
  std::map<std::string, std::string> own;  // the environment of this process
  std::string program_folder;              // where tutti's programs are
};

// Checks commands; InvalidArgument names the programs that a job, or one below it, needs and that
// are not found where `facts` are those of the nodes too: those that its environment's files have
// from conda and, if its environment is the machine's, the first of its command and Ray's. Where
// the job may run all the same (on the nodes of a cluster, after another step, with what follows in
// the command) a warning is added instead. A command or variable that no Linux would take is
// refused, too.
absl::Status CheckCommand(const spec::JobSpec& job, const MachineFacts& facts,
                          std::vector<std::string>& warnings);

}  // namespace tutti::service
