#include "platform/file_server/ganesha.h"

#include <unistd.h>

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/machine/machine.h"

namespace tutti::file_server {
namespace {

constexpr int kReadAnyFile = 2;  // CAP_DAC_READ_SEARCH

// Returns what follows ":LEVEL :" in a line of the log; "" if the line is not of that level.
absl::string_view TextOf(absl::string_view line, absl::string_view level) {
  const size_t at = line.find(absl::StrCat(" :", level, " :"));
  return at == absl::string_view::npos ? "" : line.substr(at + level.size() + 4);
}

// Returns whether this process may open any file whatever its mode, which NFS's handles need.
bool MayReadAnyFile() {
  const auto status = base::ReadFile("/proc/self/status");
  if (!status.ok()) return ::geteuid() == 0;
  for (absl::string_view line : absl::StrSplit(*status, '\n')) {
    uint64_t effective = 0;
    if (!absl::ConsumePrefix(&line, "CapEff:")) continue;
    return absl::SimpleHexAtoi(absl::StripAsciiWhitespace(line), &effective) &&
           ((effective >> kReadAnyFile) & 1) == 1;
  }
  return false;
}

}  // namespace

// A client says itself who its user is. So a reader is nobody, who reads what everyone may; who may
// write is whom it says it is, but not root of the folder.
std::string GaneshaConfig(const spec::FileServer& server, const std::filesystem::path& recovery) {
  const char* const squash = server.is_writable ? "Root_Squash" : "All_Squash";
  return absl::StrCat(
      "NFS_CORE_PARAM { Protocols = 4; NFS_Port = ", server.port, "; Bind_addr = ", server.address,
      ";\n  Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; }\n",
      "NFS_KRB5 { Active_krb5 = false; }\n",
      "NFSv4 { Only_Numeric_Owners = true; Graceless = true; Delegations = false;\n",
      "  RecoveryBackend = fs; RecoveryRoot = \"", recovery.native(), "\"; }\n",
      "MDCACHE { Dir_Chunk = 0; }\n", "EXPORT { Export_Id = 1; Path = \"", server.folder.native(),
      "\"; Pseudo = \"/", server.name,
      "\";\n  Protocols = 4; Transports = TCP; SecType = sys; Squash = ", squash,
      ";\n  Access_Type = None; Attr_Expiration_Time = 0;\n",
      "  CLIENT { Clients = ", absl::StrJoin(server.clients, ", "),
      "; Access_Type = ", server.is_writable ? "RW" : "RO", ";\n    Protocols = 4; ",
      "Transports = TCP; SecType = sys; Squash = ", squash, "; }\n  FSAL { Name = VFS; } }\n",
      "LOG { Default_Log_Level = EVENT; }\n");
}

bool ServesByLog(absl::string_view log) { return absl::StrContains(log, "NFS SERVER INITIALIZED"); }

// Its last fatal line may only say that it cannot go on: the one before it says why.
std::string ReasonInLog(absl::string_view log) {
  std::string warning, critical, fatal;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    if (const auto text = TextOf(line, "FATAL"); !text.empty()) fatal = std::string(text);
    if (const auto text = TextOf(line, "WARN"); absl::StartsWith(text, "Cannot bind")) {
      warning = std::string(text);
    }
    if (const auto text = TextOf(line, "CRIT"); absl::StrContains(text, "onfig")) {
      critical = std::string(text);
    }
  }
  if (!fatal.empty()) return warning.empty() ? fatal : warning;
  return critical;
}

absl::Status CheckGanesha(const std::map<std::string, std::string>& variables) {
  if (!base::FindProgram(kGanesha, variables).ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(kGanesha, " is not here: apt-get install nfs-ganesha nfs-ganesha-vfs"));
  }
  if (MayReadAnyFile()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(kGanesha,
                   " may not open files by their handles: only root may "
                   "(CAP_DAC_READ_SEARCH); run the service as root"));
}

}  // namespace tutti::file_server
