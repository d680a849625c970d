#include "platform/client/follow/metric_line.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

using nlohmann::json;

std::optional<double> FiniteNumber(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// Counts beyond 10^15 are no counts.
std::optional<int64_t> Count(const json& object, const char* key) {
  const std::optional<double> value = FiniteNumber(object, key);
  if (!value.has_value() || *value < 0 || *value > 1e15) return std::nullopt;
  return static_cast<int64_t>(*value);
}

std::string TextIn(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? Printable(found->get<std::string>()) : "";
}

std::optional<Metric::Event> EventOf(const std::string& name) {
  if (name == "start") return Metric::Event::kStart;
  if (name == "step") return Metric::Event::kStep;
  if (name == "evaluation") return Metric::Event::kEvaluation;
  if (name == "checkpoint") return Metric::Event::kCheckpoint;
  if (name == "result") return Metric::Event::kResult;
  return std::nullopt;
}

std::string Start(const Metric& m) {
  std::vector<std::string> parts;
  if (!m.model.empty()) parts.push_back(m.model);
  if (m.parameters) parts.push_back(absl::StrCat(WithCommas(*m.parameters), " parameters"));
  if (m.train_images) parts.push_back(absl::StrCat(WithCommas(*m.train_images), " images"));
  if (m.world_size) {
    parts.push_back(absl::StrCat(*m.world_size, *m.world_size == 1 ? " rank" : " ranks"));
  }
  if (m.global_batch) parts.push_back(absl::StrCat("batch ", *m.global_batch));
  if (m.epochs) parts.push_back(absl::StrCat(*m.epochs, *m.epochs == 1 ? " epoch" : " epochs"));
  if (m.steps) parts.push_back(absl::StrCat(WithCommas(*m.steps), " steps"));
  if (!m.precision.empty()) parts.push_back(m.precision);
  return absl::StrCat("training ", absl::StrJoin(parts, " · "));
}

// These are the scores by the names that trainers give them, and by those that people use.
constexpr std::pair<const char*, const char*> kScores[] = {
    {"top1", "top-1"},    {"top5", "top-5"},    {"miou", "mean IoU"},
    {"pixels", "pixels"}, {"map50", "mAP@0.5"}, {"map", "mAP"}};

std::string Scores(const Metric& m) {
  std::vector<std::string> parts;
  for (const auto& [title, score] : m.scores) {
    parts.push_back(absl::StrCat(title, " ", Percent(score)));
  }
  if (m.loss) parts.push_back(absl::StrFormat("loss %.4g", *m.loss));
  std::string line = absl::StrJoin(parts, " · ");
  if (m.images) absl::StrAppend(&line, " on ", WithCommas(*m.images), " images");
  return line;
}

std::string Checkpoint(const Metric& m) {
  std::string line = "checkpoint";
  if (m.step) absl::StrAppend(&line, " at step ", *m.step);
  if (m.bytes) absl::StrAppend(&line, ": ", Bytes(static_cast<uint64_t>(*m.bytes)));
  if (m.seconds) absl::StrAppendFormat(&line, " in %.2g s", *m.seconds);
  return line;
}

}  // namespace

std::optional<Metric> ParseMetric(absl::string_view text) {
  const json object = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  const auto event = EventOf(TextIn(object, "event"));
  if (!event.has_value()) return std::nullopt;
  Metric m;
  m.event = *event;
  m.model = TextIn(object, "model");
  m.path = TextIn(object, "path");
  m.precision = TextIn(object, "precision");
  m.epoch = Count(object, "epoch");
  m.epochs = Count(object, "epochs");
  m.step = Count(object, "step");
  m.steps = Count(object, "steps");
  m.images = Count(object, "images");
  m.train_images = Count(object, "train_images");
  m.parameters = Count(object, "parameters");
  m.world_size = Count(object, "world_size");
  m.global_batch = Count(object, "global_batch");
  m.bytes = Count(object, "bytes");
  m.loss = FiniteNumber(object, "loss");
  m.images_per_second = FiniteNumber(object, "images_per_second");
  m.seconds_left = FiniteNumber(object, "seconds_left");
  m.seconds = FiniteNumber(object, "seconds");
  for (const auto& [key, title] : kScores) {
    if (const auto score = FiniteNumber(object, key)) m.scores.emplace_back(title, *score);
  }
  return m;
}

std::string MetricLine(const Metric& m) {
  switch (m.event) {
    case Metric::Event::kStart:
      return Start(m);
    case Metric::Event::kEvaluation:
      return absl::StrCat(m.epoch ? absl::StrCat("epoch ", *m.epoch, ": ") : "", Scores(m));
    case Metric::Event::kCheckpoint:
      return Checkpoint(m);
    case Metric::Event::kResult:
      return absl::StrCat("result: ", Scores(m));
    case Metric::Event::kStep:
      break;
  }
  return "";
}

}  // namespace tutti::client
