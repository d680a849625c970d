#include "launcher.h"

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <iostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tutti::swarm {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
constexpr absl::Duration kLongestPause = absl::Seconds(1);

bool IsOutage(unsigned status) {
  return status == 401 || status == 408 || status == 429 || (status >= 500 && status != 507);
}

}  // namespace

void Launcher::Connect(Done done) { Open(std::move(done)); }

void Launcher::Open(Done then) {
  then_ = std::move(then);
  stream_ = std::make_unique<Stream>(gang_.loop, gang_.tls);
  buffer_.clear();
  ++connections_;
  boost::beast::get_lowest_layer(*stream_).async_connect(
      gang_.service, [this](const error_code& code) {
        if (code) return ComeAgain();
        stream_->async_handshake(boost::asio::ssl::stream_base::client,
                                 [this](const error_code& failed) {
                                   if (failed) return ComeAgain();
                                   const Done opened = then_;
                                   opened();
                                 });
      });
}

// After a pause that doubles, less by chance up to half of it.
void Launcher::ComeAgain() {
  ++gang_.broken;
  stream_.reset();
  std::uniform_real_distribution<double> part(0.5, 1);
  pause_timer_.expires_after(absl::ToChronoMicroseconds(pause_ * part(gang_.random)));
  pause_ = std::min(2 * pause_, kLongestPause);
  pause_timer_.async_wait([this](const error_code& code) {
    if (code) return;
    gang_.service = gang_.find_service();
    Open(then_);
  });
}

std::string Launcher::OfNode(const std::string& rest) const {
  return absl::StrCat("/nodes/", node_, rest);
}

void Launcher::Call(const std::string& method, const std::string& rest, const std::string& body,
                    Answer answer) {
  request_ = {};
  request_.method_string(method);
  request_.version(11);
  request_.target(absl::StrCat("/internal/v1/allocations/", gang_.allocation, rest));
  request_.set(http::field::host, "swarm");
  request_.set(http::field::authorization, absl::StrCat("Bearer ", gang_.token));
  request_.body() = body;
  request_.prepare_payload();
  answer_ = std::move(answer);
  then_ = [this] { Send(); };
  Send();
}

void Launcher::Send() {
  http::async_write(*stream_, request_, [this](const error_code& code, size_t) {
    if (code) return ComeAgain();
    response_ = {};
    http::async_read(*stream_, buffer_, response_, [this](const error_code& failed, size_t) {
      if (failed || IsOutage(response_.result_int())) return ComeAgain();
      Hear();
    });
  });
}

void Launcher::Hear() {
  pause_ = kFirstPause;
  if (response_.result_int() != 200) {
    std::cerr << response_.body() << std::endl;
    ++gang_.failures;
  }
  const Answer answer = std::move(answer_);
  answer(response_.body());
}

void Launcher::Report(const std::string& lines, int first, Done done) {
  Call("POST", OfNode(absl::StrCat("/events?first=", first)), lines,
       [done = std::move(done)](const std::string&) { done(); });
}

void Launcher::Poll(int seconds, Done done) {
  Call("GET", OfNode(absl::StrCat("/go?wait=", seconds)), "",
       [done = std::move(done)](const std::string&) { done(); });
}

void Launcher::AwaitGo(Done done) {
  Call("GET", OfNode("/go?wait=20"), "", [this, done = std::move(done)](const std::string& body) {
    absl::StrContains(body, "true") ? done() : AwaitGo(done);
  });
}

void Launcher::Print(const std::string& text, Done done) {
  Call("POST", OfNode(absl::StrCat("/output?rank=", node_, "&stream=stdout&offset=", printed_)),
       text, [this, size = text.size(), done = std::move(done)](const std::string&) {
         printed_ += size;
         done();
       });
}

void Launcher::Fetch(const std::string& snapshot, Done done) {
  Call("GET", absl::StrCat("/snapshots/", snapshot), "",
       [done = std::move(done)](const std::string&) { done(); });
}

}  // namespace tutti::swarm
