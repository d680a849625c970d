#include "platform/service/diagnosis/diagnosis.h"

#include <algorithm>
#include <csignal>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/process/child_process.h"
#include "base/text/binary_size.h"
#include "base/text/lost_peer.h"
#include "platform/service/diagnosis/remedies.h"

namespace tutti::service {
namespace {

using base::BlamedRank;
using base::SpeaksOfALostPeer;

// A launcher's death is seen up to this long after it happened: what its peers reported meanwhile
// came from it, not before it.
constexpr absl::Duration kNoticing = absl::Seconds(1);
// A cluster that sees it before we do ends the other processes by SIGTERM.
constexpr absl::Duration kNoticingOnACluster = absl::Minutes(2);

// A first node's launcher says this where a rank was ended by SIGKILL and did not tell.
constexpr absl::string_view kMpirunOfAKilledRank = "mpirun ended with exit code 137";

// mpi4py calls MPI_Finalize as Python ends, which waits for the other ranks.
constexpr absl::string_view kWholeWorldEnds =
    "; `python -m mpi4py SCRIPT` ends all ranks at once when one fails";
// The advice for a job of which nothing shows whether a rank waited like that.
constexpr absl::string_view kMayHaveWaited =
    "; a rank of mpi4py that raises or calls sys.exit waits for the others, which `python -m "
    "mpi4py SCRIPT` ends at once";

std::string OneLine(absl::string_view text) {
  return absl::StrReplaceAll(absl::StripAsciiWhitespace(text), {{"\r\n", " "}, {"\n", " "}});
}

base::ExitStatus StatusOf(const RankExit& exit) {
  return {.code = exit.code, .signal = exit.signal};
}

std::string How(const RankExit& exit) { return StatusOf(exit).ToString(); }

// ": ValueError: boom", where the last words can belong to the end; with the remedy of what is
// known.
std::string LastWords(const RankExit& exit) {
  const bool from_outside = exit.signal == 9 || exit.signal == 15;
  if (from_outside) return "";
  const absl::string_view remedy = RemedyOf(StatusOf(exit), exit.last_error);
  if (exit.last_error.empty()) return absl::StrCat(remedy.empty() ? "" : ": ", remedy);
  return absl::StrCat(": ", OneLine(exit.last_error), remedy.empty() ? "" : " (", remedy,
                      remedy.empty() ? "" : ")");
}

// Says how much there was, if that is known.
std::string MemoryShare(const NodeEnd* node) {
  const int64_t bytes = node == nullptr ? 0 : node->memory_bytes;
  if (bytes <= 0) return "";
  if (node->is_part) {
    return absl::StrCat(" (the job has ", base::BinarySize(static_cast<uint64_t>(bytes)),
                        " of the node: raise resources.properties.tutti.memory)");
  }
  return absl::StrFormat(" (the node's share is %.1f GiB)", static_cast<double>(bytes) / (1 << 30));
}

// A shell that ran the command reports its signal as 128 + n; mpirun has codes of its own there.
std::string ShellSignal(const RankExit& exit) {
  if (absl::StrContains(exit.last_error, "was unable to launch")) return "";
  if (exit.signal != 0 || exit.code <= 128 || exit.code > 128 + 31) return "";
  const base::ExitStatus inner{.signal = exit.code - 128};
  return absl::StrCat(", its shell's word for ", inner.ToString());
}

// Says what can have sent a SIGKILL that was not for want of memory.
std::string NotForMemory(const RankExit& exit) {
  return exit.not_for_memory ? ", not for want of memory but by a program, a person or ulimit -t"
                             : "";
}

// Returns whether it was failing by itself when it was stopped.
bool WasFailing(const RankExit& exit) {
  return exit.stopped && !exit.error_before_stop.empty() &&
         !SpeaksOfALostPeer(exit.error_before_stop);
}

// Returns what follows "rank 1 on n2 ".
std::string Predicate(const RankExit& exit, const NodeEnd* node) {
  if (exit.out_of_memory) {
    return absl::StrCat("ran out of memory", MemoryShare(node),
                        exit.signal != 0 ? " and was killed by " : " and ended with ", How(exit));
  }
  if (exit.stopped && WasFailing(exit)) {
    const absl::string_view remedy = RemedyOf({.code = 1}, exit.error_before_stop);
    return absl::StrCat("was failing when it was stopped: ", OneLine(exit.error_before_stop),
                        remedy.empty() ? "" : " (", remedy, remedy.empty() ? "" : ")");
  }
  if (exit.stopped) {
    return absl::StrCat("was stopped", exit.signal != 0 ? " by " : " and ended with ", How(exit));
  }
  const std::string how = absl::StrCat(How(exit), ShellSignal(exit), NotForMemory(exit));
  return absl::StrCat(exit.signal != 0 ? "was killed by " : "failed with ", how, LastWords(exit));
}

FailureKind KindOf(const RankExit& exit) {
  if (exit.out_of_memory) return FailureKind::kOutOfMemory;
  return exit.signal != 0 && !WasFailing(exit) ? FailureKind::kSignal : FailureKind::kExitCode;
}

std::string Name(const RankExit& exit) {
  return absl::StrCat("rank ", exit.rank, " on ", exit.node);
}

bool MayComeOf(const NodeEnd& loss, const RankExit& exit) {
  return loss.time - (exit.signal == SIGTERM ? kNoticingOnACluster : kNoticing) <= exit.time;
}

// Returns whether what the node says of itself comes of what has become of another.
bool LostALauncher(const NodeEnd& node) {
  return absl::StartsWith(node.reason, base::kLostLauncher);
}

// Whether this failure can be explained by another one.
bool Secondary(const RankExit& exit) {
  if (exit.stopped) return true;
  if (exit.signal == 9 || exit.out_of_memory) return false;
  return SpeaksOfALostPeer(exit.last_error);
}

class Examination {
 public:
  explicit Examination(const GangEnd& end) : end_(end) {
    for (const RankExit& exit : end.exits) (exit.ok() ? good_ : bad_).push_back(&exit);
    const auto earlier = [](const RankExit* a, const RankExit* b) {
      return std::tie(a->time, a->rank) < std::tie(b->time, b->rank);
    };
    std::sort(bad_.begin(), bad_.end(), earlier);
    std::sort(good_.begin(), good_.end(), earlier);
  }

  Diagnosis Conclude() {
    const bool open = AnyFailed() && !FailedByItself();
    // What a node says went wrong on it yields to the loss of a node alone, and that its ranks were
    // not begun to any word of the cluster.
    const bool counts = end_.lost || FirstLost() != nullptr || !bad_.empty() || AnyUnlaunched();
    if (open && counts && !end_.verdict.empty()) {
      Diagnosis diagnosis =
          With(end_.verdict, {.what = end_.verdict, .kind = KindOfVerdict()}, nullptr);
      diagnosis.lost_node = end_.lost;
      diagnosis.ran_nothing = diagnosis.disk_full = end_.disk_full;
      return diagnosis;
    }
    Diagnosis diagnosis = WithoutVerdict();
    diagnosis.verdict_counts = open && !TimedOut();
    return diagnosis;
  }

 private:
  FailureKind KindOfVerdict() const {
    if (end_.disk_full) return FailureKind::kDiskFull;
    return end_.lost ? FailureKind::kNode : FailureKind::kOther;
  }

  Diagnosis WithoutVerdict() const {
    const RankExit* first = FirstPrimary();
    const NodeEnd* lost = FirstLost();
    if (lost != nullptr && (first == nullptr || MayComeOf(*lost, *first))) {
      const NodeEnd* const known = lost->unexplained ? NodeThatEnded(*lost) : nullptr;
      return known == nullptr ? Lost(*lost) : OfNode(*known);
    }
    if (first != nullptr) {
      const NodeEnd* const failed = TimedOut() ? nullptr : NodeThatEnded(*first);
      return failed == nullptr ? OfRank(*first) : OfNode(*failed);
    }
    if (TimedOut()) {
      if (const RankExit* const raised = FirstThatHadRaised()) return HadFailed(*raised);
      const RankExit* const ended = FirstThatHadEnded();
      return ended == nullptr ? TimeLimit() : HadEnded(*ended);
    }
    if (end_.left) return ReportedFailure(*end_.left);
    if (const NodeEnd* const failed = FailedNode()) return OfNode(*failed);
    if (const RankExit* waiting = FirstNotStopped(); waiting != nullptr) {
      if (const RankExit* failing = FirstFailing()) return OfRank(*failing);
      if (const RankExit* early = EarlyExit(*waiting)) return LeftEarly(*early, *waiting);
      Diagnosis diagnosis = OfRank(*waiting);
      diagnosis.unexplained_since = waiting->heard;
      return diagnosis;
    }
    if (!bad_.empty()) return OfRank(*bad_.front());
    return {};
  }

  bool AnyFailed() const {
    return !bad_.empty() || end_.left ||
           std::any_of(end_.nodes.begin(), end_.nodes.end(),
                       [](const NodeEnd& node) { return !node.ok; });
  }

  // And not by a signal that a cluster ends jobs with.
  bool FailedByItself() const {
    const RankExit* first = FirstPrimary();
    const auto has_left = [this](const RankExit* exit) { return exit->rank == end_.left->rank; };
    if (first == nullptr && end_.left) return std::any_of(good_.begin(), good_.end(), has_left);
    return first != nullptr && first->signal != SIGKILL && first->signal != SIGTERM;
  }

  const RankExit* FirstPrimary() const {
    for (const RankExit* exit : bad_) {
      if (!Secondary(*exit)) return exit;
    }
    return nullptr;
  }

  const RankExit* FirstNotStopped() const {
    for (const RankExit* exit : bad_) {
      if (!exit->stopped) return exit;
    }
    return nullptr;
  }

  const RankExit* FirstFailing() const {
    const auto found = std::find_if(bad_.begin(), bad_.end(),
                                    [](const RankExit* exit) { return WasFailing(*exit); });
    return found == bad_.end() ? nullptr : *found;
  }

  // Returns the first rank of an MPI world that had an exception as its last words when it was
  // stopped, if not all ranks had: it was waiting for the others. If all had, they have caught it,
  // and it is null.
  const RankExit* FirstThatHadRaised() const {
    return FirstOfSome([](const RankExit& e) { return WasFailing(e) && e.error_was_last; });
  }

  const RankExit* FirstThatHadEnded() const {
    return FirstOfSome([](const RankExit& e) { return e.stopped && e.python_ended; });
  }

  // Null if that is true of all ranks, or of none.
  const RankExit* FirstOfSome(bool (*holds)(const RankExit&)) const {
    const auto does = [holds](const RankExit* exit) { return holds(*exit); };
    const auto found = std::find_if(bad_.begin(), bad_.end(), does);
    const auto count = std::count_if(bad_.begin(), bad_.end(), does);
    const bool others = static_cast<size_t>(count) < end_.exits.size();
    return end_.mpi && others && found != bad_.end() ? *found : nullptr;
  }

  // Returns the first node that was lost. A cluster ends all launchers when one has died: if it can
  // have ended a launcher for another one, the reason is that other's.
  const NodeEnd* FirstLost() const {
    const NodeEnd* const first = FirstLostOf([](const NodeEnd&) { return true; });
    if (first == nullptr || !first->unexplained) return first;
    const NodeEnd* const known = FirstLostOf([](const NodeEnd& node) { return !node.unexplained; });
    return known != nullptr && known->time - kNoticingOnACluster <= first->time ? known : first;
  }

  const NodeEnd* FirstLostOf(bool (*holds)(const NodeEnd&)) const {
    const NodeEnd* first = nullptr;
    for (const NodeEnd& node : end_.nodes) {
      if (!node.lost || !holds(node)) continue;
      if (first == nullptr || node.time < first->time) first = &node;
    }
    return first;
  }

  // Returns the failed node that knows most, or the first of several that know as much: that its
  // ranks were not begun, that it was told to end, and that it lost the connection to another, may
  // come of what another node knows. If a gang could not be started, it is the node whose disk
  // would not do.
  const NodeEnd* FailedNode() const {
    const auto knows_less = [](const NodeEnd& node) {
      const bool is_whole = !node.disk_fault && !node.shared_disk_full && node.ill.empty();
      return std::tuple(node.told, node.unlaunched, LostALauncher(node), is_whole);
    };
    const NodeEnd* found = nullptr;
    for (const NodeEnd& node : end_.nodes) {
      if (node.ok) continue;
      if (found == nullptr || knows_less(node) < knows_less(*found)) found = &node;
    }
    return found;
  }

  // Another node whose failure is why `exit` was ended: a cluster ends all by SIGTERM when a
  // launcher has failed, and may tell ranks before we do. Null: none.
  const NodeEnd* NodeThatEnded(const RankExit& exit) const {
    if (exit.signal != SIGTERM && exit.code != 128 + SIGTERM) return nullptr;
    return NodeThatKnowsWhy(exit.node, exit.time + kNoticing);
  }

  // Another node whose failure is why the launcher of that one was ended by the cluster.
  const NodeEnd* NodeThatEnded(const NodeEnd& lost) const {
    const NodeEnd* const node = NodeThatKnowsWhy(lost.node, lost.time + kNoticingOnACluster);
    // A launcher's ranks are killed when it dies, and mpirun ends for them.
    const bool follows = node != nullptr && lost.time <= node->time &&
                         absl::StartsWith(node->reason, kMpirunOfAKilledRank);
    return follows ? nullptr : node;
  }

  const NodeEnd* NodeThatKnowsWhy(const std::string& but, absl::Time until) const {
    const auto found = std::find_if(end_.nodes.begin(), end_.nodes.end(), [&](const NodeEnd& node) {
      const bool knows_why =
          !node.ok && !node.lost && !node.told && !node.unlaunched && !LostALauncher(node);
      return knows_why && node.node != but && node.time <= until;
    });
    return found == end_.nodes.end() ? nullptr : &*found;
  }

  bool AnyUnlaunched() const {
    return std::any_of(end_.nodes.begin(), end_.nodes.end(),
                       [](const NodeEnd& node) { return node.unlaunched; });
  }

  bool TimedOut() const {
    return end_.timed_out || std::any_of(end_.nodes.begin(), end_.nodes.end(),
                                         [](const NodeEnd& node) { return node.timed_out; });
  }

  // The rank that had left with 0 when `waiting` failed for want of a peer: the one it blames, else
  // the first to leave.
  const RankExit* EarlyExit(const RankExit& waiting) const {
    const int blamed = BlamedRank(waiting.last_error);
    for (const RankExit* exit : good_) {
      if (exit->rank == blamed) return exit;
    }
    if (blamed >= 0 || good_.empty() || good_.front()->time > waiting.time) return nullptr;
    return good_.front();
  }

  const NodeEnd* Find(const std::string& node) const {
    for (const NodeEnd& end : end_.nodes) {
      if (end.node == node) return &end;
    }
    return nullptr;
  }

  // A cluster may have ended it for its memory, and by a program.
  std::string What(RankExit exit) const {
    exit.not_for_memory &= end_.verdict.empty();
    return Predicate(exit, Find(exit.node));
  }

  // `line`, the cause, and every failed rank but `cause`.
  Diagnosis With(std::string line, Failure cause, const RankExit* cause_rank) const {
    Diagnosis diagnosis{.line = std::move(line), .failures = {std::move(cause)}};
    for (const RankExit* exit : bad_) {
      if (exit == cause_rank) continue;
      diagnosis.failures.push_back({.rank = exit->rank,
                                    .node = exit->node,
                                    .what = What(*exit),
                                    .consequence = Secondary(*exit),
                                    .kind = KindOf(*exit)});
    }
    return diagnosis;
  }

  // One on a node that is ill counts as that node's.
  Diagnosis OfRank(const RankExit& exit) const {
    const NodeEnd* const node = Find(exit.node);
    const bool is_ill = node != nullptr && !node->ill.empty();
    const std::string ill =
        is_ill ? absl::StrCat("; node ", exit.node, " is ill: ", OneLine(node->ill)) : "";
    Diagnosis diagnosis = With(absl::StrCat(Name(exit), " ", What(exit), ill),
                               {.rank = exit.rank,
                                .node = exit.node,
                                .what = What(exit),
                                .kind = is_ill ? FailureKind::kNode : KindOf(exit)},
                               &exit);
    diagnosis.lost_node = is_ill;
    return diagnosis;
  }

  Diagnosis LeftEarly(const RankExit& early, const RankExit& waiting) const {
    const std::string what = "exited early (exit code 0) while others waited for it";
    return With(
        absl::StrCat(Name(early), " ", what, ": ", Name(waiting), " ", What(waiting)),
        {.rank = early.rank, .node = early.node, .what = what, .kind = FailureKind::kExitCode},
        nullptr);
  }

  // Returns what a launcher tells of a rank, be it another node's.
  Diagnosis ReportedFailure(Failure of_rank) const {
    of_rank.kind = FailureKind::kExitCode;
    const auto exit = std::find_if(bad_.begin(), bad_.end(),
                                   [&](const RankExit* one) { return one->rank == of_rank.rank; });
    return With(absl::StrCat("rank ", of_rank.rank, " on ", of_rank.node, " ", of_rank.what),
                of_rank, exit == bad_.end() ? nullptr : *exit);
  }

  Diagnosis Lost(const NodeEnd& node) const {
    if (node.silent) return OfNode(node);
    const std::string why =
        node.reason.empty() ? "" : absl::StrCat(" (", OneLine(node.reason), ")");
    Diagnosis diagnosis = With(absl::StrCat("launcher on node ", node.node, " died", why),
                               {.node = node.node,
                                .what = absl::StrCat("the launcher died", why),
                                .kind = FailureKind::kNode},
                               nullptr);
    diagnosis.lost_node = true;
    return diagnosis;
  }

  Diagnosis OfNode(const NodeEnd& node) const {
    const std::string reason = OneLine(node.reason);
    Diagnosis diagnosis =
        node.rank >= 0
            ? ReportedFailure({.rank = node.rank, .node = node.rank_node, .what = reason})
            : With(absl::StrCat("node ", node.node, ": ", reason),
                   {.node = node.node, .what = reason}, nullptr);
    // If somebody cancelled the job, the cluster's verdict says so, and the node is not taken for
    // lost.
    const bool taken = node.told && end_.judged && end_.verdict.empty();
    diagnosis.lost_node = node.silent || node.unlaunched || node.disk_fault ||
                          node.shared_disk_full || !node.ill.empty() || taken;
    if (node.shared_disk_full) {
      diagnosis.failures.front().kind = FailureKind::kDiskFull;
    } else if (diagnosis.lost_node && node.rank < 0) {
      diagnosis.failures.front().kind = FailureKind::kNode;
    }
    diagnosis.ran_nothing = node.refused && end_.exits.empty();
    diagnosis.disk_full = diagnosis.ran_nothing && node.shared_disk_full;
    diagnosis.filled_by_job =
        diagnosis.disk_full && std::any_of(end_.nodes.begin(), end_.nodes.end(),
                                           [](const NodeEnd& one) { return one.filled_by_job; });
    return diagnosis;
  }

  std::string Limit() const {
    const bool is_known = end_.time_limit != absl::InfiniteDuration();
    return absl::StrCat(is_known ? " of " : "",
                        is_known ? absl::FormatDuration(end_.time_limit) : "", " (limits.timeout)");
  }

  Diagnosis HadFailed(const RankExit& exit) const {
    const absl::string_view remedy = RemedyOf({.code = 1}, exit.error_before_stop);
    const std::string what = absl::StrCat(
        "had failed: ", OneLine(exit.error_before_stop), remedy.empty() ? "" : " (", remedy,
        remedy.empty() ? "" : ")", "; it and the others waited for each other until the time limit",
        Limit(), kWholeWorldEnds);
    return With(
        absl::StrCat(Name(exit), " ", what),
        {.rank = exit.rank, .node = exit.node, .what = what, .kind = FailureKind::kTimeLimit},
        &exit);
  }

  Diagnosis HadEnded(const RankExit& exit) const {
    const std::string what = absl::StrCat(
        "had come to the end of its Python program (by sys.exit, an exception or its last line) "
        "and "
        "waited for the others, as mpi4py does, until the time limit",
        Limit(), kWholeWorldEnds);
    return With(
        absl::StrCat(Name(exit), " ", what),
        {.rank = exit.rank, .node = exit.node, .what = what, .kind = FailureKind::kTimeLimit},
        &exit);
  }

  Diagnosis TimeLimit() const {
    const std::string line =
        absl::StrCat("the job reached its time limit", Limit(), " and was ended",
                     end_.mpi && end_.exits.size() > 1 ? kMayHaveWaited : "");
    return With(line, {.what = line, .kind = FailureKind::kTimeLimit}, nullptr);
  }

  const GangEnd& end_;
  std::vector<const RankExit*> good_, bad_;  // each by time, then rank
};

}  // namespace

Diagnosis Diagnose(const GangEnd& end) { return Examination(end).Conclude(); }

}  // namespace tutti::service
