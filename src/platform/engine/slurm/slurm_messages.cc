#include "platform/engine/slurm/slurm_messages.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/text/utf8.h"

namespace tutti::engine {
namespace {

constexpr absl::string_view kLaunchFailure = "JobLaunchFailure";
constexpr size_t kMostCharacters = 300;

using Phrase = std::pair<absl::string_view, absl::string_view>;

constexpr std::array<Phrase, 34> kWaits = {{
    {"None", "has just been queued"},
    {"Resources", "waits for nodes to become free"},
    {"Priority", "waits behind jobs of higher priority"},
    {"Dependency", "waits for another job"},
    {"BeginTime", "may not begin yet"},
    {"Cleaning", "waits until what is left of its last run is gone"},
    {"Licenses", "waits for a license"},
    {"JobHeldUser", "is held; `scontrol release` lets it go"},
    {"JobHeldAdmin", "is held by the administrator"},
    {"Reservation", "waits for its reservation to begin"},
    {"ReservationDeleted", "asks for a reservation that was deleted"},
    {"PartitionDown", "waits: its partition takes no jobs now"},
    {"PartitionInactive", "waits: its partition starts no jobs now"},
    {"PartitionNodeLimit", "can never start: more nodes than its partition gives one job"},
    {"PartitionTimeLimit",
     "can never start: a longer time limit than its partition gives; --time is limits.timeout, the "
     "grace and ten minutes: give less, or say slurm: {time: …}"},
    {"PartitionConfig", "can never start: its partition has no such nodes"},
    {"BadConstraints", "can never start: no node meets its constraint"},
    {"ReqNodeNotAvail", "waits: nodes that it needs are down or reserved"},
    {"NodeDown", "waits: a node that it needs is down"},
    {"InvalidAccount", "can never start: its account is not valid"},
    {"InvalidQOS", "can never start: its QOS is not valid"},
    {"AccountNotAllowed", "can never start: its account may not use the partition"},
    {"QOSNotAllowed", "can never start: its QOS may not use the partition"},
    {"SchedDefer", "waits for the scheduler's next round"},
    {"Prolog", "waits for its nodes to be made ready"},
    {"FrontEndDown", "waits: no front end is up"},
    // States in place of PENDING and a reason.
    {"CONFIGURING", "its nodes are being made ready"},
    {"POWER_UP_NODE", "its nodes are being made ready"},
    {"RUNNING", "its nodes are being made ready"},
    {"RESV_DEL_HOLD", "asks for a reservation that was deleted"},
    {"REQUEUED", "was queued again by Slurm"},
    {"REQUEUE_FED", "was queued again by Slurm"},
    {"REQUEUE_HOLD", "is held; `scontrol release` lets it go"},
    {"SPECIAL_EXIT", "is held; `scontrol release` lets it go"},
}};

constexpr std::array<Phrase, 9> kEnds = {{
    {"NODE_FAIL", "a node of it failed"},
    {"TIMEOUT", "it reached the time limit that it was given in Slurm"},
    {"OUT_OF_MEMORY", "it used more memory than it was given in Slurm"},
    {"PREEMPTED", "it was preempted by another job"},
    {"CANCELLED", "it was cancelled in Slurm"},
    {"BOOT_FAIL", "its nodes did not boot"},
    {"DEADLINE", "its deadline in Slurm has passed"},
    {"REVOKED", "Slurm revoked it"},
    {"LAUNCH_FAILED", "Slurm could not launch it"},
}};

template <class Phrases>
absl::string_view Find(const Phrases& phrases, absl::string_view word) {
  const auto found = std::find_if(phrases.begin(), phrases.end(),
                                  [&](const Phrase& phrase) { return phrase.first == word; });
  return found == phrases.end() ? "" : found->second;
}

// Without what says which program speaks, and how gravely.
absl::string_view WithoutPrefixes(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  for (const char* program : {"sbatch: ", "scancel: ", "squeue: ", "srun: ", "slurmstepd: "}) {
    absl::ConsumePrefix(&line, program);
  }
  absl::ConsumePrefix(&line, "error:") || absl::ConsumePrefix(&line, "fatal:");
  return absl::StripLeadingAsciiWhitespace(line);
}

std::vector<absl::string_view> LinesOf(absl::string_view stderr_text) {
  std::vector<absl::string_view> lines = absl::StrSplit(stderr_text, '\n');
  std::erase_if(lines, [](absl::string_view line) { return WithoutPrefixes(line).empty(); });
  return lines;
}

// A preempted job ends by itself within its partition's grace; Slurm then says how its processes
// ended.
bool EndsWhilePreempted(const SlurmJob& job) {
  return job.preempted && Find(kEnds, job.state).empty();
}

}  // namespace

std::string WhyItWaits(const SlurmJob& job) {
  const std::string& word = job.state == "PENDING" ? job.reason : job.state;
  std::string words(Find(kWaits, word));
  if (words.empty() && absl::StartsWith(word, "QOS")) words = "waits: its QOS is at a limit";
  if (words.empty() && absl::StartsWith(word, "Assoc")) words = "waits: its account is at a limit";
  if (words.empty()) words = "waits";
  if (word.empty() || word == "None") return words;
  return absl::StrCat(words, " (Slurm: ", word, ")");
}

std::string HowItEnded(const SlurmJob& job) {
  const absl::string_view words = Find(kEnds, EndsWhilePreempted(job) ? "PREEMPTED" : job.state);
  if (!words.empty()) return absl::StrCat(words, " (Slurm: ", job.state, ")");
  if (job.reason == kLaunchFailure) {
    return absl::StrCat("Slurm could not launch it (Slurm: ", kLaunchFailure, ")");
  }
  if (job.reason == "RaisedSignal") {
    return "its batch step was ended by a signal (Slurm: RaisedSignal)";
  }
  return "";
}

bool HasLostANode(const SlurmJob& job) {
  return job.state == "NODE_FAIL" || job.state == "BOOT_FAIL" || job.state == "PREEMPTED" ||
         job.state == "LAUNCH_FAILED" || job.reason == kLaunchFailure || EndsWhilePreempted(job);
}

bool MayPass(absl::string_view stderr_text) {
  static constexpr std::array<absl::string_view, 21> kPassing = {
      "unable to contact", "socket timed out", "zero bytes", "temporarily", "connection refused",
      "connection timed out", "connection reset", "broken pipe", "communication connection",
      "message send failure", "message receive failure", "communication shutdown",
      "no route to host", "standby mode", "transport endpoint", "missing socket", "try again",
      // munged starts anew, or the controller's disk is full.
      "authentication", "munge", "writing script", "configuration source"};
  const std::vector<absl::string_view> lines = LinesOf(stderr_text);
  const std::string text = lines.empty() ? "" : absl::AsciiStrToLower(lines.back());
  return std::any_of(kPassing.begin(), kPassing.end(),
                     [&](absl::string_view passing) { return absl::StrContains(text, passing); });
}

bool TookTooLong(absl::string_view stderr_text) {
  const std::vector<absl::string_view> lines = LinesOf(stderr_text);
  return !lines.empty() && absl::StrContains(lines.back(), "timed out");
}

std::string SubmitLimit(absl::string_view stderr_text) {
  for (const absl::string_view word : absl::StrSplit(stderr_text, absl::ByAnyChar(" \n"))) {
    const bool names_it = absl::StartsWith(word, "Assoc") || absl::StartsWith(word, "QOS") ||
                          absl::StartsWith(word, "Max");
    if (names_it && absl::StrContains(word, "SubmitJob")) return std::string(word);
  }
  return "";
}

std::string ErrorIn(absl::string_view stderr_text) {
  const std::vector<absl::string_view> lines = LinesOf(stderr_text);
  if (lines.empty()) return "";
  absl::string_view last = WithoutPrefixes(lines.back());
  absl::ConsumePrefix(&last, "Batch job submission failed: ");
  // What a site's own rules say comes before, and the last line of it is Slurm's word for all.
  std::vector<absl::string_view> before;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    if (absl::StrContains(lines[i], "error: ")) before.push_back(WithoutPrefixes(lines[i]));
  }
  if (before.empty()) return base::BoundedUtf8(last, kMostCharacters);
  return absl::StrCat(base::BoundedUtf8(absl::StrJoin(before, "; "), kMostCharacters), " (",
                      base::BoundedUtf8(last, kMostCharacters), ")");
}

std::string WhyItCouldNotBegin(absl::string_view log, absl::string_view program) {
  static constexpr std::array<absl::string_view, 7> kReasons = {"has no address",  // its own words
                                                                "No such file or directory",
                                                                "Permission denied",
                                                                "not found",
                                                                "loading shared libraries",
                                                                "cannot execute",
                                                                "Exec format error"};
  const std::vector<absl::string_view> lines = LinesOf(log);
  const auto line = std::find_if(lines.rbegin(), lines.rend(), [](absl::string_view line) {
    // Slurm's daemon speaks of files of its own too, when it cleans up after one that was killed.
    const bool of_slurm = absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "slurmstepd");
    if (of_slurm && !absl::StrContains(line, "execve")) return false;
    return std::any_of(kReasons.begin(), kReasons.end(), [line](absl::string_view reason) {
      return absl::StrContains(line, reason);
    });
  });
  if (line == lines.rend()) return "";
  const std::string why = base::BoundedUtf8(WithoutPrefixes(*line), kMostCharacters);
  return absl::StrCat("its launcher could not begin: ", why,
                      absl::StrContains(why, kReasons[0])
                          ? ""
                          : absl::StrCat("; its nodes have to see ", program,
                                         " and the libraries that it is linked to"));
}

}  // namespace tutti::engine
