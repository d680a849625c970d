#include "platform/client/doctor/report_checks.h"

#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/process/command.h"
#include "base/status.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/how_to_get.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPatienceWithReport = absl::Minutes(2);
// The machine counts as busy if a step takes more than so many times as long as it would take on
// the machine without other programs.
constexpr double kDisturbed = 1.5;

Check Well(const char* name, std::string detail) {
  return {name, Check::Outcome::kOk, std::move(detail), ""};
}

std::string Gpu(const nlohmann::json& report) {
  const nlohmann::json& gpu = report.at("gpu");
  if (gpu.is_null()) return absl::StrCat("none: ", report.at("no_gpu").get<std::string>());
  return absl::StrCat(gpu.at("name").get<std::string>(), ", compute capability ",
                      gpu.at("compute_capability").get<std::string>(), ", ",
                      Bytes(static_cast<uint64_t>(gpu.at("memory").get<double>())));
}

// The figure that was measured is also that of the programs beside it.
std::string Example(const nlohmann::json& report, double load) {
  const auto measured = report.at("images_per_second").get<double>();
  const auto alone = report.at("images_per_second_alone").get<double>();
  const auto cores = report.at("threads").get<int64_t>();
  const bool on_gpu = report.at("device") == "cuda";
  const bool busy = load > static_cast<double>(cores) || alone > kDisturbed * measured;
  std::string text = absl::StrCat(
      WithCommas(std::llround(busy ? alone : measured)), " images/s of ResNet-20 at batch 64 ",
      on_gpu ? "on the GPU" : "in one process on all cores",
      "; the images that ./run trains on take about ",
      Clock(absl::Seconds(kImagesOfTheExample / (busy ? alone : measured))));
  if (!busy) return text;
  absl::StrAppendFormat(&text, "; the machine is busy (%.0f runnable, %d cores)", load, cores);
  if (on_gpu) return text;
  return absl::StrCat(text, ": these are by processor time, as when it is idle, and now it does ",
                      WithCommas(std::llround(measured)), " images/s");
}

std::vector<Check> Checks(const nlohmann::json& report, double load) {
  const auto text = [&](const char* key) { return report.at(key).get<std::string>(); };
  const auto memory = static_cast<uint64_t>(report.at("memory_speed").get<double>());
  const std::string why = text("why");
  return {Well("processor", absl::StrCat(text("processor"), ", ", text("instructions"))),
          Well("memory speed", absl::StrCat(Bytes(memory), "/s (triad, all cores)")),
          Well("precision", std::string(absl::StripPrefix(why, "precision "))),
          Well("GPU", Gpu(report)), Well("speed", Example(report, load))};
}

double LoadOfTheLastMinute() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

// Returns what the program printed last, in one line.
std::string LastLine(absl::string_view words) {
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::StripAsciiWhitespace(words), '\n');
  return std::string(lines.back());
}

enum class Waits { kAsUsual, kAsleep };  // of threads, for each other

absl::StatusOr<std::string> Report(const fs::path& program, Waits waits) {
  base::ChildOptions options;
  options.arguments = {program.string(), "--describe-machine"};
  options.environment = base::CurrentEnvironment();
  if (waits == Waits::kAsleep) options.environment["OMP_WAIT_POLICY"] = "passive";
  TUTTI_ASSIGN_OR_RETURN(const base::CommandResult result,
                         base::RunCommand(options, "", base::Deadline::After(kPatienceWithReport)));
  if (result.exit.ok()) return result.out;
  return absl::InternalError(
      absl::StrCat("ends with ", result.exit.ToString(), ": ", LastLine(result.err)));
}

bool WasDisturbed(const std::string& line) {
  const auto report = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto number = [&](const char* key) {
    const auto value = report.is_object() ? report.value(key, nlohmann::json()) : nlohmann::json();
    return value.is_number() ? value.get<double>() : 0;
  };
  return number("images_per_second_alone") > kDisturbed * number("images_per_second");
}

// Beside other programs threads that spin while they wait use up the processor time by which it is
// measured, and the one that they wait for has the less.
absl::StatusOr<std::string> MeasuredReport(const fs::path& program, double load) {
  if (load > std::thread::hardware_concurrency()) return Report(program, Waits::kAsleep);
  TUTTI_ASSIGN_OR_RETURN(std::string line, Report(program, Waits::kAsUsual));
  return WasDisturbed(line) ? Report(program, Waits::kAsleep) : std::move(line);
}

}  // namespace

absl::StatusOr<std::vector<Check>> ChecksOfReport(absl::string_view line, double load) {
  try {
    return Checks(nlohmann::json::parse(line), load);
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

std::vector<Check> CheckMachine(const DoctorSubject& subject) {
  const fs::path program = subject.program_folder / "tutti-train";
  if (::access(program.c_str(), X_OK) != 0) {
    return {{"speed", Check::Outcome::kWarning,
             absl::StrCat("not measured: tutti-train is not in ", subject.program_folder.string()),
             HowToGet(subject.program_folder, "tutti-train")}};
  }
  const double load = LoadOfTheLastMinute();
  const auto report = MeasuredReport(program, load);
  auto checks = report.ok() ? ChecksOfReport(*report, load) : report.status();
  if (checks.ok()) return *std::move(checks);
  if (absl::IsDeadlineExceeded(checks.status())) {
    return {{"speed", Check::Outcome::kWarning,
             absl::StrCat("not measured within ", absl::FormatDuration(kPatienceWithReport)),
             "ask again when the machine has less to do"}};
  }
  return {
      {"speed", Check::Outcome::kWarning,
       absl::StrCat("not measured: tutti-train --describe-machine: ", checks.status().message()),
       HowToGet(subject.program_folder, "tutti-train")}};
}

}  // namespace tutti::client
