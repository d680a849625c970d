// Writes the text of the job file of a script. Internal to this folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "platform/client/script/environment_choice.h"

namespace tutti::client {

// An input of the job.
struct ScriptInput {
  std::string name, type, path;
};

// All that the job file says.
struct ScriptChoice {
  std::string command, display_name, distribution;
  std::filesystem::path code, base;
  EnvironmentChoice environment;
  std::vector<ScriptInput> inputs;
  int nodes = 1, processes = 1, gpus = 0;
  std::string compute;
};

// Returns the job file that lies in `job.base`.
std::string TextOf(const ScriptChoice& job);

}  // namespace tutti::client
