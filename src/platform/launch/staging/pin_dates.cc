#include "platform/launch/staging/pin_dates.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/civil_time.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/threads/at_once.h"
#include "http/client/transfer.h"
#include "platform/container/python/uv.h"
#include "platform/launch/staging/python_environment.h"
#include "spec/site/requirement.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPatienceWithIndexes = absl::Seconds(20);  // with all, for all pins
constexpr absl::Duration kAYear = absl::Hours(24 * 365);
constexpr size_t kMostAtOnce = 8;
constexpr size_t kLargestPage = 64 << 20;  // numpy's has 3 MiB
constexpr int kMostRedirects = 3;

struct Pin {
  std::string name;     // as indexes write it
  std::string version;  // "1.21.6", "1.21.*"
};

// Day is what an index said of a pin: nothing if it gave no answer, "" if it does not know the day.
using Day = std::optional<std::string>;

std::vector<Pin> PinsOf(const spec::Environment& environment) {
  std::vector<Pin> pins;
  for (const spec::Requirement& package : environment.packages) {
    std::string version = spec::PinnedVersion(package.text);
    version.resize(std::min(version.size(), version.find('+')));  // "1.12.1+cu113"
    if (!version.empty()) pins.push_back({spec::PackageName(package.text), std::move(version)});
  }
  return pins;
}

// Returns "1.21.6" of "numpy-1.21.6-cp38-cp38-linux_x86_64.whl" and of "numpy-1.21.6.tar.gz".
absl::string_view VersionOfFile(absl::string_view file) {
  if (absl::ConsumeSuffix(&file, ".whl")) {
    file.remove_prefix(std::min(file.find('-'), file.size() - 1) + 1);
    return file.substr(0, file.find('-'));
  }
  for (const absl::string_view ending : {".tar.gz", ".zip", ".tar.bz2"}) {
    if (absl::ConsumeSuffix(&file, ending)) return file.substr(file.rfind('-') + 1);
  }
  return "";
}

// "1.21.0" is 1.21; "1.21.*" is any of 1.21.
bool IsOfPin(absl::string_view version, absl::string_view pin) {
  const bool is_prefix = absl::ConsumeSuffix(&pin, ".*");
  if (is_prefix && absl::StartsWith(version, absl::StrCat(pin, "."))) return true;
  while (absl::ConsumeSuffix(&version, ".0")) {
  }
  while (absl::ConsumeSuffix(&pin, ".0")) {
  }
  return version == pin;
}

// Returns the day on which the newest file of the pinned version was uploaded.
std::string DayIn(const std::string& page, absl::string_view pin) {
  const auto json = nlohmann::json::parse(page, nullptr, false);
  std::string newest;
  if (!json.is_object() || !json.contains("files") || !json["files"].is_array()) return newest;
  for (const nlohmann::json& file : json["files"]) {
    if (!file.is_object() || !file.contains("filename") || !file["filename"].is_string()) continue;
    if (!IsOfPin(VersionOfFile(file["filename"].get_ref<const std::string&>()), pin)) continue;
    if (!file.contains("upload-time") || !file["upload-time"].is_string()) return "";
    newest = std::max(newest, file["upload-time"].get_ref<const std::string&>().substr(0, 10));
  }
  return newest;
}

// Returns the page of a package; nothing if there was no answer. It is empty where the index does
// not have the package.
std::optional<std::string> PageOf(std::string url, base::Deadline deadline,
                                  const std::atomic<bool>& cancelled) {
  std::string page;
  http::TransferRequest request{.url = std::move(url), .deadline = deadline};
  request.headers = {{"Accept", "application/vnd.pypi.simple.v1+json"}};
  request.on_chunk = [&](absl::string_view chunk) {
    absl::StrAppend(&page, chunk);
    return page.size() <= kLargestPage ? absl::OkStatus() : absl::OutOfRangeError("page");
  };
  for (int redirects = 0; redirects <= kMostRedirects; ++redirects) {
    const auto answer = http::Transfer(request, cancelled);
    const bool has_none = answer.ok() && answer->status == 404;
    if (!answer.ok() || (answer->status >= 400 && !has_none)) return std::nullopt;
    if (answer->redirect.empty()) return page;
    request.url = answer->redirect;
  }
  return std::nullopt;
}

// Asks one index after the other, until one knows the day.
Day DayOf(const Pin& pin, const std::vector<std::string>& indexes, base::Deadline deadline,
          const std::atomic<bool>& cancelled) {
  for (const std::string& index : indexes) {
    const auto page = PageOf(absl::StrCat(absl::StripSuffix(index, "/"), "/", pin.name, "/"),
                             deadline, cancelled);
    if (!page) return std::nullopt;
    if (std::string day = DayIn(*page, pin.version); !day.empty()) return day;
  }
  return "";
}

// Where uv will look, the main index first; none where it may ask no index.
std::vector<std::string> IndexesOf(const spec::Environment& environment,
                                   std::map<std::string, std::string> variables) {
  if (!variables["UV_NO_INDEX"].empty() || !variables["PIP_NO_INDEX"].empty()) return {};
  std::string main = "https://pypi.org/simple";
  std::string others = absl::StrCat(variables["UV_INDEX"], " ", variables["UV_EXTRA_INDEX_URL"]);
  for (const char* name : {"UV_INDEX_URL", "UV_DEFAULT_INDEX"}) {
    if (!variables[name].empty()) main = variables[name];
  }
  for (absl::string_view option : environment.options) {
    if (option == "--no-index") return {};
    if (absl::ConsumePrefix(&option, "--index-url=")) main = std::string(option);
    if (absl::ConsumePrefix(&option, "--extra-index-url=")) absl::StrAppend(&others, " ", option);
  }
  std::vector<std::string> indexes = {std::move(main)};
  for (const absl::string_view other : absl::StrSplit(others, ' ', absl::SkipEmpty())) {
    indexes.emplace_back(other);
  }
  for (std::string& index : indexes) {  // uv's may have names: "torch=https://…"
    const size_t end = index.find('=');
    if (end < index.find("://")) index.erase(0, end + 1);
  }
  return indexes;
}

// Returns the day after that of the newest pin; "" if it is less than a year ago, or if one of them
// is not known.
Day DayOfAll(const std::vector<Pin>& pins, const std::vector<std::string>& indexes,
             const std::atomic<bool>& cancelled, absl::Time now) {
  std::vector<Day> days(pins.size());
  const base::Deadline deadline = base::Deadline::After(kPatienceWithIndexes);
  base::ForEachAtOnce(pins.size(), kMostAtOnce,
                      [&](size_t i) { days[i] = DayOf(pins[i], indexes, deadline, cancelled); });
  if (std::find(days.begin(), days.end(), Day()) != days.end()) return std::nullopt;
  absl::CivilDay newest = absl::CivilDay::min();
  for (const Day& day : days) {
    absl::CivilDay civil;
    if (!absl::ParseCivilTime(*day, &civil)) return "";
    newest = std::max(newest, civil);
  }
  const absl::CivilDay year_ago = absl::ToCivilDay(now - kAYear, absl::UTCTimeZone());
  return newest < year_ago ? absl::FormatCivilTime(newest + 1) : "";
}

}  // namespace

spec::Environment AsOfItsPins(spec::Environment environment, const fs::path& environments,
                              const std::atomic<bool>& cancelled, absl::Time now) {
  auto variables = container::UvVariables(environments);
  const std::vector<Pin> pins = PinsOf(environment);
  const auto& packages = environment.packages;
  if (!environment.as_of_pins || pins.empty() || !variables["UV_EXCLUDE_NEWER"].empty() ||
      std::any_of(packages.begin(), packages.end(), spec::IsOfBuiltInTable)) {
    return environment;
  }
  const fs::path folder = environments / EnvironmentKey(environment);
  const fs::path known = absl::StrCat(folder.string(), ".as-of");
  std::error_code error;
  if (auto day = base::ReadFile(known); day.ok()) {
    environment.newest_day = *std::move(day);
  } else if (!fs::exists(folder / "complete", error)) {  // made where no index gave an answer
    const std::vector<std::string> indexes = IndexesOf(environment, std::move(variables));
    if (indexes.empty()) return environment;
    const Day found = DayOfAll(pins, indexes, cancelled, now);
    if (found) base::WriteFileAtomic(known, *found).IgnoreError();
    environment.newest_day = found.value_or("");
  }
  return environment;
}

}  // namespace tutti::launch
