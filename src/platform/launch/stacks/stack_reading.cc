#include "platform/launch/stacks/stack_reading.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/text/utf8.h"
#include "base/threads/start_thread.h"
#include "platform/launch/process/own_children.h"
#include "platform/launch/stacks/process_look.h"
#include "platform/launch/stacks/stack_tool.h"

namespace tutti::launch {
namespace {

constexpr size_t kMostProcesses = 256;   // of a rank
constexpr size_t kMostOfRank = 1 << 20;  // bytes of all its stacks
constexpr int kTries = 3;                // of py-spy: what runs on meanwhile may confuse it
constexpr size_t kLongestNote = 600;

struct Target {
  int rank;
  pid_t pid;
  ProcessFacts facts;
  spec::ProcessStacks stacks;
};

// Which tracing the kernel refuses to who is no ancestor; of that a tool says only "not permitted".
std::string WhyRefused(absl::string_view said) {
  const std::string lower = absl::AsciiStrToLower(said);
  if (!absl::StrContains(lower, "permission denied") &&
      !absl::StrContains(lower, "not permitted")) {
    return "";
  }
  const std::string scope =
      base::ReadFile("/proc/sys/kernel/yama/ptrace_scope", 16).value_or("0\n");
  if (scope == "0\n") return " (this user may not look into it)";
  return " (kernel.yama.ptrace_scope on this node keeps processes from being looked into: 0 allows "
         "it)";
}

std::string ToolNote(const absl::Status& status) {
  const std::string said = base::BoundedUtf8(status.message(), kLongestNote);
  return absl::StrCat(said, WhyRefused(said));
}

class StackReading {
 public:
  StackReading(const StackRequest& request, const StackTools& tools,
               const std::atomic<bool>& cancelled)
      : request_(request), tools_(tools), cancelled_(cancelled) {}

  std::map<int, spec::RankStacks> Read() {
    FindProcesses();
    EachAtOnce([this](Target& process) { ReadPython(process); });
    EachAtOnce([this](Target& process) { ReadNative(process); });
    for (Target& process : targets_) {
      if (process.stacks.python.empty() && process.stacks.native.empty()) {
        process.stacks.kernel = KernelStacks(process.pid);
      }
    }
    return Answers();
  }

 private:
  void FindProcesses() {
    const std::set<int> asked(request_.ranks.begin(), request_.ranks.end());
    const std::vector<pid_t> all = WithoutOwnChildren(base::Descendants(::getpid()));
    for (auto& [rank, pids] : ProcessesByRank(request_.leaders, all)) {
      if (!asked.contains(rank)) continue;
      std::sort(pids.begin(), pids.end());
      for (size_t i = 0; i < pids.size(); ++i) {
        if (i == kMostProcesses) errors_[rank] = TooMany(pids.size());
        if (i >= kMostProcesses) break;
        std::optional<ProcessFacts> facts = LookAtProcess(pids[i]);
        if (!facts) continue;
        Target& process = targets_.emplace_back(Target{.rank = rank, .pid = pids[i]});
        process.stacks.pid = pids[i];
        process.stacks.command = base::BoundedUtf8(facts->command);
        process.facts = *std::move(facts);
      }
    }
  }

  static std::string TooMany(size_t count) {
    return absl::StrCat(count - kMostProcesses, " of its ", count, " processes are left out");
  }

  template <class Work>
  void EachAtOnce(Work work) {
    std::atomic<size_t> next = 0;
    const auto loop = [&] {
      for (size_t i = next++; i < targets_.size() && !cancelled_; i = next++) {
        try {
          work(targets_[i]);
        } catch (const std::exception& error) {
          targets_[i].stacks.notes.emplace_back(error.what());
        }
      }
    };
    // Where there is no second thread to be had the first one does it all. It ends by itself.
    std::thread second = targets_.size() > 1 ? base::StartThread(loop) : std::thread();
    loop();
    if (second.joinable()) second.join();
  }

  bool HasTimeFor(Target& process, const char* what) const {
    if (!request_.end.Expired()) return true;
    process.stacks.notes.push_back(
        absl::StrCat("there was no time left for its ", what, " stacks"));
    return false;
  }

  // Its own folders, unless its files are a container's.
  std::string ToolOf(const Target& process, const char* name) const {
    return FindProgram(name, process.facts.is_contained
                                 ? tools_.path
                                 : absl::StrCat(process.facts.path, ":", tools_.path));
  }

  void ReadPython(Target& process) const {
    if (!process.facts.is_python || !HasTimeFor(process, "Python")) return;
    const std::string py_spy = ToolOf(process, "py-spy");
    if (py_spy.empty()) {
      process.stacks.notes.emplace_back(
          "py-spy is neither beside this Python nor in the PATH of the node: pip install py-spy");
      return;
    }
    absl::StatusOr<std::string> said;
    for (int i = 0; i < kTries && (i == 0 || absl::IsUnknown(said.status())); ++i) {
      said = RunTool({py_spy, "dump", "--nonblocking", "--pid", absl::StrCat(process.pid)},
                     {.time = tools_.python_limit}, cancelled_);
    }
    if (!said.ok()) {
      process.stacks.notes.push_back(ToolNote(said.status()));
      return;
    }
    process.stacks.python = base::BoundedUtf8(*said);
  }

  void ReadNative(Target& process) const {
    if (!request_.native || !HasTimeFor(process, "native")) return;
    const std::string gdb = FindProgram("gdb", tools_.path);
    if (gdb.empty()) {
      process.stacks.notes.emplace_back("gdb is not in the PATH of the node");
      return;
    }
    const auto said =
        RunStoppingTool(GdbCommand(gdb, process.pid), process.pid, process.facts.began,
                        {.time = tools_.native_limit}, cancelled_);
    if (!said.ok()) {
      process.stacks.notes.push_back(ToolNote(said.status()));
      return;
    }
    process.stacks.native = base::BoundedUtf8(FramesOfGdb(*said));
    if (process.stacks.native.empty()) {
      process.stacks.notes.push_back(
          ToolNote(absl::UnknownError(absl::StrCat("gdb has read nothing: ", LastLine(*said)))));
    }
  }

  static absl::string_view LastLine(absl::string_view text) {
    text = absl::StripAsciiWhitespace(text);
    return text.substr(text.rfind('\n') + 1);
  }

  // Neither files of the job's nor a server of symbols have a word in it.
  static std::vector<std::string> GdbCommand(const std::string& gdb, pid_t pid) {
    std::vector<std::string> command = {gdb, "-nx", "-batch", "-q"};
    for (const char* setting :
         {"auto-load python-scripts off", "auto-load gdb-scripts off",
          "auto-load local-gdbinit off", "debuginfod enabled off", "confirm off", "pagination off",
          "width 0", "print frame-arguments none", "print address off", "backtrace limit 200"}) {
      command.insert(command.end(), {"-iex", absl::StrCat("set ", setting)});
    }
    command.insert(command.end(),
                   {"-p", absl::StrCat(pid), "-ex", "thread apply all bt", "-ex", "detach"});
    return command;
  }

  std::map<int, spec::RankStacks> Answers() {
    std::map<int, spec::RankStacks> answers;
    for (const int rank : request_.ranks) answers[rank];
    std::map<int, size_t> bytes;
    for (Target& process : targets_) {
      spec::ProcessStacks& stacks = process.stacks;
      size_t& sum = bytes[process.rank];
      sum += stacks.python.size() + stacks.native.size() + stacks.kernel.size();
      if (sum > kMostOfRank) {
        stacks.python = stacks.native = stacks.kernel = "";
        stacks.notes = {"its stacks are left out: the rank has more than 1 MiB"};
      }
      answers[process.rank].processes.push_back(std::move(stacks));
    }
    for (auto& [rank, answer] : answers) {
      const auto error = errors_.find(rank);
      if (error != errors_.end()) answer.error = error->second;
      if (answer.processes.empty()) answer.error = "no process of it runs on its node";
    }
    return answers;
  }

  const StackRequest& request_;
  const StackTools& tools_;
  const std::atomic<bool>& cancelled_;
  std::vector<Target> targets_;
  std::map<int, std::string> errors_;
};

}  // namespace

std::string FramesOfGdb(absl::string_view said) {
  std::string frames;
  for (const absl::string_view line : absl::StrSplit(said, '\n')) {
    const bool is_thread = absl::StartsWith(line, "Thread ") && absl::EndsWith(line, ":");
    if (is_thread || absl::StartsWith(line, "#")) absl::StrAppend(&frames, line, "\n");
    if (absl::StartsWith(line, "[") && absl::StrContains(line, "bytes are left out")) {
      absl::StrAppend(&frames, line, "\n");
    }
  }
  return frames;
}

std::map<int, spec::RankStacks> ReadStacks(const StackRequest& request, const StackTools& tools,
                                           const std::atomic<bool>& cancelled) {
  return StackReading(request, tools, cancelled).Read();
}

}  // namespace tutti::launch
