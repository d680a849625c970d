#include "spec/flow/search_space_reader.h"

#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "spec/text/mapping_reader.h"
#include "spec/types/enum_names.h"
#include "spec/types/identifier.h"

namespace tutti::spec {
namespace {

// Reads what the trials differ in.
class SearchSpaceReader {
 public:
  SearchSpaceReader(const YamlNode::Entry& entry, Diagnostics& diagnostics)
      : entry_(entry),
        what_(absl::StrCat("search_space \"", absl::string_view(entry.key).substr(0, 80), "\"")),
        diagnostics_(diagnostics),
        keys_(*entry.value, what_, diagnostics, {"sweep", "search_space.*."}) {
    parameter_.name = entry.key;
  }

  SearchParameter Read() {
    if (!IsIdentifier(entry_.key)) Error("must have a name of letters, digits and \"_\"");
    std::string type;
    if (entry_.value->kind != YamlNode::Kind::kMapping) return std::move(parameter_);
    const auto names = SearchKindNames();
    if (keys_.Choice("type", names, type) == nullptr) {
      if (keys_.Take("type") == nullptr) Error("has no type: choice, uniform, …");
      return std::move(parameter_);
    }
    parameter_.kind = *SearchKindFromName(type);
    ReadByKind();
    keys_.Finish();
    return std::move(parameter_);
  }

 private:
  void Error(absl::string_view message) {
    diagnostics_.Error(entry_.line, absl::StrCat(what_, " ", message));
  }

  // At the line of `key`, where it is written.
  void ErrorAt(absl::string_view key, absl::string_view message) {
    const YamlNode::Entry* entry = keys_.Take(key);
    diagnostics_.Error(entry == nullptr ? entry_.line : entry->line,
                       absl::StrCat(what_, " ", message));
  }

  void ReadByKind() {
    using enum SearchKind;
    SearchParameter& p = parameter_;
    switch (p.kind) {
      case kChoice:
        return ReadValues();
      case kRandInt:
        return ReadUpper();
      case kQUniform:
      case kQLogUniform:
        Need("q", p.q);
        [[fallthrough]];
      case kUniform:
      case kLogUniform:
        Need("min_value", p.low);
        Need("max_value", p.high);
        if (p.low > p.high) ErrorAt("min_value", "has a min_value above its max_value");
        break;
      case kQNormal:
      case kQLogNormal:
        Need("q", p.q);
        [[fallthrough]];
      case kNormal:
      case kLogNormal:
        Need("mu", p.mu);
        Need("sigma", p.sigma);
        if (!(p.sigma > 0)) ErrorAt("sigma", "needs a sigma above 0");
        break;
    }
    if (!(p.q > 0)) ErrorAt("q", "needs a q above 0");
  }

  void Need(absl::string_view key, double& value) {
    const YamlNode::Entry* entry = keys_.Take(key);
    const auto number = entry == nullptr ? std::nullopt : FiniteNumber(*entry->value);
    if (!number) return ErrorAt(key, absl::StrCat("needs ", key, ", a number"));
    value = *number;
  }

  void ReadUpper() {
    const YamlNode::Entry* entry = keys_.Take("upper");
    const auto number = entry == nullptr ? std::nullopt : FiniteNumber(*entry->value);
    if (!number || *number < 1 || *number > 1e15 || *number != std::floor(*number)) {
      return ErrorAt("upper",
                     "needs upper, a whole number above 0: values are from 0 to upper - 1");
    }
    parameter_.upper = static_cast<int64_t>(*number);
  }

  void ReadValues() {
    const YamlNode::Entry* entry = keys_.Take("values");
    if (entry == nullptr || entry->value->kind != YamlNode::Kind::kSequence ||
        entry->value->items.empty()) {
      return ErrorAt("values", "needs values, a list of at least one");
    }
    for (const auto& item : entry->value->items) {
      if (item->kind != YamlNode::Kind::kScalar) {
        diagnostics_.Error(item->line, absl::StrCat(what_,
                                                    ": a value must be text or a number, "
                                                    "but is ",
                                                    KindName(*item)));
      } else {
        parameter_.values.push_back(TextOf(*item));
      }
    }
  }

  // As Azure ML's str() puts it into the command.
  static std::string TextOf(const YamlNode& node) {
    const std::string lower = absl::AsciiStrToLower(node.scalar);
    if (node.quoted || (lower != "true" && lower != "false")) return node.scalar;
    return lower == "true" ? "True" : "False";
  }

  const YamlNode::Entry& entry_;
  const std::string what_;
  Diagnostics& diagnostics_;
  MappingReader keys_;
  SearchParameter parameter_;
};

}  // namespace

std::optional<double> FiniteNumber(const YamlNode& node) {
  double number = 0;
  if (node.kind != YamlNode::Kind::kScalar || !absl::SimpleAtod(node.scalar, &number) ||
      !std::isfinite(number)) {
    return std::nullopt;
  }
  return number;
}

SearchParameter ReadSearchParameter(const YamlNode::Entry& entry, Diagnostics& diagnostics) {
  return SearchSpaceReader(entry, diagnostics).Read();
}

}  // namespace tutti::spec
