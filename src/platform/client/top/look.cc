#include "platform/client/top/look.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace tutti::client {
namespace {

constexpr char kEscape = '\x1b';

// Length of the escape sequence that `bytes` begins with; 0: it is not whole yet. ESC alone is one.
size_t SequenceLength(absl::string_view bytes) {
  if (bytes.size() < 2) return 0;
  if (bytes[1] == 'O') return bytes.size() < 3 ? 0 : 3;
  if (bytes[1] != '[') return 1;
  for (size_t i = 2; i < bytes.size(); ++i) {
    if (bytes[i] >= 0x40 && bytes[i] <= 0x7E) return i + 1;
  }
  return 0;
}

// Returns the key of an escape sequence or of a byte; nothing for any other.
const Key* KeyOfSequence(absl::string_view sequence) {
  static const std::map<absl::string_view, Key> keys = {
      {"\x1b[A", Key::kUp},      {"\x1bOA", Key::kUp},        {"k", Key::kUp},
      {"\x1b[B", Key::kDown},    {"\x1bOB", Key::kDown},      {"j", Key::kDown},
      {"\x1b[5~", Key::kPageUp}, {"\x1b[6~", Key::kPageDown}, {"\x1b[H", Key::kFirst},
      {"\x1bOH", Key::kFirst},   {"\x1b[1~", Key::kFirst},    {"g", Key::kFirst},
      {"\x1b[F", Key::kLast},    {"\x1bOF", Key::kLast},      {"\x1b[4~", Key::kLast},
      {"G", Key::kLast},         {"\r", Key::kEnter},         {"\n", Key::kEnter},
      {"\x1b[C", Key::kEnter},   {"\x1bOC", Key::kEnter},     {"\x1b", Key::kBack},
      {"\x1b[D", Key::kBack},    {"\x1bOD", Key::kBack},      {"\x7f", Key::kBack},
      {"s", Key::kOrder},        {"q", Key::kQuit},           {"Q", Key::kQuit},
      {"\x03", Key::kQuit}};
  const auto found = keys.find(sequence);
  return found == keys.end() ? nullptr : &found->second;
}

int RankOfState(absl::string_view state) {
  return state == "Running" ? 0 : state == "Queued" ? 2 : 1;
}

// Values that are not known come last.
bool IsMore(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return std::isfinite(a) && !std::isfinite(b);
  return a > b;
}

double MeasureOf(const Use& use, Order order) {
  return order == Order::kCores ? use.cores : use.memory;
}

// Sorts by what each uses, which `use_of` tells; those that use as much stay in their order.
template <typename Items, typename UseOfItem>
void SortByUse(Items& items, Order order, const UseOfItem& use_of) {
  std::vector<std::pair<double, size_t>> keys;
  for (size_t i = 0; i < items.size(); ++i) {
    keys.emplace_back(MeasureOf(use_of(items[i]), order), i);
  }
  std::stable_sort(keys.begin(), keys.end(),
                   [](const auto& a, const auto& b) { return IsMore(a.first, b.first); });
  Items sorted;
  for (const auto& [key, i] : keys) sorted.push_back(std::move(items[i]));
  items = std::move(sorted);
}

int RowsOf(const LiveView& view) {
  const auto found = view.usage.find(view.open);
  if (found == view.usage.end()) return 0;
  size_t rows = found->second.usage.nodes.size();
  for (const NodeUsageView& node : found->second.usage.nodes) rows += node.ranks.size();
  return static_cast<int>(rows);
}

// Returns the row that a key leads to, of `count`; -1 if it is no such key.
int Moved(Key key, int row, int count, int page) {
  const int last = std::max(0, count - 1);
  switch (key) {
    case Key::kUp:
      return std::max(0, row - 1);
    case Key::kDown:
      return std::min(last, row + 1);
    case Key::kPageUp:
      return std::max(0, row - page);
    case Key::kPageDown:
      return std::min(last, row + page);
    case Key::kFirst:
      return 0;
    case Key::kLast:
      return last;
    default:
      return -1;
  }
}

}  // namespace

std::vector<Key> TakeKeys(std::string& bytes, bool is_all) {
  std::vector<Key> keys;
  size_t at = 0;
  while (at < bytes.size()) {
    const absl::string_view rest = absl::string_view(bytes).substr(at);
    size_t length = rest[0] == kEscape ? SequenceLength(rest) : 1;
    if (length == 0 && !is_all) break;
    if (length == 0) length = rest.size() == 1 ? 1 : rest.size();
    if (const Key* key = KeyOfSequence(rest.substr(0, length)); key != nullptr)
      keys.push_back(*key);
    at += length;
  }
  bytes.erase(0, at);
  return keys;
}

absl::string_view Name(Order order) {
  switch (order) {
    case Order::kState:
      return "state";
    case Order::kCores:
      return "cores";
    case Order::kMemory:
      return "memory";
    case Order::kName:
      return "name";
  }
  return "";
}

std::vector<JobView> InOrder(const LiveView& view, Order order) {
  std::vector<JobView> jobs = view.jobs;
  std::stable_sort(jobs.begin(), jobs.end(), [order](const JobView& a, const JobView& b) {
    if (order == Order::kName) return a.id < b.id;
    const int ranks[] = {RankOfState(a.state), RankOfState(b.state)};
    return ranks[0] != ranks[1] ? ranks[0] < ranks[1] : a.sequence > b.sequence;
  });
  if (order == Order::kCores || order == Order::kMemory) {
    SortByUse(jobs, order, [&](const JobView& job) { return view.UseOfJob(job.id); });
  }
  return jobs;
}

std::vector<NodeView> NodesInOrder(const LiveView& view, Order order) {
  std::vector<NodeView> nodes = view.nodes.nodes;
  if (order == Order::kName) {
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const NodeView& a, const NodeView& b) { return a.name < b.name; });
  } else if (order != Order::kState) {
    SortByUse(nodes, order, [&](const NodeView& node) { return view.UseOfNode(node); });
  }
  return nodes;
}

JobUsageView RanksInOrder(const JobUsageView& usage, Order order) {
  JobUsageView sorted = usage;
  if (order == Order::kName) {
    std::stable_sort(
        sorted.nodes.begin(), sorted.nodes.end(),
        [](const NodeUsageView& a, const NodeUsageView& b) { return a.name < b.name; });
  } else if (order != Order::kState) {
    const bool live = usage.live;
    SortByUse(sorted.nodes, order, [live](const NodeUsageView& node) { return UseOf(node, live); });
    for (NodeUsageView& node : sorted.nodes) {
      SortByUse(node.ranks, order,
                [&](const RankUsageView& rank) { return UseOf(node, rank, live); });
    }
  }
  return sorted;
}

int PlaceOf(const std::vector<JobView>& jobs, const std::string& selected) {
  const auto found = std::find_if(jobs.begin(), jobs.end(),
                                  [&](const JobView& job) { return job.id == selected; });
  return found == jobs.end() ? 0 : static_cast<int>(found - jobs.begin());
}

Look Turn(Look look, Key key, const LiveView& view, int page) {
  if (key == Key::kOrder) {
    look.order = static_cast<Order>((static_cast<int>(look.order) + 1) % 4);
    return look;
  }
  if (!look.open.empty()) {
    if (key == Key::kBack) {
      look.open.clear();
      look.row = 0;
    }
    const int row = Moved(key, look.row, RowsOf(view), page);
    if (row >= 0) look.row = row;
    return look;
  }
  const std::vector<JobView> jobs = InOrder(view, look.order);
  if (jobs.empty()) return look;
  const int place = PlaceOf(jobs, look.selected);
  const int moved = Moved(key, place, static_cast<int>(jobs.size()), page);
  if (moved >= 0) look.selected = jobs[moved].id;
  if (key == Key::kEnter) {
    look.selected = look.open = jobs[place].id;
    look.row = 0;
  }
  return look;
}

}  // namespace tutti::client
