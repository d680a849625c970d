#include "spec/environment/python_version.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::spec {
namespace {

using Numbers = std::vector<int>;

// The longer ones first.
constexpr std::array<absl::string_view, 9> kOperators = {
    "===", "==", "!=", "<=", ">=", "~=", "<", ">", "="};
constexpr char kDigits[] = "0123456789.";
constexpr int kMostMinors = 50;  // that a range is tried with
constexpr int kLastPatch = 9999;
constexpr size_t kLongest = 96;  // of what conda compares with

// One comparison of a list: ">=3.8", "3.8.*", "=3.8=build".
struct Clause {
  absl::string_view compare;  // of kOperators; "" if there is none
  absl::string_view number;   // "3.8"
  bool has_star = false;
};

Clause ClauseOf(absl::string_view text) {
  Clause clause;
  text = absl::StripAsciiWhitespace(text);
  for (const absl::string_view one : kOperators) {
    if (!absl::StartsWith(text, one)) continue;
    clause.compare = one;
    break;
  }
  text = absl::StripAsciiWhitespace(text.substr(clause.compare.size()));
  const size_t end = std::min(text.find_first_not_of(kDigits), text.size());
  clause.has_star = absl::StartsWith(text.substr(end), "*");
  clause.number = absl::StripSuffix(text.substr(0, end), ".");
  return clause;
}

// Nothing for what is no version.
std::optional<Numbers> NumbersOf(absl::string_view version) {
  Numbers numbers;
  for (const absl::string_view part : absl::StrSplit(version, '.')) {
    int number = 0;
    if (!absl::SimpleAtoi(part, &number) || number < 0) return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

// Negative, zero or positive; "3.8" is "3.8.0".
int Compare(Numbers left, Numbers right) {
  const size_t size = std::max(left.size(), right.size());
  left.resize(size);
  right.resize(size);
  return left < right ? -1 : (left == right ? 0 : 1);
}

bool BeginsWith(Numbers version, const Numbers& head) {
  version.resize(std::max(version.size(), head.size()));
  return std::equal(head.begin(), head.end(), version.begin());
}

bool Satisfies(const Numbers& version, const Clause& clause) {
  const std::optional<Numbers> asked = NumbersOf(clause.number);
  if (!asked) return false;
  const int order = Compare(version, *asked);
  const bool equal = clause.has_star ? BeginsWith(version, *asked) : order == 0;
  if (clause.compare == "!=") return !equal;
  if (clause.compare == "<") return order < 0;
  if (clause.compare == "<=") return order <= 0;
  if (clause.compare == ">") return order > 0;
  if (clause.compare == ">=") return order >= 0;
  if (clause.compare != "~=") return equal;
  return order >= 0 && BeginsWith(version, Numbers(asked->begin(), asked->end() - 1));
}

std::vector<Clause> ClausesOf(absl::string_view range) {
  std::vector<Clause> clauses;
  for (const absl::string_view text : absl::StrSplit(range, ',', absl::SkipWhitespace())) {
    clauses.push_back(ClauseOf(text));
  }
  return clauses;
}

bool Satisfies(const Numbers& version, const std::vector<Clause>& clauses) {
  return std::all_of(clauses.begin(), clauses.end(),
                     [&](const Clause& clause) { return Satisfies(version, clause); });
}

// Returns the patches at which an answer may change.
std::set<int> PatchesOf(const std::vector<Clause>& clauses) {
  std::set<int> patches = {0, kLastPatch};
  for (const Clause& clause : clauses) {
    const std::optional<Numbers> numbers = NumbersOf(clause.number);
    if (!numbers || numbers->size() < 3 || (*numbers)[2] >= kLastPatch) continue;
    patches.insert({(*numbers)[2], (*numbers)[2] + 1});
  }
  return patches;
}

std::vector<int> MinorsThatFit(int major, const std::vector<Clause>& clauses) {
  const std::set<int> patches = PatchesOf(clauses);
  std::vector<int> minors;
  for (int minor = 0; minor < kMostMinors; ++minor) {
    if (std::any_of(patches.begin(), patches.end(), [&](int patch) {
          return Satisfies({major, minor, patch}, clauses);
        })) {
      minors.push_back(minor);
    }
  }
  return minors;
}

// "3.8.13" is "3.8", "3" stays.
std::string MinorOf(absl::string_view number) {
  const std::vector<absl::string_view> parts = absl::StrSplit(number, '.', absl::SkipEmpty());
  return absl::StrJoin(parts.begin(), parts.begin() + std::min<std::ptrdiff_t>(2, parts.size()),
                       ".");
}

bool IsEqual(const Clause& clause) {
  return clause.compare.empty() || clause.compare == "=" || clause.compare == "==";
}

// As pip writes it; "" if it leaves all.
std::string PipClause(const Clause& clause) {
  if (clause.number.empty()) return "";
  if (IsEqual(clause)) return absl::StrCat("==", clause.number, ".*");
  const bool has_point = absl::StrContains(clause.number, '.');
  const absl::string_view compare = clause.compare == "~=" && !has_point ? ">=" : clause.compare;
  return absl::StrCat(compare, clause.number,
                      clause.has_star && clause.compare == "!=" ? ".*" : "");
}

// Returns the Python for one alternative of a conda version (the part between two "|").
std::string PythonOfClauses(const std::vector<Clause>& clauses) {
  std::vector<std::string> parts;
  for (const Clause& clause : clauses) {
    const bool is_minor = absl::StrContains(clause.number, '.');
    if (IsEqual(clause) && (is_minor || clauses.size() == 1)) return MinorOf(clause.number);
    std::string part = PipClause(clause);
    if (!part.empty()) parts.push_back(std::move(part));
  }
  const std::string range = absl::StrJoin(parts, ",");
  const std::vector<Clause> read = ClausesOf(range);
  const std::vector<int> minors = MinorsThatFit(3, read);
  if (minors.size() == 1) return absl::StrCat("3.", minors.front());
  return minors.empty() && !MinorsThatFit(2, read).empty() ? "2" : range;
}

// The newest minor of 3 that fits; -1 if none does.
int NewestOf(const std::string& python) {
  const std::string range = IsPythonRange(python) ? python : absl::StrCat("==", python, ".*");
  const std::vector<int> minors = MinorsThatFit(3, ClausesOf(range));
  return minors.empty() ? -1 : minors.back();
}

}  // namespace

std::string PythonOfConda(absl::string_view version) {
  if (version.size() > kLongest) return "";
  std::string newest;
  for (const absl::string_view one : absl::StrSplit(version, '|')) {
    std::string python = PythonOfClauses(ClausesOf(one));
    if (python.empty()) return "";
    if (newest.empty() || NewestOf(python) > NewestOf(newest)) newest = std::move(python);
  }
  return newest;
}

bool IsPythonRange(absl::string_view python) {
  return python.find_first_of("<>=!~") != absl::string_view::npos;
}

bool AllowsVersion(absl::string_view range, absl::string_view version) {
  const std::optional<Numbers> numbers = NumbersOf(version);
  return numbers && Satisfies(*numbers, ClausesOf(range));
}

bool IsTooOldPython(absl::string_view version) {
  const std::optional<Numbers> numbers = NumbersOf(version);
  return numbers && numbers->size() > 1 && Compare(*numbers, {3, 7}) < 0;  // which uv refuses
}

}  // namespace tutti::spec
