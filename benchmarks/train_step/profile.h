// Where the time of training steps goes, by libtorch's operators and tutti's. Thread-compatible.
#pragma once

#include <ATen/record_function.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace tutti {

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

  // The operators that took the longest, per step.
  void Print(int64_t steps) const {
    std::multimap<double, std::string, std::greater<>> sorted;
    double total = 0;
    for (const auto& [name, seconds] : OwnSeconds()) {
      sorted.emplace(seconds, name);
      total += seconds;
    }
    size_t shown = 0;
    for (const auto& [seconds, name] : sorted) {
      if (++shown > 16) break;
      std::printf("%8.1f ms %5.1f %%  %s\n", 1e3 * seconds / static_cast<double>(steps),
                  100 * seconds / total, name.c_str());
    }
  }

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
