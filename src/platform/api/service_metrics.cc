#include "platform/api/service_metrics.h"

#include "absl/strings/str_cat.h"

namespace tutti::api {
namespace {

using Type = base::PrometheusText::Type;

double OfBytes(uint64_t bytes) { return static_cast<double>(bytes); }
double OfCount(int64_t count) { return static_cast<double>(count); }

void AddProcess(base::PrometheusText& text, const base::ProcessUse& process) {
  text.AddOne("process_cpu_seconds_total", Type::kCounter, "Processor time of the service.",
              process.processor_seconds);
  text.AddOne("process_resident_memory_bytes", Type::kGauge, "Memory that the service has.",
              OfCount(process.resident_bytes));
  text.AddOne("process_open_fds", Type::kGauge, "Open file descriptors of the service.",
              OfCount(process.open_files));
  text.AddOne("process_max_fds", Type::kGauge,
              "Maximum number of open file descriptors of the service.",
              OfCount(process.most_files));
  text.AddOne("process_threads", Type::kGauge, "Threads of the service.", OfCount(process.threads));
  text.AddOne("process_start_time_seconds", Type::kGauge,
              "When the service began, in seconds since 1970.",
              absl::ToDoubleSeconds(process.started - absl::UnixEpoch()));
}

void AddDisk(base::PrometheusText& text, const service::Monitoring& seen) {
  text.AddOne("tutti_disk_full", Type::kGauge,
              "1 if the service's disk is full and no job is taken.", seen.disk_is_full ? 1 : 0);
  text.AddOne("tutti_disk_bytes", Type::kGauge, "The size of the service's disk.",
              OfBytes(seen.disk.disk));
  text.AddOne("tutti_disk_free_bytes", Type::kGauge,
              "Free bytes of the service's disk, for its user.", OfBytes(seen.disk.available));
  text.AddOne("tutti_disk_least_bytes", Type::kGauge,
              "With fewer free bytes the service's disk counts as full.", OfBytes(seen.disk.least));
  text.AddOne("tutti_disk_reserve_bytes", Type::kGauge,
              "Bytes that are held for the service's own writes on a full disk.",
              OfBytes(seen.disk_reserve));
}

void AddStore(base::PrometheusText& text, const store::WriteCounts& writes) {
  text.Begin("tutti_store_write_seconds", Type::kHistogram,
             "How long writes to the service's store take until they are committed.");
  text.Add(writes.times);
  text.AddOne("tutti_store_write_failures_total", Type::kCounter,
              "Writes that the store could not do, as for a full disk.", OfCount(writes.failed));
  text.AddOne("tutti_store_transactions_total", Type::kCounter,
              "Transactions of the store, which writes that come at the same time share.",
              OfCount(writes.transactions));
  text.AddOne("tutti_store_waiting_writes", Type::kGauge,
              "Writes that wait for the transaction that is under way.", OfCount(writes.waiting));
  text.Begin("tutti_store_sync_seconds", Type::kHistogram,
             "How long the store has waited for its disk.");
  text.Add(writes.syncs);
}

void AddCalls(base::PrometheusText& text, const HttpUse& http) {
  text.Begin("tutti_http_connections", Type::kGauge, "Open connections, by who is at their end.");
  text.Add(OfCount(http.connections.strangers), {{"party", "stranger"}});
  text.Add(OfCount(http.connections.nodes), {{"party", "node"}});
  text.Add(OfCount(http.connections.users), {{"party", "user"}});
  text.Add(OfCount(http.connections.monitors), {{"party", "monitor"}});
  text.Begin("tutti_http_connections_limit", Type::kGauge,
             "Maximum number of open connections of a party, and of all.");
  text.Add(OfCount(http.connections.most_per_role), {{"party", "node"}});
  text.Add(OfCount(http.connections.most_per_role), {{"party", "user"}});
  text.Add(OfCount(http.connections.most_of_monitors), {{"party", "monitor"}});
  text.Add(OfCount(http.connections.most), {{"party", "all"}});
  text.Begin("tutti_http_requests_total", Type::kCounter, "Calls that were answered.");
  for (const CallCounts& call : http.calls) {
    for (const auto& [status, count] : call.answers) {
      text.Add(OfCount(count),
               {{"method", call.method}, {"route", call.route}, {"status", absl::StrCat(status)}});
    }
  }
  text.Begin("tutti_http_request_seconds", Type::kHistogram,
             "Time from a call's header until its answer begins.");
  for (const CallCounts& call : http.calls) {
    text.Add(call.times, {{"method", call.method}, {"route", call.route}});
  }
}

}  // namespace

void AddServiceMetrics(base::PrometheusText& text, const Metrics& seen) {
  text.Begin("tutti_build_info", Type::kGauge, "Always 1, with the version of tutti as a label.");
  text.Add(1, {{"version", TUTTI_VERSION}});
  text.AddOne("tutti_problems", Type::kGauge,
              "Parts of the service that are broken now, which go on; see tutti doctor.",
              OfCount(seen.service.problems));
  AddProcess(text, seen.process);
  AddDisk(text, seen.service);
  AddStore(text, seen.service.writes);
  AddCalls(text, seen.http);
}

}  // namespace tutti::api
