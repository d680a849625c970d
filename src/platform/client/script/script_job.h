// Makes the job file that a script or a command stands for (docs/scripts.md, decision 048). What
// was not said is chosen, and what was chosen is told. Nothing is sent or run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tutti::client {

// ScriptOptions is what the command line says; a value that is empty or 0 was not given.
struct ScriptOptions {
  int nodes = 0;
  int processes_per_node = 0;
  int gpus = 0;                        // of each node
  std::string distribution;            // its type
  std::string environment;             // host, a name, or a file that says what one holds
  std::string compute;                 // of `tutti init`
  std::string code;                    // the folder that is sent
  std::vector<std::string> inputs;     // "NAME=PATH": a file, a folder or an address
  std::vector<std::string> arguments;  // of the program
  std::string save;                    // where to write the job file
  bool sends_other_code = false;       // --set code=… says what to send

  // Returns an option that was given, as "--nodes"; "" if none was.
  std::string Given() const;
};

struct ScriptJob {
  std::string text;                  // of the job file
  std::filesystem::path directory;   // what its relative paths count from
  std::vector<std::string> remarks;  // what was chosen, one line each
  std::string program;               // of a script: its command without arguments
};

// Makes the job of a script: `script` is one by KindOfScript. Its code, where it runs, is its
// project's root, or the folder that it lies in if that shows none. The job file is written for
// `options.save`'s folder or, without that, the code's.
// InvalidArgument names every option that makes no sense, or a folder that is too large to be sent.
absl::StatusOr<ScriptJob> JobOfScript(const std::filesystem::path& script,
                                      const ScriptOptions& options);

// Returns the same of a shell command that runs in `code`.
absl::StatusOr<ScriptJob> JobOfCommand(const std::string& command,
                                       const std::filesystem::path& code,
                                       const ScriptOptions& options);

// Checks whether a job file can be made: AlreadyExists if there is another file of that name,
// since nothing is overwritten; InvalidArgument without its folder.
absl::Status CheckIsFree(const std::filesystem::path& file);

// Checks the same; a file that has that very text may be there.
absl::Status CheckCanSave(const std::string& text, const std::filesystem::path& file);

// Writes it, if it can be.
absl::Status SaveJob(const std::string& text, const std::filesystem::path& file);

}  // namespace tutti::client
