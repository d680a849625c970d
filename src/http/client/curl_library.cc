#include "http/client/curl_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/symbol.h"

namespace tutti::http {
namespace {

constexpr char kName[] = "libcurl.so.4";
constexpr unsigned kOldest = 0x074400;  // 7.68 has curl_multi_poll, and tells its wakeups

absl::Status NotThere(absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("libcurl, which fetches by http and https, is not on this machine (", why,
                   "): install it (Debian: libcurl4, Red Hat: libcurl, SUSE: libcurl4)"));
}

absl::StatusOr<CurlLibrary> Resolve(void* library) {
  CurlLibrary curl;
  base::Symbols symbols(library);
  symbols.Find(curl.global_init, "curl_global_init");
  symbols.Find(curl.version_info, "curl_version_info");
  symbols.Find(curl.easy_init, "curl_easy_init");
  symbols.Find(curl.easy_setopt, "curl_easy_setopt");
  symbols.Find(curl.easy_getinfo, "curl_easy_getinfo");
  symbols.Find(curl.easy_reset, "curl_easy_reset");
  symbols.Find(curl.easy_cleanup, "curl_easy_cleanup");
  symbols.Find(curl.easy_strerror, "curl_easy_strerror");
  symbols.Find(curl.slist_append, "curl_slist_append");
  symbols.Find(curl.slist_free_all, "curl_slist_free_all");
  symbols.Find(curl.multi_init, "curl_multi_init");
  symbols.Find(curl.multi_add_handle, "curl_multi_add_handle");
  symbols.Find(curl.multi_remove_handle, "curl_multi_remove_handle");
  symbols.Find(curl.multi_perform, "curl_multi_perform");
  symbols.Find(curl.multi_poll, "curl_multi_poll");
  symbols.Find(curl.multi_info_read, "curl_multi_info_read");
  symbols.Find(curl.multi_strerror, "curl_multi_strerror");
  symbols.Find(curl.multi_cleanup, "curl_multi_cleanup");
  if (!symbols.missing().empty()) return NotThere(absl::StrCat("it has no ", symbols.missing()));
  return curl;
}

absl::StatusOr<CurlLibrary> Load() {
  void* const library = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NotThere(::dlerror());
  absl::StatusOr<CurlLibrary> curl = Resolve(library);
  if (!curl.ok()) return curl;
  const curl_version_info_data* const version = curl->version_info(CURLVERSION_NOW);
  if (version->version_num < kOldest) {
    return NotThere(absl::StrCat("it is version ", version->version, ", older than 7.68"));
  }
  if (const CURLcode code = curl->global_init(CURL_GLOBAL_DEFAULT); code != CURLE_OK) {
    return NotThere(curl->easy_strerror(code));
  }
  return curl;
}

}  // namespace

absl::StatusOr<const CurlLibrary*> LoadCurl() {
  static absl::Mutex mutex;
  static const CurlLibrary* loaded ABSL_GUARDED_BY(mutex) = nullptr;
  absl::MutexLock lock(&mutex);
  if (loaded == nullptr) {
    absl::StatusOr<CurlLibrary> curl = Load();
    if (!curl.ok()) return curl.status();
    loaded = new CurlLibrary(*curl);
  }
  return loaded;
}

std::string IssuersFile(const std::string& built_in) {
  const char* const chosen = std::getenv("SSL_CERT_FILE");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  std::error_code error;
  for (const std::string& file :
       {built_in, std::string("/etc/ssl/certs/ca-certificates.crt"),
        std::string("/etc/pki/tls/certs/ca-bundle.crt"), std::string("/etc/ssl/ca-bundle.pem"),
        std::string("/etc/ssl/cert.pem")}) {
    if (!file.empty() && std::filesystem::exists(file, error)) return file;
  }
  return "";
}

}  // namespace tutti::http
