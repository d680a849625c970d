#include "spec/batchai/batch_ai_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::spec {
namespace {

constexpr size_t kEscapeLength = 6;  // \uXXXX
constexpr int64_t kMostOfAUnit = 10'000'000;

// Adds the number before `unit`, taken from the front of `text`; it may have a fraction.
bool TakeUnit(absl::string_view& text, char unit, absl::Duration one, absl::Duration& sum) {
  const size_t digits = text.find_first_not_of("0123456789.");
  if (digits == 0 || digits == absl::string_view::npos || text[digits] != unit) return false;
  double value = 0;
  if (!absl::SimpleAtod(text.substr(0, digits), &value) || value > kMostOfAUnit) return false;
  sum += value * one;
  text.remove_prefix(digits + 1);
  return true;
}

std::optional<absl::Duration> ReadIso8601(absl::string_view text) {
  absl::Duration sum;
  bool any = TakeUnit(text, 'W', absl::Hours(24 * 7), sum);
  any |= TakeUnit(text, 'D', absl::Hours(24), sum);
  if (absl::ConsumePrefix(&text, "T")) {
    any |= TakeUnit(text, 'H', absl::Hours(1), sum);
    any |= TakeUnit(text, 'M', absl::Minutes(1), sum);
    any |= TakeUnit(text, 'S', absl::Seconds(1), sum);
  }
  if (!any || !text.empty()) return std::nullopt;
  return sum;
}

// The number of "\uXXXX" at the front of `text`; nothing of other text.
std::optional<uint32_t> EscapedUnit(absl::string_view text) {
  constexpr size_t kDigits = 4;
  uint32_t unit = 0;
  if (!absl::ConsumePrefix(&text, "\\u") || text.size() < kDigits) return std::nullopt;
  for (const char digit : text.substr(0, kDigits)) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(digit))) return std::nullopt;
  }
  if (!absl::SimpleHexAtoi(text.substr(0, kDigits), &unit)) return std::nullopt;
  return unit;
}

// The character beyond 16 bits that JSON escapes as two halves, in UTF-8; "" if there is none.
std::string EscapedPair(absl::string_view text) {
  const auto high = EscapedUnit(text.substr(0, kEscapeLength));
  const auto low = EscapedUnit(text.substr(std::min(text.size(), kEscapeLength)));
  if (!high || !low || *high >> 10 != 0xD800 >> 10 || *low >> 10 != 0xDC00 >> 10) return "";
  const uint32_t code = 0x10000 + ((*high & 0x3FF) << 10) + (*low & 0x3FF);
  return {static_cast<char>(0xF0 | (code >> 18)), static_cast<char>(0x80 | ((code >> 12) & 0x3F)),
          static_cast<char>(0x80 | ((code >> 6) & 0x3F)), static_cast<char>(0x80 | (code & 0x3F))};
}

}  // namespace

absl::StatusOr<YamlPointer> ParseJsonWithLines(absl::string_view text,
                                               absl::string_view file_name) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");
  std::string yaml;
  yaml.reserve(text.size());
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_text && text[i] == '\\') {
      if (const std::string pair = EscapedPair(text.substr(i)); !pair.empty()) {
        yaml += pair;
        i += 2 * kEscapeLength - 1;
        continue;
      }
      yaml += text[i++];
      if (i < text.size()) yaml += text[i];
      continue;
    }
    if (text[i] == '"') in_text = !in_text;
    yaml += !in_text && text[i] == '\t' ? ' ' : text[i];
  }
  return ParseYaml(yaml, file_name);
}

const YamlNode* PropertiesOf(const YamlNode& root, absl::string_view kind,
                             Diagnostics& diagnostics) {
  if (FindValue(root, "title") != nullptr && FindValue(root, "definitions") != nullptr) {
    diagnostics.Error(root.line, absl::StrCat("this is a schema, which says what the file of a ",
                                              kind, " may have: name a file that it describes"));
    return nullptr;
  }
  MappingReader reader(root, absl::StrCat("a ", kind, "'s file of Batch AI"), diagnostics);
  for (const absl::string_view key :
       {"$schema", "id", "name", "type", "apiVersion", "location", "tags"}) {
    reader.Take(key);
  }
  const YamlNode::Entry* const properties = reader.Take("properties");
  if (root.kind == YamlNode::Kind::kMapping) reader.Finish();
  if (properties != nullptr && properties->value->kind == YamlNode::Kind::kMapping) {
    return properties->value.get();
  }
  diagnostics.Error(
      properties == nullptr ? root.line : properties->line,
      absl::StrCat("\"properties\" must say what the ", kind, " is, as in Batch AI's schema"));
  return nullptr;
}

std::vector<YamlPointer> TakeList(MappingReader& reader, absl::string_view key,
                                  Diagnostics& diagnostics) {
  const YamlNode::Entry* const entry = reader.Take(key);
  if (entry == nullptr) return {};
  if (entry->value->kind == YamlNode::Kind::kSequence) return entry->value->items;
  diagnostics.Error(entry->line,
                    absl::StrCat(key, " must be a list, but is ", KindName(*entry->value)));
  return {};
}

void TakeWithoutEffect(MappingReader& reader, absl::string_view key, absl::string_view why,
                       Diagnostics& diagnostics) {
  const YamlNode::Entry* const entry = reader.Take(key);
  if (entry == nullptr) return;
  diagnostics.Warning(entry->line, absl::StrCat("\"", key, "\" has no effect: ", why));
}

const YamlNode::Entry* TakeNeeded(MappingReader& reader, const YamlNode& node,
                                  absl::string_view what, absl::string_view key, std::string& value,
                                  Diagnostics& diagnostics) {
  const YamlNode::Entry* const entry = reader.Text(key, value);
  if (entry != nullptr && !value.empty()) return entry;
  // A value that is no text has been reported.
  if (entry != nullptr || FindValue(node, key) == nullptr) {
    diagnostics.Error(node.line, absl::StrCat(what, ": the key \"", key, "\" is missing"));
  }
  return nullptr;
}

std::string NameOfResource(absl::string_view id) {
  id = absl::StripSuffix(absl::StripAsciiWhitespace(id), "/");
  return std::string(id.substr(id.rfind('/') + 1));
}

std::string TakeResource(MappingReader& reader, absl::string_view key, Diagnostics& diagnostics) {
  const YamlNode::Entry* const entry = reader.Take(key);
  if (entry == nullptr) return "";
  std::string id;
  if (entry->value->kind == YamlNode::Kind::kScalar) {
    id = entry->value->scalar;
  } else {
    MappingReader resource(*entry->value, key, diagnostics);
    resource.Text("id", id);
    resource.Finish();
  }
  return NameOfResource(id);
}

std::optional<absl::Duration> ReadTimeSpan(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (absl::ConsumePrefix(&text, "P")) return ReadIso8601(text);
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  if (parts.size() != 3) return std::nullopt;
  const std::vector<absl::string_view> first = absl::StrSplit(parts[0], '.');
  int days = 0, hours = 0, minutes = 0;
  double seconds = 0;
  if (first.size() > 2 || !absl::SimpleAtoi(first.back(), &hours) || hours < 0 || hours > 1 << 20 ||
      (first.size() == 2 && (!absl::SimpleAtoi(first[0], &days) || days < 0 || days > 1 << 20)) ||
      !absl::SimpleAtoi(parts[1], &minutes) || minutes < 0 || minutes > 59 ||
      !absl::SimpleAtod(parts[2], &seconds) || !(seconds >= 0 && seconds < 60)) {
    return std::nullopt;
  }
  return absl::Hours(24 * days + hours) + absl::Minutes(minutes) + absl::Seconds(seconds);
}

std::optional<std::string> CleanPath(absl::string_view path) {
  std::vector<absl::string_view> parts;
  for (const absl::string_view part : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    if (part == "..") return std::nullopt;
    if (part != ".") parts.push_back(part);
  }
  return absl::StrJoin(parts, "/");
}

std::string EncodedPath(absl::string_view path) {
  return absl::StrReplaceAll(path, {{"%", "%25"}, {" ", "%20"}, {"?", "%3F"}, {"#", "%23"}});
}

YamlPointer QuotedNode(absl::string_view text) {
  auto node = std::make_shared<YamlNode>(*TextNode(text));
  node->quoted = true;
  return node;
}

void AddEntry(std::vector<YamlNode::Entry>& entries, absl::string_view key, YamlPointer value) {
  entries.push_back({std::string(key), 1, std::move(value), ""});
}

}  // namespace tutti::spec
