#include "platform/service/jobs/live_job.h"

#include <nlohmann/json.hpp>

namespace tutti::service {

using nlohmann::json;

std::string ToJson(const EventDetail& detail) {
  json value = json::object();
  if (detail.placement) value["allocation"] = json::parse(ToJson(*detail.placement));
  if (detail.former) value["former_allocation"] = json::parse(ToJson(*detail.former));
  if (detail.begun_at) {
    value["begun_at"] = {{"boot_id", detail.begun_at->boot_id},
                         {"since_boot", absl::ToDoubleSeconds(detail.begun_at->since_boot)}};
  }
  if (detail.begun_before > 0) value["begun_before"] = detail.begun_before;
  if (detail.begun_free > 0) value["begun_free"] = detail.begun_free;
  if (!detail.avoid.empty()) value["avoid"] = detail.avoid;
  if (detail.cause != Cause::kNone) value["cause"] = std::string(Name(detail.cause));
  if (!detail.reused_from.empty()) value["reused_from"] = detail.reused_from;
  for (const Failure& failure : detail.failures) {
    value["failures"].push_back({{"rank", failure.rank},
                                 {"node", failure.node},
                                 {"what", failure.what},
                                 {"kind", std::string(Name(failure.kind))},
                                 {"consequence", failure.consequence}});
  }
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

EventDetail EventDetailFromJson(absl::string_view text) {
  const json value = json::parse(text.begin(), text.end(), nullptr, false);
  EventDetail detail;
  if (!value.is_object()) return detail;
  const std::pair<const char*, std::optional<Placement>*> placements[] = {
      {"allocation", &detail.placement}, {"former_allocation", &detail.former}};
  for (const auto& [name, to] : placements) {
    if (!value.contains(name)) continue;
    auto placement = PlacementFromJson(value[name].dump());
    if (placement.ok()) *to = *std::move(placement);
  }
  try {
    detail.cause = CauseFromName(value.value("cause", ""));
    detail.begun_before = value.value("begun_before", 0);
    detail.begun_free = value.value("begun_free", 0);
    detail.reused_from = value.value("reused_from", "");
    detail.avoid = value.value("avoid", std::vector<std::string>());
    if (value.contains("begun_at")) {
      detail.begun_at = {value["begun_at"].at("boot_id").get<std::string>(),
                         absl::Seconds(value["begun_at"].at("since_boot").get<double>())};
    }
    for (const json& failure : value.value("failures", json::array())) {
      detail.failures.push_back({.rank = failure.at("rank").get<int>(),
                                 .node = failure.at("node").get<std::string>(),
                                 .what = failure.at("what").get<std::string>(),
                                 .consequence = failure.at("consequence").get<bool>(),
                                 .kind = FailureKindFromName(failure.value("kind", ""))});
    }
  } catch (const json::exception&) {
    // The rest of the detail is not needed to go on.
  }
  return detail;
}

std::vector<store::Event> EventsOf(const std::vector<FirstEvent>& events) {
  std::vector<store::Event> written;
  written.reserve(events.size());
  for (const FirstEvent& first : events) written.push_back(first.event);
  return written;
}

}  // namespace tutti::service
