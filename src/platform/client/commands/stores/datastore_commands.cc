#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/commands/text_of.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/submit/job_text.h"
#include "platform/client/text/table.h"
#include "spec/data/datastore.h"
#include "spec/data/datastore_file.h"
#include "spec/data/home_list.h"
#include "spec/types/enum_names.h"
#include "spec/types/identifier.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

using spec::Datastore;
using spec::Datastores;

constexpr uint64_t kLargestDatastoreFile = 1 << 20;

// Returns whether the secret is the datastore's own, and not one that the user has set.
bool HasOwnSecret(const Datastore& datastore) {
  return spec::IsDatastoreSecret(datastore.place.secret);
}

// "container images of account acme", in one cell of a table.
std::string WhereOf(const spec::DataPlace& place) {
  if (place.kind == spec::StoreKind::kLocal) return place.path;
  const std::string container =
      place.account.empty() ? place.container : absl::StrCat(place.account, "/", place.container);
  return place.endpoint.empty() ? container : absl::StrCat(container, " at ", place.endpoint);
}

std::string CredentialsOf(const spec::DataPlace& place) {
  if (place.secret.empty()) return "none";
  return absl::StrCat(spec::CredentialName(place.credential), " (secret ", place.secret, ")");
}

absl::Status Show(Context& context, const Datastores& datastores) {
  Table table(
      {{"NAME"}, {"TYPE"}, {"WHERE"}, {"CREDENTIALS"}, {"DESCRIPTION", Table::Align::kLeft, true}});
  for (const auto& [name, datastore] : datastores) {
    table.Add({{name},
               {datastore.type},
               {WhereOf(datastore.place)},
               {CredentialsOf(datastore.place)},
               {datastore.description}});
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  return absl::OkStatus();
}

// An argument can be read by other users of the machine while the command runs.
absl::Status CheckSettings(const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    if (!absl::StartsWith(setting, "credentials")) continue;
    return absl::InvalidArgumentError(
        "--set takes no credentials, since arguments can be read by others: write them into the "
        "file, or name a secret in it, credentials: {secret: NAME}");
  }
  return absl::OkStatus();
}

absl::StatusOr<spec::DatastoreFile> ReadFile(const DatastoreOptions& options) {
  TUTTI_RETURN_IF_ERROR(CheckSettings(options.settings));
  const auto text = TextOf(options.file, options.text, kLargestDatastoreFile);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  TUTTI_ASSIGN_OR_RETURN(const std::string changed, ApplySettings(*text, options.settings));
  return spec::ReadDatastoreFile(changed, options.file,
                                 fs::absolute(options.file).parent_path().lexically_normal());
}

// Says what became of the secret, and of the jobs that named it.
absl::Status RemoveOwnSecret(Context& context, const Datastore& datastore) {
  ServiceClient service(context.connect());
  const auto text = service.DeleteSecret(datastore.place.secret);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  TUTTI_RETURN_IF_ERROR(text.status());
  TUTTI_ASSIGN_OR_RETURN(const auto answer, Parse<spec::FailedJobsView>(*text));
  context.out << "the credentials in secret " << datastore.place.secret << " are deleted\n";
  if (!answer.failed_jobs.empty()) {
    context.out << "failed, since they waited for it: " << absl::StrJoin(answer.failed_jobs, ", ")
                << "\n";
  }
  return absl::OkStatus();
}

// Jobs keep the place that they were accepted with, and the former credentials are gone.
void WarnOfReplacement(Context& context, const Datastore& former, const Datastore& datastore) {
  const std::string before = spec::StoreOf(former.place), now = spec::StoreOf(datastore.place);
  if (!HasOwnSecret(former) || before == now) return;
  context.err << "warning: " << datastore.name << " was " << before << " and is " << now
              << ": jobs that were accepted for the former and have not read it yet fail; submit "
                 "them again"
              << std::endl;
}

// Returns whether the user says yes; without a terminal there must be --yes.
absl::StatusOr<bool> MayDelete(Context& context, const DatastoreOptions& options) {
  if (options.yes) return true;
  if (::isatty(STDIN_FILENO) != 1) {
    return absl::InvalidArgumentError("there is no terminal to ask at: say --yes");
  }
  context.err << "Forget datastore " << options.name
              << " and its credentials? Jobs that wait for it fail; the data stay. [y/N] "
              << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return absl::AsciiStrToLower(absl::StripAsciiWhitespace(answer)) == "y";
}

absl::StatusOr<Datastore> Find(const Datastores& datastores, const std::string& name) {
  const auto found = datastores.find(name);
  if (found != datastores.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("there is no datastore ", name));
}

}  // namespace

// The credentials first: a datastore in the list has them, or a former one's.
absl::StatusOr<ExitCode> DatastoreCreate(Context& context, const DatastoreOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const spec::DatastoreFile file, ReadFile(options));
  for (const std::string& warning : file.warnings) {
    context.err << "warning: " << warning << std::endl;
  }
  const Datastore& datastore = file.datastore;
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                         spec::LockList(spec::DatastoresFile(context.home)));
  TUTTI_ASSIGN_OR_RETURN(Datastores datastores, spec::ReadDatastores(context.home));
  if (!file.credentials.empty()) {
    ServiceClient service(context.connect());
    TUTTI_RETURN_IF_ERROR(service.SetSecret(datastore.place.secret, file.credentials));
  }
  const Datastore former = std::exchange(datastores[datastore.name], datastore);
  TUTTI_RETURN_IF_ERROR(spec::WriteDatastores(context.home, datastores));
  context.out << "azureml://datastores/" << datastore.name << "/paths/ is "
              << WhereOf(datastore.place) << "\n";
  WarnOfReplacement(context, former, datastore);
  if (HasOwnSecret(former) && !HasOwnSecret(datastore)) {
    TUTTI_RETURN_IF_ERROR(RemoveOwnSecret(context, former));
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> DatastoreList(Context& context, const DatastoreOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const Datastores datastores, spec::ReadDatastores(context.home));
  if (options.format != Format::kTable) {
    const nlohmann::json document = {{"datastores", spec::JsonOf(datastores)}};
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, document.dump(), options.format));
    return ExitCode::kOk;
  }
  TUTTI_RETURN_IF_ERROR(Show(context, datastores));
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> DatastoreShow(Context& context, const DatastoreOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const Datastores datastores, spec::ReadDatastores(context.home));
  TUTTI_ASSIGN_OR_RETURN(const Datastore datastore, Find(datastores, options.name));
  if (options.format == Format::kTable) {
    TUTTI_RETURN_IF_ERROR(Show(context, {{datastore.name, datastore}}));
  } else {
    TUTTI_RETURN_IF_ERROR(
        WriteStructured(context.out, spec::JsonOf(datastore).dump(), options.format));
  }
  return ExitCode::kOk;
}

// Nobody else waits for the list while the user thinks.
absl::StatusOr<ExitCode> DatastoreDelete(Context& context, const DatastoreOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const Datastores shown, spec::ReadDatastores(context.home));
  TUTTI_ASSIGN_OR_RETURN(const Datastore asked, Find(shown, options.name));
  TUTTI_ASSIGN_OR_RETURN(const bool may, MayDelete(context, options));
  if (!may) return absl::CancelledError("nothing was deleted");
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                         spec::LockList(spec::DatastoresFile(context.home)));
  TUTTI_ASSIGN_OR_RETURN(Datastores datastores, spec::ReadDatastores(context.home));
  TUTTI_ASSIGN_OR_RETURN(const Datastore datastore, Find(datastores, options.name));
  if (spec::JsonOf(datastore) != spec::JsonOf(asked)) {
    return absl::AbortedError(
        absl::StrCat("datastore ", asked.name, " was created anew meanwhile; nothing was deleted"));
  }
  if (HasOwnSecret(datastore)) TUTTI_RETURN_IF_ERROR(RemoveOwnSecret(context, datastore));
  datastores.erase(datastore.name);
  TUTTI_RETURN_IF_ERROR(spec::WriteDatastores(context.home, datastores));
  context.out << "datastore " << datastore.name << " is forgotten\n";
  return ExitCode::kOk;
}

}  // namespace tutti::client
