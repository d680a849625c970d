#include "platform/engine/slurm/queue_reader.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "spec/types/node_state.h"

namespace tutti::engine {
namespace {

using nlohmann::json;

constexpr size_t kMostHosts = 65'536;
constexpr size_t kMostCores = 65'536;
constexpr int64_t kMostMebibytes = int64_t{1} << 40;

// Also with nodes that are chosen, and may still be booting. The last five are flags of a job that
// is pending, which 22.05 prints in place of that.
constexpr std::array<absl::string_view, 8> kWaitingStates = {
    "PENDING",  "CONFIGURING", "POWER_UP_NODE", "RESV_DEL_HOLD",
    "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD",  "SPECIAL_EXIT"};
constexpr std::array<absl::string_view, 2> kBootingStates = {"CONFIGURING", "POWER_UP_NODE"};
constexpr std::array<absl::string_view, 8> kRunningStates = {"RUNNING",  "COMPLETING", "SUSPENDED",
                                                             "STOPPED",  "SIGNALING",  "STAGE_OUT",
                                                             "RESIZING", "EXPEDITING"};
constexpr std::array<absl::string_view, 12> kEndedStates = {
    "COMPLETED", "FAILED",   "CANCELLED",     "TIMEOUT", "NODE_FAIL",     "PREEMPTED",
    "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL"};

// How deep things lie: a member of the document, one of its jobs, a member of a job.
constexpr int kOfDocument = 1, kJob = 2, kOfJob = 3;

constexpr std::array<absl::string_view, 9> kRead = {"job_id",       "state_reason", "name",
                                                    "comment",      "nodes",        "job_state",
                                                    "preempt_time", "start_time",   "exit_code"};

bool IsRead(absl::string_view member) {
  return std::find(kRead.begin(), kRead.end(), member) != kRead.end();
}

std::string TextOf(const json& job, const char* key) {
  const auto found = job.find(key);
  return found != job.end() && found->is_string() ? found->get<std::string>() : "";
}

// Reads a number, or, as from 23.02 on, {"set": true, "number": 7}. 0 if there is none.
int64_t NumberOf(const json& job, const char* key) {
  const auto found = job.find(key);
  if (found == job.end()) return 0;
  if (found->is_number_integer()) return found->get<int64_t>();
  if (!found->is_object() || !found->contains("number")) return 0;
  if (found->contains("set") && (*found)["set"] == false) return 0;
  return (*found)["number"].is_number_integer() ? (*found)["number"].get<int64_t>() : 0;
}

// Reads what wait(2) says, or, as from 23.02 on, {"return_code": 3, …} with a number as above.
int ExitCodeOf(const json& job) {
  const auto found = job.find("exit_code");
  if (found == job.end()) return 0;
  if (found->is_object()) return static_cast<int>(NumberOf(*found, "return_code") & 0xff);
  return static_cast<int>(NumberOf(job, "exit_code") >> 8 & 0xff);
}

// Reads a word, or, as from 23.02 on, a list of it and its flags: ["RUNNING", "COMPLETING"].
std::vector<std::string> StatesOf(const json& job) {
  const auto found = job.find("job_state");
  if (found == job.end()) return {};
  if (found->is_string()) return {found->get<std::string>()};
  std::vector<std::string> states;
  for (const json& state : *found) {
    if (state.is_string()) states.push_back(state.get<std::string>());
  }
  return states;
}

template <class Known>
bool AnyOf(const std::vector<std::string>& states, const Known& known) {
  return std::any_of(states.begin(), states.end(), [&](const std::string& state) {
    return std::find(known.begin(), known.end(), state) != known.end();
  });
}

SlurmPhase PhaseOf(const std::vector<std::string>& states) {
  if (AnyOf(states, kWaitingStates)) return SlurmPhase::kWaiting;
  const bool ended = AnyOf(states, kEndedStates) && !AnyOf(states, kRunningStates);
  // A word that is not known here says that the job is still there.
  return ended ? SlurmPhase::kEnded : SlurmPhase::kRunning;
}

SlurmJob JobOf(const json& entry) {
  SlurmJob job{.id = NumberOf(entry, "job_id"),
               .reason = TextOf(entry, "state_reason"),
               .name = TextOf(entry, "name"),
               .comment = TextOf(entry, "comment"),
               .nodes = TextOf(entry, "nodes")};
  const std::vector<std::string> states = StatesOf(entry);
  if (!states.empty()) job.state = states.front();
  job.phase = PhaseOf(states);
  job.booting = AnyOf(states, kBootingStates);
  job.preempted = NumberOf(entry, "preempt_time") > 0;
  job.exit_code = ExitCodeOf(entry);
  const int64_t start = NumberOf(entry, "start_time");
  if (start > 0 && job.phase == SlurmPhase::kWaiting) {
    job.expected_start = absl::FromUnixSeconds(start);
  } else if (start > 0) {
    job.start = absl::FromUnixSeconds(start);
  }
  return job;
}

// One of squeue's errors: {"description": "Failed while looking for jobs", "source": …}.
std::string WordsOf(const json& error) {
  if (!error.is_object()) return "squeue tells of an error";
  std::string words = TextOf(error, "description");
  if (words.empty()) words = TextOf(error, "error");
  const std::string source = TextOf(error, "source");
  if (words.empty()) words = "squeue tells of an error";
  return source.empty() ? words : absl::StrCat(words, " (", source, ")");
}

// Splits at commas outside of brackets.
absl::StatusOr<std::vector<absl::string_view>> SplitList(absl::string_view hosts) {
  std::vector<absl::string_view> parts;
  size_t begin = 0;
  bool inside = false;
  for (size_t i = 0; i <= hosts.size(); ++i) {
    if (i == hosts.size() || (hosts[i] == ',' && !inside)) {
      parts.push_back(hosts.substr(begin, i - begin));
      begin = i + 1;
    } else if (hosts[i] == '[' || hosts[i] == ']') {
      if (inside == (hosts[i] == '[')) return absl::InvalidArgumentError("brackets do not match");
      inside = !inside;
    }
  }
  if (inside) return absl::InvalidArgumentError("a bracket is not closed");
  return parts;
}

// The numbers of "1-3,07", each as wide as it is written.
absl::Status ExpandRanges(absl::string_view ranges, std::vector<std::string>& numbers) {
  for (const absl::string_view range : absl::StrSplit(ranges, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(range, absl::MaxSplits('-', 1));
    int64_t first = 0, last = 0;
    const absl::string_view to = absl::StrContains(range, '-') ? ends.second : ends.first;
    const auto is_number = [](absl::string_view text) {
      return !text.empty() && text.size() < 10 &&
             std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
    };
    if (!is_number(ends.first) || !is_number(to) || !absl::SimpleAtoi(ends.first, &first) ||
        !absl::SimpleAtoi(to, &last) || last < first ||
        last - first >= static_cast<int64_t>(kMostHosts - std::min(kMostHosts, numbers.size()))) {
      return absl::InvalidArgumentError("no range of hosts");
    }
    for (int64_t i = first; i <= last; ++i) {
      numbers.push_back(absl::StrFormat("%0*d", static_cast<int>(ends.first.size()), i));
    }
  }
  return absl::OkStatus();
}

// One part, which may have several brackets: "rack[1-2]n[1-4]".
absl::Status ExpandPart(absl::string_view part, std::vector<std::string>& hosts) {
  std::vector<std::string> names = {""};
  while (!part.empty()) {
    const size_t open = std::min(part.find('['), part.size());
    for (std::string& name : names) absl::StrAppend(&name, part.substr(0, open));
    if (open == part.size()) break;
    const size_t close = part.find(']', open);
    std::vector<std::string> numbers, longer;
    TUTTI_RETURN_IF_ERROR(ExpandRanges(part.substr(open + 1, close - open - 1), numbers));
    if (numbers.size() * names.size() > kMostHosts) {
      return absl::InvalidArgumentError("too many hosts");
    }
    for (const std::string& name : names) {
      for (const std::string& number : numbers) longer.push_back(absl::StrCat(name, number));
    }
    names = std::move(longer);
    part.remove_prefix(close + 1);
  }
  hosts.insert(hosts.end(), names.begin(), names.end());
  return hosts.size() <= kMostHosts ? absl::OkStatus()
                                    : absl::InvalidArgumentError("too many hosts");
}

// Returns the idle ones of "allocated/idle/other/total"; 0 if it is nothing of that kind.
int IdleOf(absl::string_view cpus) {
  const std::vector<absl::string_view> numbers = absl::StrSplit(cpus, '/');
  int idle = 0;
  return numbers.size() == 4 && absl::SimpleAtoi(numbers[1], &idle) ? std::max(idle, 0) : 0;
}

}  // namespace

absl::StatusOr<std::vector<SlurmJob>> ReadQueue(absl::string_view text, absl::string_view comment) {
  std::vector<SlurmJob> jobs;
  bool in_jobs = false, stateless = false;
  // Ten thousand jobs are 33 MB, of which each job's object is let go as soon as it is read, and of
  // its hundred members most are not kept at all.
  const auto keep = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key) {
      if (depth == kOfDocument) {
        in_jobs = parsed == "jobs";
        return in_jobs || parsed == "errors";
      }
      return !in_jobs || depth != kOfJob || IsRead(parsed.get_ref<const std::string&>());
    }
    if (event != json::parse_event_t::object_end || depth != kJob || !in_jobs) return true;
    SlurmJob job = JobOf(parsed);
    if (job.id <= 0 || !absl::StartsWith(job.comment, comment)) return false;
    stateless |= job.state.empty();
    jobs.push_back(std::move(job));
    return false;
  };
  const json document = json::parse(text.begin(), text.end(), keep, false);
  if (document.is_discarded()) {
    // A name or a folder, of any of the user's jobs, may be of any bytes and is printed so.
    if (const std::string sound = base::BoundedUtf8(text); sound != text) {
      return ReadQueue(sound, comment);
    }
  }
  if (!document.is_object() || !document.contains("jobs") || !document["jobs"].is_array()) {
    return absl::DataLossError("squeue --json printed no list of jobs");
  }
  // Without its controller squeue ends with 0 and a list that is empty.
  if (const auto errors = document.find("errors");
      errors != document.end() && errors->is_array() && !errors->empty()) {
    return absl::UnavailableError(WordsOf(errors->front()));
  }
  if (stateless) return absl::DataLossError("squeue --json tells of a job without its state");
  return jobs;
}

std::vector<SlurmRecord> ReadRecords(absl::string_view lines) {
  std::vector<SlurmRecord> records;
  for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, '|');
    SlurmRecord record;
    if (fields.size() != 3 || !absl::SimpleAtoi(fields[0], &record.job.id)) continue;
    record.name = std::string(fields[1]);
    // "CANCELLED by 1000"
    record.job.state = std::string(fields[2].substr(0, fields[2].find(' ')));
    if (record.name.empty() || record.job.state.empty()) continue;
    record.job.phase = PhaseOf({record.job.state});
    records.push_back(std::move(record));
  }
  return records;
}

absl::StatusOr<std::vector<std::string>> ExpandHosts(absl::string_view hosts) {
  std::vector<std::string> names;
  if (hosts.empty()) return names;
  TUTTI_ASSIGN_OR_RETURN(const std::vector<absl::string_view> parts, SplitList(hosts));
  for (const absl::string_view part : parts) {
    const absl::Status status = ExpandPart(part, names);
    if (part.empty() || !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", hosts.substr(0, 80), "\" is no list of hosts"));
    }
  }
  return names;
}

std::vector<Node> ReadNodes(absl::string_view lines) {
  std::vector<Node> nodes;
  std::set<std::string> known;  // a node comes once for each of its partitions
  for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits('|', 5));
    size_t cores = 0;
    int64_t mebibytes = 0;
    const bool is_node = fields.size() == 6 && !fields[0].empty() && !fields[1].empty() &&
                         absl::SimpleAtoi(fields[2], &cores) && cores <= kMostCores &&
                         absl::SimpleAtoi(fields[3], &mebibytes) && mebibytes >= 0 &&
                         mebibytes <= kMostMebibytes;
    if (!is_node || !known.insert(std::string(fields[0])).second) continue;
    Node node{.name = std::string(fields[0]),
              .address = std::string(fields[4]),
              .memory_bytes = mebibytes << 20,
              .state = spec::StateOfSlurmNode(fields[1]),
              .reason = fields[5] == "none" ? "" : std::string(fields[5])};
    node.cores.resize(cores);
    std::iota(node.cores.begin(), node.cores.end(), 0);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// "(null)", or "gpu:a100:4(S:0-1),nvme:1".
std::vector<NodeWithRoom> ReadRoom(absl::string_view lines, absl::string_view partition) {
  std::vector<NodeWithRoom> nodes;
  std::set<absl::string_view> seen;
  for (const absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, '|');
    if (fields.size() != 4 || fields[0].empty()) continue;
    if (partition.empty() && !absl::EndsWith(fields[3], "*")) continue;
    if (!seen.insert(fields[0]).second) continue;
    // A state with a sign behind it is no such state: the node is switched off, boots, does not
    // answer, or is kept for another job.
    const bool is_whole = fields[1] == "idle";
    const bool has_room = is_whole || fields[1] == "mixed";
    nodes.push_back({.name = std::string(fields[0]),
                     .is_whole = is_whole,
                     .idle_cpus = has_room ? IdleOf(fields[2]) : 0});
  }
  return nodes;
}

bool MayHaveGpus(absl::string_view lines) {
  bool any = false;
  for (absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipWhitespace())) {
    any = true;
    for (const absl::string_view one : absl::StrSplit(absl::StripAsciiWhitespace(line), ',')) {
      if (absl::StartsWith(one, "gpu")) return true;
    }
  }
  return !any;  // a partition that there is not: Slurm says it
}

}  // namespace tutti::engine
