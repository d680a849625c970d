#include "spec/flow/early_termination_reader.h"

#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "spec/flow/search_space_reader.h"

namespace tutti::spec {
namespace {

constexpr int kMostReports = 1'000'000;

void ReadDelay(MappingReader& reader, EarlyTermination& policy) {
  const YamlNode::Entry* entry = reader.Take("delay_evaluation");
  if (entry != nullptr && entry->value->scalar != "0") {
    reader.Count("delay_evaluation", kMostReports, policy.delay_evaluation);
  }
}

// One of the two, not less than 0; a slack of 0 spares only the best.
void ReadSlack(int line, MappingReader& reader, Diagnostics& diagnostics,
               EarlyTermination& policy) {
  bool any = false;
  for (const auto& [key, value] : {std::pair{"slack_factor", &policy.slack_factor},
                                   std::pair{"slack_amount", &policy.slack_amount}}) {
    const YamlNode::Entry* entry = reader.Take(key);
    if (entry == nullptr) continue;
    const auto number = FiniteNumber(*entry->value);
    if (!number || *number < 0) {
      diagnostics.Error(entry->line, absl::StrCat(key, " must be a number not below 0"));
    } else {
      any = any || *number > 0;
      *value = *number;
    }
  }
  if (!any) diagnostics.Error(line, "bandit needs slack_factor or slack_amount, above 0");
  if (policy.slack_factor > 0 && policy.slack_amount > 0) {
    diagnostics.Error(line, "bandit takes slack_factor or slack_amount, not both");
  }
}

}  // namespace

void ReadEarlyTermination(MappingReader& sweep, Diagnostics& diagnostics,
                          EarlyTermination& policy) {
  const YamlNode::Entry* entry = sweep.Take("early_termination");
  if (entry == nullptr) return;
  MappingReader reader(*entry->value, "early_termination", diagnostics,
                       {"sweep", "early_termination."});
  static constexpr std::array<absl::string_view, 3> kPolicies = {"bandit", "median_stopping",
                                                                 "truncation_selection"};
  using Kind = EarlyTermination::Kind;
  std::string type;
  if (reader.Choice("type", kPolicies, type) == nullptr) {
    if (reader.Take("type") == nullptr) {
      diagnostics.Error(entry->line,
                        "early_termination has no type: bandit, median_stopping "
                        "or truncation_selection");
    }
    return;
  }
  reader.Count("evaluation_interval", kMostReports, policy.evaluation_interval);
  ReadDelay(reader, policy);
  if (type == "bandit") {
    policy.kind = Kind::kBandit;
    ReadSlack(entry->line, reader, diagnostics, policy);
  } else if (type == "median_stopping") {
    policy.kind = Kind::kMedianStopping;
  } else {
    policy.kind = Kind::kTruncationSelection;
    if (reader.Count("truncation_percentage", 99, policy.truncation_percentage) == nullptr &&
        reader.Take("truncation_percentage") == nullptr) {
      diagnostics.Error(entry->line, "truncation_selection needs truncation_percentage");
    }
  }
  reader.Finish();
}

}  // namespace tutti::spec
