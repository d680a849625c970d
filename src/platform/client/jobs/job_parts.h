// Lists a job and the jobs below it with the folder that each one's files go to, for `tutti job
// download --all` and for what `tutti run` offers to download at a job's end.
#pragma once

#include <string>
#include <vector>

#include "platform/client/connection/service_client.h"
#include "platform/client/connection/views.h"

namespace tutti::client {

struct JobPart {
  std::string job;
  std::string folder;      // "" of the job itself; "steps/train", "steps/tune/trials/trial-1"
  bool completed = false;  // of a child
};

// Returns the job first, then its children that were started, each followed by its own. A step that
// took an earlier job's results has them itself.
std::vector<JobPart> PartsOf(const JobView& job);

// Which files there are to bring.
struct KeptFiles {
  bool outputs = false, logs = false;  // of the job itself
  bool of_children = false;            // of any of them
  bool of_failed = false;              // of the child that failed first
  bool of_completed = false;           // outputs of one that completed, where another failed
};

// Asks the service which files there are; of children, up to the first that has a file. What it
// does not answer is taken to be there: then the download says what is wrong.
KeptFiles KeptFilesOf(ServiceClient& service, const JobView& job);

// Returns the first job that failed among a job's children and theirs; "" if none did.
std::string FailedJob(const JobView& job);

}  // namespace tutti::client
