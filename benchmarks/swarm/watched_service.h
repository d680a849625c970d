// A real service in a process of its own, over an engine of N nodes that starts nothing, and what
// the kernel says of that process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/time/time.h"
#include "spec/types/service_endpoint.h"

namespace tutti::swarm {

class WatchedService {
 public:
  // Its state is kept in `folder`. Ends the program if it cannot be started.
  WatchedService(const std::filesystem::path& folder, int nodes);
  ~WatchedService();

  tutti::spec::Endpoint for_users() const;
  tutti::spec::Endpoint for_launchers() const;  // without a token
  // What is known of the allocation of the job that was placed first. AwaitAllocation waits for it.
  struct Allocation {
    std::string id, launcher_token;
    uint64_t plan_bytes = 0;  // of all of its launch plans, and how long writing them took
    double plan_seconds = 0;
  };
  Allocation AwaitAllocation() const;

  int Threads() const;
  double ResidentMegabytes() const;
  absl::Duration ProcessorTime() const;

 private:
  std::string StatusLine(const std::string& name) const;

  const std::filesystem::path folder_;
  pid_t pid_ = -1;
};

}  // namespace tutti::swarm
