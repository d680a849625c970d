#include "platform/service/allocation/cordons.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::service {
namespace {

constexpr size_t kLongestReason = 500;  // bytes

// It is shown in tables and on terminals.
absl::Status CheckReason(absl::string_view reason) {
  const bool is_one_line = std::none_of(reason.begin(), reason.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
  if (!reason.empty() && reason.size() <= kLongestReason && is_one_line) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a cordon has a reason of 1 to ", kLongestReason,
                                                 " bytes, without control characters"));
}

// Slurm has states of its own for its nodes, which its administrators set.
absl::Status OfSlurm(absl::string_view compute, absl::string_view node, absl::string_view command) {
  return absl::FailedPreconditionError(absl::StrCat("the nodes of compute ", compute,
                                                    " are Slurm's: scontrol update nodename=", node,
                                                    " ", command));
}

absl::Status CheckIsThere(SharedState& state, absl::string_view compute, absl::string_view node,
                          absl::string_view slurm) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
  if (state.engines.clusters.contains(std::string(compute))) return OfSlurm(compute, node, slurm);
  if (compute != "local") {
    return absl::NotFoundError(absl::StrCat("there is no compute \"", compute, "\""));
  }
  const bool is_there =
      std::any_of(state.nodes.begin(), state.nodes.end(),
                  [node](const engine::Node& candidate) { return candidate.name == node; });
  if (is_there) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("there is no node \"", node, "\": tutti node list shows them"));
}

}  // namespace

absl::Status ReadCordons(SharedState& state) {
  TUTTI_ASSIGN_OR_RETURN(std::vector<store::Cordon> cordons, state.store->Cordons());
  for (store::Cordon& cordon : cordons) {
    std::string node = cordon.node;
    state.cordons.emplace(std::move(node), std::move(cordon));
  }
  return absl::OkStatus();
}

absl::Status AddCordon(SharedState& state, absl::string_view compute, absl::string_view node,
                       absl::string_view reason) {
  TUTTI_RETURN_IF_ERROR(CheckReason(reason));
  absl::MutexLock one_at_a_time(&state.cordon_mutex);
  {
    StateLock lock(state);
    TUTTI_RETURN_IF_ERROR(CheckIsThere(state, compute, node, "state=drain reason=…"));
  }
  const store::Cordon cordon{std::string(node), std::string(reason), state.clock->Now()};
  TUTTI_RETURN_IF_ERROR(state.store->AddCordon(cordon));
  StateLock lock(state);
  state.cordons[cordon.node] = cordon;
  state.Wake();  // what waits is told why
  return absl::OkStatus();
}

absl::Status RemoveCordon(SharedState& state, absl::string_view compute, absl::string_view node) {
  if (compute != "local") {
    StateLock lock(state);
    return CheckIsThere(state, compute, node, "state=resume");
  }
  absl::MutexLock one_at_a_time(&state.cordon_mutex);
  TUTTI_RETURN_IF_ERROR(state.store->RemoveCordon(node));
  StateLock lock(state);
  state.cordons.erase(std::string(node));
  state.Wake();
  return absl::OkStatus();
}

}  // namespace tutti::service
