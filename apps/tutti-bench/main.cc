// tutti-bench, which `tutti bench` starts: images per second over models x ranks x transports; and,
// as `tutti-bench plan`, `tutti plan`: what n nodes will do.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "bench_flags.h"
#include "local_ranks.h"
#include "plan_command.h"
#include "runtime/bench/chart.h"
#include "runtime/bench/result_table.h"
#include "runtime/device/device.h"
#include "runtime/train/setup/precision.h"
#include "runtime/train/setup/prepare_machine.h"

namespace tutti {
namespace {

void Print(const bench::Point& p) {
  std::fprintf(
      stderr, "%s\n",
      absl::StrFormat("%s, %s, %d rank%s: %.1f images/s, %.0f %% of ideal", p.model, p.transport,
                      p.ranks, p.ranks == 1 ? "" : "s", p.images_per_second(), 100 * p.efficiency())
          .c_str());
}

bench::Conditions ConditionsOf(const bench::Sweep& sweep, int size) {
  bench::Conditions conditions;
  conditions.precision = sweep.setup.precision;
  conditions.device = sweep.setup.device;
  conditions.threads = sweep.threads;
  conditions.cores = sweep.cores;
  const char* here = std::getenv("LOCAL_WORLD_SIZE");
  const int per_node = here == nullptr ? size : std::max(1, std::atoi(here));
  conditions.nodes = (size + per_node - 1) / per_node;
  conditions.date = absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone());
  return conditions;
}

absl::Status Write(const std::filesystem::path& folder, const bench::Conditions& conditions,
                   const std::vector<bench::Point>& points) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  TUTTI_RETURN_IF_ERROR(
      base::ReplaceFile(folder / "bench.md", bench::MarkdownTable(conditions, points)));
  TUTTI_RETURN_IF_ERROR(
      base::ReplaceFile(folder / "bench.json", bench::JsonDocument(conditions, points)));
  return base::ReplaceFile(folder / "bench.svg", bench::SvgChart(conditions, points));
}

// The same on every rank; rank 0 says which and why.
absl::StatusOr<std::string> PrecisionOf(const BenchCommand& command, torch::Device device,
                                        const comm::GroupOptions& group) {
  TUTTI_ASSIGN_OR_RETURN(const auto all, comm::JoinGroup(group));
  TUTTI_ASSIGN_OR_RETURN(const train::PrecisionTaken taken,
                         train::TakePrecision(command.precision, /*kept=*/"", device, *all,
                                              base::Deadline::After(command.sweep.setup.timeout)));
  if (group.rank == 0 && !taken.why.empty()) std::fprintf(stderr, "%s\n", taken.why.c_str());
  return taken.precision;
}

absl::Status BenchAsRank(BenchCommand command) {
  TUTTI_ASSIGN_OR_RETURN(const comm::GroupOptions group, comm::GroupOptionsFromEnvironment());
  bench::Sweep& sweep = command.sweep;
  if (sweep.ranks.empty()) sweep.ranks = bench::RanksUpTo(group.size);
  sweep.cores = CoresOfThisProcess();
  TUTTI_ASSIGN_OR_RETURN(const torch::Device device, device::Open(sweep.setup.device));
  sweep.setup.device = device.is_cuda() ? "cuda" : "cpu";
  train::PrepareMachine(sweep.threads, device.is_cuda());
  TUTTI_ASSIGN_OR_RETURN(sweep.setup.precision, PrecisionOf(command, device, group));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<bench::Point> points,
                         bench::RunSweep(sweep, group, Print));
  if (group.rank != 0) return absl::OkStatus();
  const bench::Conditions conditions = ConditionsOf(sweep, group.size);
  std::fputs(bench::MarkdownTable(conditions, points).c_str(), stdout);
  return command.output.empty() ? absl::OkStatus() : Write(command.output, conditions, points);
}

int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "tutti bench: %s\n", std::string(status.message()).c_str());
  const bool could_not_start = absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
                               absl::IsFailedPrecondition(status);  // this machine lacks something
  return could_not_start ? 2 : 1;
}

int Main(int argc, char** argv) {
  base::StartLogging();
  if (argc > 1 && std::string(argv[1]) == "plan") return RunPlan(argc, argv);
  auto asked = ReadCommandLine(argc, argv);
  if (!asked.ok()) return Report(asked.status());
  if (const auto* show = std::get_if<ShowAndExit>(&*asked)) {
    std::fputs(show->text.c_str(), stdout);
    return 0;
  }
  auto command = std::get<BenchCommand>(*std::move(asked));
  if (std::getenv("RANK") != nullptr) return Report(BenchAsRank(std::move(command)));
  const int ranks = command.sweep.ranks.empty() ? CoresOfThisProcess() : command.sweep.ranks.back();
  const auto code = RunLocalRanks(ranks, argv);
  return code.ok() ? *code : Report(code.status());
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) { return tutti::Main(argc, argv); }
