#include "runtime/bench/plan/facts.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tutti::bench {
namespace {

using Json = nlohmann::json;

// From this share of a step on the wait for data tells what the loader can do.
constexpr double kLoaderShows = 0.1;
constexpr double kBytesOfAGradient = 4;

double NumberIn(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : 0;
}

std::string TextIn(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

struct Told {
  Json start = Json::object();
  std::vector<double> rates;            // images a second, over all ranks
  std::vector<train::StepParts> steps;  // means of a second each
};

train::StepParts PartsIn(const Json& line) {
  train::StepParts parts;
  for (const train::StepPart& part : train::kStepParts) {
    parts.*part.seconds = NumberIn(line, std::string(part.name).c_str());
  }
  return parts;
}

Told ReadLines(absl::string_view lines) {
  Told told;
  for (const absl::string_view text : absl::StrSplit(lines, '\n', absl::SkipWhitespace())) {
    const Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!line.is_object()) continue;
    const std::string event = TextIn(line, "event");
    if (event == "start") told.start = line;
    if (event == "result") continue;  // the mean of the whole run, its beginning included
    const bool is_metric = event == "metric" && TextIn(line, "name") == "images_per_second";
    const double rate = NumberIn(line, is_metric ? "value" : "images_per_second");
    if (rate > 0) told.rates.push_back(rate);
    const train::StepParts parts = PartsIn(line);
    if (event == "step" && parts.Sum() > 0) told.steps.push_back(parts);
  }
  return told;
}

// Without the first where there are more.
template <class T, class Key>
T MedianOfLater(std::vector<T> values, Key key) {
  if (values.size() > 1) values.erase(values.begin());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end(),
                   [&](const T& a, const T& b) { return key(a) < key(b); });
  return *middle;
}

absl::Status Lacks(absl::string_view what, absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat("its metrics do not tell ", what, ": ", remedy));
}

// The parts of the step. Where only a rate is told, backward is taken as two thirds.
void TakeStep(const Told& told, NodeFacts& facts) {
  if (told.steps.empty()) {
    const double rate = MedianOfLater(told.rates, [](double value) { return value; });
    const double step = facts.batch * facts.ranks / rate;
    facts.parts.forward = step / 3;
    facts.parts.backward = step - facts.parts.forward;
    return;
  }
  facts.parts = MedianOfLater(told.steps, [](const auto& parts) { return parts.Sum(); });
  const double whole = facts.parts.Sum();
  if (facts.parts.data >= kLoaderShows * whole) {
    facts.loader.images_per_second = facts.batch / whole;
  } else {
    facts.parts.other += facts.parts.data;
  }
  facts.parts.data = 0;
}

// Reads a plan's facts; the first that is missing is the error.
class FactsReader {
 public:
  explicit FactsReader(const Json& json) : json_(json) {}

  template <class T>
  void Read(const char* key, T& value) {
    if (!status_.ok()) return;
    try {
      json_.at(key).get_to(value);
    } catch (const Json::exception& error) {
      status_ = absl::InvalidArgumentError(absl::StrCat("the plan's facts have no usable \"", key,
                                                        "\": print it anew with -o json"));
    }
  }
  const absl::Status& status() const { return status_; }

 private:
  const Json& json_;
  absl::Status status_;
};

// Calls visit(key, member) for each.
template <class Facts, class Visit>
void ForEachFact(Facts& facts, Visit visit) {
  visit("source", facts.source);
  visit("model", facts.model);
  visit("precision", facts.precision);
  visit("device", facts.device);
  visit("ranks", facts.ranks);
  visit("ranks_per_node", facts.ranks_per_node);
  visit("threads", facts.threads);
  visit("cores", facts.cores);
  visit("batch_per_rank", facts.batch);
  visit("batch_is_shared", facts.batch_is_shared);
  visit("forward", facts.parts.forward);
  visit("backward", facts.parts.backward);
  visit("communication", facts.parts.communication);
  visit("optimizer", facts.parts.optimizer);
  visit("other", facts.parts.other);
  visit("fixed_share", facts.fixed);
  visit("waited_share", facts.waited);
  visit("bucket_bytes", facts.bucket_bytes);
  visit("wire_share", facts.wire_share);
  visit("memory", facts.memory);
  visit("memory_of_an_image", facts.memory_of_an_image);
  visit("memory_speed", facts.memory_speed);
  visit("loader_images_per_second", facts.loader.images_per_second);
  visit("loader_processor_seconds", facts.loader.processor_seconds);
  visit("loader_workers", facts.loader.workers);
  visit("bytes_per_image", facts.loader.bytes_per_image);
  visit("train_images", facts.train_images);
  visit("learning_rate", facts.learning_rate);
  visit("learning_rate_rule", facts.rate_rule);
  visit("warmup_epochs", facts.warmup_epochs);
}

NLOHMANN_JSON_SERIALIZE_ENUM(RateRule, {{RateRule::kAsItIs, "as it is"},
                                        {RateRule::kPerRank, "per rank"},
                                        {RateRule::kPerImage, "per image"}})

}  // namespace

absl::StatusOr<NodeFacts> FactsOfMetrics(absl::string_view lines, const SaidFacts& said) {
  const Told told = ReadLines(lines);
  if (told.rates.empty() && told.steps.empty()) {
    return Lacks("images_per_second", "log it as a metric, or name a recipe of tutti-train");
  }
  NodeFacts facts;
  const Json& start = told.start;
  facts.model = TextIn(start, "model");
  if (start.contains("precision")) facts.precision = TextIn(start, "precision");
  if (start.contains("device")) facts.device = TextIn(start, "device");
  const auto told_ranks = static_cast<int>(NumberIn(start, "world_size"));
  facts.ranks = std::max(1, told_ranks > 0 ? told_ranks : said.ranks);
  facts.ranks_per_node = facts.ranks;
  facts.cores = facts.ranks;  // what they share shows in their step
  const double told_batch = NumberIn(start, "global_batch") / facts.ranks;
  facts.batch = told_batch > 0 ? told_batch : said.batch;
  if (facts.batch <= 0) return Lacks("the batch", "say --batch, the images of a step and rank");
  facts.train_images = int64_t(NumberIn(start, "train_images"));
  const double bytes = said.gradient_bytes > 0 ? said.gradient_bytes
                                               : kBytesOfAGradient * NumberIn(start, "parameters");
  if (bytes <= 0) return Lacks("how large the gradients are", "say --gradient-mb or --model");
  facts.bucket_bytes = EvenBuckets(bytes);
  TakeStep(told, facts);
  if (said.batch > 0) return WithBatch(facts, said.batch);
  facts.batch_is_shared = true;
  return facts;
}

absl::StatusOr<NodeFacts> FactsOfPlan(const nlohmann::json& document) {
  if (!document.is_object() || !document.contains("facts")) {
    return absl::InvalidArgumentError("this JSON is no plan: tutti plan RECIPE -o json prints one");
  }
  NodeFacts facts;
  FactsReader reader(document["facts"]);
  ForEachFact(facts, [&](const char* key, auto& value) { reader.Read(key, value); });
  if (!reader.status().ok()) return reader.status();
  if (facts.batch <= 0 || facts.cores <= 0 || facts.ranks < 1 ||
      facts.ranks_per_node < facts.ranks || facts.parts.Sum() <= 0) {
    return absl::InvalidArgumentError(
        "the plan's facts are no step of a node: batch_per_rank, cores, ranks and its parts are "
        "above 0, and ranks no more than ranks_per_node");
  }
  return facts;
}

nlohmann::ordered_json AsJson(const NodeFacts& facts) {
  nlohmann::ordered_json json;
  ForEachFact(facts, [&](const char* key, const auto& value) { json[key] = value; });
  return json;
}

}  // namespace tutti::bench
