// The C ABI's plain groups.
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/comm/capi/boundary.h"
#include "runtime/comm/elastic.h"
#include "runtime/comm/shared_buffer.h"

namespace tutti::comm::capi {
namespace {

std::string TextOr(const char* text, const char* otherwise) {
  return text == nullptr ? otherwise : text;
}

absl::StatusOr<GroupOptions> FromC(const tutti_comm_group_options* given) {
  if (given == nullptr) return GroupOptionsFromEnvironment();
  TUTTI_ASSIGN_OR_RETURN(const tutti_comm_group_options c,
                         Whole(given, &tutti_comm_group_options_init));
  if (c.transport < 0 || c.transport > TUTTI_COMM_TRANSPORT_UCX) {
    return absl::InvalidArgumentError(absl::StrCat("there is no transport ", c.transport));
  }
  GroupOptions options;
  options.rank = c.rank;
  options.size = c.size;
  options.node = c.node;
  options.address = TextOr(c.address, "");
  options.master_address = TextOr(c.master_address, options.master_address.c_str());
  options.master_port = c.master_port;
  options.token = TextOr(c.token, "");
  options.connect_timeout = Seconds(c.connect_timeout);
  options.peer_timeout = Seconds(c.peer_timeout);
  options.transport = static_cast<GroupOptions::Transport>(c.transport);
  options.tcp_streams = c.tcp_streams;
  options.encrypt = c.encrypt != 0;
  options.deterministic = c.deterministic != 0;
  options.check_calls = c.check_calls != 0;
  options.elastic = c.elastic != 0;
  options.group_file = TextOr(c.group_file, "");
  options.members = absl::StrSplit(TextOr(c.members, ""), absl::ByAnyChar(", "), absl::SkipEmpty());
  return options;
}

void ToC(const GroupOptions& options, tutti_comm_group_options* c) {
  c->rank = options.rank;
  c->size = options.size;
  c->node = options.node;
  c->master_port = options.master_port;
  c->connect_timeout = absl::ToDoubleSeconds(options.connect_timeout);
  c->peer_timeout = absl::ToDoubleSeconds(options.peer_timeout);
  c->transport = static_cast<int32_t>(options.transport);
  c->tcp_streams = options.tcp_streams;
  c->encrypt = options.encrypt ? 1 : 0;
  c->deterministic = options.deterministic ? 1 : 0;
  c->check_calls = options.check_calls ? 1 : 0;
  c->elastic = options.elastic ? 1 : 0;
}

tutti_comm_group Open(std::unique_ptr<Communicator> group) {
  auto handle = std::make_shared<GroupHandle>();
  handle->group = std::move(group);
  return Handles::Global().Add(HandleKind::kGroup, std::move(handle));
}

// One number a rank.
absl::StatusOr<std::span<const size_t>> PerRank(const size_t* numbers, const Communicator& group) {
  TUTTI_RETURN_IF_ERROR(NotNull(numbers, "the numbers by rank"));
  return std::span(numbers, static_cast<size_t>(group.size()));
}

// Memory may be null where there is none of it.
absl::Status Memory(const void* memory, size_t bytes, const char* what) {
  return bytes == 0 ? absl::OkStatus() : NotNull(memory, what);
}

size_t Sum(std::span<const size_t> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), size_t{0});
}

}  // namespace
}  // namespace tutti::comm::capi

using namespace tutti::comm;        // NOLINT(google-build-using-namespace)
using namespace tutti::comm::capi;  // NOLINT(google-build-using-namespace)

void tutti_comm_group_options_init(tutti_comm_group_options* options, size_t size) {
  tutti_comm_group_options defaults = {};
  ToC(GroupOptions(), &defaults);
  GiveDefaults(defaults, options, size);
}

tutti_comm_status tutti_comm_group_options_from_environment(tutti_comm_group_options* options) {
  return Guard([&]() -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(tutti_comm_group_options whole,
                           Whole(options, &tutti_comm_group_options_init));
    thread_local GroupOptions kept;
    thread_local std::string members;
    TUTTI_ASSIGN_OR_RETURN(kept, GroupOptionsFromEnvironment());
    members = absl::StrJoin(kept.members, ",");
    ToC(kept, &whole);
    whole.address = kept.address.c_str();
    whole.master_address = kept.master_address.c_str();
    whole.token = kept.token.c_str();
    whole.group_file = kept.group_file.c_str();
    whole.members = members.c_str();
    GiveDefaults(whole, options, options->struct_size);
    return absl::OkStatus();
  });
}

tutti_comm_status tutti_comm_group_join(const tutti_comm_group_options* options,
                                        tutti_comm_group* group) {
  return Guard([&]() -> absl::Status {
    TUTTI_RETURN_IF_ERROR(NotNull(group, "group"));
    TUTTI_ASSIGN_OR_RETURN(const GroupOptions joining, FromC(options));
    TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> joined, JoinGroup(joining));
    *group = Open(std::move(joined));
    return absl::OkStatus();
  });
}

tutti_comm_status tutti_comm_group_leave(tutti_comm_group group) {
  return Guard([&]() -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const auto held, Take<GroupHandle>(HandleKind::kGroup, group));
    const std::lock_guard<std::mutex> lock(held->busy);
    held->on_top = {};
    held->group.reset();
    return absl::OkStatus();
  });
}

tutti_comm_status tutti_comm_group_placement(tutti_comm_group group,
                                             tutti_comm_placement* placement, size_t size) {
  return OnGroup(group, [&](Communicator& comm) {
    return Give(ToC(comm.placement(), comm.rank(), comm.size()), placement, size, "placement");
  });
}

tutti_comm_status tutti_comm_all_reduce(tutti_comm_group group, void* data, size_t count,
                                        tutti_comm_type type, tutti_comm_op op, double timeout) {
  return OnGroup(group, [&](Communicator& comm) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const DataType element, TypeOf(type));
    TUTTI_ASSIGN_OR_RETURN(const ReduceOp reduction, OpOf(op));
    TUTTI_RETURN_IF_ERROR(Memory(data, count, "data"));
    return comm.AllReduce(data, count, element, reduction, After(timeout));
  });
}

tutti_comm_status tutti_comm_reduce_scatter(tutti_comm_group group, const void* input,
                                            const size_t* counts, void* output,
                                            tutti_comm_type type, tutti_comm_op op,
                                            double timeout) {
  return OnGroup(group, [&](Communicator& comm) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const DataType element, TypeOf(type));
    TUTTI_ASSIGN_OR_RETURN(const ReduceOp reduction, OpOf(op));
    TUTTI_ASSIGN_OR_RETURN(const auto parts, PerRank(counts, comm));
    TUTTI_RETURN_IF_ERROR(Memory(input, Sum(parts), "input"));
    TUTTI_RETURN_IF_ERROR(Memory(output, parts[comm.rank()], "output"));
    return comm.ReduceScatter(input, parts, output, element, reduction, After(timeout));
  });
}

tutti_comm_status tutti_comm_broadcast(tutti_comm_group group, void* data, size_t bytes,
                                       int32_t root, double timeout) {
  return OnGroup(group, [&](Communicator& comm) -> absl::Status {
    TUTTI_RETURN_IF_ERROR(Memory(data, bytes, "data"));
    return comm.Broadcast(data, bytes, root, After(timeout));
  });
}

tutti_comm_status tutti_comm_all_gather(tutti_comm_group group, const void* input, size_t bytes,
                                        void* output, double timeout) {
  return OnGroup(group, [&](Communicator& comm) -> absl::Status {
    TUTTI_RETURN_IF_ERROR(Memory(input, bytes, "input"));
    TUTTI_RETURN_IF_ERROR(Memory(output, bytes, "output"));
    return comm.AllGather(input, bytes, output, After(timeout));
  });
}

tutti_comm_status tutti_comm_all_gatherv(tutti_comm_group group, const void* input,
                                         const size_t* bytes, void* output, double timeout) {
  return OnGroup(group, [&](Communicator& comm) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const auto parts, PerRank(bytes, comm));
    TUTTI_RETURN_IF_ERROR(Memory(input, parts[comm.rank()], "input"));
    TUTTI_RETURN_IF_ERROR(Memory(output, Sum(parts), "output"));
    return comm.AllGatherV(input, parts, output, After(timeout));
  });
}

tutti_comm_status tutti_comm_all_to_allv(tutti_comm_group group, const void* input,
                                         const size_t* send_bytes, void* output,
                                         const size_t* receive_bytes, double timeout) {
  return OnGroup(group, [&](Communicator& comm) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const auto sent, PerRank(send_bytes, comm));
    TUTTI_ASSIGN_OR_RETURN(const auto received, PerRank(receive_bytes, comm));
    TUTTI_RETURN_IF_ERROR(Memory(input, Sum(sent), "input"));
    TUTTI_RETURN_IF_ERROR(Memory(output, Sum(received), "output"));
    return comm.AllToAllV(input, sent, output, received, After(timeout));
  });
}

tutti_comm_status tutti_comm_barrier(tutti_comm_group group, double timeout) {
  return OnGroup(group, [&](Communicator& comm) { return comm.Barrier(After(timeout)); });
}

tutti_comm_status tutti_comm_send(tutti_comm_group group, const void* data, size_t bytes,
                                  int32_t to, double timeout) {
  return OnGroup(group, [&](Communicator& comm) -> absl::Status {
    TUTTI_RETURN_IF_ERROR(Memory(data, bytes, "data"));
    return comm.Send(data, bytes, to, After(timeout));
  });
}

tutti_comm_status tutti_comm_receive(tutti_comm_group group, void* data, size_t bytes, int32_t from,
                                     double timeout) {
  return OnGroup(group, [&](Communicator& comm) -> absl::Status {
    TUTTI_RETURN_IF_ERROR(Memory(data, bytes, "data"));
    return comm.Receive(data, bytes, from, After(timeout));
  });
}

tutti_comm_status tutti_comm_subgroup(tutti_comm_group group, const int32_t* ranks, size_t count,
                                      double timeout, tutti_comm_group* subgroup) {
  return OnGroup(group, [&](Communicator& comm) -> absl::Status {
    TUTTI_RETURN_IF_ERROR(NotNull(subgroup, "subgroup"));
    TUTTI_RETURN_IF_ERROR(Memory(ranks, count, "ranks"));
    TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> made,
                           comm.NewGroup({ranks, count}, After(timeout)));
    *subgroup = Open(std::move(made));
    return absl::OkStatus();
  });
}

tutti_comm_status tutti_comm_group_reform(tutti_comm_group group, int32_t least, int32_t most,
                                          double gather, double patience, tutti_comm_group* next) {
  return Guard([&]() -> absl::Status {
    TUTTI_RETURN_IF_ERROR(NotNull(next, "next"));
    TUTTI_ASSIGN_OR_RETURN(const auto held, Get<GroupHandle>(HandleKind::kGroup, group));
    const std::unique_lock<std::mutex> lock(held->busy, std::try_to_lock);
    if (!lock.owns_lock() || held->group == nullptr) {
      return absl::FailedPreconditionError("another thread is calling this group, or has left it");
    }
    ReformOptions terms;
    terms.min_ranks = least;
    if (most > 0) terms.max_ranks = most;
    terms.member_timeout = Seconds(gather);
    terms.newcomer_timeout = Seconds(std::max(patience, 0.0));
    held->on_top = {};
    TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> formed, held->group->Reform(terms));
    *next = Open(std::move(formed));
    held->group.reset();
    return Take<GroupHandle>(HandleKind::kGroup, group).status();
  });
}

tutti_comm_status tutti_comm_group_waiting(tutti_comm_group group, int32_t* newcomers) {
  return OnGroup(group, [&](Communicator& comm) -> absl::Status {
    TUTTI_RETURN_IF_ERROR(NotNull(newcomers, "newcomers"));
    *newcomers = comm.WaitingNewcomers();
    return absl::OkStatus();
  });
}

tutti_comm_status tutti_comm_group_join_running(const tutti_comm_group_options* options,
                                                double timeout, tutti_comm_group* group) {
  return Guard([&]() -> absl::Status {
    TUTTI_RETURN_IF_ERROR(NotNull(group, "group"));
    TUTTI_ASSIGN_OR_RETURN(const GroupOptions joining, FromC(options));
    TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> joined,
                           JoinRunning(joining, After(timeout)));
    *group = Open(std::move(joined));
    return absl::OkStatus();
  });
}

tutti_comm_status tutti_comm_buffer_allocate(tutti_comm_group group, size_t bytes,
                                             tutti_comm_buffer* buffer, void** data) {
  return OnGroup(group, [&](Communicator& comm) -> absl::Status {
    TUTTI_RETURN_IF_ERROR(NotNull(buffer, "buffer"));
    TUTTI_RETURN_IF_ERROR(NotNull(data, "data"));
    TUTTI_ASSIGN_OR_RETURN(std::shared_ptr<SharedBuffer> shared, comm.AllocateShared(bytes));
    *data = shared->data();
    *buffer = Handles::Global().Add(HandleKind::kBuffer, std::move(shared));
    return absl::OkStatus();
  });
}

tutti_comm_status tutti_comm_buffer_free(tutti_comm_buffer buffer) {
  return Guard([&] { return Take<SharedBuffer>(HandleKind::kBuffer, buffer).status(); });
}
