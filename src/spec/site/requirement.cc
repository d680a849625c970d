#include "spec/site/requirement.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "spec/site/site_defaults.h"

namespace tutti::spec {
namespace {

bool HasOnlyDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// "3.9.18" and "3.9" are "3.9"; with "py" before it "39" and "310" are 3.9 and 3.10 as well.
std::string PythonOfPart(absl::string_view part) {
  const bool is_python = absl::ConsumePrefix(&part, "python") || absl::ConsumePrefix(&part, "py");
  if (!absl::ConsumePrefix(&part, "3")) return "";
  if (part.empty()) return "3";
  const bool has_point = absl::ConsumePrefix(&part, ".");
  if (!has_point && !is_python) return "";
  const absl::string_view minor = part.substr(0, part.find('.'));
  return HasOnlyDigits(minor) && minor.size() <= 2 ? absl::StrCat("3.", minor) : "";
}

}  // namespace

Requirement RequirementOf(std::string text, std::string location, int line,
                          Diagnostics& diagnostics) {
  const bool is_path = absl::StartsWith(text, "/") || absl::StartsWith(text, ".");
  if (is_path || PackageName(text) != kHorovod) return {std::move(text), std::move(location)};
  if (!IsInBuiltInTable(location)) NoteWhichHorovodRuns(line, diagnostics);
  return {std::string(kHorovod), std::move(location)};
}

void NoteWhichHorovodRuns(int line, Diagnostics& diagnostics) {
  diagnostics.Warning(line,
                      "horovod is tutti's own here: Horovod's interface on tutti's collectives "
                      "(docs/horovod.md), whatever version is asked for");
}

std::string PackageName(absl::string_view requirement) {
  const size_t end = requirement.find_first_of(" [=<>!~;@(");
  requirement = absl::StripSuffix(absl::StripSuffix(requirement.substr(0, end), "/"), ".git");
  requirement = requirement.substr(requirement.rfind('/') + 1);
  std::string name = absl::AsciiStrToLower(requirement);
  for (char& c : name) {
    if (c == '_' || c == '.') c = '-';
  }
  return name;
}

std::string VersionsOf(absl::string_view requirement) {
  requirement = requirement.substr(0, requirement.find(" --"));  // --hash=…
  const size_t marker = std::min(requirement.find(';'), requirement.size());
  const size_t begin = requirement.find_first_of("@/=<>!~(");
  if (begin >= marker || requirement[begin] == '@' || requirement[begin] == '/') return "";
  return std::string(absl::StripAsciiWhitespace(requirement.substr(begin)));
}

std::string PinnedVersion(absl::string_view requirement) {
  const std::string versions = VersionsOf(requirement);
  absl::string_view version = absl::string_view(versions).substr(0, versions.find(';'));
  if (!absl::ConsumePrefix(&version, "===") && !absl::ConsumePrefix(&version, "==")) return "";
  if (absl::StrContains(version, ',')) return "";
  return std::string(absl::StripAsciiWhitespace(version));
}

std::string WithoutPins(absl::string_view requirement) {
  const size_t marker = std::min(requirement.find(';'), requirement.size());
  return absl::StrCat(absl::StrReplaceAll(requirement.substr(0, marker),
                                          {{"===", ">="}, {"==", ">="}, {"~=", ">="}, {".*", ""}}),
                      requirement.substr(marker));
}

bool IsOfBuiltInTable(const Requirement& requirement) {
  return IsInBuiltInTable(requirement.location);
}

std::string PythonInName(absl::string_view name) {
  std::string found;
  name = name.substr(0, name.find('@'));
  for (const absl::string_view part : absl::StrSplit(name, absl::ByAnyChar("-_:/"))) {
    const std::string python = PythonOfPart(part);
    if (python.size() > found.size()) found = python;
  }
  return found;
}

}  // namespace tutti::spec
