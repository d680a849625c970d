#include "spec/install_failure.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "spec/requirement.h"

namespace tutti::spec {
namespace {

bool IsPartOfName(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; }

bool NamesPackage(absl::string_view text, absl::string_view name) {
  for (size_t at = text.find(name); at != absl::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool begins = at == 0 || !IsPartOfName(text[at - 1]);
    const bool ends = end == text.size() || !IsPartOfName(text[end]) ||
                      (text[end] == '.' && (end + 1 == text.size() || text[end + 1] == ' '));
    if (begins && ends && !name.empty()) return true;
  }
  return false;
}

}  // namespace

std::string ExplainFailure(const Environment& environment, const std::string& complaint) {
  std::string lower = absl::AsciiStrToLower(complaint);
  for (char& c : lower) {
    if (c == '_') c = '-';
  }
  std::vector<std::string> blamed;
  for (const Requirement& package : environment.packages) {
    if (NamesPackage(lower, PackageName(package.text))) {
      blamed.push_back(absl::StrCat(package.place, ": ", package.text));
    }
  }
  const std::string what =
      blamed.empty() ? absl::StrCat("environment ", environment.name) : absl::StrJoin(blamed, ", ");
  return absl::StrCat(what, " cannot be had: ", InOneLine(complaint));
}

std::string InOneLine(absl::string_view text) {
  const std::string plain = absl::StrReplaceAll(
      text, {{"×", " "}, {"╰─▶", " "}, {"├─▶", " "}, {"│", " "}, {"hint:", " hint:"}});
  std::string line =
      absl::StrJoin(absl::StrSplit(plain, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty()), " ");
  if (line.size() > 400) line = absl::StrCat(line.substr(0, 400), "…");
  return line;
}

}  // namespace tutti::spec
