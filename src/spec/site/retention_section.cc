#include "spec/site/retention_section.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/text/binary_size.h"
#include "spec/text/mapping_reader.h"

namespace tutti::spec {
namespace {

constexpr double kMostHours = 24 * 365 * 1000;
constexpr std::array<std::pair<absl::string_view, double>, 3> kHours = {
    {{"h", 1}, {"d", 24}, {"w", 24 * 7}}};

// Parses a duration such as "30d" to hours; returns nothing if the text is no duration, or too long
// a one.
std::optional<double> ReadHours(absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(absl::StripAsciiWhitespace(text));
  const size_t end = lower.find_first_not_of("0123456789.");
  if (end == 0 || end == std::string::npos) return std::nullopt;
  const absl::string_view unit = absl::StripAsciiWhitespace(absl::string_view(lower).substr(end));
  double number = 0;
  for (const auto& [name, factor] : kHours) {
    const bool fits = unit == name && absl::SimpleAtod(lower.substr(0, end), &number);
    if (fits && number * factor <= kMostHours) return number * factor;
  }
  return std::nullopt;
}

class LimitReader {
 public:
  explicit LimitReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void Read(const YamlNode::Entry& entry, KeepFor& keep) {
    if (entry.value->kind == YamlNode::Kind::kScalar && entry.value->scalar == "never") {
      keep = {};
      return;
    }
    const std::string what = absl::StrCat("retention.", entry.key);
    if (entry.value->kind != YamlNode::Kind::kMapping) {
      diagnostics_.Error(entry.line,
                         absl::StrCat(what,
                                      " must be {age: 30d, size: 200GB}, one of the two, "
                                      "or never"));
      return;
    }
    keep = {};
    MappingReader reader(*entry.value, what, diagnostics_);
    std::string age, size;
    const YamlNode::Entry* const of_age = reader.Text("age", age);
    const YamlNode::Entry* const of_size = reader.Text("size", size);
    if (of_age != nullptr) ReadAge(what, *of_age, age, keep);
    if (of_size != nullptr) ReadSize(what, *of_size, size, keep);
    reader.Finish();
  }

 private:
  void ReadAge(const std::string& what, const YamlNode::Entry& at, const std::string& text,
               KeepFor& keep) {
    const auto hours = ReadHours(text);
    if (hours) keep.age = absl::Hours(*hours);
    if (!hours) Wrong(what, "age", at, text, "time: write 12h, 30d or 8w");
  }
  void ReadSize(const std::string& what, const YamlNode::Entry& at, const std::string& text,
                KeepFor& keep) {
    const auto bytes = base::ReadSize(text);
    if (bytes) keep.size = *bytes;
    if (!bytes) Wrong(what, "size", at, text, "size: write 500MB, 200GB, 200GiB or 2TB");
  }
  void Wrong(const std::string& what, absl::string_view key, const YamlNode::Entry& at,
             const std::string& text, absl::string_view remedy) {
    diagnostics_.Error(
        at.line, absl::StrCat(what, ".", key, ": \"", text.substr(0, 80), "\" is no ", remedy));
  }

  Diagnostics& diagnostics_;
};

}  // namespace

void ReadRetention(const YamlNode::Entry& section, Diagnostics& diagnostics, Retention& retention) {
  MappingReader reader(*section.value, "retention", diagnostics);
  LimitReader limits(diagnostics);
  for (const auto& [name, keep] :
       {std::pair("snapshots", &retention.snapshots), std::pair("data", &retention.data),
        std::pair("environments", &retention.environments), std::pair("images", &retention.images),
        std::pair("logs", &retention.logs), std::pair("results", &retention.results)}) {
    if (const YamlNode::Entry* const entry = reader.Take(name)) limits.Read(*entry, *keep);
  }
  reader.Finish();
}

}  // namespace tutti::spec
