#include "platform/service/allocation/cordons.h"

#include <spdlog/spdlog.h>

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

// For who listens, and the service's log.
void AnnounceCordon(SharedState& state, const store::Cordon& cordon, bool is_on)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
  if (is_on) {
    spdlog::warn("node {} gets no jobs, by {}: {}", cordon.node, std::string(Name(cordon.author)),
                 cordon.reason);
  } else {
    spdlog::info("node {} gets jobs again", cordon.node);
  }
  for (EventListener* const listener : state.options.listeners) listener->OnCordon(cordon, is_on);
}

void ForgetCordon(SharedState& state, const std::string& node) ABSL_LOCKS_EXCLUDED(service_lock) {
  StateLock lock(state);
  const auto found = state.cordons.find(node);
  if (found == state.cordons.end()) return;
  AnnounceCordon(state, found->second, /*is_on=*/false);
  state.cordons.erase(found);
  state.Wake();
}

}  // namespace

void NoteCordon(SharedState& state, const store::Cordon& cordon) {
  state.cordons[cordon.node] = cordon;
  AnnounceCordon(state, cordon, /*is_on=*/true);
  state.Wake();  // what waits is told why
}

absl::Status CheckIsOurs(SharedState& state, absl::string_view compute, absl::string_view node) {
  if (state.engines.clusters.contains(std::string(compute))) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the nodes of compute ", compute,
        " are Slurm's, which looks at them itself (HealthCheckProgram of slurm.conf)"));
  }
  return CheckIsThere(state, compute, node, "");
}

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
  const base::KeyedTurns::Turn one_at_a_time(state.cordon_turns, std::string(node));
  {
    StateLock lock(state);
    TUTTI_RETURN_IF_ERROR(CheckIsThere(state, compute, node, "state=drain reason=…"));
  }
  const store::Cordon cordon{std::string(node), std::string(reason), state.clock->Now()};
  TUTTI_RETURN_IF_ERROR(state.store->AddCordon(cordon));
  StateLock lock(state);
  NoteCordon(state, cordon);
  return absl::OkStatus();
}

absl::Status RemoveCordon(SharedState& state, absl::string_view compute, absl::string_view node) {
  if (compute != "local") {
    StateLock lock(state);
    if (state.cluster_cordons.Remove(compute, node)) return absl::OkStatus();
    return CheckIsThere(state, compute, node, "state=resume");
  }
  const base::KeyedTurns::Turn one_at_a_time(state.cordon_turns, std::string(node));
  absl::Status removed = state.store->RemoveCordon(node);
  // One that could not be written is in memory alone.
  const bool is_known = [&] {
    StateLock lock(state);
    return state.cordons.contains(std::string(node));
  }();
  if (!removed.ok() && !(absl::IsNotFound(removed) && is_known)) return removed;
  ForgetCordon(state, std::string(node));
  return absl::OkStatus();
}

void WriteCordon(SharedState& state, const store::Cordon& cordon) {
  const base::KeyedTurns::Turn one_at_a_time(state.cordon_turns, cordon.node);
  {
    StateLock lock(state);
    const auto found = state.cordons.find(cordon.node);
    const bool is_still_on = found != state.cordons.end() && found->second.time == cordon.time &&
                             found->second.author == cordon.author;
    if (!is_still_on) return;
  }
  if (const absl::Status written = state.store->AddCordon(cordon); !written.ok()) {
    spdlog::warn("the cordon of node {} is not kept: {}", cordon.node, written.ToString());
  }
}

void LiftCordon(SharedState& state, const std::string& node, store::CordonAuthor author) {
  const base::KeyedTurns::Turn one_at_a_time(state.cordon_turns, node);
  {
    StateLock lock(state);
    const auto found = state.cordons.find(node);
    if (found == state.cordons.end() || found->second.author != author) return;
  }
  const absl::Status removed = state.store->RemoveCordon(node);
  if (!removed.ok() && !absl::IsNotFound(removed)) {
    spdlog::warn("the cordon of node {} may come back: {}", node, removed.ToString());
  }
  ForgetCordon(state, node);
}

void AddClusterCordon(SharedState& state, const std::string& compute, const std::string& node,
                      const std::string& reason) {
  if (!state.cluster_cordons.Add(compute, node, reason, state.clock->SinceBoot())) return;
  spdlog::warn("node {} of compute {} is avoided for {}, as its launcher found it to be ill: {}",
               node, compute, absl::FormatDuration(ClusterCordons::kLimit), reason);
}

}  // namespace tutti::service
