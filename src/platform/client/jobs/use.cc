#include "platform/client/jobs/use.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "platform/client/text/amounts.h"

namespace tutti::client {
namespace {

double LastOf(const std::vector<double>& values) {
  return values.empty() ? Use::kUnknown : values.back();
}

double LeastOf(const std::vector<double>& values) {
  double least = Use::kUnknown;
  for (const double value : values) least = std::fmin(least, value);
  return least;
}

Use Newest(const UsageSeries& recent, absl::Duration age) {
  if (age > Use::kStillNow) return {.age = age};
  return {.cores = LastOf(recent.cpu),
          .memory = LastOf(recent.memory),
          .left = LastOf(recent.memory_left),
          .read = LastOf(recent.disk_read),
          .written = LastOf(recent.disk_write),
          .received = LastOf(recent.net_receive),
          .sent = LastOf(recent.net_send),
          .gpus = LastOf(recent.gpu_use),
          .gpu_memory = LastOf(recent.gpu_memory),
          .gpu_memory_total = LastOf(recent.gpu_memory_total),
          .gpu_power = LastOf(recent.gpu_power),
          .gpu_temperature = LastOf(recent.gpu_temperature),
          .age = age};
}

Use OfWholeLife(const UsageSeries& whole, const std::vector<double>& samples) {
  return {.cores = WeighedMean(whole.cpu, samples),
          .memory = MostOf(whole.memory),
          .left = LeastOf(whole.memory_left),
          .read = WeighedMean(whole.disk_read, samples),
          .written = WeighedMean(whole.disk_write, samples),
          .received = WeighedMean(whole.net_receive, samples),
          .sent = WeighedMean(whole.net_send, samples),
          .gpus = WeighedMean(whole.gpu_use, samples),
          .gpu_memory = MostOf(whole.gpu_memory),
          .gpu_memory_total = MostOf(whole.gpu_memory_total),
          .gpu_power = WeighedMean(whole.gpu_power, samples),
          .gpu_temperature = MostOf(whole.gpu_temperature)};
}

std::string Marked(const Use& use, const std::string& text) {
  return use.is_doubtful() && !text.empty() ? absl::StrCat("~", text) : text;
}

}  // namespace

double MostOf(const std::vector<double>& values) {
  double most = Use::kUnknown;
  for (const double value : values) most = std::fmax(most, value);
  return most;
}

double WeighedMean(const std::vector<double>& values, const std::vector<double>& samples) {
  double sum = 0, count = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const double weight = i < samples.size() && std::isfinite(samples[i]) ? samples[i] : 1;
    sum += values[i] * weight;
    count += weight;
  }
  return count > 0 ? sum / count : Use::kUnknown;
}

void AddTo(double& sum, double value) {
  if (!std::isfinite(value)) return;
  sum = std::isfinite(sum) ? sum + value : value;
}

bool Use::is_known() const {
  for (const double value : {cores, memory, left, read, written, received, sent, gpus, gpu_memory,
                             gpu_memory_total, gpu_power, gpu_temperature}) {
    if (std::isfinite(value)) return true;
  }
  return false;
}

Use UseOf(const NodeUsageView& node, bool live, absl::Duration asked) {
  return live ? Newest(node.recent, absl::Seconds(node.age) + asked)
              : OfWholeLife(node.whole, node.whole.samples);
}

Use UseOf(const NodeUsageView& node, const RankUsageView& rank, bool live, absl::Duration asked) {
  return live ? Newest(rank.recent, absl::Seconds(node.age) + asked)
              : OfWholeLife(rank.whole, node.whole.samples);
}

void UseSum::Add(const Use& use) {
  if (!use.is_known()) {
    lacks_ = true;
    return;
  }
  AddTo(sum_.cores, use.cores);
  AddTo(sum_.memory, use.memory);
  sum_.left = std::fmin(sum_.left, use.left);
  AddTo(sum_.read, use.read);
  AddTo(sum_.written, use.written);
  AddTo(sum_.received, use.received);
  AddTo(sum_.sent, use.sent);
  AddTo(sum_.gpus, use.gpus);
  AddTo(sum_.gpu_memory, use.gpu_memory);
  AddTo(sum_.gpu_memory_total, use.gpu_memory_total);
  AddTo(sum_.gpu_power, use.gpu_power);
  sum_.gpu_temperature = std::fmax(sum_.gpu_temperature, use.gpu_temperature);
  most_received_ = std::fmax(most_received_, use.received);
  most_sent_ = std::fmax(most_sent_, use.sent);
  sum_.age = std::max(sum_.age, use.age);
  sum_.is_partial |= use.is_partial;
}

Use UseSum::Sum() const {
  Use sum = sum_;
  sum.is_partial |= lacks_ && sum.is_known();
  return sum;
}

Use UseSum::OfOneMachine() const {
  Use sum = Sum();
  sum.received = most_received_;
  sum.sent = most_sent_;
  return sum;
}

std::string CoresText(const Use& use) {
  return std::isfinite(use.cores) ? Marked(use, absl::StrFormat("%.2f", use.cores)) : "";
}

std::string AmountText(const Use& use, double bytes) {
  if (!std::isfinite(bytes) || bytes < 0) return "";
  return Marked(use, Bytes(static_cast<uint64_t>(bytes)));
}

std::string RateText(const Use& use, double bytes) {
  const std::string text = AmountText(use, bytes);
  return text.empty() ? "" : absl::StrCat(text, "/s");
}

std::string GpusText(const Use& use) {
  return std::isfinite(use.gpus) ? Marked(use, absl::StrFormat("%.2f", use.gpus)) : "";
}

std::string GpuMemoryText(const Use& use) {
  const std::string used = AmountText(use, use.gpu_memory);
  if (used.empty() || !std::isfinite(use.gpu_memory_total)) return used;
  return absl::StrCat(used, " of ", Bytes(static_cast<uint64_t>(use.gpu_memory_total)));
}

std::string GpuPowerText(const Use& use) {
  return std::isfinite(use.gpu_power) ? Marked(use, absl::StrFormat("%.0f W", use.gpu_power)) : "";
}

std::string GpuTemperatureText(const Use& use) {
  if (!std::isfinite(use.gpu_temperature)) return "";
  return Marked(use, absl::StrFormat("%.0f °C", use.gpu_temperature));
}

}  // namespace tutti::client
