// Parses a Dockerfile into its stages and their instructions: continued lines and here-documents
// are joined, comments removed, names of stages and arguments of FROM resolved. Nothing is carried
// out. Inside the room spec only. Pure functions, safe on hostile text; thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::spec {

struct DockerInstruction {
  std::string word;  // in capitals: "RUN"
  std::string rest;  // on one line; the lines of a here-document are set off by ";"
  int line = 0;      // of its first, from 1
};

struct DockerStage {
  std::string name;            // behind AS, in lower case; or empty
  std::string image;           // as FROM names it; empty if it begins with another stage
  std::optional<size_t> base;  // that stage
  int line = 0;                // of FROM
  std::vector<DockerInstruction> instructions;
};

struct DockerStages {
  std::map<std::string, std::string> arguments;  // of ARG before the first FROM
  std::vector<DockerStage> stages;

  // Returns the stages that `last` is made of, each FROM the one before it. `last` is one of them.
  std::vector<size_t> ChainOf(size_t last) const;
  // Returns the stage before `before` that --from means: by name or number.
  std::optional<size_t> Find(absl::string_view from, size_t before) const;
};

DockerStages ReadDockerStages(absl::string_view text);

// Replaces $A, ${A} and ${A:-B} of the variables that are known; the shell's own are left.
std::string WithVariables(absl::string_view text,
                          const std::map<std::string, std::string>& variables);

using ShellWords = std::vector<std::string>;

// Returns the words of a shell command line; quotes are taken off. A list of commands is cut at
// each of `separators`: "&&", "||", ";" and "|".
std::vector<ShellWords> CommandsOf(absl::string_view line, absl::string_view separators = ";&|");

// Returns the words of an instruction that takes no shell's list: also of its form ["a", "b"].
ShellWords WordsOf(absl::string_view rest);

}  // namespace tutti::spec
