// Decides how a rank's command line is executed: by bash, or directly where bash would only replace
// itself by one program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "platform/launch/environment/process_environment.h"

namespace tutti::launch {

struct RankCommand {
  std::vector<std::string> arguments;
  Variables environment;
};

// Returns `bash -c COMMAND`; or, where that would do no more than replace itself by one program
// with words that stand as they are, that program, with what bash adds to its environment. A shell
// takes a millisecond or two to begin. `work` is where it will run. Thread-safe.
RankCommand RankCommandOf(const std::string& command, Variables environment,
                          const std::filesystem::path& work);

}  // namespace tutti::launch
