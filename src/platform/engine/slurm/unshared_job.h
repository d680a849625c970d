// Writes the batch script of a job whose nodes share no folder with the service: all they need
// comes with the script or from the service. On each node it
//
//   makes   NODE_FOLDER/tutti-UID/ID/ALLOCATION/I, which only the user can read, for the launcher
//   gets    the launcher: a snapshot of the service's (program_snapshot.h), fetched by the first
//           node over HTTP or HTTPS and spread by sbcast, or fetched by each node where that fails
//   runs    the launcher, and, if that died, a second one that delivers what it left
//   removes the folder once all is delivered.
//
// It asks of a node bash with /dev/tcp, coreutils and tar, Slurm's commands, and where the service
// speaks TLS the openssl program, 1.1.0 or later. The script holds the token of its
// allocation; it is kept in shell variables and files of mode 0600, and comes to the other nodes by
// srun's standard input.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "platform/engine/slurm/batch_job.h"
#include "spec/types/service_endpoint.h"

namespace tutti::engine {

struct UnsharedJob {
  std::string comment;      // of BatchJob
  std::string node_folder;  // on each node's own disk
  std::string id;           // tells services of one user apart
  spec::Endpoint service;
  std::string program;               // the snapshot that the launcher comes in, "sha256:…"
  std::string storage_program = {};  // likewise tutti-storage; empty: there is none
};

// Returns the nodes' folder of the user, NODE_FOLDER/tutti-UID.
std::string HomeOnNodes(const std::string& node_folder);

// Writes the script; InvalidArgument if bare nodes cannot get to the service. The plans' folders
// are replaced.
absl::StatusOr<std::string> UnsharedBatchScript(const spec::SlurmSettings& settings,
                                                const Allocation& allocation,
                                                const UnsharedJob& job);

struct NodesGaveUp {
  std::string why;        // in plain words, with the remedy; empty: they did not
  bool may_pass = false;  // another attempt may do better
};

// Returns why the script gave up on a node that could not get to the service, by its exit code.
NodesGaveUp WhyNodesGaveUp(int exit_code);

}  // namespace tutti::engine
