#include "spec/json/usage_sample.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "spec/json/json_fields.h"

namespace tutti::spec {
namespace {

using nlohmann::json;

constexpr double kMostOfAnything = 1e18;

template <class Usage>
struct UsageField {
  const char* name;
  float Usage::*value;
};

constexpr UsageField<RankUsage> kRankFields[] = {
    {"cpu", &RankUsage::cpu},
    {"memory", &RankUsage::memory},
    {"disk_read", &RankUsage::disk_read},
    {"disk_write", &RankUsage::disk_write},
    {"cpu_wait", &RankUsage::cpu_wait},
};
constexpr UsageField<GpuUsage> kGpuFields[] = {
    {"use", &GpuUsage::use},
    {"memory", &GpuUsage::memory},
    {"memory_total", &GpuUsage::memory_total},
    {"power", &GpuUsage::power},
    {"temperature", &GpuUsage::temperature},
};
constexpr UsageField<UsageSample> kNodeFields[] = {
    {"cpu", &UsageSample::cpu},
    {"memory", &UsageSample::memory},
    {"memory_left", &UsageSample::memory_left},
    {"disk_read", &UsageSample::disk_read},
    {"disk_write", &UsageSample::disk_write},
    {"machine_cpu", &UsageSample::machine_cpu},
    {"net_receive", &UsageSample::net_receive},
    {"net_send", &UsageSample::net_send},
};

// Cores and parts to a thousandth, bytes whole.
json Rounded(float value) {
  if (value >= 1000) return static_cast<int64_t>(value);
  return std::round(static_cast<double>(value) * 1000) / 1000;
}

template <class Usage, size_t n>
json WithoutUnknown(const Usage& usage, const UsageField<Usage> (&fields)[n]) {
  json object = json::object();
  for (const auto& [name, value] : fields) {
    if (std::isfinite(usage.*value)) object[name] = Rounded(usage.*value);
  }
  return object;
}

template <class Usage, size_t n>
void Read(const json& object, const UsageField<Usage> (&fields)[n], Usage& usage) {
  for (const auto& [name, value] : fields) {
    const json::const_iterator at = object.find(name);
    if (at == object.end() || !at->is_number()) continue;
    const auto number = at->template get<double>();
    if (number >= 0 && number <= kMostOfAnything) usage.*value = static_cast<float>(number);
  }
}

bool Flag(const json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && *at == true;
}

std::optional<int64_t> Whole(const json& object, const char* name) {
  const auto at = object.find(name);
  if (at == object.end() || !at->is_number_integer()) return std::nullopt;
  if (at->is_number_unsigned() && at->get<uint64_t>() > std::numeric_limits<int64_t>::max()) {
    return std::nullopt;
  }
  return at->get<int64_t>();
}

// Adds those that have a name.
void ReadGpus(const json& object, std::vector<GpuUsage>& gpus) {
  const auto entries = object.find("gpus");
  if (entries == object.end() || !entries->is_array()) return;
  for (const json& entry : *entries) {
    const auto name = entry.is_object() ? entry.find("gpu") : entry.end();
    if (!entry.is_object() || name == entry.end() || !name->is_string()) continue;
    GpuUsage& gpu = gpus.emplace_back(GpuUsage{.gpu = name->get<std::string>()});
    Read(entry, kGpuFields, gpu);
  }
}

absl::Status NoSample() { return absl::InvalidArgumentError("this is no sample of usage"); }

}  // namespace

std::string ToJson(const UsageSample& sample) {
  json object = WithoutUnknown(sample, kNodeFields);
  object["time"] = absl::ToUnixMillis(sample.time);
  object["ranks"] = json::array();
  for (const RankUsage& rank : sample.ranks) {
    json& entry = object["ranks"].emplace_back(WithoutUnknown(rank, kRankFields));
    entry["rank"] = rank.rank;
    if (rank.stopped) entry["stopped"] = true;
    if (rank.blocked) entry["blocked"] = true;
  }
  for (const GpuUsage& gpu : sample.gpus) {
    object["gpus"].emplace_back(WithoutUnknown(gpu, kGpuFields))["gpu"] = gpu.gpu;
  }
  return Dump(object);
}

absl::StatusOr<UsageSample> UsageSampleFromJson(absl::string_view line) {
  const json object = json::parse(line.begin(), line.end(), nullptr, false);
  if (!object.is_object()) return NoSample();
  const auto time = Whole(object, "time");
  const auto ranks = object.find("ranks");
  if (!time || ranks == object.end() || !ranks->is_array()) return NoSample();
  UsageSample sample{.time = absl::FromUnixMillis(*time)};
  Read(object, kNodeFields, sample);
  for (const json& entry : *ranks) {
    const auto number = entry.is_object() ? Whole(entry, "rank") : std::nullopt;
    if (!number || *number < 0 || *number > std::numeric_limits<int>::max()) continue;
    RankUsage rank{.rank = static_cast<int>(*number)};
    Read(entry, kRankFields, rank);
    rank.stopped = Flag(entry, "stopped");
    rank.blocked = Flag(entry, "blocked");
    sample.ranks.push_back(rank);
  }
  ReadGpus(object, sample.gpus);
  return sample;
}

}  // namespace tutti::spec
