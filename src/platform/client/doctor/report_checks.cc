#include "platform/client/doctor/report_checks.h"

#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/process/command.h"
#include "base/status.h"
#include "platform/client/text/amounts.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPatienceWithReport = absl::Minutes(2);
// examples/cifar10: 16 epochs of 78 steps of 64 images; evaluations and the start are small beside.
constexpr double kImagesOfTheExample = 16.0 * 78 * 64;

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

// More than the cores bear: what is measured then says little.
std::string Disturbance(double load, int64_t cores) {
  if (load <= static_cast<double>(cores)) return "";
  return absl::StrFormat("; other programs load the machine (%.0f runnable, %d cores)", load,
                         cores);
}

std::string Example(const nlohmann::json& report) {
  const double images = report.at("images_per_second").get<double>();
  const bool on_gpu = report.at("device") == "cuda";
  return absl::StrCat(WithCommas(std::llround(images)), " images/s of ResNet-20 at batch 64 ",
                      on_gpu ? "on the GPU" : "in one process on all cores",
                      "; the images that ./run trains on take about ",
                      Clock(absl::Seconds(kImagesOfTheExample / images)));
}

std::vector<Check> Checks(const nlohmann::json& report, double load) {
  const auto text = [&](const char* key) { return report.at(key).get<std::string>(); };
  const auto memory = static_cast<uint64_t>(report.at("memory_speed").get<double>());
  const std::string why = text("why");
  return {Well("processor", absl::StrCat(text("processor"), ", ", text("instructions"))),
          Well("memory speed", absl::StrCat(Bytes(memory), "/s (triad, all cores)")),
          Well("precision", std::string(absl::StripPrefix(why, "precision "))),
          Well("GPU", Gpu(report)),
          Well("speed", Example(report) + Disturbance(load, report.at("threads").get<int64_t>()))};
}

double LoadOfTheLastMinute() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

// What it said last, in one line.
std::string LastLine(absl::string_view words) {
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::StripAsciiWhitespace(words), '\n');
  return std::string(lines.back());
}

absl::StatusOr<std::string> Report(const fs::path& program) {
  base::ChildOptions options;
  options.arguments = {program.string(), "--describe-machine"};
  options.environment = base::CurrentEnvironment();
  TUTTI_ASSIGN_OR_RETURN(const base::CommandResult result,
                         base::RunCommand(options, "", base::Deadline::After(kPatienceWithReport)));
  if (result.exit.ok()) return result.out;
  return absl::InternalError(
      absl::StrCat("ends with ", result.exit.ToString(), ": ", LastLine(result.err)));
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
             "tools/build tutti-train"}};
  }
  const double load = LoadOfTheLastMinute();
  auto report = Report(program);
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
       "tools/setup build && tools/build tutti-train"}};
}

}  // namespace tutti::client
