#include "platform/service/admission/store_inquiry.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/threads/at_once.h"
#include "platform/storage/storage_json.h"
#include "spec/types/enum_names.h"

namespace tutti::service {
namespace {

using storage::StorageRequest;

constexpr size_t kMostAtOnce = 16;  // each a process
constexpr size_t kMostOfOneServer = 4;

struct Inquiry {
  const StorageRequest* request;
  StoreAnswer answer = absl::DeadlineExceededError("there was no time left to look at it");
};

// The questions to one server, which several threads take one after the other.
struct Server {
  std::vector<Inquiry*> questions;
  std::atomic<size_t> next = 0;
};

// Names what answers, or does not, as one. Each folder may be on a server of its own.
std::string ServerOf(const spec::DataPlace& place) {
  if (place.kind == spec::StoreKind::kLocal) return absl::StrCat("local ", place.datastore);
  return absl::StrCat(spec::StoreName(place.kind), " ", place.account, " ", place.endpoint);
}

// The servers as often as they are asked at the same time: each once before any one a second time.
std::vector<Server*> InTurns(const std::map<std::string, std::unique_ptr<Server>>& servers) {
  std::vector<Server*> turns;
  for (size_t turn = 0; turn < kMostOfOneServer; ++turn) {
    for (const auto& [name, server] : servers) {
      if (turn < server->questions.size()) turns.push_back(server.get());
    }
  }
  return turns;
}

}  // namespace

std::vector<StoreAnswer> AskStores(const std::vector<StorageRequest>& requests,
                                   base::Deadline deadline, const AskStore& ask) {
  std::map<std::string, Inquiry> questions;  // by all that is asked
  std::map<std::string, std::unique_ptr<Server>> servers;
  std::vector<const Inquiry*> of_requests;
  for (const StorageRequest& request : requests) {
    const auto [found, is_new] = questions.try_emplace(storage::ToJson(request), Inquiry{&request});
    of_requests.push_back(&found->second);
    if (!is_new) continue;
    std::unique_ptr<Server>& server = servers[ServerOf(request.place)];
    if (server == nullptr) server = std::make_unique<Server>();
    server->questions.push_back(&found->second);
  }
  const std::vector<Server*> turns = InTurns(servers);
  base::ForEachAtOnce(turns.size(), kMostAtOnce, [&](size_t i) {
    Server& server = *turns[i];
    for (size_t q = server.next++; q < server.questions.size() && !deadline.Expired();
         q = server.next++) {
      server.questions[q]->answer = ask(*server.questions[q]->request, deadline);
    }
  });
  std::vector<StoreAnswer> answers;
  for (const Inquiry* question : of_requests) answers.push_back(question->answer);
  return answers;
}

}  // namespace tutti::service
