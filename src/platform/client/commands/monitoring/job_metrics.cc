#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/outage.h"
#include "platform/client/jobs/choose_job.h"
#include "platform/client/jobs/metrics_text.h"
#include "platform/client/jobs/usage_text.h"

namespace tutti::client {
namespace {

constexpr absl::Duration kBetweenAnswers = absl::Seconds(1);
constexpr int kFirstPoints = 10, kNewestPoints = 256, kMostCourse = 512;

std::string JsonLine(const ReportedStep& report) {
  const auto number = [](double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
  };
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (const auto& [name, value] : report.values) values[name] = number(value);
  const nlohmann::ordered_json line = {
      {"step", number(report.step)}, {"time", number(report.time)}, {"values", values}};
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Prints what is reported until the job has ended, over outages of the service.
absl::StatusOr<ExitCode> FollowMetrics(Context& context, const std::string& id,
                                       const JobMetricsOptions& options) {
  NewReports reports;
  base::Deadline give_up = base::Deadline::After(kGiveUpAfter);
  std::unique_ptr<ServiceClient> service;  // as long as it answers
  for (int newest = kFirstPoints;; absl::SleepFor(kBetweenAnswers)) {
    if (service == nullptr) service = std::make_unique<ServiceClient>(context.connect());
    const auto answer = service->Metrics(id, options.only_rank, /*points=*/1, newest);
    if (!answer.ok()) {
      if (!MayRecover(answer.status())) return answer.status();
      if (give_up.Expired()) return DidNotComeBack(answer.status(), kGiveUpAfter);
      service.reset();
      continue;
    }
    give_up = base::Deadline::After(kGiveUpAfter);
    newest = kNewestPoints;
    TUTTI_ASSIGN_OR_RETURN(const JobMetricsView metrics, ParseJobMetrics(*answer));
    for (const ReportedStep& report : reports.In(metrics)) {
      context.out << (options.format == Format::kTable ? ReportLine(report, absl::LocalTimeZone())
                                                       : JsonLine(report))
                  << std::endl;
    }
    if (!metrics.live) return ExitCode::kOk;
  }
}

// The usage with the metrics beside it.
absl::StatusOr<std::string> Together(const std::string& usage, const std::string& metrics) {
  auto document = nlohmann::ordered_json::parse(usage, nullptr, /*allow_exceptions=*/false);
  const auto reported = nlohmann::ordered_json::parse(metrics, nullptr, false);
  if (!document.is_object() || !reported.is_object() || !reported.contains("metrics")) {
    return absl::InternalError("the service's answer is no usage of a job");
  }
  document["metrics"] = reported["metrics"];
  return document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

absl::StatusOr<ExitCode> JobMetrics(Context& context, const JobMetricsOptions& options) {
  std::string id;
  {
    ServiceClient service(context.connect());
    TUTTI_ASSIGN_OR_RETURN(id, ResolveJob(service, options.job));
  }
  if (options.follow) return FollowMetrics(context, id, options);
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string usage,
                         service.Usage(id, options.only_rank, options.points));
  TUTTI_ASSIGN_OR_RETURN(
      const std::string metrics,
      service.Metrics(id, options.only_rank, std::min(options.points, kMostCourse), /*newest=*/0));
  if (options.format != Format::kTable) {
    TUTTI_ASSIGN_OR_RETURN(const std::string both, Together(usage, metrics));
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, both, options.format));
    return ExitCode::kOk;
  }
  TUTTI_ASSIGN_OR_RETURN(const JobMetricsView reported, ParseJobMetrics(metrics));
  const std::string table = MetricsTable(reported, context.out_screen);
  TUTTI_ASSIGN_OR_RETURN(const std::string text, UsageText(usage, context.out_screen));
  context.out << table << (table.empty() ? "" : "\n") << text;
  return ExitCode::kOk;
}

}  // namespace tutti::client
