#include "spec/flow/search_reader.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/text/closest.h"
#include "spec/flow/search_space_reader.h"

namespace tutti::spec {
namespace {

constexpr int kMostTrials = 10'000;
constexpr int kMostParameters = 1'000;
constexpr int kMostSobol = 21;  // direction numbers that the sampler has
constexpr int kMostSeconds = 10 * 365 * 86'400;
constexpr int kMostReports = 1'000'000;  // of a trial

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

// Takes early_termination, which says when a trial is stopped before its end, from `sweep`; without
// it `policy` stays as it is.
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

class SearchReader {
 public:
  SearchReader(CommandReader& sweep, const Given& given, JobSpec& spec)
      : keys_(sweep.keys()),
        diagnostics_(given.source.diagnostics),
        line_(given.line),
        spec_(spec) {
    spec_.sweep.emplace();
  }

  void Read() {
    ReadSpace();
    ReadSampling();
    ReadObjective();
    ReadEarlyTermination(keys_, diagnostics_, sweep().early_termination);
    ReadLimits();
    CheckTogether();
  }

 private:
  Sweep& sweep() { return *spec_.sweep; }

  void ReadSpace() {
    const YamlNode::Entry* entry = keys_.Take("search_space");
    if (entry == nullptr || entry->value->entries.empty()) {
      diagnostics_.Error(entry == nullptr ? line_ : entry->line,
                         "a sweep needs a search_space: a mapping of what its trials differ in");
      return;
    }
    for (const YamlNode::Entry& parameter : entry->value->entries) {
      sweep().parameters.push_back(ReadSearchParameter(parameter, diagnostics_));
      lines_.push_back(parameter.line);
    }
    if (sweep().parameters.size() > kMostParameters) {
      diagnostics_.Error(entry->line, "search_space has too many parameters");
    }
  }

  void ReadSampling() {
    const YamlNode::Entry* entry = keys_.Take("sampling_algorithm");
    if (entry == nullptr) return;
    std::string type = "random", rule = "random";
    line_of_sampling_ = entry->line;
    if (entry->value->kind == YamlNode::Kind::kScalar) {
      type = absl::AsciiStrToLower(entry->value->scalar);
    } else {
      MappingReader reader(*entry->value, "sampling_algorithm", diagnostics_,
                           {"sweep", "sampling_algorithm."});
      reader.Text("type", type);
      type = absl::AsciiStrToLower(type);
      static constexpr std::array<absl::string_view, 2> kRules = {"random", "sobol"};
      reader.Choice("rule", kRules, rule);
      ReadSeed(reader);
      ReadLogBase(reader);
      reader.Finish();
    }
    static constexpr std::array<absl::string_view, 4> kTypes = {"random", "sobol", "grid",
                                                                "bayesian"};
    if (type == "sobol" || (type == "random" && rule == "sobol")) {
      sweep().sampling = Sampling::kSobol;
    } else if (type == "grid") {
      sweep().sampling = Sampling::kGrid;
    } else if (type == "bayesian") {
      sweep().sampling = Sampling::kBayesian;
    } else if (type != "random") {
      diagnostics_.Error(entry->line, absl::StrCat("sampling_algorithm \"", type.substr(0, 80),
                                                   "\" is none of random, grid, bayesian",
                                                   base::DidYouMean(type.substr(0, 80), kTypes)));
    }
  }

  void ReadSeed(MappingReader& reader) {
    const YamlNode::Entry* entry = reader.Take("seed");
    int64_t seed = 0;
    if (entry == nullptr) return;
    if (!absl::SimpleAtoi(entry->value->scalar, &seed)) {
      diagnostics_.Error(entry->line, "seed must be a whole number");
    } else {
      sweep().seed = seed;
    }
  }

  // A number above 0 and not 1, or "e".
  void ReadLogBase(MappingReader& reader) {
    const YamlNode::Entry* entry = reader.Take("logbase");
    if (entry == nullptr || absl::EqualsIgnoreCase(entry->value->scalar, "e")) return;
    const auto number = FiniteNumber(*entry->value);
    if (!number || !(*number > 0) || *number == 1) {
      diagnostics_.Error(entry->line, "logbase must be a number above 0, not 1, or \"e\"");
    } else {
      sweep().log_base = *number;
    }
  }

  void ReadObjective() {
    const YamlNode::Entry* entry = keys_.Take("objective");
    if (entry == nullptr) {
      diagnostics_.Error(line_, "a sweep needs an objective: {goal: minimize, primary_metric: …}");
      return;
    }
    MappingReader reader(*entry->value, "objective", diagnostics_, {"sweep", "objective."});
    static constexpr std::array<absl::string_view, 2> kGoals = {"minimize", "maximize"};
    std::string goal;
    if (reader.Choice("goal", kGoals, goal) == nullptr && reader.Take("goal") == nullptr) {
      diagnostics_.Error(entry->line, "objective has no goal: minimize or maximize");
    }
    sweep().maximize = goal == "maximize";
    reader.Text("primary_metric", sweep().metric);
    if (sweep().metric.empty()) diagnostics_.Error(entry->line, "objective has no primary_metric");
    reader.Finish();
  }

  void ReadLimits() {
    const YamlNode::Entry* entry = keys_.Take("limits");
    if (entry == nullptr) return;
    MappingReader reader(*entry->value, "limits", diagnostics_, {"sweep", "limits."});
    reader.Count("max_total_trials", kMostTrials, sweep().max_trials);
    reader.Count("max_concurrent_trials", kMostTrials, sweep().max_concurrent);
    int seconds = 0;
    if (reader.Count("timeout", kMostSeconds, seconds)) spec_.timeout = absl::Seconds(seconds);
    if (reader.Count("trial_timeout", kMostSeconds, seconds)) {
      sweep().trial_timeout = absl::Seconds(seconds);
    }
    reader.Finish();
  }

  void CheckTogether() {
    const auto& parameters = sweep().parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (sweep().sampling != Sampling::kGrid || parameters[i].kind == SearchKind::kChoice)
        continue;
      diagnostics_.Error(lines_[i], absl::StrCat("search_space \"", parameters[i].name,
                                                 "\" is no choice; grid sampling tries all values, "
                                                 "and takes only choices"));
    }
    if (sweep().sampling == Sampling::kSobol && parameters.size() > kMostSobol) {
      diagnostics_.Error(line_of_sampling_,
                         absl::StrCat("sobol takes at most ", kMostSobol, " parameters"));
    }
  }

  MappingReader& keys_;
  Diagnostics& diagnostics_;
  const int line_;
  JobSpec& spec_;
  std::vector<int> lines_;  // of the parameters
  int line_of_sampling_ = 1;
};

}  // namespace

void ReadSearch(CommandReader& sweep, const Given& given, JobSpec& spec) {
  SearchReader(sweep, given, spec).Read();
}

}  // namespace tutti::spec
