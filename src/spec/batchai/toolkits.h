// Turns what each toolkit of Batch AI ran into the command and the distribution of a job file.
// Inside the room spec only. Pure functions; thread-safe.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "spec/text/diagnostics.h"
#include "spec/text/mapping_reader.h"

namespace tutti::spec {

// What begins a command that runs on the first of several nodes alone.
inline constexpr absl::string_view kOnFirstNode = "if [ \"$NODE_RANK\" = 0 ]; then\n";

// Describes what runs; texts are as the file has them, with paths on volumes.
struct ToolkitRun {
  std::string command;       // of each process
  std::string distribution;  // "mpi", "pytorch", "tensorflow"; empty: one process on each node
  int processes_per_node = 1;
  std::string backend;  // pyTorchSettings: what the script is to take; empty: it does not say
  int workers = 0, parameter_servers = 0;  // tensorflow
  int line = 1;                            // of what says it
};

// Reads the one `…Settings` of a job's properties. No command: an error has been told.
ToolkitRun ReadToolkit(MappingReader& properties, const YamlNode& node, int node_count,
                       Diagnostics& diagnostics);

}  // namespace tutti::spec
