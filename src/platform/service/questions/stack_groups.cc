#include "platform/service/questions/stack_groups.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tutti::service {
namespace {

bool IsHex(char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); }
bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// "0x7f12ab" to "0x": addresses are others in each process.
std::string WithoutAddresses(absl::string_view line) {
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    text.push_back(line[i]);
    if (line[i] != 'x' || i == 0 || line[i - 1] != '0') continue;
    while (i + 1 < line.size() && IsHex(line[i + 1])) ++i;
  }
  return text;
}

// Shortens a line that says whose stack follows: py-spy's 'Thread 0x7F/1234 (idle): "MainThread"',
// gdb's 'Thread 2 (LWP 1234 "python3"):', /proc's "Thread 1234 (python3), state S, in futex_wait".
std::string ThreadLine(absl::string_view line) {
  std::string text;
  for (const char c : WithoutAddresses(line)) {
    if (!IsDigit(c)) text.push_back(c);
  }
  for (const std::string state : {"(idle)", "(active)", "(active+gil)", "(idle+gil)"}) {
    const size_t at = text.find(state);
    if (at != std::string::npos) text.erase(at, state.size());
  }
  return text;
}

size_t BytesOf(const spec::RankStacks& stacks) {
  size_t bytes = stacks.error.size() + sizeof stacks;
  for (const spec::ProcessStacks& process : stacks.processes) {
    bytes += sizeof process + process.command.size() + process.python.size() +
             process.native.size() + process.kernel.size();
    for (const std::string& note : process.notes) bytes += note.size() + sizeof note;
  }
  return bytes;
}

// Commands are not compared: each rank's may name it.
std::string Compared(const spec::RankStacks& stacks) {
  std::string key = absl::StrCat(stacks.error, "\n");
  for (const spec::ProcessStacks& process : stacks.processes) {
    for (const std::string* text : {&process.python, &process.native, &process.kernel}) {
      absl::StrAppend(&key, ComparedText(*text), "\f");
    }
    for (const std::string& note : process.notes) absl::StrAppend(&key, ThreadLine(note), "\n");
  }
  return key;
}

}  // namespace

std::string ComparedText(absl::string_view stacks) {
  std::string text;
  for (const absl::string_view line : absl::StrSplit(stacks, '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "Process ")) continue;  // of py-spy: its number and its command
    const bool is_head = absl::StartsWith(line, "Thread ");
    absl::StrAppend(&text, is_head ? ThreadLine(line) : WithoutAddresses(line), "\n");
  }
  return text;
}

bool StackGroups::Add(int rank, spec::RankStacks stacks) {
  std::string key = Compared(stacks);
  const auto found = groups_.find(key);
  if (found != groups_.end()) {
    std::vector<int>& ranks = found->second.ranks;
    ranks.insert(std::upper_bound(ranks.begin(), ranks.end(), rank), rank);
    return true;
  }
  const size_t bytes = BytesOf(stacks) + key.size();
  if (bytes_ + bytes > most_bytes_) return false;
  bytes_ += bytes;
  groups_[std::move(key)] = {.ranks = {rank}, .shown = rank, .stacks = std::move(stacks)};
  return true;
}

std::vector<StackGroup> StackGroups::Take() {
  std::vector<StackGroup> groups;
  for (auto& [key, group] : groups_) groups.push_back(std::move(group));
  groups_.clear();
  bytes_ = 0;
  std::sort(groups.begin(), groups.end(), [](const StackGroup& a, const StackGroup& b) {
    if (a.ranks.size() != b.ranks.size()) return a.ranks.size() > b.ranks.size();
    return a.ranks.front() < b.ranks.front();
  });
  return groups;
}

}  // namespace tutti::service
