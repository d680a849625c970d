// Reads a compute of type slurm from site.yml, and the settings of a job (docs/slurm/README.md).
// Plain values: what is empty or zero is left to Slurm.
#pragma once

#include <map>
#include <string>

#include "spec/types/slurm_settings.h"

namespace tutti::spec {

class Diagnostics;
struct YamlNode;

// How launchers reach the service. kUnsaid: by the folder if the service listens for its own
// machine only.
enum class Reach { kUnsaid, kService, kFolder };

struct SlurmCompute : SlurmSettings {
  std::string folder;  // absolute, the same here and on every node; or "node:…" (node_folder.h)
  Reach reach = Reach::kUnsaid;
  // Maps the name of a priority ("high") to the QOS of jobs that have it and name none themselves.
  std::map<std::string, std::string> priority_qos;
};

// Reads the settings; `what` names the mapping in errors.
SlurmSettings ReadSlurmSettings(const YamlNode& node, const std::string& what,
                                Diagnostics& diagnostics);

// `folder`: what relative paths count from.
SlurmCompute ReadSlurmCompute(const YamlNode& node, const std::string& name,
                              const std::string& folder, Diagnostics& diagnostics);

}  // namespace tutti::spec
