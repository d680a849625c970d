#include "spec/text/mapping_reader.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/closest.h"
#include "spec/text/azure_keys.h"

namespace tutti::spec {
namespace {

constexpr size_t kMostShown = 80;  // of a word from the file, in a message

std::string Quoted(absl::string_view word) {
  return absl::StrCat("\"", word.substr(0, kMostShown), word.size() > kMostShown ? "…" : "", "\"");
}

std::string Shown(const YamlNode& node) {
  return node.kind == YamlNode::Kind::kScalar ? Quoted(node.scalar) : std::string(KindName(node));
}

}  // namespace

MappingReader::MappingReader(const YamlNode& node, absl::string_view what, Diagnostics& diagnostics,
                             AzureSchemaPath schema_path)
    : node_(node), diagnostics_(diagnostics), schema_path_(schema_path) {
  if (node.kind != YamlNode::Kind::kMapping) {
    diagnostics.Error(node.line, absl::StrCat(what, " must be a mapping, but is ", Shown(node)));
  }
}

const YamlNode::Entry* MappingReader::Take(absl::string_view key) {
  known_.push_back(key);
  return FindValue(node_, key);
}

const YamlNode::Entry* MappingReader::Text(absl::string_view key, std::string& value) {
  const YamlNode::Entry* entry = Take(key);
  if (entry == nullptr) return nullptr;
  if (entry->value->kind != YamlNode::Kind::kScalar) {
    diagnostics_.Error(entry->line,
                       absl::StrCat(key, " must be text, but is ", KindName(*entry->value)));
    return nullptr;
  }
  value = entry->value->scalar;
  return entry;
}

const YamlNode::Entry* MappingReader::Choice(absl::string_view key,
                                             std::span<const absl::string_view> choices,
                                             std::string& value) {
  std::string text;
  const YamlNode::Entry* entry = Text(key, text);
  if (entry == nullptr) return nullptr;
  const std::string lower = absl::AsciiStrToLower(text);
  if (std::find(choices.begin(), choices.end(), lower) == choices.end()) {
    diagnostics_.Error(
        entry->line,
        absl::StrCat(key, " must be one of ", absl::StrJoin(choices, ", "), ", but is ",
                     Quoted(text), base::DidYouMean(lower.substr(0, kMostShown), choices)));
    return nullptr;
  }
  value = lower;
  return entry;
}

const YamlNode::Entry* MappingReader::Count(absl::string_view key, int most, int& value) {
  const YamlNode::Entry* entry = Take(key);
  if (entry == nullptr) return nullptr;
  int64_t number = 0;
  const bool is_count = entry->value->kind == YamlNode::Kind::kScalar &&
                        absl::SimpleAtoi(entry->value->scalar, &number) && number >= 1 &&
                        number <= most;
  if (!is_count) {
    diagnostics_.Error(entry->line, absl::StrCat(key, " must be a whole number from 1 to ", most,
                                                 ", but is ", Shown(*entry->value)));
    return nullptr;
  }
  value = static_cast<int>(number);
  return entry;
}

void MappingReader::TextMap(absl::string_view key, std::map<std::string, std::string>& value) {
  const YamlNode::Entry* entry = Take(key);
  if (entry == nullptr) return;
  if (entry->value->kind != YamlNode::Kind::kMapping) {
    diagnostics_.Error(entry->line,
                       absl::StrCat(key, " must be a mapping, but is ", Shown(*entry->value)));
    return;
  }
  for (const YamlNode::Entry& item : entry->value->entries) {
    const YamlNode::Kind kind = item.value->kind;
    if (kind != YamlNode::Kind::kScalar && kind != YamlNode::Kind::kNull) {
      diagnostics_.Error(item.line, absl::StrCat(key, ".", item.key.substr(0, kMostShown),
                                                 " must be text, but is ", KindName(*item.value)));
    } else {
      value[item.key] = item.value->scalar;
    }
  }
}

const YamlNode::Entry* MappingReader::Flag(absl::string_view key, bool& value) {
  static constexpr absl::string_view kFlags[] = {"true", "false"};
  std::string text;
  const YamlNode::Entry* entry = Choice(key, kFlags, text);
  if (entry != nullptr) value = text == "true";
  return entry;
}

const YamlNode::Entry* MappingReader::Texts(absl::string_view key,
                                            std::vector<std::string>& value) {
  const YamlNode::Entry* entry = Take(key);
  if (entry == nullptr) return nullptr;
  if (entry->value->kind == YamlNode::Kind::kScalar) {
    value = {entry->value->scalar};
    return entry;
  }
  std::vector<std::string> texts;
  for (const auto& item : entry->value->items) {
    if (item->kind == YamlNode::Kind::kScalar) texts.push_back(item->scalar);
  }
  if (entry->value->kind != YamlNode::Kind::kSequence ||
      texts.size() != entry->value->items.size()) {
    diagnostics_.Error(entry->line, absl::StrCat(key, " must be a list of texts"));
    return nullptr;
  }
  value = std::move(texts);
  return entry;
}

std::vector<std::string> MappingReader::Finish() {
  std::vector<std::string> meant;
  for (const YamlNode::Entry& entry : node_.entries) {
    const bool is_taken = std::find(known_.begin(), known_.end(), entry.key) != known_.end();
    if (!is_taken) ReportUntaken(entry, meant);
  }
  return meant;
}

void MappingReader::ReportUntaken(const YamlNode::Entry& entry, std::vector<std::string>& meant) {
  const AzureKey* const key =
      schema_path_.schema.empty()
          ? nullptr
          : FindAzureKey(schema_path_.schema, absl::StrCat(schema_path_.prefix, entry.key));
  if (key != nullptr && key->outcome == KeyOutcome::kRefused) {
    diagnostics_.Error(entry.line, absl::StrCat(Quoted(entry.key), ": ", key->note));
    return;
  }
  if (key != nullptr && key->outcome == KeyOutcome::kNoEffect) {
    if (entry.value->kind == YamlNode::Kind::kNull) return;
    diagnostics_.Warning(entry.line,
                         absl::StrCat(Quoted(entry.key), " has no effect: ", key->note));
    return;
  }
  if (key != nullptr) {
    diagnostics_.Error(entry.line,
                       absl::StrCat(Quoted(entry.key), " does not go with the keys beside it"));
    return;
  }
  std::vector<absl::string_view> candidates = known_;
  if (!schema_path_.schema.empty()) {
    for (const absl::string_view other : AzureKeysBelow(schema_path_.schema, schema_path_.prefix)) {
      candidates.push_back(other);
    }
  }
  const absl::string_view shown = absl::string_view(entry.key).substr(0, kMostShown);
  meant.push_back(base::Closest(shown, candidates));
  const std::string unknown =
      absl::StrCat("unknown key ", Quoted(entry.key), base::DidYouMean(shown, candidates));
  // Azure ML's client takes any key in a pipeline's settings, and published files rely on it.
  if (schema_path_.schema == "pipeline" && schema_path_.prefix == "settings.") {
    diagnostics_.Warning(entry.line, absl::StrCat(unknown, ": it has no effect"));
  } else {
    diagnostics_.Error(entry.line, unknown);
  }
}

}  // namespace tutti::spec
