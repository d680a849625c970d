#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/process/held_folder.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/commands/text_of.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/table.h"
#include "platform/file_server/fill_state.h"
#include "platform/file_server/ganesha.h"
#include "platform/file_server/served_folder.h"
#include "platform/file_server/served_path.h"
#include "platform/file_server/server_state.h"
#include "spec/data/data_map.h"
#include "spec/data/datastore.h"
#include "spec/data/file_server.h"
#include "spec/data/file_server_file.h"
#include "spec/data/home_list.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

using file_server::FillState;
using file_server::ServerFolder;
using file_server::ServerState;
using file_server::ServerStatus;
using spec::FileServer;
using spec::FileServers;

constexpr uint64_t kLargestServerFile = 1 << 20;
constexpr absl::Duration kPatienceWithService = absl::Seconds(15);
constexpr absl::Duration kBetweenServerLooks = absl::Milliseconds(100);

std::string MountOf(const FileServer& server) {
  return absl::StrCat(spec::EndpointOf(server), "/", server.name);
}

// Holds the service's folder, so that none begins meanwhile; nullopt if a service runs.
absl::StatusOr<std::optional<base::UniqueFd>> HoldWithoutService(const Context& context) {
  auto lock = base::HoldFolder(context.home);
  if (absl::IsFailedPrecondition(lock.status())) return std::nullopt;
  TUTTI_RETURN_IF_ERROR(lock.status());
  return *std::move(lock);
}

// The server outlives the service, so that what is served no more is ended here where none runs.
// `is`: what has become of it.
absl::Status EndHere(const Context& context, const std::string& name, absl::string_view is) {
  const absl::Status ended = file_server::EndServer(ServerFolder(context.home, name));
  if (ended.ok()) return ended;
  return absl::Status(ended.code(),
                      absl::StrCat("file server ", name, " is ", is, ", and ", ended.message()));
}

// Asks until it is so, or gives up.
template <typename Condition>
bool WaitFor(const Condition& condition) {
  const auto deadline = base::Deadline::After(kPatienceWithService);
  while (!condition()) {
    if (deadline.Expired()) return false;
    absl::SleepFor(kBetweenServerLooks);
  }
  return true;
}

// A port of one address is one server's.
absl::Status CheckPort(const FileServers& servers, const FileServer& server) {
  for (const auto& [name, other] : servers) {
    const bool same_address = other.address == server.address ||
                              other.address == spec::kAnyAddress ||
                              server.address == spec::kAnyAddress;
    if (name == server.name || other.port != server.port || !same_address) continue;
    return absl::AlreadyExistsError(absl::StrCat("port ", server.port, " of ", server.address,
                                                 " is file server ", name,
                                                 "'s: give this one another port"));
  }
  return absl::OkStatus();
}

bool IsOf(const spec::Datastore& datastore, const FileServer& server) {
  return StoreOf(datastore.place) == StoreOf(PlaceOf(server));
}

// The datastore of its name, by which jobs read it. `former`: what the server was before.
absl::Status MakeDatastore(const Context& context, const FileServer& server,
                           const FileServer& former) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                         spec::LockList(spec::DatastoresFile(context.home)));
  TUTTI_ASSIGN_OR_RETURN(spec::Datastores datastores, spec::ReadDatastores(context.home));
  const auto known = datastores.find(server.name);
  if (known != datastores.end() && !IsOf(known->second, server) && !IsOf(known->second, former)) {
    return absl::AlreadyExistsError(
        absl::StrCat("there is a datastore ", server.name, " of another store, and the file ",
                     "server's would have its name: name the file server otherwise"));
  }
  datastores[server.name] = {.name = server.name,
                             .type = "nfs",
                             .description = server.description,
                             .tags = server.tags,
                             .place = PlaceOf(server)};
  return spec::WriteDatastores(context.home, datastores);
}

absl::Status RemoveDatastore(const Context& context, const FileServer& server) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                         spec::LockList(spec::DatastoresFile(context.home)));
  TUTTI_ASSIGN_OR_RETURN(spec::Datastores datastores, spec::ReadDatastores(context.home));
  const auto known = datastores.find(server.name);
  if (known == datastores.end() || !IsOf(known->second, server)) return absl::OkStatus();
  datastores.erase(known);
  return spec::WriteDatastores(context.home, datastores);
}

// Waits until the service serves this definition; says what keeps it from that.
absl::Status AwaitServing(Context& context, const FileServer& server) {
  const fs::path folder = ServerFolder(context.home, server.name);
  const std::string config = file_server::GaneshaConfig(server, folder / "recovery");
  TUTTI_ASSIGN_OR_RETURN(const auto without, HoldWithoutService(context));
  if (without.has_value()) {
    if (base::ReadFile(folder / "ganesha.conf").value_or("") != config) {
      TUTTI_RETURN_IF_ERROR(EndHere(context, server.name, "kept"));
    }
    context.err << "no service runs: it is served once there is one (tutti serve)" << std::endl;
    return absl::OkStatus();
  }
  ServerState state;
  const bool is_decided = WaitFor([&] {
    if (base::ReadFile(folder / "ganesha.conf").value_or("") != config) return false;
    state = file_server::ReadServerStatus(context.home, server).state;
    return state.state == "running" || state.state == "failed";
  });
  if (state.state == "running") return absl::OkStatus();
  if (is_decided) {
    return absl::UnavailableError(absl::StrCat("file server ", server.name,
                                               " is kept, and is not served yet: ", state.error));
  }
  return absl::UnavailableError(absl::StrCat("file server ", server.name,
                                             " is kept, and is not served yet: see tutti "
                                             "file-server show ",
                                             server.name));
}

absl::StatusOr<FileServer> FindServer(const FileServers& servers, const std::string& name) {
  const auto found = servers.find(name);
  if (found != servers.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("there is no file server ", name));
}

std::string ClientsOf(const FileServer& server) {
  return absl::StrCat(absl::StrJoin(server.clients, " "), server.is_writable ? " (write)" : "");
}

nlohmann::json ServerDocument(const ServerStatus& status) {
  nlohmann::json document = spec::JsonOf(status.server);
  document["mount"] = MountOf(status.server);
  document["status"] = file_server::JsonOf(status.state);
  if (status.fill) document["filled"] = file_server::JsonOf(*status.fill);
  return document;
}

// "filled from s3://b/x: 3 of 3 files, 12 kB of 12 kB".
std::string FillText(const FillState& fill) {
  return absl::StrCat(fill.state, " from ", fill.from, ": ",
                      PartOfCopy(fill.files, fill.of_files, fill.bytes, fill.of_bytes),
                      fill.error.empty() ? "" : "; ", fill.error);
}

void ShowServers(Context& context, const std::vector<ServerStatus>& servers) {
  Table table({{"NAME"},
               {"STATE"},
               {"ADDRESS"},
               {"FOLDER"},
               {"CLIENTS"},
               {"RESTARTS", Table::Align::kRight},
               {"DESCRIPTION", Table::Align::kLeft, true}});
  for (const auto& [server, state, fill] : servers) {
    table.Add({{server.name},
               {state.state},
               {MountOf(server)},
               {server.folder.native()},
               {ClientsOf(server)},
               {absl::StrCat(state.restarts)},
               {server.description}});
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  for (const auto& [server, state, fill] : servers) {
    if (!state.error.empty()) context.out << server.name << ": " << state.error << "\n";
    if (fill) context.out << server.name << ": " << FillText(*fill) << "\n";
  }
}

// Notes how far it has come, for who looks meanwhile; of an address not its query, which may be a
// signature.
absl::Status Fill(Context& context, const FileServer& server, const std::string& from) {
  const fs::path folder = ServerFolder(context.home, server.name);
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  FillState state{.from = spec::WithoutQuery(from), .state = "filling", .pid = ::getpid()};
  TUTTI_ASSIGN_OR_RETURN(state.start_time, base::ProcessStartTime(state.pid));
  const auto note = [&] {
    state.updated = absl::ToUnixSeconds(absl::Now());
    return file_server::WriteFillState(folder, state);
  };
  TUTTI_RETURN_IF_ERROR(note());
  StorageOptions options;
  options.addresses = {from, server.folder.native()};
  options.is_contained = true;  // its clients may write there
  const auto counts =
      Sync(context, options, [&](int64_t files, int64_t of_files, int64_t bytes, int64_t of_bytes) {
        state.files = files, state.of_files = of_files;
        state.bytes = bytes, state.of_bytes = of_bytes;
        note().IgnoreError();  // the copy is what counts
      });
  state.state = counts.ok() ? "filled" : "cut off";
  state.error = std::string(counts.status().message());
  if (counts.ok()) {
    state.files = state.of_files = counts->files;
    state.bytes = state.of_bytes = counts->bytes;
  }
  TUTTI_RETURN_IF_ERROR(note());
  return counts.status();
}

}  // namespace

absl::StatusOr<ExitCode> FileServerFill(Context& context, const FileServerOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const FileServers servers, spec::ReadFileServers(context.home));
  TUTTI_ASSIGN_OR_RETURN(const FileServer server, FindServer(servers, options.name));
  const std::string from = options.from.empty() ? server.fill : options.from;
  if (from.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("file server ", server.name, " has no fill: in its file; say --from ADDRESS"));
  }
  TUTTI_RETURN_IF_ERROR(Fill(context, server, from));
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> FileServerCreate(Context& context, const FileServerOptions& options) {
  const auto text = TextOf(options.file, options.text, kLargestServerFile);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  TUTTI_ASSIGN_OR_RETURN(
      FileServer server,
      spec::ReadFileServerFile(*text, options.file,
                               fs::absolute(options.file).parent_path().lexically_normal()));
  TUTTI_RETURN_IF_ERROR(file_server::CheckGanesha(base::CurrentEnvironment()));
  // Where it leads now; a link that leads elsewhere later has nothing else served.
  TUTTI_ASSIGN_OR_RETURN(server.folder, file_server::ServedPath(server.folder, context.home));
  {
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                           spec::LockList(spec::FileServersFile(context.home)));
    TUTTI_ASSIGN_OR_RETURN(FileServers servers, spec::ReadFileServers(context.home));
    TUTTI_RETURN_IF_ERROR(CheckPort(servers, server));
    const auto known = servers.find(server.name);
    TUTTI_RETURN_IF_ERROR(
        MakeDatastore(context, server, known == servers.end() ? server : known->second));
    servers[server.name] = server;
    TUTTI_RETURN_IF_ERROR(spec::WriteFileServers(context.home, servers));
  }
  TUTTI_RETURN_IF_ERROR(AwaitServing(context, server));
  context.out << MountOf(server) << " is " << server.folder.native()
              << "; jobs read it as azureml://datastores/" << server.name << "/paths/\n";
  if (spec::NamesEachNode(server)) {
    context.err << "at " << server.address << " jobs of this machine alone can read it, and while "
                << "it is not served any user here who takes port " << server.port
                << " is believed: for other nodes give it an address that they reach" << std::endl;
  }
  if (!server.fill.empty()) TUTTI_RETURN_IF_ERROR(Fill(context, server, server.fill));
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> FileServerList(Context& context, const FileServerOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<ServerStatus> servers,
                         file_server::ReadServerStatuses(context.home));
  if (options.format == Format::kTable) {
    ShowServers(context, servers);
    return ExitCode::kOk;
  }
  nlohmann::json list = nlohmann::json::array();
  for (const ServerStatus& server : servers) list.push_back(ServerDocument(server));
  const nlohmann::json document = {{"file_servers", list}};
  TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, document.dump(), options.format));
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> FileServerShow(Context& context, const FileServerOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const FileServers servers, spec::ReadFileServers(context.home));
  TUTTI_ASSIGN_OR_RETURN(const FileServer server, FindServer(servers, options.name));
  const ServerStatus status = file_server::ReadServerStatus(context.home, server);
  if (options.format == Format::kTable) {
    ShowServers(context, {status});
  } else {
    TUTTI_RETURN_IF_ERROR(
        WriteStructured(context.out, ServerDocument(status).dump(), options.format));
  }
  return ExitCode::kOk;
}

// Nobody else waits for the list while the user thinks.
absl::StatusOr<ExitCode> FileServerDelete(Context& context, const FileServerOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const FileServers shown, spec::ReadFileServers(context.home));
  TUTTI_ASSIGN_OR_RETURN(const FileServer server, FindServer(shown, options.name));
  const std::string question =
      absl::StrCat("Serve ", server.folder.native(), " at ", MountOf(server),
                   " no more? Who has it mounted waits for it; its files stay.");
  TUTTI_ASSIGN_OR_RETURN(const bool may, MayRemove(context, options.yes, question));
  if (!may) return absl::CancelledError("nothing was deleted");
  // Before the list is written: what fails until then can be tried again.
  TUTTI_ASSIGN_OR_RETURN(const auto without, HoldWithoutService(context));
  {
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                           spec::LockList(spec::FileServersFile(context.home)));
    TUTTI_ASSIGN_OR_RETURN(FileServers servers, spec::ReadFileServers(context.home));
    TUTTI_ASSIGN_OR_RETURN(const FileServer now, FindServer(servers, options.name));
    if (spec::JsonOf(now) != spec::JsonOf(server)) {
      return absl::AbortedError(absl::StrCat("file server ", options.name,
                                             " was created anew meanwhile; nothing was deleted"));
    }
    TUTTI_RETURN_IF_ERROR(RemoveDatastore(context, server));
    servers.erase(server.name);
    TUTTI_RETURN_IF_ERROR(spec::WriteFileServers(context.home, servers));
  }
  std::error_code error;
  const fs::path folder = ServerFolder(context.home, server.name);
  if (without.has_value()) {
    TUTTI_RETURN_IF_ERROR(EndHere(context, server.name, "forgotten"));
    TUTTI_RETURN_IF_ERROR(base::RemoveTree(folder));
  } else if (!WaitFor([&] { return !fs::exists(folder, error); })) {
    return absl::DeadlineExceededError(absl::StrCat(
        "file server ", server.name, " is forgotten, and its process has not ended yet: see what ",
        "the service's log says"));
  }
  context.out << "file server " << server.name << " is forgotten; " << server.folder.native()
              << " stays\n";
  return ExitCode::kOk;
}

}  // namespace tutti::client
