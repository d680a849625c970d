#include "spec/file/plain_script.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace tutti::spec {
namespace {

using Words = std::vector<absl::string_view>;

// Commands that make no files in the working folder: what follows them finds it as the code is.
constexpr std::array<absl::string_view, 12> kHarmless = {"pip",      "pip3", "echo", "export",
                                                         "set",      "ls",   "env",  "nvidia-smi",
                                                         "hostname", "date", "true", "pwd"};

// A simple command of a longer one.
struct Part {
  std::string text;
  std::string end;      // what stands behind it: ";" (or a line's end), "&", "|", "&&", "||"
  bool writes = false;  // a file, or runs something else for one of its words
};

// Cuts a command at the operators that stand outside of quotes and substitutions.
class PartReader {
 public:
  explicit PartReader(absl::string_view text) : text_(text) {}

  std::vector<Part> Read() {
    std::vector<Part> parts(1);
    for (; at_ < text_.size(); ++at_) {
      SkipComment();
      const std::string end = Operator();
      if (!end.empty()) {
        parts.back().end = end;
        parts.emplace_back();
      } else if (at_ < text_.size()) {
        TakeInto(parts.back());
      }
    }
    return parts;
  }

  // Whether all that was opened was closed, without which the parts may be others.
  bool is_complete() const { return quote_ == 0 && depth_ == 0 && !in_backquotes_; }

 private:
  absl::string_view rest() const { return text_.substr(std::min(at_, text_.size())); }
  char before() const { return at_ == 0 ? ' ' : text_[at_ - 1]; }

  void SkipComment() {
    if (!is_complete() || !absl::StartsWith(rest(), "#")) return;
    if (absl::StrContains(" \t\n;&|", before()))
      at_ = std::min(text_.find('\n', at_), text_.size());
  }

  // The operator here, past all but its last character; or "".
  std::string Operator() {
    if (!is_complete()) return "";
    for (const absl::string_view two : {"&&", "||", "|&"}) {
      if (!absl::StartsWith(rest(), two)) continue;
      ++at_;
      return two == "|&" ? "|" : std::string(two);
    }
    const char c = rest().empty() ? ' ' : rest()[0];
    if (c == '\n' || c == ';') return ";";
    const bool redirects = before() == '>' || before() == '<' || absl::StartsWith(rest(), "&>");
    return (c == '&' || c == '|') && !redirects ? std::string(1, c) : "";
  }

  // One character.
  void TakeInto(Part& part) {
    const char c = text_[at_];
    const bool expands = quote_ != '\'';
    if (c == '\\' && expands && at_ + 1 < text_.size()) {
      part.text += text_[at_++];
    } else if (c == quote_) {
      quote_ = 0;
    } else if (quote_ == 0 && (c == '\'' || c == '"')) {
      quote_ = c;
    } else if (c == '`' && expands) {
      in_backquotes_ = !in_backquotes_;
      part.writes = true;
    } else if (c == '(' && expands && (depth_ > 0 || before() == '$')) {
      ++depth_;
      part.writes = true;
    } else if (c == ')' && expands && depth_ > 0) {
      --depth_;
    } else if (c == '>' && quote_ == 0) {
      part.writes |= MakesFile(text_.substr(at_ + 1));
    }
    part.text += text_[at_];
  }

  // Returns whether a redirection to `target`, the text behind ">", makes a file: "&1" and
  // "/dev/null" do not.
  static bool MakesFile(absl::string_view target) {
    if (target.size() > 1 && target[0] == '&') {
      return !absl::ascii_isdigit(static_cast<unsigned char>(target[1]));
    }
    return !absl::StartsWith(absl::StripLeadingAsciiWhitespace(target), "/dev/");
  }

  const absl::string_view text_;
  size_t at_ = 0;
  char quote_ = 0;
  int depth_ = 0;  // of parentheses within "$("
  bool in_backquotes_ = false;
};

// Says what a part's failure means for those behind it, as `set` has it.
struct ShellOptions {
  bool errexit = false;
  bool pipefail = false;
};

void Set(const Words& words, ShellOptions& options) {
  for (size_t i = 1; i < words.size(); ++i) {
    const bool on = words[i][0] != '+';
    const bool is_letters = words[i][0] == '-' || words[i][0] == '+';
    const bool is_name = words[i - 1].back() == 'o';
    if (is_letters ? absl::StrContains(words[i], 'e') : words[i] == "errexit") {
      options.errexit = is_letters ? on : words[i - 1][0] != '+';
    }
    if (is_name && words[i] == "pipefail") options.pipefail = words[i - 1][0] != '+';
  }
}

bool IsInterpreter(absl::string_view word) {
  const absl::string_view name = word.substr(word.rfind('/') + 1);
  if (name == "bash" || name == "sh") return true;
  if (!absl::StartsWith(name, "python")) return false;
  return name.substr(6).find_first_not_of("0123456789.") == absl::string_view::npos;
}

Words WordsBehindAssignments(absl::string_view command) {
  Words words = absl::StrSplit(command, absl::ByAnyChar(" \t\n\r"), absl::SkipEmpty());
  const auto is_assignment = [](absl::string_view word) { return absl::StrContains(word, '='); };
  words.erase(words.begin(), std::find_if_not(words.begin(), words.end(), is_assignment));
  return words;
}

// The script that one simple command runs, or "". `knows` turns false when the command may change
// what the folder holds.
absl::string_view ScriptOf(const Words& words, bool& knows) {
  if (words.empty()) return "";
  if (absl::StartsWith(words[0], "./") && IsScript(words[0])) return words[0];
  if (!IsInterpreter(words[0])) {
    knows = std::find(kHarmless.begin(), kHarmless.end(), words[0]) != kHarmless.end() &&
            (words[0] != "env" || words.size() == 1);  // else it runs a program
    return "";
  }
  for (size_t i = 1; i < words.size(); ++i) {
    if (IsScript(words[i])) return words[i];
    if (words[i][0] != '-' || words[i] == "-m" || words[i] == "-c") break;
  }
  knows = words.size() > 1 && words[1] == "-m";  // python -m pip …
  return "";
}

bool IsBlank(const Part& part) { return absl::StripAsciiWhitespace(part.text).empty(); }

// Whether a failure of the part `at` is that of the whole command.
bool Decides(const std::vector<Part>& parts, size_t at, const ShellOptions& options) {
  while (parts[at].end == "|") {
    if (!options.pipefail) return false;
    ++at;
  }
  if (parts[at].end == ";" && options.errexit) return true;
  while (parts[at].end == "&&" || parts[at].end == "|") ++at;  // what an && leaves out
  const auto rest = parts.begin() + static_cast<std::ptrdiff_t>(at) + 1;
  return parts[at].end.empty() || (parts[at].end == ";" && std::all_of(rest, parts.end(), IsBlank));
}

}  // namespace

bool IsScript(absl::string_view word) {
  return (absl::EndsWith(word, ".py") || absl::EndsWith(word, ".sh")) && word[0] != '/' &&
         word.find_first_of("$*?[]{}~`'\"\\<>|&()") == absl::string_view::npos;
}

PlainScript PlainScriptOf(absl::string_view written) {
  const std::string command = absl::StrReplaceAll(written, {{"\\\n", " "}});
  PartReader reader(command);
  const std::vector<Part> parts = reader.Read();
  ShellOptions options;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Words words = WordsBehindAssignments(parts[i].text);
    bool knows = !parts[i].writes;
    const absl::string_view script = ScriptOf(words, knows);
    if (!script.empty()) {
      return {std::string(script), reader.is_complete() && Decides(parts, i, options)};
    }
    // The part behind "||" may write the script, or may never run.
    if (!knows || parts[i].writes || parts[i].end == "||") break;
    if (!words.empty() && words[0] == "set") Set(words, options);
  }
  return {};
}

}  // namespace tutti::spec
