#include "platform/client/script/script_file.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/process/command.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

constexpr size_t kHead = 64 << 10;

// The first that is imported decides: who imports horovod also imports what it is used with.
constexpr std::pair<absl::string_view, absl::string_view> kFrameworks[] = {
    {"horovod", "mpi"},
    {"mpi4py", "mpi"},
    {"ray", "ray"},
    {"lightning", "pytorch"},
    {"pytorch_lightning", "pytorch"},
    {"torch", "pytorch"},
    {"accelerate", "pytorch"},
    {"deepspeed", "pytorch"},
    {"transformers", "pytorch"},
    {"tensorflow", "tensorflow"},
};

std::string Head(const fs::path& file) {
  std::string head(kHead, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(std::max<std::streamsize>(0, stream.gcount())));
  return head;
}

bool HasBatchLines(absl::string_view text) {
  return absl::StartsWith(text, "#SBATCH") || absl::StrContains(text, "\n#SBATCH");
}

// "a.b as c" is a.
std::string ImportedPackage(absl::string_view words) {
  words = absl::StripLeadingAsciiWhitespace(words);
  const size_t end = std::min(words.find_first_of(" \t.,;#\r"), words.size());
  return std::string(words.substr(0, end));
}

// Returns where the string that begins at `at` ends: behind its last quote, or at the end of the
// line or text where that is missing.
size_t EndOfString(absl::string_view python, size_t at) {
  const std::string three(3, python[at]);
  const bool is_long = python.substr(at, 3) == three;
  const absl::string_view close = is_long ? three : python.substr(at, 1);
  for (at += close.size(); at < python.size(); ++at) {
    if (python[at] == '\\') {
      ++at;
    } else if (absl::StartsWith(python.substr(at), close)) {
      return at + close.size();
    } else if (!is_long && python[at] == '\n') {
      return at;
    }
  }
  return python.size();
}

// Returns the code without strings and comments: what a docstring says is no code.
std::string CodeOf(absl::string_view python) {
  std::string code;
  for (size_t at = 0; at < python.size();) {
    if (python[at] == '"' || python[at] == '\'') {
      at = EndOfString(python, at);
      code += "\"\"";
    } else if (python[at] == '#') {
      at = std::min(python.find('\n', at), python.size());
    } else {
      code += python[at++];
    }
  }
  return code;
}

std::set<std::string> Imports(absl::string_view python) {
  std::set<std::string> packages;
  const std::string code = CodeOf(python);
  for (absl::string_view line : absl::StrSplit(code, '\n')) {
    line = absl::StripLeadingAsciiWhitespace(line);
    if (absl::ConsumePrefix(&line, "from ")) {
      packages.insert(ImportedPackage(line));
    } else if (absl::ConsumePrefix(&line, "import ")) {
      for (const absl::string_view part : absl::StrSplit(line, ',')) {
        packages.insert(ImportedPackage(part));
      }
    }
  }
  return packages;
}

}  // namespace

ScriptKind KindOfScript(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return ScriptKind::kNone;
  const std::string name = file.filename().string();
  const std::string head = Head(file);
  if (absl::StartsWith(head,
                       "\x7f"
                       "ELF"))
    return ScriptKind::kProgram;
  if (absl::EndsWith(name, ".py")) return ScriptKind::kPython;
  const bool has_interpreter = absl::StartsWith(head, "#!");
  if (!has_interpreter) {
    return absl::EndsWith(name, ".sh") ? ScriptKind::kShell : ScriptKind::kNone;
  }
  if (HasBatchLines(head)) return ScriptKind::kNone;
  const absl::string_view first = absl::string_view(head).substr(0, head.find('\n'));
  if (absl::StrContains(first, "python")) return ScriptKind::kPython;
  return absl::EndsWith(absl::StripTrailingAsciiWhitespace(first), "sh") ? ScriptKind::kShell
                                                                         : ScriptKind::kProgram;
}

std::string ShellWord(absl::string_view text) {
  const bool is_plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("%+,-./:=@_", c);
  });
  return is_plain ? std::string(text) : base::ShellQuoted(text);
}

absl::StatusOr<std::string> CommandOf(const fs::path& script, const fs::path& folder,
                                      ScriptKind kind) {
  const std::string name = script.lexically_relative(folder).string();
  // A name that begins with "-" would be an option.
  const std::string word = ShellWord(absl::StartsWith(name, "-") ? "./" + name : name);
  if (kind == ScriptKind::kPython) return absl::StrCat("python3 ", word);
  if (kind == ScriptKind::kShell) return absl::StrCat("bash ", word);
  if (::access(script.c_str(), X_OK) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        script.string(), " may not be executed: chmod +x ", ShellWord(script.string())));
  }
  return ShellWord("./" + name);
}

DistributionGuess GuessDistribution(absl::string_view python) {
  const std::set<std::string> packages = Imports(python);
  for (const auto& [package, distribution] : kFrameworks) {
    if (packages.contains(std::string(package))) {
      return {std::string(distribution), std::string(package)};
    }
  }
  return {};
}

}  // namespace tutti::client
