// A newcomer's way into a running group: from member to member until one keeps it.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "base/threads/retry_pause.h"
#include "runtime/comm/group/group_file.h"
#include "runtime/comm/group/reform.h"
#include "runtime/comm/rendezvous/authenticate.h"
#include "runtime/comm/rendezvous/check_table.h"
#include "runtime/comm/rendezvous/rendezvous_server.h"

namespace tutti::comm {
namespace {

constexpr int kMostSteps = 4;  // from one member to the next
constexpr size_t kLongestFile = 4 << 20;

// Where members may be found now. The file may not be there yet, or be of a generation that is
// over.
absl::StatusOr<std::vector<Endpoint>> Places(const GroupOptions& options) {
  std::vector<Endpoint> places;
  if (!options.group_file.empty()) {
    const auto file = base::ReadFile(options.group_file, kLongestFile);
    if (file.ok()) {
      TUTTI_ASSIGN_OR_RETURN(places, ReadGroupFile(*file));
    }
  }
  for (const std::string& text : options.members) {
    TUTTI_ASSIGN_OR_RETURN(places.emplace_back(), ParseEndpoint(text));
  }
  places.push_back({options.master_address, options.master_port});
  return places;
}

class Newcomer {
 public:
  Newcomer(const GroupOptions& options, const Hello& self, base::Deadline deadline)
      : options_(options), self_(self), deadline_(deadline) {}

  // Until a group has taken it in.
  absl::StatusOr<ReformOutcome> Seek() {
    base::RetryPause pauses(absl::Milliseconds(40), absl::Milliseconds(500));
    while (true) {
      TUTTI_ASSIGN_OR_RETURN(const std::vector<Endpoint> places, Places(options_));
      for (const Endpoint& place : places) {
        absl::StatusOr<ReformOutcome> outcome = KnockAt(place);
        if (outcome.ok() || absl::IsPermissionDenied(outcome.status())) return outcome;
        if (deadline_.Expired()) return Late(outcome.status());
      }
      absl::SleepFor(std::min(pauses.Next(), deadline_.Remaining()));
    }
  }

 private:
  Patience Brief() const {
    return {base::Deadline::Sooner(deadline_, base::Deadline::After(LongestSilence(options_)))};
  }

  absl::Status Late(const absl::Status& last) const {
    return absl::DeadlineExceededError(
        absl::StrCat("no group has taken this newcomer in: ", std::string(last.message())));
  }

  absl::StatusOr<ReformOutcome> KnockAt(Endpoint place) {
    for (int step = 0; step < kMostSteps; ++step) {
      absl::StatusOr<base::UniqueFd> fd = Open(place);
      if (!fd.ok()) return base::Annotate(fd.status(), place.ToString());
      TUTTI_ASSIGN_OR_RETURN(Message answer, AwaitAnswer(fd->get(), place));
      if (Decided* const decided = std::get_if<Decided>(&answer)) {
        TUTTI_RETURN_IF_ERROR(CheckTable(decided->table));
        if (!RankIn(decided->table, self_).has_value()) break;
        ReformOutcome outcome{std::move(decided->table), {}};
        if (decided->from_rank_zero) outcome.controls.push_back(*std::move(fd));
        return outcome;
      }
      const Redirect* const elsewhere = std::get_if<Redirect>(&answer);
      if (elsewhere == nullptr) break;
      place = {elsewhere->address, elsewhere->port};
    }
    return absl::UnavailableError(
        absl::StrCat(place.ToString(), " did not lead to the group's rank 0"));
  }

  absl::StatusOr<base::UniqueFd> Open(const Endpoint& place) const {
    TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, Connect(place, options_.address, Brief()));
    TUTTI_RETURN_IF_ERROR(
        Authenticate(fd.get(), Side::kOpener, options_.token, kRendezvousPurpose, Brief()));
    TUTTI_RETURN_IF_ERROR(SendMessage(fd.get(), JoinRequest{self_}, Brief()));
    return fd;
  }

  // While the group goes on its rank 0 says that it lives.
  absl::StatusOr<Message> AwaitAnswer(int fd, const Endpoint& place) const {
    while (true) {
      absl::StatusOr<Message> message = ReceiveMessage(fd, kLongestMessage, Brief());
      const std::string where = absl::StrCat("the group at ", place.ToString());
      if (deadline_.Expired()) {
        return absl::DeadlineExceededError(absl::StrCat(where, " did not re-form"));
      }
      if (!message.ok()) return base::Annotate(message.status(), where);
      if (!std::holds_alternative<Progress>(*message)) return message;
    }
  }

  const GroupOptions& options_;
  const Hello& self_;
  const base::Deadline deadline_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> JoinRunning(const GroupOptions& given,
                                                          base::Deadline deadline) {
  GroupOptions options = given;
  options.elastic = true;
  options.rank = 0;
  options.size = 1;
  if (options.address.empty()) {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<Endpoint> places, Places(options));
    TUTTI_ASSIGN_OR_RETURN(options.address, AddressToward(places.front()));
  }
  Generation line;
  TUTTI_ASSIGN_OR_RETURN(line.listener, RejoinListener::Open(options.address, options.token,
                                                             options.peer_timeout / 8));
  TUTTI_ASSIGN_OR_RETURN(RejoinIdentity identity, PrepareRejoin(options, *line.listener));
  line.options = options;
  TUTTI_ASSIGN_OR_RETURN(ReformOutcome outcome, Newcomer(options, identity.self, deadline).Seek());
  ReformOptions terms;  // should members be lost before it has come in
  terms.member_timeout = options.connect_timeout;
  return BecomeMember(line, std::move(outcome), std::move(identity), terms);
}

}  // namespace tutti::comm
