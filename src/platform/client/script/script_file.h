// Inspects the file of a program that a user wants to run on nodes: how it is started, and which
// framework would make one training of its processes. Nothing is run. Functions are thread-safe.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::client {

// kNone: it is read as a job file, which scripts with #SBATCH lines are, too.
enum class ScriptKind { kNone, kPython, kShell, kProgram };

// Tells a script by the end of its name (.py, .sh), its first line ("#!…") or its first bytes
// (ELF). Returns kNone for what is no regular file. One that cannot be read goes by its name alone.
ScriptKind KindOfScript(const std::filesystem::path& file);

// Returns what starts it in `folder`, in which it lies at any depth, as a shell reads it.
// InvalidArgument for a program that its owner may not execute.
absl::StatusOr<std::string> CommandOf(const std::filesystem::path& script,
                                      const std::filesystem::path& folder, ScriptKind kind);

struct DistributionGuess {
  std::string distribution;  // its type; "": no framework is known
  std::string package;       // by which it is known
};

// Guesses by the packages that a Python program's own text imports.
DistributionGuess GuessDistribution(absl::string_view python);

// Returns `text` as one word of a shell's.
std::string ShellWord(absl::string_view text);

}  // namespace tutti::client
