#include "runtime/bench/result_table.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tutti::bench {
namespace {

std::string Row(const Point& p) {
  const std::string measured =
      absl::StrFormat("| %s | %s | %d | %.1f | %.1f | %.0f %% |", p.model, p.transport, p.ranks,
                      p.images_per_second(), p.ideal(), 100 * p.efficiency());
  const double step = 1e3 * p.parts.Sum();
  if (!p.is_explained()) return absl::StrFormat("%s | | %.1f | | | |\n", measured, step);
  const double hidden = p.predicted.communication - p.predicted.exposed;
  return absl::StrFormat("%s %.1f | %.2f | %.1f | %.1f | %.2f | %.2f |\n", measured,
                         p.predicted_images_per_second(),
                         p.images_per_second() / p.predicted_images_per_second(), step,
                         1e3 * p.predicted.compute, 1e3 * p.predicted.exposed, 1e3 * hidden);
}

nlohmann::json PredictedJson(const Point& p) {
  if (!p.is_explained()) return nullptr;
  return {{"images_per_second", p.predicted_images_per_second()},
          {"compute", p.predicted.compute},
          {"communication", p.predicted.communication},
          {"exposed", p.predicted.exposed}};
}

nlohmann::json PartsJson(const train::StepParts& parts) {
  nlohmann::json json;
  for (const train::StepPart& part : train::kStepParts) {
    json[std::string(part.name)] = parts.*part.seconds;
  }
  return json;
}

}  // namespace

std::string MarkdownTable(const Conditions& c, std::span<const Point> points) {
  std::string text = absl::StrFormat(
      "%s on %s, synthetic images, %d thread%s a rank, %d node%s of %d core%s; %s\n\n", c.precision,
      c.device, c.threads, c.threads == 1 ? "" : "s", c.nodes, c.nodes == 1 ? "" : "s", c.cores,
      c.cores == 1 ? "" : "s", c.date);
  absl::StrAppend(&text,
                  "| model | transport | ranks | images/s | ideal | efficiency | model of the step "
                  "| of that | step ms | computing | exposed | hidden |\n"
                  "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const Point& point : points) absl::StrAppend(&text, Row(point));
  return text;
}

std::string JsonDocument(const Conditions& c, std::span<const Point> points) {
  nlohmann::json list = nlohmann::json::array();
  for (const Point& p : points) {
    list.push_back({{"model", p.model},
                    {"transport", p.transport},
                    {"ranks", p.ranks},
                    {"batch_per_rank", p.batch},
                    {"images_per_second", p.images_per_second()},
                    {"ideal", p.ideal()},
                    {"efficiency", p.efficiency()},
                    {"step", PartsJson(p.parts)},
                    {"link", {{"alpha", p.link.alpha}, {"beta", p.link.beta}}},
                    {"predicted", PredictedJson(p)}});
  }
  const nlohmann::json document = {{"precision", c.precision}, {"device", c.device},
                                   {"threads", c.threads},     {"cores", c.cores},
                                   {"nodes", c.nodes},         {"date", c.date},
                                   {"points", std::move(list)}};
  return document.dump(2) + "\n";
}

}  // namespace tutti::bench
