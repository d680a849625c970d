// The C ABI's sessions: the negotiation.
#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/comm/capi/boundary.h"
#include "runtime/comm/negotiation/negotiation.h"

namespace tutti::comm::capi {
namespace {

NegotiationOptions FromC(const tutti_comm_session_options& c, int rank) {
  NegotiationOptions options;
  options.tuning.fusion_bytes = c.fusion_bytes;
  options.tuning.cycle_time = Seconds(std::max(c.cycle_time, 0.0));
  options.cache_capacity = c.cache_capacity;
  options.autotune = c.autotune != 0;
  if (c.autotune_log != nullptr) options.autotune_log = c.autotune_log;
  options.stall.warning = Seconds(std::max(c.stall_warning, 0.0));
  options.stall.shutdown = Seconds(std::max(c.stall_shutdown, 0.0));
  options.collective_timeout = Seconds(c.collective_timeout);
  // A library writes to standard error itself: the log belongs to the program.
  options.log_stalls = false;
  const bool logs = c.log_stalls != 0;
  options.on_stall = [logs, rank, call = c.on_stall,
                      context = c.on_stall_context](const Stall& stall) {
    const std::string text = stall.ToString();
    if (logs && (rank == 0 || stall.silent == 0)) {
      std::fprintf(stderr, "tutti: stalled: %s\n", text.c_str());
    }
    if (call != nullptr) call(context, text.c_str());
  };
  return options;
}

absl::Status FinishWithin(const OperationOr& operation, double timeout) {
  TUTTI_RETURN_IF_ERROR(operation.status());
  return (*operation)->Wait(After(timeout));
}

// Writes at most `capacity` of them.
absl::Status Export(const std::vector<int>& numbers, int32_t* to, size_t capacity, size_t* count) {
  TUTTI_RETURN_IF_ERROR(NotNull(count, "count"));
  if (capacity > 0) TUTTI_RETURN_IF_ERROR(NotNull(to, "the array"));
  std::copy_n(numbers.begin(), std::min(numbers.size(), capacity), to);
  *count = numbers.size();
  return absl::OkStatus();
}

template <typename Body>
tutti_comm_status OnSession(tutti_comm_session handle, const Body& body) noexcept {
  return Guard([&]() -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const std::shared_ptr<Negotiation> session,
                           Get<Negotiation>(HandleKind::kSession, handle));
    return body(*session);
  });
}

}  // namespace
}  // namespace tutti::comm::capi

using namespace tutti::comm;        // NOLINT(google-build-using-namespace)
using namespace tutti::comm::capi;  // NOLINT(google-build-using-namespace)

void tutti_comm_session_options_init(tutti_comm_session_options* options, size_t size) {
  const NegotiationOptions defaults;
  tutti_comm_session_options whole = {};
  whole.fusion_bytes = defaults.tuning.fusion_bytes;
  whole.cycle_time = absl::ToDoubleSeconds(defaults.tuning.cycle_time);
  whole.cache_capacity = static_cast<uint32_t>(defaults.cache_capacity);
  whole.stall_warning = absl::ToDoubleSeconds(defaults.stall.warning);
  whole.collective_timeout = absl::ToDoubleSeconds(defaults.collective_timeout);
  whole.log_stalls = 1;
  GiveDefaults(whole, options, size);
}

tutti_comm_status tutti_comm_session_start(tutti_comm_group group,
                                           const tutti_comm_session_options* options,
                                           tutti_comm_session* session) {
  return Guard([&]() -> absl::Status {
    TUTTI_RETURN_IF_ERROR(NotNull(session, "session"));
    tutti_comm_session_options chosen;
    tutti_comm_session_options_init(&chosen, sizeof(chosen));
    if (options != nullptr) {
      TUTTI_ASSIGN_OR_RETURN(chosen, Whole(options, &tutti_comm_session_options_init));
    }
    TUTTI_ASSIGN_OR_RETURN(const auto held, Get<GroupHandle>(HandleKind::kGroup, group));
    const std::unique_lock<std::mutex> lock(held->busy, std::try_to_lock);
    if (!lock.owns_lock() || held->group == nullptr) {
      return absl::FailedPreconditionError("another thread is calling this group, or has left it");
    }
    if (held->had_session) {
      return absl::FailedPreconditionError(
          "a session has stood on this group: re-form it, or take a subgroup, for another");
    }
    TUTTI_RETURN_IF_ERROR(Take<GroupHandle>(HandleKind::kGroup, group).status());
    held->on_top = {};
    const int rank = held->group->rank();
    *session = Handles::Global().Add(
        HandleKind::kSession, std::shared_ptr<Negotiation>(
                                  Negotiation::Start(std::move(held->group), FromC(chosen, rank))));
    return absl::OkStatus();
  });
}

tutti_comm_status tutti_comm_session_shutdown(tutti_comm_session session) {
  return Guard([&]() -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const auto ended, Take<Negotiation>(HandleKind::kSession, session));
    return ended->Shutdown();
  });
}

tutti_comm_status tutti_comm_session_end(tutti_comm_session session, tutti_comm_group* group) {
  return Guard([&]() -> absl::Status {
    TUTTI_RETURN_IF_ERROR(NotNull(group, "group"));
    TUTTI_ASSIGN_OR_RETURN(const auto ended, Take<Negotiation>(HandleKind::kSession, session));
    auto handle = std::make_shared<GroupHandle>();
    handle->group = ended->GiveBack();
    handle->had_session = true;
    if (handle->group == nullptr) return absl::FailedPreconditionError("it has shut down");
    *group = Handles::Global().Add(HandleKind::kGroup, std::move(handle));
    return absl::OkStatus();
  });
}

tutti_comm_status tutti_comm_session_placement(tutti_comm_session session,
                                               tutti_comm_placement* placement, size_t size) {
  return OnSession(session, [&](Negotiation& negotiation) {
    return Give(ToC(negotiation.placement(), negotiation.rank(), negotiation.size()), placement,
                size, "placement");
  });
}

tutti_comm_status tutti_comm_session_waiting(tutti_comm_session session, int32_t* newcomers) {
  return OnSession(session, [&](Negotiation& negotiation) -> absl::Status {
    TUTTI_RETURN_IF_ERROR(NotNull(newcomers, "newcomers"));
    *newcomers = negotiation.WaitingNewcomers();
    return absl::OkStatus();
  });
}

tutti_comm_status tutti_comm_process_set_add(tutti_comm_session session, const int32_t* ranks,
                                             size_t count, double timeout, int32_t* process_set) {
  return OnSession(session, [&](Negotiation& negotiation) -> absl::Status {
    TUTTI_RETURN_IF_ERROR(NotNull(process_set, "process_set"));
    TUTTI_RETURN_IF_ERROR(NotNull(ranks, "ranks"));
    std::vector<int> wanted(ranks, ranks + count);
    const OperationOr operation = negotiation.AddProcessSet(wanted);
    const absl::Status status = FinishWithin(operation, timeout);
    if (status.ok()) *process_set = static_cast<int32_t>((*operation)->value());
    if (!absl::IsAlreadyExists(status)) return status;
    std::sort(wanted.begin(), wanted.end());
    for (const int set : negotiation.ProcessSets()) {
      if (negotiation.RanksOf(set).value_or(std::vector<int>()) == wanted) *process_set = set;
    }
    return status;
  });
}

tutti_comm_status tutti_comm_process_set_remove(tutti_comm_session session, int32_t process_set,
                                                double timeout) {
  return OnSession(session, [&](Negotiation& negotiation) {
    return FinishWithin(negotiation.RemoveProcessSet(process_set), timeout);
  });
}

tutti_comm_status tutti_comm_process_sets(tutti_comm_session session, int32_t* process_sets,
                                          size_t capacity, size_t* count) {
  return OnSession(session, [&](Negotiation& negotiation) {
    return Export(negotiation.ProcessSets(), process_sets, capacity, count);
  });
}

tutti_comm_status tutti_comm_process_set_ranks(tutti_comm_session session, int32_t process_set,
                                               int32_t* ranks, size_t capacity, size_t* count) {
  return OnSession(session, [&](Negotiation& negotiation) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<int> members, negotiation.RanksOf(process_set));
    return Export(members, ranks, capacity, count);
  });
}

tutti_comm_status tutti_comm_timeline_start(tutti_comm_session session, const char* path,
                                            int32_t mark_cycles) {
  return OnSession(session, [&](Negotiation& negotiation) -> absl::Status {
    TUTTI_RETURN_IF_ERROR(NotNull(path, "path"));
    return negotiation.StartTimeline(path, mark_cycles != 0);
  });
}

tutti_comm_status tutti_comm_timeline_stop(tutti_comm_session session) {
  return OnSession(session, [](Negotiation& negotiation) { return negotiation.StopTimeline(); });
}

tutti_comm_status tutti_comm_session_tuning(tutti_comm_session session, uint64_t* fusion_bytes,
                                            double* cycle_time) {
  return OnSession(session, [&](Negotiation& negotiation) {
    const Tuning tuning = negotiation.tuning();
    if (fusion_bytes != nullptr) *fusion_bytes = tuning.fusion_bytes;
    if (cycle_time != nullptr) *cycle_time = absl::ToDoubleSeconds(tuning.cycle_time);
    return absl::OkStatus();
  });
}
