// A real service in a process of its own, over an engine of N nodes that starts nothing, and what
// the kernel says of that process. That engine is its compute "local", or "swarm" beside virtual
// nodes of this machine.
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
  struct Options {
    std::filesystem::path folder;  // of what the engine is given
    std::filesystem::path home;    // of the service's state
    int nodes = 0;                 // that start nothing
    int local_nodes = 0;           // virtual ones, by the program tutti beside this one; 0: none
  };
  // Ends the program if it cannot be started.
  explicit WatchedService(const Options& options);
  ~WatchedService() { Kill(); }

  // As a machine that fails takes it. Then Begin starts another one on the same folder, which
  // answers once HasBegun. Not beside other threads of this process.
  void Kill();
  void Begin();
  bool HasBegun();

  // Returns the compute of the nodes that start nothing.
  const char* compute() const { return options_.local_nodes > 0 ? "swarm" : "local"; }

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

  const Options options_;
  pid_t pid_ = -1;
  int ready_ = -1;  // readable once it answers
};

}  // namespace tutti::swarm
