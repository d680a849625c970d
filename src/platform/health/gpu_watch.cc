#include "platform/health/gpu_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/health/check_program.h"

namespace tutti::health {
namespace {

constexpr std::array<std::pair<int, absl::string_view>, 7> kDeviceXids = {
    {{48, "an error of its memory that ECC could not correct"},
     {64, "a row of its memory that could not be replaced"},
     {74, "an error of its NVLink"},
     {79, "it has left the bus"},
     {95, "an error of its memory that reached other programs"},
     {119, "its firmware did not answer"},
     {120, "its firmware failed"}}};

absl::string_view MeaningOf(int code) {
  for (const auto& [known, words] : kDeviceXids) {
    if (known == code) return words;
  }
  return "";
}

// "00000000:3B:00.0" and "0000:3b:00" are "0000:3b:00"; "" if it is no address.
std::string NormalBus(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(absl::AsciiStrToLower(text), ':');
  if (parts.size() != 3 || parts[0].size() < 4 || parts[2].size() < 2) return "";
  return absl::StrCat(parts[0].substr(parts[0].size() - 4), ":", parts[1], ":",
                      parts[2].substr(0, 2));
}

const Gpu* FindGpu(const std::vector<Gpu>& gpus, const std::string& uuid) {
  const auto found =
      std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& gpu) { return gpu.uuid == uuid; });
  return found == gpus.end() ? nullptr : &*found;
}

// "" if nothing is.
std::string WhatIsWrong(const Gpu& gpu, const std::vector<Xid>& xids) {
  if (gpu.uncorrected_errors.value_or(0) > 0) {
    return absl::StrCat("has ", *gpu.uncorrected_errors,
                        " errors of memory that ECC could not correct");
  }
  for (const Xid& xid : xids) {
    if (xid.bus == gpu.bus) return absl::StrCat("had XID ", xid.code, ": ", MeaningOf(xid.code));
  }
  return "";
}

// "6,101,201,-;NVRM: …": written 201 microseconds after boot.
std::optional<absl::Duration> TimeOf(absl::string_view line) {
  const std::vector<absl::string_view> head = absl::StrSplit(line.substr(0, line.find(';')), ',');
  int64_t microseconds = 0;
  if (head.size() < 4 || !absl::SimpleAtoi(head[2], &microseconds)) return std::nullopt;
  return absl::Microseconds(microseconds);
}

bool IsNamed(const GpuFault& fault, absl::string_view name) {
  return name == fault.index ||
         (absl::StartsWith(name, "GPU-") && absl::StartsWith(fault.uuid, name));
}

}  // namespace

absl::StatusOr<std::vector<Gpu>> ParseGpus(absl::string_view text) {
  std::vector<Gpu> gpus;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    std::vector<std::string> fields = absl::StrSplit(line, ',');
    for (std::string& field : fields) absl::StripAsciiWhitespace(&field);
    if (fields.size() != 4 || NormalBus(fields[2]).empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("nvidia-smi says \"", line.substr(0, 200), "\""));
    }
    Gpu gpu{.index = fields[0], .uuid = fields[1], .bus = NormalBus(fields[2])};
    if (int64_t count = 0; absl::SimpleAtoi(fields[3], &count)) gpu.uncorrected_errors = count;
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

absl::StatusOr<std::vector<Gpu>> FindGpus(const std::string& nvidia_smi,
                                          const std::atomic<bool>& abandoned) {
  TUTTI_ASSIGN_OR_RETURN(
      const base::CommandResult result,
      RunWithin(
          {nvidia_smi, "--query-gpu=index,uuid,pci.bus_id,ecc.errors.uncorrected.volatile.total",
           "--format=csv,noheader,nounits"},
          kGpuLimit, abandoned));
  if (result.exit.ok()) return ParseGpus(result.out);
  return absl::InternalError(
      absl::StrCat("nvidia-smi ended with ", result.exit.ToString(), ": ", WordsOf(result)));
}

std::string ReadKernelLog() {
  const auto fd = base::Open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
  std::string log;
  if (!fd.ok()) return log;
  std::array<char, 8192> record;
  while (true) {
    const ssize_t n = ::read(fd->get(), record.data(), record.size());
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;  // what was next was overwritten
    if (n <= 0) return log;
    log.append(record.data(), static_cast<size_t>(n));
  }
}

// "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."
std::vector<Xid> DeviceXids(absl::string_view kernel_log, absl::Duration after) {
  static constexpr absl::string_view kBegin = "NVRM: Xid (PCI:";
  std::vector<Xid> xids;
  for (absl::string_view line : absl::StrSplit(kernel_log, '\n')) {
    const size_t at = line.find(kBegin);
    if (at == absl::string_view::npos) continue;
    if (const auto time = TimeOf(line); time && *time <= after) continue;
    line.remove_prefix(at + kBegin.size());
    const size_t end = line.find("): ");
    if (end == absl::string_view::npos) continue;
    const absl::string_view rest = line.substr(end + 3);
    Xid xid{.bus = NormalBus(line.substr(0, end))};
    if (!absl::SimpleAtoi(rest.substr(0, rest.find(',')), &xid.code)) continue;
    if (!MeaningOf(xid.code).empty()) xids.push_back(std::move(xid));
  }
  return xids;
}

absl::Duration LastTimeOf(absl::string_view kernel_log) {
  absl::Duration last = -absl::InfiniteDuration();
  for (const absl::string_view line : absl::StrSplit(kernel_log, '\n')) {
    if (const auto time = TimeOf(line)) last = std::max(last, *time);
  }
  return last;
}

std::vector<GpuFault> FaultsOf(const std::vector<Gpu>& before, const std::vector<Gpu>& now,
                               const std::vector<Xid>& xids) {
  std::vector<GpuFault> faults;
  for (const Gpu& gpu : before) {
    if (FindGpu(now, gpu.uuid) != nullptr) continue;
    const std::string why = WhatIsWrong(gpu, xids);
    faults.push_back(
        {gpu.index, gpu.uuid, absl::StrCat("is gone", why.empty() ? "" : ": it ", why)});
  }
  for (const Gpu& gpu : now) {
    std::string why = WhatIsWrong(gpu, xids);
    if (!why.empty()) faults.push_back({gpu.index, gpu.uuid, std::move(why)});
  }
  std::stable_sort(faults.begin(), faults.end(), [](const GpuFault& a, const GpuFault& b) {
    return std::pair(a.index.size(), a.index) < std::pair(b.index.size(), b.index);
  });
  return faults;
}

NodeCheck CheckGpus(const std::vector<GpuFault>& faults, const std::vector<std::string>& gpus) {
  std::vector<std::string> words;
  for (const GpuFault& fault : faults) {
    const bool is_its = std::any_of(gpus.begin(), gpus.end(),
                                    [&](const std::string& name) { return IsNamed(fault, name); });
    if (is_its) words.push_back(absl::StrCat("GPU ", fault.index, " ", fault.what));
  }
  if (words.empty()) return {"gpu", NodeCheck::Outcome::kWell, "no errors"};
  return {"gpu", NodeCheck::Outcome::kIll, absl::StrJoin(words, ", ")};
}

// Returns the check if the program does not exist, or was ended together with its caller.
NodeCheck CheckOfUnseenGpus(const absl::Status& failure) {
  const bool is_unknown = absl::IsNotFound(failure) || absl::IsCancelled(failure);
  return {"gpu", is_unknown ? NodeCheck::Outcome::kUnknown : NodeCheck::Outcome::kIll,
          std::string(failure.message())};
}

std::string ToText(const std::vector<Gpu>& gpus) {
  std::string text;
  for (const Gpu& gpu : gpus) {
    absl::StrAppend(&text, gpu.index, ", ", gpu.uuid, ", ", gpu.bus, ".0, [N/A]\n");
  }
  return text;
}

std::vector<Gpu> GpusFromText(absl::string_view text) {
  return ParseGpus(text).value_or(std::vector<Gpu>());
}

}  // namespace tutti::health
