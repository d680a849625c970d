// Where the time of training steps goes: on the CPU by libtorch's operators and tutti's, on a GPU
// by kernels. Thread-compatible.
#pragma once

#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tutti {

// The names that took the longest, per step.
inline void PrintLongest(const std::map<std::string, double>& seconds, int64_t steps) {
  std::multimap<double, std::string, std::greater<>> sorted;
  double total = 0;
  for (const auto& [name, own] : seconds) {
    sorted.emplace(own, name);
    total += own;
  }
  std::printf("%9.2f ms in all\n", 1e3 * total / static_cast<double>(steps));
  size_t shown = 0;
  for (const auto& [own, name] : sorted) {
    if (++shown > 24) break;
    std::printf("%9.2f ms %5.1f %%  %s\n", 1e3 * own / static_cast<double>(steps),
                100 * own / total, name.c_str());
  }
}

// What a GPU does while it lives, the kernels of recorded steps among it; by libtorch's Kineto.
class KernelProfile {
 public:
  KernelProfile() {
    torch::autograd::profiler::prepareProfiler(config_, activities_);
    torch::autograd::profiler::enableProfiler(config_, activities_);
  }
  KernelProfile(const KernelProfile&) = delete;
  KernelProfile& operator=(const KernelProfile&) = delete;

  // Ends it. What ran before has to be waited for.
  void Print(int64_t steps) {
    std::map<std::string, double> seconds;
    const auto result = torch::autograd::profiler::disableProfiler();
    for (const auto& event : result->events()) {
      if (event.deviceType() != c10::DeviceType::CUDA) continue;
      seconds[event.name()] += 1e-9 * static_cast<double>(event.durationNs());
    }
    PrintLongest(seconds, steps);
  }

 private:
  const torch::profiler::impl::ProfilerConfig config_{torch::profiler::impl::ProfilerState::KINETO};
  const std::set<torch::profiler::impl::ActivityType> activities_ = {
      torch::profiler::impl::ActivityType::CUDA};
};

// While it lives, every operator's own time, without that of operators it calls, is added up.
class Profile {
 public:
  Profile()
      : handle_(at::addGlobalCallback(
            at::RecordFunctionCallback(&Begin, &End)
                .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION,
                         at::RecordScope::USER_SCOPE}))) {
    OwnSeconds().clear();
  }
  ~Profile() { at::removeCallback(handle_); }
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  void Print(int64_t steps) const { PrintLongest(OwnSeconds(), steps); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Call : at::ObserverContext {
    Clock::time_point since = Clock::now();
    double in_others = 0;
  };
  static std::map<std::string, double>& OwnSeconds() {
    static std::map<std::string, double> seconds;
    return seconds;
  }
  static std::vector<Call*>& Open() {
    thread_local std::vector<Call*> calls;
    return calls;
  }
  static std::unique_ptr<at::ObserverContext> Begin(const at::RecordFunction&) {
    auto call = std::make_unique<Call>();
    Open().push_back(call.get());
    return call;
  }
  static void End(const at::RecordFunction& function, at::ObserverContext* context) {
    auto* const call = static_cast<Call*>(context);
    const double seconds = std::chrono::duration<double>(Clock::now() - call->since).count();
    OwnSeconds()[function.name()] += seconds - call->in_others;
    Open().pop_back();
    if (!Open().empty()) Open().back()->in_others += seconds;
  }

  const at::CallbackHandle handle_;
};

}  // namespace tutti
