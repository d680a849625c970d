#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/child_process.h"
#include "base/status.h"
#include "http/identity.h"
#include "http/url.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/find_service.h"
#include "platform/client/connection/service_client.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kBrowserStarts = absl::Minutes(1), kAsksEach = absl::Milliseconds(200);
constexpr char kPortalPath[] = "/portal/";

struct PortalLink {
  std::string origin, place, word;
  std::string Text() const { return absl::StrCat(Bare(), "#sign-in=", word); }
  std::string Bare() const { return absl::StrCat(origin, place); }
};

// The part of an address of the page that names what it shows: "/portal/jobs/a?x=time".
absl::StatusOr<std::string> PlaceInUrl(const std::string& url) {
  if (url.empty()) return kPortalPath;
  const size_t scheme = url.find("://");
  const size_t path = url.find('/', scheme == std::string::npos ? 0 : scheme + 3);
  const std::string place = path == std::string::npos ? "" : url.substr(path, url.find('#') - path);
  if (!absl::StartsWith(place, kPortalPath)) {
    return absl::InvalidArgumentError(absl::StrCat(
        url, " is no address of the page: give one as the browser has it, with /portal/ in it"));
  }
  return place;
}

// RedirectFile is a page that leads to a link, which only this user can read. Browsers from snaps
// read neither /tmp nor hidden folders. It is removed by the destructor, and by a signal that ends
// the process; one that was left behind goes once its word is too old. One at a time.
class RedirectFile {
 public:
  static absl::StatusOr<std::unique_ptr<RedirectFile>> Write(const std::string& link) {
    const char* const home = std::getenv("HOME");
    if (home == nullptr || *home == '\0') return absl::NotFoundError("HOME is not set");
    RemoveOld(home);
    const std::string name = absl::StrCat(kBegin, base::RandomHex(4), kEnd);
    auto file = std::unique_ptr<RedirectFile>(new RedirectFile(fs::path(home) / name));
    const std::string escaped = absl::StrReplaceAll(
        link, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
    TUTTI_RETURN_IF_ERROR(
        base::WriteFileAtomic(file->path_,
                              absl::StrCat("<!doctype html><meta charset=utf-8><title>tutti</title>"
                                           "<meta name=referrer content=no-referrer>"
                                           "<meta http-equiv=refresh content=\"0; url=",
                                           escaped, "\"><a href=\"", escaped, "\">tutti</a>\n"),
                              0600));
    return file;
  }
  ~RedirectFile() {
    for (const int signal : kSignals) ::signal(signal, SIG_DFL);
    ::unlink(path_.c_str());
    present = nullptr;
  }
  const fs::path& path() const { return path_; }

 private:
  static constexpr char kBegin[] = "tutti-portal-", kEnd[] = ".html";
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  static constexpr std::chrono::hours kWordLasts{1};

  explicit RedirectFile(fs::path path) : path_(std::move(path)) {
    present = path_.c_str();
    for (const int signal : kSignals) ::signal(signal, &RemoveAndEnd);
  }
  static void RemoveAndEnd(int signal) {
    ::unlink(present);
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  static void RemoveOld(const fs::path& home) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(home, error)) {
      const std::string name = entry.path().filename();
      if (!absl::StartsWith(name, kBegin) || !absl::EndsWith(name, kEnd)) continue;
      const auto written = entry.last_write_time(error);
      if (!error && fs::file_time_type::clock::now() - written > kWordLasts) {
        fs::remove(entry.path(), error);
      }
    }
  }

  static inline const char* present = nullptr;  // for the signals' handler
  const fs::path path_;
};

absl::StatusOr<base::ChildProcess> StartBrowser(const std::string& what) {
  base::ChildOptions open{.arguments = {"xdg-open", what}, .new_session = true};
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR",
                           "DBUS_SESSION_BUS_ADDRESS", "BROWSER", "HOME", "PATH"}) {
    if (const char* const value = std::getenv(name)) open.environment[name] = value;
  }
  return base::ChildProcess::Start(open);
}

bool HasScreen() {
  return std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr;
}

// Waits until the browser has signed in; returns whether it did.
bool AwaitUse(ServiceClient& service, const std::string& word, base::ChildProcess& browser) {
  const base::Deadline deadline = base::Deadline::After(kBrowserStarts);
  bool has_ended = false;
  while (!deadline.Expired()) {
    const auto unused = service.IsPortalWordUnused(word);
    if (!unused.ok() || !*unused) return unused.ok();
    if (has_ended) {
      absl::SleepFor(kAsksEach);
    } else if (const auto ended = browser.Wait(base::Deadline::After(kAsksEach)); ended.ok()) {
      if (!ended->ok()) return false;
      has_ended = true;
    }
  }
  return false;
}

// Opens the link in the user's browser. All users see command lines: the word stands in a file that
// only this user reads, and where none can be made the user types it.
void OpenInBrowser(Context& context, ServiceClient& service, const PortalLink& link) {
  const auto file = RedirectFile::Write(link.Text());
  auto browser = StartBrowser(file.ok() ? (*file)->path().string() : link.Bare());
  if (!browser.ok()) {
    context.err << "No browser was opened: " << browser.status().message() << "\n";
  } else if (!file.ok()) {
    context.err << "Opened in the browser: sign in there by the word " << link.word << " ("
                << file.status().message() << ")\n";
  } else if (AwaitUse(service, link.word, *browser)) {
    context.err << "Opened in the browser.\n";
  } else {
    context.err << "No browser has signed in yet: open the link in one.\n";
  }
}

absl::Status SayTunnel(Context& context, const std::string& origin, const std::string& machine) {
  TUTTI_ASSIGN_OR_RETURN(const http::Authority from, http::ParseBaseUrl(origin));
  context.err << "From your own machine: ssh -L " << from.port << ":127.0.0.1:" << from.port << " "
              << machine << ", then open the link there.\n";
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExitCode> Portal(Context& context, const PortalOptions& options) {
  ServiceClient service(context.connect());
  if (options.signs_out) {
    TUTTI_RETURN_IF_ERROR(service.SignPagesOut());
    context.err << "All browsers are signed out.\n";
    return ExitCode::kOk;
  }
  PortalLink link;
  TUTTI_ASSIGN_OR_RETURN(link.place, PlaceInUrl(options.url));
  TUTTI_ASSIGN_OR_RETURN(const spec::Endpoint used, FindService(context.home));
  const bool is_trusted =
      absl::StartsWith(used.address, "https://") && !http::IsSelfSigned(used.certificate);
  const bool names_it =
      is_trusted && absl::StartsWith(options.url, absl::StrCat(used.address, "/"));
  TUTTI_ASSIGN_OR_RETURN(const std::string answer, service.MakePortalLink(names_it));
  const auto made = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (!made.is_object() || !made.value("word", nlohmann::json()).is_string()) {
    return absl::DataLossError("the service's answer has no link: it is of another version");
  }
  link.word = made["word"];
  const bool elsewhere = made.value("elsewhere", false);
  const std::string url = made["url"].is_string() ? made["url"].get<std::string>() : "";
  link.origin = url.substr(0, url.find(kPortalPath));
  const bool tunnels = elsewhere && !is_trusted && !link.origin.empty();
  if (elsewhere && !tunnels) link.origin = used.address;
  if (!made.value("there", true)) {
    context.err << "tutti: the service has no page yet: tools/build-portal makes its files\n";
  }
  context.out << link.Text() << std::endl;
  if (tunnels) {
    TUTTI_ASSIGN_OR_RETURN(const http::Authority there, http::ParseBaseUrl(used.address));
    TUTTI_RETURN_IF_ERROR(SayTunnel(context, link.origin, there.host));
  } else if (!options.only_print && HasScreen()) {
    OpenInBrowser(context, service, link);
  } else if (!options.only_print && std::getenv("SSH_CONNECTION") != nullptr && !elsewhere) {
    TUTTI_RETURN_IF_ERROR(SayTunnel(context, link.origin, "THIS-MACHINE"));
  }
  return ExitCode::kOk;
}

}  // namespace tutti::client
