#include "platform/client/top/frame.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "platform/client/jobs/usage_text.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"
#include "platform/client/text/table.h"

namespace tutti::client {
namespace {

using enum Table::Align;

constexpr size_t kMostRemarks = 3;
constexpr int kCursor = 2;  // columns before each row
// A frame of this many lines or more has keys, sums and nodes, which a smaller one does without.
constexpr int kWithKeys = 6, kWithSums = 8, kWithNodes = 12;

// Frame is a frame that is drawn from the top.
class Frame {
 public:
  explicit Frame(const FrameSize& size) : size_(size) {}

  bool is_live() const { return size_.height > 0; }
  bool has_room_of(int height) const { return !is_live() || size_.height >= height; }
  // Lines that are left, with `kept` ones at the end; very many where there is no limit.
  int left(int kept) const {
    return is_live() ? size_.height - kept - static_cast<int>(lines_.size()) : 1 << 30;
  }
  // Returns where tables are drawn: behind the cursor.
  Screen table_screen() const {
    const int width = size_.width == 0 || !is_live() ? size_.width : size_.width - kCursor;
    return {.is_terminal = size_.width > 0, .colour = size_.colour, .width = width};
  }

  // Adds a line of any text, cut to the width.
  void Add(absl::string_view text, Tint tint = Tint::kNone) {
    const std::string safe = absl::StrReplaceAll(Printable(text), {{"\t", " "}});
    AddLine(Styled(size_.width == 0 ? safe : Shorten(safe, size_.width), tint, size_.colour));
  }

  // Adds `count` rows of a rendered table, from `first` on, below its title; marks row `marked`.
  void AddRows(absl::string_view table, int first, int count, int marked = -1) {
    const std::vector<absl::string_view> lines = absl::StrSplit(table, '\n', absl::SkipEmpty());
    if (lines.empty()) return;
    AddRow(lines[0], false);
    for (int row = first; row < first + count && row + 1 < std::ssize(lines); ++row) {
      AddRow(lines[row + 1], row == marked);
    }
  }

  // Adds a line that may be empty; `text` fits.
  void AddLine(std::string text) {
    if (left(0) > 0) lines_.push_back(std::move(text));
  }

  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  void AddRow(absl::string_view row, bool is_marked) {
    if (!is_live()) return AddLine(std::string(row));
    if (!is_marked || !size_.colour) return AddLine(absl::StrCat(is_marked ? "> " : "  ", row));
    // Inverse also behind what ends a colour.
    AddLine(
        absl::StrCat("\x1b[7m> ", absl::StrReplaceAll(row, {{"\x1b[0m", "\x1b[0;7m"}}), "\x1b[0m"));
  }

  const FrameSize size_;
  std::vector<std::string> lines_;
};

// Returns the first row that is shown of `count`, so that `at` is, in the middle if possible.
int FirstRow(int at, int count, int room) {
  return std::max(0, std::min(at - room / 2, count - room));
}

std::string ClockTime(const Contact& contact, absl::Time time) {
  const char* format = contact.now - time > absl::Hours(20) ? "%Y-%m-%d %H:%M:%S" : "%H:%M:%S";
  return absl::FormatTime(format, time, contact.time_zone);
}

// Writes "3 jobs: 2 running, 1 queued".
std::string CountedStates(absl::string_view what, const std::vector<std::string>& states) {
  std::map<std::string, int> counts;
  for (const std::string& state : states) ++counts[absl::AsciiStrToLower(state)];
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [state, count] : counts) sorted.emplace_back(-count, state);
  std::sort(sorted.begin(), sorted.end());
  std::string text = absl::StrCat(states.size(), " ", what, states.size() == 1 ? "" : "s");
  const char* separator = ": ";
  for (const auto& [count, state] : sorted) {
    absl::StrAppend(&text, std::exchange(separator, ", "), -count, " ", state);
  }
  return text;
}

std::string CountedJobs(const std::vector<JobView>& jobs) {
  std::vector<std::string> states;
  for (const JobView& job : jobs) states.push_back(job.state);
  return CountedStates("job", states);
}

std::string CountedNodes(const std::vector<NodeView>& nodes) {
  std::vector<std::string> states;
  for (const NodeView& node : nodes) states.push_back(node.state);
  return CountedStates("node", states);
}

std::string RanUntil(const JobView& job, absl::Time now) {
  if (job.started.empty()) return "";
  return Clock((job.ended.empty() ? now : ParseTime(job.ended)) - ParseTime(job.started));
}

// Says what is shown, and of when it is; without an answer since when and why, and then, if there
// is room, what is shown.
void AddTopLines(const LiveView& view, const Contact& contact, const std::string& what,
                 Frame& frame) {
  const bool any = view.time != absl::InfinitePast();
  if (!any && contact.error.ok()) return frame.Add("asking the service …");
  const std::string last =
      any ? absl::StrCat("last answer at ", ClockTime(contact, view.time)) : "no answer yet";
  if (!contact.error.ok()) {
    frame.Add(absl::StrCat(last, "; asking again: ", contact.error.message()), Tint::kRed);
  } else if (contact.now - view.time > contact.patience) {
    frame.Add(absl::StrCat(last, "; waiting for the next"), Tint::kRed);
  } else {
    return frame.Add(absl::StrCat(ClockTime(contact, view.time), "  ", what), Tint::kBold);
  }
  if (any && frame.has_room_of(kWithSums)) frame.Add(what, Tint::kBold);
}

// "1.50 of 2": how many are busy of those that the node has, where that is known.
std::string GpuUse(const Use& use, size_t all) {
  const std::string busy = GpusText(use);
  return busy.empty() || all == 0 ? busy : absl::StrCat(busy, " of ", all);
}

void AddSums(const LiveView& view, Frame& frame) {
  UseSum sum;
  for (const auto& [id, usage] : view.usage) sum.Add(view.UseOfJob(id));
  const Use use = sum.Sum();
  size_t cores = 0, gpus = 0;
  uint64_t memory = 0;
  for (const NodeView& node : view.nodes.nodes) {
    cores += node.cores.size();
    memory += node.memory_bytes;
    gpus += node.gpus.size();
  }
  const bool known = use.is_known();
  const std::string gpu_use = GpuUse(use, gpus);
  frame.Add(absl::StrCat(known ? CoresText(use) : "0", " of ", cores, " cores busy, ",
                         known ? AmountText(use, use.memory) : "0", " of ", Bytes(memory),
                         " used by jobs", gpu_use.empty() ? "" : ", ", gpu_use,
                         gpu_use.empty() ? "" : " GPUs busy"));
}

// "2/4": what jobs were given of all. Where the node's scheduler is not tutti, it is not known.
std::string Given(const NodeView& node, int used, size_t all) {
  return node.compute == "local" && all > 0 ? absl::StrCat(used, "/", all) : "";
}

std::string NodesTable(const LiveView& view, const std::vector<NodeView>& nodes,
                       const Screen& screen) {
  Table table({{"NODE"},
               {"STATE"},
               {"GIVEN", kRight, false, 8},
               {"GPUS", kRight, false, 7},
               {"CORES", kRight, false, 1},
               {"MEMORY", kRight, false, 3},
               {"LEFT", kRight, false, 9},
               {"GPU USE", kRight, false, 2},
               {"RECEIVED", kRight, false, 11},
               {"SENT", kRight, false, 11},
               {"COMPUTE", kLeft, false, 10},
               {"JOBS", kLeft, true, 5, 12},
               {"REASON", kLeft, true, 4, 24}});
  for (const NodeView& node : nodes) {
    const Use use = view.UseOfNode(node);
    table.Add({{node.name, Tint::kBold},
               {node.state, TintOfState(node.state)},
               {Given(node, node.used.cores, node.cores.size())},
               {Given(node, node.used.gpus, node.gpus.size())},
               {CoresText(use)},
               {AmountText(use, use.memory)},
               {AmountText(use, use.left)},
               {GpuUse(use, node.gpus.size())},
               {RateText(use, use.received)},
               {RateText(use, use.sent)},
               {node.compute},
               {absl::StrJoin(node.jobs, " ")},
               {node.reason}});
  }
  table.DropEmpty();
  return table.Render(screen.width, screen.colour);
}

// Returns what is wrong with a job, else what the service says about it.
Table::Cell ReasonCell(const LiveView& view, const JobView& job) {
  const auto found = view.usage.find(job.id);
  if (found != view.usage.end() && !found->second.usage.problems.empty()) {
    return {found->second.usage.problems.front(), Tint::kRed};
  }
  return {job.reason};
}

std::string JobsTable(const LiveView& view, const std::vector<JobView>& jobs,
                      const Screen& screen) {
  Table table({{"JOB"},
               {"STATE"},
               {"NODES", kRight, false, 7},
               {"CORES", kRight, false, 1},
               {"MEMORY", kRight, false, 3},
               {"LEFT", kRight, false, 8},
               {"GPU USE", kRight, false, 2},
               {"READ", kRight, false, 10},
               {"WRITTEN", kRight, false, 10},
               {"RAN", kRight, false, 6},
               {"AGE", kRight, false, 9},
               {"REASON", kLeft, true, 5, 24}});
  for (const JobView& job : jobs) {
    const Use use = view.UseOfJob(job.id);
    table.Add({{job.id, Tint::kBold},
               {job.state, TintOfState(job.state)},
               {job.node_count == 0 ? "" : absl::StrCat(job.node_count)},
               {CoresText(use)},
               {AmountText(use, use.memory)},
               {AmountText(use, use.left)},
               {GpusText(use)},
               {RateText(use, use.read)},
               {RateText(use, use.written)},
               {RanUntil(job, view.time)},
               {Age(view.time - ParseTime(job.created))},
               ReasonCell(view, job)});
  }
  table.DropEmpty();
  return table.Render(screen.width, screen.colour);
}

void AddNodes(const LiveView& view, const Look& look, int room, Frame& frame) {
  const std::vector<NodeView> nodes = NodesInOrder(view, look.order);
  const int count = static_cast<int>(nodes.size());
  const std::string table = NodesTable(view, nodes, frame.table_screen());
  if (count + 1 <= room) return frame.AddRows(table, 0, count);
  const int shown = std::max(1, room - 2);
  frame.AddRows(table, 0, shown);
  frame.Add(absl::StrCat("  … and ", CountedNodes({nodes.begin() + shown, nodes.end()})),
            Tint::kDim);
}

// Adds the keys on the last line.
void AddKeys(absl::string_view keys, Order order, Frame& frame) {
  while (frame.left(1) > 0) frame.AddLine("");
  frame.Add(absl::StrCat("s order: ", Name(order), keys, "  ~ old, or not all"), Tint::kDim);
}

// Takes lines so that jobs have two thirds of what is left, or what they need.
int RoomForNodes(int nodes, int jobs, int left) {
  const int all = nodes + 1;
  return std::min(all, std::max(left / 3, left - 1 - std::max(jobs, 1)));
}

void AddAll(const LiveView& view, const Look& look, const Contact& contact, Frame& frame) {
  const std::vector<JobView> jobs = InOrder(view, look.order);
  AddTopLines(view, contact,
              absl::StrCat(CountedJobs(jobs), view.has_more_jobs ? " and more  " : "  ",
                           CountedNodes(view.nodes.nodes)),
              frame);
  if (view.time == absl::InfinitePast()) return;
  const bool has_keys = frame.is_live() && frame.has_room_of(kWithKeys);
  if (frame.has_room_of(kWithSums)) AddSums(view, frame);
  if (frame.has_room_of(kWithNodes)) {
    size_t remarks = 0;
    for (const std::string& warning : view.nodes.warnings) {
      if (remarks++ < kMostRemarks || !frame.is_live()) frame.Add(warning, Tint::kYellow);
    }
    frame.AddLine("");
    const int left = frame.left(has_keys + 1);  // with the empty line between
    AddNodes(view, look,
             RoomForNodes(static_cast<int>(view.nodes.nodes.size()), static_cast<int>(jobs.size()),
                          left),
             frame);
    frame.AddLine("");
  }
  const int room = std::max(1, frame.left(has_keys) - 1);
  const int count = static_cast<int>(jobs.size());
  const int at = PlaceOf(jobs, look.selected);
  const int first = FirstRow(at, count, room);
  if (jobs.empty()) {
    frame.Add("no job runs or waits");
  } else {
    frame.AddRows(JobsTable(view, jobs, frame.table_screen()), first, std::min(room, count), at);
  }
  if (has_keys) AddKeys("  q quit  ↑↓ move  Enter ranks", look.order, frame);
}

// Writes "cifar: Running for 2:10, 2 nodes, 4 processes".
std::string JobText(const JobView& job, absl::Time now) {
  std::string text = absl::StrCat(job.id, ": ", job.state);
  const std::string ran = RanUntil(job, now);
  if (!ran.empty()) {
    absl::StrAppend(&text,
                    !job.ended_already()       ? " for "
                    : job.state == "Completed" ? " in "
                                               : " after ",
                    ran);
  }
  if (job.type != "command") return text;
  return absl::StrCat(text, ", ", job.node_count, job.node_count == 1 ? " node, " : " nodes, ",
                      job.world_size, job.world_size == 1 ? " process" : " processes");
}

// Returns what is wrong with an open job, and which nodes are silent.
std::vector<std::string> RemarksOf(const JobUsageView& usage) {
  std::vector<std::string> remarks = usage.problems;
  for (const NodeUsageView& node : usage.nodes) {
    const absl::Duration age = absl::Seconds(node.age);
    if (!usage.live || age <= Use::kStillNow) continue;
    remarks.push_back(
        absl::StrCat(node.name, " has told nothing for ", absl::ToInt64Seconds(age), " s"));
  }
  return remarks;
}

void AddRemarks(const JobUsageView& usage, Frame& frame) {
  const std::vector<std::string> remarks = RemarksOf(usage);
  for (size_t i = 0; i < remarks.size(); ++i) {
    if (i + 1 == kMostRemarks && remarks.size() > kMostRemarks && frame.is_live()) {
      return frame.Add(absl::StrCat("… and ", remarks.size() - i, " more: tutti job metrics"),
                       Tint::kRed);
    }
    frame.Add(remarks[i], Tint::kRed);
  }
}

void AddRanks(const JobUsageView& usage, const Look& look, int room, Frame& frame) {
  const std::string nothing = WhyNoUsage(usage);
  if (!nothing.empty()) return frame.Add(nothing);
  int count = 0;
  for (const NodeUsageView& node : usage.nodes) count += 1 + static_cast<int>(node.ranks.size());
  const int at = std::min(look.row, count - 1);
  frame.AddRows(UsageTable(RanksInOrder(usage, look.order), frame.table_screen()),
                FirstRow(at, count, room), std::min(room, count), at);
}

void AddOne(const LiveView& view, const Look& look, const Contact& contact, Frame& frame) {
  const JobView job = view.job.value_or(JobView());
  AddTopLines(view, contact, JobText(job, view.time), frame);
  if (view.time == absl::InfinitePast()) return;
  const bool has_keys = frame.is_live() && frame.has_room_of(kWithKeys);
  static const JobUsageView kNothing;
  const auto found = view.usage.find(look.open);
  const JobUsageView& usage = found == view.usage.end() ? kNothing : found->second.usage;
  if (frame.has_room_of(kWithSums)) {
    if (job.state != "Running") frame.Add(job.reason);
    AddRemarks(usage, frame);
  }
  if (frame.has_room_of(kWithNodes)) frame.AddLine("");
  if (job.type != "command") {
    frame.Add(absl::StrCat("a ", job.type,
                           " has no ranks of its own; what runs of it is among "
                           "the jobs"));
  } else if (!usage.live && !job.ended_already()) {
    frame.Add("its processes have not begun");
  } else {
    AddRanks(usage, look, std::max(1, frame.left(has_keys) - 1), frame);
  }
  if (has_keys) AddKeys("  q quit  ↑↓ move  Esc back", look.order, frame);
}

}  // namespace

std::vector<std::string> FrameLines(const LiveView& view, const Look& look, const Contact& contact,
                                    const FrameSize& size) {
  Frame frame(size);
  if (look.open.empty()) {
    AddAll(view, look, contact, frame);
  } else {
    AddOne(view, look, contact, frame);
  }
  return frame.Take();
}

}  // namespace tutti::client
