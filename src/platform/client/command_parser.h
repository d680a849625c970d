// CommandParser turns the words of a command line into the command to run. CLI11 is behind this, so
// that one file pays for it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "platform/client/command_line.h"
#include "platform/client/commands/commands.h"
#include "platform/client/completion.h"

namespace tutti::client {

struct ParsedCommand {
  std::string home;  // --home as given, or ""
  // Help or version: already complete; print it and end with kOk.
  std::string text;
  std::function<absl::StatusOr<ExitCode>(Context&)> run;
};

class CommandParser {
 public:
  // `wiring` outlives the commands that are parsed.
  explicit CommandParser(const Wiring& wiring);
  ~CommandParser();

  // Parses the arguments, without the program's name. InvalidArgument says what is wrong and which
  // --help has the answer. Once per parser.
  absl::StatusOr<ParsedCommand> Parse(const std::vector<std::string>& arguments);

  // Returns the commands and options as they are parsed, for the shells.
  CommandTree Tree() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti::client
