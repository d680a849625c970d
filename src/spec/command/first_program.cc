#include "spec/command/first_program.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace tutti::spec {
namespace {

// Bash's builtins and keywords (`compgen -bk`), which are in no folder.
constexpr absl::string_view kOfTheShell[] = {
    "alias",   "bg",       "bind",    "break",     "builtin",  "caller",  "case",    "cd",
    "command", "compgen",  "compopt", "complete",  "continue", "coproc",  "declare", "dirs",
    "disown",  "do",       "done",    "echo",      "elif",     "else",    "enable",  "esac",
    "eval",    "exec",     "exit",    "export",    "false",    "fc",      "fg",      "fi",
    "for",     "function", "getopts", "hash",      "help",     "history", "if",      "in",
    "jobs",    "kill",     "let",     "local",     "logout",   "mapfile", "popd",    "printf",
    "pushd",   "pwd",      "read",    "readarray", "readonly", "return",  "select",  "set",
    "shift",   "shopt",    "source",  "suspend",   "test",     "then",    "time",    "times",
    "trap",    "true",     "type",    "typeset",   "ulimit",   "umask",   "unalias", "unset",
    "until",   "wait",     "while",   "."};

// After one of these the next command is found as if it were the first.
constexpr absl::string_view kPassedPrograms[] = {"cd", "echo", "export", "set"};

template <typename Words>
bool IsAmong(absl::string_view word, const Words& words) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

bool IsName(absl::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("._+-", c);
  });
}

// "A=1", whatever the value is.
bool IsAssignment(absl::string_view word) {
  const size_t equals = word.find('=');
  return equals != absl::string_view::npos && equals > 0 &&
         std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

// Reads simple commands up to the first thing that takes a shell to understand: a substitution, a
// comment behind a command, a pipe, a redirection of input.
class FirstProgramReader {
 public:
  explicit FirstProgramReader(absl::string_view text) : text_(text) {}

  // The words of the next simple command, as they are written.
  std::vector<std::string> Words() {
    SkipEmptyLines();
    std::vector<std::string> words;
    std::string word;
    for (; at_ < text_.size() && !IsEnd(); ++at_) {
      const char c = text_[at_];
      const bool blank = quote_ == 0 && (c == ' ' || c == '\t');
      if (blank && !word.empty()) words.push_back(std::exchange(word, ""));
      if (!blank) TakeInto(word);
    }
    if (!word.empty()) words.push_back(std::move(word));
    return words;
  }

  bool AtEnd() const { return at_ == text_.size(); }
  char next() const { return AtEnd() ? '\0' : text_[at_]; }
  bool TakeAnd() { return Take("&&"); }
  bool TakeSequence() { return TakeAnd() || Take(";") || Take("\n"); }

 private:
  bool Follows(absl::string_view what) const { return absl::StartsWith(text_.substr(at_), what); }

  bool Take(absl::string_view what) {
    if (!Follows(what)) return false;
    at_ += what.size();
    return true;
  }

  void SkipEmptyLines() {
    while (!AtEnd() && (absl::ascii_isspace(text_[at_]) || text_[at_] == '#')) {
      at_ = text_[at_] == '#' ? std::min(text_.find('\n', at_), text_.size()) : at_ + 1;
    }
  }

  bool IsEnd() const {
    // ${{…}} is a value by the time that a shell sees it.
    if (Follows("`") || Follows("$(") || (Follows("${") && !Follows("${{"))) return quote_ != '\'';
    if (quote_ != 0) return false;
    const char before = at_ == 0 ? ' ' : text_[at_ - 1];
    if (text_[at_] == '#') return before == ' ' || before == '\t';
    if (text_[at_] == '&') return before != '>' && !Follows("&>");  // 2>&1, &>log
    return absl::StrContains(";|\n()<", text_[at_]) || Follows("$'");
  }

  // One character, or an expression.
  void TakeInto(std::string& word) {
    const char c = text_[at_];
    if (c == quote_) {
      quote_ = 0;
    } else if (quote_ == 0 && (c == '\'' || c == '"')) {
      quote_ = c;
    }
    size_t size = c == '\\' && quote_ != '\'' ? 2 : 1;
    if (const size_t close = text_.find("}}", at_); Follows("${{") && close != text_.npos) {
      size = close + 2 - at_;
    }
    const absl::string_view taken = text_.substr(at_, size);
    absl::StrAppend(&word, taken);
    at_ += taken.size() - 1;
  }

  const absl::string_view text_;
  size_t at_ = 0;
  char quote_ = 0;
};

bool SetsPath(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [](absl::string_view word) {
    word.remove_prefix(std::min(word.find_first_not_of("'\""), word.size()));
    return absl::StartsWith(word, "PATH=") || absl::StartsWith(word, "PATH+=");
  });
}

// Whether a failure of what was read last is that of the whole command.
bool IsLastOrFollowedByAnds(FirstProgramReader& reader) {
  while (reader.TakeAnd()) reader.Words();
  return reader.AtEnd();
}

}  // namespace

FirstProgram FirstProgramOf(absl::string_view command) {
  const std::string joined = absl::StrReplaceAll(command, {{"\\\n", " "}});
  FirstProgramReader reader(absl::StripTrailingAsciiWhitespace(joined));
  while (!reader.AtEnd()) {
    std::vector<std::string> words = reader.Words();
    if (SetsPath(words)) return {};
    words.erase(words.begin(), std::find_if_not(words.begin(), words.end(), IsAssignment));
    if (!words.empty() && !IsAmong(words[0], kPassedPrograms)) {
      const bool is_function = reader.next() == '(';
      if (!IsName(words[0]) || IsAmong(words[0], kOfTheShell) || is_function) return {};
      return {words[0], IsLastOrFollowedByAnds(reader)};
    }
    if (!reader.TakeSequence()) return {};
  }
  return {};
}

std::vector<std::string> PlainWordsOf(absl::string_view command) {
  const std::string joined = absl::StrReplaceAll(command, {{"\\\n", ""}});
  const absl::string_view line = absl::StripAsciiWhitespace(joined);
  const bool is_plain = std::all_of(line.begin(), line.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("._+-/=:,@% \t", c);
  });
  std::vector<std::string> words =
      absl::StrSplit(is_plain ? line : "", absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.empty()) return {};
  const absl::string_view program = words[0];
  const bool is_name = absl::StrContains(program, '/') || IsName(program);
  if (!is_name || absl::StrContains(program, '=') || IsAmong(program, kOfTheShell)) return {};
  return words;
}

}  // namespace tutti::spec
