// What a job is: the types that every reader of a job file fills and every other room works with.
// Plain values; a JobSpec that came out of ReadJobFile has passed every check that needs no
// machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tutti::spec {

enum class DistributionKind { kNone, kMpi, kPyTorch, kTensorFlow };

// How many processes a job has and which launcher conventions they expect (SPEC J5).
struct Distribution {
  DistributionKind kind = DistributionKind::kNone;
  int process_count_per_instance = 1;  // mpi, pytorch; tensorflow and none have 1
  int worker_count = 0;                // tensorflow
  int parameter_server_count = 0;      // tensorflow
};

struct Input {
  std::string type = "uri_folder";  // uri_folder, uri_file, string, number, integer, boolean
  std::string path;                 // for uri_*; absolute once the client has read the file
  std::string mode = "ro_mount";    // ro_mount, download, direct
  std::string literal;              // for the other types, as it is put into the command
  int line = 0;                     // in the job file, for errors
};

struct Output {
  std::string type = "uri_folder";
  std::string mode = "rw_mount";
};

enum class Priority { kLow, kNormal, kHigh };

struct JobSpec {
  std::string file_name;  // of the job file, as errors name it
  std::string name;       // letters, digits, "-" and "_"; empty: the service gives one
  std::string display_name;
  std::string experiment_name;
  std::string description;
  std::map<std::string, std::string> tags;
  std::string command;   // with ${{…}} expressions unexpanded; never empty
  int command_line = 0;  // where "command" is in the job file
  std::string code;      // folder or file, absolute; empty: no code
  int code_line = 0;
  std::string environment;  // "host"
  std::map<std::string, std::string> environment_variables;
  std::string compute;  // "local"
  std::map<std::string, Input> inputs;
  std::map<std::string, Output> outputs;
  Distribution distribution;
  int instance_count = 1;
  absl::Duration timeout = absl::InfiniteDuration();  // limits.timeout: wall time from Running on
  Priority priority = Priority::kNormal;              // queue_settings.priority

  // Processes over all nodes.
  int WorldSize() const {
    return distribution.kind == DistributionKind::kTensorFlow
               ? distribution.worker_count + distribution.parameter_server_count
               : instance_count * distribution.process_count_per_instance;
  }
};

}  // namespace tutti::spec
