// ReadRequirements and ReadPipLine of package_files.h.
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "spec/data/data_map.h"
#include "spec/data/local_path.h"
#include "spec/environment/package_files.h"
#include "spec/site/requirement.h"

namespace tutti::spec {
namespace {

constexpr size_t kMostPackages = 2000;

// pip's options that say where packages come from; uv takes the same words.
struct SourceOption {
  absl::string_view shortened, name;
  bool is_place;  // a path, unless it is an address
};
constexpr std::array<SourceOption, 3> kSources = {
    {{"-i", "--index-url", false}, {"", "--extra-index-url", false}, {"-f", "--find-links", true}}};

// The option's value if `line` is that option: "--find-links=X", "--find-links X", "-f X".
bool TakeOption(absl::string_view line, absl::string_view shortened, absl::string_view name,
                std::string& value) {
  if (!absl::ConsumePrefix(&line, name) &&
      (shortened.empty() || !absl::ConsumePrefix(&line, shortened))) {
    return false;
  }
  if (!line.empty() && line[0] != '=' && !absl::ascii_isspace(line[0])) return false;
  absl::ConsumePrefix(&line, "=");
  value = std::string(absl::StripAsciiWhitespace(line));
  return true;
}

// Without the comment, which begins at the line's start or behind a blank.
absl::string_view WithoutComment(absl::string_view line) {
  for (size_t at = line.find('#'); at != absl::string_view::npos; at = line.find('#', at + 1)) {
    if (at == 0 || absl::ascii_isspace(line[at - 1])) return line.substr(0, at);
  }
  return line;
}

std::string AbsolutePlace(absl::string_view location, const NamedFile& file) {
  if (IsAddress(location)) return std::string(location);
  return (file.path.parent_path() / std::string(location)).lexically_normal().string();
}

std::string ShownPlace(const std::string& location, const NamedFile& file) {
  if (IsAddress(location)) return location;
  return (std::filesystem::path(file.shown).parent_path() / location).lexically_normal().string();
}

}  // namespace

NamedFile FileBeside(absl::string_view path, const ReadContext& context) {
  const auto local = LocalPath(path, context.base);
  if (!local.ok()) return {std::string(path), std::string(path)};
  if (absl::StartsWith(path, "file:")) return {*local, *local};
  return {(context.shown_base / std::string(path)).lexically_normal().string(), *local};
}

void ReadPipLine(absl::string_view line, int number, const NamedFile& file,
                 const ReadContext& context, Environment& environment, Diagnostics& diagnostics) {
  if (absl::StrContains(line, '\n')) {  // a text of several lines in a YAML list
    for (const absl::string_view part : absl::StrSplit(line, '\n')) {
      ReadPipLine(part, number, file, context, environment, diagnostics);
    }
    return;
  }
  line = absl::StripAsciiWhitespace(WithoutComment(line));
  if (line.empty()) return;
  if (environment.packages.size() >= kMostPackages) {
    if (environment.packages.size() == kMostPackages) {
      diagnostics.Error(number, absl::StrCat("more than ", kMostPackages, " packages"));
      environment.packages.emplace_back();
    }
    return;
  }
  std::string value;
  for (const SourceOption& option : kSources) {
    if (!TakeOption(line, option.shortened, option.name, value)) continue;
    if (option.is_place) value = AbsolutePlace(value, file);
    environment.options.push_back(absl::StrCat(option.name, "=", value));
    return;
  }
  if (line == "--no-index" || line == "--pre") {
    environment.options.emplace_back(line == "--pre" ? "--prerelease=allow" : line);
    return;
  }
  if (TakeOption(line, "-r", "--requirement", value)) {
    const NamedFile other{ShownPlace(value, file), AbsolutePlace(value, file)};
    const auto text = context.Read(other.path);
    if (!text.ok()) {
      diagnostics.Error(number, absl::StrCat("-r ", value, ": ", text.status().message()));
      return;
    }
    Diagnostics inner(other.shown);
    ReadRequirements(*text, other, context, environment, inner);
    diagnostics.Add(number, inner);
    return;
  }
  if (absl::StartsWith(line, "-e") || absl::StartsWith(line, "--editable")) {
    diagnostics.Error(number,
                      "an editable install (-e) cannot be shared: name the package or its "
                      "folder without -e");
    return;
  }
  if (line[0] == '-') {
    diagnostics.Warning(number, absl::StrCat("\"", line.substr(0, 80),
                                             "\" has no effect: uv installs the packages"));
    return;
  }
  const bool is_path = line[0] == '/' || absl::StartsWith(line, "./") ||
                       absl::StartsWith(line, "../") || line == ".";
  environment.packages.push_back(
      RequirementOf(is_path ? AbsolutePlace(line, file) : std::string(line),
                    absl::StrCat(file.shown, ":", number), number, diagnostics));
}

void ReadRequirements(absl::string_view text, const NamedFile& file, const ReadContext& context,
                      Environment& environment, Diagnostics& diagnostics) {
  int number = 0, first = 1;
  std::string joined;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripTrailingAsciiWhitespace(line);
    if (joined.empty()) first = number;
    const bool continues = absl::ConsumeSuffix(&line, "\\");
    absl::StrAppend(&joined, line);
    if (continues) continue;
    ReadPipLine(joined, first, file, context, environment, diagnostics);
    joined.clear();
  }
  if (!joined.empty()) ReadPipLine(joined, first, file, context, environment, diagnostics);
}

}  // namespace tutti::spec
