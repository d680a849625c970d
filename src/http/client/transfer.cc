#include "http/client/transfer.h"

#include <algorithm>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "http/client/curl_library.h"

namespace tutti::http {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(50);  // for a cancellation
constexpr size_t kMostOfAnError = 64 << 10;
// Limits connecting to all addresses of a host together: libcurl gives an address that does not
// answer half of the time that is left before it tries the next of its kind. Its default is five
// minutes.
constexpr absl::Duration kConnect = absl::Seconds(30);

// Returns what stands between "://" and the path, without a user's name.
std::string HostOf(absl::string_view url) {
  url.remove_prefix(std::min(url.find("://") + 3, url.size()));
  url = url.substr(0, url.find_first_of("/?#"));
  return std::string(url.substr(url.rfind('@') + 1));
}

class CurlTransfer {
 public:
  // The caller owns both handles, which another transfer may have used. Null if there is none.
  CurlTransfer(const CurlLibrary& curl, const TransferRequest& request,
               const std::atomic<bool>& cancelled, CURL* easy, CURLM* multi)
      : curl_(curl),
        request_(request),
        cancelled_(cancelled),
        easy_(easy),
        multi_(multi),
        headers_(nullptr, curl.slist_free_all) {}

  absl::StatusOr<TransferResponse> Run() {
    if (easy_ == nullptr || multi_ == nullptr) {
      return absl::UnavailableError("libcurl has no memory for a transfer");
    }
    SetUp();
    if (const CURLMcode code = curl_.multi_add_handle(multi_, easy_)) {
      return absl::InternalError(curl_.multi_strerror(code));
    }
    const absl::Status status = Perform();
    curl_.multi_remove_handle(multi_, easy_);
    curl_.easy_reset(easy_);  // what it points to goes
    if (!status.ok()) return status;
    return std::move(response_);
  }

 private:
  template <typename Value>
  void Set(CURLoption option, Value value) {
    // An option that this machine's libcurl is too old for is left out, which only costs details.
    curl_.easy_setopt(easy_, option, value);
  }

  void SetUp() {
    Set(CURLOPT_URL, request_.url.c_str());
    SetMethod();
    Set(CURLOPT_HTTP_VERSION,
        static_cast<long>(request_.only_http1 ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
    Set(CURLOPT_BUFFERSIZE, static_cast<long>(request_.piece_bytes));
    if (request_.proxy) Set(CURLOPT_PROXY, request_.proxy->c_str());
    Set(CURLOPT_USERAGENT, "tutti");
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    Set(CURLOPT_ERRORBUFFER, error_);
    const absl::Duration connect = std::min(kConnect, request_.deadline.Remaining());
    Set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(absl::ToInt64Milliseconds(connect)) + 1);
    Set(CURLOPT_QUICK_EXIT, 1L);  // a resolver that hangs is left behind
    if (absl::StartsWithIgnoreCase(request_.url, "https:")) SetIssuers();
    for (const auto& [name, value] : request_.headers) AddHeader(absl::StrCat(name, ": ", value));
    Set(CURLOPT_HTTPHEADER, headers_.get());
    Set(CURLOPT_HEADERFUNCTION, &OnHeader);
    Set(CURLOPT_HEADERDATA, this);
    Set(CURLOPT_WRITEFUNCTION, &OnBody);
    Set(CURLOPT_WRITEDATA, this);
  }

  void SetIssuers() {
    const curl_version_info_data* const version = curl_.version_info(CURLVERSION_NOW);
    const bool says = version->age >= CURLVERSION_ELEVENTH && version->cainfo != nullptr;
    const std::string issuers = IssuersFile(says ? version->cainfo : "");
    if (!issuers.empty()) Set(CURLOPT_CAINFO, issuers.c_str());
  }

  void SetMethod() {
    if (request_.method == "GET") return;
    if (request_.method == "HEAD") {
      Set(CURLOPT_NOBODY, 1L);
      return;
    }
    if (request_.method == "PUT" || request_.method == "POST") {
      // These remove what libcurl would add by itself: the type of a form, and "Expect:".
      if (request_.method == "PUT") AddHeader("Content-Type:");
      AddHeader("Expect:");
      Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
      Set(CURLOPT_POSTFIELDS, request_.body.empty() ? "" : request_.body.data());
    }
    Set(CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  }

  void AddHeader(const std::string& line) {
    curl_slist* const longer = curl_.slist_append(headers_.get(), line.c_str());
    if (longer == nullptr) return;
    headers_.release();
    headers_.reset(longer);
  }

  // Runs the transfer until libcurl is done with it, or nobody waits for it any more.
  absl::Status Perform() {
    int running = 1;
    while (true) {
      CURLMcode code = curl_.multi_perform(multi_, &running);
      if (code == CURLM_OK && running == 0) return Ended();
      if (absl::Status over = WhyOver(); !over.ok()) return over;
      const absl::Duration wait = std::min(kPoll, request_.deadline.Remaining());
      const int millis = static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1;
      if (code == CURLM_OK) {
        code = curl_.multi_poll(multi_, nullptr, 0, millis, nullptr);
      }
      if (code != CURLM_OK) return absl::InternalError(curl_.multi_strerror(code));
    }
  }

  absl::Status WhyOver() const {
    if (cancelled_) return absl::CancelledError("stopped while it was fetched");
    if (request_.deadline.Expired()) {
      return absl::DeadlineExceededError("it took longer than its time limit");
    }
    if (stalled_.Expired()) {
      return absl::DeadlineExceededError(
          absl::StrCat("nothing came for ", absl::FormatDuration(request_.stall)));
    }
    return absl::OkStatus();
  }

  absl::Status Ended() {
    int left = 0;
    const CURLMsg* const message = curl_.multi_info_read(multi_, &left);
    const CURLcode code = message == nullptr ? CURLE_FAILED_INIT : message->data.result;
    if (!refused_.ok()) return refused_;
    if (code != CURLE_OK && !cut_off_) return StatusOf(code);
    const char* redirect = nullptr;
    curl_.easy_getinfo(easy_, CURLINFO_REDIRECT_URL, &redirect);
    if (redirect != nullptr) response_.redirect = redirect;
    return absl::OkStatus();
  }

  absl::Status StatusOf(CURLcode code) const {
    const std::string said = *error_ != '\0' ? error_ : curl_.easy_strerror(code);
    switch (code) {
      case CURLE_URL_MALFORMAT:
      case CURLE_UNSUPPORTED_PROTOCOL:
        return absl::InvalidArgumentError(absl::StrCat("this is no address by http: ", said));
      case CURLE_COULDNT_RESOLVE_HOST:
        return absl::UnavailableError(
            absl::StrCat("cannot find host ", HostOf(request_.url), " (", said, ")"));
      case CURLE_COULDNT_CONNECT:
        return absl::UnavailableError(
            absl::StrCat("cannot reach ", HostOf(request_.url), " (", said, ")"));
      case CURLE_COULDNT_RESOLVE_PROXY:
        return absl::UnavailableError(absl::StrCat(
            "cannot find the proxy that http_proxy or https_proxy names (", said, ")"));
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
        return absl::UnavailableError(absl::StrCat("its certificate is not trusted (", said, ")"));
      case CURLE_OPERATION_TIMEDOUT:
        return absl::DeadlineExceededError(said);
      default:
        return absl::UnavailableError(said);
    }
  }

  static size_t OnHeader(const char* data, size_t, size_t size, void* self) {
    return static_cast<CurlTransfer*>(self)->TakeHeader({data, size}) ? size : size + 1;
  }
  static size_t OnBody(const char* data, size_t, size_t size, void* self) {
    return static_cast<CurlTransfer*>(self)->TakeBody({data, size}) ? size : size + 1;
  }

  // The last field of a name counts, except for Google's hashes, which are a list whose elements
  // may have a field each (RFC 9110, 5.2). Lists are not joined in general: two ETags make none.
  void AddField(const std::string& name, absl::string_view value) {
    const auto [field, is_first] = response_.headers.try_emplace(name, value);
    if (is_first || field->second == value) return;
    if (name == "x-goog-hash") {
      absl::StrAppend(&field->second, ", ", value);
    } else {
      field->second = std::string(value);
    }
  }

  // Takes one line of a header, of which an answer may have several ("100 Continue").
  bool TakeHeader(absl::string_view line) {
    stalled_ = base::Deadline::After(request_.stall);
    line = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(line, "HTTP/")) {
      long status = 0;
      curl_.easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
      response_ = {};
      response_.status = static_cast<int>(status);
    } else if (const size_t colon = line.find(':'); colon != absl::string_view::npos) {
      AddField(absl::AsciiStrToLower(line.substr(0, colon)),
               absl::StripLeadingAsciiWhitespace(line.substr(colon + 1)));
    } else if (line.empty() && response_.ok() && request_.on_header) {
      refused_ = request_.on_header(response_);
    }
    return refused_.ok();
  }

  bool TakeBody(absl::string_view piece) {
    stalled_ = base::Deadline::After(request_.stall);
    if (response_.ok() && request_.on_chunk) {
      // While bytes arrive without a pause the loop above has no turn.
      refused_ = WhyOver();
      if (refused_.ok()) refused_ = request_.on_chunk(piece);
      return refused_.ok();
    }
    absl::StrAppend(&response_.body, piece.substr(0, kMostOfAnError - response_.body.size()));
    cut_off_ = response_.body.size() == kMostOfAnError;
    return !cut_off_;
  }

  const CurlLibrary& curl_;
  const TransferRequest& request_;
  const std::atomic<bool>& cancelled_;
  CURL* const easy_;
  CURLM* const multi_;
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers_;
  char error_[CURL_ERROR_SIZE] = "";
  TransferResponse response_;
  absl::Status refused_;  // by a callback
  bool cut_off_ = false;  // an error's body, which is long enough
  base::Deadline stalled_ = base::Deadline::After(request_.stall);
};

}  // namespace

struct KeptConnections::Impl {
  std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> multi{nullptr, nullptr};
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy{nullptr, nullptr};
};

KeptConnections::KeptConnections() : impl_(std::make_unique<Impl>()) {}
KeptConnections::~KeptConnections() = default;
KeptConnections::KeptConnections(KeptConnections&&) noexcept = default;
KeptConnections& KeptConnections::operator=(KeptConnections&&) noexcept = default;

absl::StatusOr<TransferResponse> Transfer(const TransferRequest& request,
                                          const std::atomic<bool>& cancelled,
                                          KeptConnections* kept) {
  const absl::StatusOr<const CurlLibrary*> curl = LoadCurl();
  if (!curl.ok()) return curl.status();
  KeptConnections of_this_one;
  KeptConnections::Impl& handles = *(kept == nullptr ? of_this_one : *kept).impl_;
  if (handles.multi == nullptr) {
    handles.multi = {(*curl)->multi_init(), (*curl)->multi_cleanup};
    handles.easy = {(*curl)->easy_init(), (*curl)->easy_cleanup};
  }
  return CurlTransfer(**curl, request, cancelled, handles.easy.get(), handles.multi.get()).Run();
}

}  // namespace tutti::http
