#include "platform/launch/diagnosis/printed_lines.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::launch {
namespace {

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// "[rank1]: text" -> "1", with "text" left in `line`; "" if it does not begin so.
std::string TakeRank(std::string& line) {
  absl::string_view rest = line;
  if (!absl::ConsumePrefix(&rest, "[rank")) return "";
  const std::string rank(rest.begin(), std::find_if_not(rest.begin(), rest.end(), IsDigit));
  rest.remove_prefix(rank.size());
  if (!absl::ConsumePrefix(&rest, "]:")) return "";
  absl::ConsumePrefix(&rest, " ");
  line = std::string(rest);
  return rank;
}

// Without terminal colours, and only the last state of a line that was drawn over. With what a
// shell quotes of a script, "set: -\r: invalid option", a CR is as visible as the shell has others.
std::string Plain(absl::string_view raw) {
  const std::string shown = absl::StrReplaceAll(absl::StripTrailingAsciiWhitespace(raw),
                                                {{"\r:", "\\r:"}, {"\r'", "\\r'"}});
  absl::string_view line = shown;
  if (const size_t redrawn = line.rfind('\r'); redrawn != absl::string_view::npos) {
    line = line.substr(redrawn + 1);
  }
  std::string plain;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      for (i += 2; i < line.size() && !absl::ascii_isalpha(static_cast<unsigned char>(line[i]));)
        ++i;
    } else if (static_cast<unsigned char>(line[i]) >= ' ' || line[i] == '\t') {
      plain += line[i];
    }
  }
  return plain;
}

// Whether `line` begins with `form`, where "0" stands for any digit, "A" for any capital and each
// other character for itself.
bool HasForm(absl::string_view line, absl::string_view form) {
  if (line.size() < form.size()) return false;
  return std::equal(form.begin(), form.end(), line.begin(), [](char wanted, char c) {
    if (wanted == '0') return IsDigit(c);
    return wanted == 'A' ? absl::ascii_isupper(static_cast<unsigned char>(c)) : wanted == c;
  });
}

bool IsOfAWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// "2026-11-20 12:00:00 root ERROR no data"
bool HasWord(absl::string_view line, absl::string_view word) {
  for (size_t at = line.find(word); at != line.npos; at = line.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !IsOfAWord(line[at - 1]);
    if (begins && (end == line.size() || !IsOfAWord(line[end]))) return true;
  }
  return false;
}

bool EndsWithANumber(absl::string_view line) {
  const size_t last = line.find_last_of(" =:") + 1;  // npos + 1 is 0
  return last < line.size() && IsDigit(line[last]);
}

// "error reading data: …", "failed to open …": what a program says of itself, where "error rate:
// 0.12" is one of its results.
bool TellsWhatItFailedAt(absl::string_view line) {
  std::string lower = absl::AsciiStrToLower(absl::StripAsciiWhitespace(line));
  absl::string_view rest = lower;
  if (absl::ConsumePrefix(&rest, "error ")) {
    const absl::string_view word = rest.substr(0, rest.find(' '));
    return absl::EndsWith(word, "ing") || word == "in" || word == "while" || word == "during";
  }
  return absl::StartsWith(rest, "failed to ") || absl::StartsWith(rest, "could not ") ||
         absl::StartsWith(rest, "cannot ") || absl::StartsWith(rest, "unable to ");
}

}  // namespace

Printed LinesOf(absl::string_view text) {
  Printed printed;
  std::vector<std::string> ranks;  // whose lines `printed.ranks` are
  for (const absl::string_view raw : absl::StrSplit(text, '\n')) {
    std::string line = Plain(raw);
    const std::string rank = TakeRank(line);
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    printed.lines.push_back(line);
    const auto known = std::find(ranks.begin(), ranks.end(), rank);
    const size_t place = static_cast<size_t>(known - ranks.begin());
    if (!rank.empty() && known == ranks.end()) {
      ranks.push_back(rank);
      printed.ranks.emplace_back();
    }
    (rank.empty() ? printed.others : printed.ranks[place]).push_back(std::move(line));
  }
  return printed;
}

bool LooksLikeException(absl::string_view line) {
  const absl::string_view name = line.substr(0, line.find(':'));
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) return false;
  const bool is_name = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '.';
  });
  const absl::string_view last = name.substr(name.rfind('.') + 1);
  return is_name && absl::ascii_isupper(static_cast<unsigned char>(last.empty() ? 'x' : last[0]));
}

bool BeginsAnew(absl::string_view line) {
  static constexpr absl::string_view kForms[] = {
      "A0000 00:",            // glog: "W1120 12:00:00.000000 71 api.py:702] "
      "[A0000 ",              // c10: "[W1120 12:00:00.000000 socket.cpp:764] "
      "[A ",         "[A] ",  // c10, older
      "0000-00-00",           // logging's own, and TensorFlow's
      "[0000-00-00",          // DeepSpeed's
      "wandb:",               // what Weights & Biases says as a program ends
      "INFO",        "DEBUG",  "WARNING",     "WARN", "[INFO",
      "[WARN",       "bash: ", "/bin/bash: ", "sh: ", "/bin/sh: "};
  return std::any_of(std::begin(kForms), std::end(kForms),
                     [&](absl::string_view form) { return HasForm(line, form); });
}

bool IsOfAnotherProgram(absl::string_view line) {
  const size_t colon = line.find(": ");
  if (colon == absl::string_view::npos || colon == 0 || !SaysError(line)) return false;
  const absl::string_view name = line.substr(0, colon);
  if (absl::StrContains(name, ".so")) return false;  // a library, as dlopen begins its message
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) ||
           absl::StrContains("._-+/", static_cast<char>(c));
  });
}

bool IsALoggedError(absl::string_view line) {
  if (!absl::ConsumePrefix(&line, "ERROR:") && !absl::ConsumePrefix(&line, "CRITICAL:")) {
    return false;
  }
  const size_t end = line.find(':');
  return end != absl::string_view::npos && end > 0 && line.find(' ') > end;
}

bool IsAWarning(absl::string_view line) {
  // pip says what it has passed over before what it fails at.
  if (absl::StartsWith(line, "ERROR: Ignored the following ")) return true;
  return absl::StrContains(absl::AsciiStrToLower(line), "warning");
}

bool SaysError(absl::string_view line) {
  static constexpr absl::string_view kMarks[] = {"error:",
                                                 "error ",
                                                 "errors ",
                                                 "fatal",
                                                 "cannot ",
                                                 "can't ",
                                                 "could not ",
                                                 "couldn't ",
                                                 "unable to ",
                                                 "failed",
                                                 "failure",
                                                 "not found",
                                                 "no such file",
                                                 "no such host",
                                                 "unbound variable",
                                                 "assertion",
                                                 "denied",
                                                 "out of memory",
                                                 "segmentation fault",
                                                 "killed",
                                                 "aborted",
                                                 "syntax error",
                                                 "refused",
                                                 "timed out",
                                                 "no space left",
                                                 "read-only file system",
                                                 "quota exceeded",
                                                 "unexpected end",
                                                 "undefined reference",
                                                 "bad interpreter",
                                                 "core dumped",
                                                 "***"};
  if (IsOfAStarter(line) || IsAWarning(line)) return false;
  const std::string lower = absl::AsciiStrToLower(line);
  return std::any_of(std::begin(kMarks), std::end(kMarks),
                     [&](absl::string_view mark) { return absl::StrContains(lower, mark); });
}

bool SaysFatal(absl::string_view line) {
  return (HasWord(line, "FATAL") || HasWord(line, "CRITICAL")) && !IsAWarning(line) &&
         !IsOfAStarter(line);
}

bool SaysErrorAmongResults(absl::string_view line) {
  if (IsAWarning(line) || IsOfAStarter(line)) return false;
  if (HasWord(line, "ERROR") || SaysFatal(line)) return true;
  const bool of_itself = absl::StartsWithIgnoreCase(line, "error:") ||
                         absl::StartsWithIgnoreCase(line, "fatal") || IsOfAnotherProgram(line) ||
                         TellsWhatItFailedAt(line);
  return of_itself && !EndsWithANumber(line);
}

bool IsOfAStarter(absl::string_view line) {
  return absl::StrContains(line, "torch.distributed.elastic.multiprocessing") ||
         absl::StrContains(line, "torch/distributed/elastic/") ||
         absl::StrContains(line, "] failed (exitcode: ") ||
         absl::StartsWith(line, "subprocess.CalledProcessError");
}

}  // namespace tutti::launch
