#include "platform/cluster/leave.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace tutti::cluster {
namespace {

bool IsAmong(const std::vector<std::string>& hosts, const std::string& host) {
  return std::find(hosts.begin(), hosts.end(), host) != hosts.end();
}

absl::Status CheckMayLeave(const Description& description,
                           const std::vector<std::string>& leaving) {
  for (const std::string& host : leaving) {
    if (host == description.controller) {
      return absl::InvalidArgumentError(
          absl::StrCat(host, " is the controller; `tutti cluster delete` ends the cluster"));
    }
    if (!IsAmong(description.nodes, host)) {
      return absl::NotFoundError(absl::StrCat(host, " is no node of cluster ", description.name,
                                              "; its nodes are ",
                                              absl::StrJoin(description.nodes, ", ")));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckReached(const Description& description, const std::vector<std::string>& leaving,
                          const std::vector<absl::StatusOr<HostFacts>>& facts, bool force) {
  const std::vector<std::string> hosts = description.Hosts();
  std::vector<std::string> why, out = leaving;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const bool leaves = IsAmong(leaving, hosts[i]);
    if (facts[i].ok() || (leaves && force)) continue;
    if (!absl::IsUnavailable(facts[i].status()) || i == 0) return facts[i].status();
    why.emplace_back(facts[i].status().message());
    if (!leaves) out.push_back(hosts[i]);
  }
  if (why.empty()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(absl::StrJoin(why, "\n"),
                   "\nnothing was changed; if they are gone for good: ", RemovalOfGone(out)));
}

absl::StatusOr<Leaving> LeavingOf(const Description& description, const std::string& host,
                                  const absl::StatusOr<HostFacts>& facts, bool force) {
  if (!facts.ok()) {
    return Leaving{
        host, "", {}, absl::StrCat(facts.status().message(), "; what it has stays there")};
  }
  auto removal = PlanRemoval(description, {*facts});
  if (removal.ok()) return Leaving{host, facts->name, *std::move(removal), ""};
  if (force) return Leaving{host, "", {}, absl::StrCat(removal.status().message(), " there")};
  return absl::Status(
      removal.status().code(),
      absl::StrCat(removal.status().message(), "; --force takes it out and leaves it as it is"));
}

}  // namespace

absl::StatusOr<std::vector<Leaving>> PlanLeaving(
    const Description& description, const std::vector<std::string>& leaving,
    const std::vector<absl::StatusOr<HostFacts>>& facts, bool force) {
  TUTTI_RETURN_IF_ERROR(CheckMayLeave(description, leaving));
  TUTTI_RETURN_IF_ERROR(CheckReached(description, leaving, facts, force));
  TUTTI_RETURN_IF_ERROR(CheckOwned(description, {*facts.front()}));
  Description rest = description;
  std::vector<HostFacts> facts_of_rest;
  std::vector<Leaving> plan;
  const std::vector<std::string> hosts = description.Hosts();
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (!IsAmong(leaving, hosts[i])) {
      facts_of_rest.push_back(*facts[i]);
      continue;
    }
    std::erase(rest.nodes, hosts[i]);
    TUTTI_ASSIGN_OR_RETURN(plan.emplace_back(), LeavingOf(description, hosts[i], facts[i], force));
  }
  TUTTI_RETURN_IF_ERROR(MakePlan(rest, facts_of_rest).status());
  return plan;
}

std::string RemovalOfGone(const std::vector<std::string>& hosts) {
  return absl::StrCat("`tutti cluster remove-node --force ", absl::StrJoin(hosts, " "), "`");
}

}  // namespace tutti::cluster
