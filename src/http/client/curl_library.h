// Loads libcurl at the first transfer and not before: a launcher that fetches nothing starts
// without it and the thirty libraries that it needs. Internal to this room but for LoadCurl.
#pragma once

#include <curl/curl.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tutti::http {

// CurlLibrary has the functions that this room calls; https://curl.se/libcurl/c/ describes them.
struct CurlLibrary {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_version_info) version_info = nullptr;
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_setopt) easy_setopt = nullptr;
  decltype(&curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&curl_easy_reset) easy_reset = nullptr;
  decltype(&curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&curl_easy_strerror) easy_strerror = nullptr;
  decltype(&curl_slist_append) slist_append = nullptr;
  decltype(&curl_slist_free_all) slist_free_all = nullptr;
  decltype(&curl_multi_init) multi_init = nullptr;
  decltype(&curl_multi_add_handle) multi_add_handle = nullptr;
  decltype(&curl_multi_remove_handle) multi_remove_handle = nullptr;
  decltype(&curl_multi_perform) multi_perform = nullptr;
  decltype(&curl_multi_poll) multi_poll = nullptr;
  decltype(&curl_multi_info_read) multi_info_read = nullptr;
  decltype(&curl_multi_strerror) multi_strerror = nullptr;
  decltype(&curl_multi_cleanup) multi_cleanup = nullptr;
};

// Loads libcurl, once in a process. FailedPrecondition if this machine has none, or one
// before 7.68; a later call tries again. Thread-safe.
absl::StatusOr<const CurlLibrary*> LoadCurl();

// Returns the file of the issuers that this machine trusts, for a libcurl that was built for
// another distribution: SSL_CERT_FILE, else `built_in` if it exists, else the first of the usual
// places that does; "" if none exists.
std::string IssuersFile(const std::string& built_in);

}  // namespace tutti::http
