#include "platform/launch/mpi/pmi_protocol.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tutti::launch {
namespace {

using Words = std::map<std::string, std::string>;

constexpr size_t kLongestKey = 64, kLongestValue = 1024;  // with their end, as hydra has them
constexpr size_t kMostBytes = 256 << 20;                  // of all keys and values

// "cmd=put key=a value=b c": the value goes to the end of the line.
Words WordsOf(absl::string_view line) {
  Words words;
  const size_t value = line.find(" value=");
  for (const absl::string_view word : absl::StrSplit(line.substr(0, value), ' ')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (!parts.first.empty()) words.emplace(parts.first, parts.second);
  }
  if (value != absl::string_view::npos) words.emplace("value", line.substr(value + 7));
  return words;
}

std::string WordOf(const Words& words, const char* name) {
  const auto found = words.find(name);
  return found == words.end() ? "" : found->second;
}

}  // namespace

bool PmiProtocol::HandleCommand(int client, absl::string_view line,
                                std::vector<PmiReply>& replies) {
  const Words words = WordsOf(line);
  const std::string command = WordOf(words, "cmd");
  if (command == "initack") return Admit(client, WordOf(words, "pmiid"), replies);
  return ranks_.contains(client) && Answer(client, command, words, replies);
}

void PmiProtocol::Forget(int client) {
  const auto gone = ranks_.find(client);
  if (gone == ranks_.end()) return;
  const int rank = gone->second;
  if (!finalized_.contains(client)) left_.push_back(rank);
  ranks_.erase(gone);
  finalized_.erase(client);
  in_barrier_.erase(client);
}

std::optional<PmiFailure> PmiProtocol::failure() const {
  if (abort_) return abort_;
  const bool others_wait = std::any_of(ranks_.begin(), ranks_.end(), [this](const auto& entry) {
    return !finalized_.contains(entry.first);
  });
  if (left_.empty() || !others_wait) return std::nullopt;
  return PmiFailure{.rank = left_.front(), .abort_code = std::nullopt};
}

void PmiProtocol::Abort(int client, const std::string& code) {
  if (abort_) return;
  int number = 1;
  if (!absl::SimpleAtoi(code, &number)) number = 1;
  abort_ = {.rank = ranks_.at(client), .abort_code = number};
}

bool PmiProtocol::Admit(int client, absl::string_view id, std::vector<PmiReply>& replies) {
  int number = 0;
  if (!absl::SimpleAtoi(id, &number)) return false;
  const int64_t rank = int64_t{number} - first_id_;
  if (rank < 0 || rank >= world_size_) return false;
  const bool is_here = std::any_of(ranks_.begin(), ranks_.end(),
                                   [rank](const auto& entry) { return entry.second == rank; });
  if (is_here || ranks_.contains(client)) return false;
  ranks_[client] = static_cast<int>(rank);
  std::erase(left_, rank);
  for (const std::string& line :
       {std::string("cmd=initack rc=0"), absl::StrCat("cmd=set size=", world_size_),
        absl::StrCat("cmd=set rank=", rank), std::string("cmd=set debug=0")}) {
    replies.push_back({client, line});
  }
  return true;
}

bool PmiProtocol::Answer(int client, absl::string_view command, const Words& words,
                         std::vector<PmiReply>& replies) {
  std::string line;
  if (command == "init") {
    const bool fits = WordOf(words, "pmi_version") == "1";
    line = absl::StrCat("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=", fits ? 0 : -1);
  } else if (command == "get_maxes") {
    line = absl::StrCat("cmd=maxes rc=0 kvsname_max=256 keylen_max=", kLongestKey,
                        " vallen_max=", kLongestValue);
  } else if (command == "get_appnum") {
    line = "cmd=appnum rc=0 appnum=0";
  } else if (command == "get_my_kvsname") {
    line = absl::StrCat("cmd=my_kvsname rc=0 kvsname=", space_);
  } else if (command == "get_universe_size") {
    line = absl::StrCat("cmd=universe_size rc=0 size=", world_size_);
  } else if (command == "put") {
    line = Put(words);
  } else if (command == "get") {
    line = Get(words);
  } else if (command == "finalize") {
    finalized_.insert(client);
    line = "cmd=finalize_ack rc=0";
  } else if (command == "abort") {
    Abort(client, WordOf(words, "exitcode"));
    return true;
  } else if (command == "barrier_in") {
    Enter(client, replies);
    return true;
  } else {
    return false;
  }
  replies.push_back({client, std::move(line)});
  return true;
}

std::string PmiProtocol::Put(const Words& words) {
  const std::string key = WordOf(words, "key"), value = WordOf(words, "value");
  const bool fits = !key.empty() && key.size() < kLongestKey && value.size() < kLongestValue &&
                    bytes_ + key.size() + value.size() <= kMostBytes;
  if (!fits) return "cmd=put_result rc=-1 msg=too_large";
  std::string& kept = values_[key];
  bytes_ += value.size() - kept.size() + (kept.empty() ? key.size() : 0);
  kept = value;
  return "cmd=put_result rc=0 msg=success";
}

std::string PmiProtocol::Get(const Words& words) const {
  const auto found = values_.find(WordOf(words, "key"));
  if (found == values_.end()) return "cmd=get_result rc=-1 msg=key_not_found value=unknown";
  return absl::StrCat("cmd=get_result rc=0 msg=success value=", found->second);
}

void PmiProtocol::Enter(int client, std::vector<PmiReply>& replies) {
  in_barrier_.insert(client);
  if (in_barrier_.size() < static_cast<size_t>(world_size_)) return;
  for (const int each : in_barrier_) replies.push_back({each, "cmd=barrier_out rc=0"});
  in_barrier_.clear();
}

}  // namespace tutti::launch
