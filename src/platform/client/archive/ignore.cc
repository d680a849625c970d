#include "platform/client/archive/ignore.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::client {
namespace {

// One step of a pattern: what a character is compared with.
struct Step {
  enum Kind { kLiteral, kAny, kSet, kStar, kFolders } kind = kLiteral;
  char literal = 0;
  absl::string_view set;  // between the brackets
};

// A range is one of bytes: whether plain `char` has a sign differs between processors.
bool InRange(char first, char c, char last) {
  const auto byte = [](char value) { return static_cast<unsigned char>(value); };
  return byte(first) <= byte(c) && byte(c) <= byte(last);
}

bool InSet(absl::string_view set, char c) {
  const bool negated = !set.empty() && (set[0] == '!' || set[0] == '^');
  if (negated) set.remove_prefix(1);
  bool found = false;
  for (size_t i = 0; i < set.size(); ++i) {
    if (i + 2 < set.size() && set[i + 1] == '-') {
      found |= InRange(set[i], c, set[i + 2]);
      i += 2;
    } else {
      found |= set[i] == c;
    }
  }
  return found != negated;
}

bool Takes(const Step& step, char c) {
  switch (step.kind) {
    case Step::kLiteral:
      return c == step.literal;
    case Step::kAny:
      return c != '/';
    case Step::kSet:
      return c != '/' && InSet(step.set, c);
    case Step::kStar:
      return c != '/';
    case Step::kFolders:
      return true;
  }
  return false;
}

std::vector<Step> Compile(absl::string_view pattern) {
  std::vector<Step> steps;
  while (!pattern.empty()) {
    size_t length = 1;
    Step step{Step::kLiteral, pattern[0], {}};
    if (absl::StartsWith(pattern, "**")) {
      step.kind = Step::kFolders;
      length = 2;
    } else if (pattern[0] == '*') {
      step.kind = Step::kStar;
    } else if (pattern[0] == '?') {
      step.kind = Step::kAny;
    } else if (pattern[0] == '\\' && pattern.size() > 1) {
      step.literal = pattern[1];
      length = 2;
    } else if (const size_t end = pattern.find(']', 2);
               pattern[0] == '[' && end != absl::string_view::npos) {
      step.kind = Step::kSet;
      step.set = pattern.substr(1, end - 1);
      length = end + 1;
    }
    steps.push_back(step);
    pattern.remove_prefix(length);
  }
  return steps;
}

// Adds the places that are reachable without a further character. "**/" also stands for no folder
// at all, so where the text is at the start of a name the place after the slash is one of them.
void Close(const std::vector<Step>& steps, bool name_starts, std::vector<bool>& at) {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!at[i]) continue;
    if (steps[i].kind == Step::kStar || steps[i].kind == Step::kFolders) at[i + 1] = true;
    const bool slash_follows =
        i + 1 < steps.size() && steps[i + 1].kind == Step::kLiteral && steps[i + 1].literal == '/';
    if (steps[i].kind == Step::kFolders && slash_follows && name_starts) at[i + 2] = true;
  }
}

}  // namespace

// All places in the pattern that the text so far can have reached are followed at once.
bool MatchesPath(absl::string_view pattern, absl::string_view path) {
  const std::vector<Step> steps = Compile(pattern);
  std::vector<bool> at(steps.size() + 1, false);
  at[0] = true;
  Close(steps, true, at);
  for (const char c : path) {
    std::vector<bool> next(steps.size() + 1, false);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (!at[i] || !Takes(steps[i], c)) continue;
      const bool stays = steps[i].kind == Step::kStar || steps[i].kind == Step::kFolders;
      next[stays ? i : i + 1] = true;
    }
    at = std::move(next);
    Close(steps, c == '/', at);
  }
  return at[steps.size()];
}

IgnoreRules::IgnoreRules(absl::string_view text, Kind kind) : kind_(kind) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");  // editors of Windows begin a file so
  const bool is_docker = kind == Kind::kDocker;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripTrailingAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    if (is_docker) line = absl::StripLeadingAsciiWhitespace(line);
    Rule rule;
    rule.negated = absl::ConsumePrefix(&line, "!");
    rule.directories_only = absl::ConsumeSuffix(&line, "/") && !is_docker;
    const bool anchored = absl::ConsumePrefix(&line, "/") || is_docker;
    if (is_docker) absl::ConsumePrefix(&line, "./");
    if (line.empty()) continue;
    rule.any_depth = !anchored && line.find('/') == absl::string_view::npos;
    rule.pattern = std::string(line);
    rules_.push_back(std::move(rule));
  }
}

bool IgnoreRules::Ignores(absl::string_view path, bool is_directory) const {
  const size_t slash = path.rfind('/');
  const absl::string_view name = slash == absl::string_view::npos ? path : path.substr(slash + 1);
  const auto matches = [&](const Rule& rule) {
    if (rule.directories_only && !is_directory) return false;
    if (MatchesPath(rule.pattern, rule.any_depth ? name : path)) return true;
    if (kind_ == Kind::kGit) return false;  // who asks has not come below what is left out
    for (size_t end = path.find('/'); end != path.npos; end = path.find('/', end + 1)) {
      if (MatchesPath(rule.pattern, path.substr(0, end))) return true;
    }
    return false;
  };
  const auto decides = std::find_if(rules_.rbegin(), rules_.rend(), matches);
  return decides != rules_.rend() && !decides->negated;
}

bool IgnoreRules::TakesBackIn() const {
  return kind_ == Kind::kDocker &&
         std::any_of(rules_.begin(), rules_.end(), [](const Rule& rule) { return rule.negated; });
}

}  // namespace tutti::client
